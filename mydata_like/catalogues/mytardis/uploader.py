"""The server's record of this uploader: computer, request for access, and mark of a run."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from mydata_like import __version__
from mydata_like.catalogues.mytardis.client import ApiClient, json_request, plain
from mydata_like.catalogues.mytardis.get_or_create import GetOrCreate
from mydata_like.catalogues.mytardis.serializers import ShapeError, expect, page_parser
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import NotApprovedError, StagingError
from mydata_like.core.frozen import frozen
from mydata_like.core.machine import MachineRecord
from mydata_like.core.model import InstrumentRecord, StagingArea
from mydata_like.core.parsing import parse_json, parse_moment

MACHINE_KEY: Final = "mydata_like_computer"  # of the setting; MyData ignores unknown ones
_ENOUGH: Final = 2  # of three traits: each of them may change over time
_NAME: Final = 64


class MachineIdentity(NamedTuple):
    """A computer, by its name and by digests of its system's id and its network interfaces.

    `system` is empty if unknown; `since` is the day on which the uploader was first used here.
    """

    hostname: str
    system: str
    interfaces: frozenset[str]
    since: str = ""

    @classmethod
    def of(cls, uuid: str, hostname: str, system: str, interfaces: Iterable[str]) -> Self:
        """Return the identity of a computer for an uploader with this uuid."""

        def digest(text: str) -> str:
            return hashlib.sha256(f"{uuid} {text}".encode()).hexdigest()[:16] if text else ""

        return cls(plain(hostname, _NAME), digest(system), frozenset(map(digest, interfaces)))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the computer in a setting; None if it cannot be parsed."""
        try:
            found = parse_json(text)
            return cls(
                plain(found["hostname"], _NAME),
                str(found["system"]),
                frozenset(map(str, found["interfaces"])),
                parse_moment(found["since"]).date().isoformat(),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def format(self, now: datetime) -> str:
        """Return the setting that assigns the uploader to this computer from now on."""
        return json.dumps(
            {
                "hostname": self.hostname,
                "system": self.system,
                "interfaces": sorted(self.interfaces),
                "since": now.isoformat(timespec="seconds"),
            }
        )

    def is_same(self, other: Self) -> bool:
        """Return whether this is the same computer, possibly with some changed traits."""
        alike = (
            self._has_name_of(other),
            self.system != "" and self.system == other.system,
            bool(self.interfaces & other.interfaces),
        )
        return sum(alike) >= _ENOUGH

    def is_out_of_date(self, now: Self) -> bool:
        """Return whether the same computer has another name or system now.

        Interfaces do not count. They change often, and are the only difference between two copies
        of one disk, which would otherwise overwrite each other's identity at every run.
        """
        return not self._has_name_of(now) or self.system != now.system

    def _has_name_of(self, other: Self) -> bool:
        return self.hostname.casefold() == other.hostname.casefold()


LAST_RUN_KEY: Final = "mydata_like_last_run"  # the prefix of the names of these settings
MARK_KEY: Final = "mydata_like_at_work"  # the prefix of the names of these settings
EXPIRY: Final = timedelta(minutes=5)  # after which a mark that was not renewed is invalid
_FOLDERS: Final = 8  # in a mark; one common folder is enough
_WHO: Final = 160


def last_run_key(shard: Shard) -> str:
    """Return the name of the setting with the report on the last run."""
    return LAST_RUN_KEY + _end_of_key(shard)


def _end_of_key(shard: Shard) -> str:
    return f"_{shard.number}_of_{shard.total}" if str(shard) else ""


class UploaderMark(NamedTuple):
    """Digests of folders, and who works on them, on which computer and on which shard.

    `renewals` grows, so that each renewal changes the setting on the server.
    """

    folders: frozenset[str]
    who: str
    host: str
    shard: Shard = WHOLE
    renewals: int = 0

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the mark in a setting; None if it is empty or cannot be parsed."""
        try:
            found = parse_json(text)
            return cls(
                frozenset(map(str, found["folders"])),
                plain(found["who"], _WHO),
                str(found["host"]),
                Shard(*map(int, found["shard"])),
                int(found["renewals"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def format(self) -> str:
        """Return the setting."""
        return json.dumps(self._asdict() | {"folders": sorted(self.folders)})

    @property
    def key(self) -> str:
        """The setting's name."""
        return MARK_KEY + _end_of_key(self.shard)

    def overlaps(self, other: Self) -> bool:
        """Return whether both work on some of the same files."""
        apart = self.shard.total == other.shard.total and self.shard != other.shard
        return bool(self.folders & other.folders) and not apart


def digest_folders(folder: int, inside: Iterable[tuple[bytes, int]]) -> frozenset[str]:
    """Return digests that identify a folder: its file id, with names and ids of its subfolders."""
    texts = (f"{folder} {number} ".encode() + name for name, number in sorted(inside)[:_FOLDERS])
    return frozenset(hashlib.sha256(text).hexdigest()[:16] for text in texts)


_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._:-]*[A-Za-z0-9_])?")
_USERNAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]*[$]?")


