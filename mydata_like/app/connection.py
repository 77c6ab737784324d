"""A checked connection to the upload server, and the settings the server has for this uploader."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from mydata_like.app.identity import find_uuid
from mydata_like.app.settings_service import offer_takeover, server_settings_file
from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.datasets import Identity
from mydata_like.catalogues.mytardis.uploader import UploaderRecord, Uploaders
from mydata_like.core.errors import ItemError, Problem, SettingsError, UploaderError
from mydata_like.core.events import Event, FileSkipped, FolderSkipped, Notice
from mydata_like.core.frozen import frozen
from mydata_like.core.model import Facility, InstrumentRecord, User
from mydata_like.core.ports import Clock, Emit
from mydata_like.core.problems import PROBLEMS
from mydata_like.engine.pipeline import begin, settle
from mydata_like.hostos.machine_info import describe_machine
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Instrument, Settings, find_missing
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import ServerSettings, first_seen, load_record, save_record


@frozen(kw_only=True, eq=False)
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
    client: ApiClient, wanted: Instrument, uploader: str = "", *, dry_run: bool = False
) -> Connection:
    """Authenticate and find our records; raises a `RunError` that says what to fix.

    Since the server may be far away, all requests that need no other answer are sent at once, among
    them those about the `uploader` with this uuid, if any. A dry run creates nothing: an instrument
    that does not exist on the server has the id 0. After an error, the client is closed.
    """
    server, uploaders = HttpServer(client), Uploaders(client)
    resources = begin(server.fetch_resources)
    account = begin(server.fetch_account)
    facilities = begin(server.fetch_facilities)
    looks = (uploaders.look_up, uploaders.look_up_requests) if uploader else ()
    ours = [begin(partial(look, uploader)) for look in looks]
    with ExitStack() as stack:
        stack.callback(client.close)
        with ExitStack() as asked:
            for answer in (resources, account, facilities, *ours):
                asked.callback(settle, answer)
            found, us = resources(), account()
            facility = choose_facility(facilities(), wanted.facility)
            if dry_run:
                known = server.find_instrument(facility, wanted.name)
                instrument = known or InstrumentRecord(0, wanted.name)
            else:
                instrument = server.ensure_instrument(facility, wanted.name)
        stack.pop_all()
    return Connection(
        client=client,
        server=server,
        resources=found,
        account=us,
        facility=facility,
        instrument=instrument,
        uploaders=uploaders,
    )


_WITHOUT_SERVER = (
    ". A host, folder or bucket can take the data instead of a MyTardis server: set "
    "destination.kind and destination.address"
)


def require_complete(settings: Settings, config: Path | None) -> None:
    """Raise `SettingsError` that names every required setting that is empty."""
    missing = find_missing(settings)
    if missing:
        names = ", ".join(setting.key for setting in missing)
        raise SettingsError(
            f"These settings are not set yet: {names}.",
            hint=offer_takeover(settings, config)
            or "Set each with: mydata-like settings set KEY VALUE"
            + ("" if settings.destination.takes_tree or settings.server.url else _WITHOUT_SERVER),
        )


def require_server(settings: Settings) -> None:
    """Raise `SettingsError` if the data goes to a destination without a server."""
    if settings.destination.takes_tree:
        raise SettingsError(
            f"This is only for MyTardis servers, and the data goes to "
            f"{settings.destination.address}.",
            hint="Nothing needs to be done. With a server, set destination.kind to mytardis.",
            code="settings.no-server",
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


class ServerSettingsCache:
    """The server's settings for this uploader, cached for when it is unavailable."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def keep(self, record: UploaderRecord) -> bool:
        """Store the server's current settings; return whether they have changed."""
        now, before = self._clock.now(), load_record(self._file, ServerSettings)
        texts, updated = record.settings, record.settings_updated
        if before is None:
            after = first_seen(texts, updated, now)
        else:
            after = before.renew(texts, updated, now)
        save_record(self._file, after)
        return texts != (before.texts if before else {})

    def has(self, record: UploaderRecord) -> bool:
        """Return whether these settings are stored here, so that none would be new."""
        kept = load_record(self._file, ServerSettings)
        return kept is not None and kept.texts == record.settings

    def needs_clock(self, record: UploaderRecord) -> bool:
        """Return whether the time of the last change of the server's settings is unknown."""
        kept = load_record(self._file, ServerSettings)
        return bool(record.settings) and (kept is None or kept.offset is None)

    def learn_clock(self, before: UploaderRecord, written: UploaderRecord) -> None:
        """Learn the offset of the server's clock from the time of a write that was just made."""
        now = self._clock.now()
        kept = load_record(self._file, ServerSettings)
        if kept is None:
            kept = first_seen(before.settings, before.settings_updated, now)
        save_record(self._file, kept.learn(written.settings_updated, now))


def open_server_settings(
    settings: Settings, places: StatePaths, clock: Clock
) -> ServerSettingsCache:
    """Return the cache for the server in these settings."""
    return ServerSettingsCache(server_settings_file(settings, places), clock)


def refresh_settings(
    connection: Connection, settings: Settings, places: StatePaths, clock: Clock
) -> bool:
    """Fetch the server's settings; return whether they have changed.

    If the request fails, the cached settings are kept.
    """
    uuid = find_uuid(settings, places)
    if not uuid or "mydata_uploader" not in connection.resources:
        return False
    try:
        record = connection.uploaders.look_up(uuid)
    except ItemError:
        return False
    return record is not None and open_server_settings(settings, places, clock).keep(record)


def report_change(loaded: Loaded, emit: Emit) -> None:
    """Report that the server's settings have changed, and which of them are ignored."""
    layer = loaded.sources.server
    used = sorted(layer.values) if layer else []
    names = ", ".join(used) or "none"
    message = f"The server's settings for this uploader have changed. It now sets: {names}."
    hint = "To see which value is used, run: mydata-like settings explain KEY"
    emit(Notice(problem=Problem("settings.from-server", message, hint)))
    for warning in layer.warnings if layer else ():
        emit(Notice(problem=Problem("settings.server-ignored", warning)))


def with_server_filters_marked(emit: Emit, reload: Callable[[], Loaded] | None) -> Emit:
    """Return an `emit` that marks files left out by the server's filters as such.

    The user of this computer did not choose to leave them out.
    """
    try:
        loaded = reload() if reload else None
    except UploaderError:  # the settings that were valid at the start stay in force
        loaded = None
    if loaded is None:
        return emit
    theirs = {decision.setting.key for decision in loaded.find_server_decisions()}
    chosen = {  # by the problem code that the filters cause
        code: ", ".join(key for key in problem.filters if key in theirs)
        for code, problem in PROBLEMS.items()
        if theirs.intersection(problem.filters)
    }
    if not chosen:
        return emit

    def forward(event: Event) -> None:
        if isinstance(event, FileSkipped | FolderSkipped) and event.problem.code in chosen:
            keys = chosen[event.problem.code]
            problem = Problem(
                "skipped.by-server",
                f"The server's settings exclude this: {keys}.",
                "Ask the facility's administrator whether this is intended, or set it here.",
            )
            event = replace(event, problem=problem)
        emit(event)

    return forward
