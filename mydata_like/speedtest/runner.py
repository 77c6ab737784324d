"""One speed test: its target, the order of measurements, and which ones are left out.

A part that fails, or that this server does not allow, is said and left out; the rest goes on.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, TransientError, UploaderError
from mydata_like.core.ports import CancelSignal
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.end_to_end import EndToEndTest, OpenTransport, carry, remove_leftovers
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
)
from mydata_like.speedtest.recommendations import find_way
from mydata_like.speedtest.remote_host import HostInfo, RemoteHost
from mydata_like.speedtest.results import (
    LARGE_FILES,
    NOT_TOLD,
    RECORDS,
    ROUND_TRIP,
    SET_UP,
    TINY_FILES,
    Measurement,
    SpeedTestBudget,
    SpeedTestEffort,
    SpeedTestResult,
    StageResult,
    Unit,
    connected,
    flooded,
)
from mydata_like.speedtest.throughput_probe import SLOW, FloodPool, FloodSpec
from mydata_like.ssh.capabilities import HostCapabilities, probe
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import Endpoint, SshSession
from mydata_like.transfer.sessions import count_sessions
from mydata_like.transfer.worker_messages import STREAMS

CONNECTIONS: Final = (1, 2, 4)
_ANSWERS: Final = 5  # to each question

Questions = Mapping[str, Callable[[], object]]  # each asks the server one thing, in one request


def measure_api(questions: Questions, budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield how long each answer takes, then how many of the last question's come in a second."""
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
                StageResult.API, connected(connections), Unit.REQUESTS, budget.look(act)
            )


_MOST: Final = 32  # channels that the settings allow

Clean = Callable[["ProbeFiles", SshSession], None]


class ProbeFiles(NamedTuple):
    """The staging host, and the folder below its location that is ours to write and remove."""

    endpoint: Endpoint
    location: bytes
    folder: str
    open_transport: OpenTransport


def name_files(staging: ProbeFiles) -> tuple[bytes, ...]:
    """Return the files that floods write where there is no shell: always the same ones."""
    prefix = staging.location.rstrip(b"/") + b"/" + staging.folder.encode()
    return tuple(b"%b-%d" % (prefix, number) for number in range(_MOST))


def clean_by_shell(staging: ProbeFiles, session: SshSession) -> None:
    """Remove whatever a test has left there."""
    RemoteHost(session, staging.location, staging.folder.encode()).clean()


def clean_by_sftp(staging: ProbeFiles, session: SshSession) -> None:
    """Remove the files of floods, where there is no shell."""
    sftp = session.open_sftp()
    for name in name_files(staging):
        with suppress(RejectedError):
            sftp.remove(name)


def leave_nothing(staging: ProbeFiles, session: SshSession, clean: Clean) -> bool:
    """Remove what was written there, over a new session where the old one broke.

    Return whether it is gone; what cannot be removed now is by the next test.
    """
    with suppress(UploaderError):
        clean(staging, session)
        return True
    with suppress(UploaderError), closing(connect(staging.endpoint)) as another:
        clean(staging, another)
        return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestTarget:
    """What is examined: the data's folder, the server's API, and the way into its staging area.

    Without a `staging`, `why` says what is in its way. `state` takes the test's own files.
    `records` are how many files a second earlier runs brought to the server where its API was
    their limit.
    """

    root: Path
    state: Path
    transfer: Transfer
    questions: Questions
    staging: ProbeFiles | None = None
    why: str = ""
    records: tuple[float, ...] = ()


_COUNTS: Final = (1, 2, 4, 8)
_SESSIONS: Final = 3  # of which the best counts for a cipher, to a host that is so close:
_CLOSE: Final = 0.005  # seconds of a round trip
_WITHOUT_SHELL: Final = (
    "The staging host allows no shell: its processors, its disk without the network, the round "
    "trip and tiny files could not be measured."
)
_NO_RECORDS: Final = (
    "The speed of registering and verifying was not measured, since a test must not leave "
    "records, and no earlier run had to wait for it."
)
_NO_PROOF: Final = "The improvement was not measured: the staging host no longer allows a shell."
_SCP_ONLY: Final = (
    "The staging host allows only scp, which cannot remove files: nothing was sent, and only this"
    " computer and the API were measured."
)


