"""Carries out a run for a command: who watches it, how it is stopped, how it ends."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from mydata_like import bootstrap
from mydata_like.cli.commands import follow_standard_input
from mydata_like.cli.report import (
    EventLines,
    PlainLines,
    Preview,
    Report,
    describe_safety,
    log_line,
    print_json,
    print_line,
    print_lines,
    summarise,
)
from mydata_like.cli.terminal import drawing_stream
from mydata_like.core.errors import Cancelled, Problem, UploaderError
from mydata_like.core.events import (
    ChannelChanged,
    CommandDone,
    CommandRefused,
    Event,
    FileFailed,
    FileRetried,
    FolderFailed,
    LimitsChanged,
    Notice,
    RunFinished,
    RunPaused,
    RunResumed,
    RunScheduled,
    RunStarted,
    TransferRetried,
    event_record,
)
from mydata_like.core.format import format_path
from mydata_like.core.safety import Safety
from mydata_like.core.shards import WHOLE, Shard
from mydata_like.core.sources import Offer, parse_destination
from mydata_like.core.values import dataclass
from mydata_like.engine.controller import Controller
from mydata_like.engine.levels import Part
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT
from mydata_like.engine.watching import FOLDER, SOURCE
from mydata_like.engine.workers import CancelFlag
from mydata_like.settings.policy import Loaded
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

LEVELS: dict[type[Event], int] = {  # of the events in the log; all others are for DEBUG
    FileFailed: logging.WARNING,
    FolderFailed: logging.WARNING,
    RunPaused: logging.WARNING,
    Notice: logging.WARNING,
    TransferRetried: logging.WARNING,
    RunStarted: logging.INFO,
    RunFinished: logging.INFO,
    RunScheduled: logging.INFO,
    RunResumed: logging.INFO,
    ChannelChanged: logging.INFO,
    LimitsChanged: logging.INFO,
    FileRetried: logging.INFO,
    CommandDone: logging.INFO,
    CommandRefused: logging.INFO,
}


class Shape(Enum):
    """How a run is shown: to a person, as one final JSON object, as a line an event.

    Brief events leave out those about single files.
    """

    TEXT = "text"
    JSON = "json"
    EVENTS = "events"
    BRIEF = "brief"


def wrong_words(message: str) -> Exception:
    """Return the error of a command line that says what cannot be."""
    from typer import BadParameter  # here: whose words are right does not wait for it

    return BadParameter(message)


def choose_shape(*, events: bool, brief: bool, as_json: bool = False) -> Shape:
    """Return how a run is shown."""
    if events and as_json:
        raise wrong_words("--events and --json exclude each other.")
    if brief and not events:
        raise wrong_words("--brief goes with --events.")
    if events:
        return Shape.BRIEF if brief else Shape.EVENTS
    return Shape.JSON if as_json else Shape.TEXT


@dataclass(frozen=True, slots=True)
class Task:
    """A run as it was asked for on the command line."""

    config: Path | None
    assignments: tuple[str, ...]
    shape: Shape
    host_keys: tuple[str, ...] = ()
    dry_run: bool = False
    sources: tuple[Offer, ...] = ()
    only: str = ""  # one folder below the data directory, as a person writes it
    shard: Shard = WHOLE
    accept_empty: bool = False


def carry_out(task: Task, sources: Sequence[str] = (), becoming: Sequence[str] = ()) -> int:
    """Run, show it, and return the exit code; of `sources` only, where there are any."""
    try:
        return _carry_out(replace(task, sources=read_offers(sources, becoming)))
    except UploaderError as error:
        tell_failure(error, task.shape)
        return error.exit_code
    except (Cancelled, KeyboardInterrupt):
        if task.shape is not Shape.TEXT:
            print_json(event_record(_end_of_nothing(INTERRUPTED)))
        return INTERRUPTED_EXIT


def carry_out_alone(task: Task) -> NoReturn:
    """Run, show it, and end the process, quietly where nobody reads on."""
    try:
        code = carry_out(task)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the last flush
        code = 1
    sys.exit(code)


def read_shard(text: str) -> Shard:
    """Return the shard that a command line asks for: the whole where it names none."""
    try:
        return Shard.parse(text) if text else WHOLE
    except ValueError:
        raise wrong_words("--shard takes I/N with I from 1 to N: 1/4 is the first of 4.") from None


def read_offers(sources: Sequence[str], becoming: Sequence[str]) -> tuple[Offer, ...]:
    """Return the sources of a command line with what each is to become, if that is said."""
    if becoming and len(becoming) != len(sources):
        raise wrong_words("--as goes with every --source, or with none.")
    destinations = map(parse_destination, becoming)
    return tuple(Offer(os.fsencode(path), next(destinations, None)) for path in sources)


def _carry_out(task: Task) -> int:
    reload = partial(bootstrap.load_trusting, task.config, task.assignments, task.host_keys)
    settings = reload().settings
    bootstrap.go_second(settings)
    cancel, tally = CancelFlag(), RunProgress(bootstrap.SystemClock())
    order = _build_order(task, settings, reload)
    with ExitStack() as stack:
        redaction = stack.enter_context(bootstrap.open_log(settings, task.config, task.shard))
        stack.enter_context(stopped_by_signals(cancel))
        report = stack.enter_context(_open_report(task, tally))
        preview = Preview()

        def emit(event: Event) -> None:
            tally.add(event)
            report.show(event)
            if task.dry_run:
                preview.show(event)
            log_event(event)

        controller = Controller(cancel, emit)
        audience = bootstrap.Audience(emit, tally, cancel, redaction.add, controller)
        follow_commands(task.shape, controller)
        with bootstrap.open_job(settings, order, audience) as job:
            end = job(dry_run=task.dry_run)
        _send_signals(task, settings, end.finished)
    _tell_end(task, settings, end.finished, preview.lines(tally.totals))
    return end.exit_code


def _build_order(task: Task, settings: Settings, reload: Callable[[], Loaded]) -> bootstrap.Order:
    reason = "person"
    if task.sources or task.only:
        reason = SOURCE if task.sources else FOLDER
    return bootstrap.Order(
        config=task.config,
        dry_run=task.dry_run,
        reason=reason,
        reload=reload,
        sources=task.sources,
        part=Part(_find_folder(settings, task.only), task.shard),
        accept_empty=task.accept_empty,
    )


def _find_folder(settings: Settings, text: str) -> str:
    """Return a folder's path below the data directory, as events print it."""
    if not text:
        return ""
    root = settings.data.directory or Path()
    path = Path(os.path.normpath(root / text))
    if path == root or not path.is_relative_to(root):
        raise wrong_words("--only takes a folder below the data directory.")
    return format_path(os.fsencode(path.relative_to(root).as_posix()))


