"""The window's access to the application layer: every use case that it calls, one function each.

No other module of the window imports `app` when it runs. Most functions import their part of `app`
when they are called: at the top of this module it would take 11 to 115 ms of processor time before
the window appears, and all other modules take 320 ms (`tests/unit/test_start_up.py`). The parts at
the top are those that the start needs. Run functions that read files or contact the server as
background tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mydata_like.app import logging_setup, settings_service
from mydata_like.core.errors import SettingsError
from mydata_like.core.events import Event
from mydata_like.core.extra_sources import ExtraSource
from mydata_like.core.file_status import PathStatus, Suggestion
from mydata_like.core.model import ChangeChoice, Facility
from mydata_like.core.ports import CancelSignal
from mydata_like.core.queries import RecentDataset, View
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.pending_changes import (
    KeyStore,
    PendingChanges,
    SecretChange,
    SecretKind,
)
from mydata_like.settings.schema import Server, Settings

if TYPE_CHECKING:
    from mydata_like.app.cleanup_service import CleanupService
    from mydata_like.app.connection_test import TestStep
    from mydata_like.app.ledger_status import (
        LedgerSummary,
        RowQuery,
    )
    from mydata_like.app.logging_setup import LogFollower
    from mydata_like.app.mydata_import import MyDataImport, Paragraph, SettingsImport
    from mydata_like.app.onboarding import (
        LayoutPreview,
        LayoutSample,
        PublicKeyInfo,
        ServerCheckResult,
        SetupState,
    )
    from mydata_like.app.registration import HostKey, RegistrationResult
    from mydata_like.app.settings_edit import SettingsProposal
    from mydata_like.app.source_service import Conflict, SourcePreview
    from mydata_like.app.support_bundle import BundleDocument
    from mydata_like.engine.time_left import Costs

CHANGED_ELSEWHERE = "settings.changed-elsewhere"  # problem codes of `save_edit` and `save_setup`
NO_KEYRING = "settings.no-keyring"


class SecretPlace(NamedTuple):
    """Where a secret is stored, empty if it is not; `problem` is why that is unknown.

    `owner` is what the secret belongs to; see `find_secret_owner`.
    """

    owner: tuple[str, str] = ("", "")
    place: str = ""
    problem: SettingsError | None = None

    @property
    def removable(self) -> bool:
        """Whether the program stored the secret there, so that it can remove it."""
        return self.place in ("the keyring", "the secrets file")


class InstrumentChoices(NamedTuple):
    """The facilities of an account, and the names of the instruments of the chosen one."""

    facilities: Sequence[Facility]
    instruments: Sequence[str]


class RegisteredInstrument(NamedTuple):
    """The approval, and the first staging host whose key is not trusted yet."""

    admission: RegistrationResult
    host_key: HostKey | None

    @property
    def has_question(self) -> bool:
        """Whether the user has to trust a host or to confirm the folder."""
        return self.host_key is not None or self.admission.new_folder is not None


# Processes and settings


def save_settings(config: Path | None, changes: Mapping[str, object]) -> None:
    """Change the user's settings file (None removes a key); raises `SettingsError`."""
    settings_service.save_settings(config, changes)


def open_listing(settings: Settings, config: Path | None, view: View) -> RowQuery | None:
    """Return the ledger's rows in a view, None without a ledger; raises `UploaderError`."""
    from mydata_like.app import ledger_status

    return ledger_status.open_listing(settings, config, view)


def open_summary(settings: Settings, config: Path | None) -> LedgerSummary | None:
    """Return the ledger's totals, None without a data directory; raises `UploaderError`."""
    from mydata_like.app import ledger_status

    return ledger_status.open_survey(settings, config)


def find_recent_datasets(
    settings: Settings, config: Path | None, files: Sequence[bytes], most: int
) -> list[RecentDataset]:
    """Return the datasets of these files, then the latest others; raises `UploaderError`."""
    summary = open_summary(settings, config)
    return summary.find_recent_datasets(files, most) if summary else []


def find_status(settings: Settings, config: Path | None, path: Path) -> PathStatus:
    """Return the status of a local file or folder; raises `UploaderError`."""
    from mydata_like.app import file_status_service

    return file_status_service.find_status(settings, config, path)


def suggest_paths(
    settings: Settings, config: Path | None, text: str, most: int
) -> list[Suggestion]:
    """Return files and dataset folders whose paths contain a text; raises `UploaderError`."""
    from mydata_like.app import file_status_service

    return file_status_service.suggest(settings, config, text, most)


def open_cleanup(
    settings: Settings, config: Path | None, cancel: CancelFlag, *, delete: bool
) -> AbstractContextManager[CleanupService]:
    """Connect to the server to check which local files it has, and to delete those if `delete`."""
    from mydata_like.app import cleanup_service
    from mydata_like.app.run_request import RunObserver

    observer = RunObserver(cancel=cancel)
    return cleanup_service.open_cleanup(settings, config, observer, delete=delete)


# Logs and support


