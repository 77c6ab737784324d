"""Access to the bucket of an S3 storage box: what the settings and the server say about it."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from mydata_like.app.connection import Connection, ensure_uuid
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import find_places, find_s3_secret, find_state, open_secrets
from mydata_like.app.staging_service import open_approval_request
from mydata_like.core.errors import NotApprovedError, Problem, SettingsError, UploaderError
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_text
from mydata_like.hostos.clock import SystemClock
from mydata_like.server.uploader import Box
from mydata_like.settings.schema import Transfer
from mydata_like.settings.values import is_loopback, parse_url
from mydata_like.state.state_files import CLEANUP, TimestampStore, find_file
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import S3Transport, remove_old_uploads
from mydata_like.transfer.ssh.remote_shell import owner_mark

logger = logging.getLogger(__name__)

S3: Final = "s3"  # as transfer.method
CHANNELS: Final = 16
_PARTS_AT_ONCE: Final = 4  # of one channel
_PAUSE: Final = timedelta(days=1)
_REQUIRED: Final = ("transfer.s3_bucket", "transfer.s3_box", "transfer.s3_access_key")


class ObjectStorage:
    """The object storage of an installation, as its settings and its approval describe it."""

    def __init__(self, request: RunRequest, observer: RunObserver, connection: Connection) -> None:
        self._settings = request.settings
        self._places = find_places(request.config)
        self._secrets = open_secrets(request.config)
        self._entered = request.s3_secret
        self._observer = observer
        self._connection = connection

    def open(self, *, dry_run: bool = False) -> tuple[S3Transport, str]:
        """Return the transport to the bucket, and the name of its storage box.

        Approval is requested if the approval names the box.
        Unless it is a dry run, parts that interrupted uploads left long ago are removed.
        """
        bucket, box = self.find_bucket(dry_run=dry_run)
        transport = self.open_transport(bucket)
        if not dry_run:
            self._clean_up(transport)
        return transport, box

    def find_bucket(self, *, dry_run: bool = False) -> tuple[Bucket, str]:
        """Return the bucket and the name of its storage box; raises `SettingsError`.

        The settings come first. Whatever they leave open is taken from the options of the approved
        storage box, which have the names of django-storages.
        """
        transfer = self._settings.transfer
        box: Box | None = None
        if not (transfer.s3_bucket and transfer.s3_box):
            emit = self._observer.emit
            approval_request = open_approval_request(
                self._connection, self._settings, self._places, emit
            )
            if dry_run:
                with suppress(NotApprovedError):
                    box = approval_request.fetch_box()
            else:
                box = approval_request.request_box()
        bucket = build_bucket(transfer, box.options if box else {})
        name = transfer.s3_box or (box.name if box else "")
        if box and (name, bucket.name) != (box.name, box.options.get("bucket_name")):
            raise _other_box(box, bucket)
        values = (bucket.name, name, bucket.access_key)
        missing = [key for key, value in zip(_REQUIRED, values, strict=True) if not value]
        if missing:
            raise SettingsError(
                f"Files cannot be sent to object storage without {', '.join(missing)}.",
                hint="Set each with: mydata-like settings set KEY VALUE",
                code="s3.incomplete",
            )
        return bucket, name

    def open_transport(self, bucket: Bucket) -> S3Transport:
        """Return a transport to a bucket, with the secret of the request or the stored one."""
        secret = self._entered or find_s3_secret(self._settings, self._secrets)[0]
        self._observer.hide(secret.reveal())
        transfer, server = self._settings.transfer, self._settings.server
        channels = max(transfer.channels, CHANNELS)
        options = S3Options(
            connect_timeout=transfer.connect_timeout,
            stall_timeout=transfer.stall_timeout,
            connections=channels * _PARTS_AT_ONCE,
            ca_file=server.ca_file,
            proxy=server.proxy,
        )
        client = open_client(bucket, secret.reveal(), options)
        return S3Transport(
            client,
            bucket,
            channels=channels,
            mark=owner_mark(ensure_uuid(self._settings, self._places)),
            emit=self._observer.emit,
        )

    def _clean_up(self, transport: S3Transport) -> None:
        """Remove old parts once a day; a failure is logged, and retried another day."""
        clock = SystemClock()
        state, url = find_state(self._settings, self._places), self._settings.server.url
        moments, now = TimestampStore(find_file(state, CLEANUP, url)), clock.now()
        last = moments.find(S3)
        if last and timedelta() <= now - last < _PAUSE:
            return
        moments.keep(S3, now)
        try:
            removed = remove_old_uploads(transport.client, transport.bucket, clock.now)
        except UploaderError as error:
            logger.info("Old parts in the bucket were not removed: %s", error)
            return
        if removed:
            self._observer.emit(Notice(problem=_describe_removed(removed)))


def build_bucket(transfer: Transfer, options: Mapping[str, str]) -> Bucket:
    """Return the bucket of the settings; `options` of a storage box replace those not set.

    Raises `SettingsError` for an address of the server that cannot be used.
    """
    endpoint = transfer.s3_endpoint or options.get("endpoint_url", "")
    _check_endpoint(endpoint)
    return Bucket(
        name=transfer.s3_bucket or options.get("bucket_name", ""),
        endpoint=endpoint,
        region=transfer.s3_region or options.get("region_name", ""),
        prefix=transfer.s3_prefix or options.get("location", "").strip("/"),
        access_key=transfer.s3_access_key,
    )


def _check_endpoint(endpoint: str) -> None:
    if not endpoint:
        return
    try:
        parse_url(endpoint)
    except ValueError as error:
        raise _invalid(endpoint, str(error)) from error
    parts = urlsplit(endpoint)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise _invalid(endpoint, "must begin with https://")


def _other_box(box: Box, bucket: Bucket) -> SettingsError:
    wanted = f"the bucket {format_text(bucket.name)}" if bucket.name else "a bucket"
    return SettingsError(
        f"The approved storage box {format_text(box.name)[:100]} is not that of {wanted}.",
        hint="Ask the server's administrator to approve the bucket's storage box, or set "
        "transfer.s3_bucket and transfer.s3_box.",
        code="s3.other-box",
    )


def _invalid(endpoint: str, why: str) -> SettingsError:
    return SettingsError(
        f"The address of the storage box's object storage, {format_text(endpoint)[:200]}, {why}.",
        hint="Ask the server's administrator to correct it, or set transfer.s3_endpoint.",
        code="s3.address",
    )


def _describe_removed(removed: int) -> Problem:
    uploads = "1 upload" if removed == 1 else f"{removed:,} uploads"
    return Problem(
        "s3.cleaned",
        f"The parts of {uploads} that were interrupted a week ago or earlier were removed from "
        "the bucket.",
        "No action is needed: files that were not complete are sent again.",
    )