class Box(NamedTuple):
    """A storage box, as the server's administrator configured it."""

    name: str
    options: dict[str, str]
    attributes: dict[str, str]


class ApprovalRecord(NamedTuple):
    """A key's request for access to a staging area; `expires` is its last day, if any."""

    fingerprint: str
    approved: bool
    comments: str
    box: Box | None
    expires: date | None


class Approved(NamedTuple):
    """The staging area of an approval, and its last day, if any.

    The server does not enforce the last day: a key is accepted until its approval is withdrawn.
    """

    area: StagingArea
    expires: date | None = None


class ApprovedBox(NamedTuple):
    """The storage box of an approval, and its last day, if any."""

    box: Box
    expires: date | None = None


def parse_approval(row: Any) -> ApprovalRecord:
    """Return a request for approval."""
    fingerprint = expect(row, "requester_key_fingerprint", str)
    comments = row.get("approver_comments")
    box, expiry = row.get("approved_storage_box"), row.get("approval_expiry")
    if box is not None:
        options, attributes = expect(box, "options", list), expect(box, "attributes", list)
        pairs = _parse_pairs(options), _parse_pairs(attributes)
        box = Box(expect(box, "name", str), *pairs)
    try:
        expires = date.fromisoformat(expiry[:10]) if isinstance(expiry, str) else None
    except ValueError:  # not a day
        expires = None
    return ApprovalRecord(
        fingerprint.strip(),
        expect(row, "approved", bool),
        plain(comments, 300) if isinstance(comments, str) else "",
        box,
        expires,
    )


def _parse_pairs(rows: Iterable[Any]) -> dict[str, str]:
    pairs = {expect(row, "key", str): row.get("value") for row in rows}
    if not all(isinstance(value, str | None) for value in pairs.values()):
        raise ShapeError("a storage box's value is not text")
    return {key: (value or "").strip() for key, value in pairs.items()}


def build_area(box: Box) -> StagingArea:
    """Return the staging area of a box; raises `StagingError` that names all missing attributes."""
    location, hosts, port = box.options.get("location", ""), _parse_hosts(box), _parse_port(box)
    within = location.startswith("/") and ".." not in location.split("/")
    sound = {
        "scp_username": _USERNAME.fullmatch(box.attributes.get("scp_username", "")),
        "scp_hostname": hosts,
        "scp_port": port,
        "location": within and location.isprintable(),
    }
    lacking = [name for name, value in sound.items() if not value]
    if lacking:
        raise StagingError(
            f"The approved storage box {plain(box.name, 100)} has no usable {', '.join(lacking)}.",
            hint="Ask the server's administrator to set this in the storage box's attributes "
            "(location: in its options).",
            code="staging.incomplete",
        )
    keys = box.attributes.get("host_keys") or box.attributes.get("host_key") or ""
    return StagingArea(
        box=box.name,
        location=location.rstrip("/") or "/",
        username=box.attributes["scp_username"],
        hosts=hosts,
        port=port,
        host_keys=tuple(key.strip() for key in re.split(r"[,;\n]+", keys) if key.strip()),
    )


def _parse_hosts(box: Box) -> tuple[str, ...]:
    """Return the hosts; empty if one of them is invalid."""
    hosts = tuple(re.split(r"[,\s]+", box.attributes.get("scp_hostname", "").strip(", ")))
    return hosts if all(_HOST.fullmatch(host) for host in hosts) else ()


def _parse_port(box: Box) -> int:
    text = box.attributes.get("scp_port", "") or "22"
    port = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
    return port if port < 65536 else 0


