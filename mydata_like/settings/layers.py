"""The settings layers: which one decides each setting, and which settings are locked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.core.frozen import frozen
from mydata_like.settings.fields import (
    InvalidSettingsError,
    Setting,
    SettingProblem,
    find_nearest,
    format_value,
    parse_value,
    unknown_key,
)
from mydata_like.settings.schema import Settings, check_values, settings_by_key
from mydata_like.settings.server_layer import SHOWN, ServerLayer, matches
from mydata_like.settings.settings_file import SettingsFile, read_settings_file

PREFIX: Final = "MYDATA_LIKE_"


def variable_of(key: str) -> str:
    """Return the name of the environment variable that sets a key."""
    return f"{PREFIX}{key.replace('.', '_').upper()}"


def warn_of_variables(environment: Mapping[str, str]) -> Iterable[str]:
    """Yield a warning for each variable that looks like a mistyped setting."""
    known = {variable_of(key): key for key in settings_by_key()}
    own = {f"{PREFIX}API_KEY", f"{PREFIX}S3_SECRET", f"{PREFIX}HOME"}
    for variable in sorted(environment.keys() - known.keys() - own):
        nearest = find_nearest(variable, known) if variable.startswith(PREFIX) else None
        if nearest:
            yield f"{variable} is not a setting; did you mean {nearest}?"


class Layer(StrEnum):
    """The sources of values, weakest first."""

    DEFAULT = "default"
    MANAGED = "managed file"
    SERVER = "server"  # stronger than the user's file if it was changed later
    USER = "user file"
    ENVIRONMENT = "environment"
    OPTION = "command line"


@frozen(kw_only=True, eq=False)
class LayerSources:
    """The inputs of all layers: files, server, environment, `section.key=value` texts."""

    user: Path
    managed: Path | None = None
    server: ServerLayer | None = None
    environment: Mapping[str, str]
    assignments: Sequence[str] = ()


class ResolvedValue(NamedTuple):
    """The value that one layer gives to one setting, and its origin."""

    source: Layer
    value: object
    origin: str = ""
    line: int = 0
    ignored: bool = False  # the setting is locked
    former: str = ""  # the value as written, if it is a value of an earlier version

    @property
    def place(self) -> str:
        """The origin with its line, for messages."""
        return f"{self.origin}, line {self.line}" if self.line else self.origin


class SettingSource(NamedTuple):
    """Why a setting has its value: all layers that give one (weakest first), and the winner."""

    setting: Setting
    value: object
    winner: ResolvedValue
    given: tuple[ResolvedValue, ...]
    locked_by: str  # empty if it is not locked


class ServerDecision(NamedTuple):
    """A setting that the server decides, and its value without the server, both as texts."""

    setting: Setting
    value: str
    instead_of: str
    origin: str

    def as_record(self) -> dict[str, str]:
        """Return the decision as plain values for JSON, as documented in docs/headless.md."""
        return self._asdict() | {"setting": self.setting.key}


class Layers(NamedTuple):
    """The unchecked values of all layers.

    `given` are the values of each key, weakest first, without the default. `locked_by` names the
    file and the administrator who locked each locked key. `problems` are those of whole files.
    """

    given: Mapping[str, tuple[ResolvedValue, ...]]
    locked_by: Mapping[str, str]
    problems: tuple[SettingProblem, ...]


@frozen(kw_only=True, eq=False)
class Loaded:
    """Valid settings, with the origin of each value."""

    settings: Settings
    sources: LayerSources
    given: Mapping[str, tuple[ResolvedValue, ...]]  # by key, weakest first, without the default
    locked_by: Mapping[str, str]  # by locked key: the file, and who locked it
    warnings: tuple[str, ...] = ()

    @property
    def former(self) -> tuple[str, ...]:
        """The warnings about values of earlier versions."""
        return tuple(_warn_of_former(self.given))

    def explain(self, key: str) -> SettingSource:
        """Return where a setting's value came from; raises SettingsError for an unknown key."""
        setting = find_setting(key)
        given = (ResolvedValue(Layer.DEFAULT, setting.default), *self.given.get(key, ()))
        winner = [entry for entry in given if not entry.ignored][-1]
        value = self.settings.value(key)
        return SettingSource(setting, value, winner, given, self.locked_by.get(key, ""))

    def find_server_decisions(self) -> Iterator[ServerDecision]:
        """Yield the visible settings for which the server's value differs from this computer's."""
        layer = self.sources.server
        if layer is None:
            return
        for key in sorted(key for key in layer.values if matches(key, SHOWN)):
            setting, value, winner, *_ = self.explain(key)
            here = layer.here.value(key)
            if winner.source is Layer.SERVER and value != here:
                texts = format_value(setting, value), format_value(setting, here)
                yield ServerDecision(setting, *texts, winner.origin)


