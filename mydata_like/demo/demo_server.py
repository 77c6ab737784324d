"""A MyTardis-compatible upload server for demonstrations, tests and benchmarks.

Use it as `with EmbeddedServer(directory) as server:`.
"""

import io
import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, close, socket
from threading import Event, Lock, Thread
from typing import IO, TYPE_CHECKING, Any, Self, cast
from urllib.parse import unquote_to_bytes

from werkzeug.serving import DechunkedInput

from mydata_like.demo.context import ServerContext
from mydata_like.demo.database import Database
from mydata_like.demo.fixtures import ACCOUNT, DemoUser, add_user, fill
from mydata_like.demo.invariants import FileKey, FileThere, find_violations, list_files
from mydata_like.demo.middleware import FaultList, LoggedRequest, Middleware
from mydata_like.demo.object_mirror import ObjectMirror, add_box
from mydata_like.demo.replicas import copy_replica
from mydata_like.demo.rest_api import build_app
from mydata_like.demo.server_clock import ServerClock
from mydata_like.demo.uploaders import STAGING_BOX, ScpAddress, approve, keep_settings, set_address
from mydata_like.demo.verifier import Verifier

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication, WSGIEnvironment


_HEADER_NAMES = {"CONTENT_TYPE": "CONTENT_TYPE", "CONTENT_LENGTH": "CONTENT_LENGTH"}