_UPLOADER: Final = "mydata_uploader"
_REQUEST: Final = "mydata_uploaderregistrationrequest"

# The lengths of the server's columns; longer values cause a status 500 without explanation.
_LIMIT: Final = 64
_LIMITS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "uuid": 36,
        "os_release": 32,
        "os_version": 128,
        "memory": 32,
        "data_path": 256,
        "user_agent_install_location": 256,
        "user_agent_version": 32,
        "ipv4_address": 16,
        "subnet_mask": 16,
        "requester_public_key": 4096,
    }
)


@frozen(kw_only=True)
class Installation:
    """This installation, as a facility's administrator sees it."""

    uuid: str
    name: str
    contact_name: str
    contact_email: str
    data_path: str
    account: str
    machine: MachineRecord


class RegisteredKey(NamedTuple):
    """An SSH key to be approved: OpenSSH's text and the fingerprints, SHA-256 first."""

    text: str
    fingerprints: tuple[str, ...]


class UploaderRecord(NamedTuple):
    """The server's record of this installation, with the settings for it.

    `identity` is the computer that it belongs to, which is one of the settings on the server.
    `settings_updated` is in the server's local time without a time zone; empty if the settings
    were never changed. `marks` are the settings that mark runs in progress.
    """

    id: int
    settings: dict[str, str]
    settings_updated: str = ""
    identity: MachineIdentity | None = None
    marks: tuple[tuple[str, UploaderMark], ...] = ()