def _send_signals(task: Task, settings: Settings, finished: RunFinished) -> None:
    """Tell the dead man's switch; the run's sums stay the last that is said."""
    part = task.only or task.shard != WHOLE  # which is no sign that all is well
    if not task.dry_run and not part:
        for problem in bootstrap.send_signals(settings, finished):
            logger.warning("%s", problem)


def follow_commands(
    shape: Shape, controller: Controller, ended: Callable[[], None] | None = None
) -> None:
    """Obey a program that reads the events; a person has the keyboard's signals.

    `ended` is called when the program has gone.
    """
    if shape in (Shape.EVENTS, Shape.BRIEF):
        follow_standard_input(controller.obey, ended)


@contextmanager
def stopped_by_signals(cancel: CancelFlag) -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a request to stop; the second one is obeyed at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        if cancel.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        cancel.set(signal.Signals(number).name)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tell_failure(error: UploaderError, shape: Shape) -> None:
    """Say why a command could not do its work."""
    if shape is Shape.TEXT:
        more = f"More: mydata-like explain {error.problem_code}"
        for line in filter(None, (error.message, error.hint, more)):
            print_line(line, err=True)
        return
    print_json(event_record(_end_of_nothing(error.problem)))


def _end_of_nothing(problem: Problem) -> RunFinished:
    return RunFinished.of_nothing(bootstrap.SystemClock().now(), problem)


@contextmanager
def _open_report(task: Task, tally: RunProgress) -> Iterator[Report]:
    shape = task.shape
    if shape in (Shape.EVENTS, Shape.BRIEF):
        yield EventLines(sys.stdout, brief=shape is Shape.BRIEF, dry_run=task.dry_run)
    elif shape is Shape.JSON:
        yield PlainLines(sys.stderr.write)
    elif sys.stdout.isatty():
        from mydata_like.cli.bars import live_bars  # here: a run that nobody watches needs none

        with live_bars(tally, drawing_stream(sys.stdout)) as report:
            yield report
    else:
        yield PlainLines(sys.stdout.write)


def _tell_end(task: Task, settings: Settings, finished: RunFinished, preview: list[str]) -> None:
    if task.shape is Shape.JSON:
        print_json(event_record(finished))
    elif task.shape is Shape.TEXT:
        looked = task.dry_run and not finished.problem
        print_lines(preview if looked else _summarise(task, settings, finished))


def _summarise(task: Task, settings: Settings, finished: RunFinished) -> list[str]:
    """Return the end of a run; where other files are not safe, that is told, too."""
    if finished.problem or finished.shard or task.dry_run:
        return summarise(finished)
    try:
        found = bootstrap.look_at_state(settings, task.config)
    except UploaderError as error:
        return [*summarise(finished, partial=True), error.message]
    partial = bool(task.sources or task.only)
    lines = summarise(finished, partial=partial or found.safety is not Safety.SAFE)
    return lines if found.safety is Safety.SAFE else [*lines, *describe_safety(found)]


def log_event(event: Event) -> None:
    """Keep for the maintainer what a person may ask about later."""
    level = LEVELS.get(type(event), logging.DEBUG)
    if logger.isEnabledFor(level):
        logger.log(level, "%s", log_line(event))
