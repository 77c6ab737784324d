"""An upload server with verified files, and a ledger of them, created without an upload."""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import tomlkit

from mydata_like.app.cleanup_service import open_cleanup
from mydata_like.app.connection import Connection, open_connection
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import (
    find_api_key,
    find_places,
    ledger_file,
    load_settings,
    open_secrets,
    prepare_places,
)
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.model import DatafileId, DatasetId, Entry, EntryState
from mydata_like.demo.context import DEFAULT_BOX
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.fixtures import FACILITY
from mydata_like.demo.uploaders import STAGING_BOX, ScpAddress
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.schema import Settings

LONG_AGO_NS = 1_600_000_000_000_000_000
OWNER = "alice"
SETTINGS = (
    "filters.settle_seconds=0",
    "advanced.verify_interval=0.05",
    "advanced.verify_patience=2",
)


class Kept(NamedTuple):
    """A file that the server has verified: its ids, and the path of its bytes."""

    dataset: DatasetId
    directory: str
    name: str
    datafile: DatafileId
    replica: int
    remote: str
    stored: Path


class FreeSite:
    """A data directory, a server that has its files, and the ledger, without a staging host."""

    def __init__(self, folder: Path, server: EmbeddedServer) -> None:
        self.server = server
        self.folder = folder
        self.data = folder / "data"
        self.state = folder / "state"
        self.config = folder / "config" / "settings.toml"
        self._store = server.site.store
        for made in (self.data, self.config.parent):
            made.mkdir(parents=True)
        self._write_settings()
        self._register()

    def _write_settings(self) -> None:
        settings = {
            "server": {"url": self.server.url, "username": self.server.username},
            "instrument": {
                "name": "Demo microscope",
                "facility": FACILITY,
                "contact_name": "Demo Person",
                "contact_email": "demo@example.org",
                "uuid": str(uuid.uuid4()),
            },
            "data": {"directory": str(self.data)},
            "transfer": {"key_file": str(self.folder / "id_ed25519")},
            "advanced": {"state_directory": str(self.state)},
        }
        self.config.write_text(tomlkit.dumps(settings), encoding="utf-8")
        secrets = self.config.with_name("secrets.toml")
        secrets.touch(mode=0o600)
        key = {self.server.url: {self.server.username: self.server.api_key}}
        secrets.write_text(tomlkit.dumps(key), encoding="utf-8")

    def _register(self) -> None:
        """Register and approve the uploader, and create an experiment."""
        self.server.set_address(ScpAddress("mydata", "127.0.0.1", 22))
        places = find_places(self.config)
        with self._connected() as connection:
            prepare_places(self.settings, places)
            request = RunRequest(settings=self.settings, config=self.config)
            TransportAccess(request, RunObserver(), connection).approval.request()
            draft = ExperimentDraft(OWNER, "", "", OWNER, "", self.settings.instrument.uuid)
            self._experiment = connection.server.create_experiment(draft)

    @cached_property
    def settings(self) -> Settings:
        return load_settings(self.config, SETTINGS).settings

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        key, _ = find_api_key(self.settings, open_secrets(self.config))
        client = ApiClient(self.settings.server, key.reveal(), SystemClock(), CancelFlag())
        connection = open_connection(client, self.settings.instrument)
        try:
            yield connection
        finally:
            connection.close()

    def add_dataset(self, name: str) -> DatasetId:
        """Create a dataset on the server for a folder of the data directory."""
        with self._connected() as connection:
            made = connection.server.create_dataset(self._experiment, name, connection.instrument)
        return made.id

    def keep(self, dataset: DatasetId, directory: str, name: str, content: bytes) -> Kept:
        """Store a verified file on the server."""
        remote = f"set-{dataset}/{directory}/{name}" if directory else f"set-{dataset}/{name}"
        stored = self.server.box_location / remote
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_bytes(content)
        now = self.server.site.times.now()
        datafile = self._store.insert(
            "datafile",
            dataset=dataset,
            directory=directory,
            filename=name,
            version=1,
            size=len(content),
            md5sum=hashlib.md5(content).hexdigest(),
            sha512sum="",
            mimetype="",
            created=now,
            modified=now,
        )
        replica = self._store.insert(
            "replica",
            datafile=datafile,
            dataset=dataset,
            box=self.box_number(STAGING_BOX),
            uri=remote,
            verified=True,
            created=now,
            last_verified=now,
        )
        return Kept(dataset, directory, name, DatafileId(datafile), replica, remote, stored)

    def box_number(self, name: str) -> int:
        return self._store.number("SELECT id FROM box WHERE name = ?", name)

    @property
    def other_box(self) -> tuple[int, Path]:
        """Another storage box of the server: its id and its folder."""
        return self.box_number(DEFAULT_BOX), self.server.directory / "store"

    def change(self, table: str, number: int, **values: str | int | None) -> None:
        """Change a row of the server's database."""
        marks = ", ".join(f"{name} = ?" for name in values)
        self._store.change(f"UPDATE {table} SET {marks} WHERE id = ?", *values.values(), number)

    def remember(self, entries: Sequence[Entry]) -> None:
        """Record rows in the ledger."""
        root = os.fsencode(self.data)
        file = ledger_file(self.settings, find_places(self.config), root)
        ledger = SqliteLedger.open(file, root, SystemClock())
        try:
            ledger.record(list(entries))
        finally:
            ledger.close()

    def free(self, *paths: Path, delete: bool = True) -> list[DeletedFile | KeptFile]:
        """Free files as the command does."""
        observer = RunObserver()
        with open_cleanup(self.settings, self.config, observer, delete=delete) as freeing:
            return list(freeing(paths))

    def has(self, dataset: DatasetId, directory: str, name: str, content: bytes) -> bool:
        """Return whether the server has a record of these bytes and has them on its disk."""
        rows = self._store.rows(
            "SELECT r.uri, b.location FROM datafile d JOIN replica r ON r.datafile = d.id"
            " JOIN box b ON b.id = r.box WHERE d.dataset = ? AND d.directory = ?"
            " AND d.filename = ? AND d.size = ? AND d.md5sum = ?",
            *(dataset, directory, name, len(content), hashlib.md5(content).hexdigest()),
        )
        return any(_read(Path(row["location"]), row["uri"]) == content for row in rows)


def _read(location: Path, uri: str) -> bytes | None:
    path = Path(os.path.normpath(location / uri))
    if not path.is_relative_to(location):
        return None
    with suppress(OSError):
        return path.read_bytes()
    return None


def an_entry(key: str, content: bytes, kept: Kept) -> Entry:
    """Return the ledger's entry of a local file that the server has verified."""
    return Entry(
        os.fsencode(key),
        len(content),
        LONG_AGO_NS,
        EntryState.VERIFIED,
        kept.dataset,
        hashlib.md5(content).hexdigest(),
        kept.remote,
        kept.datafile,
    )


@contextmanager
def open_free_site(folder: Path) -> Iterator[FreeSite]:
    """Start an empty server in a folder."""
    server = EmbeddedServer(folder / "server", auto_approve=True, verify_delay=3600)
    with server:
        yield FreeSite(folder, server)


def wait_until_settled() -> None:
    """Wait until files that were just written count as settled; their time stamps are coarse."""
    end = time.monotonic() + 0.03
    while time.monotonic() < end:
        pass
