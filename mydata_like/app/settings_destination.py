"""The destination of the settings, where it is no MyTardis server."""

import hashlib
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from mydata_like.app.connection import require_complete
from mydata_like.app.known_copies import KNOWN_ID
from mydata_like.app.ledgers import list_ledgers, reading
from mydata_like.app.plain_destination import (
    Place,
    PlainDestination,
    Prompts,
    open_target,
)
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import load_settings
from mydata_like.catalogues.manifest.manifest_catalogue import identify
from mydata_like.catalogues.manifest.stored_check import StoredCheck
from mydata_like.core.copy_arguments import FolderTarget
from mydata_like.core.destination_files import OWN_FOLDER
from mydata_like.core.errors import ItemError, RunError, SettingsError
from mydata_like.core.events import RunFinished
from mydata_like.core.extra_sources import KnownSource, lies_in, source_key
from mydata_like.core.formatting import format_path
from mydata_like.core.model import DatasetFolder, Recheck
from mydata_like.core.openat import join
from mydata_like.engine.gate import Gate
from mydata_like.engine.layout_walk import ScanScope
from mydata_like.engine.scheduler import FOLDER, SOURCE
from mydata_like.engine.walk import TreeRules
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.rechecks import RecheckFile
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings


class SettingsDestination(PlainDestination):
    """What the settings name, for runs over the data directory and over extra sources.

    The folders of the data directory have their own names there, and the files in none of them are
    at the top. An extra source goes to a folder with the name of its dataset.
    """

    def check(self, request: RunRequest) -> None:
        settings = request.settings
        require_complete(settings, request.config)
        refuse_overlap(settings)

    def find_root(self, request: RunRequest) -> bytes:
        settings = request.settings
        root = os.fsencode(settings.data.directory or "")
        names = (settings.destination.address, os.fsdecode(root), str(request.part.shard))
        text = "\0".join(names).encode("utf-8", "surrogateescape")
        self.digest = hashlib.sha256(text).hexdigest()[:16]
        return root

    def narrow(self, part: ScanScope) -> ScanScope:
        return part._replace(as_is=TreeRules(self.judge_own, part.shard))

    def connect(
        self, request: RunRequest, observer: RunObserver, gate: Gate, stack: ExitStack
    ) -> RunRequest:
        self._root = os.fsencode(request.settings.data.directory or "")
        self._accept_missing = request.accept_missing
        settings, probe = request.settings, not request.dry_run
        self.place = gate.call(
            lambda: open_place(settings, request.config, probe=probe), staging=True
        )
        return super().connect(request, observer, gate, stack)

    def find_place(self, folder: DatasetFolder) -> bytes | Mapping[bytes, bytes]:
        if not folder.path:
            with os.scandir(self._root) as entries:
                return {it.name: it.name for it in entries if it.is_file()}
        place = os.fsencode(folder.name) if folder.above else folder.path
        if folder.above and (b"/" in place or place in (b".", b"..", OWN_FOLDER)):
            raise ItemError(
                f"No folder at the destination can have the name {folder.name}.",
                hint="Add the folder again, with another dataset name.",
                code="source.name",
            )
        for other in self._list_claims(place):
            if other != folder.path:
                raise ItemError(
                    f"{format_path(other)} already goes to the folder {format_path(place)} of the "
                    "destination.",
                    hint="Rename one of the two folders, or give the source another dataset name.",
                    code="source.name-taken",
                )
        return place

    def _list_claims(self, place: bytes) -> Iterator[bytes]:
        """Yield the paths of all folders that go to a place."""
        if os.path.lexists(os.path.join(self._root, place)):  # noqa: PTH118 - bytes
            yield place
        for source in self._ledger.find_sources():
            if os.fsencode(source.destination.dataset) == place:
                path = source.path
                is_folder = os.path.isdir(path)  # noqa: PTH112 - bytes
                yield path if is_folder else path.rpartition(b"/")[0]

    def report(self, finished: RunFinished) -> None:
        """Clear what has no name; the transfers of files that are left may be continued."""
        left = finished.problem or finished.waiting or finished.failed
        self.clear(everything=not left and self._request.reason not in (SOURCE, FOLDER))

    def is_top(self, folder: bytes) -> bool:
        return source_key(Path(os.fsdecode(folder))) == source_key(Path(os.fsdecode(self._root)))

    def list_tops(self) -> Iterable[bytes]:
        yield source_key(Path(os.fsdecode(self._root)))
        yield from (source.path for source in self._ledger.find_sources())


