"""Uploads to the bucket of an S3 storage box: what the settings and the server say about it."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mydata_like.app.settings_service import find_s3_secret, find_state, open_secrets
from mydata_like.app.transports.connection_steps import (
    SIZE,
    UNMEASURED,
    TestStep,
    differs,
    send_test_file,
    succeeded,
    until_failed,
)
from mydata_like.app.transports.transport_access import TransportAccess, TransportKind
from mydata_like.catalogues.mytardis.uploader import Box
from mydata_like.core.errors import NotApprovedError, Problem, SettingsError, UploaderError
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_size, format_text
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Transport
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Transfer
from mydata_like.settings.values import is_loopback, parse_url
from mydata_like.state.state_files import CLEANUP, TimestampStore
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import S3Transport, remove_old_uploads
from mydata_like.transfer.temporary_files import owner_mark

if TYPE_CHECKING:
    from mydata_like.app.transports.transport_access import OpenDestination

logger = logging.getLogger(__name__)

CHANNELS: Final = 16
_CLEANED: Final = "s3"
_PARTS_AT_ONCE: Final = 4  # of one channel
_PAUSE: Final = timedelta(days=1)
_REQUIRED: Final = ("transfer.s3_bucket", "transfer.s3_box", "transfer.s3_access_key")


class S3Kind(TransportKind):
    """Files are sent to object storage. Nothing has to be confirmed by the user."""

    for_previews = True

    def open(self, access: TransportAccess) -> tuple[Transport, str]:
        """Return the transport to the bucket, and the name of its storage box.

        Unless it is a dry run, parts that interrupted uploads left long ago are removed.
        """
        bucket, box = find_bucket(access, requests=not access.request.dry_run)
        transport = open_bucket(access, bucket)
        if not access.request.dry_run:
            _clean_up(access, transport)
        return transport, box

    def request_area(self, access: TransportAccess) -> StagingArea:
        bucket, box = find_bucket(access, requests=True)
        return StagingArea(
            box=box, location=bucket.prefix, username=bucket.access_key, hosts=(bucket.host,)
        )

    def find_box(self, access: TransportAccess) -> str:
        return find_bucket(access, requests=False)[1]

    def test(self, access: TransportAccess) -> Iterator[TestStep]:
        yield from until_failed("bucket", self._test(access))

    def _test(self, access: TransportAccess) -> Iterator[TestStep]:
        """Yield which bucket is used, then the results for a small file."""
        bucket, box = find_bucket(access, requests=False)
        yield succeeded(
            "bucket",
            f"Files go to the bucket {bucket.name} at {bucket.host}, the storage box {box}.",
        )
        name = f".mydata-like-check-{access.uuid}"
        state = find_state(access.settings, access.places)
        with closing(open_bucket(access, bucket)) as transport:
            checksum = send_test_file(transport, name, state, access.observer.cancel)
            sent = f"A file of {format_size(SIZE)} was sent"
            if transport.fetch_checksum(name) == checksum:
                yield succeeded("file", f"{sent} and read back: the checksum is correct.")
            else:
                yield differs(
                    f"{sent}, but the object in the bucket differs.",
                    "Ask the administrator of the object storage to check it.",
                )
            transport.remove(name)
            yield succeeded("cleaning", "The file was removed again.")

    def find_measured(self, access: TransportAccess) -> "tuple[OpenDestination | None, str]":
        return None, f"{UNMEASURED}: files are sent to object storage."


def find_bucket(access: TransportAccess, *, requests: bool) -> tuple[Bucket, str]:
    """Return the bucket and the name of its storage box; raises `SettingsError`.

    The settings come first. Whatever they leave open is taken from the options of the approved
    storage box, which have the names of django-storages. With `requests`, approval of it is
    requested.
    """
    transfer = access.settings.transfer
    box: Box | None = None
    if not (transfer.s3_bucket and transfer.s3_box):
        if requests:
            box = access.approval.request_box()
        else:
            with suppress(NotApprovedError):
                box = access.approval.fetch_box()
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


def open_bucket(access: TransportAccess, bucket: Bucket) -> S3Transport:
    """Return a transport to a bucket, with the secret of the request or the stored one."""
    request = access.request
    secret = request.s3_secret or find_s3_secret(request.settings, open_secrets(request.config))[0]
    access.observer.hide(secret.reveal())
    transfer, server = request.settings.transfer, request.settings.server
    channels = max(transfer.channels, CHANNELS)
    options = S3Options(
        connect_timeout=transfer.connect_timeout,
        stall_timeout=transfer.stall_timeout,
        connections=channels * _PARTS_AT_ONCE,
        ca_file=server.ca_file,
        proxy=server.proxy,
    )
    client = open_client(bucket, secret.reveal(), options)
    mark = owner_mark(access.uuid)
    return S3Transport(client, bucket, channels=channels, mark=mark, emit=access.emit)


def _clean_up(access: TransportAccess, transport: S3Transport) -> None:
    """Remove old parts once a day; a failure is logged, and retried another day."""
    clock = SystemClock()
    moments, now = TimestampStore(access.find_file(CLEANUP)), clock.now()
    last = moments.find(_CLEANED)
    if last and timedelta() <= now - last < _PAUSE:
        return
    moments.keep(_CLEANED, now)
    try:
        removed = remove_old_uploads(transport.client, transport.bucket, clock.now)
    except UploaderError as error:
        logger.info("Old parts in the bucket were not removed: %s", error)
        return
    if removed:
        uploads = "1 upload" if removed == 1 else f"{removed:,} uploads"
        problem = Problem(
            "s3.cleaned",
            f"The parts of {uploads} that were interrupted a week ago or earlier were removed "
            "from the bucket.",
            "No action is needed: files that were not complete are sent again.",
        )
        access.emit(Notice(problem=problem))


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
