"""`mydata-like watch`: starts scheduled runs without a window until stopped."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime
from subprocess import list2cmdline
from typing import Annotated, Self

import typer

from mydata_like.app.daemon import run_watch
from mydata_like.app.logging_setup import open_log
from mydata_like.app.run_request import RunObserver
from mydata_like.app.run_service import lower_own_priority
from mydata_like.app.service_setup import Service, ServiceRequest, WatchRequest
from mydata_like.app.settings_service import load_settings, use_home
from mydata_like.cli.options import AcceptOption, BriefOption, ConfigOption, EventsOption, SetOption
from mydata_like.cli.output import (
    EventLines,
    PlainLines,
    RunOutput,
    Shape,
    choose_shape,
    log_event,
    needs_details,
    print_lines,
    reword,
    summarise,
)
from mydata_like.cli.stdin_commands import follow_commands, stopped_by_signals
from mydata_like.core.deletion import PARTIAL_REASONS
from mydata_like.core.errors import AlreadyRunningError, Cancelled, Problem, UploaderError
from mydata_like.core.events import Event, Notice, RunFinished, RunScheduled, RunStarted
from mydata_like.core.formatting import format_path
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.scheduler import RunRequests
from mydata_like.hostos.event_log import report_error
from mydata_like.settings.schema import Settings

InstallOption = Annotated[bool, typer.Option("--install", help="Install and start the service.")]
UninstallOption = Annotated[bool, typer.Option("--uninstall", help="Stop and remove the service.")]
PrintOption = Annotated[
    bool, typer.Option("--print", help="Print the service's definition; change nothing.")
]
SystemOption = Annotated[
    bool,
    typer.Option("--system", help="With these: a service of the computer instead of the user."),
]
UserOption = Annotated[
    str,
    typer.Option(
        "--user",
        metavar="NAME",
        help="With --system: the account it runs as; yours by default.",
    ),
]
RootOption = Annotated[
    bool, typer.Option("--as-root", help="With --system: run as root, on Windows as SYSTEM.")
]
HomeOption = Annotated[
    str,
    typer.Option(
        "--home",
        metavar="FOLDER",
        help="Like the environment variable MYDATA_LIKE_HOME, for services without variables.",
    ),
]

AttendedOption = Annotated[
    bool,
    typer.Option(
        "--attended", help="With --events: stop when standard input closes, after the current run."
    ),
]

REASONS = {
    "settled": "new files have settled",
    "source": "folders were added",
    "folder": "one folder only is wanted",
    "retry": "the one before could not do its work",
    "startup": "the watch has started",
    "saved": "the settings were changed",
}
_SCHEDULES = {
    "manual": "by hand only",
    "startup": "with the program",
    "saved": "when settings are saved",
    "once": "once, at a time that has passed",
}


def watch(
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    *,
    events: EventsOption = False,
    brief: BriefOption = False,
    attended: AttendedOption = False,
    install: InstallOption = False,
    uninstall: UninstallOption = False,
    show: PrintOption = False,
    everyone: SystemOption = False,
    user: UserOption = "",
    as_root: RootOption = False,
    home: HomeOption = "",
) -> None:
    """Start runs on schedule until stopped, or install the service that does so."""
    if home:
        use_home(home)
    shape = choose_shape(events=events, brief=brief)
    order = WatchRequest(
        config=config,
        assignments=tuple(assignments or ()),
        host_keys=tuple(accept or ()),
        attended=attended,
    )
    acts = {install_service: install, uninstall_service: uninstall, print_service: show}
    chosen = [act for act, wanted in acts.items() if wanted]
    if len(chosen) > 1 or (everyone and not chosen):
        raise typer.BadParameter("Choose one of --install, --uninstall and --print.")
    if (user or as_root) and not everyone:
        raise typer.BadParameter("--user and --as-root go with --system.")
    try:
        if chosen:
            wanted = ServiceRequest(everyone, user, as_root=as_root or uninstall)
            raise typer.Exit(chosen[0](Service(order, wanted)))
        _watch(order, shape)
    except UploaderError as error:
        if not chosen and not attended:
            UnseenFailures.of_process().add(error.problem)
        raise
    except Cancelled:
        pass  # being stopped is how a watch ends


def _watch(order: WatchRequest, shape: Shape) -> None:
    settings = _load_settings(order)
    lower_own_priority(settings)
    cancel = CancelFlag()
    report: RunOutput = WatchLines(settings)
    if shape is not Shape.TEXT:
        report = EventLines(sys.stdout, brief=shape is Shape.BRIEF)
    with ExitStack() as stack:
        redaction = stack.enter_context(open_log(settings, order.config))
        stack.enter_context(stopped_by_signals(cancel))

        unseen = UnseenFailures.of_process()

        def emit(event: Event) -> None:
            report.show(event)
            log_event(event)
            if not order.attended:
                unseen.show(event)

        wishes = RunRequests(cancel)
        controller = CommandHandler(cancel, emit, wishes)
        follow_commands(shape, controller.handle, wishes.leave if order.attended else None)
        observer = RunObserver(
            emit=emit,
            details=needs_details(shape),
            cancel=cancel,
            hide=redaction.add,
            controller=controller,
        )
        run_watch(order, observer, wishes)


def _load_settings(order: WatchRequest) -> Settings:
    try:
        return load_settings(order.config, order.assignments).settings
    except UploaderError:
        with open_log(Settings(), order.config):  # logs the error
            raise


class UnseenFailures:
    """Failures to start for the Event Log of Windows, unless somebody sees them on a terminal.

    A watch tries again for ever: the same problem is reported once until a run has started.
    """

    def __init__(self, *, seen: bool, report: Callable[[str], object]) -> None:
        self._seen = seen
        self._report = report
        self._reported = ""  # the code of the last problem

    @classmethod
    def of_process(cls) -> Self:
        """Return those of this process."""
        return cls(seen=sys.stderr.isatty(), report=report_error)

    def show(self, event: Event) -> None:
        """Report a run that did not start."""
        match event:
            case RunStarted():
                self._reported = ""
            case RunFinished(run="", problem=problem) if problem:
                self.add(problem)

    def add(self, problem: Problem) -> None:
        """Report a problem, except that somebody else already does the work."""
        if self._seen or problem.code in (self._reported, AlreadyRunningError.code):
            return
        self._reported = problem.code
        self._report(f"{problem.message}\n{problem.hint}\nCode: {problem.code}")


class WatchLines:
    """Writes the important events of a watch as lines, for the terminal or the journal."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lines = PlainLines(_write, self._settings)
        self._partial = False  # whether the run looks at a part of the data only

    def show(self, event: Event) -> None:
        """Print the event, if it is worth a line."""
        match event:
            case RunStarted(at=at, data_directory=directory, reason=reason):
                self._lines = PlainLines(_write, self._settings)  # each run names its own problems
                self._partial = reason in PARTIAL_REASONS
                why = REASONS.get(reason, reason)
                print_lines([f"{_local(at)} A run over {format_path(directory)} begins ({why})."])
            case RunFinished(run="", problem=problem) if problem:
                self._lines.show(Notice(problem=problem))
            case RunFinished(at=at):
                lines = reword(summarise(event, partial=self._partial), self._settings)
                print_lines(f"{_local(at)} {line}" for line in lines)
            case RunScheduled(at=None, kind=kind):
                print_lines([f"No further run is due: runs start {_SCHEDULES.get(kind, kind)}."])
            case RunScheduled(at=at) if at is not None:
                print_lines([f"The next run is due at {_local(at)}."])
            case _:
                self._lines.show(event)
        sys.stdout.flush()


