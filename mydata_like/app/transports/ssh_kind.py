"""Uploads over SSH: the staging hosts, their keys, and what is remembered of them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from mydata_like.app.transports.connection_steps import StepResult, TestStep, failed, succeeded
from mydata_like.app.transports.remembered_hosts import RememberedHosts
from mydata_like.app.transports.staging_kind import StagingKind, check_arrived, check_removed
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.core.errors import AccessDeniedError, HostKeyError, UploaderError
from mydata_like.core.frozen import frozen
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Emit
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.ssh.capabilities import allows_nothing
from mydata_like.ssh.connect import fetch_host_key
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.keys import (
    PublicKey,
    accept_host_key,
    check_host_key,
    forget_host_keys,
    pin_mark,
    trusted_fingerprints,
)
from mydata_like.ssh.session import Endpoint
from mydata_like.state.state_files import HOSTS
from mydata_like.transfer.pool import list_limits
from mydata_like.transfer.ssh.endpoints import build_endpoints, build_hosts
from mydata_like.transfer.ssh.probe_file import open_probe, require_login
from mydata_like.transfer.ssh.remote_cleanup import open_remover
from mydata_like.transfer.ssh.staging_host import StagingHost
from mydata_like.transfer.temporary_files import Remover

if TYPE_CHECKING:
    from mydata_like.app.transports.transport_access import Unconfirmed
    from mydata_like.speedtest.real_files import SpeedTestDestination


class SshKind(StagingKind):
    """Files are sent over SSH, once the key of this uploader is approved."""

    def find_destinations(
        self, access: TransportAccess, area: StagingArea, transfer: Transfer
    ) -> Sequence[StagingHost]:
        pair, places = access.approval.applicant.pair, access.places
        return build_hosts(area, transfer, key_file=pair.path, known_hosts=places.known_hosts)

    def remember(self, access: TransportAccess, area: StagingArea) -> "RememberedHosts":
        return RememberedHosts(access.find_file(HOSTS), area, SystemClock())

    def follow(self, access: TransportAccess) -> Emit:
        """Return what receives the events: an open channel proves that our key is accepted."""
        return access.approval.follow

    @contextmanager
    def open_remover(self, access: TransportAccess, area: StagingArea) -> Iterator[Remover | None]:
        endpoint, location = list_endpoints(access, area)[0], os.fsencode(area.location)
        with open_probe(endpoint, location) as there:
            yield open_remover(there.session, there.capabilities, location, access.uuid)

    def find_unconfirmed(
        self, access: TransportAccess, area: StagingArea, accepted: tuple[str, ...]
    ) -> "Unconfirmed":
        return find_unknown_keys(list_endpoints(access, area), accepted), None

    def test_area(self, access: TransportAccess, area: StagingArea) -> Iterator[TestStep]:
        """Yield whether each host accepts us, then the results for the file."""
        location = os.fsencode(area.location)
        usable = []
        for endpoint in list_endpoints(access, area):
            steps = _test_host(endpoint, location, access)
            yield from steps
            if steps[0].result is StepResult.OK:
                usable.append(endpoint)
        if not usable:
            return
        name, checksum = self.send_test_file(access, area)
        with open_probe(usable[0], location) as there:
            is_blind = there.capabilities.access != "shell"
            yield check_arrived(there.inspect(name.encode()), checksum, is_blind=is_blind)
            yield check_removed(name, is_gone=there.remove(name.encode()))

    def build_measured(
        self, access: TransportAccess, area: StagingArea
    ) -> "Callable[..., SpeedTestDestination] | None":
        # Only a speed test needs it.
        from mydata_like.speedtest.remote_host import RemoteHost

        hosts = self.find_destinations(access, area, access.settings.transfer)
        return partial(RemoteHost, hosts[0]) if hosts else None


def list_endpoints(access: TransportAccess, area: StagingArea) -> list[Endpoint]:
    """Return the endpoint of each staging host, with this installation's key."""
    pair, places = access.approval.applicant.pair, access.places
    transfer = access.settings.transfer
    return build_endpoints(area, transfer, key_file=pair.path, known_hosts=places.known_hosts)


def require_admitted(access: TransportAccess, area: StagingArea) -> None:
    """Raise `NotApprovedError` if no host accepts our key, which can happen after an approval.

    Other problems with the hosts are reported when channels are opened.
    """
    if access.approval.is_admitted(area):
        return
    try:
        require_login(list_endpoints(access, area))
    except AccessDeniedError as error:
        raise access.approval.explain(error) from error


def _test_host(endpoint: Endpoint, location: bytes, access: TransportAccess) -> list[TestStep]:
    """Return whether a host accepts us, and what it lacks."""
    name = f"host {endpoint.host}"
    try:
        with open_probe(endpoint, location) as there:
            found = there.capabilities
    except AccessDeniedError as error:
        return [failed(name, access.approval.explain(error))]
    except UploaderError as error:
        refused = error.problem_code == NO_CHANNEL
        return [failed(name, allows_nothing(error) if refused else error)]
    return [
        succeeded(name, f"Login and upload work: {found.why}."),
        *(
            succeeded(f"{name}, {limit.code}", limit.message, limit.code)
            for limit in list_limits(endpoint.host, found)
        ),
    ]


@frozen()
class HostKey:
    """A staging host's key that is not trusted yet.

    `known` are the fingerprints of the host's known or pinned keys. `refusal` is the error for a
    user who has not confirmed the key.
    """

    endpoint: Endpoint
    key: PublicKey
    known: tuple[str, ...]
    refusal: HostKeyError

    @property
    def host(self) -> str:
        return self.endpoint.host

    @property
    def port(self) -> int:
        return self.endpoint.port

    @property
    def fingerprint(self) -> str:
        return self.key.fingerprint

    def trust(self) -> None:
        """Trust this key from now on, instead of those that the host had before.

        Pinned keys stay trusted as well, and this one only as long as exactly these are pinned.
        """
        known_hosts, mark = self.endpoint.known_hosts, pin_mark(self.endpoint)
        if self.known:
            forget_host_keys(known_hosts, self.host, self.port)
        accept_host_key(known_hosts, self.host, self.port, self.key, mark=mark)


def find_unknown_keys(
    endpoints: Iterable[Endpoint], accepted: tuple[str, ...]
) -> Iterator[HostKey]:
    """Yield the keys of untrusted hosts, jump hosts before the hosts behind them."""
    for host in dict.fromkeys(host for endpoint in endpoints for host in endpoint.way):
        host_key = fetch_host_key(host._replace(also_trusted=(*host.also_trusted, *accepted)))
        try:
            check_host_key(host, host_key)
        except HostKeyError as error:
            yield HostKey(host, host_key, trusted_fingerprints(host), error)
