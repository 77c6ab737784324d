"""Import from MyData: its settings, its API key, its SSH key and its identity."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from mydata_like.app.identity import find_uuid
from mydata_like.app.settings_service import (
    find_legacy,
    find_places,
    find_sources,
    open_secrets,
    save_settings,
)
from mydata_like.core.errors import SettingsError
from mydata_like.settings.fields import InvalidSettingsError, format_value, plain_value
from mydata_like.settings.layers import Layer, LayerSources, Loaded, preview_settings
from mydata_like.settings.layers import load_settings as load_layers
from mydata_like.settings.mydata_cfg import (
    Conversion,
    LegacyFile,
    LegacyKey,
    blank_key,
    key_places,
    read_legacy_file,
    translate,
)
from mydata_like.settings.pending_changes import KeyStore
from mydata_like.settings.schema import Settings, check_values, find_missing, settings_by_key
from mydata_like.settings.settings_file import read_settings_file
from mydata_like.ssh.keys import load_key
from mydata_like.state.paths import StatePaths
from mydata_like.state.secrets import Owner, Secret, SecretSources

_UUID, _KEY_FILE = "instrument.uuid", "transfer.key_file"
# A key with one of these problems may still be the approved one: it is better to have the user
# fix it than to create another key, which has no approval.
_MENDABLE = ("key.exposed", "key.unreadable")


class SavedKey(NamedTuple):
    """A setting that keeps its value although MyData has another one."""

    key: str
    value: object
    offered: object
    locked_by: str = ""  # empty if the user set the value


class OldSshKey(NamedTuple):
    """MyData's private SSH key; `problem` says what to fix before it can be used."""

    path: Path
    fingerprint: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MyDataImport:
    """A plan of what is imported from a MyData.cfg and what is not; nothing is changed yet."""

    file: LegacyFile
    keys: tuple[LegacyKey, ...]
    changes: Mapping[str, object]  # of the user's settings file, by dotted key
    kept: tuple[SavedKey, ...]
    ssh_key: OldSshKey | None
    secret: Secret | None
    secret_problem: str  # why there is no secret
    settings: Settings  # as they are after the changes

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(setting.key for setting in find_missing(self.settings))


ApiKeyFate = Literal["stored", "known", "kept", "left"]


def plan_takeover(source: Path | None, config: Path | None, *, force: bool = False) -> MyDataImport:
    """Return what a MyData.cfg (the usual one by default) would change in the user's settings.

    Values that the user has already set are kept unless `force` is on. Raises `SettingsError` if
    there is no such file, and if the current settings are invalid.
    """
    source = source or find_legacy()
    if source is None:
        raise SettingsError(
            "No MyData.cfg was found in the usual folders of this system.",
            hint="Name the file: mydata-like settings import FILE",
        )
    file = read_legacy_file(source)
    translation = translate(file.pairs)
    # Values in the current environment must not keep settings out of the file.
    sources = replace(find_sources(config), environment={})
    present = CurrentSettings(load_layers(sources), find_places(config))
    ssh_key = _find_ssh_key(file.path)
    settings, _ = check_values({"server.allow_http": True, **translation.values})
    assert settings is not None  # each of them was checked when it was translated
    wanted = {
        key: "" if value == "" else plain_value(settings.value(key))
        for key, value in translation.values.items()
    }
    if ssh_key is not None:
        wanted[_KEY_FILE] = str(ssh_key.path)
    changes, kept = present.compare(wanted, force=force)
    wrong = _take_wrong_out(sources, changes)
    settings = preview_settings(sources, changes).settings
    secret, secret_problem = _find_secret(file, wanted, settings)
    return MyDataImport(
        file=file,
        keys=tuple(
            old._replace(becoming=Conversion.UNUSABLE, reason=wrong[old.setting])
            if old.setting in wrong
            else old
            for old in translation.keys
        ),
        changes=changes,
        kept=kept,
        ssh_key=ssh_key,
        secret=secret,
        secret_problem=secret_problem,
        settings=settings,
    )


