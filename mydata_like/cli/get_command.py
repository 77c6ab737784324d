"""`mydata-like get`: bring files back from a destination of `copy`, and prove what arrived."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated, Any, Final

import typer

from mydata_like.app.get_service import (
    GetOrder,
    GetReport,
    RecordTarget,
    get_files,
    plan_get,
)
from mydata_like.app.logging_setup import open_log
from mydata_like.cli.options import (
    AcceptHostOption,
    BandwidthOption,
    BriefOption,
    ChannelsOption,
    ConfigOption,
    EventsOption,
    ExcludeOption,
    IncludeOption,
    JsonOption,
)
from mydata_like.cli.output import (
    NAMED_PROBLEMS,
    EventLines,
    choose_shape,
    describe_problem,
    log_event,
    name_destination,
    needs_details,
    print_failure,
    print_json,
    print_lines,
    reword,
    reword_event,
    unstarted_run,
)
from mydata_like.cli.prompts import find_prompts
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.cli.verify_command import ProgressLine
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.events import Event, event_record
from mydata_like.core.formatting import format_duration, format_path, format_size
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT
from mydata_like.settings.schema import Settings

CONTINUES: Final = "The same command continues."


def get(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A destination of copy, or a folder or file in it: [USER@]HOST:PATH, "
            "ssh://[USER@]HOST[:PORT]/PATH, a local folder or s3://BUCKET/PREFIX. Or a local "
            "folder or file that was sent from here. Or dataset:NUMBER or experiment:NUMBER of "
            "the server of the settings.",
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A local folder. FOLDER becomes TARGET/FOLDER; of FOLDER/, only the contents are "
            "fetched.",
        ),
    ] = "",
    *,
    missing: Annotated[
        bool,
        typer.Option(
            "--missing",
            help="WHAT is a local folder or file: bring back what was sent from there.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be fetched. Nothing is changed.")
    ] = False,
    bandwidth: BandwidthOption = 0.0,
    channels: ChannelsOption = 0,
    includes: IncludeOption = None,
    excludes: ExcludeOption = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace local files that have other bytes.")
    ] = False,
    sparse: Annotated[
        bool,
        typer.Option(
            "--sparse",
            help="Make holes of zeros in all files, not only in those that have holes there.",
        ),
    ] = False,
    accept: AcceptHostOption = None,
    config: ConfigOption = None,
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch what is at a destination or on a server, and compare every byte with what was proven.

    A file gets its name only if its checksum is the one that is listed. Nothing that exists is
    replaced without --replace. The same command continues after an interruption. The exit code is
    0 only if all files are here and as they are listed.
    """
    if missing is bool(target):
        raise typer.BadParameter("Write WHAT and TARGET, or --missing and WHAT.")
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    # There is no ledger of failures, so brief events name the first ones.
    lines = EventLines(sys.stdout, brief=brief, dry_run=True) if events else None
    settings = Settings()

    def emit(event: Event) -> None:
        if lines:
            lines.show(reword_event(event, settings))
        log_event(event)

    try:
        source, contents, folder = plan_get(what, target)
        if not isinstance(source, RecordTarget):
            settings = name_destination(source, what)
        order = GetOrder(
            what=source,
            contents=contents,
            target=folder,
            missing=missing,
            config=config,
            dry_run=dry_run,
            bandwidth=bandwidth,
            channels=channels,
            includes=tuple(includes or ()),
            excludes=tuple(excludes or ()),
            replace=replace,
            sparse=sparse,
            accepted_keys=tuple(accept or ()),
        )
        cancel = CancelFlag()
        with ExitStack() as stack:
            stack.enter_context(open_log(Settings(), config))
            stack.enter_context(stopped_by_signals(cancel))
            line = ProgressLine(sys.stderr, cancel)
            stack.callback(line.clear)
            show = (lambda _: None) if lines else line.show
            listener = emit if events or needs_details(shape) else None
            report = get_files(order, find_prompts(), cancel, show, listener)
    except UploaderError as error:
        if as_json:
            print_json({"problem": error.problem._asdict()})
        else:
            print_failure(error, shape, settings)
        raise typer.Exit(error.exit_code) from None
    except (Cancelled, KeyboardInterrupt):
        if as_json:
            print_json({"problem": INTERRUPTED._asdict()})
        elif events:
            print_json(event_record(unstarted_run(INTERRUPTED)))
        raise typer.Exit(INTERRUPTED_EXIT) from None
    if as_json:
        print_json(_record(report, dry_run=dry_run))
    elif not events:
        about = Settings() if report.records else settings
        print_lines(reword(_describe(report, dry_run=dry_run), about))
    raise typer.Exit(report.exit_code)


def _describe(report: GetReport, *, dry_run: bool) -> Iterator[str]:
    """Yield the result as lines; the last one says how many files are here."""
    for it in report.problems[:NAMED_PROBLEMS]:
        yield f"Failed: {describe_problem(it.problem)}"
    if len(report.problems) > NAMED_PROBLEMS:
        yield f"Failed: {len(report.problems) - NAMED_PROBLEMS:,} more."
    for path in report.named[:NAMED_PROBLEMS]:
        yield f"Not listed, so not fetched: {format_path(path)}"
    if report.unlisted and report.unlisted > NAMED_PROBLEMS:
        yield f"Not listed, so not fetched: {report.unlisted - NAMED_PROBLEMS:,} more."
    for damage in report.damaged:
        yield f"Damaged: {damage.message}"
    if report.damaged:
        yield "What a damaged part of the manifest lists was not fetched."
    if report.received and not dry_run:
        rate = report.received_size / report.seconds if report.seconds else 0.0
        yield (
            f"{_count(report.received)}, {format_size(report.received_size)} fetched in "
            f"{format_duration(report.seconds)} ({format_size(rate)}/s)"
        )
    if report.note:
        yield f"Note: Files came through the server's API. {report.note.message}"
    if report.ended == INTERRUPTED:
        yield "Interrupted."
    elif report.ended:
        yield describe_problem(report.ended)
    parts = [f"{report.here:,} already here"] if report.here else []
    if report.received:
        proof = "what the server has verified" if report.records else "the manifest"
        how = f"fetched and compared with {proof} ({report.algorithm.label})"
        parts.append(f"{report.received:,} {'would be fetched' if dry_run else how}")
    if report.failed:
        parts.append(f"{report.failed:,} failed")
    left = report.found - report.here - report.received - report.failed
    if left:
        parts.append(f"{left:,} not fetched yet. {CONTINUES}")
    what = f"{_count(report.found)}, {format_size(report.size)}"
    yield f"{what}: {', '.join(parts) or 'no file there is selected'}"


def _record(report: GetReport, *, dry_run: bool) -> dict[str, Any]:
    """Return the result as plain values for JSON."""
    return {
        "destination": report.place,
        "checksum": report.algorithm.value,
        "dry_run": dry_run,
        "complete": report.ended is None,
        "found": report.found,
        "bytes": report.size,
        "here": report.here,
        "fetched": report.received,
        "fetched_bytes": report.received_size,
        "failed": report.failed,
        "seconds": round(report.seconds, 3),
        "problems": [
            {"path": format_path(it.path), **it.problem._asdict()} for it in report.problems
        ],
        "unlisted": report.unlisted,
        "unlisted_files": [format_path(path) for path in report.named],
        "damaged": [it._asdict() for it in report.damaged],
        "problem": report.ended and report.ended._asdict(),
        "note": report.note and report.note._asdict(),
    }


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files:,} files"
