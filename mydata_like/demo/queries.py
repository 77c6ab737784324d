"""How lists are asked for: filters that are allowed or not, and pages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from flask import request

from mydata_like.demo.answers import SORRY, Refusal, invalid

DEFAULT_LIMIT = 20
MAX_LIMIT = 1000


class Page(NamedTuple):
    """The part of a list that was asked for."""

    limit: int
    offset: int


def read_page() -> Page:
    """Return the page that the request asks for: 0, or more than the maximum, is the maximum."""
    limit = _read_number("limit", DEFAULT_LIMIT, "a positive integer")
    offset = _read_number("offset", 0, "an integer")
    return Page(limit if 0 < limit < MAX_LIMIT else MAX_LIMIT, offset)


def _read_number(name: str, default: int, wanted: str) -> int:
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


def envelope(total: int, page: Page, objects: Sequence[object]) -> dict[str, object]:
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


def cut(page: Page, objects: Sequence[object]) -> dict[str, object]:
    """Return one page of a list that is small enough to be at hand as a whole."""
    return envelope(len(objects), page, objects[page.offset : page.offset + page.limit])


def _link(limit: int, offset: int) -> str:
    others = [
        (name, value)
        for name, value in request.args.items(multi=True)
        if name not in ("limit", "offset")
    ]
    return f"{request.path}?{urlencode([*others, ('limit', limit), ('offset', offset)])}"


class Filters(NamedTuple):
    """What a resource may be filtered by.

    `allowed` maps a parameter to its SQL condition with one `?`; `fields` are the resource's
    other fields, whose use as a filter is refused. Anything else is ignored.
    """

    allowed: Mapping[str, str]
    fields: frozenset[str]

    def read(self) -> tuple[list[str], list[str]]:
        """Return the conditions of this request and their values."""
        conditions, values = [], []
        for name, value in request.args.items(multi=True):
            if name in self.allowed:
                conditions.append(self.allowed[name])
                values.append(value)
            else:
                self._refuse(name)
        return conditions, values

    def _refuse(self, name: str) -> None:
        field, _, lookup = name.partition("__")
        if any(allowed.partition("__")[0] == field for allowed in self.allowed):
            lookup = lookup.rpartition("__")[2]
            raise invalid(f"'{lookup}' is not an allowed filter on the '{field}' field.")
        if field in self.fields:
            raise invalid(f"The '{field}' field does not allow filtering.")


def read_order(allowed: frozenset[str], known: Mapping[str, str]) -> str:
    """Return the SQL order the request wants, by id where it says nothing."""
    text = request.args.get("order_by", "")
    field = text.removeprefix("-")
    if not text:
        return "d.id"
    if field not in allowed:
        raise invalid(f"The '{field}' field does not allow ordering.")
    return known[field] + (" DESC" if text.startswith("-") else "")


def read_json(data: bytes, content_type: str) -> dict[str, Any]:
    """Return the JSON object in a request's body."""
    if data and not content_type.startswith("application/json"):
        raise Refusal(415, SORRY)
    try:
        parsed = json.loads(data)
    except ValueError:
        raise invalid("Request is not valid JSON.") from None
    if not isinstance(parsed, dict):
        raise invalid("Request is not valid JSON.")
    return parsed