def find_setting(key: str) -> Setting:
    """Return the setting of a dotted key; raises SettingsError with the nearest known one."""
    setting = settings_by_key().get(key)
    if setting is None:
        raise InvalidSettingsError([SettingProblem(key, unknown_key(key, settings_by_key()))])
    return setting


def load_settings(sources: LayerSources) -> Loaded:
    """Read, merge and check all layers.

    Raises InvalidSettingsError with every error in any layer, and SettingsError for an option that
    sets a locked key. Settings from the server never cause an error: if they conflict with the
    other layers, they are ignored with a warning.
    """
    files = _read_files(sources)
    try:
        return _load(sources, files)
    except InvalidSettingsError as error:
        if sources.server is None:
            raise
        loaded = _load(replace(sources, server=None), files)
        warning = f"The server's settings conflict with those of this computer: {error.problems[0]}"
        return replace(loaded, warnings=(*loaded.warnings, warning))


def preview_settings(sources: LayerSources, changes: Mapping[str, object]) -> Loaded:
    """Return what `load_settings` would after these changes to the user's file (None removes).

    Raises as `load_settings` does, and SettingsError if a change concerns a locked key.
    """
    files = _read_files(sources)
    _refuse_locked(changes, _locks(files.values()))
    user = files[Layer.USER]
    values = {**user.values, **changes}
    files[Layer.USER] = user._replace(
        values={key: value for key, value in values.items() if value is not None},
        problems=tuple(problem for problem in user.problems if problem.key not in changes),
    )
    return _load(sources, files)


def _read_files(sources: LayerSources) -> dict[Layer, SettingsFile]:
    files = {}
    if sources.managed:
        files[Layer.MANAGED] = read_settings_file(sources.managed, managed=True)
    files[Layer.USER] = read_settings_file(sources.user)
    return files


def read_layers(sources: LayerSources) -> Layers:
    """Return the values of all layers without checking them.

    Raises SettingsError only for an option that sets a locked key.
    """
    return _gather(sources, _read_files(sources))


def _gather(sources: LayerSources, files: Mapping[Layer, SettingsFile]) -> Layers:
    locked_by = _locks(files.values())
    problems = [problem for file in files.values() for problem in file.problems]
    for file in files.values():
        for pattern in file.locks:
            if not any(fnmatchcase(key, pattern) for key in settings_by_key()):
                message = f"locks {pattern!r}, which is not a setting"
                problems.append(SettingProblem("locked.keys", message, str(file.path)))
    given: dict[str, tuple[ResolvedValue, ...]] = {}
    for key, entry in _read_layers(sources, files, problems):
        if entry.source is Layer.OPTION:
            _refuse_locked([key], locked_by)
        ignored = key in locked_by and entry.source is not Layer.MANAGED
        current = entry._replace(ignored=ignored)
        setting = settings_by_key().get(key)
        for former, successor in setting.about.former if setting else ():
            if entry.value == former:
                current = current._replace(value=successor, former=former)
        given[key] = (*given.get(key, ()), current)
    return Layers(given, locked_by, tuple(problems))


