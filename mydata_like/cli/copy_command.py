"""`mydata-like copy`: copy folders and files elsewhere, and prove that they arrived."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, Final, cast, get_args

import typer

from mydata_like.app.copy_service import (
    CopyOrder,
    Links,
    SourceCount,
    count_sources,
    open_place,
    plan_copy,
    run_copy,
)
from mydata_like.app.logging_setup import open_log
from mydata_like.app.run_request import RunObserver
from mydata_like.cli.options import (
    AcceptMissingOption,
    BriefOption,
    ConfigOption,
    EventsOption,
    JsonOption,
    read_shard,
)
from mydata_like.cli.output import (
    Shape,
    choose_shape,
    describe_problem,
    log_event,
    name_destination,
    needs_details,
    print_failure,
    print_json,
    print_lines,
    reword,
    unstarted_run,
)
from mydata_like.cli.prompts import find_prompts
from mydata_like.cli.report import open_report
from mydata_like.cli.stdin_commands import follow_commands, stopped_by_signals
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import CopySource
from mydata_like.core.destination_files import DestinationFiles
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.events import Event, RunFinished, event_record
from mydata_like.core.formatting import format_duration, format_path, format_size
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.progress import RunProgress, Totals
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

HOW: Final = {  # the kinds of evidence
    "host": "compared on the host now ({0.program})",
    "read-back": "written to the disk, read back and compared now ({0.label})",
    "read-back-cached": "read back (possibly from memory) and compared now ({0.label})",
    "service": "compared with the service's ETags now (read back where they are no checksums)",
}

READ_BACK: Final = (
    "The host computes no checksums: each file is read back, so each byte travels twice."
)


def copy(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... DESTINATION",
            help="Folders or files, and where they go: [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]"
            "/PATH, a local folder or s3://BUCKET/PREFIX. FOLDER becomes DESTINATION/FOLDER; of "
            "FOLDER/, only the contents are copied.",
        ),
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent. Nothing is changed.")
    ] = False,
    bandwidth: Annotated[
        float,
        typer.Option(
            "--bandwidth", metavar="MB/S", min=0.0, help="Limit the speed; 0 is no limit."
        ),
    ] = 0.0,
    channels: Annotated[
        int,
        typer.Option(
            "--channels",
            metavar="N",
            min=0,
            max=32,
            help="Send over N channels; 0 is automatic.",
        ),
    ] = 0,
    includes: Annotated[
        list[str] | None,
        typer.Option(
            "--include",
            metavar="PATTERN",
            help="Copy only files that match, as in .gitignore. Can be repeated.",
        ),
    ] = None,
    excludes: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="PATTERN",
            help="Leave out files that match, as in .gitignore. Can be repeated.",
        ),
    ] = None,
    links: Annotated[
        str,
        typer.Option(
            "--links",
            metavar="keep|follow|skip",
            help="Copy symbolic links as links, copy what they point to, or skip them.",
        ),
    ] = "keep",
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-host-key",
            metavar="SHA256:...",
            help="Trust a host whose key has this fingerprint.",
        ),
    ] = None,
    accept_missing: AcceptMissingOption = False,
    replace_changed: Annotated[
        bool,
        typer.Option(
            "--replace-changed",
            help="Also replace the copies of files that shrank, or of many that changed.",
        ),
    ] = False,
    evidence: Annotated[
        str,
        typer.Option(
            "--evidence",
            metavar="host|read-back",
            help="Refuse a destination with a weaker proof than that the host computes checksums, "
            "or that files are read back from its disk.",
        ),
    ] = "",
    checksum: Annotated[
        Algorithm | None,
        typer.Option(
            "--checksum",
            help="The checksums of a new destination, which keeps them; without it, md5.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Also replace files that copies have not put there. They are kept for 30 days.",
        ),
    ] = False,
    shard: Annotated[
        str,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Copy part I of N of the files; N programs share the work.",
        ),
    ] = "",
    config: ConfigOption = None,
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Copy folders and files to a host, folder or bucket, and prove that every byte arrived.

    No server and no settings are needed. The same command continues after an interruption, and
    sends only what is missing or has changed. A file that this program has not put there is not
    replaced without --overwrite.
    """
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if links not in get_args(Links):
        raise typer.BadParameter("--links takes keep, follow or skip.")
    if evidence not in ("", "host", "read-back"):
        raise typer.BadParameter("--evidence takes host or read-back.")
    settings = None
    try:
        sources, target = plan_copy(arguments)
        order = CopyOrder(
            sources=sources,
            target=target,
            config=config,
            dry_run=dry_run,
            bandwidth=bandwidth,
            channels=channels,
            includes=tuple(includes or ()),
            excludes=tuple(excludes or ()),
            links=cast(Links, links),
            accept_missing=accept_missing,
            replace_changed=replace_changed,
            evidence=evidence,
            overwrite=overwrite,
            algorithm=checksum,
            shard=read_shard(shard),
            accepted_keys=tuple(accept or ()),
        )
        settings = name_destination(target, arguments[-1])
        code = _copy(order, shape, settings)
    except UploaderError as error:
        print_failure(error, shape, settings)
        code = error.exit_code
    except (Cancelled, KeyboardInterrupt):
        if shape is not Shape.TEXT:
            print_json(event_record(unstarted_run(INTERRUPTED)))
        code = INTERRUPTED_EXIT
    raise typer.Exit(code)


