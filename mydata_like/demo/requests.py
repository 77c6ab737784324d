"""Requests and replies of the REST API: parsing, validation, and JSON in the form of MyTardis."""

import json
import mimetypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import Response, request

from mydata_like.demo.server_clock import ServerClock

SORRY = {"error_message": "Sorry, this request could not be processed. Please try again later."}


class Refusal(Exception):  # noqa: N818 - an answer rather than an error
    """An answer with an error status; `payload` is its JSON, or None for an empty body."""

    def __init__(self, status: int, payload: object = None) -> None:
        super().__init__(status)
        self.status = status
        self.payload = payload


def failed() -> Refusal:
    """Return the generic 500 with which MyTardis answers most invalid requests."""
    return Refusal(500, SORRY)


def denied() -> Refusal:
    """Return the empty 401 for a missing right or a wrong key."""
    return Refusal(401)


def invalid(message: str) -> Refusal:
    """Return a 400 with a message, which only a few errors have."""
    return Refusal(400, {"error": message})


JSON = "application/json"


def answer_json(payload: object, status: int = 200, *, location: str = "") -> Response:
    """Answer with JSON; `location` is the path of a created record."""
    text = json.dumps(payload, ensure_ascii=False)
    return answer_text(text, status, location=location, kind=JSON)


def answer_created(shown: Mapping[str, object]) -> Response:
    """Answer with a new record, in the form in which the API shows it."""
    return answer_json(shown, 201, location=str(shown["resource_uri"]))


def answer_changed(shown: Mapping[str, object]) -> Response:
    """Answer with a changed record: 200 for a PUT, 202 for a PATCH."""
    return answer_json(shown, 200 if request.method == "PUT" else 202)


def answer_objects(others: Mapping[str, object], objects: Iterable[str]) -> Response:
    """Answer with records that are already JSON texts, after the fields of `others`."""
    text = json.dumps({**others, "objects": []}, ensure_ascii=False)
    return answer_text(f"{text[:-2]}{', '.join(objects)}]}}", kind=JSON)


def answer_text(
    text: str = "", status: int = 200, *, location: str = "", kind: str | None = None
) -> Response:
    """Answer with a text; MyTardis sends paths and empty bodies with the content type of HTML."""
    response = Response(text, status, content_type=kind)
    if location:
        response.headers["Location"] = location
    return response


def answer_refusal(refusal: Refusal) -> Response:
    """Return the response of a `Refusal`."""
    if refusal.payload is None:
        return answer_text(status=refusal.status)
    return answer_json(refusal.payload, refusal.status)


_LIMITS = {"filename": 400, "directory": 255, "md5sum": 32, "sha512sum": 128, "mimetype": 80}
_RENAMED = {"created_time": "created", "modification_time": "modified"}
_COLUMNS = {name: name for name in (*_LIMITS, "size", "version")} | _RENAMED


class ParsedRecord(NamedTuple):
    """The columns of a new datafile."""

    dataset: int
    directory: str | None
    filename: str
    version: int
    size: int
    md5sum: str
    sha512sum: str
    mimetype: str
    created: str | None
    modified: str | None


def read_draft(data: Mapping[str, Any], dataset: int, times: ServerClock) -> ParsedRecord:
    """Return the columns of a new datafile. Raises the generic 500 for invalid values."""
    columns = read_changes(data, times)
    filename = columns.get("filename") or ""
    draft = ParsedRecord(
        dataset=dataset,
        directory=columns.get("directory"),
        filename=filename,
        version=columns.get("version", 1),
        size=columns.get("size", -1),
        md5sum=columns.get("md5sum") or "",
        sha512sum=columns.get("sha512sum") or "",
        mimetype=columns.get("mimetype") or mimetypes.guess_type(filename)[0] or "",
        created=columns.get("created"),
        modified=columns.get("modified"),
    )
    if draft.size < 0 or not (draft.md5sum or draft.sha512sum):
        raise failed()
    return draft


def read_changes(data: Mapping[str, Any], times: ServerClock) -> dict[str, Any]:
    """Return the columns of a datafile that a request sets, in their stored form."""
    changes = {}
    for field, column in _COLUMNS.items():
        if field in data:
            changes[column] = _read_value(field, data[field], times)
    return changes


