"""One speed test: its target, the order of measurements, and which ones are left out.

A part that fails, or that the server does not allow, is reported and left out; the others continue.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, TransientError, UploaderError
from mydata_like.core.ports import CancelSignal
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.end_to_end import (
    EndToEndTest,
    OpenTransport,
    measure_end_to_end,
    remove_leftovers,
)
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
from mydata_like.speedtest.mounted_folder import MountedFolder, ProbeFolder
from mydata_like.speedtest.recommendations import choose_mode
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
from mydata_like.transfer.pool import count_sessions
from mydata_like.transfer.worker_messages import STREAMS
from mydata_like.transfer.worker_process import answering

CONNECTIONS: Final = (1, 2, 4)
_ANSWERS: Final = 5  # timed requests of each kind

Questions = Mapping[str, Callable[[], object]]  # requests to the API by name


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
                StageResult.API, connected(connections), Unit.REQUESTS, budget.sample(act)
            )


_MOST: Final = 32  # channels that the settings allow

Clean = Callable[["ProbeFiles", SshSession], None]


class ProbeFiles(NamedTuple):
    """The staging host, and the test's folder below its location."""

    endpoint: Endpoint
    location: bytes
    folder: str
    open_transport: OpenTransport


def name_files(staging: ProbeFiles) -> tuple[bytes, ...]:
    """Return the files that floods write on a host without a shell; always the same names."""
    prefix = staging.location.rstrip(b"/") + b"/" + staging.folder.encode()
    return tuple(b"%b-%d" % (prefix, number) for number in range(_MOST))


def clean_by_shell(staging: ProbeFiles, session: SshSession) -> None:
    """Remove the test files over a shell."""
    RemoteHost(session, staging.location, staging.folder.encode()).clean()


def clean_by_sftp(staging: ProbeFiles, session: SshSession) -> None:
    """Remove the files of floods on a host without a shell."""
    sftp = session.open_sftp()
    for name in name_files(staging):
        with suppress(RejectedError):
            sftp.remove(name)