def _copy(order: CopyOrder, shape: Shape, settings: Settings) -> int:
    cancel, progress = CancelFlag(), RunProgress(SystemClock())
    with ExitStack() as stack:
        redaction = stack.enter_context(open_log(Settings(), order.config))
        place = open_place(order, find_prompts())
        if shape is Shape.TEXT:
            print_lines(_describe_order(order.sources, place.name, count_sources(order.sources)))
            print_lines(f"Note: {note}" for note in place.notes)
            if place.reads_back and not order.dry_run:
                print_lines([READ_BACK])
        stack.enter_context(stopped_by_signals(cancel))
        report = stack.enter_context(open_report(shape, progress, settings, dry_run=order.dry_run))

        def emit(event: Event) -> None:
            report.show(event)
            log_event(event)

        controller = CommandHandler(cancel, emit)
        observer = RunObserver(
            emit=emit,
            details=needs_details(shape),
            cancel=cancel,
            hide=redaction.add,
            progress=progress,
            controller=controller,
        )
        follow_commands(shape, controller.handle)
        end, problems, algorithm = run_copy(order, place, observer)
    if shape is Shape.JSON:
        print_json({**event_record(end.finished), "checksum": algorithm.value})
    elif shape is Shape.TEXT:
        print_lines(f"Failed: {describe_problem(it)}" for it in problems)
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
    yield f"{more}{_count(count.files)}, {format_size(count.size)}"


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
        yield (
            f"{_count(totals.wanted)}, {wanted} would be sent; {totals.known:,} are there "
            f"unchanged, {totals.waiting:,} wait, {totals.failed:,} cannot be copied."
        )
        return
    if finished.sent:
        size = finished.bytes - finished.omitted
        rate = size / finished.seconds if finished.seconds else 0.0
        yield (
            f"{_count(finished.sent)}, {format_size(size)} sent in "
            f"{format_duration(finished.seconds)} ({format_size(rate)}/s)"
        )
    for number, what in (
        (finished.waiting - finished.held, "not proven yet: run the same command again"),
        (finished.held, "held: to replace their copies, add --replace-changed"),
        (finished.skipped, "left out"),
        (finished.failed, "failed"),
    ):
        if number:
            yield f"{_count(number)} {what}"
    known = min(totals.known, finished.verified)
    same = (
        " and unchanged there" if files.attributes_complete else ", of the same size and time there"
    )
    parts = [f"{known:,} proven earlier{same}"] if known else []
    if now := finished.verified - known:
        parts.append(f"{now:,} {HOW[files.evidence].format(algorithm)}")
    yield f"{_count(finished.found)}: {', '.join(parts) or 'none proven'}"


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"
