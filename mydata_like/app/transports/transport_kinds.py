"""The table of the kinds of transport, by the value of `transfer.method`."""

from collections.abc import Mapping
from typing import Final

from mydata_like.app.transports.auto_kind import AutoKind
from mydata_like.app.transports.folder_kind import FolderKind
from mydata_like.app.transports.http_kind import HttpKind
from mydata_like.app.transports.s3_kind import S3Kind
from mydata_like.app.transports.ssh_kind import SshKind
from mydata_like.app.transports.transport_access import TransportAccess, TransportKind
from mydata_like.core.ports import Transport
from mydata_like.settings.schema import Settings

KINDS: Final[Mapping[str, TransportKind]] = {
    "auto": AutoKind(),
    "ssh": SshKind(),
    "folder": FolderKind(),
    "http": HttpKind(),
    "s3": S3Kind(),
}


def find_kind(settings: Settings) -> TransportKind:
    """Return the kind of transport of the settings."""
    return KINDS[settings.transfer.method]


def open_transport(access: TransportAccess) -> tuple[Transport, str]:
    """Return the transport of a run and its storage box; that of a dry run needs no approval."""
    kind = find_kind(access.settings)
    if access.request.dry_run and not kind.for_previews:
        kind = KINDS["http"]
    return kind.open(access)