class Uploaders:
    """The server's records of uploaders and their requests for approval."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._once = GetOrCreate(client)
        self._seen: dict[str, UploaderRecord] = {}
        self._seen_requests: dict[str, list[ApprovalRecord]] = {}

    def look_up(self, uuid: str) -> UploaderRecord | None:
        """Return the existing record; fetch it only once until `ensure_uploader` uses it."""
        record = self._seen.get(uuid) or self.find_uploader(uuid)
        if record is not None:
            self._seen[uuid] = record
        return record

    def look_up_requests(self, uuid: str) -> None:
        """Fetch the requests for approval, and keep them for one call of `fetch_approval`."""
        self._seen_requests[uuid] = self._fetch_requests(uuid)

    def digest(self, installation: Installation, instrument: InstrumentRecord) -> str:
        """Return a digest of all that is sent to the server about an installation."""
        document = self._uploader_document(installation, instrument)
        del document["disk_usage"]  # it changes all the time
        told = json.dumps([self._client.wire.host, document], sort_keys=True)
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    def ensure_uploader(
        self, installation: Installation, instrument: InstrumentRecord, *, update: bool = True
    ) -> UploaderRecord:
        """Return the server's record of this installation; create it if it is missing.

        With `update` an existing record is updated, which also shows the facility's
        administrators when this installation was last active.
        """
        document = self._uploader_document(installation, instrument)

        def make() -> UploaderRecord:
            return self._client.create(f"{_UPLOADER}/", document, _parse_uploader)

        known = self._seen.pop(installation.uuid, None) or self.find_uploader(installation.uuid)
        if known is None:
            find = self.find_uploader
            return self._once.ensure(
                (_UPLOADER, installation.uuid), lambda: find(installation.uuid), make
            )
        if update:
            self._client.change("PUT", f"{_UPLOADER}/{known.id}/", document)
        return known

    def keep_setting(
        self,
        uploader: UploaderRecord,
        installation: Installation,
        instrument: InstrumentRecord,
        setting: tuple[str, str],
    ) -> None:
        """Store one of our settings on the server, in one try; others are unchanged.

        The whole uploader is sent, because a server may treat missing fields as deleted.
        """
        document = self._uploader_document(installation, instrument)
        document["settings"] = [{"key": setting[0], "value": setting[1]}]
        request = json_request("PATCH", f"{_UPLOADER}/{uploader.id}/", document)
        self._client.check(self._client.submit(request), (200, 202))

    def request_approval(
        self, installation: Installation, uploader: UploaderRecord, key: RegisteredKey
    ) -> None:
        """Request the key's approval, unless it was already requested."""
        document = _shorten(
            {
                "uploader": self._client.wire.uri(_UPLOADER, uploader.id),
                "name": installation.name,
                "requester_name": installation.contact_name,
                "requester_email": installation.contact_email,
                "requester_public_key": key.text,
                "requester_key_fingerprint": key.fingerprints[0],
            }
        )
        self._once.ensure(
            (_REQUEST, installation.uuid, key.fingerprints),
            lambda: self._find_request(installation.uuid, key.fingerprints),
            lambda: self._client.create(f"{_REQUEST}/", document, parse_approval),
        )

    def fetch_approval(self, uuid: str, fingerprints: Sequence[str]) -> Approved | None:
        """Return the approval of this uploader, or None if it was not requested yet.

        Raises `NotApprovedError` while the request is pending, and `StagingError` if the approved
        storage box lacks attributes that are needed to access it.
        """
        approved = self.fetch_box(uuid, fingerprints)
        return approved and Approved(build_area(approved.box), approved.expires)

    def fetch_box(self, uuid: str, fingerprints: Sequence[str]) -> ApprovedBox | None:
        """Return the approved storage box, of whatever kind; as `fetch_approval`."""
        request = self._find_request(uuid, fingerprints)
        if request is None:
            self._client.prove()
            return None
        if not request.approved or request.box is None:
            said = f" The administrator wrote: {request.comments}" if request.comments else ""
            raise NotApprovedError(
                f"The key {request.fingerprint} of this uploader awaits approval.{said}",
                hint="Ask the facility's administrator to approve the key with this fingerprint "
                "and to choose a storage box for it.",
            )
        return ApprovedBox(request.box, request.expires)

    def _uploader_document(
        self, installation: Installation, instrument: InstrumentRecord
    ) -> dict[str, Any]:
        document = _shorten(
            {
                "uuid": installation.uuid,
                "name": installation.name,
                "contact_name": installation.contact_name,
                "contact_email": installation.contact_email,
                "data_path": installation.data_path,
                "default_user": installation.account,
                "user_agent_name": "mydata-like",
                "user_agent_version": __version__,
                **asdict(installation.machine),
            }
        )
        document["instruments"] = [self._client.wire.uri("instrument", instrument.id)]
        return document

    def list_uploaders(self) -> list[UploaderRecord]:
        """Return the records of all uploaders that we may read."""
        pages = self._client.pages(f"{_UPLOADER}/", _parse_uploader, {})
        return [record for page in pages for record in page]

    def find_uploader(self, uuid: str) -> UploaderRecord | None:
        """Return the server's record of an installation, None if there is none."""
        query = {"uuid": uuid}
        page = self._client.fetch(f"{_UPLOADER}/", page_parser(_parse_uploader), query)
        return page.rows[0][1] if page.rows else None

    def _find_request(self, uuid: str, fingerprints: Sequence[str]) -> ApprovalRecord | None:
        """Return the request with any of these fingerprints, preferring an approved one."""
        requests = self._seen_requests.pop(uuid, None) or self._fetch_requests(uuid)
        found = [it for it in requests if it.fingerprint in fingerprints]
        found.sort(key=lambda request: not (request.approved and request.box))
        return found[0] if found else None

    def _fetch_requests(self, uuid: str) -> list[ApprovalRecord]:
        pages = self._client.pages(f"{_REQUEST}/", parse_approval, {"uploader__uuid": uuid})
        return [request for page in pages for request in page]


def _shorten(document: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.replace("\0", "")[: _LIMITS.get(name, _LIMIT)]
        if isinstance(value, str)
        else value
        for name, value in document.items()
    }


def _parse_uploader(row: Any) -> UploaderRecord:
    settings = row.get("settings") if type(row) is dict else None
    pairs = settings if type(settings) is list else []
    updated = row.get("settings_updated") if type(row) is dict else None
    kept = {expect(it, "key", str): expect(it, "value", str) for it in pairs}
    identity = kept.pop(MACHINE_KEY, "")
    texts = {key: kept.pop(key) for key in list(kept) if key.startswith(MARK_KEY)}
    kept = {key: text for key, text in kept.items() if not key.startswith(LAST_RUN_KEY)}
    found = ((key, UploaderMark.parse(text)) for key, text in texts.items())
    return UploaderRecord(
        expect(row, "id", int),
        kept,
        updated if type(updated) is str else "",
        MachineIdentity.parse(identity) if identity else None,
        tuple((key, mark) for key, mark in found if mark),
    )