def remove_files(staging: ProbeFiles, session: SshSession, clean: Clean) -> bool:
    """Remove the test files from the host, over a new session if the old one broke.

    Return whether they were removed; otherwise the next test removes them.
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
    """The target of a speed test: the data directory, the server's API and its staging area.

    The staging area is a host or, in its place, a mounted folder.

    Without `staging`, `why` is the reason. The test's own files are written to `state`. `records`
    has the files a second of earlier runs whose bottleneck was the API.
    """

    root: Path
    state: Path
    transfer: Transfer
    questions: Questions
    staging: ProbeFiles | ProbeFolder | None = None
    why: str = ""
    records: tuple[float, ...] = ()


_COUNTS: Final = (1, 2, 4, 8)
_SESSIONS: Final = 3  # sessions of which the best counts for a cipher, if the host is close
_CLOSE: Final = 0.005  # seconds of a round trip to a close host
_WITHOUT_SHELL: Final = (
    "The staging host allows no shell: its processors, its disk without the network, the round "
    "trip and tiny files could not be measured."
)
_NO_RECORDS: Final = (
    "The speed of registering and verifying was not measured, because a test must not leave "
    "records and no earlier run had to wait for it."
)
_NO_PROOF: Final = "The improvement was not measured: the staging host no longer allows a shell."
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
        self._unknown: list[str] = []
        self._here = NOT_TOLD
        self._about = HostInfo(NOT_TOLD, one_machine=False)
        self._capabilities = HostCapabilities("")
        self._round_trip = 0.0  # seconds; 0 if unknown
        self._sessions = 1  # that a run would open
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
        """Yield one measurement after the other. Raises `Cancelled` if the test is cancelled.

        All test files are removed, here and on the server, even after an error.
        """
        with closing(self._measure()) as parts:
            for measured in parts:
                self._measured.append(measured)
                yield measured

    def _measure(self) -> Generator[Measurement, None, None]:
        remove_leftovers(self._target.state)
        self._here = describe_here()
        budget, sample = self._budget, self._find_sample()
        yield from self._try("Checksums", partial(measure_checksums, budget))
        yield from self._try("The disk of this computer", partial(measure_source, sample, budget))
        yield from self._recall_records()
        ask = partial(measure_api, self._target.questions, budget)
        if isinstance(self._target.staging, ProbeFolder):
            yield from self._try("The API", ask)
            # It comes last, because a folder that hangs uses up the time of the test.
            measure = partial(self._measure_folder, self._target.staging)
            yield from self._try("The mounted folder", measure)
        else:
            connection = partial(self._measure_connection, self._target.staging)
            yield from self._try("The connection to the server", connection)
            yield from self._try("The API", ask)
            yield from self._try("Compression", partial(measure_compression, sample, budget))
            ciphers = self._target.transfer.ciphers
            yield from self._try("Ciphers here", partial(measure_ciphers, ciphers, budget))
        self._here = self._here._replace(busy_after=measure_busy())

    def recall(self, found: SpeedTestResult) -> None:
        """Load the results of an earlier test, so that `remeasure` needs no new one."""
        self._capabilities, self._here, self._sessions = (
            HostCapabilities(found.rung),
            found.here,
            found.sessions,
        )
        self._round_trip = found.value(StageResult.NETWORK, ROUND_TRIP) or 0.0
        self._measured, self._unknown = list(found.measured), list(found.unknown)

    def remeasure(self, settings: Transfer) -> Iterator[Measurement]:
        """Repeat the end-to-end measurement with these settings.

        The host's capabilities are read again, because they can have changed since an earlier test.
        """
        staging = self._target.staging
        self._budget.begin()
        if isinstance(staging, ProbeFolder):
            with self._open_folder(staging) as folder:
                yield from self._measure_in_folder(folder, staging, settings)
            return
        if staging is None or self._capabilities.access != "shell":
            return
        connecting = partial(connect, staging.endpoint)
        session, self._capabilities = probe(connecting, staging.location)
        with closing(session):
            if self._capabilities.access != "shell":
                self._unknown.append(_NO_PROOF)
                return
            try:
                yield from self._measure_end_to_end(
                    staging.folder, staging.open_transport, settings
                )
            finally:
                self._remove_files(staging, session, clean_by_shell)

    def _remove_files(self, staging: ProbeFiles, session: SshSession, clean: Clean) -> None:
        """Remove the test files from the host, or report that this failed."""
        if not remove_files(staging, session, clean):
            self._unknown.append(
                f"{staging.folder} on the staging host could not be removed; "
                "the next test removes it."
            )

    def _try(self, what: str, part: Callable[[], Iterator[Measurement]]) -> Iterator[Measurement]:
        """Yield the measurements of a part of the test, unless its time has run out."""
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

    def _recall_records(self) -> Iterator[Measurement]:
        """Yield the speed of creating records in earlier runs, since a test must create none."""
        if self._target.records:
            yield Measurement(StageResult.API, RECORDS, Unit.FILES, self._target.records)
        else:
            self._unknown.append(_NO_RECORDS)

    @contextmanager
    def _open_folder(self, staging: ProbeFolder) -> Iterator[MountedFolder]:
        """Yield the mounted folder; remove the test files from it at the end."""
        self._capabilities = HostCapabilities("folder")
        self._sessions = self._near
        with closing(MountedFolder(staging, self._budget, self._sessions)) as folder:
            self._capabilities = folder.open()
            try:
                yield folder
            finally:
                if not folder.remove():
                    self._unknown.append(
                        f"{staging.directory} in the folder could not be removed; "
                        "the next test removes it."
                    )

    def _measure_folder(self, staging: ProbeFolder) -> Iterator[Measurement]:
        with self._open_folder(staging) as folder:
            yield from folder.measure_rename()
            yield from folder.measure_large()
            for count in self._counts(self._sessions):
                if count > 1 and not self._is_late(flooded(count)):
                    yield from folder.measure_channels(count)
            channels = choose_mode(self.findings, self._target.transfer).channels
            if not self._is_late(TINY_FILES):
                yield from folder.measure_tiny(channels)
            together = partial(self._measure_in_folder, folder, staging, self._target.transfer)
            yield from self._try("All together", together)

    def _measure_in_folder(
        self, folder: MountedFolder, staging: ProbeFolder, settings: Transfer
    ) -> Iterator[Measurement]:
        with folder.noting_silence(), answering(staging.folder):
            yield from self._measure_end_to_end(staging.directory, folder.open_transport, settings)

    def _measure_connection(self, staging: ProbeFiles | None) -> Iterator[Measurement]:
        if staging is None:
            self._unknown.append(self._target.why)
            return
        connecting = partial(connect, staging.endpoint)
        session, self._capabilities = probe(connecting, staging.location)
        with closing(session):
            if self._capabilities.access == "shell":
                yield from self._measure_by_shell(staging, session)
            elif self._capabilities.in_place:
                self._unknown.append(_IN_PLACE)
            else:
                yield from self._measure_by_sftp(staging, session)

    def _measure_by_shell(self, staging: ProbeFiles, session: SshSession) -> Iterator[Measurement]:
        host, budget = RemoteHost(session, staging.location, staging.folder.encode()), self._budget
        host.clean()
        try:
            self._about = host.describe(self._capabilities.cpus)
            for measured in host.measure_round_trip(budget):
                self._round_trip = self._round_trip or measured.value
                yield measured
            with self._open_pool(staging) as pool:
                yield from self._flood(pool)
                disk = partial(host.measure_disk, budget, self._capabilities.tar)
                yield from self._try("The disk of the server", disk)
                spared = self._budget.effort.flood * len(self._target.transfer.ciphers)
                together = partial(
                    self._measure_end_to_end,
                    staging.folder,
                    staging.open_transport,
                    self._target.transfer,
                    spared,
                )
                yield from self._try("All together", together)
                yield from self._compare_ciphers(pool)
        finally:
            self._remove_files(staging, session, clean_by_shell)

    def _measure_by_sftp(self, staging: ProbeFiles, session: SshSession) -> Iterator[Measurement]:
        self._unknown.append(_WITHOUT_SHELL)
        clean_by_sftp(staging, session)
        self._round_trip = session.open_sftp().round_trip
        try:
            with self._open_pool(staging) as pool:
                yield from self._flood(pool, name_files(staging))
                yield from self._compare_ciphers(pool, name_files(staging))
        finally:
            self._remove_files(staging, session, clean_by_sftp)

    def _open_pool(self, staging: ProbeFiles) -> FloodPool:
        self._sessions = self._count_sessions(self._round_trip)
        return FloodPool(
            staging.endpoint,
            self._budget,
            sessions=self._sessions,
            round_trip=self._round_trip,
        )

    @property
    def _near(self) -> int:
        """The number of sessions that a run would open to a close host."""
        return self._count_sessions(0.0)

    def _count_sessions(self, round_trip: float) -> int:
        here = self._here.cpus or 1
        return count_sessions([here, self._capabilities.cpus or here], round_trip)

    def _flood(self, pool: FloodPool, files: tuple[bytes, ...] = ()) -> Iterator[Measurement]:
        set_up: list[float] = []
        for channels in self._counts(pool.sessions):
            if self._is_late(flooded(channels)):
                break
            try:
                flow = self._flood_as_granted(pool, channels, files)
            except UploaderError as error:
                if channels == 1:
                    raise
                self._unknown.append(f"{flooded(channels)}: {error.message}")
                break
            self._cipher = flow.cipher or self._target.transfer.ciphers[0]
            set_up += flow.set_up
            yield _measurement(StageResult.CHANNELS, flooded(channels), flow)
        if set_up:
            yield Measurement(StageResult.NETWORK, SET_UP, Unit.SECONDS, tuple(set_up))

    def _flood_as_granted(
        self, pool: FloodPool, channels: int, files: tuple[bytes, ...]
    ) -> FloodSpec:
        """Flood; if the host refuses the extra sessions for a long distance, share the others."""
        try:
            return pool.flood(channels, files=files)
        except TransientError:
            if self._sessions == self._near:
                raise
            pool.sessions = self._sessions = self._near
            return pool.flood(channels, files=files)

    def _compare_ciphers(
        self, pool: FloodPool, files: tuple[bytes, ...] = ()
    ) -> Iterator[Measurement]:
        """Yield the speed of each cipher; for a close host, the best of several sessions.

        The two processes of a session can share one core or run on two. That makes a larger
        difference than the cipher does. To a distant host, further sessions take too long to open.
        """
        sessions = _SESSIONS if self._round_trip < _CLOSE else 1
        for cipher in self._target.transfer.ciphers:
            if self._is_late(cipher):
                break
            try:
                flows = [pool.flood(1, (cipher,), files, 1 / sessions) for _ in range(sessions)]
            except UploaderError as error:
                self._unknown.append(f"{cipher}: {error.message}")
            else:
                yield _measurement(
                    StageResult.CIPHER, cipher, max(flows, key=lambda flow: median(flow.samples))
                )

    def _counts(self, sessions: int) -> list[int]:
        counts = {*_COUNTS, self._target.transfer.channels} - {0}
        return sorted(count for count in counts if count <= sessions * STREAMS)

    def _measure_end_to_end(
        self, folder: str, open_transport: OpenTransport, settings: Transfer, spared: int = 0
    ) -> Iterator[Measurement]:
        """Yield the end-to-end measurement; keep `spared` bytes of the budget for later ones."""
        self._channels = channels = choose_mode(self.findings, settings).channels
        floods = self.findings.floods()
        disk = self.findings.value(StageResult.SERVER_DISK, LARGE_FILES) or inf
        rate = min(disk, max((one.value for one in floods.values()), default=0.0))
        whole = self.findings.in_folder
        stage = StageResult.FOLDER if whole else StageResult.SERVER_DISK
        pace = self.findings.value(stage, TINY_FILES) or inf
        slow = SLOW * self._round_trip
        plan = EndToEndTest(folder, channels, rate, pace, slow, spared, whole)
        measuring = measure_end_to_end(
            open_transport, settings, plan, self._target.state, self._budget
        )
        self._channels = yield from measuring


def _measurement(stage: StageResult, what: str, flow: FloodSpec) -> Measurement:
    return Measurement(stage, what, Unit.BYTES, flow.samples, flow.cost)