def carry_over(
    takeover: MyDataImport,
    config: Path | None,
    store: KeyStore,
    *,
    force: bool = False,
    blank: bool = False,
) -> ApiKeyFate:
    """Store the API key, write the settings, and blank the old key if asked to, in this order.

    Returns what happened to the API key. Raises `SettingsError` if one of them cannot be written.
    MyData's file is only changed once everything in it has been saved elsewhere.
    """
    fate = _keep_secret(takeover, open_secrets(config), store, force=force)
    if takeover.changes:
        save_settings(config, takeover.changes)
    if blank and fate in ("stored", "known"):
        blank_key(takeover.file)
    return fate


class CurrentSettings:
    """The current settings, and which of them the user has set."""

    def __init__(self, loaded: Loaded, places: StatePaths) -> None:
        self._locked_by = loaded.locked_by
        self._settings = loaded.settings
        self._own = {
            key: plain_value(loaded.settings.value(key))
            for key, given in loaded.given.items()
            if any(entry.source is Layer.USER and not entry.ignored for entry in given)
        }
        # Identity and key may have been created at an earlier start, and be approved.
        uuid = find_uuid(loaded.settings, places)
        if uuid:
            self._own.setdefault(_UUID, uuid)
        if places.key_file.exists():
            self._own.setdefault(_KEY_FILE, str(places.key_file))

    def compare(
        self, wanted: Mapping[str, object], *, force: bool
    ) -> tuple[dict[str, object], tuple[SavedKey, ...]]:
        """Return the values to change, and those for which the current value is kept."""
        changes, kept = {}, []
        for key, value in wanted.items():
            now = self._own.get(key, plain_value(self._settings.value(key)))
            if value == now or (value == "" and now is None):
                continue
            if key in self._locked_by:
                kept.append(SavedKey(key, now, value, self._locked_by[key]))
            elif key in self._own and not force:
                kept.append(SavedKey(key, now, value))
            else:
                changes[key] = value
        return changes, tuple(kept)


def _take_wrong_out(sources: LayerSources, changes: dict[str, object]) -> dict[str, str]:
    """Remove the changes that conflict with other settings; return the reasons by key."""
    wrong: dict[str, str] = {}
    while True:
        try:
            preview_settings(sources, changes)
        except InvalidSettingsError as error:
            found = {entry.key: entry.message for entry in error.problems if entry.key in changes}
            if not found:
                raise
            for key in found:
                del changes[key]
            wrong |= found
        else:
            return wrong


def _find_ssh_key(config: Path) -> OldSshKey | None:
    path = next((place for place in key_places(config, Path.home()) if place.is_file()), None)
    if path is None:
        return None
    try:
        return OldSshKey(path.absolute(), load_key(path).public.fingerprint)
    except SettingsError as error:
        if error.problem_code not in _MENDABLE:
            return None
        return OldSshKey(path.absolute(), problem=f"{error.message} {error.hint}")


def _find_secret(
    file: LegacyFile, wanted: Mapping[str, object], settings: Settings
) -> tuple[Secret | None, str]:
    """Return MyData's API key if it belongs to the server and account in the settings."""
    text = file.pairs.get("api_key", "").strip()
    if not text:
        return None, "MyData's file contains no API key."
    names = ("server.url", "server.username")
    if any(wanted.get(name) != settings.value(name) for name in names):
        return None, "The API key belongs to another server or account than the one set here."
    try:
        return Secret(text), ""
    except SettingsError as error:
        return None, error.message


def _keep_secret(
    takeover: MyDataImport, secrets: SecretSources, store: KeyStore, *, force: bool
) -> ApiKeyFate:
    if takeover.secret is None:
        return "left"
    owner = Owner.of(takeover.settings.server.url, takeover.settings.server.username)
    chosen = secrets.file if store == "file" else secrets.keyring
    try:
        known = secrets.file.find(owner) or chosen.find(owner)
        if known == takeover.secret:
            return "known"
        if known is not None and not force:
            return "kept"
        chosen.save(owner, takeover.secret)
    except SettingsError as error:
        if error.problem_code != "settings.no-keyring":
            raise
        raise SettingsError(
            f"The API key cannot be stored. {error.message}",
            hint="Nothing was changed. Unlock the keyring, or store the key unencrypted in a file "
            "that only you can read: add --key-store file.",
            code=error.problem_code,
        ) from error
    if store == "keyring":
        secrets.file.forget(owner)
    return "stored"


