"""The settings file: TOML that is read strictly and edited without losing comments."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import require_plain, write_private
from mydata_like.settings.fields import InvalidSettingsError, SettingProblem, unknown_key
from mydata_like.settings.schema import settings_by_key

if TYPE_CHECKING:
    pass

_LARGEST = 1024 * 1024
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)$")
_LOCKED = "locked"
_ENDINGS = ("]", '"""', "'''")  # of statements longer than a line
_TRIES = 20  # after these, a statement is parsed only when its length has doubled


class SettingsFile(NamedTuple):
    """The content of a settings file.

    `values` are by dotted key, as in TOML, known keys only; `lines` has the line of each. `locks`
    are the patterns of keys that a managed file locks, and `locked_by` names the administrator.
    `problems` are those found without checking the values.
    """

    path: Path
    values: Mapping[str, object] = {}
    lines: Mapping[str, int] = {}
    locks: tuple[str, ...] = ()
    locked_by: str = ""
    problems: tuple[SettingProblem, ...] = ()


def read_settings_file(path: Path, *, managed: bool = False) -> SettingsFile:
    """Read a settings file; a missing file has no values.

    Only a managed file may have the table `[locked]`. Never raises for wrong content or an
    unreadable file: these are in the problems.
    """
    try:
        text = _load_text(path)
        table = _parse(text)
    except FileNotFoundError:
        return SettingsFile(path)
    except SettingsError as error:  # not a regular file
        reason = f"{error.message.removeprefix(f'{path} ')} {error.hint}".rstrip(".")
        return SettingsFile(path, problems=(SettingProblem("", reason, str(path)),))
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        return SettingsFile(path, problems=(SettingProblem("", reason, str(path)),))
    except _SyntaxError as error:
        problem = SettingProblem("", error.message, str(path), error.line)
        return SettingsFile(path, problems=(problem,))
    return _Reader(path, _find_lines(text)).read(table, managed=managed)


def edit_settings_file(path: Path, changes: Mapping[str, object]) -> None:
    """Set some keys of a file, or remove those with the value None; keep everything else.

    The file is replaced atomically; only its owner may read it.
    """
    path = path.resolve()
    try:
        text = _load_text(path)
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}.") from error
    except _SyntaxError as error:
        raise _broken(str(path), error) from None
    write_private(path, edit_text(text, changes, str(path)).encode())


def edit_text(text: str, changes: Mapping[str, object], origin: str = "") -> str:
    """Return the text of a settings file with some keys set or removed (None)."""
    try:
        wanted = _changed(_parse(text), changes)
    except _SyntaxError as error:
        raise _broken(origin, error) from None
    edited = _edit(text.replace("\r\n", "\n"), changes)
    # Work-around: tomlkit 0.15.2 supports less of TOML than `tomllib`, so its result is verified by
    # reading it. https://github.com/python-poetry/tomlkit/issues/571
    # Remove when tomlkit reads all that `tomllib` reads.
    if wanted is None or edited is None or not _parses_to(edited, wanted):
        raise SettingsError(
            f"{origin or 'The settings file'} cannot be edited here because of its syntax.",
            hint="Change the setting in the file with a text editor.",
        )
    return edited.replace("\n", "\r\n") if "\r\n" in text else edited


