"""What a reply says: its JSON, its beginning as plain text, the rest that it asks for."""

import math
import re
from codecs import BOM_UTF8
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import orjson

from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import check_amount
from mydata_like.server.wire import BODY_LIMIT, Reply
from mydata_like.settings.values import parse_url

_SAFE: Final = re.compile(r"[A-Za-z0-9:/._~\[\]-]+")  # nothing that a shell would act upon
API: Final = "/api/v1/"  # where every request goes, below the server's address
LONGEST_REST: Final = 3600.0  # seconds a server may make us wait at most


def decode_json(body: bytes) -> Any:
    """Return the value of a reply's JSON; every text in it can be kept as UTF-8.

    Numbers are finite. Raises ValueError for everything else.
    """
    check_amount(body, BODY_LIMIT)
    return orjson.loads(body.removeprefix(BOM_UTF8))


def plain(text: str, limit: int) -> str:
    """Return a server's text for people: nothing in it can act, and it is not long."""
    return format_path(text.encode(errors="backslashreplace"))[:limit]


def excerpt(reply: Reply, secret: str) -> str:
    """Return the beginning of a reply as plain text in one line, without the secret."""
    text = reply.body.decode(errors="backslashreplace")
    if secret:
        text = text.replace(secret, "...")
    return plain(" ".join(text[:1000].split()), 200)


def find_server_address(target: str) -> str:
    """Return the address of a server, as the settings want it, that a redirect names.

    Empty where it names none: what leads elsewhere than to an API is no address of a server.
    """
    address, api, _ = target.partition(API)
    try:
        parse_url(address)
    except ValueError:
        return ""
    return address if api and _SAFE.fullmatch(address) else ""


def parse_rest(reply: Reply, now: datetime) -> float:
    """Return how many seconds the server asks us to stay away, within reason."""
    asked = reply.headers.get("Retry-After", "").strip()
    try:
        seconds = float(asked) if asked[:1] in "-0123456789" else _until(asked, now)
    except (ValueError, OverflowError, TypeError, IndexError):  # of the library's dates, too
        return 0.0
    if math.isnan(seconds):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_REST)


def _until(date: str, now: datetime) -> float:
    moment = parsedate_to_datetime(date)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()
