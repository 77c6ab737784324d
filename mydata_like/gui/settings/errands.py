"""What the settings dialog has done beside the GUI thread; what is heavy is imported only there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.draft import Draft
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.editing import Proposal
    from mydata_like.app.trial import Step
    from mydata_like.engine.workers import CancelFlag

CHANGED_ELSEWHERE = "settings.changed-elsewhere"
NO_KEYRING = "settings.no-keyring"


class TypedKey(NamedTuple):
    """An API key that a person typed and that is not stored yet; an empty one forgets."""

    text: str
    store: Literal["keyring", "file"]

    def __repr__(self) -> str:
        return f"TypedKey(***, {self.store})"


class KeyPlace(NamedTuple):
    """Where the API key of an account is, in words; `problem` says why that cannot be told."""

    url: str
    account: str
    place: str = ""
    problem: str = ""


def open_draft(config: Path | None) -> Draft:
    """Read the settings for editing."""
    from mydata_like.app import editing

    return editing.open_draft(config)


def save(config: Path | None, draft: Draft, key: TypedKey | None) -> None:
    """Write what was changed, and keep or forget the API key; raises SettingsError."""
    from mydata_like.app.editing import Edition, KeyWish, save_edition
    from mydata_like.app.settings import Secret

    wish = None
    if key is not None:
        secret = Secret(key.text) if key.text else None
        wish = KeyWish(secret, key.store)
    edition = Edition(
        changes=draft.changes, seen=draft.seen, settings=draft.part("server"), key=wish
    )
    save_edition(config, edition)


def locate_key(settings: Settings, config: Path | None) -> KeyPlace:
    """Ask where the API key is; a keyring that does not answer is part of the answer."""
    from mydata_like.app.editing import locate_api_key

    owner = settings.server.url, settings.server.username
    try:
        return KeyPlace(*owner, locate_api_key(settings, config))
    except SettingsError as error:
        return KeyPlace(*owner, problem=f"{error.message} {error.hint}".strip())


def read_proposal(source: Path, config: Path | None) -> Proposal:
    """Read what a file would set here; raises SettingsError."""
    from mydata_like.app import editing

    return editing.read_proposal(source, config)


def export(values: Mapping[str, object], target: Path) -> None:
    """Write settings to a file for another computer; raises SettingsError."""
    from mydata_like.app.editing import export_settings

    export_settings(values, target)


class Attempt(NamedTuple):
    """What to try the way to the server with: settings, and a key that is not stored yet."""

    settings: Settings
    config: Path | None
    key: str = ""


def try_connection(attempt: Attempt, cancel: CancelFlag, tell: Callable[[Step], None]) -> None:
    """Try the way to the server; each step is told as soon as it is known."""
    from mydata_like.app.run_request import RunObserver, RunRequest
    from mydata_like.app.settings import Secret
    from mydata_like.app.trial import try_out

    secret = Secret(attempt.key) if attempt.key else None
    request = RunRequest(
        settings=attempt.settings, config=attempt.config, dry_run=True, api_key=secret
    )
    # The window's log hides whatever looks like a key, and never gets to see this one.
    for step in try_out(request, RunObserver(cancel=cancel)):
        tell(step)
