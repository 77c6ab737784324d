"""A computer whose clock is set and which sleeps, for the watch to live on."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mydata_like.engine.scheduler import RunResult, Scheduler, SchedulerDeps, ScheduleSnapshot


class Computer:
    """Clock and request to stop in one: `wait` lets time pass, and incidents happen.

    Incidents are done once the true time has come, in their order; each is given the
    computer. Monotonic time stands still while the computer sleeps.
    """

    def __init__(self, start: datetime, end: datetime, incidents=()) -> None:
        self.true = start
        self.error = timedelta(0)  # of what the clock shows
        self._awake = 0.0
        self._end = end
        self._incidents = sorted(incidents, key=lambda incident: incident[0])
        self.stopped = False  # for a restart of the program

    def now(self) -> datetime:
        return self.true + self.error

    def monotonic(self) -> float:
        return self._awake

    def is_set(self) -> bool:
        return self.stopped or self.true >= self._end

    def wait(self, timeout: float) -> bool:
        until = min(self.true + timedelta(seconds=timeout), self._end)
        while self._incidents and self._incidents[0][0] <= until:
            at, happen = self._incidents.pop(0)
            self._pass(at)
            happen(self)
        self._pass(until)
        return self.is_set()

    def sleep(self, duration: timedelta) -> None:
        self.true += duration

    def set_clock(self, by: timedelta) -> None:
        self.error += by

    def restart(self) -> None:
        self.stopped = True

    def _pass(self, until: datetime) -> None:
        if until > self.true:
            self._awake += (until - self.true).total_seconds()
            self.true = until


class Memory:
    """What outlives the program."""

    def __init__(self) -> None:
        self.moments = {}

    def find(self, name):
        return self.moments.get(name)

    def keep_alone(self, name, moment):
        self.moments = {name: moment}


@dataclass
class Signs:
    """Signs of change that a test gives."""

    there: bool = False

    def take(self) -> bool:
        there, self.there = self.there, False
        return there


@dataclass
class Life:
    """The program on a computer: started again whenever it is stopped, until the end."""

    computer: Computer
    plan: ScheduleSnapshot
    zone: object = None
    pace: float = 3600.0
    duration: float = 0.0  # seconds of a run
    ends: list = field(default_factory=list)  # how the next runs end; complete by default
    memory: Memory = field(default_factory=Memory)
    signs: Signs = field(default_factory=Signs)
    wish: str = ""  # why a user wants a run
    runs: list = field(default_factory=list)  # (what the clock showed, reason)
    events: list = field(default_factory=list)

    def live(self) -> "Life":
        while True:
            self.computer.stopped = False
            duties = SchedulerDeps(
                look=lambda: self.plan,
                run=self._run,
                memory=self.memory,
                hints=self.signs,
                wished=self._take_wish,
                pace=self.pace,
            )
            Scheduler(duties, self.computer, self.computer, self.events.append, self.zone).keep()
            if not self.computer.stopped:
                return self

    @property
    def starts(self):
        return [start for start, _ in self.runs]

    @property
    def reasons(self):
        return [reason for _, reason in self.runs]

    def _take_wish(self) -> str:
        wish, self.wish = self.wish, ""
        return wish

    def _run(self, reason: str) -> RunResult:
        self.runs.append((self.computer.now(), reason))
        self.computer.wait(self.duration)
        return self.ends.pop(0) if self.ends else RunResult(complete=True)
