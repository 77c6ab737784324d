"""This installation's standing with the server: its record, its key, its approval."""

import logging
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from mydata_like.app.connection import Connection, ensure_uuid, uuid_file
from mydata_like.app.server_settings_cache import ServerSettingsCache
from mydata_like.app.settings_service import (
    find_places,
    load_settings,
    prepare_places,
    save_settings,
)
from mydata_like.core.errors import (
    AccessDeniedError,
    ItemError,
    NotApprovedError,
    Problem,
    RunError,
    SettingsError,
    UploaderError,
)
from mydata_like.core.events import ChannelChanged, Event, Notice
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Clock, Emit
from mydata_like.hostos.machine_info import describe_machine, find_traits
from mydata_like.server.machine_identity import MachineIdentity
from mydata_like.server.uploader import (
    Approved,
    Installation,
    MachineRecord,
    RegisteredKey,
    UploaderRecord,
)
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.schema import Settings
from mydata_like.ssh.keys import KeyPair, create_key, ensure_key
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import ApprovalState, PendingApproval, load_approval, save_record

logger = logging.getLogger(__name__)

NEWS = timedelta(days=1)  # after which the server is told of us again, though nothing changed
WARNING = timedelta(days=14)  # before the last day of an approval


@dataclass(frozen=True, slots=True)
class ApprovalApplication:
    """Who asks for approval: the installation, the key to be approved, and the computer."""

    installation: Installation
    pair: KeyPair
    seat: MachineIdentity

    @property
    def public(self) -> RegisteredKey:
        """The key as the server is told, its fingerprint in both forms, ours first."""
        key = self.pair.public
        comment = f"mydata-like {self.installation.name}"
        return RegisteredKey(key.line(comment), (key.fingerprint, key.md5_fingerprint))


def describe_applicant(
    connection: Connection, settings: Settings, places: StatePaths
) -> ApprovalApplication:
    """Return who asks; the key is made where there is none."""
    pair = ensure_key(settings.transfer.key_file or places.key_file)
    uuid, traits = ensure_uuid(settings, places), find_traits()
    installation = Installation(
        uuid=uuid,
        name=settings.instrument.name,
        contact_name=settings.instrument.contact_name,
        contact_email=settings.instrument.contact_email,
        data_path=str(settings.data.directory),
        account=connection.account.username,
        machine=MachineRecord(**asdict(describe_machine())),
    )
    seat = MachineIdentity.of(uuid, traits.hostname, traits.system, traits.interfaces)
    return ApprovalApplication(installation, pair, seat)


class StoredIdentity(NamedTuple):
    """What is kept on the disk of how we stand with a server, and of what it sets for us."""

    standing: Path
    server_settings: ServerSettingsCache


