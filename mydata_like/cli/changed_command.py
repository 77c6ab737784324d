"""`mydata-like changed`: decides about files that changed after the server had verified them."""

from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app.changed_service import undo_replacement
from mydata_like.app.run_request import RunObserver
from mydata_like.app.settings_service import load_settings
from mydata_like.cli.options import ConfigOption, SetOption
from mydata_like.cli.output import Shape, print_failure, print_lines
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.formatting import format_size
from mydata_like.engine.run import INTERRUPTED_EXIT

app = typer.Typer(
    name="changed",
    help="Decide about files that changed after the server had verified them.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Do nothing: with a callback, a single command still needs its name."""


@app.command()
def undo(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The local file.")],
    config: ConfigOption = None,
    assignments: SetOption = None,
) -> None:
    """Bring the earlier content of a replaced file back to the server.

    The local file is not touched. Its newer content is kept on the server as the earlier one was,
    and is not sent again until the local file changes.
    """
    observer = RunObserver()
    try:
        settings = load_settings(config, assignments or ()).settings
        with stopped_by_signals(observer.cancel):
            back = undo_replacement(settings, config, path, observer)
    except UploaderError as error:
        print_failure(error, Shape.TEXT)
        raise typer.Exit(error.exit_code) from None
    except Cancelled:
        raise typer.Exit(INTERRUPTED_EXIT) from None
    print_lines(
        [
            f"The server has the earlier content of {path} again ({format_size(back.size)}), and "
            "has verified it. The local file is unchanged."
        ]
    )
