"""The approval of this uploader: its record on the server, its key and its request for access."""

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from mydata_like.app.connection import Connection, ServerSettingsCache
from mydata_like.app.identity import ensure_uuid, uuid_file
from mydata_like.app.settings_service import (
    find_places,
    load_settings,
    prepare_places,
    save_settings,
)
from mydata_like.catalogues.mytardis.uploader import (
    MACHINE_KEY,
    Approved,
    Box,
    Installation,
    MachineIdentity,
    RegisteredKey,
    UploaderRecord,
)
from mydata_like.core.errors import (
    AccessDeniedError,
    ItemError,
    NotApprovedError,
    Problem,
    RunError,
    SettingsError,
    StagingError,
    UploaderError,
)
from mydata_like.core.events import ChannelChanged, Event, Notice
from mydata_like.core.frozen import frozen
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Clock, Emit
from mydata_like.hostos.machine_info import describe_machine, find_traits
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.schema import Settings
from mydata_like.ssh.keys import KeyPair, create_key, ensure_key
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import ApprovalState, PendingApproval, load_approval, save_record

logger = logging.getLogger(__name__)

T = TypeVar("T")
UPDATE_INTERVAL = timedelta(days=1)  # of our record on the server, even if nothing changed
EXPIRY_WARNING = timedelta(days=14)  # this long before an approval expires


@frozen()
class ApprovalApplication:
    """The applicant for approval: the installation, the key to approve, and the computer."""

    installation: Installation
    pair: KeyPair
    identity: MachineIdentity

    @property
    def public(self) -> RegisteredKey:
        """The key as it is sent to the server, with SHA-256 and MD5 fingerprints in this order."""
        key = self.pair.public
        comment = f"mydata-like {self.installation.name}"
        return RegisteredKey(key.line(comment), (key.fingerprint, key.md5_fingerprint))


def describe_applicant(
    connection: Connection, settings: Settings, places: StatePaths
) -> ApprovalApplication:
    """Return the applicant; create the key if there is none."""
    pair = ensure_key(settings.transfer.key_file or places.key_file)
    uuid = ensure_uuid(settings, places)
    installation = Installation(
        uuid=uuid,
        name=settings.instrument.name,
        contact_name=settings.instrument.contact_name,
        contact_email=settings.instrument.contact_email,
        data_path=str(settings.data.directory),
        account=connection.account.username,
        machine=describe_machine(settings.data.directory),
    )
    return ApprovalApplication(installation, pair, MachineIdentity.of(uuid, *find_traits()))


