"""`mydata-like support-bundle`: what somebody needs to help, in one file."""

from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app.support_bundle import collect_documents, write_bundle
from mydata_like.cli.options import ConfigOption
from mydata_like.cli.output import Shape, tell_failure
from mydata_like.cli.report import print_lines
from mydata_like.core.errors import UploaderError
from mydata_like.core.formatting import format_size


def support_bundle(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The zip file to be written.")],
    names: Annotated[
        bool, typer.Option("--names/--no-names", help="Let it name files and folders.")
    ] = True,
    config: ConfigOption = None,
) -> None:
    """Write what helps to find out what went wrong: logs, settings, versions, the last runs.

    API keys and passwords are not in it. It is a plain zip file: look into it before you send it.
    """
    try:
        documents = collect_documents(config, names=names)
        write_bundle(file, documents)
    except UploaderError as error:
        tell_failure(error, Shape.TEXT)
        raise typer.Exit(error.exit_code) from None
    print_lines(f"{document.name}: {format_size(len(document.text))}" for document in documents)
    print_lines([f"Written to {file}. Look into it before you send it to anybody."])
