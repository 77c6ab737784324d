"""Commands to a run: one JSON object per line, such as `{"command": "pause", "id": 7}`.

Names and fields are documented in docs/events.md.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from mydata_like.core.errors import Problem
from mydata_like.core.extra_sources import Destination, SourceRequest
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen
from mydata_like.core.parsing import parse_json

LONGEST: Final = 1024 * 1024  # bytes per line
MOST_PATHS: Final = 100  # in one command
_LONGEST_ID: Final = 200  # characters
_MOST_CHANNELS: Final = 1000
_MOST_LISTED: Final = 1000
_MOST_TRANSFERS: Final = 2**63 - 1
_FASTEST: Final = 1e11  # bytes per second


@frozen()
class Pause:
    """Send nothing until `Resume`."""


@frozen()
class Resume:
    """Continue, and check immediately whether other causes of the pause are gone."""


@frozen()
class Stop:
    """End the run: now, or after the transfers in progress."""

    now: bool = True


@frozen()
class StopRun:
    """End the run as `Stop` does, but not the watch that started it."""

    now: bool = True


@frozen()
class Start:
    """Make a watch begin a run now; `only` limits it to one folder, with its path as in events."""

    only: str = ""


@frozen()
class Cancel:
    """Leave a file, or all files in a folder, for a later run; `path` is as in events."""

    path: str


@frozen()
class CancelTransfer:
    """Leave all files of an unfinished transfer for a later run."""

    transfer: int


@frozen()
class Retry:
    """Send failed and cancelled files at or below `path` again."""

    path: str


@frozen()
class RetryTransfer:
    """Send the files of a cancelled transfer after all."""

    transfer: int


@frozen()
class SendNext:
    """Send the waiting files at or below these paths before all others, in the paths' order."""

    paths: Sequence[str]


@frozen()
class ListNext:
    """Report the files that are sent next, at most so many; see `NextListed`."""

    most: int = 100


@frozen()
class SetChannels:
    """Set the number of concurrent channels; 0 finds a good number automatically."""

    channels: int


@frozen()
class SetBandwidth:
    """Set the bandwidth of all channels together, in bytes per second; 0 is no limit."""

    bandwidth: float


@frozen()
class AddSource:
    """Upload a folder or file outside the data directory as well.

    `path` is absolute, with lone surrogates for bytes that are not text. `as_` is experiment and
    dataset, or owner, experiment and dataset. If it is empty, the source keeps its earlier names,
    or gets names from its path.
    """

    path: str
    as_: Sequence[str] = ()

    @property
    def offer(self) -> SourceRequest:
        """The folder or file and its destination."""
        names = ["", *self.as_][-3:]
        return SourceRequest(os.fsencode(self.path), Destination(*names) if self.as_ else None)


Command = (
    Start
    | Pause
    | Resume
    | Stop
    | StopRun
    | Cancel
    | CancelTransfer
    | Retry
    | RetryTransfer
    | SendNext
    | ListNext
    | SetChannels
    | SetBandwidth
    | AddSource
)


_KINDS: Final[dict[str, type[Command]]] = {
    "start": Start,
    "pause": Pause,
    "resume": Resume,
    "stop": Stop,
    "stop_run": StopRun,
    "cancel": Cancel,
    "cancel_transfer": CancelTransfer,
    "retry": Retry,
    "retry_transfer": RetryTransfer,
    "send_next": SendNext,
    "list_next": ListNext,
    "set_channels": SetChannels,
    "set_bandwidth": SetBandwidth,
    "add_source": AddSource,
}


class CommandLine(NamedTuple):
    """One line: the `id` and the name for the reply, and the command or its problem."""

    id: str | int | None
    name: str
    command: Command | Problem


