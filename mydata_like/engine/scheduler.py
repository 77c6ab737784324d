"""Starts runs as the schedule says, for as long as the program lives."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Final, NamedTuple, Protocol

from mydata_like.core.events import RunScheduled
from mydata_like.core.ports import CancelSignal, Clock, Emit
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.schedule import Rule, find_due, is_believable, is_open

TICK: Final = 5.0  # seconds after which clock, settings and signs of change are looked at again
FIRST_RETRY: Final = 60.0  # seconds after which a run that could not begin is tried again
LONGEST_RETRY: Final = 3600.0
SOURCE: Final = "source"  # why a run starts that looks at added sources only
FOLDER: Final = "folder"  # ... that looks at one folder only, as a person wants it
PATIENCE: Final = 10  # times the settling time that files which never rest are waited for


class RunResult(NamedTuple):
    """How a run ended, as far as the next one is concerned.

    `complete` is false where it has to be tried again; `waiting` are files it left for later.
    """

    complete: bool
    waiting: int = 0


class ChangeWatcher(Protocol):
    """Signs that something changed in the data directory; they may be missing or too many."""

    def take(self) -> bool:
        """Return whether there was a sign since this was asked last."""


class ScheduleSnapshot(NamedTuple):
    """What the settings say: when to run, and how long files settle, in seconds.

    `settings` are all of them, so that a change of any is seen.
    """

    rule: Rule
    settle: float
    settings: object = None


class TimestampMemory(Protocol):
    """Moments that outlive the program."""

    def find(self, name: str) -> datetime | None: ...

    def keep_alone(self, name: str, moment: datetime) -> None:
        """Remember a moment and forget all others whose name begins with the same word."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulerDeps:
    """What the watch is given to do its work with."""

    look: Callable[[], ScheduleSnapshot]  # returns what the settings say now
    run: Callable[[str], RunResult]  # carries out a run, told why it starts
    memory: TimestampMemory
    hints: ChangeWatcher
    wished: Callable[[], str] = str  # why a person wants a run now; empty where nobody does
    pace: float = TICK  # seconds between two looks


class Scheduler:
    """Waits for the next start, makes it, and so on; never ends by itself.

    Starts that come while a run is at work, or while the computer sleeps, are made up for by
    one. The computer's clock may be set, and the settings may be changed, at any time.
    """

    def __init__(
        self,
        duties: SchedulerDeps,
        clock: Clock,
        cancel: CancelSignal,
        emit: Emit,
        zone: tzinfo | None = None,
    ) -> None:
        """`zone` is None for the computer's own."""
        self._duties = duties
        self._clock = clock
        self._cancel = cancel
        self._emit = emit
        self._zone = zone
        self._plan = duties.look()
        self._told: tuple[datetime | None, str] | None = None
        self._asked = "startup" if self._plan.rule.kind == "startup" else ""
        self._retry = _Retry(clock)
        self._restless = _Restless(clock)
        self._restless.note()  # files may have come while nobody watched

    def keep(self) -> None:
        """Keep watch until asked to stop."""
        while not self._cancel.is_set():
            self._look()
            now = self._clock.now()
            due = self._find_due(now)
            reason = self._find_reason(due, now)
            if reason:
                self._run(reason)
                continue
            self._tell(due)
            self._cancel.wait(self._find_rest(due, now))

    def _look(self) -> None:
        """Notice settings that were changed, and files that were."""
        plan = self._duties.look()
        if plan != self._plan:
            self._plan = plan
            self._retry.forget()
            self._restless.note()
            if plan.rule.kind == "saved":
                self._asked = "saved"
        if self._duties.hints.take():
            self._restless.note()

    def _find_due(self, now: datetime) -> datetime | None:
        rule, memory = self._plan.rule, self._duties.memory
        served = memory.find(_served(rule))
        if served is None or not is_believable(served, now):
            # A rule counts from the moment on at which it is first seen.
            served = now
            memory.keep_alone(_served(rule), now)
        return find_due(rule, served, now, self._zone)

    def _find_reason(self, due: datetime | None, now: datetime) -> str:
        """Return why a run starts now; empty where none does."""
        rule, settle = self._plan.rule, self._plan.settle
        if wish := self._duties.wished():
            return wish
        if self._asked:
            return self._asked
        if due is not None and due <= now:
            return rule.kind
        if self._retry.is_due:
            return "retry"
        settled = rule.kind == "watch" and self._restless.has_settled(settle)
        return "settled" if settled and is_open(rule, now, self._zone) else ""

    def _run(self, reason: str) -> None:
        self._told = None
        if reason in (SOURCE, FOLDER):
            self._run_aside(reason)
            return
        rule, now = self._plan.rule, self._clock.now()
        if reason in (rule.kind, "settled"):
            self._duties.memory.keep_alone(_served(rule), now)
        self._asked = ""
        self._restless.forget()
        ended = self._duties.run(reason)
        if ended.complete:
            self._retry.forget()
        else:
            self._retry.delay()
        if ended.waiting:
            self._restless.note()

    def _run_aside(self, reason: str) -> None:
        """Carry added sources, or one folder; what is due over the data directory stays so."""
        if not self._duties.run(reason).complete:
            self._retry.delay()

    def _find_rest(self, due: datetime | None, now: datetime) -> float:
        pace = self._duties.pace
        return pace if due is None else max(0.0, min(pace, (due - now).total_seconds()))

    def _tell(self, due: datetime | None) -> None:
        told = (due, self._plan.rule.kind)
        if told != self._told:
            self._told = told
            self._emit(RunScheduled(at=due, kind=self._plan.rule.kind))