def open_place(
    settings: Settings,
    config: Path | None,
    prompts: Prompts | None = None,
    *,
    probe: bool = False,
) -> Place:
    """Return the destination of the settings after a login on its host; raises `UploaderError`.

    The `prompts` ask about a host key that is not known, which is refused without them. To `probe`
    a bucket, an object is made there and removed.
    """
    target = settings.destination.parse(os.fsencode(Path.home()))
    keys = settings.transfer.host_keys
    place = open_target(target, config, keys, prompts, transfer=settings.transfer)
    return place.probe() if probe else place


def refuse_overlap(settings: Settings) -> None:
    """Raise `SettingsError` if the data directory and the destination contain each other."""
    target, directory = settings.destination.parse(), settings.data.directory
    if directory is None or not isinstance(target, FolderTarget):
        return
    folder = Path(os.fsdecode(target.path))
    data, there = (source_key(Path(os.path.realpath(it))) for it in (directory, folder))
    if lies_in(data, there) or lies_in(there, data):
        raise SettingsError(
            f"The destination {format_path(there)} is in the data directory, or contains it.",
            hint="Choose another folder as destination.address.",
            code="destination.inside",
        )


def doubt_files(config: Path | None, name: str, wrong: Collection[bytes]) -> None:
    """Let the ledger doubt what a check found wrong at a destination with this id.

    The next run proves or sends these files again. Nothing happens if the settings have another
    destination. Raises `UploaderError`.
    """
    settings = load_settings(config, must_exist=False).settings
    for shard, file in list_ledgers(settings, config):
        with reading(settings, config, shard) as ledger:
            if ledger is None or ledger.find_meta(KNOWN_ID) != name:
                continue
            sources = ledger.find_sources()
            keys = [key for path in wrong for key in _list_keys(path, sources)]
            rows = ledger.find_entries(keys).values()
        doubted = [
            Recheck(it.dataset, it.key)
            for it in rows
            if it.remote.encode("utf-8", "surrogateescape") in wrong
        ]
        if doubted:
            RecheckFile(file, SystemClock()).add(doubted)


def _list_keys(path: bytes, sources: Iterable[KnownSource]) -> Iterator[bytes]:
    """Yield the keys of the local files that may have gone to a path; see `find_place`."""
    yield path
    for source in sources:
        folder, _, below = path.partition(b"/")
        if below and folder == os.fsencode(source.destination.dataset):
            yield join(source.path, below)
            yield join(source.path.rpartition(b"/")[0], below)


def open_check(
    settings: Settings,
    config: Path | None,
    ledger: SqliteLedger,
    tops: Iterable[bytes],
    stack: ExitStack,
    *,
    delete: bool,
) -> StoredCheck:
    """Return what proves that the destination has files, before local ones are deleted.

    Raises `RunError` if it is another one than in earlier runs, or if it is one of the folders in
    `tops`, which are those above what was sent, under another name.
    """
    files = open_place(settings, config, probe=delete).open_files()
    stack.callback(files.close)
    files.open(create=False)
    identify(files, ledger.find_meta(KNOWN_ID) or "", create=False)
    if files.evidence == "read-back-cached":
        raise RunError(
            "Files at this destination are read from a cache of this computer, which does not "
            "prove that the destination has them.",
            hint="Nothing is deleted. Use the host's SSH access as destination, if it has one.",
            code="free.unproven-destination",
        )
    if delete:
        sample = OWN_FOLDER + b"/canary-" + secrets.token_hex(8).encode()
        files.write(sample, b"")
        try:
            if any(os.path.lexists(join(top, sample)) for top in tops):
                raise RunError(
                    "The destination is the folder itself that is to be freed, by another name.",
                    hint="Nothing is deleted. Choose a destination on another drive or computer.",
                    code="destination.inside",
                )
        finally:
            files.remove([sample])
    return StoredCheck(files, SystemClock(), settings.filters.settle_seconds, delete=delete)