PERSONAL = frozenset({"instrument.uuid", "transfer.key_file", "advanced.state_directory"})


class SettingsImport(NamedTuple):
    """A plan of what another settings file changes here; nothing is changed yet."""

    changes: Mapping[str, object]  # by dotted key
    kept: tuple[SavedKey, ...]  # settings that are locked here


def find_settings_kind(path: Path) -> Literal["mydata", "ours", ""]:
    """Return whether a file contains settings of MyData or ours; empty for anything else."""
    if path.suffix.lower() == ".toml":
        return "ours" if path.is_file() and read_settings_file(path).values else ""
    try:
        return "mydata" if path.is_file() and read_legacy_file(path).pairs else ""
    except SettingsError:
        return ""


def plan_copying(source: Path, config: Path | None) -> SettingsImport:
    """Return what importing a settings file would change in the user's own.

    Settings that identify an installation are left out. Raises `SettingsError` if the file or the
    resulting settings are invalid.
    """
    file = read_settings_file(source)
    values = {key: value for key, value in file.values.items() if key not in PERSONAL}
    _, problems = check_values(values)
    if file.problems or problems:
        raise InvalidSettingsError([*file.problems, *problems])
    # Values in the current environment must not keep settings out of the file.
    sources = replace(find_sources(config), environment={})
    present = CurrentSettings(load_layers(sources), find_places(config))
    plain = {key: plain_value(value) for key, value in values.items()}
    changes, kept = present.compare(plain, force=True)
    preview_settings(sources, changes)
    return SettingsImport(changes, kept)


_HEADINGS = {
    Conversion.CHANGED: "Imported with a difference:",
    Conversion.LEFT: "No longer needed:",
    Conversion.UNUSABLE: "Not imported; check these:",
    Conversion.UNKNOWN: "Not a setting of MyData either:",
}


class Paragraph(NamedTuple):
    """A heading and the lines below it."""

    heading: str
    lines: tuple[str, ...]


def describe_takeover(takeover: MyDataImport) -> Iterator[Paragraph]:
    """Yield what is set, what differs, what is left out and what is kept."""
    changes = takeover.changes.items()
    yield from _heading("Set:", (f"{key} = {_text(key, value)}" for key, value in changes))
    for becoming, heading in _HEADINGS.items():
        found = (old for old in takeover.keys if old.becoming is becoming and old.name != "api_key")
        yield from _heading(heading, _sentences(found))
    kept_lines = []
    for kept in takeover.kept:
        now, offered = (_text(kept.key, value) for value in (kept.value, kept.offered))
        locked = f" (locked by {kept.locked_by})" if kept.locked_by else ""
        kept_lines.append(f"{kept.key} = {now}; MyData has {offered}{locked}")
    yield from _heading("Kept as it is here:", kept_lines)
    yield from _heading("About the file:", _file_lines(takeover))


def _heading(heading: str, lines: Iterable[str]) -> Iterator[Paragraph]:
    found = tuple(lines)
    if found:
        yield Paragraph(heading, found)


def _sentences(keys: Iterable[LegacyKey]) -> Iterator[str]:
    """Yield each reason once, with all its keys."""
    names_by_reason: dict[str, list[str]] = {}
    for old in keys:
        names_by_reason.setdefault(old.reason, []).append(old.name)
    for reason, names in names_by_reason.items():
        yield f"{', '.join(names)}: {reason}"


def _text(key: str, value: object) -> str:
    return format_value(settings_by_key()[key], value) or "(empty)"


def _file_lines(takeover: MyDataImport) -> Iterator[str]:
    for name in takeover.file.repeated:
        yield f"{name} occurs several times; the last value is used."
    for number in takeover.file.bad_lines:
        yield f"Line {number} is not a setting."
    if not takeover.file.encoding.startswith("utf"):
        yield "It is not in UTF-8: check that letters with accents are correct above."
