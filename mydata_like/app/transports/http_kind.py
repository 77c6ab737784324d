"""Uploads over HTTP, which need no approval."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from mydata_like.app.transports.connection_steps import UNMEASURED, StepResult, TestStep
from mydata_like.app.transports.ssh_kind import find_unknown_keys, list_endpoints
from mydata_like.app.transports.transport_access import TransportAccess, TransportKind, no_box
from mydata_like.catalogues.mytardis.chunked_upload import ChunkedUpload
from mydata_like.catalogues.mytardis.http_upload import HttpTransport
from mydata_like.core.errors import StagingError
from mydata_like.core.model import FileRecord, StagingArea
from mydata_like.core.ports import Transport
from mydata_like.transfer.archive_writer import ArchiveSource, open_content
from mydata_like.transfer.channel import describe_member
from mydata_like.transfer.file_source import FileSource

if TYPE_CHECKING:
    from mydata_like.app.transports.transport_access import OpenDestination, Unconfirmed

_CHANNELS: Final = 4


class HttpKind(TransportKind):
    """Files are sent over HTTP; with an approval, the server can take large ones in chunks."""

    for_previews = True
    can_replace = False

    def open(self, access: TransportAccess) -> tuple[Transport, str]:
        try:
            area = access.find_area()
        except StagingError:
            area = None
        return open_http(access, area), area.box if area else ""

    def find_unconfirmed(
        self, access: TransportAccess, area: StagingArea, accepted: tuple[str, ...]
    ) -> "Unconfirmed":
        """Return the keys of the staging hosts, over which files may be sent later."""
        return find_unknown_keys(list_endpoints(access, area), accepted), None

    def find_box(self, access: TransportAccess) -> str:
        raise no_box()

    def test(self, access: TransportAccess) -> Iterator[TestStep]:
        yield describe_http_only(access, access.find_area())

    def find_measured(self, access: TransportAccess) -> "tuple[OpenDestination | None, str]":
        return None, f"{UNMEASURED}: files are sent over HTTP."


def open_http(access: TransportAccess, area: StagingArea | None) -> HttpTransport:
    """Return the transport over HTTP; large files go in chunks if an area is approved for them."""

    def open_file(wanted: FileRecord) -> FileSource | ArchiveSource:
        return open_content(describe_member(wanted))

    connection, chunked = access.connection, None
    if area is not None and "mydata_upload" in connection.resources:
        chunked = ChunkedUpload(connection.client, area.box)
    return HttpTransport(
        connection.client,
        open_file,
        channels=max(access.settings.transfer.channels, _CHANNELS),
        chunked=chunked,
        emit=access.emit,
    )


def describe_http_only(access: TransportAccess, area: StagingArea | None) -> TestStep:
    """Return the step of a test in which nothing was sent."""
    key = access.approval.applicant.pair.public.fingerprint
    why = "as set in transfer.method" if area else f"until its key {key} is approved"
    return TestStep(
        "staging",
        StepResult.UNPROVEN,
        f"Files are sent over HTTP, {why}; SSH was not tested.",
        "" if area else "Request approval with: mydata-like register",
    )
