"""Background functions of the wizard, which import the application late.

What is heavy is imported only there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mydata_like.core.model import Facility

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from mydata_like.app.mydata_import import MyDataImport, Paragraph
    from mydata_like.app.onboarding import (
        LayoutPreview,
        LayoutSample,
        PublicKeyInfo,
        ServerCheckResult,
        SetupState,
    )
    from mydata_like.app.registration import HostKey, RegistrationResult
    from mydata_like.core.events import Event
    from mydata_like.core.ports import CancelSignal
    from mydata_like.engine.pipeline import CancelFlag
    from mydata_like.settings.pending_changes import ApiKeyChange, KeyStore
    from mydata_like.settings.schema import Server, Settings


class InstrumentChoices(NamedTuple):
    """The facilities of an account, and the names of the instruments of the chosen one."""

    facilities: Sequence[Facility]
    instruments: Sequence[str]


class RegisteredInstrument(NamedTuple):
    """The approval, and the first staging host that nobody has vouched for yet."""

    admission: RegistrationResult
    host_key: HostKey | None


def begin(config: Path | None) -> SetupState:
    """Return how far the set-up has come."""
    from mydata_like.app.onboarding import find_setup_state

    return find_setup_state(config)


def keep(
    config: Path | None, changes: Mapping[str, object], key: ApiKeyChange | None
) -> SetupState:
    """Keep what was entered; the API key only where it can be kept safe."""
    from mydata_like.app.onboarding import find_setup_state
    from mydata_like.app.settings_edit import apply_key_change
    from mydata_like.app.settings_service import save_settings

    if changes:
        save_settings(config, changes)
    beginning = find_setup_state(config)
    if key is None:
        return beginning
    apply_key_change(beginning.loaded.settings, key, config)
    return find_setup_state(config)


def check_address(server: Server, text: str, cancel: CancelSignal) -> ServerCheckResult:
    """Look for the server."""
    from mydata_like.app import onboarding

    return onboarding.check_address(server, text, cancel)


def check_account(config: Path | None, server: Server, key: str, cancel: CancelSignal) -> str:
    """Return as whom the server knows us: the full name, or else the account's."""
    from mydata_like.app import onboarding
    from mydata_like.app.onboarding import Credentials

    user = onboarding.check_account(Credentials(server, config, key), cancel)
    return user.full_name or user.username


def find_place(
    config: Path | None, server: Server, chosen: str, cancel: CancelSignal
) -> InstrumentChoices:
    """Return the facilities, and the instruments of the chosen one or else of the first."""
    from mydata_like.app.onboarding import Credentials, list_facilities, list_instruments

    login = Credentials(server, config)
    facilities = list_facilities(login, cancel)
    facility = next((it for it in facilities if it.name == chosen), facilities[0])
    return InstrumentChoices(facilities, list_instruments(login, facility, cancel))


def preview_layout(
    config: Path | None,
    settings: Settings,
    report: Callable[[LayoutSample], object],
    cancel: CancelSignal,
) -> LayoutPreview:
    """Report what the folders would become."""
    from mydata_like.app import onboarding
    from mydata_like.app.onboarding import Credentials

    login = Credentials(settings.server, config)
    return onboarding.preview_layout(settings, login, report, cancel)


def plan_takeover(
    config: Path | None, source: Path | None
) -> tuple[MyDataImport, tuple[Paragraph, ...]]:
    """Return what MyData's settings would change, and the same in sentences."""
    from mydata_like.app import mydata_import
    from mydata_like.app.mydata_import import describe_takeover

    takeover = mydata_import.plan_takeover(source, config)
    return takeover, tuple(describe_takeover(takeover))


def carry_over(config: Path | None, takeover: MyDataImport, store: KeyStore) -> SetupState:
    """Take over MyData's settings and its API key."""
    from mydata_like.app import mydata_import
    from mydata_like.app.onboarding import find_setup_state

    mydata_import.carry_over(takeover, config, store)
    return find_setup_state(config)


def show_key(config: Path | None, settings: Settings) -> PublicKeyInfo:
    """Return the uploader's key, made now where there is none."""
    from mydata_like.app import onboarding

    return onboarding.show_key(settings, config)


def register(
    config: Path | None,
    settings: Settings,
    report: Callable[[Event], None],
    cancel: CancelFlag,
) -> RegisteredInstrument:
    """Ask for approval; raises `NotApprovedError` while it is awaited."""
    from mydata_like.app import registration
    from mydata_like.app.run_request import RunObserver, RunRequest

    request = RunRequest(settings=settings, config=config)
    admission = registration.register(request, RunObserver(emit=report, cancel=cancel))
    return RegisteredInstrument(admission, next(admission.unknown_host_keys, None))


def trust_host(registered: RegisteredInstrument) -> RegisteredInstrument:
    """Trust the host that was asked about, and meet the next one."""
    from mydata_like.app import registration

    admission, host_key = registered
    assert host_key is not None
    registration.trust_host(host_key)
    return RegisteredInstrument(admission, next(admission.unknown_host_keys, None))
