"""The entry point: `mydata-like` and `python -m mydata_like`."""

import sys

from mydata_like import __version__


def main() -> None:
    """Run the command line; the version is told before anything else is imported."""
    if sys.argv[1:] in (["--version"], ["version"]):
        sys.stdout.write(f"mydata-like {__version__}\n")
        return
    import multiprocessing

    from mydata_like.cli.main import app

    multiprocessing.freeze_support()  # in a bundle the channel workers start here
    app(prog_name="mydata-like")


if __name__ == "__main__":
    main()
