"""`mydata-like support-bundle` and `explain`: information for support."""

import shutil
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from mydata_like.app.support_bundle import collect_documents, find_advice, write_bundle
from mydata_like.cli.options import ConfigOption
from mydata_like.cli.output import print_lines
from mydata_like.core.formatting import format_size
from mydata_like.core.problems import PROBLEMS


def support_bundle(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The zip file to write.")],
    names: Annotated[
        bool, typer.Option("--names/--no-names", help="Include names of files and folders.")
    ] = True,
    config: ConfigOption = None,
) -> None:
    """Write a zip file for support: logs, settings, versions and the last runs.

    It contains no API keys or passwords. Look through it before you send it.
    """
    documents = collect_documents(config, names=names)
    write_bundle(file, documents)
    print_lines(f"{document.name}: {format_size(len(document.text))}" for document in documents)
    print_lines([f"Written to {file}. Look into it before you send it to anybody."])


def explain(
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE", help="A code such as `staging.full`, from the log or --json."
        ),
    ],
) -> None:
    """Explain a problem code and what to do about it."""
    if code not in PROBLEMS:
        near = get_close_matches(code, PROBLEMS)
        hint = f"Is it one of these: {', '.join(near)}?" if near else "The log names it."
        raise typer.BadParameter(f"there is no code {code}. {hint}")
    width = shutil.get_terminal_size().columns
    print_lines([code, *wrap(PROBLEMS[code].meaning, width, break_on_hyphens=False)])
    for text in find_advice(code):
        print_lines(["", *wrap(text.removeprefix("- "), width, break_on_hyphens=False)])
