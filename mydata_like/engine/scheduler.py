"""The scheduler that starts runs, and its schedule, correct across clock changes."""

import datetime
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

from mydata_like.core.events import RunScheduled
from mydata_like.core.frozen import frozen
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.engine.pipeline import CancelFlag, Lock
from mydata_like.settings.schedule_section import WEEKDAYS, Schedule

_DAY: Final = datetime.timedelta(days=1)
_SECOND: Final = datetime.timedelta(seconds=1)
_TRUSTED: Final = datetime.timedelta(days=1)
_WEEK_AHEAD: Final = 9  # days to consider: a week, one day before and one after
# Kinds that start runs all day long; starts missed while their window is closed are dropped.
WINDOWED: Final = frozenset({"timer", "watch"})


class Rule(NamedTuple):
    """The settings of a schedule that determine the times; `days` are 0 for Monday to 6."""

    kind: str
    date: datetime.date | None = None
    time: datetime.time = datetime.time(0, 0)
    days: frozenset[int] = frozenset()
    minutes: int = 15
    opens: datetime.time = datetime.time(0, 0)
    shuts: datetime.time = datetime.time(23, 59)

    @property
    def text(self) -> str:
        """A text that identifies this rule."""
        days = "".join(map(str, sorted(self.days)))
        facts = (self.kind, self.date, self.time, days, self.minutes, self.opens, self.shuts)
        return " ".join(map(str, facts))

    @classmethod
    def of(cls, schedule: Schedule) -> "Rule":
        """Return the rule for the settings of a schedule."""
        days = frozenset(WEEKDAYS.index(day) for day in schedule.days)
        return cls(
            schedule.kind,
            schedule.date,
            schedule.time,
            days,
            schedule.minutes,
            schedule.from_time,
            schedule.to_time,
        )


def next_start(
    rule: Rule, after: datetime.datetime, zone: datetime.tzinfo | None
) -> datetime.datetime | None:
    """Return the first start later than `after`, in UTC, or None if there is none.

    A local time that is skipped when clocks go forward becomes the first moment after the gap. One
    that occurs twice stands for the first occurrence. The timer, and the scans of a watch, start at
    fixed intervals in minutes from the opening of each window.
    """
    after = after.astimezone(datetime.UTC)
    match rule.kind:
        case "once":
            starts = iter([_moment(rule.date, rule.time, zone)] if rule.date else [])
        case "daily":
            starts = (_moment(day, rule.time, zone) for day in _days(after, zone))
        case "weekly":
            days = (day for day in _days(after, zone) if day.weekday() in rule.days)
            starts = (_moment(day, rule.time, zone) for day in days)
        case "timer" | "watch":
            starts = _timer_starts(rule, after, zone)
        case _:
            starts = iter(())
    return next((start for start in starts if start > after), None)


def is_open(rule: Rule, now: datetime.datetime, zone: datetime.tzinfo | None) -> bool:
    """Return whether scheduled runs may start at this moment."""
    if rule.kind not in WINDOWED:
        return True
    return any(opens <= now <= shuts for opens, shuts in _windows(rule, now, zone))


def is_believable(served: datetime.datetime, now: datetime.datetime) -> bool:
    """Return whether `served` is plausible.

    A moment more than a day ahead was stored while the clock was wrong.
    """
    return served - now <= _TRUSTED


def find_due(
    rule: Rule,
    served: datetime.datetime,
    now: datetime.datetime,
    zone: datetime.tzinfo | None,
) -> datetime.datetime | None:
    """Return when the next run is due; a moment that is not after `now` is due immediately.

    `served` is the moment up to which all starts have been handled (or the schedule was set). Any
    number of missed starts results in one run. If the clock is set back, starts are not repeated
    (see `is_believable`).
    """
    due = next_start(rule, served, zone)
    if due is not None and due <= now and not is_open(rule, now, zone):
        return next_start(rule, now, zone)
    return due