def _served(rule: Rule) -> str:
    """Return the name under which it is remembered until when a rule's starts are made."""
    return f"served {rule.text}"


class _Retry:
    """When a run that could not do its work is tried again: later and later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: float | None = None
        self._delay = 0.0

    @property
    def is_due(self) -> bool:
        return self._due is not None and self._clock.monotonic() >= self._due

    def delay(self) -> None:
        self._delay = min(self._delay * 2, LONGEST_RETRY) or FIRST_RETRY
        self._due = self._clock.monotonic() + self._delay

    def forget(self) -> None:
        self._due, self._delay = None, 0.0


class _Restless:
    """Files that changed: since when the first and the last of them have not been sent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: float | None = None
        self._last = 0.0

    def note(self) -> None:
        self._last = self._clock.monotonic()
        if self._first is None:
            self._first = self._last

    def forget(self) -> None:
        self._first = None

    def has_settled(self, settle: float) -> bool:
        """Return whether nothing changed for so long, or things have changed for very long."""
        if self._first is None:
            return False
        now = self._clock.monotonic()
        return now - self._last > settle or now - self._first > settle * PATIENCE


class RunRequests:
    """Wakes a watch that rests; stands in for its request to stop, from any thread."""

    def __init__(self, cancel: CancelFlag) -> None:
        self._cancel = cancel
        self._bell = cancel.part()
        self._start = ""
        self._only = ""  # the one folder that a run is wished for
        self._leaving = False

    def start(self, *, alone: bool = False) -> None:
        """Wish for a run, now; with `alone` for one that carries nothing but added sources."""
        self._start = self._start or SOURCE if alone else "person"
        self._bell.set("a run is wanted")

    def start_only(self, folder: str) -> None:
        """Wish for a run over one folder, now; of two such wishes comes one over everything."""
        another = self._start == FOLDER and self._only != folder
        self._start = "person" if another or self._start == "person" else FOLDER
        self._only = folder
        self._bell.set("a run is wanted")

    @property
    def only(self) -> str:
        """The folder that was wished for last."""
        return self._only

    def leave(self) -> None:
        """Wish that the watch ends, after the run that is under way."""
        self._leaving = True
        self._bell.set("the watch is to end")

    def take(self) -> str:
        """Return which run was wished for since this was asked last; empty for none."""
        if self._bell.is_set() and not self._leaving:
            self._bell = self._cancel.part()  # before the wish is read, so that none is lost
        wished, self._start = self._start, ""
        return wished

    def is_set(self) -> bool:
        """Return whether the watch is to end."""
        return self._leaving or self._cancel.is_set()

    def wait(self, timeout: float) -> bool:
        """Rest for so many seconds at most; a wish ends it."""
        self._bell.wait(timeout)
        return self.is_set()