class ApprovalRequest:
    """Our request to be let into the staging area: made once, then asked about."""

    def __init__(
        self,
        connection: Connection,
        applicant: ApprovalApplication,
        kept: StoredIdentity,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self.applicant = applicant
        self._connection = connection
        self._uploaders = connection.uploaders
        self._file = kept.standing
        self._server_settings = kept.server_settings
        self._clock = clock
        self._emit = emit
        self._area: StagingArea | None = None  # the first that we were told
        self._told_of_copy = False

    def request(self) -> StagingArea:
        """Tell the server about us, ask for approval once, and return the staging area.

        Raises `NotApprovedError` with the fingerprint while the approval is awaited.
        """
        approved = self._ask()
        self._warn(approved)
        return approved.area

    def look(self) -> Approved | None:
        """Return the approval, or None where it was never asked for; nothing is changed."""
        uuid = self.applicant.installation.uuid
        approved = self._uploaders.fetch_approval(uuid, self.applicant.public.fingerprints)
        if approved and self._area is None:
            self._area = approved.area
        return approved

    def is_let_in(self, area: StagingArea) -> bool:
        """Return whether the hosts of this area were the last to let our key in."""
        return load_approval(self._file).let_in == self._way_in(area)

    def follow(self, event: Event) -> None:
        """Pass on what the channels tell; one that opens proves that we are let in."""
        if isinstance(event, ChannelChanged) and event.state == "open" and self._area:
            standing = load_approval(self._file)
            self._keep(replace(standing, awaited=None, let_in=self._way_in(self._area)))
        self._emit(event)

    def _way_in(self, area: StagingArea) -> str:
        key = self.applicant.pair.public.fingerprint
        return f"{key} {area.username}@{','.join(area.hosts)}:{area.port}"

    def explain(self, refusal: AccessDeniedError) -> UploaderError:
        """Return why a staging host refuses our key, as far as the server knows."""
        try:
            approved = self.look()
        except NotApprovedError:
            approved = None
        except ItemError:
            return refusal  # the server cannot say
        if approved is None:
            return self._remember(self._explain_withdrawal())
        if approved.area != self._area:
            return RunError(
                "The server names another staging area than the one of this run.",
                hint="The next run takes it.",
                code="staging.moved",
            )
        return self._remember(self._explain_locked_door(refusal, approved))

    def _explain_withdrawal(self) -> NotApprovedError:
        key = self.applicant.pair.public.fingerprint
        return NotApprovedError(
            f"The approval of this uploader's key {key} has been withdrawn.",
            hint="Ask the facility's administrator to approve the key of that fingerprint again.",
            code="uploader.revoked",
        )

    def _explain_locked_door(
        self, refusal: AccessDeniedError, approved: Approved
    ) -> NotApprovedError:
        key = self.applicant.pair.public.fingerprint
        if approved.expires and approved.expires < self._clock.now().date():
            return NotApprovedError(
                f"The approval of this uploader's key {key} ended on {approved.expires}.",
                hint="Ask the facility's administrator to prolong it.",
                code="uploader.expired",
            )
        return NotApprovedError(
            f"{refusal.message} The server says that the key {key} is approved.",
            hint="After an approval it may take a while until the staging host knows the key; "
            "ask the server's administrator if it lasts.",
            code="uploader.not-admitted",
        )

    def _ask(self) -> Approved:
        if "mydata_uploader" not in self._connection.resources:
            raise RunError(
                "The server lacks the MyData app, which approves uploaders.",
                hint="Ask the server's administrator to install it, or set transfer.method to "
                "http.",
                code="server.no-mydata",
            )
        record = self._introduce()
        try:
            approved = self.look()
            if approved is None:
                self._uploaders.request_approval(
                    self.applicant.installation, record, self.applicant.public
                )
                approved = self.look()
        except NotApprovedError as error:
            self._remember(error)
            raise
        if approved is None:
            raise RunError("The server took our request for approval, but does not show it.")
        self._keep(replace(load_approval(self._file), awaited=None))
        return approved

    def _introduce(self) -> UploaderRecord:
        """Tell the server about this installation, where it has not heard the same lately."""
        installation, instrument = self.applicant.installation, self._connection.instrument
        standing, now = load_approval(self._file), self._clock.now()
        digest = self._uploaders.digest(installation, instrument)
        old = standing.told_at is None or not timedelta(0) <= now - standing.told_at < NEWS
        update = old or digest != standing.told
        record = self._uploaders.ensure_uploader(installation, instrument, update=update)
        if update:
            self._keep(replace(standing, told=digest, told_at=now))
        self._compare_seats(record)
        return record

    def take_seat(self) -> None:
        """Say that the uploader belongs to this computer, whatever was said before."""
        self._told_of_copy = True
        self._take_seat(self._introduce())

    def _compare_seats(self, record: UploaderRecord) -> None:
        """Tell where another computer has this identity; a new one or the same is noted."""
        ours, theirs = self.applicant.seat, record.seat
        if theirs is None or (theirs.is_same(ours) and theirs.is_out_of_date(ours)):
            self._take_seat(record)
        elif theirs.is_same(ours) and self._server_settings.needs_clock(record):
            self._take_seat(record)  # the server's answer tells what its clock shows
        elif not theirs.is_same(ours) and not self._told_of_copy:
            self._told_of_copy = True
            self._emit(Notice(problem=_describe_copy(ours, theirs)))

    def _take_seat(self, record: UploaderRecord) -> None:
        installation, instrument = self.applicant.installation, self._connection.instrument
        seat = self.applicant.seat.format(self._clock.now())
        try:
            self._uploaders.take_seat(record, installation, instrument, seat)
            written = self._uploaders.find_uploader(installation.uuid)
            if written is not None:
                self._server_settings.learn_clock(record, written)
        except ItemError as error:  # what the server cannot remember cannot be compared
            logger.warning("the server did not take our computer's traits: %s", error)

    def _remember(self, error: NotApprovedError) -> NotApprovedError:
        """Remember that we wait, and since when, for those who ask for the status."""
        standing = load_approval(self._file)
        key, before = self.applicant.pair.public.fingerprint, standing.awaited
        since = before.since if before and before.fingerprint == key else self._clock.now()
        awaited = PendingApproval(key, since, error.problem)
        self._keep(replace(standing, awaited=awaited, let_in=""))
        return error

    def _keep(self, standing: ApprovalState) -> None:
        if standing != load_approval(self._file):
            save_record(self._file, standing)

    def _warn(self, approved: Approved) -> None:
        """Tell of an approval that ends soon, or has ended and was not withdrawn."""
        today = self._clock.now().date()
        if approved.expires is None or approved.expires - today > WARNING:
            return
        ends = "ends" if approved.expires >= today else "ended"
        self._emit(
            Notice(
                problem=Problem(
                    "uploader.expires",
                    f"The approval of this uploader {ends} on {approved.expires}.",
                    "Ask the facility's administrator to prolong it, before the staging host "
                    "refuses the uploader's key.",
                )
            )
        )


def _describe_copy(ours: MachineIdentity, theirs: MachineIdentity) -> Problem:
    return Problem(
        "uploader.copied",
        f"This installation on {ours.hostname} has the identity of the one on {theirs.hostname}, "
        f"which has had it since {theirs.since}.",
        "If it is a copy, give it an identity of its own: mydata-like register --new-identity. "
        f"If it takes the place of the one on {theirs.hostname}: "
        "mydata-like register --keep-identity",
    )


def renew_identity(settings: Settings, config: Path | None) -> str:
    """Give this installation a uuid and a key of its own, and return the uuid.

    The old key stays beside the new one. A key that the settings name is left alone, as other
    programs may use it; the settings name none afterwards. Raises SettingsError where the
    settings' file does not decide on either.
    """
    places = find_places(config)
    prepare_places(settings, places)
    old, new = ensure_uuid(settings, places), str(uuid.uuid4())
    changes = {
        key: value
        for key, value, was in (
            ("instrument.uuid", new, settings.instrument.uuid),
            ("transfer.key_file", None, settings.transfer.key_file),
        )
        if was
    }
    if changes:
        save_settings(config, changes)
    _require_changed(load_settings(config).settings, new)
    if places.key_file.exists():
        places.key_file.rename(places.key_file.with_name(f"{places.key_file.name}.of-{old}"))
    create_key(places.key_file)
    write_private(uuid_file(settings, places), f"{new}\n".encode())
    return new


def _require_changed(settings: Settings, new: str) -> None:
    if settings.instrument.uuid in ("", new) and not settings.transfer.key_file:
        return
    raise SettingsError(
        "The identity of this installation is not decided by its own settings file.",
        hint="See where it comes from with: mydata-like settings explain instrument.uuid, "
        "and the same for transfer.key_file. Change it there.",
    )
