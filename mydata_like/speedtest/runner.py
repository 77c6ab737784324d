"""One speed test: its target, the order of measurements, and which ones are left out.

A part that fails, or that the server does not allow, is reported and left out; the others continue.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from mydata_like.core.errors import UploaderError
from mydata_like.core.ports import CancelSignal
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.local_machine import (
    ENOUGH,
    FileSample,
    describe_here,
    find_sample,
    measure_busy,
    measure_checksums,
    measure_ciphers,
    measure_compression,
    measure_source,
    read_pieces,
)
from mydata_like.speedtest.real_files import RealFiles, SpeedTestDestination, remove_leftovers
from mydata_like.speedtest.recommendations import list_candidates
from mydata_like.speedtest.results import (
    NOT_TOLD,
    RECORDS,
    Measurement,
    SettingsComparison,
    SpeedTestBudget,
    SpeedTestEffort,
    SpeedTestResult,
    StageResult,
    Unit,
    Workload,
)

CONNECTIONS: Final = (1, 2, 4)
_ANSWERS: Final = 5  # timed requests of each kind

Questions = Mapping[str, Callable[[], object]]  # requests to the API by name
OpenDestination = Callable[[SpeedTestBudget], SpeedTestDestination]


def measure_api(questions: Questions, budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield the latency of each request, then the rate of the last one over 1, 2, 4 connections."""
    for name, ask in questions.items():
        if budget.spent():
            return
        seconds = budget.time(ask, _ANSWERS)
        yield Measurement(StageResult.API, name, Unit.SECONDS, seconds)
    *_, ask = questions.values()
    for connections in CONNECTIONS:
        if budget.spent():
            return
        with ThreadPoolExecutor(connections) as threads:

            def act(threads: ThreadPoolExecutor = threads, number: int = connections) -> float:
                return float(len(list(threads.map(lambda _: ask(), range(number * 2)))))

            yield Measurement(
                StageResult.API,
                f"{connections} connection{'s' * (connections != 1)}",
                Unit.REQUESTS,
                budget.sample(act),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestTarget:
    """The target of a speed test: the data directory, the server's API and its staging area.

    Without a server there are no `questions` to its API. Without a `destination` in the staging
    area, `why` is the reason. The test's own files are
    written to `state`. `records` has the files a second of earlier runs whose bottleneck was the
    API.
    """

    root: Path
    state: Path
    transfer: Transfer
    questions: Questions
    destination: OpenDestination | None = None
    why: str = ""
    records: tuple[float, ...] = ()


_WITHOUT_SHELL: Final = (
    "The staging host allows no shell: the connection to it and its disk could not be measured "
    "alone."
)
_NO_RECORDS: Final = (
    "The speed of registering and verifying was not measured, because a test must not leave "
    "records and no earlier run had to wait for it."
)
_IN_PLACE: Final = (
    "The staging host cannot remove files: nothing was sent, and only this"
    " computer and the API were measured."
)


class SpeedTestRunner:
    """A speed test; `findings` are what it has found so far."""

    def __init__(
        self, target: SpeedTestTarget, effort: SpeedTestEffort, cancel: CancelSignal
    ) -> None:
        self._target = target
        self._budget = SpeedTestBudget(effort, cancel)
        self._measured: list[Measurement] = []
        self._compared: list[SettingsComparison] = []
        self._unknown: list[str] = []
        self._here = NOT_TOLD
        self._there = NOT_TOLD
        self._rung = ""
        self._cipher = ""
        self._channels = 1

    @property
    def obstacle(self) -> str:
        """Why the connection to the server will not be measured; empty if it will."""
        return self._target.why

    @property
    def findings(self) -> SpeedTestResult:
        return SpeedTestResult(
            measured=tuple(self._measured),
            compared=tuple(self._compared),
            here=self._here,
            there=self._there,
            rung=self._rung,
            cipher=self._cipher,
            channels=self._channels,
            unknown=tuple(self._unknown),
        )

    def measure(self) -> Generator[Measurement | SettingsComparison, None, None]:
        """Yield one result after the other. Raises `Cancelled` if the test is cancelled.

        All test files are removed, here and on the server, even after an error.
        """
        with closing(self._measure()) as results:
            for result in results:
                if isinstance(result, Measurement):
                    self._measured.append(result)
                else:
                    self._compared.append(result)
                yield result

    def _measure(self) -> Generator[Measurement | SettingsComparison, None, None]:
        remove_leftovers(self._target.state)
        self._here = describe_here()
        budget = self._budget
        sample = self._find_sample()
        yield from self._try("Checksums", partial(measure_checksums, budget))
        yield from self._try("The disk of this computer", partial(measure_source, sample, budget))
        if self._target.records:
            yield Measurement(StageResult.API, RECORDS, Unit.FILES, self._target.records)
        elif self._target.questions:
            self._unknown.append(_NO_RECORDS)
        if self._target.questions:
            yield from self._try("The API", partial(measure_api, self._target.questions, budget))
        pieces = read_pieces(sample)
        destination = self._target.destination and self._target.destination(budget)
        if destination is None or destination.is_encrypted:
            ciphers = self._target.transfer.ciphers
            yield from self._try("Compression", partial(measure_compression, pieces))
            yield from self._try("Ciphers here", partial(measure_ciphers, ciphers, budget))
        if destination is None:
            self._unknown.append(self._target.why)
        else:  # the last part, because a folder that hangs uses up the time of the test
            sending = partial(self._measure_destination, destination, pieces)
            yield from self._try(destination.name, sending)
        self._here = self._here._replace(busy_after=measure_busy())

    def _measure_destination(
        self, destination: SpeedTestDestination, pieces: list[bytes]
    ) -> Iterator[Measurement | SettingsComparison]:
        """Yield what can be measured at the destination; remove the test files at the end."""
        self._rung = destination.capabilities.access
        capabilities = destination.open()
        with closing(destination):
            self._rung, self._cipher = capabilities.access, destination.cipher
            if capabilities.in_place:
                self._unknown.append(_IN_PLACE)
                return
            try:
                self._there = destination.describe()
                if not destination.parts:
                    self._unknown.append(_WITHOUT_SHELL)
                for what, part in destination.parts.items():
                    yield from self._try(what, part)
                sending = partial(self._send_files, destination, pieces)
                yield from self._try("All together", sending)
            finally:
                if left := destination.remove():
                    self._unknown.append(f"{left} could not be removed; the next test removes it.")

    def _send_files(
        self, destination: SpeedTestDestination, pieces: list[bytes]
    ) -> Iterator[Measurement | SettingsComparison]:
        """Yield the speed of sending files with the current settings, and with changes of them."""
        settings = self._target.transfer
        files = RealFiles(destination, settings, self._target.state, self._budget, pieces)
        with destination.noting_silence(), files:
            self._channels = files.channels
            for workload in Workload:
                if self._is_late(workload.together):
                    return
                rates = files.measure(workload)
                yield Measurement(StageResult.CHANNELS, workload.together, workload.unit, rates)
            for candidate in list_candidates(
                self.findings, settings, zstd=destination.capabilities.zstd
            ):
                if any(one.won and one.code == candidate.code for one in self._compared):
                    continue
                if not self._budget.spent() and (compared := files.compare(candidate)):
                    yield compared
                elif self._is_late("Comparison of settings"):
                    return

    def _try(
        self, what: str, part: Callable[[], Iterator[Measurement | SettingsComparison]]
    ) -> Iterator[Measurement | SettingsComparison]:
        """Yield the results of a part of the test, unless its time has run out."""
        if self._is_late(what):
            return
        try:
            yield from part()
        except (UploaderError, OSError) as error:
            self._budget.check()  # it may have failed while the test was cancelled
            message = error.message if isinstance(error, UploaderError) else str(error)
            self._unknown.append(f"{what} could not be fully measured: {message}")

    def _is_late(self, what: str) -> bool:
        """Return whether the time has run out; if so, report `what` as not measured."""
        late = self._budget.spent()
        if late:
            self._unknown.append(f"{what}: there was no time left to measure this.")
        return late

    def _find_sample(self) -> FileSample:
        """Return sample files of the user, and report kinds of which there are too few."""
        sample = find_sample(self._target.root, self._budget.effort.files)
        kinds = (("large", len(sample.large), 1), ("tiny", len(sample.tiny), ENOUGH))
        for kind, found, needed in kinds:
            if found < needed:
                self._unknown.append(
                    f"The data directory has too few {kind} files to measure how fast they are "
                    "read."
                )
        return sample
