"""Registration by the user: the approval, and the keys of the staging hosts or the folder."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from mydata_like.app.connection import refresh_settings, require_complete
from mydata_like.app.run_connection import connect, connected
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate
from mydata_like.app.settings_service import find_places, load_settings, prepare_places
from mydata_like.app.transports.folder_kind import NewFolder
from mydata_like.app.transports.ssh_kind import HostKey
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.app.transports.transport_kinds import find_kind
from mydata_like.core.frozen import frozen
from mydata_like.core.model import StagingArea
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings, Transfer
from mydata_like.ssh.keys import (
    forget_host_keys,
)


@frozen()
class RegistrationResult:
    """The approved staging area, what files are sent to, and what has to be confirmed.

    The hosts are contacted one by one while their keys are iterated. A host behind a jump host
    that has not been trusted by then cannot be reached, which raises a `HostKeyError`. `new_folder`
    has to be confirmed, if files are written to a folder.
    """

    area: StagingArea
    hosts: tuple[str, ...]
    unknown_host_keys: Iterator[HostKey]
    new_folder: NewFolder | None = None


def register(
    request: RunRequest,
    observer: RunObserver,
    *,
    here: bool = False,
    accepted: tuple[str, ...] = (),
) -> RegistrationResult:
    """Request approval, and contact the staging hosts once it is given.

    If the request has a `patience`, wait that long for the approval. With `here`, assign the
    uploader to this computer. Of a host with several keys, one whose fingerprint is `accepted` is
    preferred. Raises `NotApprovedError` with the fingerprint for the administrator,
    `ServerUnavailableError` if a folder cannot be reached.
    """
    require_complete(request.settings, request.config)
    places = find_places(request.config)
    prepare_places(request.settings, places)
    gate = build_gate(request, observer, SystemClock())
    with ExitStack() as stack:
        request, connection = connect(request, observer, gate, stack)
        access = TransportAccess(request, observer, connection)
        if here:
            access.approval.claim_uploader()
        kind = find_kind(request.settings)
        ask = partial(kind.request_area, access)
        area = ask() if request.patience is None else gate.call(ask)
    host_keys, new_folder = kind.find_unconfirmed(access, area, accepted)
    return RegistrationResult(area, kind.list_hosts(access, area), host_keys, new_folder)


def fetch_server_settings(request: RunRequest, observer: RunObserver) -> bool:
    """Fetch the server's settings for this uploader; return whether they have changed."""
    require_complete(request.settings, request.config)
    places, clock = find_places(request.config), SystemClock()
    prepare_places(request.settings, places)
    gate = build_gate(request, observer, clock)
    with connected(request, observer, gate) as connection:
        return refresh_settings(connection, request.settings, places, clock)


def forget_host(config: Path | None, host: str, port: int | None = None) -> int:
    """Trust no key of this host any more, on one port or on all; return how many were trusted."""
    return forget_host_keys(find_places(config).known_hosts, host, port)


def load_trusting(
    config: Path | None, assignments: Sequence[str], fingerprints: tuple[str, ...]
) -> Loaded:
    """Return the settings that also trust these fingerprints; raises like `load_settings`."""
    loaded = load_settings(config, assignments)
    return replace(loaded, settings=trust_host_keys(loaded.settings, fingerprints))


def trust_host_keys(settings: Settings, fingerprints: tuple[str, ...]) -> Settings:
    """Return settings that also trust these fingerprints, validated like those from a file."""
    if not fingerprints:
        return settings
    trusted = (*settings.transfer.host_keys, *fingerprints)
    values = settings.transfer.values() | {"host_keys": tuple(dict.fromkeys(trusted))}
    return settings.with_values(transfer=Transfer(**values))
