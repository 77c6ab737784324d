"""A request for approval, and the storage box that comes with it, as the server tells them."""

import re
from collections.abc import Iterable
from datetime import date
from typing import Any, Final, NamedTuple

from mydata_like.core.errors import StagingError
from mydata_like.core.model import StagingArea
from mydata_like.server.records import ShapeError, expect
from mydata_like.server.replies import plain

_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._:-]*[A-Za-z0-9_])?")
_USERNAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@-]*[$]?")


class Box(NamedTuple):
    """A storage box as the server's administrator filled it in."""

    name: str
    options: dict[str, str]
    attributes: dict[str, str]


class Approval(NamedTuple):
    """One key's request to be let into a staging area; `expires` is its last day, if any."""

    fingerprint: str
    approved: bool
    comments: str
    box: Box | None
    expires: date | None


class Approved(NamedTuple):
    """What an approval opens, and its last day, if any.

    The server itself enforces no last day: a key is let in as long as nobody withdraws it.
    """

    area: StagingArea
    expires: date | None = None


def parse_approval(row: Any) -> Approval:
    """Return a request for approval."""
    fingerprint = expect(row, "requester_key_fingerprint", str)
    comments = row.get("approver_comments")
    box = row.get("approved_storage_box")
    return Approval(
        fingerprint.strip(),
        expect(row, "approved", bool),
        plain(comments, 300) if isinstance(comments, str) else "",
        None if box is None else _parse_box(box),
        _parse_day(row.get("approval_expiry")),
    )


def _parse_day(text: object) -> date | None:
    """Return a day; one that nobody can read warns of nothing."""
    try:
        return date.fromisoformat(text[:10]) if isinstance(text, str) else None
    except ValueError:
        return None


def _parse_box(row: Any) -> Box:
    options, attributes = expect(row, "options", list), expect(row, "attributes", list)
    return Box(expect(row, "name", str), _parse_pairs(options), _parse_pairs(attributes))


def _parse_pairs(rows: Iterable[Any]) -> dict[str, str]:
    pairs = {expect(row, "key", str): row.get("value") for row in rows}
    if not all(isinstance(value, str | None) for value in pairs.values()):
        raise ShapeError("a storage box's value is no text")
    return {key: (value or "").strip() for key, value in pairs.items()}


def build_area(box: Box) -> StagingArea:
    """Return where bytes may be put; raises `StagingError` naming all that the box lacks."""
    sound = {
        "scp_username": _USERNAME.fullmatch(box.attributes.get("scp_username", "")),
        "scp_hostname": _parse_hosts(box),
        "scp_port": _parse_port(box),
        "location": _is_sound_location(box.options.get("location", "")),
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
        location=box.options["location"].rstrip("/") or "/",
        username=box.attributes["scp_username"],
        hosts=_parse_hosts(box),
        port=_parse_port(box),
        host_keys=tuple(key.strip() for key in re.split(r"[,;\n]+", keys) if key.strip()),
    )


def _parse_hosts(box: Box) -> tuple[str, ...]:
    """Return the hosts, of which there may be several, or nothing where one is no host."""
    hosts = tuple(re.split(r"[,\s]+", box.attributes.get("scp_hostname", "").strip(", ")))
    return hosts if all(_HOST.fullmatch(host) for host in hosts) else ()


def _parse_port(box: Box) -> int:
    text = box.attributes.get("scp_port", "") or "22"
    port = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
    return port if port < 65536 else 0


def _is_sound_location(location: str) -> bool:
    return location.startswith("/") and ".." not in location.split("/") and location.isprintable()
