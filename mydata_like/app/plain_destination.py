"""A destination without a server: a host, folder or bucket, with a manifest beside the bytes."""

import hashlib
import os
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias, TypeVar, Union, cast

from mydata_like.app.host_login import SHELL, find_host
from mydata_like.app.identity import ensure_uuid
from mydata_like.app.known_copies import COPIES, KNOWN_ID, note_address, note_evidence
from mydata_like.app.run_destination import OpenedDestination, RunBasis, RunDestination
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import find_places, find_state
from mydata_like.app.transports.connection_steps import UNMEASURED
from mydata_like.app.transports.remembered_hosts import RememberedHosts
from mydata_like.catalogues.manifest.manifest_catalogue import ManifestCatalogue, identify
from mydata_like.catalogues.manifest.segments import (
    MARKER,
    TEMPORARY,
    DestinationMarker,
    Manifest,
    format_marker,
)
from mydata_like.catalogues.manifest.stored_view import (
    BOX,
    Losses,
    ManifestContext,
    find_relied,
)
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import (
    BucketTarget,
    CopySource,
    CopyTarget,
    FolderTarget,
    HostTarget,
)
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.destination_files import (
    DESTINATION_MARKER,
    OWN_FOLDER,
    DestinationFiles,
    ListedPart,
    ProvenFile,
    StoredFile,
    TreeFolder,
    TreeLink,
)
from mydata_like.core.errors import (
    Problem,
    RejectedError,
    ServerUnavailableError,
    SettingsError,
    StagingError,
    UploaderError,
)
from mydata_like.core.events import Notice, RunFinished
from mydata_like.core.extra_sources import source_key
from mydata_like.core.file_access import system_path
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.hashing import LANES
from mydata_like.core.model import DatasetFolder, StagingArea
from mydata_like.core.openat import join
from mydata_like.core.ports import Clock, Emit, Transport
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import ahead, begin, settle
from mydata_like.engine.walk import refuse_destination
from mydata_like.settings.atomic_write import make_private_folder
from mydata_like.settings.schema import Settings, Transfer
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import STANDARD_PORT
from mydata_like.ssh.login import Prompts as Prompts
from mydata_like.ssh.session import Endpoint
from mydata_like.ssh.sftp import open_on
from mydata_like.state.state_files import HOSTS
from mydata_like.transfer.destination_problems import ABSENT
from mydata_like.transfer.folder.folder_session import FolderDestination
from mydata_like.transfer.folder.mounted_files import LocalFiles
from mydata_like.transfer.pool import StagingTransport
from mydata_like.transfer.ssh.host_files import HostFiles
from mydata_like.transfer.ssh.host_programs import HostPrograms
from mydata_like.transfer.ssh.sftp_files import SftpFiles
from mydata_like.transfer.ssh.staging_host import StagingHost
from mydata_like.transfer.worker_process import WorkerStarter

if TYPE_CHECKING:
    from mydata_like.app.bucket_place import BucketPlace
    from mydata_like.app.transports.transport_access import OpenDestination

RESERVED: Final = Problem(
    "skipped.destination",
    "The destination has a folder of this name for its own list of what is there.",
    "Rename the folder to send it.",
)
SEGMENTS: Final = "segments"  # the ledger's key for the number of our newest segment
PARTS_AHEAD: Final = 2000  # of a listing that are kept in memory, of 8 KB each
SESSIONS_AHEAD: Final = 2  # that list folders while the run starts
SHARED_CHANNELS: Final = 3  # over one session; hosts often allow ten, and other work needs some