class ApprovalRequest:
    """Our request for access to the staging area: made once, then polled."""

    def __init__(
        self,
        connection: Connection,
        applicant: ApprovalApplication,
        approval_file: Path,
        server_settings: ServerSettingsCache,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self.applicant = applicant
        self._connection = connection
        self._uploaders = connection.uploaders
        self._file = approval_file
        self._server_settings = server_settings
        self._clock = clock
        self._emit = emit
        self._area: StagingArea | None = None  # the first that the server named
        self._copy_reported = False

    def request(self) -> StagingArea:
        """Register with the server, request approval once, and return the staging area.

        Raises `NotApprovedError` with the fingerprint while the approval is pending.
        """
        approved = self._ensure_approval(self.fetch_approval)
        self._warn_of_expiry(approved)
        return approved.area

    def fetch_approval(self) -> Approved | None:
        """Return the approval, or None if it was never requested. Changes nothing."""
        uuid = self.applicant.installation.uuid
        approved = self._uploaders.fetch_approval(uuid, self.applicant.public.fingerprints)
        if approved and self._area is None:
            self._area = approved.area
        return approved

    def renew_host_keys(self) -> tuple[str, ...]:
        """Ask the server for the keys of the staging hosts again, which may have been corrected.

        Those known before are returned if it does not answer, or names another area: an area is
        only changed by the next run.
        """
        known = self._area.host_keys if self._area else ()
        try:
            approved = self.fetch_approval()
        except (NotApprovedError, StagingError, ItemError) as error:
            logger.info("The server does not name the keys of the staging hosts again: %s", error)
            return known
        if approved and self._area == replace(approved.area, host_keys=known):
            self._area = approved.area
        return self._area.host_keys if self._area else ()

    def request_box(self) -> Box:
        """Request approval as `request` does, and return the storage box, of whatever kind."""
        return self._ensure_approval(self.fetch_box)

    def fetch_box(self) -> Box | None:
        """Return the approved storage box, None if it was never requested. Changes nothing."""
        uuid, public = self.applicant.installation.uuid, self.applicant.public
        approved = self._uploaders.fetch_box(uuid, public.fingerprints)
        return approved and approved.box

    def is_admitted(self, area: StagingArea) -> bool:
        """Return whether the hosts of this area were the last to accept our key."""
        return load_approval(self._file).let_in == self._describe_access(area)

    def follow(self, event: Event) -> None:
        """Forward an event of a channel; one that opens proves that our key is accepted."""
        match event:
            case ChannelChanged(state="open") if self._area:
                state = load_approval(self._file)
                let_in = self._describe_access(self._area)
                self._save(replace(state, awaited=None, let_in=let_in))
        self._emit(event)

    def _describe_access(self, area: StagingArea) -> str:
        key = self.applicant.pair.public.fingerprint
        return f"{key} {area.username}@{','.join(area.hosts)}:{area.port}"

    def explain(self, refusal: AccessDeniedError) -> UploaderError:
        """Return why a staging host refuses our key, as far as the server can tell."""
        key = self.applicant.pair.public.fingerprint
        try:
            approved = self.fetch_approval()
        except NotApprovedError:
            approved = None
        except ItemError:
            return refusal  # the server did not answer
        if approved is None:
            return self._record_pending(
                NotApprovedError(
                    f"The approval of this uploader's key {key} has been withdrawn.",
                    hint="Ask the facility's administrator to approve the key with this "
                    "fingerprint again.",
                    code="uploader.revoked",
                )
            )
        if approved.area != self._area:
            return RunError(
                "The server has assigned another staging area since this run started.",
                hint="The next run uses it.",
                code="staging.moved",
            )
        return self._record_pending(self._explain_refusal(refusal, approved))

    def _explain_refusal(self, refusal: AccessDeniedError, approved: Approved) -> NotApprovedError:
        key = self.applicant.pair.public.fingerprint
        if approved.expires and approved.expires < self._clock.now().date():
            return NotApprovedError(
                f"The approval of this uploader's key {key} expired on {approved.expires}.",
                hint="Ask the facility's administrator to extend it.",
                code="uploader.expired",
            )
        return NotApprovedError(
            f"{refusal.message} According to the server, the key {key} is approved.",
            hint="It can take a while until the staging host accepts a newly approved key. "
            "If the problem persists, contact the server's administrator.",
            code="uploader.not-admitted",
        )

    def _ensure_approval(self, fetch: Callable[[], T | None]) -> T:
        if "mydata_uploader" not in self._connection.resources:
            raise RunError(
                "The MyData app, which approves uploaders, is not installed on the server.",
                hint="Ask the server's administrator to install it, or set transfer.method to "
                "http.",
                code="server.no-mydata",
            )
        record = self._ensure_record()
        try:
            approved = fetch()
            if approved is None:
                self._uploaders.request_approval(
                    self.applicant.installation, record, self.applicant.public
                )
                approved = fetch()
        except NotApprovedError as error:
            self._record_pending(error)
            raise
        if approved is None:
            raise RunError("The server accepted the request for approval but does not list it.")
        self._save(replace(load_approval(self._file), awaited=None))
        return approved

    def _ensure_record(self) -> UploaderRecord:
        """Update our record on the server unless the same was sent within the last day."""
        installation, instrument = self.applicant.installation, self._connection.instrument
        state, now = load_approval(self._file), self._clock.now()
        digest = self._uploaders.digest(installation, instrument)
        old = state.told_at is None or not timedelta(0) <= now - state.told_at < UPDATE_INTERVAL
        update = old or digest != state.told
        record = self._uploaders.ensure_uploader(installation, instrument, update=update)
        if update:
            self._save(replace(state, told=digest, told_at=now))
        self._compare_identities(record)
        return record

    def claim_uploader(self) -> None:
        """Assign the uploader to this computer, even if it belongs to another one."""
        self._copy_reported = True
        self._store_identity(self._ensure_record())

    def _compare_identities(self, record: UploaderRecord) -> None:
        """Report another computer with this identity; else record this computer on the server."""
        ours, theirs = self.applicant.identity, record.identity
        if theirs is None or (theirs.is_same(ours) and theirs.is_out_of_date(ours)):
            self._store_identity(record)
        elif theirs.is_same(ours) and self._server_settings.needs_clock(record):
            self._store_identity(record)  # the server's answer shows its clock
        elif not theirs.is_same(ours) and not self._copy_reported:
            self._copy_reported = True
            self._emit(Notice(problem=_describe_copy(ours, theirs)))

    def _store_identity(self, record: UploaderRecord) -> None:
        installation, instrument = self.applicant.installation, self._connection.instrument
        identity = self.applicant.identity.format(self._clock.now())
        try:
            self._uploaders.keep_setting(record, installation, instrument, (MACHINE_KEY, identity))
            if written := self._uploaders.find_uploader(installation.uuid):
                self._server_settings.learn_clock(record, written)
        except ItemError as error:  # a computer that is not recorded cannot be compared
            logger.warning("the server did not store the identity of this computer: %s", error)

    def _record_pending(self, error: NotApprovedError) -> NotApprovedError:
        """Record for status reports that we wait for approval, and since when."""
        state = load_approval(self._file)
        key, before = self.applicant.pair.public.fingerprint, state.awaited
        since = before.since if before and before.fingerprint == key else self._clock.now()
        awaited = PendingApproval(key, since, error.problem)
        self._save(replace(state, awaited=awaited, let_in=""))
        return error

    def _save(self, state: ApprovalState) -> None:
        if state != load_approval(self._file):
            save_record(self._file, state)

    def _warn_of_expiry(self, approved: Approved) -> None:
        """Report an approval that expires soon, or has expired and was not withdrawn."""
        today = self._clock.now().date()
        if approved.expires is None or approved.expires - today > EXPIRY_WARNING:
            return
        verb = "expires" if approved.expires >= today else "expired"
        self._emit(
            Notice(
                problem=Problem(
                    "uploader.expires",
                    f"The approval of this uploader {verb} on {approved.expires}.",
                    "Ask the facility's administrator to extend it before the staging host "
                    "refuses the uploader's key.",
                )
            )
        )


def _describe_copy(ours: MachineIdentity, theirs: MachineIdentity) -> Problem:
    return Problem(
        "uploader.copied",
        f"This installation on {ours.hostname} has the same identity as the one on "
        f"{theirs.hostname}, which has used it since {theirs.since}.",
        "If this is a copy, give it its own identity: mydata-like register --new-identity. "
        f"If it replaces the one on {theirs.hostname}: "
        "mydata-like register --keep-identity",
    )


def renew_identity(settings: Settings, config: Path | None) -> str:
    """Give this installation a new uuid and key, and return the uuid.

    The old key is kept under another name. A key file named in the settings is not touched,
    because other programs may use it; only the setting is removed. Raises `SettingsError` if
    either is not set in the user's settings file.
    """
    places = find_places(config)
    prepare_places(settings, places)
    old, new = ensure_uuid(settings, places), str(uuid.uuid4())
    changes: dict[str, object] = {"instrument.uuid": new} if settings.instrument.uuid else {}
    if settings.transfer.key_file:
        changes["transfer.key_file"] = None
    if changes:
        save_settings(config, changes)
    after = load_settings(config).settings
    if after.instrument.uuid not in ("", new) or after.transfer.key_file:
        raise SettingsError(
            "The identity of this installation is not set in its own settings file.",
            hint="To find out where it is set, run: mydata-like settings explain instrument.uuid, "
            "and the same for transfer.key_file. Change it there.",
        )
    if places.key_file.exists():
        places.key_file.rename(places.key_file.with_name(f"{places.key_file.name}.of-{old}"))
    create_key(places.key_file)
    write_private(uuid_file(settings, places), f"{new}\n".encode())
    return new
