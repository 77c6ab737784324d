"""What the wizard asks of the program; all of it runs beside the GUI thread.

What is heavy is imported only there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from mydata_like.core.model import Facility

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mydata_like import bootstrap
    from mydata_like.core.events import Event
    from mydata_like.core.ports import Cancel
    from mydata_like.engine.workers import CancelFlag
    from mydata_like.settings.schema import Server, Settings

Store = Literal["keyring", "file"]


@dataclass(frozen=True, slots=True)
class NewKey:
    """An API key that is to be kept, and where."""

    text: str
    store: Store

    def __repr__(self) -> str:
        return f"NewKey(***, {self.store!r})"


class Place(NamedTuple):
    """The facilities of an account, and the names of the instruments of the chosen one."""

    facilities: Sequence[Facility]
    instruments: Sequence[str]


class Registered(NamedTuple):
    """The approval, and the first staging host that nobody has vouched for yet."""

    admission: bootstrap.Admission
    host_key: bootstrap.HostKey | None


def begin(config: Path | None) -> bootstrap.Beginning:
    """Return how far the set-up has come."""
    from mydata_like import bootstrap

    return bootstrap.find_beginning(config)


def keep(
    config: Path | None, changes: Mapping[str, object], key: NewKey | None
) -> bootstrap.Beginning:
    """Keep what was entered; the API key only where it can be kept safe."""
    from mydata_like import bootstrap

    if changes:
        bootstrap.save_settings(config, changes)
    beginning = bootstrap.find_beginning(config)
    if key is None:
        return beginning
    secrets = bootstrap.open_secrets(config)
    bootstrap.store_api_key(beginning.loaded.settings, secrets, key.text, key.store)
    return bootstrap.find_beginning(config)


def check_address(server: Server, text: str, cancel: Cancel) -> bootstrap.Reached:
    """Look for the server."""
    from mydata_like import bootstrap

    return bootstrap.check_address(server, text, cancel)


def check_account(config: Path | None, server: Server, key: str, cancel: Cancel) -> str:
    """Return as whom the server knows us: the full name, or else the account's."""
    from mydata_like import bootstrap

    user = bootstrap.check_account(bootstrap.Login(server, config, key), cancel)
    return user.full_name or user.username


def find_place(config: Path | None, server: Server, chosen: str, cancel: Cancel) -> Place:
    """Return the facilities, and the instruments of the chosen one or else of the first."""
    from mydata_like import bootstrap

    login = bootstrap.Login(server, config)
    facilities = bootstrap.list_facilities(login, cancel)
    facility = next((it for it in facilities if it.name == chosen), facilities[0])
    return Place(facilities, bootstrap.list_instruments(login, facility, cancel))


def preview_layout(
    config: Path | None,
    settings: Settings,
    tell: Callable[[bootstrap.Sample], object],
    cancel: Cancel,
) -> bootstrap.Preview:
    """Tell what the folders would become."""
    from mydata_like import bootstrap

    login = bootstrap.Login(settings.server, config)
    return bootstrap.preview_layout(settings, login, tell, cancel)


def plan_takeover(
    config: Path | None, source: Path | None, _cancel: Cancel
) -> tuple[bootstrap.Takeover, tuple[bootstrap.Paragraph, ...]]:
    """Return what MyData's settings would change, and the same in sentences."""
    from mydata_like import bootstrap

    takeover = bootstrap.plan_takeover(source, config)
    return takeover, tuple(bootstrap.describe_takeover(takeover))


def carry_over(
    config: Path | None, takeover: bootstrap.Takeover, store: Store, _cancel: Cancel
) -> bootstrap.Beginning:
    """Take over MyData's settings and its API key."""
    from mydata_like import bootstrap

    bootstrap.carry_over(takeover, config, store)
    return bootstrap.find_beginning(config)


def show_key(config: Path | None, settings: Settings, _cancel: Cancel) -> bootstrap.OwnKey:
    """Return the uploader's key, made now where there is none."""
    from mydata_like import bootstrap

    return bootstrap.show_key(settings, config)


def register(
    config: Path | None,
    settings: Settings,
    tell: Callable[[Event], None],
    cancel: CancelFlag,
) -> Registered:
    """Ask for approval; raises `NotApprovedError` while it is awaited."""
    from mydata_like import bootstrap

    order = bootstrap.Order(config=config)
    admission = bootstrap.register(settings, order, _audience(tell, cancel))
    return Registered(admission, next(admission.unknown_host_keys, None))


def trust_host(registered: Registered, _cancel: Cancel) -> Registered:
    """Trust the host that was asked about, and meet the next one."""
    from mydata_like import bootstrap

    admission, host_key = registered
    assert host_key is not None
    bootstrap.trust_host(host_key)
    return Registered(admission, next(admission.unknown_host_keys, None))


def try_out(
    config: Path | None,
    settings: Settings,
    tell: Callable[[bootstrap.Step], object],
    cancel: CancelFlag,
) -> tuple[bootstrap.Step, ...]:
    """Send a test file, telling of each step."""
    from mydata_like import bootstrap

    order = bootstrap.Order(config=config, dry_run=True)
    steps = []
    for step in bootstrap.try_out(settings, order, _audience(_ignore, cancel)):
        tell(step)
        steps.append(step)
    return tuple(steps)


def _audience(tell: Callable[[Event], None], cancel: CancelFlag) -> bootstrap.Audience:
    from mydata_like import bootstrap
    from mydata_like.engine.progress import RunProgress

    # The log of the window says nothing of requests but their paths, so no secret is to be hidden.
    return bootstrap.Audience(tell, RunProgress(bootstrap.SystemClock()), cancel, _ignore)


def _ignore(_told: object) -> None:
    """Listen to nothing."""