class SpeedTestRunner:
    """A speed test; `findings` are what it has found so far."""

    def __init__(
        self, subject: SpeedTestTarget, effort: SpeedTestEffort, cancel: CancelSignal
    ) -> None:
        self._subject = subject
        self._budget = SpeedTestBudget(effort, cancel)
        self._measured: list[Measurement] = []
        self._unknown: list[str] = []
        self._here = NOT_TOLD
        self._about = HostInfo(NOT_TOLD, one_machine=False)
        self._capabilities = HostCapabilities("")
        self._round_trip = 0.0  # seconds; 0 where it is not known
        self._sessions = 1  # that a run would have
        self._cipher = ""
        self._channels = 1

    @property
    def findings(self) -> SpeedTestResult:
        return SpeedTestResult(
            measured=tuple(self._measured),
            here=self._here,
            there=self._about.machine,
            one_machine=self._about.one_machine,
            rung=self._capabilities.access,
            cipher=self._cipher,
            channels=self._channels,
            sessions=self._sessions,
            zstd=self._capabilities.zstd,
            unknown=tuple(self._unknown),
        )

    def measure(self) -> Generator[Measurement, None, None]:
        """Yield what is measured, one after the other; raises `Cancelled` where that is wanted.

        Nothing that was written is left, neither here nor on the server, however it ends.
        """
        with closing(self._measure()) as parts:
            for measured in parts:
                self._measured.append(measured)
                yield measured

    def _measure(self) -> Generator[Measurement, None, None]:
        remove_leftovers(self._subject.state)
        self._here = describe_here()
        budget, sample = self._budget, self._find_sample()
        yield from self._try("Checksums", partial(measure_checksums, budget))
        yield from self._try("The disk of this computer", partial(measure_source, sample, budget))
        yield from self._recall_records()
        yield from self._try("The way to the server", self._measure_way)
        yield from self._try("The API", partial(measure_api, self._subject.questions, budget))
        yield from self._try("Compression", partial(measure_compression, sample, budget))
        ciphers = self._subject.transfer.ciphers
        yield from self._try("Ciphers here", partial(measure_ciphers, ciphers, budget))
        self._here = self._here._replace(busy_after=measure_busy())

    def recall(self, found: SpeedTestResult) -> None:
        """Take what an earlier test has found, so that `prove` can do without a new one."""
        self._capabilities, self._here, self._sessions = (
            HostCapabilities(found.rung),
            found.here,
            found.sessions,
        )
        self._round_trip = found.value(StageResult.NETWORK, ROUND_TRIP) or 0.0
        self._measured, self._unknown = list(found.measured), list(found.unknown)

    def prove(self, settings: Transfer) -> Iterator[Measurement]:
        """Yield how fast files go with these settings, as a part of the test has already done.

        What the host allows is asked once more: it may be another one than that of an earlier test.
        """
        staging = self._subject.staging
        if staging is None or self._capabilities.access != "shell":
            return
        self._budget.begin()
        with closing(connect(staging.endpoint)) as session:
            self._capabilities = probe(session, staging.location)
            if self._capabilities.access != "shell":
                self._unknown.append(_NO_PROOF)
                return
            try:
                yield from self._carry(staging, settings)
            finally:
                self._leave_nothing(staging, session, clean_by_shell)

    def _leave_nothing(self, staging: ProbeFiles, session: SshSession, clean: Clean) -> None:
        """Remove what was written on the server, and say where that was not possible."""
        if not leave_nothing(staging, session, clean):
            self._unknown.append(
                f"{staging.folder} on the staging host could not be removed; the next test will."
            )

    def _try(self, what: str, part: Callable[[], Iterator[Measurement]]) -> Iterator[Measurement]:
        """Carry out a part of the test, unless its time has run out."""
        if self._is_late(what):
            return
        try:
            yield from part()
        except (UploaderError, OSError) as error:
            message = error.message if isinstance(error, UploaderError) else str(error)
            self._unknown.append(f"{what} could not be measured to the end: {message}")

    def _is_late(self, what: str) -> bool:
        """Return whether the time has run out, and say of what nothing will be known."""
        late = self._budget.spent()
        if late:
            self._unknown.append(f"{what}: there was no time left to measure this.")
        return late

    def _find_sample(self) -> FileSample:
        """Return files of the person's own, and say where there are none of a kind."""
        sample = find_sample(self._subject.root, self._budget.effort.files)
        kinds = (("large", len(sample.large), 1), ("tiny", len(sample.tiny), ENOUGH))
        for kind, found, needed in kinds:
            if found < needed:
                why = f"The data directory has too few {kind} files to tell how fast it reads them."
                self._unknown.append(why)
        return sample

    def _recall_records(self) -> Iterator[Measurement]:
        """Yield how fast the server makes records, as earlier runs tell: a test must make none."""
        if self._subject.records:
            yield Measurement(StageResult.API, RECORDS, Unit.FILES, self._subject.records)
        else:
            self._unknown.append(_NO_RECORDS)

    def _measure_way(self) -> Iterator[Measurement]:
        staging = self._subject.staging
        if staging is None:
            self._unknown.append(self._subject.why)
            return
        with closing(connect(staging.endpoint)) as session:
            self._capabilities = probe(session, staging.location)
            if self._capabilities.access == "shell":
                yield from self._measure_by_shell(staging, session)
            elif self._capabilities.access == "sftp":
                yield from self._measure_by_sftp(staging, session)
            else:
                self._unknown.append(_SCP_ONLY)

    def _measure_by_shell(self, staging: ProbeFiles, session: SshSession) -> Iterator[Measurement]:
        host, budget = RemoteHost(session, staging.location, staging.folder.encode()), self._budget
        host.clean()
        try:
            self._about = host.describe(self._capabilities.cpus)
            for measured in host.measure_round_trip(budget):
                self._round_trip = self._round_trip or measured.value
                yield measured
            with self._pumps(staging) as pumps:
                yield from self._flood(pumps)
                disk = partial(host.measure_disk, budget, self._capabilities.tar)
                yield from self._try("The disk of the server", disk)
                spared = self._budget.effort.flood * len(self._subject.transfer.ciphers)
                together = partial(self._carry, staging, self._subject.transfer, spared)
                yield from self._try("All together", together)
                yield from self._compare_ciphers(pumps)
        finally:
            self._leave_nothing(staging, session, clean_by_shell)

    def _measure_by_sftp(self, staging: ProbeFiles, session: SshSession) -> Iterator[Measurement]:
        self._unknown.append(_WITHOUT_SHELL)
        clean_by_sftp(staging, session)
        self._round_trip = session.open_sftp().round_trip
        try:
            with self._pumps(staging) as pumps:
                yield from self._flood(pumps, name_files(staging))
                yield from self._compare_ciphers(pumps, name_files(staging))
        finally:
            self._leave_nothing(staging, session, clean_by_sftp)

    def _pumps(self, staging: ProbeFiles) -> FloodPool:
        self._sessions = self._count_sessions(self._round_trip)
        return FloodPool(
            staging.endpoint,
            self._budget,
            sessions=self._sessions,
            round_trip=self._round_trip,
        )

    @property
    def _near(self) -> int:
        """How many sessions a run would have over a short way."""
        return self._count_sessions(0.0)

    def _count_sessions(self, round_trip: float) -> int:
        here = self._here.cpus or 1
        return count_sessions([here, self._capabilities.cpus or here], round_trip)

    def _flood(self, pumps: FloodPool, files: tuple[bytes, ...] = ()) -> Iterator[Measurement]:
        set_up: list[float] = []
        for channels in self._counts(pumps.sessions):
            if self._is_late(flooded(channels)):
                break
            try:
                flow = self._flood_as_granted(pumps, channels, files)
            except UploaderError as error:
                if channels == 1:
                    raise
                self._unknown.append(f"{flooded(channels)}: {error.message}")
                break
            self._cipher = flow.cipher or self._subject.transfer.ciphers[0]
            set_up += flow.set_up
            yield _tell(StageResult.CHANNELS, flooded(channels), flow)
        if set_up:
            yield Measurement(StageResult.NETWORK, SET_UP, Unit.SECONDS, tuple(set_up))

    def _flood_as_granted(
        self, pumps: FloodPool, channels: int, files: tuple[bytes, ...]
    ) -> FloodSpec:
        """Flood; where a session that only a long way wants is refused, share the others."""
        try:
            return pumps.flood(channels, files=files)
        except TransientError:
            if self._sessions == self._near:
                raise
            pumps.sessions = self._sessions = self._near
            return pumps.flood(channels, files=files)

    def _compare_ciphers(
        self, pumps: FloodPool, files: tuple[bytes, ...] = ()
    ) -> Iterator[Measurement]:
        """Yield how each cipher does, near by at the best of several sessions.

        A session's processes work on one core, where the next one's may work on two, which costs
        more than ciphers differ. Over a long way it costs time to begin one.
        """
        sessions = _SESSIONS if self._round_trip < _CLOSE else 1
        for cipher in self._subject.transfer.ciphers:
            if self._is_late(cipher):
                break
            try:
                flows = [pumps.flood(1, (cipher,), files, 1 / sessions) for _ in range(sessions)]
            except UploaderError as error:
                self._unknown.append(f"{cipher}: {error.message}")
            else:
                yield _tell(
                    StageResult.CIPHER, cipher, max(flows, key=lambda flow: median(flow.looks))
                )

    def _counts(self, sessions: int) -> list[int]:
        counts = {*_COUNTS, self._subject.transfer.channels} - {0}
        return sorted(count for count in counts if count <= sessions * STREAMS)

    def _carry(
        self, staging: ProbeFiles, settings: Transfer, spared: int = 0
    ) -> Iterator[Measurement]:
        """Yield how fast files go as a run sends them; so many bytes are for what comes then."""
        self._channels = channels = find_way(self.findings, settings).channels
        floods = self.findings.floods()
        disk = self.findings.value(StageResult.SERVER_DISK, LARGE_FILES) or inf
        rate = min(disk, max((one.value for one in floods.values()), default=0.0))
        pace = self.findings.value(StageResult.SERVER_DISK, TINY_FILES) or inf
        wish = EndToEndTest(staging.folder, channels, rate, pace, SLOW * self._round_trip, spared)
        going = carry(staging.open_transport, settings, wish, self._subject.state, self._budget)
        self._channels = yield from going


def _tell(stage: StageResult, what: str, flow: FloodSpec) -> Measurement:
    return Measurement(stage, what, Unit.BYTES, flow.looks, flow.cost)
