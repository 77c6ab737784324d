"""The entry point: `mydata-like` and `python -m mydata_like`."""

import os
import sys
from pathlib import Path

from mydata_like import __version__


def main() -> None:
    """Open the window, or run the command that is given.

    The version is told before anything else is imported, and the window opens without what
    only commands need: a second start, which shows the window that is open, ends at once.
    """
    words = sys.argv[1:]
    if words in (["--version"], ["version"]):
        sys.stdout.write(f"mydata-like {__version__}\n")
    elif words[:1] in ([], ["gui"]):
        from mydata_like.cli.window import app as window

        window(words[1:], prog_name="mydata-like gui", obj=open_window)
    else:
        import multiprocessing

        from mydata_like.cli.main import app

        multiprocessing.freeze_support()  # in a bundle the channel workers start here
        app(prog_name="mydata-like", obj=open_window)


def open_window(config: Path | None, paths: tuple[Path, ...], *, hidden: bool) -> int:
    """Open the window of a settings file, the usual one by default; return the exit code."""
    from mydata_like.gui.start import Start, start
    from mydata_like.store.paths import Places

    places = Places.chosen(os.environ, config)
    folders = (places.state, places.logs)
    return start(Start(config, places.config_file, *folders, paths, hidden=hidden))


if __name__ == "__main__":
    main()
