"""The entry point: `mydata-like` and `python -m mydata_like`."""

import os
import sys
from typing import TYPE_CHECKING

from mydata_like import __version__

if TYPE_CHECKING:
    from pathlib import Path

# Files that are copied, fetched or extracted from an archive, and those of programs that the window
# opens, are the user's. What `verify` remembers is for all who verify the same destination.
_OPEN: tuple[list[str], ...] = ([], ["gui"], ["archive"], ["copy"], ["get"], ["verify"])


def main() -> None:
    """Open the window, or run the given command.

    The version is printed before anything else is imported. The window is opened without
    importing the commands, so a second start, which only shows the window, is fast. A bundle has
    no other executable, so this also starts channel workers.
    """
    words = sys.argv[1:]
    if words[:1] not in _OPEN:
        os.umask(0o077)  # files of libraries and subprocesses are private as well
    if words in (["--version"], ["version"]):
        sys.stdout.write(f"mydata-like {__version__}\n")
        return
    _take_private()
    if words == ["--channel-worker"]:
        from mydata_like.transfer.worker import main as serve

        serve()
    elif words[:1] in ([], ["gui"]):
        show(words[1:])
    elif words[:1] == ["--self-test"]:
        from mydata_like.cli.terminal import guard_streams
        from mydata_like.selftest.checks import main as try_parts

        guard_streams()
        sys.exit(try_parts(words[1:]))
    elif words[:1] == ["--installer"]:
        from mydata_like.app.installer_actions import main as act

        sys.exit(act(words[1:]))
    else:
        _run_command(words)


def show(words: list[str] | None = None) -> None:
    """Open the window, as `mydata-like-gui` does; `words` default to the command line.

    On Windows the Task Scheduler starts `mydata-like-gui watch`, which has no console.
    """
    if words is None and sys.argv[1:2] == ["watch"]:
        main()
        return
    _take_private()
    from mydata_like.cli.window_command import app as window

    window(words, prog_name="mydata-like gui", obj=open_window)


def _take_private() -> None:
    from mydata_like.state.paths import take_private

    take_private()


def _run_command(words: list[str]) -> None:
    from mydata_like.cli.terminal import guard_streams
    from mydata_like.hostos.process import call_with_large_stack, gc_disabled_for_imports

    def start() -> None:
        with gc_disabled_for_imports():
            from mydata_like.cli.main import build_app
        build_app()(words, prog_name="mydata-like", obj=open_window)

    guard_streams()
    call_with_large_stack(start)


def open_window(
    config: "Path | None", paths: "tuple[Path, ...]", *, hidden: bool, demo: bool = False
) -> int:
    """Open the window for a settings file, by default the usual one; return the exit code."""
    from mydata_like.gui.launch import start
    from mydata_like.gui.launch_options import LaunchOptions
    from mydata_like.state.paths import StatePaths

    places = StatePaths.chosen(os.environ, config)
    files = (config, places.config_file, places.state, places.logs)
    return start(LaunchOptions(*files, paths, hidden=hidden, demo=demo))


if __name__ == "__main__":
    main()
