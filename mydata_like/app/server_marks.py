"""The marks on the server of runs that are in progress."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mydata_like.app.approval import describe_applicant
from mydata_like.app.connection import Connection, ServerSettingsCache, open_server_settings
from mydata_like.app.identity import find_uuid
from mydata_like.catalogues.mytardis.uploader import (
    EXPIRY,
    Installation,
    UploaderMark,
    UploaderRecord,
    digest_folders,
)
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import (
    AlreadyRunningError,
    Cancelled,
    ItemError,
    SettingsError,
    UploaderError,
)
from mydata_like.core.events import Event, Notice
from mydata_like.core.formatting import format_path
from mydata_like.core.model import Layout
from mydata_like.core.ports import Emit
from mydata_like.engine.pipeline import repeated
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import Lease, LockHolder
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import parse_naive

logger = logging.getLogger(__name__)

MARK_RENEWAL = 60.0  # seconds


class Marker:
    """The mark of one run on the server, which is renewed during the run."""

    def __init__(
        self,
        connection: Connection,
        installation: Installation,
        mirror: ServerSettingsCache,
        mark: UploaderMark,
    ) -> None:
        self._uploaders = connection.uploaders
        self._instrument = connection.instrument
        self._installation = installation
        self._mirror = mirror
        self._mark = mark
        self._written: UploaderRecord | None = None

    def take(self, directory: bytes) -> None:
        """Set the mark; raises `AlreadyRunningError` if another run is in progress.

        Two runs that set their marks at the same time and then see each other both give up.
        """
        before = self._uploaders.find_uploader(self._installation.uuid)
        if before is None:  # the server stores settings of known uploaders only
            return
        try:
            self.renew()
        except ItemError as error:
            logger.warning("The server did not store the mark of this run: %s", error)
            return
        try:
            self._refuse(directory, before)
        except AlreadyRunningError:
            self.release()
            raise

    def renew(self) -> None:
        """Renew the mark."""
        mark = self._mark = self._mark._replace(renewals=self._mark.renewals + 1)
        self._keep(mark.format())

    def release(self) -> None:
        """Remove the mark."""
        if self._written:
            try:
                self._keep("")
            except (UploaderError, Cancelled) as error:  # the mark expires
                logger.warning("The mark of this run could not be removed: %s", error)

    def _keep(self, text: str) -> None:
        uuid = self._installation.uuid
        before = self._uploaders.find_uploader(uuid)
        if before is None:
            return
        self._uploaders.keep_setting(
            before, self._installation, self._instrument, (self._mark.key, text)
        )
        written = self._written = self._uploaders.find_uploader(uuid)
        # Only our mark has changed, so the other settings do not become newer.
        if written and written.settings == before.settings:
            self._mirror.learn_clock(before, written)

    def _refuse(self, directory: bytes, before: UploaderRecord) -> None:
        """Raise if another run is in progress; `before` is our record before the mark was set."""
        now = parse_naive(self._written.settings_updated) if self._written else None
        others = [it for it in self._uploaders.list_uploaders() if it.id != before.id]
        for record in (before, *others):
            updated = parse_naive(record.settings_updated)
            if now is None or updated is None or now - updated > EXPIRY:
                continue
            for key, mark in record.marks:
                ours = record is before and (key, mark.host) == (self._mark.key, self._mark.host)
                if mark.overlaps(self._mark) and not ours:
                    raise _already_running(directory, mark)


def _already_running(directory: bytes, mark: UploaderMark) -> AlreadyRunningError:
    return AlreadyRunningError(
        f"Another run is in progress on {format_path(directory)}{mark.who}.",
        hint="Wait until it has ended, or stop it there. The mark of a killed run expires after "
        "five minutes.",
    )


@contextmanager
def marked(
    lease: Lease | None,
    connection: Connection,
    settings: Settings,
    places: StatePaths,
    shard: Shard,
) -> Iterator[None]:
    """Keep a mark on the server inside this context if the lease is missing.

    Raises `AlreadyRunningError` if another run over the same data has a mark.
    """
    root = os.fsencode(settings.data.directory or "")
    folders = _find_folders(root)
    wanted = lease is not None and lease.missing and folders
    if not wanted or "mydata_uploader" not in connection.resources:
        yield
        return
    clock = SystemClock()
    holder = LockHolder.here(clock)
    mark = UploaderMark(folders, holder.describe(), holder.host, shard)
    installation = describe_applicant(connection, settings, places).installation
    marker = Marker(connection, installation, open_server_settings(settings, places, clock), mark)
    marker.take(root)
    try:
        with repeated(marker.renew, MARK_RENEWAL):
            yield
    finally:
        marker.release()


def _find_folders(root: bytes) -> frozenset[str]:
    """Return digests that identify the data directory on every computer that can access it."""
    try:
        with os.scandir(root) as entries:
            inside = [(it.name, it.inode()) for it in entries if it.is_dir(follow_symlinks=False)]
        return digest_folders(Path(os.fsdecode(root)).stat().st_ino, inside)
    except OSError:
        return frozenset()


def check_shards(settings: Settings, places: StatePaths) -> None:
    """Raise `SettingsError` if the data directory cannot be split into shards."""
    if settings.data.layout is Layout.DATASET:
        raise SettingsError(
            f'With the layout "{Layout.DATASET}" the whole data directory is one experiment, '
            "which cannot be split into shards.",
            hint="Use a layout with owners or experiments, or run without --shard.",
            code="shard.one-experiment",
        )
    if not find_uuid(settings, places):
        raise SettingsError(
            "The shards have no common identity yet.",
            hint="Before the first shard starts, run once: mydata-like register. Or set "
            "instrument.uuid to the same value on all computers.",
            code="shard.no-identity",
        )


def without_copy_notices(emit: Emit, shard: Shard) -> Emit:
    """Return an `emit` that drops notices of a copied identity, which all shards share."""
    if shard == WHOLE:
        return emit

    def forward(event: Event) -> None:
        if not (isinstance(event, Notice) and event.problem.code == "uploader.copied"):
            emit(event)

    return forward
