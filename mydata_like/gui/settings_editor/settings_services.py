"""Background functions of the settings dialog, which import the application late."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.pending_changes import ApiKeyChange, PendingChanges
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.settings_edit import SettingsProposal

CHANGED_ELSEWHERE = "settings.changed-elsewhere"
NO_KEYRING = "settings.no-keyring"


class KeyPlace(NamedTuple):
    """Where the API key of an account is, in words; `problem` says why that cannot be told."""

    url: str
    account: str
    place: str = ""
    problem: str = ""


def open_draft(config: Path | None) -> PendingChanges:
    """Read the settings for editing."""
    from mydata_like.app import settings_edit

    return settings_edit.open_draft(config)


def save(config: Path | None, draft: PendingChanges, key: ApiKeyChange | None) -> None:
    """Write what was changed, and store or delete the API key; raises SettingsError."""
    from mydata_like.app.settings_edit import SettingsEdit, save_edit

    edition = SettingsEdit(
        changes=draft.changes, seen=draft.seen, settings=draft.part("server"), key=key
    )
    save_edit(config, edition)


def locate_key(settings: Settings, config: Path | None) -> KeyPlace:
    """Ask where the API key is; a keyring that does not answer is part of the answer."""
    from mydata_like.app.settings_edit import locate_api_key

    owner = settings.server.url, settings.server.username
    try:
        return KeyPlace(*owner, locate_api_key(settings, config))
    except SettingsError as error:
        return KeyPlace(*owner, problem=f"{error.message} {error.hint}".strip())


def read_proposal(source: Path, config: Path | None) -> SettingsProposal:
    """Read what a file would set here; raises SettingsError."""
    from mydata_like.app import settings_edit

    return settings_edit.read_proposal(source, config)


def export(values: Mapping[str, object], target: Path) -> None:
    """Write settings to a file for another computer; raises SettingsError."""
    from mydata_like.app.settings_edit import export_settings

    export_settings(values, target)