@frozen()
class HostPlace:
    """A folder on a host; the `endpoint` is that of a login that has worked.

    Unless its `evidence` is `host`, its files are reached over SFTP; see `DestinationFiles`.
    `notes` are sentences on what of the user's SSH configuration was not evaluated. What was
    `found` are the host's programs for checksums; its other `programs` are asked for again if they
    are not known.
    """

    endpoint: Endpoint
    path: bytes
    evidence: str = "host"
    notes: tuple[str, ...] = ()
    found: HostCapabilities = SHELL
    programs: HostPrograms | None = None

    @property
    def reads_back(self) -> bool:
        """Whether proving files transfers them back to this computer."""
        return self.evidence != "host"

    @property
    def name(self) -> str:
        """Its name in messages."""
        endpoint = self.endpoint
        port = f":{endpoint.port}" if endpoint.port != STANDARD_PORT else ""
        return f"{endpoint.username}@{endpoint.host}{port}:{format_path(self.path)}"

    identity = name  # for the ledger

    def probe(self) -> Self:
        """Return the place: what it can do is known."""
        return self

    def open_files(self) -> DestinationFiles:
        """Return the access to its files; no session is open yet."""
        return self.opener()

    @property
    def opener(self) -> Callable[[], DestinationFiles]:
        """What `open_files` calls; small enough to be pickled."""
        if self.reads_back:
            flushes = self.evidence == "read-back"
            return partial(SftpFiles, partial(connect, self.endpoint), self.path, flushes=flushes)
        log_in = partial(StagingHost(self.endpoint, self.path).connect, self.found, confirms=False)
        at_once = LANES if self.endpoint.receives_much else 2
        return partial(HostFiles, log_in, self.path, self.programs, at_once)

    def for_much(self) -> Self:
        """Return the same place for sessions that receive much."""
        return replace(self, endpoint=self.endpoint._replace(receives_much=True))

    @property
    def readers(self) -> int:
        """How many sessions read files from it at once."""
        return 2 if self.is_shared else 4

    def open_above(self, files: DestinationFiles) -> tuple[Self, DestinationFiles] | None:
        """Return the folder above, and the same session for its files; None for the top."""
        above = self.path.rstrip(b"/").rpartition(b"/")[0] or b"/"
        if above == self.path:
            return None
        assert isinstance(files, HostFiles | SftpFiles)
        files.relocate(above)
        return replace(self, path=above), files

    def find_free(self) -> int | None:
        """Return the bytes that are free for new files; None if the host does not tell."""
        try:
            with closing(connect(self.endpoint)) as session:
                return open_on(session).find_free(self.path)
        except RejectedError:
            return None

    def find_measured(
        self, access: "TransportParts", folder: str
    ) -> "tuple[OpenDestination | None, str]":
        """Return what a speed test measures, in a `folder` of its own."""
        # Only a speed test needs it.
        from mydata_like.speedtest.remote_host import RemoteHost

        host, open_pool = StagingHost(self.endpoint, self.path), partial(_open_pool, self, access)
        return partial(RemoteHost, host, folder, open_pool), ""

    def open_transport(self, access: "TransportParts") -> StagingTransport:
        """Return the transport to it; no channel is open yet."""
        endpoint = self.endpoint
        area = StagingArea(
            box=BOX,
            location=os.fsdecode(self.path),
            username=endpoint.username,
            hosts=(endpoint.host,),
            port=endpoint.port,
        )
        return StagingTransport(
            area,
            access.settings.transfer,
            build=lambda _: [StagingHost(endpoint, self.path)],
            emit=access.emit,
            owner=access.owner,
            algorithm=access.algorithm,
            memory=RememberedHosts(access.state / HOSTS.replace("*", "copies"), area, access.clock),
            starter=_share_session() if self.is_shared else access.workers,
        )

    @property
    def is_shared(self) -> bool:
        """Whether all sessions use one login of this process."""
        credentials = self.endpoint.credentials
        return credentials is not None and self.endpoint.account in credentials.logins


