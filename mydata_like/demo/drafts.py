"""Datafile records as clients send them: what is refused, and what is kept in which form."""

import mimetypes
from collections.abc import Mapping
from typing import Any, NamedTuple

from mydata_like.demo.answers import failed
from mydata_like.demo.times import Times

_LIMITS = {"filename": 400, "directory": 255, "md5sum": 32, "sha512sum": 128, "mimetype": 80}
_COLUMNS = {
    "filename": "filename",
    "directory": "directory",
    "md5sum": "md5sum",
    "sha512sum": "sha512sum",
    "mimetype": "mimetype",
    "size": "size",
    "version": "version",
    "created_time": "created",
    "modification_time": "modified",
}


class Draft(NamedTuple):
    """The columns of a datafile to be made."""

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


def read_draft(data: Mapping[str, Any], dataset: int, times: Times) -> Draft:
    """Return a new datafile's columns; what is invalid is the bare 500."""
    columns = read_changes(data, times)
    draft = Draft(
        dataset=dataset,
        directory=columns.get("directory"),
        filename=columns.get("filename") or "",
        version=columns.get("version", 1),
        size=columns.get("size", -1),
        md5sum=columns.get("md5sum") or "",
        sha512sum=columns.get("sha512sum") or "",
        mimetype=columns.get("mimetype") or _guess(columns.get("filename") or ""),
        created=columns.get("created"),
        modified=columns.get("modified"),
    )
    if draft.size < 0 or not (draft.md5sum or draft.sha512sum):
        raise failed()
    return draft


def read_changes(data: Mapping[str, Any], times: Times) -> dict[str, Any]:
    """Return the columns of a datafile that a request names, in the form they are kept in."""
    changes = {}
    for field, column in _COLUMNS.items():
        if field in data:
            changes[column] = _read_value(field, data[field], times)
    return changes


def _read_value(field: str, value: object, times: Times) -> str | int | None:
    try:
        if field in ("size", "version"):
            return _read_number(value)
        if value is None:
            return None
        if field in _LIMITS:
            return _read_text(str(value), _LIMITS[field])
        if isinstance(value, str):
            return times.localize(value)
    except ValueError:
        raise failed() from None
    raise failed()


def _read_number(value: object) -> int:
    """Return a number that the server can compare and keep; texts of digits are numbers too."""
    if not isinstance(value, int | str):
        raise failed()
    number = int(value)
    if not 0 <= number < 1 << 63:
        raise failed()
    return number


def _read_text(text: str, limit: int) -> str:
    if len(text) > limit or "\0" in text:
        raise failed()
    text.encode()  # a lone surrogate is a ValueError here, as it is in the real database
    return text


def _guess(filename: str) -> str:
    return mimetypes.guess_type(filename)[0] or ""
