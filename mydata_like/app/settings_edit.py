"""Editing the settings in a dialog: opening a draft, importing a file, and saving."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.app.mydata_import import MyDataImport, plan_takeover
from mydata_like.app.service_setup import open_autostart
from mydata_like.app.settings_service import (
    find_owner,
    find_sources,
    load_settings,
    open_secrets,
    save_settings,
    store_api_key,
    store_s3_secret,
)
from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.fields import format_value
from mydata_like.settings.layers import read_layers
from mydata_like.settings.mydata_cfg import Conversion
from mydata_like.settings.pending_changes import PendingChanges, SecretChange, SecretKind
from mydata_like.settings.schema import Settings, settings_by_key
from mydata_like.settings.settings_file import edit_text, read_settings_file
from mydata_like.state.secrets import Secret

AUTOSTART: Final = "window.start_at_login"  # takes effect when it is saved
CHANGED_ELSEWHERE: Final = "settings.changed-elsewhere"
# Settings that belong to this installation only, or that give access to anyone who has them.
PERSONAL: Final = frozenset(
    {"instrument.uuid", "transfer.key_file", "monitor.signal_url", "advanced.state_directory"}
)
_HEADER: Final = "# Settings of mydata-like, without secrets and those of this computer only.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsEdit:
    """The changes to save: those of a draft, and those of secrets.

    `seen` is the file's content that the changes are based on; `settings` contain the owners of
    the secrets.
    """

    changes: Mapping[str, object]
    seen: bytes
    settings: Settings | None = None
    secrets: tuple[SecretChange, ...] = ()


class SettingsProposal(NamedTuple):
    """The changes that a file would make; nothing is changed yet. `remarks` are for the user."""

    changes: Mapping[str, object]
    secret: Secret | None = None
    remarks: tuple[str, ...] = ()


def open_draft(config: Path | None) -> PendingChanges:
    """Return the settings for editing; errors in the files are part of the draft."""
    sources = find_sources(config)
    seen = _read(sources.user)
    # Invalid settings are shown and fixed without the server's settings.
    with suppress(SettingsError):
        sources = load_settings(config).sources
    return PendingChanges(read_layers(sources), seen)


def save_edit(config: Path | None, edit: SettingsEdit) -> None:
    """Store the secrets, write the changes, and update the start at login, in this order.

    Raises `SettingsError`, with nothing written to the settings file, if it has changed in the
    meantime, if a secret cannot be stored, and like `save_settings`.
    """
    file = find_sources(config).user
    if _read(file) != edit.seen:
        raise SettingsError(
            f"{file} was changed by another program or user in the meantime.",
            hint="Check the current values, and save again.",
            code=CHANGED_ELSEWHERE,
        )
    # A keyring is likelier to refuse than the file, so it comes first: then nothing is in the file.
    for change in sorted(edit.secrets, key=lambda change: change.store == "file"):
        apply_secret_change(edit.settings or Settings(), change, config)
    if edit.changes:
        save_settings(config, edit.changes)
    if AUTOSTART in edit.changes:
        open_autostart().turn(on=bool(open_draft(config).value(AUTOSTART)))


def read_proposal(source: Path, config: Path | None) -> SettingsProposal:
    """Return what a MyData.cfg or a settings file would change here.

    Raises `SettingsError` if the file cannot be read or contains no settings.
    """
    if source.suffix.lower() == ".toml":
        return _read_own(source)
    takeover = plan_takeover(source, config)
    return SettingsProposal(takeover.changes, takeover.secret, tuple(_remark(takeover)))


def export_settings(values: Mapping[str, object], target: Path) -> None:
    """Write settings for another computer, without secrets and without those of this one only."""
    left_out = {key for key in values if key in PERSONAL or settings_by_key()[key].about.secret}
    kept = {key: value for key, value in values.items() if key not in left_out}
    write_private(target, (_HEADER + edit_text("", kept)).encode())


def _read(file: Path) -> bytes:
    """Return the content of a file; empty if it cannot be read, which is reported elsewhere."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def apply_secret_change(settings: Settings, change: SecretChange, config: Path | None) -> None:
    """Store or delete a secret of the settings' account or access key; raises `SettingsError`."""
    secrets = open_secrets(config)
    if change.text is not None:
        store = store_api_key if change.kind is SecretKind.API_KEY else store_s3_secret
        store(settings, secrets, change.text, change.store)
        return
    owner = find_owner(settings, change.kind)
    was_in_file = secrets.file.find(owner) is not None
    secrets.file.forget(owner)
    try:
        secrets.keyring.forget(owner)
    except SettingsError:
        if not was_in_file:
            raise


def _read_own(source: Path) -> SettingsProposal:
    file = read_settings_file(source)
    # Unknown keys are left out; a file that is not TOML has no values at all.
    if not file.values:
        problems = file.problems or ("It contains no settings.",)
        raise SettingsError(
            f"{source} cannot be used. {problems[0]}",
            hint="Choose a settings file of mydata-like (.toml) or of MyData (.cfg).",
        )
    changes = {key: value for key, value in file.values.items() if key not in PERSONAL}
    return SettingsProposal(changes, None, tuple(map(str, file.problems)))


def _remark(takeover: MyDataImport) -> Iterator[str]:
    for kept in takeover.kept:
        setting = settings_by_key()[kept.key]
        now, offered = (format_value(setting, value) for value in (kept.value, kept.offered))
        yield f"{kept.key} remains {now or '(empty)'}; MyData has {offered or '(empty)'}."
    for old in takeover.keys:
        if old.becoming in (Conversion.UNUSABLE, Conversion.UNKNOWN):
            yield f"{old.name} is left out: {old.reason}."
    if takeover.secret is None and takeover.secret_problem:
        yield takeover.secret_problem
    if takeover.ssh_key and takeover.ssh_key.problem:
        yield takeover.ssh_key.problem