@frozen()
class FolderPlace:
    """A folder that is mounted here."""

    path: bytes
    notes: tuple[str, ...] = ()

    @property
    def reads_back(self) -> bool:
        return False

    @property
    def name(self) -> str:
        """Its name in messages."""
        return format_path(self.path)

    identity = name  # for the ledger

    def probe(self) -> Self:
        """Return the place: what it can do is known."""
        return self

    def open_files(self) -> LocalFiles:
        """Return the access to its files."""
        return LocalFiles(self.path)

    @property
    def readers(self) -> int:
        """How many threads read files from it at once."""
        return 2

    def open_above(self, files: DestinationFiles) -> tuple[Self, DestinationFiles] | None:
        """Return the folder above, and its files; None for the top of a file system."""
        above = self.path.rpartition(b"/")[0]
        place = replace(self, path=above or b"/")
        return (place, place.open_files()) if self.path.strip(b"/") else None

    def find_free(self) -> int:
        """Return the bytes that are free for new files."""
        return shutil.disk_usage(system_path(self.path)).free

    def find_measured(
        self, access: "TransportParts", folder: str
    ) -> "tuple[OpenDestination | None, str]":
        """Return what a speed test measures, in a `folder` of its own."""
        # Only a speed test needs it.
        from mydata_like.speedtest.mounted_folder import MountedFolder

        with closing(self.open_files()) as files:
            files.open(create=False)
            marker = files.read(MARKER)
        if marker is None:
            return None, f"{UNMEASURED}: no run has sent anything to it yet."
        mounted = FolderDestination(self.path, BOX, "", MARKER, marker)
        stall_timeout = access.settings.transfer.stall_timeout
        open_pool = partial(_open_pool, self, access._replace(marker=marker))
        return partial(MountedFolder, mounted, stall_timeout, folder, open_pool), ""

    def open_transport(self, access: "TransportParts") -> StagingTransport:
        """Return the transport to it; no channel is open yet."""
        folder = FolderDestination(self.path, BOX, "", MARKER, access.marker)
        area = StagingArea(box=BOX, location=os.fsdecode(self.path), username="", hosts=())
        return StagingTransport(
            area,
            access.settings.transfer,
            build=lambda _: [folder],
            emit=access.emit,
            owner=access.owner,
            algorithm=access.algorithm,
            starter=access.workers,
        )


Place: TypeAlias = Union[HostPlace, FolderPlace, "BucketPlace"]


def _share_session() -> WorkerStarter:
    """Return what starts the worker of the only session, in this process."""
    # Imported late: this is needed for few hosts.
    from mydata_like.transfer.worker_thread import start_thread

    return WorkerStarter(start_thread, most=SHARED_CHANNELS)


def open_target(
    target: CopyTarget,
    config: Path | None,
    accepted_keys: tuple[str, ...] = (),
    prompts: Prompts | None = None,
    transfer: Transfer | None = None,
) -> Place:
    """Return a destination after a login on its host; raises `UploaderError`.

    `accepted_keys` are fingerprints of host keys that are trusted. The `prompts` ask about others,
    and for passphrases, passwords and codes. The settings for the `transfer` name a key file,
    ciphers and timeouts.
    """
    match target:
        case HostTarget():
            return HostPlace(*find_host(target, config, accepted_keys, prompts, transfer))
        case FolderTarget(path=path):
            return FolderPlace(source_key(Path(os.fsdecode(path))))
        case BucketTarget():
            # Only a bucket needs it.
            from mydata_like.app.bucket_place import BucketPlace

            return BucketPlace.find(target)


class TransportParts(NamedTuple):
    """What a transport is opened with; a folder is only used if its marker has this content."""

    settings: Settings
    emit: Emit
    owner: str
    state: Path
    clock: Clock
    workers: WorkerStarter | None = None
    marker: bytes = b""
    algorithm: Algorithm = Algorithm.MD5


def _open_pool(
    place: HostPlace | FolderPlace, access: TransportParts, transfer: Transfer
) -> StagingTransport:
    """Return the transport with other settings."""
    settings = Settings.of(vars(access.settings) | {"transfer": transfer})
    return place.open_transport(access._replace(settings=settings))


T = TypeVar("T", bound=Transport)


def _prepare(transport: T, basis: RunBasis) -> T:
    """Return a transport that is closed with the run, and log in if there is something to send."""
    basis.stack.callback(transport.close)
    if basis.workers.is_expected:
        transport.prepare()
    return transport


class NewDestination:
    """The files of a destination that does not exist, for a preview."""

    evidence = "host"
    attributes_complete = True
    has_temporary_names = True
    algorithm = Algorithm.MD5

    def use(self, algorithm: Algorithm) -> None:
        self.algorithm = algorithm

    def list_parts(self, folder: bytes) -> Iterator[ListedPart]:
        return iter(())

    def look(self, paths: Sequence[bytes]) -> list[StoredFile | None]:
        return [None] * len(paths)

    def prove(self, paths: Sequence[bytes]) -> list[ProvenFile | None]:
        return [None] * len(paths)

    def read(self, path: bytes) -> bytes | None:
        return None

    def list_own(self, folder: bytes) -> list[bytes]:
        return []