def _timer_starts(
    rule: Rule, after: datetime.datetime, zone: datetime.tzinfo | None
) -> Iterator[datetime.datetime]:
    step = datetime.timedelta(minutes=rule.minutes)
    for opens, shuts in _windows(rule, after, zone):
        steps = max(0, (after - opens) // step + 1)
        start = opens + steps * step
        if start <= shuts:
            yield start


def _windows(
    rule: Rule, around: datetime.datetime, zone: datetime.tzinfo | None
) -> Iterator[tuple[datetime.datetime, datetime.datetime]]:
    """Yield the first and last moments of the windows around a moment."""
    for day in _days(around, zone):
        opens = _moment(day, rule.opens, zone)
        if rule.shuts > rule.opens:
            shuts = _moment(day, rule.shuts, zone)
        elif rule.shuts < rule.opens:
            shuts = _moment(day + _DAY, rule.shuts, zone)
        else:  # all day: until the next one opens
            shuts = _moment(day + _DAY, rule.opens, zone) - _SECOND
        yield opens, shuts


def _days(around: datetime.datetime, zone: datetime.tzinfo | None) -> Iterator[datetime.date]:
    """Yield local days, from the day before a moment to more than a week later."""
    first = around.astimezone(zone).date() - _DAY
    return (first + number * _DAY for number in range(_WEEK_AHEAD + 1))


def _moment(
    date: datetime.date, time: datetime.time, zone: datetime.tzinfo | None
) -> datetime.datetime:
    """Return the moment of a local time, in UTC."""
    local = datetime.datetime.combine(date, time, zone)
    first = local.replace(fold=0).astimezone(datetime.UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return first
    # In a gap, the two folds are before and after it, so its end is between them.
    other = local.replace(fold=1).astimezone(datetime.UTC)
    early, late = min(first, other), max(first, other)
    offset = early.astimezone(zone).utcoffset()
    while late - early > _SECOND:
        middle = early + (late - early) // 2
        if middle.astimezone(zone).utcoffset() == offset:
            early = middle
        else:
            late = middle
    return late.replace(microsecond=0)


TICK: Final = 5.0  # seconds between checks of the clock, the settings and file changes
SOON: Final = 1.0  # the same, after files have changed
FIRST_RETRY: Final = 60.0  # seconds after which a run that could not begin is retried
LONGEST_RETRY: Final = 3600.0
SOURCE: Final = "source"  # reason of a run over added sources only
FOLDER: Final = "folder"  # reason of a run over one folder only, requested by the user
PATIENCE: Final = 10  # settling times after which files that keep changing are uploaded anyway


class RunResult(NamedTuple):
    """The result of a run, as far as it matters for the next one.

    `complete` is false if the run must be retried; `waiting` is the number of files left for later.
    """

    complete: bool
    waiting: int = 0


class ChangeWatcher(Protocol):
    """A detector of changes in the data directory; it may miss some or report too many."""

    def take(self) -> bool:
        """Return whether there was a change since the last call."""


class ScheduleSnapshot(NamedTuple):
    """The current settings: when to run, and how many seconds files must be unchanged.

    `settings` are all of them, to detect any change.
    """

    rule: Rule
    settle: float
    settings: object = None


class TimestampMemory(Protocol):
    """Timestamps that are stored between runs of the program."""

    def find(self, name: str) -> datetime.datetime | None: ...

    def keep_alone(self, name: str, moment: datetime.datetime) -> None:
        """Store a timestamp and delete all others whose names begin with the same word."""


@frozen(kw_only=True, eq=False)
class SchedulerDeps:
    """The collaborators of the scheduler."""

    look: Callable[[], ScheduleSnapshot]  # returns the current settings
    run: Callable[[str], RunResult]  # executes a run, given its reason
    memory: TimestampMemory
    hints: ChangeWatcher
    wished: Callable[[], str] = str  # reason of a run that the user requests; empty for none
    pace: float = TICK  # seconds between two checks


class Scheduler:
    """A loop that waits for the next start and executes the run, until it is stopped.

    Starts that are missed during a run, or while the computer sleeps, result in one run. The
    computer's clock and the settings may change at any time.
    """

    def __init__(
        self,
        duties: SchedulerDeps,
        clock: Clock,
        cancel: CancelSignal,
        emit: Emit,
        zone: datetime.tzinfo | None = None,
    ) -> None:
        """Create a scheduler; `zone` is None for the computer's own."""
        self._duties = duties
        self._clock = clock
        self._cancel = cancel
        self._emit = emit
        self._zone = zone
        self._plan = duties.look()
        self._reported: tuple[datetime.datetime | None, str] | None = None
        self._requested = "startup" if self._plan.rule.kind == "startup" else ""
        self._retry = _Retry(clock)
        self._changes = _FileChanges(clock)
        self._changes.note()  # files may have changed while the scheduler was not running

    def keep(self) -> None:
        """Wait and execute runs until a stop is requested."""
        while not self._cancel.is_set():
            self._detect_changes()
            now = self._clock.now()
            due = self._find_due(now)
            reason = self._find_reason(due, now)
            if reason:
                self._run(reason)
                continue
            coming = [moment for moment in (due, self._retry.at) if moment is not None]
            upcoming = min(coming, default=None)
            self._report(upcoming)
            self._cancel.wait(self._find_rest(upcoming, now))

    def _detect_changes(self) -> None:
        """Detect changes of settings and files."""
        plan = self._duties.look()
        if plan != self._plan:
            self._plan = plan
            self._retry.forget()
            self._changes.note()
            if plan.rule.kind == "saved":
                self._requested = "saved"
        if self._duties.hints.take():
            self._changes.note()

    def _find_due(self, now: datetime.datetime) -> datetime.datetime | None:
        rule, memory = self._plan.rule, self._duties.memory
        served = memory.find(_served(rule))
        if served is None or not is_believable(served, now):
            # A new rule counts from the moment when it is first seen.
            served = now
            memory.keep_alone(_served(rule), now)
        return find_due(rule, served, now, self._zone)

    def _find_reason(self, due: datetime.datetime | None, now: datetime.datetime) -> str:
        """Return why a run starts now; empty if none does."""
        rule, settle = self._plan.rule, self._plan.settle
        if wish := self._duties.wished():
            return wish
        if self._requested:
            return self._requested
        if due is not None and due <= now:
            return rule.kind
        if self._retry.is_due:
            return "retry"
        settled = rule.kind == "watch" and self._changes.has_settled(settle)
        return "settled" if settled and is_open(rule, now, self._zone) else ""

    def _run(self, reason: str) -> None:
        self._reported = None
        if reason in (SOURCE, FOLDER):
            self._run_partial(reason)
            return
        rule, now = self._plan.rule, self._clock.now()
        if reason in (rule.kind, "settled"):
            self._duties.memory.keep_alone(_served(rule), now)
        self._requested = ""
        self._changes.forget()
        ended = self._duties.run(reason)
        if ended.complete:
            self._retry.forget()
        else:
            self._retry.delay()
        if ended.waiting:
            self._changes.look_again(self._plan.settle)

    def _run_partial(self, reason: str) -> None:
        """Execute a run over added sources or one folder; the schedule stays as it is."""
        if not self._duties.run(reason).complete:
            self._retry.delay()

    def _find_rest(self, due: datetime.datetime | None, now: datetime.datetime) -> float:
        pace = self._duties.pace
        if self._plan.rule.kind == "watch" and self._changes.is_settling(self._plan.settle):
            pace = min(pace, SOON)
        return pace if due is None else max(0.0, min(pace, (due - now).total_seconds()))

    def _report(self, due: datetime.datetime | None) -> None:
        reported = (due, self._plan.rule.kind)
        if reported != self._reported:
            self._reported = reported
            self._emit(RunScheduled(at=due, kind=self._plan.rule.kind))


def _served(rule: Rule) -> str:
    """Return the name of the timestamp up to which a rule's starts have been handled."""
    return f"served {rule.text}"


class _Retry:
    """The retry of a run that could not do its work, with exponential backoff.

    `at` is its time, None if there is none; it may come earlier after a change of the clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at: datetime.datetime | None = None
        self._due: float | None = None
        self._delay = 0.0

    @property
    def is_due(self) -> bool:
        if self._due is None or self.at is None:
            return False
        # Monotonic time may stop while the computer sleeps.
        return self._clock.monotonic() >= self._due or self._clock.now() >= self.at

    def delay(self) -> None:
        self._delay = min(self._delay * 2, LONGEST_RETRY) or FIRST_RETRY
        self._due = self._clock.monotonic() + self._delay
        self.at = self._clock.now() + datetime.timedelta(seconds=self._delay)

    def forget(self) -> None:
        self._due, self._delay, self.at = None, 0.0, None


class _FileChanges:
    """The times of the first and the last file change since the last run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: float | None = None
        self._last = 0.0
        self._seen = False  # whether there was one; a run may also have left files waiting

    def note(self) -> None:
        self._last = self._clock.monotonic()
        self._seen = True
        if self._first is None:
            self._first = self._last

    def forget(self) -> None:
        self._first, self._seen = None, False

    def look_again(self, settle: float) -> None:
        """Note that files wait: for their last change to settle, or for something unknown."""
        self._first = self._clock.monotonic()
        self._seen = self._first - self._last <= settle
        if not self._seen:
            self._last = self._first

    def is_settling(self, settle: float) -> bool:
        """Return whether files have changed, and may have settled soon."""
        return self._seen and not self.has_settled(settle)

    def has_settled(self, settle: float) -> bool:
        """Return whether nothing has changed for so long, or changes have gone on for too long."""
        if self._first is None:
            return False
        now = self._clock.monotonic()
        return now - self._last > settle or now - self._first > settle * PATIENCE


class RunRequests:
    """Requests for runs, from any thread; acts as the watch's request to stop and wakes it."""

    def __init__(self, cancel: CancelFlag) -> None:
        self._cancel = cancel
        self._signal = cancel.part()
        self._lock = Lock()
        self._start = ""
        self._only = ""  # the one folder of a requested run
        self._leaving = False

    def start(self, *, alone: bool = False) -> None:
        """Request a run now; with `alone`, a run over the added sources only."""
        with self._lock:
            self._start = self._start or SOURCE if alone else "person"
        self._signal.set("run requested")

    def start_only(self, folder: str) -> None:
        """Request a run over one folder now; requests for two folders become one full run."""
        with self._lock:
            another = self._start == FOLDER and self._only != folder
            self._start = "person" if another or self._start == "person" else FOLDER
            self._only = folder
        self._signal.set("run requested")

    @property
    def only(self) -> str:
        """The folder that was requested last."""
        return self._only

    def leave(self) -> None:
        """Request the end of the watch, after the current run."""
        self._leaving = True
        self._signal.set("end of the watch requested")

    def take(self) -> str:
        """Return the run that was requested since the last call; empty for none."""
        if self._signal.is_set() and not self._leaving:
            self._signal = self._cancel.part()  # before the request is read, so that none is lost
        with self._lock:
            wished, self._start = self._start, ""
        return wished

    def is_set(self) -> bool:
        """Return whether the watch is to end."""
        return self._leaving or self._cancel.is_set()

    def wait(self, timeout: float) -> bool:
        """Wait for at most so many seconds; a request ends the wait."""
        self._signal.wait(timeout)
        return self.is_set()