class _SyntaxError(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def _broken(origin: str, error: _SyntaxError) -> InvalidSettingsError:
    return InvalidSettingsError([SettingProblem("", error.message, origin, error.line)])


def _load_text(path: Path) -> str:
    require_plain(path)
    with path.open("rb") as stream:
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise _SyntaxError("is too large for a settings file (1 MiB at most)", 0)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _SyntaxError("is not UTF-8 text", line) from None


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise _SyntaxError("is not TOML: nested too deeply", 0) from None
    except ValueError as error:  # TOMLDecodeError, or a number with too many digits
        message = str(error)
        position = _POSITION.search(message)
        line = text.count("\n") + 1
        if position and position[1]:
            line = int(position[1])
        reason = _POSITION.sub("", message)
        raise _SyntaxError(f"is not TOML: {reason[:1].lower()}{reason[1:]}", line) from None


def _find_lines(text: str) -> dict[str, int]:
    """Return the line of every key and table of a valid TOML text.

    Each TOML statement is a valid document of its own, so statements are the shortest runs of lines
    that can be parsed. If one is nested too deeply, the lines after it are missing.
    """
    lines: dict[str, int] = {}
    table = ""
    with suppress(RecursionError):
        for number, header, content in _statements(text):
            for key in _paths(content):
                full = key if header or not table else f"{table}.{key}"
                lines.setdefault(full, number)
                table = key if header else table
    return lines


def _statements(text: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    """Yield the line of each statement, whether it is a table header, and its content.

    A long statement is not parsed at each of its lines, which would take quadratic time: first only
    at possible ends, later only when its length has doubled.
    """
    pending: list[str] = []
    first, tries, tried = 1, 0, 0
    every = text.split("\n")
    for number, line in enumerate(every, start=1):
        pending.append(line)
        may_end = len(pending) == 1 or any(mark in line for mark in _ENDINGS)
        small = tries < _TRIES or len(pending) >= 2 * tried
        if not (may_end and small) and number < len(every):
            continue
        tries, tried = tries + 1, len(pending)
        statement = "\n".join(pending) + "\n"
        try:
            content = tomllib.loads(statement)
        except ValueError:
            continue
        yield first, statement.lstrip().startswith("["), content
        pending, first, tries, tried = [], number + 1, 0, 0


def _paths(table: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted keys of nested tables: each leaf, and each empty table."""
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


class _Reader:
    """Sorts the content of a parsed file into values, locks and problems."""

    def __init__(self, path: Path, lines: Mapping[str, int]) -> None:
        self._path = path
        self._lines = lines
        self._values: dict[str, object] = {}
        self._problems: list[SettingProblem] = []

    def read(self, table: Mapping[str, Any], *, managed: bool) -> SettingsFile:
        locked = table.get(_LOCKED) if managed else None
        sections = {key.partition(".")[0] for key in settings_by_key()}
        for name, content in table.items():
            if managed and name == _LOCKED:
                continue
            if name not in sections:
                self._add_problem(
                    name, unknown_key(name, sections).replace("setting", "section", 1)
                )
            elif not isinstance(content, dict):
                self._add_problem(name, f"is a section: write [{name}] and its settings below")
            else:
                for entry, value in content.items():
                    key = f"{name}.{entry}"
                    if key in settings_by_key():
                        self._values[key] = value
                    else:
                        self._add_problem(key, unknown_key(key, settings_by_key()))
        locks, locked_by = self._read_locks(locked)
        lines = {key: self._line(key) for key in self._values}
        problems = tuple(self._problems)
        return SettingsFile(self._path, self._values, lines, locks, locked_by, problems)

    def _read_locks(self, table: object) -> tuple[tuple[str, ...], str]:
        if table is None:
            return (), ""
        table = table if isinstance(table, dict) else {"": table}
        for entry in table.keys() - {"keys", "by"}:
            self._add_problem(
                f"{_LOCKED}.{entry}".rstrip("."), "is unknown: [locked] has keys and by"
            )
        keys, who = table.get("keys", []), table.get("by", "")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            self._add_problem("locked.keys", "must be a list of keys, as in ['server.*']")
            keys = []
        if not isinstance(who, str):
            self._add_problem("locked.by", "must be text")
            who = ""
        return tuple(keys), who

    def _add_problem(self, key: str, message: str) -> None:
        self._problems.append(SettingProblem(key, message, str(self._path), self._line(key)))

    def _line(self, key: str) -> int:
        if key in self._lines:
            return self._lines[key]
        below = (line for path, line in self._lines.items() if path.startswith(f"{key}."))
        return min(below, default=0)


def _changed(table: dict[str, Any], changes: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the table after the changes; None if a section is not a table."""
    for key, value in changes.items():
        section, _, name = key.partition(".")
        if not isinstance(table.get(section, {}), dict):
            return None
        if value is not None:
            table.setdefault(section, {})[name] = value
        else:
            table.get(section, {}).pop(name, None)
    return table


def _parses_to(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return _parse(text) == wanted
    except _SyntaxError:
        return False


def _edit(text: str, changes: Mapping[str, object]) -> str | None:
    """Return the edited text, or None if the editing library cannot edit it."""
    import tomlkit  # imported here: settings are read at every start, but rarely edited
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        for key, value in changes.items():
            section, _, name = key.partition(".")
            if value is not None:
                if section not in document:
                    document[section] = tomlkit.table()
                document[section][name] = tomlkit.item(value)
                if isinstance(value, list) and len(value) > 3:
                    document[section][name].multiline(True)  # noqa: FBT003
            elif name in document.get(section, {}):
                del document[section][name]
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
