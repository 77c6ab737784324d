"""A checked connection to the upload server: account, facility and instrument."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mydata_like.app.settings_service import find_state, offer_takeover
from mydata_like.core.errors import SettingsError
from mydata_like.core.model import Facility, InstrumentRecord, User
from mydata_like.core.ports import CancelSignal, Clock
from mydata_like.engine.datasets import Identity
from mydata_like.hostos.machine_info import describe_machine
from mydata_like.server.api import HttpServer
from mydata_like.server.client import ApiClient
from mydata_like.server.uploader import Uploaders
from mydata_like.settings.atomic_write import read_plain, write_private
from mydata_like.settings.schema import Settings, find_missing
from mydata_like.state.paths import StatePaths
from mydata_like.state.secrets import Secret


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Connection:
    """A connection to the server and our records there; its owner closes it."""

    client: ApiClient
    server: HttpServer
    resources: frozenset[str]
    account: User
    facility: Facility
    instrument: InstrumentRecord
    uploaders: Uploaders

    def close(self) -> None:
        self.client.close()


def open_connection(
    settings: Settings, key: Secret, clock: Clock, cancel: CancelSignal, *, dry_run: bool = False
) -> Connection:
    """Connect and authenticate; raises a `RunError` that says what to fix.

    A dry run creates nothing: an instrument that does not exist on the server has the id 0.
    """
    client = ApiClient(settings.server, key.reveal(), clock, cancel)
    server = HttpServer(client)
    try:
        resources = server.fetch_resources()
        account = server.fetch_account()
        facility = choose_facility(server.fetch_facilities(), settings.instrument.facility)
        instrument = _find_instrument(server, facility, settings.instrument.name, dry_run=dry_run)
    except BaseException:
        client.close()
        raise
    return Connection(
        client=client,
        server=server,
        resources=resources,
        account=account,
        facility=facility,
        instrument=instrument,
        uploaders=Uploaders(client),
    )


def _find_instrument(
    server: HttpServer, facility: Facility, name: str, *, dry_run: bool
) -> InstrumentRecord:
    if not dry_run:
        return server.ensure_instrument(facility, name)
    return server.find_instrument(facility, name) or InstrumentRecord(0, name)


def require_complete(settings: Settings, config: Path | None) -> None:
    """Raise `SettingsError` that names every required setting that is empty."""
    missing = find_missing(settings)
    if missing:
        names = ", ".join(setting.key for setting in missing)
        raise SettingsError(
            f"These settings are not set yet: {names}.",
            hint=offer_takeover(settings, config)
            or "Set each with: mydata-like settings set KEY VALUE",
        )


def choose_facility(facilities: Sequence[Facility], name: str) -> Facility:
    """Return the facility of this name; raise `SettingsError` that lists the existing ones."""
    for facility in facilities:
        if facility.name == name:
            return facility
    names = ", ".join(facility.name for facility in facilities)
    raise SettingsError(
        f'The account does not manage a facility named "{name}".',
        hint=f"Facilities of this account: {names}. Set instrument.facility to one of them."
        if names
        else "Ask the server's administrator to make the account a manager of the facility.",
    )


def uuid_file(settings: Settings, places: StatePaths) -> Path:
    """Return the file that holds the identity if it is not set in the settings."""
    return find_state(settings, places) / "uploader-uuid"


def ensure_uuid(settings: Settings, places: StatePaths) -> str:
    """Return this installation's identity; create it at the first start in the state folder."""
    found = find_uuid(settings, places)
    if found:
        return found
    made = str(uuid.uuid4())
    write_private(uuid_file(settings, places), f"{made}\n".encode())
    return made


def find_uuid(settings: Settings, places: StatePaths) -> str:
    """Return this installation's identity; empty if it has none yet."""
    if settings.instrument.uuid:
        return settings.instrument.uuid
    file = uuid_file(settings, places)
    try:
        return read_plain(file).decode("ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The identity of this installation cannot be read from {file}: {error}.",
            hint="Check its permissions. It holds one uuid, which is in the log of every run.",
        ) from error


def describe_identity(connection: Connection, settings: Settings, uploader: str) -> Identity:
    """Return the sender's identity, as it is stored with experiments."""
    machine = describe_machine()
    return Identity(
        account=connection.account,
        facility=connection.facility,
        instrument=connection.instrument,
        uploader=uploader,
        origin=f"{machine.hostname}:{settings.data.directory}",
    )