def warn_of_ignored_variables() -> None:
    """Log which environment variables are set but ignored."""
    logging_setup.warn_of_ignored()


def find_logs(config: Path | None) -> Path:
    """Return the folder of the logs."""
    return logging_setup.find_logs(config)


def follow_log(config: Path | None, name: str, most: int) -> LogFollower:
    """Return a reader of a growing log; each of its reads returns at most `most` new lines."""
    return logging_setup.follow_log(config, name, most)


def collect_bundle(config: Path | None, *, names: bool) -> list[BundleDocument]:
    """Return the files of the support bundle; without `names`, no names of files and folders."""
    from mydata_like.app import support_bundle

    return support_bundle.collect_documents(config, names=names)


def write_bundle(file: Path, documents: Sequence[BundleDocument]) -> None:
    """Write the support bundle; raises `UploaderError`."""
    from mydata_like.app import support_bundle

    support_bundle.write_bundle(file, documents)


def choose_held(
    settings: Settings, config: Path | None, choice: ChangeChoice, keys: Sequence[bytes]
) -> int:
    """Leave a choice for these held files to the next run; return the number of those it suits.

    Raises `UploaderError` if a ledger cannot be read or the choice cannot be stored.
    """
    from mydata_like.app import held_service

    wanted = frozenset(keys)
    held = held_service.list_held(settings, config)
    chosen = [one for one in held if one.changed.key in wanted]
    return len(chosen) - len(held_service.choose(chosen, choice))


# Extra sources


def preview_sources(
    settings: Settings, config: Path | None, paths: Sequence[bytes], cancel: CancelSignal
) -> Iterator[SourcePreview]:
    """Scan dropped paths in order, and yield previews until each is complete."""
    from mydata_like.app import source_service

    return source_service.preview_sources(settings, config, paths, cancel)


def find_conflicts(
    settings: Settings, config: Path | None, sources: Sequence[ExtraSource]
) -> list[Conflict]:
    """Return the conflicts that would lose or mix data if these sources were uploaded."""
    from mydata_like.app import source_service

    return source_service.find_conflicts(settings, config, sources)


def find_expected_costs(settings: Settings, config: Path | None) -> Costs | None:
    """Return what a byte and a file cost in the last run that measured it."""
    from mydata_like.app import source_service

    return source_service.find_expected_costs(settings, config)


# The settings dialog


def open_draft(config: Path | None) -> PendingChanges:
    """Return the settings for editing."""
    from mydata_like.app import settings_edit

    return settings_edit.open_draft(config)


def save_edit(
    config: Path | None, draft: PendingChanges, secrets: tuple[SecretChange, ...]
) -> None:
    """Write the changes, and store or delete secrets; raises `SettingsError`."""
    from mydata_like.app import settings_edit

    owners = draft.part("server", "transfer") or draft.part("server")
    edit = settings_edit.SettingsEdit(
        changes=draft.changes, seen=draft.seen, settings=owners, secrets=secrets
    )
    settings_edit.save_edit(config, edit)


def find_secret_owner(settings: Settings, kind: SecretKind) -> tuple[str, str]:
    """Return the address and the account or access key that a secret belongs to; may be empty."""
    if kind is SecretKind.API_KEY:
        return settings.server.url, settings.server.username
    return settings.transfer.s3_endpoint, settings.transfer.s3_access_key


def locate_secret(settings: Settings, kind: SecretKind, config: Path | None) -> SecretPlace:
    """Return where a secret is stored, or why that is unknown."""
    owner = find_secret_owner(settings, kind)
    try:
        secrets = settings_service.open_secrets(config)
        return SecretPlace(owner, settings_service.locate_secret(settings, secrets, kind))
    except SettingsError as error:
        return SecretPlace(owner, problem=error)


def read_proposal(source: Path, config: Path | None) -> SettingsProposal:
    """Return what a settings file would change here; raises `SettingsError`."""
    from mydata_like.app import settings_edit

    return settings_edit.read_proposal(source, config)


def export_settings(values: Mapping[str, object], target: Path) -> None:
    """Write settings to a file for another computer; raises `SettingsError`."""
    from mydata_like.app import settings_edit

    settings_edit.export_settings(values, target)


def run_connection_test(
    config: Path | None, settings: Settings, entered: Iterable[SecretChange], cancel: CancelFlag
) -> Iterator[TestStep]:
    """Yield the steps of a connection test with the entered secrets, or else the stored ones."""
    from mydata_like.app import connection_test
    from mydata_like.app.run_request import RunObserver, RunRequest

    secrets = {
        change.kind: settings_service.Secret(change.text) for change in entered if change.text
    }
    request = RunRequest(
        settings=settings,
        config=config,
        dry_run=True,
        api_key=secrets.get(SecretKind.API_KEY),
        s3_secret=secrets.get(SecretKind.S3_SECRET),
    )
    return connection_test.run_connection_test(request, RunObserver(cancel=cancel))


# Import of settings files, and of MyData's settings


