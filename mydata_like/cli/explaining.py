"""`mydata-like explain`: what a code means, and what to do."""

import shutil
from difflib import get_close_matches
from textwrap import wrap
from typing import Annotated

import typer

from mydata_like.app.support_bundle import find_advice
from mydata_like.cli.report import print_lines
from mydata_like.core.problems import PROBLEMS


def explain(
    code: Annotated[
        str,
        typer.Argument(metavar="CODE", help="As in `staging.full`: the log and --json name it."),
    ],
) -> None:
    """Tell what a message's code means, and what to do."""
    if code not in PROBLEMS:
        near = get_close_matches(code, PROBLEMS)
        hint = f"Is it one of these: {', '.join(near)}?" if near else "The log names it."
        raise typer.BadParameter(f"there is no code {code}. {hint}")
    width = shutil.get_terminal_size().columns
    print_lines([code, *wrap(PROBLEMS[code].meaning, width, break_on_hyphens=False)])
    for text in find_advice(code):
        print_lines(["", *wrap(text.removeprefix("- "), width, break_on_hyphens=False)])