def _load(sources: LayerSources, files: Mapping[Layer, SettingsFile]) -> Loaded:
    given, locked_by, found = _gather(sources, files)
    problems = list(found)
    counted = {
        key: active[-1]
        for key, entries in given.items()
        if (active := [entry for entry in entries if not entry.ignored])
    }
    settings, wrong = check_values({key: entry.value for key, entry in counted.items()})
    for problem in wrong:
        entry = counted.get(problem.key)
        place = problem._replace(origin=entry.origin, line=entry.line) if entry else problem
        problems.append(place)
    if problems or settings is None:
        raise InvalidSettingsError(problems)
    return Loaded(
        settings=settings,
        sources=sources,
        given=given,
        locked_by=locked_by,
        warnings=(
            *(
                f"{key} in {entry.place} is ignored: it is locked by {locked_by[key]}."
                for key, entries in given.items()
                for entry in entries
                if entry.ignored
            ),
            *_warn_of_former(given),
            *warn_of_variables(sources.environment),
            *(sources.server.warnings if sources.server else ()),
        ),
    )


def _read_layers(
    sources: LayerSources, files: Mapping[Layer, SettingsFile], problems: list[SettingProblem]
) -> Iterable[tuple[str, ResolvedValue]]:
    """Yield the values of each layer, weakest first; add to the problems."""
    for source in _order(sources):
        if source is Layer.SERVER and sources.server:
            for key, value in sources.server.values.items():
                yield key, ResolvedValue(source, value, sources.server.origin)
        else:
            file = files[source]
            for key, value in file.values.items():
                yield key, ResolvedValue(source, value, str(file.path), file.lines.get(key, 0))
    for key, setting in settings_by_key().items():
        variable = variable_of(key)
        if variable in sources.environment:
            value = parse_value(setting, sources.environment[variable])
            yield key, ResolvedValue(Layer.ENVIRONMENT, value, variable)
    for assignment in sources.assignments:
        key, separator, text = assignment.partition("=")
        key = key.strip()
        named = settings_by_key().get(key)
        if not separator:
            problems.append(SettingProblem(key, "needs a value: --set section.key=value", "--set"))
        elif named is None:
            message = unknown_key(key, settings_by_key())
            problems.append(SettingProblem(key, message, "--set"))
        else:
            yield key, ResolvedValue(Layer.OPTION, parse_value(named, text), "--set")


def _order(sources: LayerSources) -> Iterable[Layer]:
    """Yield the layers that are files or the server's, weakest first."""
    if sources.managed:
        yield Layer.MANAGED
    own = [Layer.USER]
    if sources.server:
        try:
            changed_here = sources.user.stat().st_mtime
        except OSError:
            changed_here = 0.0
        changed_there = sources.server.changed_at
        newer = changed_there is not None and changed_there.timestamp() > changed_here
        own.insert(1 if newer else 0, Layer.SERVER)
    yield from own


def _locks(files: Iterable[SettingsFile]) -> dict[str, str]:
    """Return the locked keys, each with the name of who locked it."""
    return {
        key: f"{file.locked_by} ({file.path})" if file.locked_by else str(file.path)
        for file in files
        for key in settings_by_key()
        if any(fnmatchcase(key, pattern) for pattern in file.locks)
    }


def _refuse_locked(keys: Iterable[str], locked_by: Mapping[str, str]) -> None:
    for key in keys:
        if key in locked_by:
            raise SettingsError(
                f"{key} is locked by {locked_by[key]}.",
                hint="Ask the administrator of this computer to change it there.",
                code="settings.locked",
            )


def _warn_of_former(given: Mapping[str, Sequence[ResolvedValue]]) -> Iterable[str]:
    for key, entries in given.items():
        for entry in entries:
            if entry.former and not entry.ignored:
                yield (
                    f'{key} = "{entry.former}" in {entry.place} is no longer supported; '
                    f'"{entry.value}" is used instead.'
                )