class PlainDestination(RunDestination):
    """A host, folder or bucket that gets files as they are, with a manifest beside them.

    With `accept_missing` it may have lost what earlier runs had put there, or its marker. With
    `overwrite`, files of others are replaced, and kept for a time. Without an `algorithm`, that of
    the destination is used.
    """

    place: Place
    files: DestinationFiles
    digest: str  # of the destination, and of what is sent there

    def __init__(
        self,
        *,
        accept_missing: bool = False,
        overwrite: bool = False,
        algorithm: Algorithm | None = None,
    ) -> None:
        self._accept_missing = accept_missing
        self._overwrite = overwrite
        self._algorithm = algorithm
        self._marker = DestinationMarker()  # once it was read
        self._expected: dict[bytes, Iterator[ListedPart]] = {}  # listings under way, by their place

    @abstractmethod
    def find_place(self, folder: DatasetFolder) -> bytes | Mapping[bytes, bytes]:
        """Return where a dataset folder goes; see `ManifestCatalogue`."""

    @abstractmethod
    def is_top(self, folder: bytes) -> bool:
        """Return whether what is in a local folder goes to the top of the destination."""

    def list_folders(self) -> Sequence[bytes]:
        """Return the folders of the destination that are listed first, as far as they are known."""
        return ()

    @abstractmethod
    def list_tops(self) -> Iterable[bytes]:
        """Return the absolute paths of all folders and files that are sent."""

    def judge_own(self, path: bytes) -> Problem | None:
        """Return why a folder with the name of our own at a destination is not copied.

        Raises `SettingsError` if it is that of this destination, which is then in a source.
        """
        problem = refuse_destination(path)
        if problem is None and self.is_top(os.path.dirname(path)):  # noqa: PTH120 - bytes
            return RESERVED
        if problem is None or not self._marker.id:
            return problem
        content = Path(os.fsdecode(join(path, DESTINATION_MARKER))).read_bytes()
        if content == format_marker(self._marker):
            raise SettingsError(
                f"The destination {format_path(os.path.dirname(path))} is in a source, or a source "  # noqa: PTH120 - bytes
                "is in it.",
                hint="Choose a destination that is in no source and contains none.",
                code="destination.inside",
            )
        return problem

    def connect(
        self, request: RunRequest, observer: RunObserver, gate: Gate, stack: ExitStack
    ) -> RunRequest:
        self._request = request
        self.files = self.place.open_files()
        stack.callback(self.files.close)
        if isinstance(self.files, HostFiles):
            self.files.log_in_ahead(len(self.list_folders()))
        try:
            gate.call(lambda: self.files.open(create=not request.dry_run), staging=True)
        except (StagingError, ServerUnavailableError) as error:
            if not request.dry_run or error.problem_code != ABSENT:
                raise
            self.files = cast(DestinationFiles, NewDestination())
            return request
        if isinstance(self.files, HostFiles):
            cancel = observer.cancel.part()
            stack.callback(cancel.set)
            self._expected = {
                place: ahead(self.files.list_parts(place), cancel, PARTS_AHEAD)
                for place in self.list_folders()
            }
        return request

    def _list_parts(self, place: bytes) -> Iterable[ListedPart]:
        early = self._expected.pop(place, None)
        if early is not None:
            with suppress(UploaderError):  # as of a destination that was made only after that
                return chain(list(islice(early, 1)), early)
        return self.files.list_parts(place)

    def open(self, basis: RunBasis) -> OpenedDestination:
        request, ledger, gate, files = self._request, basis.ledger, basis.gate, self.files
        places, dry_run = find_places(request.config), request.dry_run
        uploader = ensure_uuid(request.settings, places)
        self._ledger = ledger
        known = "" if self._accept_missing else ledger.find_meta(KNOWN_ID) or ""
        emit = basis.observer.emit
        # Other computers may copy from a folder of the same path.
        own = f"{uploader[:8]}-{self.digest}"
        manifest = Manifest(
            files,
            own,
            report=lambda problem: emit(Notice(problem=problem)),
            note=lambda number: ledger.record_meta(SEGMENTS, str(number)),
            rest=gate.rest,
        )
        last = int(ledger.find_meta(SEGMENTS) or 0)
        needed = {f"{own}/{number:06d}" for number in range(1, last + 1)} | find_relied(ledger)
        find_segments = begin(
            lambda: gate.call(manifest.find_segments, staging=True) if needed else set[str]()
        )
        basis.stack.callback(settle, find_segments)
        parts = TransportParts(
            request.settings,
            emit,
            uploader,
            find_state(request.settings, places),
            basis.clock,
            basis.workers,
        )
        early: StagingTransport | None = None
        if isinstance(self.place, HostPlace):  # the first channel logs in during what follows
            early = _prepare(self.place.open_transport(parts), basis)
        found = gate.call(
            lambda: identify(files, known, self._algorithm, create=not dry_run), staging=True
        )
        if found.id and not dry_run:
            note_evidence(ledger, files.evidence)
            ledger.record_meta(KNOWN_ID, found.id)
        self._marker = found
        self._refuse_inside()
        self.temporary = TEMPORARY + own.encode() + b"/" if files.has_temporary_names else b""
        segments = find_segments()
        self.context = ManifestContext(
            files,
            manifest,
            ledger,
            gate,
            emit,
            self.temporary,
            Losses(),
            self._accept_missing,
            segments >= needed,
            self._overwrite,
        )
        if early:
            early.algorithm = found.algorithm
        parts = parts._replace(marker=format_marker(found), algorithm=found.algorithm)
        transport = early or _prepare(self.place.open_transport(parts), basis)
        if ledger.find_replacements():
            self._expected.clear()  # the destination changes before it is compared
        catalogue = ManifestCatalogue(self.context, self.find_place, self._list_parts)
        return OpenedDestination(
            catalogue,
            transport,
            BOX,
            can_replace=True,
            algorithm=found.algorithm,
            can_rename=files.has_temporary_names,
        )

    def _refuse_inside(self) -> None:
        """Raise `SettingsError` if a source is in the destination."""
        for above in self.list_tops():
            while above.rpartition(b"/")[0]:
                self.judge_own(join(above, OWN_FOLDER))
                above = above.rpartition(b"/")[0]

    def clear(self, *, everything: bool) -> None:
        """Remove empty temporary folders; with `everything`, also files that nothing will use."""
        folder = self.temporary.rstrip(b"/")
        with suppress(UploaderError):  # left to the next copy
            if not (self.files.clear(folder) and everything and folder):
                return
            if left := self.files.list_own(folder):
                self.files.remove([self.temporary + name for name in left])
                self.files.clear(folder)

    def report(self, finished: RunFinished) -> None:
        """Do nothing: the manifest says what is there."""