def parse_command(line: bytes) -> CommandLine:
    """Parse a line; never raises."""
    if len(line) > LONGEST:
        return CommandLine(None, "", _unreadable(f"it is longer than {LONGEST} bytes"))
    try:
        record = parse_json(line, longest=LONGEST)
    except ValueError:
        return CommandLine(None, "", _unreadable("it is not JSON"))
    if not isinstance(record, dict):
        return CommandLine(None, "", _unreadable("it is not a JSON object"))
    number, name = record.pop("id", None), record.pop("command", None)
    if number is not None and not _is_id(number):
        wish = f"must be an integer, or a text of at most {_LONGEST_ID} characters"
        return CommandLine(None, _show(name), _invalid(f'"id" {wish}'))
    return CommandLine(number, _show(name), _build(name, record))


def _build(name: object, given: dict[str, Any]) -> Command | Problem:
    """Return the command with this name and these fields."""
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        return _unknown(name)
    if kind is SendNext and "path" in given and "paths" not in given:
        given["paths"] = [given.pop("path")]
    known = {field.name.rstrip("_"): field for field in fields(kind)}
    for word in given.keys() - known.keys():
        return _invalid(f'"{name}" has no field "{_show(word)}"')
    for word, field in known.items():
        accepts, wish = _FIELDS[word]
        if word not in given and field.default is MISSING:
            return _invalid(f'"{name}" needs the field "{word}"')
        if word in given and not accepts(given[word]):
            return _invalid(f'"{word}" must be {wish}')
    return kind(**{known[word].name: value for word, value in given.items()})


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _is_path(value: object) -> bool:
    """Return whether a value can be a path, absolute or below the data directory."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return not {"", ".", ".."} & set(value.strip("/").split("/"))


def _is_destination(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) in (2, 3)
        and all(isinstance(name, str) for name in value)
    )


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_ID and value == _show(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63


_FIELDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "now": (lambda value: isinstance(value, bool), "true or false"),
    "path": (_is_path, "a path, absolute or below the data directory, as in events"),
    "paths": (
        lambda value: (
            isinstance(value, list) and 0 < len(value) <= MOST_PATHS and all(map(_is_path, value))
        ),
        f"a list of 1 to {MOST_PATHS} paths, absolute or below the data directory, as in events",
    ),
    "only": (_is_path, "the path of a folder below the data directory, as in events"),
    "as": (
        _is_destination,
        "a list of experiment and dataset, or of owner, experiment and dataset",
    ),
    "transfer": (
        lambda value: isinstance(value, int) and _is_number(value, 1, _MOST_TRANSFERS),
        "the number of a transfer, as in events",
    ),
    "most": (
        lambda value: isinstance(value, int) and _is_number(value, 1, _MOST_LISTED),
        f"an integer from 1 to {_MOST_LISTED}",
    ),
    "channels": (
        lambda value: isinstance(value, int) and _is_number(value, 0, _MOST_CHANNELS),
        f"an integer from 0 to {_MOST_CHANNELS}",
    ),
    "bandwidth": (
        lambda value: _is_number(value, 0, _FASTEST),
        "a number of bytes per second, or 0 for no limit",
    ),
}


def _show(value: object) -> str:
    """Return an external text safe to show and send back; empty for anything else."""
    return (
        format_path(value.encode("utf-8", "backslashreplace"))[:_LONGEST_ID]
        if isinstance(value, str)
        else ""
    )


def _unreadable(why: str) -> Problem:
    return Problem(
        "command.unreadable",
        f"A command cannot be read: {why}.",
        'Write one JSON object per line, such as {"command": "pause"}.',
    )


def _unknown(name: object) -> Problem:
    near = get_close_matches(_show(name), _KINDS, n=1)
    return Problem(
        "command.unknown",
        f'There is no command "{_show(name)}".',
        f'Did you mean "{near[0]}"?' if near else f"Commands are {', '.join(_KINDS)}.",
    )


def _invalid(why: str) -> Problem:
    return Problem("command.invalid", f"A command has wrong fields: {why}.")
