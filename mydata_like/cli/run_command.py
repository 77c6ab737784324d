"""`mydata-like run` and `scan`: start a run, show it, stop it, and return its exit code."""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer
from typer import BadParameter

from mydata_like.app.ledger_status import look_at_state
from mydata_like.app.logging_setup import open_log
from mydata_like.app.monitoring import send_signals
from mydata_like.app.registration import load_trusting
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.run_service import lower_own_priority, open_run
from mydata_like.cli.options import (
    AcceptEmptyOption,
    AcceptMissingOption,
    AcceptOption,
    AsOption,
    BriefOption,
    ConfigOption,
    EventsOption,
    JsonOption,
    OnlyOption,
    SetOption,
    ShardOption,
    SourceOption,
    read_shard,
)
from mydata_like.cli.output import (
    DryRunOutput,
    Shape,
    choose_shape,
    describe_kept,
    describe_safety,
    log_event,
    needs_details,
    print_failure,
    print_json,
    print_lines,
    reword,
    summarise,
    unstarted_run,
)
from mydata_like.cli.report import open_report
from mydata_like.cli.stdin_commands import follow_commands, stopped_by_signals
from mydata_like.core.data_directory import WHOLE, Shard, spell_as_listed
from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.events import Event, RunFinished, event_record
from mydata_like.core.extra_sources import SourceRequest, parse_destination
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.layout_walk import ScanScope
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT
from mydata_like.engine.scheduler import FOLDER, SOURCE
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)


@frozen()
class RunArguments:
    """The options of a run on the command line."""

    config: Path | None
    assignments: tuple[str, ...]
    shape: Shape
    host_keys: tuple[str, ...] = ()
    dry_run: bool = False
    sources: tuple[SourceRequest, ...] = ()
    only: str = ""  # one folder below the data directory, as typed
    shard: Shard = WHOLE
    accept_empty: bool = False
    accept_missing: bool = False


def run_and_show(
    arguments: RunArguments, sources: Sequence[str] = (), becoming: Sequence[str] = ()
) -> int:
    """Run, show the progress, and return the exit code; upload only `sources` if there are any."""
    arguments = replace(arguments, sources=read_offers(sources, becoming))
    reload = partial(load_trusting, arguments.config, arguments.assignments, arguments.host_keys)
    settings = None
    try:
        settings = reload().settings
        return _run(arguments, settings, reload)
    except UploaderError as error:
        print_failure(error, arguments.shape, settings)
        return error.exit_code
    except (Cancelled, KeyboardInterrupt):
        if arguments.shape is not Shape.TEXT:
            print_json(event_record(unstarted_run(INTERRUPTED)))
        return INTERRUPTED_EXIT


def read_offers(sources: Sequence[str], becoming: Sequence[str]) -> tuple[SourceRequest, ...]:
    """Return the sources of a command line with their destinations, if given."""
    if becoming and len(becoming) != len(sources):
        raise BadParameter("--as goes with every --source, or with none.")
    destinations = map(parse_destination, becoming)
    return tuple(SourceRequest(os.fsencode(path), next(destinations, None)) for path in sources)


def _run(arguments: RunArguments, settings: Settings, reload: Callable[[], Loaded]) -> int:
    lower_own_priority(settings)
    part = ScanScope(_find_folder(settings, arguments.only), arguments.shard)
    request = RunRequest(
        settings=settings,
        config=arguments.config,
        dry_run=arguments.dry_run,
        reason=SOURCE if arguments.sources else FOLDER if arguments.only else "person",
        reload=reload,
        sources=arguments.sources,
        part=part,
        accept_empty=arguments.accept_empty,
        accept_missing=arguments.accept_missing,
    )
    cancel, preview = CancelFlag(), DryRunOutput()
    with ExitStack() as stack:
        redaction = stack.enter_context(open_log(settings, arguments.config, arguments.shard))
        stack.enter_context(stopped_by_signals(cancel))
        progress = RunProgress(SystemClock())
        report = stack.enter_context(
            open_report(arguments.shape, progress, settings, dry_run=arguments.dry_run)
        )

        def emit(event: Event) -> None:
            report.show(event)
            if arguments.dry_run:
                preview.show(event)
            log_event(event)

        controller = CommandHandler(cancel, emit)
        observer = RunObserver(
            emit=emit,
            details=needs_details(arguments.shape),
            cancel=cancel,
            hide=redaction.add,
            progress=progress,
            controller=controller,
        )
        follow_commands(arguments.shape, controller.handle)
        with open_run(request, observer) as run:
            end = run.execute()
        # A part of the data does not show that everything works.
        if not arguments.dry_run and not arguments.only and arguments.shard == WHOLE:
            # As warnings, since the summary remains the last line of output.
            for problem in send_signals(settings, end.finished):
                logger.warning("%s", problem)
    tree = settings.destination.takes_tree
    if arguments.shape is Shape.JSON:
        print_json(event_record(end.finished))
    elif arguments.shape is Shape.TEXT and arguments.dry_run and not end.finished.problem:
        print_lines(reword(preview.lines(progress.totals, takes_tree=tree), settings))
    elif arguments.shape is Shape.TEXT:
        print_lines(reword(_summarise(arguments, settings, end.finished), settings))
    return end.exit_code


def _find_folder(settings: Settings, text: str) -> str:
    """Return a folder's path below the data directory, as events print it."""
    if not text:
        return ""
    root = settings.data.directory or Path()
    path = Path(os.path.normpath(root / text))
    if path == root or not path.is_relative_to(root):
        raise BadParameter("--only takes a folder below the data directory.")
    below = spell_as_listed(root, path.relative_to(root))
    return format_path(os.fsencode(below.as_posix()))


def _summarise(arguments: RunArguments, settings: Settings, finished: RunFinished) -> list[str]:
    """Return the summary of a run, and whether other files are not safe."""
    if finished.problem or finished.shard or arguments.dry_run:
        return summarise(finished)
    try:
        found = look_at_state(settings, arguments.config)
    except UploaderError as error:
        return [*summarise(finished, partial=True), error.message]
    partial = bool(arguments.sources or arguments.only)
    unsafe = found.safety is not Safety.SAFE
    lines = summarise(finished, partial=partial or unsafe, doubtful=found.recheck > 0)
    describe = describe_kept if found.safety is Safety.SAFE else describe_safety
    return [*lines, *describe(found)]


def run(
    *,
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    sources: SourceOption = None,
    becoming: AsOption = None,
    only: OnlyOption = "",
    shard: ShardOption = "",
    accept_empty: AcceptEmptyOption = False,
    accept_missing: AcceptMissingOption = False,
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Scan the data directory, upload what the server does not have, and wait for verification."""
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if sum(map(bool, (only, sources, shard))) > 1:
        raise typer.BadParameter("--only, --source and --shard exclude each other.")
    arguments = RunArguments(
        config,
        tuple(assignments or ()),
        shape,
        tuple(accept or ()),
        only=only,
        shard=read_shard(shard),
        accept_empty=accept_empty,
        accept_missing=accept_missing,
    )
    raise typer.Exit(run_and_show(arguments, sources or (), becoming or ()))


def scan(
    *,
    config: ConfigOption = None,
    assignments: SetOption = None,
    sources: SourceOption = None,
    becoming: AsOption = None,
    shard: ShardOption = "",
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would upload. Nothing is sent or created."""
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if sources and shard:
        raise typer.BadParameter("--source and --shard exclude each other.")
    arguments = RunArguments(
        config, tuple(assignments or ()), shape, dry_run=True, shard=read_shard(shard)
    )
    raise typer.Exit(run_and_show(arguments, sources or (), becoming or ()))
