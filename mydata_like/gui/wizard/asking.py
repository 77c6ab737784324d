"""What the wizard asks of the program; all of it runs beside the GUI thread.

What is heavy is imported only there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.model import Facility

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mydata_like.app.importing import Takeover
    from mydata_like.app.preview import Preview, Sample
    from mydata_like.app.registration import Admission, HostKey
    from mydata_like.app.setup import Beginning, OwnKey, Reached
    from mydata_like.app.takeover_report import Paragraph
    from mydata_like.core.events import Event
    from mydata_like.core.ports import CancelSignal
    from mydata_like.engine.pipeline import CancelFlag
    from mydata_like.settings.pending_changes import ApiKeyChange, KeyStore
    from mydata_like.settings.schema import Server, Settings


class Place(NamedTuple):
    """The facilities of an account, and the names of the instruments of the chosen one."""

    facilities: Sequence[Facility]
    instruments: Sequence[str]


class Registered(NamedTuple):
    """The approval, and the first staging host that nobody has vouched for yet."""

    admission: Admission
    host_key: HostKey | None


def begin(config: Path | None) -> Beginning:
    """Return how far the set-up has come."""
    from mydata_like.app.setup import find_beginning

    return find_beginning(config)


def keep(config: Path | None, changes: Mapping[str, object], key: ApiKeyChange | None) -> Beginning:
    """Keep what was entered; the API key only where it can be kept safe."""
    from mydata_like.app.editing import apply_key_change
    from mydata_like.app.settings import save_settings
    from mydata_like.app.setup import find_beginning

    if changes:
        save_settings(config, changes)
    beginning = find_beginning(config)
    if key is None:
        return beginning
    apply_key_change(beginning.loaded.settings, key, config)
    return find_beginning(config)


def check_address(server: Server, text: str, cancel: CancelSignal) -> Reached:
    """Look for the server."""
    from mydata_like.app import setup

    return setup.check_address(server, text, cancel)


def check_account(config: Path | None, server: Server, key: str, cancel: CancelSignal) -> str:
    """Return as whom the server knows us: the full name, or else the account's."""
    from mydata_like.app import setup
    from mydata_like.app.setup import Login

    user = setup.check_account(Login(server, config, key), cancel)
    return user.full_name or user.username


def find_place(config: Path | None, server: Server, chosen: str, cancel: CancelSignal) -> Place:
    """Return the facilities, and the instruments of the chosen one or else of the first."""
    from mydata_like.app.setup import Login, list_facilities, list_instruments

    login = Login(server, config)
    facilities = list_facilities(login, cancel)
    facility = next((it for it in facilities if it.name == chosen), facilities[0])
    return Place(facilities, list_instruments(login, facility, cancel))


def preview_layout(
    config: Path | None,
    settings: Settings,
    report: Callable[[Sample], object],
    cancel: CancelSignal,
) -> Preview:
    """Report what the folders would become."""
    from mydata_like.app import preview
    from mydata_like.app.setup import Login

    login = Login(settings.server, config)
    return preview.preview_layout(settings, login, report, cancel)


def plan_takeover(
    config: Path | None, source: Path | None
) -> tuple[Takeover, tuple[Paragraph, ...]]:
    """Return what MyData's settings would change, and the same in sentences."""
    from mydata_like.app import importing
    from mydata_like.app.takeover_report import describe_takeover

    takeover = importing.plan_takeover(source, config)
    return takeover, tuple(describe_takeover(takeover))


def carry_over(config: Path | None, takeover: Takeover, store: KeyStore) -> Beginning:
    """Take over MyData's settings and its API key."""
    from mydata_like.app import importing
    from mydata_like.app.setup import find_beginning

    importing.carry_over(takeover, config, store)
    return find_beginning(config)


def show_key(config: Path | None, settings: Settings) -> OwnKey:
    """Return the uploader's key, made now where there is none."""
    from mydata_like.app import setup

    return setup.show_key(settings, config)


def register(
    config: Path | None,
    settings: Settings,
    report: Callable[[Event], None],
    cancel: CancelFlag,
) -> Registered:
    """Ask for approval; raises `NotApprovedError` while it is awaited."""
    from mydata_like.app import registration
    from mydata_like.app.run_request import RunObserver, RunRequest

    request = RunRequest(settings=settings, config=config)
    admission = registration.register(request, RunObserver(emit=report, cancel=cancel))
    return Registered(admission, next(admission.unknown_host_keys, None))


def trust_host(registered: Registered) -> Registered:
    """Trust the host that was asked about, and meet the next one."""
    from mydata_like.app import registration

    admission, host_key = registered
    assert host_key is not None
    registration.trust_host(host_key)
    return Registered(admission, next(admission.unknown_host_keys, None))
