"""The weekly report of an unattended uploader, and the alert when no run succeeds for long."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, time, timedelta, tzinfo
from typing import Any, Final, NamedTuple, Protocol

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.engine.scheduler import Rule, next_start
from mydata_like.settings.schedule_section import WEEKDAYS
from mydata_like.settings.sections import Monitor as MonitorSettings

_WEEK: Final = timedelta(days=7)
_MORNING: Final = time(9, 0)
_NOTICED: Final = "noticed"
_TROUBLE: Final = "trouble"


class ReportedTimes(Protocol):
    """Timestamps that are stored between runs of the program."""

    def find(self, name: str) -> datetime | None: ...

    def keep(self, name: str, moment: datetime | None) -> None: ...


class Week(NamedTuple):
    """The results of a week's runs: their number, the successful ones, and their sums.

    `safety` is the current state of the data, `unsafe` the number of files that exist only here.
    `problem` is why the data directory cannot be read.
    """

    runs: int = 0
    well: int = 0
    sent: int = 0
    safety: Safety = Safety.UNKNOWN
    unsafe: int = 0
    problem: str = ""

    @classmethod
    def of(
        cls, runs: Sequence[Mapping[str, Any]], safety: Safety, unsafe: int = 0, problem: str = ""
    ) -> "Week":
        """Return the sums of runs, each given by its event `run_finished`.

        An interrupted run has no sums.
        """
        ended = [run for run in runs if run]
        return cls(
            len(runs),
            sum(not run["problem"] and not run["failed"] for run in ended),
            sum(run["sent"] for run in ended),
            safety,
            unsafe,
            problem,
        )


class HealthReporter:
    """The decision on what to report and when; `look_back` returns the runs since a moment."""

    def __init__(
        self,
        settings: MonitorSettings,
        memory: ReportedTimes,
        look_back: Callable[[datetime], Week],
        zone: tzinfo | None = None,
    ) -> None:
        """Create a reporter; `zone` is None for the computer's own."""
        self._settings = settings
        self._memory = memory
        self._look_back = look_back
        self._zone = zone
        self._trouble_reported = False

    def note(self, now: datetime, *, well: bool) -> None:
        """Record the current state: a successful run, or a failure."""
        if well:
            self._memory.keep(_TROUBLE, None)
            self._trouble_reported = False
        elif self._memory.find(_TROUBLE) is None:
            self._memory.keep(_TROUBLE, now)

    def find_notices(self, now: datetime) -> list[Problem]:
        """Return the notices that are due now; each is returned once."""
        return [*self._find_trouble(now), *self._find_weekly(now)]

    def _find_trouble(self, now: datetime) -> list[Problem]:
        since, hours = self._memory.find(_TROUBLE), self._settings.silent_hours
        silent = since is not None and hours and now - since >= timedelta(hours=hours)
        if not silent or self._trouble_reported:
            return []
        self._trouble_reported = True
        return [
            Problem(
                "monitor.silence",
                f"For {(now - (since or now)) // timedelta(hours=1)} hours no run has succeeded.",
                "The log shows why; mydata-like status shows what the program is waiting for.",
            )
        ]

    def _find_weekly(self, now: datetime) -> list[Problem]:
        if self._settings.notice_day == "never":
            return []
        noticed = self._memory.find(_NOTICED)
        if noticed is None or noticed > now:
            self._memory.keep(_NOTICED, now)
            return []
        day = frozenset({WEEKDAYS.index(self._settings.notice_day)})
        due = next_start(Rule("weekly", time=_MORNING, days=day), noticed, self._zone)
        if due is None or due > now:
            return []
        self._memory.keep(_NOTICED, now)
        return [describe_week(self._look_back(max(noticed, now - _WEEK)))]


def describe_week(week: Week) -> Problem:
    """Return the weekly notice."""
    if not week.runs:
        return Problem(
            "monitor.nothing-ran",
            "No run started in the last week.",
            "Check the schedule: mydata-like status",
        )
    if week.safety in (Safety.AT_RISK, Safety.PROBLEM) or not week.well:
        failed = week.runs - week.well
        ended = f"{failed:,} of {week.runs:,} runs of the last week did not succeed"
        if week.runs == 1:
            ended = "The only run of the last week did not succeed"
        if not failed:
            ended = "All runs of the last week succeeded"
        files = f"{week.unsafe:,} files are not safe on the server yet."
        if week.unsafe == 1:
            files = "1 file is not safe on the server yet."
        return Problem(
            "monitor.unsafe",
            f"{ended}; {files} {week.problem}".strip(),
            "The log lists them with the reasons; mydata-like status shows the current state.",
        )
    if not week.sent:
        return Problem(
            "monitor.nothing-came",
            "No new data in the last week: no run found a new file.",
            "If the instrument produced data, check that it writes to data.directory.",
        )
    if week.safety is not Safety.SAFE:
        return Problem(
            "monitor.unsafe",
            "Files were sent in the last week, but no run over the whole data directory has "
            "finished: it is unknown whether all files are safe.",
            "Start a run over the data directory: mydata-like run",
        )
    sent = f"{week.sent:,} files of the last week are safe on the server."
    if week.sent == 1:
        sent = "1 file of the last week is safe on the server."
    return Problem("monitor.all-well", f"All is well: {sent}")