class CopyDestination(PlainDestination):
    """The destination of one copy, and its sources.

    Its ledger and lock are in a folder of the state, by destination and by the folders that the
    sources are in.
    """

    awaits_writers = False  # the user has asked for all files now

    def __init__(
        self,
        place: Place,
        sources: Sequence[CopySource],
        shard: Shard = WHOLE,
        *,
        address: str,
        accept_missing: bool = False,
        overwrite: bool = False,
        algorithm: Algorithm | None = None,
    ) -> None:
        super().__init__(accept_missing=accept_missing, overwrite=overwrite, algorithm=algorithm)
        self.place = place
        self._address = address
        self.in_process = isinstance(place, HostPlace)
        self._places = {source.path: source.place for source in sources}
        self._folders = [source.place for source in sources if not source.alone]
        self._shard = shard

    def find_root(self, request: RunRequest) -> bytes:
        parents = sorted(
            {path.rpartition(b"/")[0] if place else path for path, place in self._places.items()}
        )
        names = [self.place.identity.encode("utf-8", "surrogateescape"), *parents]
        text = b"\0".join([*names, str(self._shard).encode()])
        self.digest = hashlib.sha256(text).hexdigest()[:16]
        folder = find_state(request.settings, find_places(request.config)) / COPIES / self.digest
        make_private_folder(folder)
        note_address(folder, self._address)
        return os.fsencode(folder)

    def check(self, request: RunRequest) -> None:
        """Do nothing: the arguments of the command were checked."""

    def find_place(self, folder: DatasetFolder) -> bytes | Mapping[bytes, bytes]:
        return self._places.get(folder.path, self._places)

    def is_top(self, folder: bytes) -> bool:
        return self._places.get(source_key(Path(os.fsdecode(folder)))) == b""

    def list_folders(self) -> Sequence[bytes]:
        return self._folders[:SESSIONS_AHEAD]

    def list_tops(self) -> Iterable[bytes]:
        return self._places

    def make_tree(self, folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> list[Problem]:
        """Make folders and links after a run; return what cannot be made."""
        try:
            return self.context.repeat(lambda: self.files.make_tree(folders, links))
        except UploaderError as error:
            return [error.problem]
