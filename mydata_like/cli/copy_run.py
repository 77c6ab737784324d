"""The run of `mydata-like copy`, and what it prints."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Final

from mydata_like.app.copy_order import CopyOrder
from mydata_like.app.copy_service import SourceCount, count_sources, open_place, run_copy
from mydata_like.app.host_login import FoundHost
from mydata_like.app.run_request import RunObserver
from mydata_like.cli.output import (
    Shape,
    describe_problem,
    log_event,
    needs_details,
    print_json,
    print_lines,
    reword,
    reword_event,
)
from mydata_like.cli.report import open_report
from mydata_like.cli.stdin_commands import follow_commands, stopped_by_signals
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import CopySource
from mydata_like.core.destination_files import DestinationFiles
from mydata_like.core.events import Event, RunFinished, event_record
from mydata_like.core.formatting import format_duration, format_files, format_path, format_size
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.progress import RunProgress, Totals
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

HOW: Final = {  # the kinds of evidence
    "host": "compared on the host now ({0.program})",
    "read-back": "written to the disk, read back and compared now ({0.label})",
    "read-back-cached": "read back (possibly from memory) and compared now ({0.label})",
    "service": "compared with the service's ETags now (read back where they are no checksums)",
}

READ_BACK: Final = (
    "The host computes no checksums: each file is read back, so each byte travels twice."
)


def run_order(
    order: CopyOrder,
    host: FoundHost | None,
    shape: Shape,
    settings: Settings,
    hide: Callable[[str], None],
) -> int:
    """Copy to a destination, which is this `host` if it is one; return the exit code."""
    cancel, progress = CancelFlag(), RunProgress(SystemClock())
    with ExitStack() as stack:
        place = open_place(order, host)
        if shape is Shape.TEXT:
            print_lines(_describe_order(order.sources, place.name, count_sources(order.sources)))
            print_lines(f"Note: {note}" for note in place.notes)
            if place.reads_back and not order.dry_run:
                print_lines([READ_BACK])
        stack.enter_context(stopped_by_signals(cancel))
        report = stack.enter_context(open_report(shape, progress, settings, dry_run=order.dry_run))

        def emit(event: Event) -> None:
            event = reword_event(event, settings)
            report.show(event)
            log_event(event)

        controller = CommandHandler(cancel, emit)
        observer = RunObserver(
            emit=emit,
            details=needs_details(shape),
            cancel=cancel,
            hide=hide,
            progress=progress,
            controller=controller,
        )
        follow_commands(shape, controller.handle)
        end, problems, algorithm = run_copy(order, place, observer)
    if shape is Shape.JSON:
        finished = reword_event(end.finished, settings)
        print_json({**event_record(finished), "checksum": algorithm.value})
    elif shape is Shape.TEXT:
        print_lines(reword((f"Failed: {describe_problem(it)}" for it in problems), settings))
        files = place.open_files()
        ended = _summarise(end.finished, progress.totals, files, algorithm, order)
        print_lines(reword(ended, settings))
    return end.exit_code


def _describe_order(
    sources: tuple[CopySource, ...], place: str, count: SourceCount
) -> Iterator[str]:
    """Yield what goes where, and how much there is."""
    for source in sources:
        shown, below = format_path(source.path), format_path(source.place)
        what = shown if source.place else f"{shown.rstrip('/')}/*"
        yield f"{what} -> {place.rstrip('/')}/{below}"
    more = "" if count.complete else "more than "
    yield f"{more}{format_files(count.files)}, {format_size(count.size)}"


def _summarise(
    finished: RunFinished,
    totals: Totals,
    files: DestinationFiles,
    algorithm: Algorithm,
    order: CopyOrder,
) -> Iterator[str]:
    """Yield the result of a copy as sentences; the last one says what is proven, and how."""
    if finished.problem:
        yield describe_problem(finished.problem)
    if order.dry_run:
        wanted = format_size(totals.wanted_bytes)
        renamed = f"{totals.renamed:,} would be renamed there, " if totals.renamed else ""
        yield (
            f"{format_files(totals.wanted)}, {wanted} would be sent; {renamed}{totals.known:,} "
            f"there unchanged, {totals.waiting:,} waiting, {totals.failed:,} not to be copied."
        )
        return
    if finished.sent:
        size = finished.bytes - finished.omitted
        rate = size / finished.seconds if finished.seconds else 0.0
        yield (
            f"{format_files(finished.sent)}, {format_size(size)} sent in "
            f"{format_duration(finished.seconds)} ({format_size(rate)}/s)"
        )
    for number, what in (
        (finished.renamed, "renamed there as here: nothing was sent"),
        (finished.waiting - finished.held, "not proven yet: run the same command again"),
        (finished.held, "held: to replace their copies, add --replace-changed"),
        (finished.skipped, "left out"),
        (finished.failed, "failed"),
    ):
        if number:
            yield f"{format_files(number)} {what}"
    known = min(totals.known, finished.verified)
    same = (
        " and unchanged there" if files.attributes_complete else ", of the same size and time there"
    )
    parts = [f"{known:,} proven earlier{same}"] if known else []
    if now := finished.verified - known:
        parts.append(f"{now:,} {HOW[files.evidence].format(algorithm)}")
    yield f"{format_files(finished.found)}: {', '.join(parts) or 'none proven'}"
