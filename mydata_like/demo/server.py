"""A MyTardis-compatible upload server for demonstrations, tests and measurements.

`with EmbeddedServer(directory) as server:`; as a process of its own it is run by
`mydata_like.demo.process`.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

from mydata_like.demo.app import build_app
from mydata_like.demo.approval import STAGING_BOX, ScpAddress, approve, set_address
from mydata_like.demo.faults import FaultList
from mydata_like.demo.gate import Gate, Request
from mydata_like.demo.httpd import HttpServer
from mydata_like.demo.invariants import FileKey, StoredFile, find_violations, list_files
from mydata_like.demo.preset import ACCOUNT, Person, add_person, fill
from mydata_like.demo.replicas import copy_replica
from mydata_like.demo.site import Site
from mydata_like.demo.store import Store
from mydata_like.demo.times import Times
from mydata_like.demo.uploaders import keep_settings
from mydata_like.demo.verifier import Verifier


class EmbeddedServer:
    """The server and its data in one directory; what it learnt is there again next time.

    It listens on 127.0.0.1 while it is entered, or between `start` and `stop`. New replicas
    are verified `verify_delay` seconds after they were registered (a real server takes 5).
    """

    def __init__(
        self,
        directory: Path,
        *,
        verify_delay: float = 0.2,
        zone: str = "Australia/Melbourne",
        auto_approve: bool = False,
        port: int = 0,
    ) -> None:
        self.directory = directory.resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._port = port
        self._store = Store(self.directory / "mytardis.sqlite")
        self._times = Times(zone)
        fill(self._store, self._times, self.directory)
        self._verifier = Verifier(self._store, self._times, verify_delay)
        self.site = Site(
            directory=self.directory,
            store=self._store,
            times=self._times,
            verifier=self._verifier,
            auto_approve=auto_approve,
        )
        self.faults = FaultList()
        self._stopped = Event()
        self.app = build_app(self.site)
        self._gate = Gate(self.app, self.faults, self._stopped)
        self._http = HttpServer(port, self._gate)

    def start(self) -> None:
        """Begin to answer."""
        self._verifier.start()
        self._http.start()

    def stop(self) -> None:
        """Break all connections, end all threads and close the database; once and for all."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._http.stop()
        self._gate.close()
        self._verifier.stop()
        self._store.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address to be set as the client's server."""
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def username(self) -> str:
        """The facility manager's account that uploads."""
        return ACCOUNT

    @property
    def api_key(self) -> str:
        return self.key_of(ACCOUNT)

    @property
    def box_name(self) -> str:
        """The storage box that approved uploaders get."""
        return STAGING_BOX

    @property
    def box_location(self) -> Path:
        return self.directory / "staging"

    @property
    def requests(self) -> Sequence[Request]:
        """The requests so far (the latest hundred thousand), as they were answered."""
        return self._gate.log.entries

    @property
    def request_counts(self) -> Mapping[tuple[str, str, int], int]:
        """How often each method met each resource with each status (0: no answer)."""
        return self._gate.log.counts

    def limit_workers(self, workers: int) -> None:
        """Handle so many requests at once at most from now on."""
        self._gate.workers.limit(workers)

    @property
    def locked(self) -> bool:
        """Whether a slow request has locked what it writes."""
        return self._gate.workers.any_locked

    @property
    def blocked_workers(self) -> int:
        """How many workers wait for ever for rows that another request had locked."""
        return self._gate.workers.blocked

    def key_of(self, username: str) -> str:
        """Return a user's API key."""
        row = self._store.row("SELECT api_key FROM user WHERE username = ?", username)
        if row is None:
            raise KeyError(username)
        return str(row["api_key"])

    def revoke_key(self, username: str = ACCOUNT) -> None:
        """Give a user a new API key; the old one is refused from now on."""
        key = secrets.token_hex(20)
        self._store.change("UPDATE user SET api_key = ? WHERE username = ?", key, username)

    def add_group(self, name: str) -> int:
        return self._store.insert("group", name=name)

    def add_user(self, person: Person) -> str:
        """Add a user to groups that exist and return their API key."""
        return add_person(self._store, person)

    def set_address(self, address: ScpAddress) -> None:
        """Tell where and as whom approved uploaders reach the staging area."""
        set_address(self._store, address)

    def approve(self, uuid: str, address: ScpAddress | None = None) -> int:
        """Approve an uploader's requests, as an administrator does; return their number."""
        if address is not None:
            set_address(self._store, address)
        return approve(self._store, self._times, uuid)

    def withdraw_approval(self, uuid: str) -> None:
        """Take an uploader's approval back."""
        self._store.change(
            "UPDATE registration SET approved = 0, box = NULL, approval_time = NULL"
            " WHERE uploader = (SELECT id FROM uploader WHERE uuid = ?)",
            uuid,
        )

    def annotate_approval(self, uuid: str, *, expiry: str = "", comments: str = "") -> None:
        """Write a last day and comments into an uploader's requests; they change nothing."""
        self._store.change(
            "UPDATE registration SET approval_expiry = ?, approver_comments = ?"
            " WHERE uploader = (SELECT id FROM uploader WHERE uuid = ?)",
            expiry or None,
            comments or None,
            uuid,
        )

    def set_settings(self, uuid: str, settings: Mapping[str, str]) -> None:
        """Set some of the settings of an uploader, as an administrator does."""
        row = self._store.row("SELECT id FROM uploader WHERE uuid = ?", uuid)
        if row is None:
            raise KeyError(uuid)
        keep_settings(self._store, self._times, row["id"], settings)

    def public_keys(self, *, approved: bool = True) -> list[str]:
        """Return the public keys of requests, for the staging host's `authorized_keys`."""
        sql = "SELECT public_key FROM registration WHERE approved OR NOT ? ORDER BY id"
        return [row["public_key"] for row in self._store.rows(sql, approved)]

    def set_immutable(self, dataset: int, *, immutable: bool = True) -> None:
        """Lock a dataset: nothing can be added to it."""
        self._store.change("UPDATE dataset SET immutable = ? WHERE id = ?", immutable, dataset)

    def lose(self, datafile: int) -> None:
        """Delete a record, as a person with the right to do so might; its bytes stay."""
        self._store.change("DELETE FROM replica WHERE datafile = ?", datafile)
        self._store.change("DELETE FROM datafile WHERE id = ?", datafile)

    def lose_copy(self, datafile: int) -> None:
        """Delete the replicas of a record, which stays."""
        self._store.change("DELETE FROM replica WHERE datafile = ?", datafile)

    def unverify(self, datafile: int) -> None:
        """Take back that a datafile's replica was verified, as if its storage had failed."""
        self._store.change("UPDATE replica SET verified = 0 WHERE datafile = ?", datafile)

    def add_copy(self, datafile: int) -> None:
        """Let a datafile have a second replica, verified, in the server's own box."""
        copy_replica(self.site, datafile)

    def rewrite(self, datafile: int, md5sum: str) -> None:
        """Let a record tell of other bytes, as one does that somebody has replaced."""
        self._store.change("UPDATE datafile SET md5sum = ? WHERE id = ?", md5sum, datafile)

    def hold_verification(self) -> None:
        """Verify nothing until `release_verification`."""
        self._verifier.hold()

    def release_verification(self) -> None:
        self._verifier.release()

    def wait_verified(self, timeout: float = 10.0) -> bool:
        """Return whether all that is to be looked at has been within so many seconds."""
        return self._verifier.wait_idle(timeout)

    def datafiles(self) -> list[StoredFile]:
        """Return all datafiles with their replicas, ordered by id."""
        return list_files(self._store)

    def violations(self) -> list[str]:
        """Return what clients did that destroys data on a real server."""
        return [row["text"] for row in self._store.rows("SELECT text FROM violation")]

    def check_invariants(self, expected: Mapping[FileKey, Path] | None = None) -> list[str]:
        """Return what is wrong in database and boxes: an empty list is what tests want.

        `expected` maps (dataset, directory, name) to the local file that must be there,
        exactly once, verified, with the same bytes.
        """
        return [*self.violations(), *find_violations(self._store, expected or {})]
