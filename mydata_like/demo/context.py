"""The state that all resources share, and access rights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flask import g, request

from mydata_like.demo.database import Database, Row
from mydata_like.demo.requests import Refusal, denied
from mydata_like.demo.server_clock import ServerClock
from mydata_like.demo.verifier import Verifier

API = "/api/v1"
DEFAULT_BOX = "default"

# The experiments and datasets that a user may see; both take the user's id twice.
READABLE_EXPERIMENTS = """(
    SELECT experiment FROM acl WHERE plugin = 'django_user' AND entity = ?
    UNION SELECT experiment FROM acl WHERE plugin = 'django_group'
        AND entity IN (SELECT "group" FROM membership WHERE user = ?)
)"""
READABLE_DATASETS = (
    f"(SELECT dataset FROM dataset_experiment WHERE experiment IN {READABLE_EXPERIMENTS})"  # noqa: S608 - constants
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The parts of the server that every resource uses."""

    directory: Path
    store: Database
    times: ServerClock
    verifier: Verifier
    auto_approve: bool
    admit: Callable[[str], None] | None = None  # called with the public key of what is approved
    allows_removal: bool = False

    @property
    def receiving_box(self) -> str:
        """The storage box for files of uploaders without a request for approval."""
        return f"local box at {self.directory / 'receiving'}"

    def report_violation(self, text: str) -> None:
        """Record that a client sent a request that can destroy data on a real server."""
        self.store.insert("violation", text=text)


class Caller(NamedTuple):
    """The sender of a request; id 0 is anonymous.

    `permitted` says whether they have the model permissions that an uploader needs.
    """

    id: int
    username: str = ""
    superuser: bool = False
    permitted: bool = False
    facilities: frozenset[int] = frozenset()  # those the caller manages


ANONYMOUS = Caller(0)


def identify(store: Database) -> Caller:
    """Return the sender of this request. Raises an empty 401 for an unknown user or a wrong key."""
    header = request.headers.get("Authorization")
    if header is None:
        return ANONYMOUS
    scheme, _, credentials = header.partition(" ")
    username, _, key = credentials.strip().partition(":")
    row = store.row("SELECT * FROM user WHERE username = ?", username)
    if scheme.lower() != "apikey" or row is None or not key or row["api_key"] != key:
        raise denied()
    managed = store.rows(
        'SELECT facility.id FROM facility JOIN membership ON "group" = manager_group'
        " WHERE user = ?",
        row["id"],
    )
    facilities = frozenset(facility["id"] for facility in managed)
    return Caller(row["id"], username, bool(row["superuser"]), bool(row["permitted"]), facilities)


def caller() -> Caller:
    """Return the sender of the current request."""
    found: Caller = g.caller
    return found


def require_permission() -> Caller:
    """Return the sender of the current request. Raises 401 without the rights of an uploader."""
    who = caller()
    if not (who.permitted or who.superuser):
        raise denied()
    return who


def can_read_dataset(store: Database, who: Caller, dataset: int) -> bool:
    """Return whether a user may see a dataset."""
    if who.superuser:
        return True
    sql = f"SELECT ? IN {READABLE_DATASETS}"
    return bool(store.number(sql, dataset, who.id, who.id))


def can_read_experiment(store: Database, who: Caller, experiment: int) -> bool:
    """Return whether a user may see an experiment; here they may then change it too."""
    if who.superuser:
        return True
    sql = f"SELECT ? IN {READABLE_EXPERIMENTS}"
    return bool(store.number(sql, experiment, who.id, who.id))


def find_record(store: Database, table: str, number: int) -> Row:
    """Return a record by its id. Raises an empty 404 if there is none."""
    row = store.row(f"SELECT * FROM {table} WHERE id = ?", number)  # noqa: S608 - our own names
    if row is None:
        raise Refusal(404)
    return row


def find_writable_dataset(store: Database, who: Caller, dataset: int) -> Row:
    """Return a dataset. Raises 401 if the user may not add datafiles to it."""
    row = store.row("SELECT * FROM dataset WHERE id = ?", dataset)
    permitted = who.superuser or (who.permitted and row is not None and not row["immutable"])
    if row is None or not permitted or not can_read_dataset(store, who, dataset):
        raise denied()
    return row


def uri_of(resource: str, number: int) -> str:
    """Return the URI of a record: a path without a host."""
    return f"{API}/{resource}/{number}/"


def id_in(uri: object, *resources: str) -> int | None:
    """Return the id in a URI of one of these resources; None for any other value."""
    if not isinstance(uri, str):
        return None
    resource, _, number = uri.removeprefix(API + "/").rstrip("/").partition("/")
    ours = resource in resources and number.isascii() and number.isdecimal()
    return int(number) if ours else None
