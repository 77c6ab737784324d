"""Registration by the user: the approval, and the keys of the staging hosts."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from mydata_like.app.connection import refresh_settings, require_complete
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate, connect, connected
from mydata_like.app.settings_service import find_places, load_settings, prepare_places
from mydata_like.app.staging_service import list_endpoints, open_approval_request
from mydata_like.core.errors import HostKeyError
from mydata_like.core.model import StagingArea
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings, Transfer
from mydata_like.ssh.connect import fetch_host_key
from mydata_like.ssh.keys import (
    CHANGED,
    UNKNOWN,
    PublicKey,
    accept_host_key,
    check_host_key,
    forget_host_keys,
    known_keys,
)
from mydata_like.ssh.session import Endpoint


@dataclass(frozen=True, slots=True)
class HostKey:
    """A staging host's key that is not trusted yet."""

    host: str
    port: int
    key: PublicKey
    known_hosts: Path
    known: tuple[str, ...] = ()  # fingerprints of the keys that it had before

    @property
    def fingerprint(self) -> str:
        return self.key.fingerprint

    @property
    def refusal(self) -> HostKeyError:
        """The error for a user who has not confirmed the key."""
        known = f" instead of {' or '.join(self.known)}" if self.known else ""
        return HostKeyError(
            f"The key of {self.host} port {self.port} is not trusted yet: "
            f"{self.fingerprint}{known}.",
            hint="Compare it with what the facility's administrator tells you, then run "
            f"again with --accept-host-key {self.fingerprint}",
            code=CHANGED if self.known else UNKNOWN,
        )


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """The approved staging area, and the host keys that still need to be trusted.

    The hosts are contacted one by one while their keys are iterated. A host behind a jump host
    that has not been trusted by then cannot be reached, which raises a `HostKeyError`.
    """

    area: StagingArea
    unknown_host_keys: Iterator[HostKey]


def register(
    request: RunRequest, observer: RunObserver, *, here: bool = False
) -> RegistrationResult:
    """Request approval, and contact the staging hosts once it is given.

    If the request has a `patience`, wait that long for the approval. With `here`, assign the
    uploader to this computer. Raises `NotApprovedError` with the fingerprint for the
    administrator, `HostKeyError` if a host's key is not the known one.
    """
    require_complete(request.settings, request.config)
    places = find_places(request.config)
    prepare_places(request.settings, places)
    gate = build_gate(request, observer, SystemClock())
    with ExitStack() as stack:
        request, connection = connect(request, observer, gate, stack)
        approval_request = open_approval_request(
            connection, request.settings, places, observer.emit
        )
        if here:
            approval_request.claim_uploader()
        area = (
            approval_request.request()
            if request.patience is None
            else gate.call(approval_request.request)
        )
    endpoints = list_endpoints(approval_request, area, request.settings, places)
    return RegistrationResult(area, _find_unknown(endpoints))


def fetch_server_settings(request: RunRequest, observer: RunObserver) -> bool:
    """Fetch the server's settings for this uploader; return whether they have changed."""
    require_complete(request.settings, request.config)
    places, clock = find_places(request.config), SystemClock()
    prepare_places(request.settings, places)
    gate = build_gate(request, observer, clock)
    with connected(request, observer, gate) as connection:
        return refresh_settings(connection, request.settings, places, clock)


def _find_unknown(endpoints: Iterable[Endpoint]) -> Iterator[HostKey]:
    """Yield the keys of untrusted hosts, jump hosts before the hosts behind them."""
    for host in dict.fromkeys(host for endpoint in endpoints for host in endpoint.way):
        if unknown := _fetch_unknown_key(host):
            yield unknown


def _fetch_unknown_key(endpoint: Endpoint) -> HostKey | None:
    """Return the key of a host if it is not trusted yet; raises if others are pinned."""
    host_key = fetch_host_key(endpoint)
    try:
        check_host_key(endpoint, host_key)
    except HostKeyError:
        if endpoint.host_keys:
            raise
        known = tuple(key.fingerprint for key in known_keys(endpoint))
        return HostKey(endpoint.host, endpoint.port, host_key, endpoint.known_hosts, known)
    return None


def trust_host(key: HostKey) -> None:
    """Trust this host's key from now on, instead of those that it had before."""
    if key.known:
        forget_host_keys(key.known_hosts, key.host, key.port)
    accept_host_key(key.known_hosts, key.host, key.port, key.key)


def forget_host(config: Path | None, host: str) -> int:
    """Trust no key of this host any more; return how many were trusted."""
    return forget_host_keys(find_places(config).known_hosts, host)


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
    return settings.changed(transfer=Transfer(**values))