def _local(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def _write(text: str) -> None:
    sys.stdout.write(text)


FAILED_EXIT = 1


def print_service(service: Service) -> int:
    """Print the definition and where it belongs; nothing is changed."""
    definition = service.definition
    encoding = "utf-16" if definition.content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    print_lines(
        [
            f"# {definition.file}",
            *definition.content.decode(encoding).rstrip().splitlines(),
            "# Then:",
            *(f"#   {list2cmdline(command)}" for command in definition.install),
        ]
    )
    return 0


def install_service(service: Service) -> int:
    """Install the service; if the system refuses a step, print the command to type."""
    print_lines(f"Warning: {warning}" for warning in service.warnings)
    outcomes = list(service.install())
    print_lines([f"{service.definition.file} is written."])
    left = service.definition.install[len(outcomes) :]
    problem = outcomes[-1].problem
    print_lines(_describe(problem, (outcomes[-1].command, *left)))
    if not problem:
        print_lines(["The service is installed and running."])
    print_lines(service.definition.advice)
    return FAILED_EXIT if problem else 0


def uninstall_service(service: Service) -> int:
    """Remove the service."""
    outcomes = list(service.uninstall())
    if not outcomes:
        print_lines([f"There is no service here: {service.definition.file} does not exist."])
        return 0
    problem = outcomes[-1].problem
    print_lines([f"{service.definition.file} is removed."])
    print_lines(_describe(problem, [outcome.command for outcome in outcomes if outcome.problem]))
    return FAILED_EXIT if problem else 0


def _describe(problem: str, commands: Iterable[tuple[str, ...]]) -> Iterator[str]:
    if problem:
        yield f"The system did not do its part: {problem}."
        yield "Type this yourself:"
        yield from (f"  {list2cmdline(command)}" for command in commands)
