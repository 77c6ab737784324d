"""The options of `mydata-like gui`; the entry point opens the window.

This module imports nothing heavy, so that a second start ends at once.
"""

from pathlib import Path
from typing import Annotated, Protocol

import typer

from mydata_like.cli.options import ConfigOption


class OpenWindow(Protocol):
    """Opens the window, or rings at the one that is open; returns the exit code."""

    def __call__(
        self, config: Path | None, paths: tuple[Path, ...], *, hidden: bool, demo: bool
    ) -> int: ...


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def gui(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Offer these files and folders for upload."),
    ] = None,
    config: ConfigOption = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Start in the tray, as at a login.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", hidden=True)] = False,
) -> None:
    """Open the window, or show it if it is already open."""
    open_window: OpenWindow = context.obj
    raise typer.Exit(open_window(config, tuple(paths or ()), hidden=hidden, demo=demo))
