"""`mydata-like explain`: what a code means, and what to do."""

import shutil
from difflib import get_close_matches
from textwrap import wrap
from typing import Annotated

import typer

from mydata_like.app.explaining import explain_codes
from mydata_like.cli.report import print_lines


def explain(
    code: Annotated[
        str,
        typer.Argument(metavar="CODE", help="As in `staging.full`: the log and --json name it."),
    ],
) -> None:
    """Tell what a message's code means, and what to do."""
    known = explain_codes()
    if code not in known:
        near = get_close_matches(code, known)
        hint = f"Is it one of these: {', '.join(near)}?" if near else "The log names it."
        raise typer.BadParameter(f"there is no code {code}. {hint}")
    found = known[code]
    width = shutil.get_terminal_size().columns
    paragraphs = (", ".join(found.codes), f"{found.meaning[0].upper()}{found.meaning[1:]}.")
    print_lines(line for text in paragraphs for line in wrap(text, width, break_on_hyphens=False))
    for text in found.advice:
        print_lines(["", *wrap(text.removeprefix("- "), width, break_on_hyphens=False)])
