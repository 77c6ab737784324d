"""What the settings dialog has done beside the GUI thread; what is heavy is imported only there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.draft import Draft
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.bootstrap import Proposal, Step
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
    from mydata_like import bootstrap

    return bootstrap.open_draft(config)


def save(config: Path | None, draft: Draft, key: TypedKey | None) -> None:
    """Write what was changed, and keep or forget the API key; raises SettingsError."""
    from mydata_like import bootstrap

    wish = None
    if key is not None:
        secret = bootstrap.Secret(key.text) if key.text else None
        wish = bootstrap.KeyWish(secret, key.store)
    edition = bootstrap.Edition(
        changes=draft.changes, seen=draft.seen, settings=draft.part("server"), key=wish
    )
    bootstrap.save_edition(config, edition)


def locate_key(settings: Settings, config: Path | None) -> KeyPlace:
    """Ask where the API key is; a keyring that does not answer is part of the answer."""
    from mydata_like import bootstrap

    owner = settings.server.url, settings.server.username
    try:
        return KeyPlace(*owner, bootstrap.locate_api_key(settings, config))
    except SettingsError as error:
        return KeyPlace(*owner, problem=f"{error.message} {error.hint}".strip())


def read_proposal(source: Path, config: Path | None) -> Proposal:
    """Read what a file would set here; raises SettingsError."""
    from mydata_like import bootstrap

    return bootstrap.read_proposal(source, config)


def export(values: Mapping[str, object], target: Path) -> None:
    """Write settings to a file for another computer; raises SettingsError."""
    from mydata_like import bootstrap

    bootstrap.export_settings(values, target)


class Attempt(NamedTuple):
    """What to try the way to the server with: settings, and a key that is not stored yet."""

    settings: Settings
    config: Path | None
    key: str = ""


def try_connection(attempt: Attempt, cancel: CancelFlag, tell: Callable[[Step], None]) -> None:
    """Try the way to the server; each step is told as soon as it is known."""
    from mydata_like import bootstrap
    from mydata_like.engine.progress import RunProgress

    secret = bootstrap.Secret(attempt.key) if attempt.key else None
    order = bootstrap.Order(config=attempt.config, dry_run=True, api_key=secret)
    tally = RunProgress(bootstrap.SystemClock())
    audience = bootstrap.Audience(tally.add, tally, cancel, _hide_nothing)
    for step in bootstrap.try_out(attempt.settings, order, audience):
        tell(step)


def _hide_nothing(secret: str) -> None:
    """The window's log hides whatever looks like a key, and never gets to see this one."""
    del secret
