"""`mydata-like receipt`: which files of a folder are verified, to keep and to check later."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app.receipt_service import (
    Receipt,
    ReceiptCheck,
    check_receipt,
    make_receipt,
    write_receipt,
)
from mydata_like.app.settings_service import load_settings
from mydata_like.app.verify_service import VerifyProgress
from mydata_like.cli.options import ConfigOption, SetOption
from mydata_like.cli.output import NAMED_PROBLEMS, print_lines
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.cli.verify_command import ProgressLine
from mydata_like.core.formatting import format_files, format_path
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.run import SOME_FAILED_EXIT


def receipt(
    path: Annotated[
        Path | None, typer.Argument(metavar="PATH", help="A local folder or file.")
    ] = None,
    *,
    text: Annotated[
        Path | None,
        typer.Option("--text", metavar="FILE", help="Write it as text, which md5sum -c reads."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write it as a web page.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check", metavar="FILE", help="Hash files again, and compare them with this receipt."
        ),
    ] = None,
    below: Annotated[
        Path,
        typer.Option(
            "--below", metavar="FOLDER", help="With --check: where the files are, if not here."
        ),
    ] = Path(),
    config: ConfigOption = None,
    assignments: SetOption = None,
) -> None:
    """Show which files of a folder are verified, and where. Those that are not come first.

    This is what the ledgers of this computer know; nobody is asked. With --check, nothing but the
    receipt and the files is needed. The exit code is 0 only if all files are verified, or as the
    receipt lists them.
    """
    if (path is None) is (check is None):
        raise typer.BadParameter("Write PATH, or --check FILE.")
    if check is not None:
        checked = _check(check, below)
        print_lines(_describe_check(checked))
        raise typer.Exit(0 if checked.good else SOME_FAILED_EXIT)
    assert path is not None
    made = make_receipt(load_settings(config, assignments or ()).settings, config, [path])
    for file, page in ((text, False), (html, True)):
        if file is not None:
            write_receipt(made, file, page=page)
    print_lines(_describe(made))
    raise typer.Exit(SOME_FAILED_EXIT if made.unverified else 0)


def _check(file: Path, folder: Path) -> ReceiptCheck:
    cancel = CancelFlag()
    with ExitStack() as stack:
        stack.enter_context(stopped_by_signals(cancel))
        line = ProgressLine(sys.stderr, cancel)
        stack.callback(line.clear)

        def show(done: int, total: int) -> None:
            line.show(VerifyProgress("receipt", done, total))

        return check_receipt(file, folder, cancel, show)


def _describe(made: Receipt) -> Iterator[str]:
    for it in made.unverified[:NAMED_PROBLEMS]:
        yield f"NOT verified: {format_path(it.path)}: {it.reason}"
    if len(made.unverified) > NAMED_PROBLEMS:
        yield f"NOT verified: {len(made.unverified) - NAMED_PROBLEMS:,} more"
    yield from map(made.describe_part, made.there)
    yield f"SHA-256 of the receipt: {made.checksum}"
    yield made.heading


def _describe_check(checked: ReceiptCheck) -> Iterator[str]:
    numbers = [f"{checked.equal:,} equal"]
    for fault, paths in checked.faults.items():
        numbers.append(f"{len(paths):,} {fault.value}")
        for path in paths[:NAMED_PROBLEMS]:
            yield f"{fault.value.capitalize()}: {format_path(path)}"
        if len(paths) > NAMED_PROBLEMS:
            yield f"{fault.value.capitalize()}: {len(paths) - NAMED_PROBLEMS:,} more"
    total = checked.equal + sum(map(len, checked.faults.values()))
    yield f"{format_files(total)}: {', '.join(numbers)}"
    if checked.intact:
        yield f"The receipt is as it was made, with the SHA-256 {checked.checksum}"
    else:
        yield f"The receipt was changed after it was made: its SHA-256 is now {checked.checksum}"
