"""Registering by hand: approval, and the keys of the staging hosts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mydata_like.bootstrap.admission import request_admission
from mydata_like.bootstrap.connection import open_connection, require_complete
from mydata_like.bootstrap.settings import find_api_key, find_places, open_secrets
from mydata_like.bootstrap.staging import introduce
from mydata_like.core.errors import HostKeyError
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Cancel
from mydata_like.settings.schema import Settings
from mydata_like.ssh.connect import fetch_host_key
from mydata_like.ssh.hosts import accept_host_key, check_host_key
from mydata_like.ssh.keys import PublicKey
from mydata_like.system.clock import SystemClock
from mydata_like.transfer.pool import build_endpoints


@dataclass(frozen=True, slots=True)
class HostKey:
    """A staging host's key that nobody has vouched for yet."""

    host: str
    port: int
    key: PublicKey
    known_hosts: Path

    @property
    def fingerprint(self) -> str:
        return self.key.fingerprint


@dataclass(frozen=True, slots=True)
class Admission:
    """The approval: where bytes go, and whom to trust on the way."""

    area: StagingArea
    unknown_host_keys: tuple[HostKey, ...]


def register(
    settings: Settings, config: Path | None, cancel: Cancel, hide: Callable[[str], None]
) -> Admission:
    """Ask for approval, and meet the staging hosts once it is there.

    Raises `NotApprovedError` with the fingerprint to tell the administrator, `HostKeyError`
    where a host's key is not the one we know.
    """
    require_complete(settings)
    places = find_places(config)
    places.make_private()
    key, _ = find_api_key(settings, open_secrets(config))
    hide(key.reveal())
    connection = open_connection(settings, key, SystemClock(), cancel)
    try:
        applicant = introduce(connection, settings, places)
        area = request_admission(connection, applicant)
    finally:
        connection.close()
    unknown = []
    endpoints = build_endpoints(
        area,
        settings.transfer,
        key_file=applicant.pair.path,
        known_hosts=places.known_hosts,
    )
    for endpoint in endpoints:
        host_key = fetch_host_key(endpoint)
        try:
            check_host_key(endpoint, host_key)
        except HostKeyError as error:
            if error.problem_code != HostKeyError.code:
                raise
            unknown.append(HostKey(endpoint.host, endpoint.port, host_key, endpoint.known_hosts))
    return Admission(area, tuple(unknown))


def trust_host(key: HostKey) -> None:
    """Trust this host's key from now on."""
    accept_host_key(key.known_hosts, key.host, key.port, key.key)


def trust_host_keys(settings: Settings, fingerprints: tuple[str, ...]) -> Settings:
    """Return settings that trust these fingerprints as well, checked as if they stood there."""
    if not fingerprints:
        return settings
    trusted = (*settings.transfer.host_keys, *fingerprints)
    values = settings.transfer.model_dump() | {"host_keys": tuple(dict.fromkeys(trusted))}
    return settings.model_copy(update={"transfer": type(settings.transfer)(**values)})