def find_settings_kind(path: Path) -> str:
    """Return "mydata" or "ours" for a settings file, empty for anything else."""
    from mydata_like.app import mydata_import

    return mydata_import.find_settings_kind(path)


def plan_settings_import(source: Path, config: Path | None) -> SettingsImport:
    """Return what importing a settings file would change; raises `SettingsError`."""
    from mydata_like.app import mydata_import

    return mydata_import.plan_copying(source, config)


def plan_mydata_import(
    config: Path | None, source: Path | None
) -> tuple[MyDataImport, tuple[Paragraph, ...]]:
    """Return what importing MyData's settings would change, and a description of it."""
    from mydata_like.app import mydata_import

    plan = mydata_import.plan_takeover(source, config)
    return plan, tuple(mydata_import.describe_takeover(plan))


def import_mydata(config: Path | None, plan: MyDataImport, store: KeyStore) -> SetupState:
    """Import MyData's settings and its API key; return the resulting state of the set-up."""
    from mydata_like.app import mydata_import, onboarding

    mydata_import.carry_over(plan, config, store)
    return onboarding.find_setup_state(config)


# Set-up and registration


def find_setup_state(config: Path | None) -> SetupState:
    """Return what is set already, and what the set-up still needs."""
    from mydata_like.app import onboarding

    return onboarding.find_setup_state(config)


def save_setup(
    config: Path | None, changes: Mapping[str, object], key: SecretChange | None
) -> SetupState:
    """Save the entries of a step, and store the API key; raises `SettingsError`."""
    from mydata_like.app import onboarding, service_setup, settings_edit

    if changes:
        settings_service.save_settings(config, changes)
    state = onboarding.find_setup_state(config)
    if settings_edit.AUTOSTART in changes:
        service_setup.apply_autostart(state.loaded.settings)
    if key is None:
        return state
    settings_edit.apply_secret_change(state.loaded.settings, key, config)
    return onboarding.find_setup_state(config)


def check_address(server: Server, text: str, cancel: CancelSignal) -> ServerCheckResult:
    """Return the server at an address as typed; raises `UploaderError` if there is none."""
    from mydata_like.app import onboarding

    return onboarding.check_address(server, text, cancel)


def check_account(config: Path | None, server: Server, key: str, cancel: CancelSignal) -> str:
    """Return the full name of the account, or else its username; raises `UploaderError`."""
    from mydata_like.app import onboarding

    user = onboarding.check_account(onboarding.Credentials(server, config, key), cancel)
    return user.full_name or user.username


def list_instruments(
    config: Path | None, server: Server, chosen: str, cancel: CancelSignal
) -> InstrumentChoices:
    """Return the facilities, and the instruments of the chosen one or else of the first."""
    from mydata_like.app import onboarding

    login = onboarding.Credentials(server, config)
    facilities = onboarding.list_facilities(login, cancel)
    facility = next((it for it in facilities if it.name == chosen), facilities[0])
    return InstrumentChoices(facilities, onboarding.list_instruments(login, facility, cancel))


def preview_layout(
    config: Path | None,
    settings: Settings,
    report: Callable[[LayoutSample], object],
    cancel: CancelSignal,
) -> LayoutPreview:
    """Report the first dataset folders one by one, then return the complete preview."""
    from mydata_like.app import onboarding

    login = onboarding.Credentials(settings.server, config)
    return onboarding.preview_layout(settings, login, report, cancel)


def show_key(config: Path | None, settings: Settings) -> PublicKeyInfo:
    """Return the uploader's public key; create the key pair if there is none."""
    from mydata_like.app import onboarding

    return onboarding.show_key(settings, config)


def register(
    config: Path | None,
    settings: Settings,
    report: Callable[[Event], None],
    cancel: CancelFlag,
) -> RegisteredInstrument:
    """Request approval; raises `NotApprovedError` until it is given."""
    from mydata_like.app import registration
    from mydata_like.app.run_request import RunObserver, RunRequest

    request = RunRequest(settings=settings, config=config)
    admission = registration.register(request, RunObserver(emit=report, cancel=cancel))
    return RegisteredInstrument(admission, next(admission.unknown_host_keys, None))


def trust_host(registered: RegisteredInstrument) -> RegisteredInstrument:
    """Trust the key of the staging host, and contact the next host; or confirm the folder."""
    from mydata_like.app import registration

    admission, host_key = registered
    if admission.new_folder is not None:
        registration.confirm_folder(admission.new_folder)
        return RegisteredInstrument(replace(admission, new_folder=None), None)
    assert host_key is not None
    registration.trust_host(host_key)
    return RegisteredInstrument(admission, next(admission.unknown_host_keys, None))


def check_approval(settings: Settings, config: Path | None, cancel: CancelFlag) -> None:
    """Store the approval if the server has given it; raises `NotApprovedError` if not."""
    from mydata_like.app import registration
    from mydata_like.app.run_request import RunObserver, RunRequest

    request = RunRequest(settings=settings, config=config)
    registration.register(request, RunObserver(cancel=cancel))
