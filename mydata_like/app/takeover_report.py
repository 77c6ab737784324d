"""What would become of a MyData.cfg, in sentences."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mydata_like.app.importing import Takeover
from mydata_like.settings.fields import format_value
from mydata_like.settings.mydata_cfg import Conversion, LegacyKey
from mydata_like.settings.schema import settings_by_key

_HEADINGS = {
    Conversion.CHANGED: "Taken over with a difference:",
    Conversion.LEFT: "Not needed any more:",
    Conversion.UNUSABLE: "Not taken over; look at these:",
    Conversion.UNKNOWN: "Unknown to MyData too:",
}


class Paragraph(NamedTuple):
    """A heading, and what belongs to it line by line."""

    heading: str
    lines: tuple[str, ...]


def describe_takeover(takeover: Takeover) -> Iterator[Paragraph]:
    """Yield what would be set, what differs, what is left out and what stays as it is."""
    changes = takeover.changes.items()
    yield from _heading("Set:", (f"{key} = {_text(key, value)}" for key, value in changes))
    for becoming, heading in _HEADINGS.items():
        found = (old for old in takeover.keys if old.becoming is becoming and old.name != "api_key")
        yield from _heading(heading, _sentences(found))
    yield from _heading("Kept as it is here:", _kept_lines(takeover))
    yield from _heading("About the file:", _file_lines(takeover))


def _heading(heading: str, lines: Iterable[str]) -> Iterator[Paragraph]:
    found = tuple(lines)
    if found:
        yield Paragraph(heading, found)


def _sentences(keys: Iterable[LegacyKey]) -> Iterator[str]:
    """Yield each reason once, with all keys that it is for."""
    names_by_reason: dict[str, list[str]] = {}
    for old in keys:
        names_by_reason.setdefault(old.reason, []).append(old.name)
    for reason, names in names_by_reason.items():
        yield f"{', '.join(names)}: {reason}"


def _kept_lines(takeover: Takeover) -> Iterator[str]:
    for kept in takeover.kept:
        now, offered = (_text(kept.key, value) for value in (kept.value, kept.offered))
        locked = f" (locked by {kept.locked_by})" if kept.locked_by else ""
        yield f"{kept.key} = {now}; MyData has {offered}{locked}"


def _text(key: str, value: object) -> str:
    return format_value(settings_by_key()[key], value) or "(empty)"


def _file_lines(takeover: Takeover) -> Iterator[str]:
    for name in takeover.file.repeated:
        yield f"{name} is there several times; the last one counts."
    for number in takeover.file.bad_lines:
        yield f"Line {number} is no setting."
    if not takeover.file.encoding.startswith("utf"):
        yield "It is not in UTF-8: see that letters with accents are right above."
