"""A MyTardis server, and what it has of files that are wanted, by the ledger or by its records."""

import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from mydata_like.app.connection import require_server
from mydata_like.app.identity import find_uuid
from mydata_like.app.settings_service import (
    find_api_key,
    find_places,
    load_settings,
    open_secrets,
)
from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.server_check import list_endings
from mydata_like.core.destination_files import DestinationFiles, StoredContent, Unpack
from mydata_like.core.errors import (
    ArchiveError,
    NotApprovedError,
    Problem,
    RejectedError,
    SettingsError,
    TransientError,
    UploaderError,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.model import Datafile, DatafileId, Dataset, DatasetId, Entry, ExperimentId
from mydata_like.core.parsing import find_moment
from mydata_like.core.ports import CancelSignal
from mydata_like.core.staging_path import dataset_folder
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings
from mydata_like.transfer.archive_reader import read_members
from mydata_like.transfer.folder.received_files import WantedFile
from mydata_like.transfer.tar import is_plain

if TYPE_CHECKING:
    from mydata_like.app.plain_destination import HostPlace

READERS: Final = 4  # files that are read at once; each occupies a process of the server
ATTEMPTS: Final = 3  # to read a file from the same byte on, as long as the server works otherwise
MANY: Final = 200  # files for which the staging host is asked,
LARGE: Final = 64 * 1024 * 1024  # or bytes of them
MOVED: Final = Problem(
    "staging.moved", "The server has moved these files away from its staging area."
)
NOT_APPROVED: Final = NotApprovedError(
    "This computer has no access to the server's staging area over SSH.",
    hint="Ask for it with: mydata-like register",
)
_CHECKSUM: Final = re.compile(r"[0-9a-f]{32}")


class StoredAt(NamedTuple):
    """Where a server has the `size` bytes of a file; the ledger may not know the datafile.

    The datafile is an archive if there is a `key`, the path of the file here: its name in the
    archive is the end of that.
    """

    datafile: DatafileId | None
    size: int
    key: bytes = b""


class RecordFiles:
    """The content of files on a server, by their paths; what `DestinationFiles` has for reading."""

    concurrent = 1
    is_near = False

    def __init__(self, client: ApiClient, stored: Mapping[bytes, StoredAt]) -> None:
        self._client = client
        self._stored = stored
        self._ended = set[DatafileId | None]()  # archives that have nothing else that is wanted
        self._broken = Counter[tuple[DatafileId, int]]()  # attempts, by datafile and first byte

    @contextmanager
    def open_content(self, path: bytes, offset: int = 0) -> Iterator[StoredContent | None]:
        """Open a file for reading from an offset on; None if the server does not return it."""
        datafile, size, key = self._stored[path]
        if offset == size:
            yield StoredContent(path, iter(()))
            return
        if key:
            with closing(self._open_members(datafile, [path])) as found:
                content = next(found, None)
                yield content and content._replace(pieces=_skip(content.pieces, offset))
            return
        with self._open(datafile, offset) as pieces:
            yield None if pieces is None else StoredContent(path, pieces)

    def open_contents(
        self, paths: Sequence[bytes], unpack: Unpack | None = None
    ) -> Iterator[StoredContent]:
        """Yield small files, one after the other; what the server refuses is omitted.

        All that is wanted of an archive is to be asked for at once.
        """
        archives = defaultdict[DatafileId | None, list[bytes]](list)
        for path in paths:
            datafile, size, key = self._stored[path]
            if key:
                archives[datafile].append(path)
                continue
            with suppress(RejectedError), self._open(datafile) as pieces:
                if pieces is not None:
                    # Read here, so that an error is one of this file.
                    yield StoredContent(path, iter((_join(pieces, size),)))
        for archive, members in archives.items():
            yield from self._open_members(archive, members)
            self._ended.add(archive)

    def _open_members(
        self, archive: DatafileId | None, paths: Sequence[bytes]
    ) -> Generator[StoredContent, None, None]:
        """Yield files of an archive, which is read once; those that it lacks are omitted."""
        if archive in self._ended:
            return
        stored = self._stored
        wanted = {
            ending: path
            for path in sorted(paths, key=lambda it: len(stored[it].key), reverse=True)
            for ending in list_endings(stored[path].key)
        }
        left = set(paths)
        with suppress(RejectedError, ArchiveError), self._open(archive) as pieces:
            for name, size, content in read_members(pieces or ()):
                # The first folder is the dataset's own, which may have been renamed.
                path = wanted.get(name, wanted.get(name.partition(b"/")[2], b""))
                if path in left and size == stored[path].size:
                    left.remove(path)
                    yield StoredContent(path, iter((_join(content, size),)))
                if not left:
                    return

    def close(self) -> None:
        self._client.close()

    @contextmanager
    def _open(
        self, datafile: DatafileId | None, offset: int = 0
    ) -> Iterator[Iterator[bytes] | None]:
        """Open the bytes of a datafile; None if the server does not have them.

        A file that cannot be read on from the same byte, again and again, is refused, unless the
        server does not answer other requests either.
        """
        if datafile is None:
            yield None
            return
        path = f"dataset_file/{datafile}/download/"
        try:
            with self._client.open(path, offset) as (begin, pieces):
                yield _skip(pieces, offset - begin)
        except RejectedError as error:
            if error.problem_code != "server.not-found":
                raise
            yield None
        except TransientError as error:
            self._broken[datafile, offset] += 1
            if self._broken[datafile, offset] < ATTEMPTS:
                raise
            self._client.prove(within=0)
            raise RejectedError(error.message, hint=error.hint, code=error.problem_code) from error


def _skip(pieces: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield pieces without the first bytes of all."""
    for piece in pieces:
        if len(piece) > size:
            yield piece[size:]
        size = max(0, size - len(piece))


def _join(pieces: Iterator[bytes], size: int) -> bytes:
    """Return the content of pieces, but not much more than a size."""
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > size:
            break
    return bytes(content)


class StagedFiles(RecordFiles):
    """The content of files on a server; of those that are `staged`, a host is asked first.

    These have paths there. Files that the host does not have come from the server.
    """

    def __init__(
        self,
        client: ApiClient,
        stored: Mapping[bytes, StoredAt],
        host: DestinationFiles,
        staged: Mapping[bytes, bytes],
    ) -> None:
        super().__init__(client, stored)
        self._host = host
        self._staged = staged

    @contextmanager
    def open_content(self, path: bytes, offset: int = 0) -> Iterator[StoredContent | None]:
        """Open a file for reading from an offset on; None if nobody returns it."""
        with ExitStack() as stack:
            content, there = None, self._staged.get(path)
            if there is not None:
                content = stack.enter_context(self._host.open_content(there, offset))
            if content is None:
                content = stack.enter_context(super().open_content(path, offset))
            yield content and content._replace(path=path, mode=None)

    def open_contents(
        self, paths: Sequence[bytes], unpack: Unpack | None = None
    ) -> Iterator[StoredContent]:
        """Yield small files, one after the other; what nobody returns is omitted."""
        wanted, came = dict[bytes, bytes](), set[bytes]()
        for path in paths:
            if there := self._staged.get(path):  # another thread may remove it
                wanted[there] = path
        for content in self._host.open_contents(list(wanted)) if wanted else ():
            path = wanted[content.path]
            came.add(path)
            yield content._replace(path=path, mode=None)
        yield from super().open_contents([it for it in paths if it not in came])

    def close(self) -> None:
        self._host.close()
        super().close()


@frozen()
class MyTardisPlace:
    """A MyTardis server; `stored` tells where it has the files that are wanted, by their paths.

    Those that are `staged` may also be on its staging `host`, at these paths. `note` says why files
    come from the server only, if that is slow.
    """

    name: str
    client: ApiClient
    stored: Mapping[bytes, StoredAt]
    host: "HostPlace | None" = None
    staged: dict[bytes, bytes] = field(default_factory=dict)
    note: Problem | None = None
    path: bytes = b""
    readers: int = READERS

    def open_above(self, files: DestinationFiles) -> None:
        """Return None: there is nothing above."""

    def open_files(self) -> DestinationFiles:
        """Return the access to the content of these files."""
        files = RecordFiles(self.client, self.stored)
        if self.host:
            files = StagedFiles(self.client, self.stored, self.host.open_files(), self.staged)
        return cast(DestinationFiles, files)

    def find_staged(
        self,
        places: Mapping[bytes, Mapping[str, str]],
        settings: Settings,
        config: Path | None,
        cancel: CancelFlag,
    ) -> "MyTardisPlace":
        """Return the place with its staging host, if the account may read there and that is faster.

        For each path, there are paths by the names of storage boxes, or for any box without a name.
        """
        size = sum(self.stored[path].size for path in places)
        if len(places) < MANY and size < LARGE:
            return self
        try:
            box, host = _open_staging(settings, config, cancel)
        except UploaderError as error:
            return replace(self, note=error.problem)
        found = {
            path: os.fsencode(boxes.get(box) or boxes.get("") or "")
            for path, boxes in places.items()
        }
        staged = {path: there for path, there in found.items() if is_plain(there)}
        return replace(self, host=host, staged=staged) if staged else replace(self, note=MOVED)


def _open_staging(
    settings: Settings, config: Path | None, cancel: CancelFlag
) -> "tuple[str, HostPlace]":
    """Return the approved storage box and its folder on a host; raises `UploaderError`."""
    # Only few commands need them.
    from mydata_like.app.host_login import ask_shell
    from mydata_like.app.plain_destination import HostPlace
    from mydata_like.app.run_connection import connected
    from mydata_like.app.run_request import RunObserver, RunRequest, build_gate
    from mydata_like.app.transports.ssh_kind import SshKind, list_endpoints
    from mydata_like.app.transports.transport_access import TransportAccess
    from mydata_like.app.transports.transport_kinds import find_kind

    over_ssh = isinstance(find_kind(settings), SshKind)
    if not (over_ssh and find_uuid(settings, find_places(config))):
        raise NOT_APPROVED
    observer = RunObserver(cancel=cancel)
    request = RunRequest(settings=settings, config=config, dry_run=True)
    with connected(request, observer, build_gate(request, observer, SystemClock())) as connection:
        access = TransportAccess(request, observer, connection)
        area = access.find_area()
        if area is None:
            raise NOT_APPROVED
        endpoint = list_endpoints(access, area)[0]
    facts, programs, _ = ask_shell(endpoint)
    evidence = "host" if facts else "read-back"
    return area.box, HostPlace(endpoint, os.fsencode(area.location), evidence, programs=programs)


Files = dict[bytes, WantedFile]
Problems = list[tuple[bytes, Problem]]


def open_known(
    known: Mapping[bytes, Entry], settings: Settings, config: Path | None, cancel: CancelFlag
) -> tuple[MyTardisPlace, Files]:
    """Return the server, and the files that the ledger knows to be verified, by their paths."""
    files = {
        path: WantedFile(
            path,
            path,
            it.size,
            it.checksum,
            it.modified_ns,
            (it.datafile or 0) if it.archive else 0,
        )
        for path, it in known.items()
    }
    stored = {
        path: StoredAt(it.datafile, it.size, it.key if it.archive else b"")
        for path, it in known.items()
    }
    client = _connect(settings, config, cancel)
    places = {path: {"": it.remote} for path, it in known.items() if it.remote and not it.archive}
    place = MyTardisPlace(settings.server.url, client, stored)
    return place.find_staged(places, settings, config, cancel), files


def list_records(
    kind: str,
    number: int,
    config: Path | None,
    cancel: CancelFlag,
    report: Callable[[int], None],
) -> tuple[MyTardisPlace, Files, Problems]:
    """Return the server, and the files of a dataset, or of an experiment with folders for each.

    Their paths are those of the records, which may be anything. In addition, it returns why others
    are not to be fetched. `report` is called with the number of files that are known so far. Raises
    `UploaderError`.
    """
    settings = load_settings(config).settings
    require_server(settings)
    client = _connect(settings, config, cancel)
    server = HttpServer(client)
    if server.is_gone(kind, number):
        raise SettingsError(
            f"The server has no {kind} {number}.",
            hint="Check the number: it is in the address of its page.",
            code="copy.source",
        )
    folders = {DatasetId(number): ""}
    if kind == "experiment":
        folders = _name_folders(server.list_datasets(ExperimentId(number)))
    files, problems, stored, clashes = Files(), Problems(), dict[bytes, StoredAt](), set[bytes]()
    places = dict[bytes, dict[str, str]]()
    for dataset, folder in folders.items():
        for record in server.list_datafiles(dataset):
            report(len(files))
            path = "/".join(filter(None, (folder, record.directory, record.name))).encode()
            file, other = _describe(path, record), files.get(path)
            if not (record.verified and _CHECKSUM.fullmatch(record.checksum)):
                problems.append((path, _describe_unverified(path)))
            elif other and (other.size, other.checksum) != (file.size, file.checksum):
                clashes.add(path)
            else:
                files[path], stored[path] = file, StoredAt(record.id, record.size)
                places[path] = {it.location: it.uri for it in record.replicas if it.verified}
    for path in clashes:
        del files[path], places[path]
        problems.append((path, _describe_clash(path)))
    place = MyTardisPlace(settings.server.url, client, stored)
    return place.find_staged(places, settings, config, cancel), files, problems


def _connect(settings: Settings, config: Path | None, cancel: CancelSignal) -> ApiClient:
    """Return the client of a server, which has accepted the account."""
    key, _ = find_api_key(settings, open_secrets(config))
    client = ApiClient(settings.server, key.reveal(), SystemClock(), cancel)
    client.prove()
    return client


def _name_folders(datasets: Sequence[Dataset]) -> dict[DatasetId, str]:
    """Return a folder for each dataset: its name if only it has that, or else name and number."""
    count = Counter(it.name.casefold() for it in datasets)
    return {
        it.id: it.name
        if is_plain(it.name.encode()) and "/" not in it.name and count[it.name.casefold()] == 1
        else dataset_folder(it.name, it.id)
        for it in datasets
    }


def _describe(path: bytes, record: Datafile) -> WantedFile:
    # A time without a zone, as servers give it, is taken for one of this computer.
    moment = find_moment(record.modified)
    modified_ns = round(moment.timestamp() * 1e6) * 1000 if moment else time.time_ns()
    return WantedFile(path, path, record.size, record.checksum, modified_ns)


def _describe_unverified(path: bytes) -> Problem:
    return Problem(
        "verify.pending",
        f"The server has not verified {format_path(path)}, so it was not fetched.",
        "Run the same command again once it has.",
    )


def _describe_clash(path: bytes) -> Problem:
    return Problem(
        "server.strange-answer",
        f"Several records on the server have the path {format_path(path)}, with different bytes.",
        "Download the right one from the page of its dataset.",
    )