def _read_value(field: str, value: object, times: ServerClock) -> str | int | None:
    """Return a value as the database stores it. Raises the generic 500 if it cannot."""
    try:
        if field in ("size", "version"):
            if isinstance(value, int | str) and 0 <= int(value) < 1 << 63:
                return int(value)
        elif value is None:
            return None
        elif field in _LIMITS:
            text = str(value)
            text.encode()  # a lone surrogate is a ValueError here, as it is in the real database
            if len(text) <= _LIMITS[field] and "\0" not in text:
                return text
        elif isinstance(value, str):
            return times.localize(value)
    except ValueError:
        raise failed() from None
    raise failed()


DEFAULT_LIMIT = 20
MAX_LIMIT = 1000


class PageRequest(NamedTuple):
    """The requested part of a list."""

    limit: int
    offset: int


def read_page() -> PageRequest:
    """Return the requested page; a limit of 0 or above the maximum is the maximum."""
    limit = _parse_number("limit", DEFAULT_LIMIT, "a positive integer")
    offset = _parse_number("offset", 0, "an integer")
    return PageRequest(limit if 0 < limit < MAX_LIMIT else MAX_LIMIT, offset)


def _parse_number(name: str, default: int, wanted: str) -> int:
    text = request.args.get(name, str(default))
    try:
        number = int(text)
    except ValueError:
        raise invalid(f"Invalid {name} '{text}' provided. Please provide {wanted}.") from None
    if number < 0:
        raise invalid(
            f"Invalid {name} '{text}' provided. Please provide a positive integer &gt;= 0."
        )
    return number


def envelope(total: int, page: PageRequest, objects: Sequence[object]) -> dict[str, object]:
    """Return the answer to a list request; its links are paths without a host."""
    following = page.offset + page.limit
    return {
        "meta": {
            "limit": page.limit,
            "next": _link(page.limit, following) if following < total else None,
            "offset": page.offset,
            "previous": _link(page.limit, page.offset - page.limit)
            if page.offset >= page.limit
            else None,
            "total_count": total,
        },
        "objects": objects,
    }


def answer_list(rows: Sequence[Any], show: Callable[[Any], object]) -> Response:
    """Answer with the requested page of a complete list; `show` composes a record."""
    page = read_page()
    shown = rows[page.offset : page.offset + page.limit]
    return answer_json(envelope(len(rows), page, [show(row) for row in shown]))


def _link(limit: int, offset: int) -> str:
    others = [
        (name, value)
        for name, value in request.args.items(multi=True)
        if name not in ("limit", "offset")
    ]
    return f"{request.path}?{urlencode([*others, ('limit', limit), ('offset', offset)])}"


class QueryFilters(NamedTuple):
    """The filters of a resource.

    `allowed` maps a query parameter to an SQL condition with one `?`. `fields` are the other fields
    of the resource, which are refused as filters. Other parameters are ignored.
    """

    allowed: Mapping[str, str]
    fields: frozenset[str]

    def read(self) -> tuple[str, list[str]]:
        """Return the SQL condition of the current request, never empty, and its values."""
        conditions, values = ["1"], []
        for name, value in request.args.items(multi=True):
            field, _, lookup = name.partition("__")
            if name in self.allowed:
                conditions.append(self.allowed[name])
                values.append(value)
            elif any(allowed.partition("__")[0] == field for allowed in self.allowed):
                lookup = lookup.rpartition("__")[2]
                raise invalid(f"'{lookup}' is not an allowed filter on the '{field}' field.")
            elif field in self.fields:
                raise invalid(f"The '{field}' field does not allow filtering.")
        return " AND ".join(conditions), values


def read_order(allowed: frozenset[str], known: Mapping[str, str]) -> str:
    """Return the SQL order of the current request; by id if it has none."""
    text = request.args.get("order_by", "")
    field = text.removeprefix("-")
    if not text:
        return "d.id"
    if field not in allowed:
        raise invalid(f"The '{field}' field does not allow ordering.")
    return known[field] + (" DESC" if text.startswith("-") else "")


def read_json() -> dict[str, Any]:
    """Return the JSON object in the body of the current request."""
    data = request.get_data()
    if data and not (request.content_type or "").startswith(JSON):
        raise Refusal(415, SORRY)
    try:
        parsed = json.loads(data)
    except ValueError:
        raise invalid("Request is not valid JSON.") from None
    if not isinstance(parsed, dict):
        raise invalid("Request is not valid JSON.")
    return parsed