class DemoHttpServer(ThreadingHTTPServer):
    """A server for a WSGI application on the loopback interface."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, port: int, application: "WSGIApplication") -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.application = application
        self._open: set[socket] = set()
        self._guard = Lock()
        self._thread = Thread(target=self.serve_forever, args=(0.02,), name="httpd")

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Break all connections and wait for the end of all threads."""
        self.shutdown()
        self._thread.join()
        with self._guard:
            for connection in self._open:
                with suppress(OSError):  # the client, or its own thread, has closed it
                    connection.shutdown(SHUT_RDWR)
                    if os.name == "nt":  # a thread may wait for data even then, as in Wine
                        close(connection.detach())
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of lost connections, and report all others."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """The handler that passes requests to the application."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: DemoHttpServer

    def answer(self) -> None:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = DechunkedInput(cast("IO[bytes]", self.rfile)).readall()
        else:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            if len(body) < length:  # the client sent only a part of it
                self.close_connection = True
                return
        pieces = self.server.application(self._build_environ(body), self._start_response)
        try:
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
        finally:
            getattr(pieces, "close", list)()  # only some iterables have it
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing; the middleware keeps a list of requests."""

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> Any:
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        names = {name.lower() for name, _ in headers}
        if "content-length" not in names and code != "204":
            self.send_header("Connection", "close")
        self.end_headers()
        return self.wfile.write

    def _build_environ(self, body: bytes) -> "WSGIEnvironment":
        path, _, query = self.path.partition("?")
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": str(self.server.port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": self.client_address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "mydata_like.handler": self,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            environ[_HEADER_NAMES.get(key, f"HTTP_{key}")] = value
        return environ


class EmbeddedServer:
    """The server, with all its data in one directory that a later server can open again.

    It listens on 127.0.0.1 within its context, or from `start` to `stop`. New replicas are verified
    `verify_delay` seconds after they were registered (a real server takes 5).
    """

    def __init__(
        self,
        directory: Path,
        *,
        verify_delay: float = 0.2,
        zone: str = "Australia/Melbourne",
        auto_approve: bool = False,
        admit: Callable[[str], None] | None = None,
        allows_removal: bool = False,
        port: int = 0,
    ) -> None:
        self.directory = directory.resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self._port = port
        self._store = Database(self.directory / "mytardis.sqlite")
        self._times = ServerClock(zone)
        fill(self._store, self._times, self.directory)
        self._objects = ObjectMirror(self._store)
        self._verifier = Verifier(self._store, self._times, verify_delay, self._objects.refresh)
        self.site = ServerContext(
            directory=self.directory,
            store=self._store,
            times=self._times,
            verifier=self._verifier,
            auto_approve=auto_approve,
            admit=admit,
            allows_removal=allows_removal,
        )
        self.faults = FaultList()
        self._stopped = Event()
        self._gate = Middleware(build_app(self.site), self.faults, self._stopped)
        self._http = DemoHttpServer(port, self._gate)

    def start(self) -> None:
        """Start to answer requests."""
        self._verifier.start()
        self._http.start()

    def stop(self) -> None:
        """Break all connections, end all threads and close the database, for good."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._http.stop()
        self._gate.close()
        self._verifier.stop()
        self._objects.close()
        self._store.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address of the server, for the client's settings."""
        return f"http://127.0.0.1:{self._http.port}"

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def username(self) -> str:
        """The account that uploads, a facility manager's."""
        return ACCOUNT

    @property
    def api_key(self) -> str:
        return self.key_of(ACCOUNT)

    @property
    def box_name(self) -> str:
        """The storage box of approved uploaders."""
        return STAGING_BOX

    @property
    def box_location(self) -> Path:
        return self.directory / "staging"

    @property
    def requests(self) -> Sequence[LoggedRequest]:
        """The latest requests in the order of their answers; status 0 is no answer."""
        return list(self._gate.log)

    def limit_workers(self, workers: int) -> None:
        """Handle at most `workers` requests at once from now on."""
        self._gate.workers.limit(workers)

    @property
    def locked(self) -> bool:
        """Whether a slow request holds locks on the rows that it writes."""
        return self._gate.workers.any_locked

    @property
    def blocked_workers(self) -> int:
        """The number of workers that wait forever for rows that another request had locked."""
        return self._gate.workers.blocked

    def key_of(self, username: str) -> str:
        """Return a user's API key."""
        row = self._store.row("SELECT api_key FROM user WHERE username = ?", username)
        if row is None:
            raise KeyError(username)
        return str(row["api_key"])

    def revoke_key(self, username: str = ACCOUNT) -> None:
        """Replace a user's API key; the old one is refused from now on."""
        key = secrets.token_hex(20)
        self._store.change("UPDATE user SET api_key = ? WHERE username = ?", key, username)

    def add_object_box(self, name: str, **options: str) -> None:
        """Add a storage box in object storage, with the options of django-storages for S3."""
        add_box(self._store, name, self.directory / "objects" / name, options)

    def add_group(self, name: str) -> int:
        return self._store.insert("group", name=name)

    def add_user(self, user: DemoUser) -> str:
        """Add a user who is a member of existing groups; return their API key."""
        return add_user(self._store, user)

    def set_address(self, address: ScpAddress) -> None:
        """Set the host and the account over which approved uploaders reach the staging area."""
        set_address(self._store, address)

    def approve(
        self, uuid: str, address: ScpAddress | None = None, *, box: str = STAGING_BOX
    ) -> int:
        """Approve all requests of an uploader, as an administrator does; return their number."""
        if address is not None:
            set_address(self._store, address)
        return approve(self._store, self._times, uuid, box)

    def withdraw_approval(self, uuid: str) -> None:
        """Withdraw the approval of an uploader."""
        self._store.change(
            "UPDATE registration SET approved = 0, box = NULL, approval_time = NULL"
            " WHERE uploader = (SELECT id FROM uploader WHERE uuid = ?)",
            uuid,
        )

    def annotate_approval(self, uuid: str, *, expiry: str = "", comments: str = "") -> None:
        """Set expiry date and comments of an uploader's requests, which have no other effect."""
        self._store.change(
            "UPDATE registration SET approval_expiry = ?, approver_comments = ?"
            " WHERE uploader = (SELECT id FROM uploader WHERE uuid = ?)",
            expiry or None,
            comments or None,
            uuid,
        )

    def set_settings(self, uuid: str, settings: Mapping[str, str]) -> None:
        """Set some settings of an uploader, as an administrator does."""
        row = self._store.row("SELECT id FROM uploader WHERE uuid = ?", uuid)
        if row is None:
            raise KeyError(uuid)
        keep_settings(self._store, self._times, row["id"], settings)

    def public_keys(self, *, approved: bool = True) -> list[str]:
        """Return the public keys of all or of approved requests, for `authorized_keys`."""
        sql = "SELECT public_key FROM registration WHERE approved OR NOT ? ORDER BY id"
        return [row["public_key"] for row in self._store.rows(sql, approved)]

    def set_immutable(self, dataset: int, *, immutable: bool = True) -> None:
        """Lock a dataset, so that nothing can be added to it."""
        self._store.change("UPDATE dataset SET immutable = ? WHERE id = ?", immutable, dataset)

    def lose(self, datafile: int) -> None:
        """Delete a datafile's record, as a user with that right can; its bytes stay."""
        self._store.change("DELETE FROM replica WHERE datafile = ?", datafile)
        self._store.change("DELETE FROM datafile WHERE id = ?", datafile)

    def lose_copy(self, datafile: int) -> None:
        """Delete the replicas of a datafile; its record stays."""
        self._store.change("DELETE FROM replica WHERE datafile = ?", datafile)

    def lose_path(self, datafile: int) -> None:
        """Clear the path of a datafile's replicas, as while a request still writes their bytes."""
        sql = "UPDATE replica SET uri = NULL, verified = 0 WHERE datafile = ?"
        self._store.change(sql, datafile)

    def unverify(self, datafile: int) -> None:
        """Mark a datafile's replicas as not verified, as if their storage had failed."""
        self._store.change("UPDATE replica SET verified = 0 WHERE datafile = ?", datafile)

    def add_copy(self, datafile: int) -> None:
        """Add a second, verified replica of a datafile in the server's default box."""
        copy_replica(self.site, datafile)

    def rewrite(self, datafile: int, md5sum: str, size: int | None = None) -> None:
        """Change the checksum of a datafile's record, and its size, as if it had been replaced."""
        sql = "UPDATE datafile SET md5sum = ?, size = coalesce(?, size) WHERE id = ?"
        self._store.change(sql, md5sum, size, datafile)

    def hold_verification(self) -> None:
        """Verify nothing until `release_verification`."""
        self._verifier.hold()

    def release_verification(self) -> None:
        self._verifier.release()

    def wait_verified(self, timeout: float = 10.0) -> bool:
        """Wait until no verification is pending; return whether that took at most `timeout`."""
        return self._verifier.wait_idle(timeout)

    def datafiles(self) -> list[FileThere]:
        """Return all datafiles with their replicas, ordered by id."""
        self._objects.refresh_all()
        return list_files(self._store)

    def violations(self) -> list[str]:
        """Return the requests that would destroy data on a real server, as sentences."""
        return [row["text"] for row in self._store.rows("SELECT text FROM violation")]

    def check_invariants(self, expected: Mapping[FileKey, Path] | None = None) -> list[str]:
        """Return a sentence for each fault in database and storage boxes; none if all is well.

        `expected` maps (dataset, directory, name) to the local file that must exist exactly once,
        verified, with the same bytes.
        """
        self._objects.refresh_all()
        return [*self.violations(), *find_violations(self._store, expected or {})]
