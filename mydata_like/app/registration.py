"""Registration by the user: the approval, and the keys of the staging hosts or the folder."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mydata_like.app.connection import refresh_settings, require_complete
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate, connect, connected
from mydata_like.app.settings_service import find_places, load_settings, prepare_places
from mydata_like.app.staging_service import list_destinations
from mydata_like.app.transports import KINDS, TransportAccess
from mydata_like.core.errors import HostKeyError, ServerUnavailableError, StagingError
from mydata_like.core.model import StagingArea
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings, Transfer
from mydata_like.ssh.connect import fetch_host_key
from mydata_like.ssh.keys import (
    PublicKey,
    accept_host_key,
    check_host_key,
    forget_host_keys,
    pin_mark,
    trusted_fingerprints,
)
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.folder.folder_process import open_folder_process
from mydata_like.transfer.folder.staging_folder import StagingFolder


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class NewFolder:
    """A mounted folder that is not known yet as that of the storage box.

    `mount` is the path at which its file system is mounted. `timeout` is in seconds.
    """

    folder: StagingFolder
    mount: str
    timeout: float

    @property
    def question(self) -> str:
        """What the user has to know to confirm the folder."""
        return (
            f"{self.folder.host} is to be the folder of the storage box {self.folder.box}, whose "
            f"location on the server is {self.folder.location}. {self._describe_mount()}"
        )

    @property
    def refusal(self) -> StagingError:
        """The error for a user who has not confirmed the folder."""
        return StagingError(
            f"The folder is not confirmed yet: {self.question}",
            hint="If that is right, run again with --accept-folder",
            code="staging.unconfirmed",
        )

    def _describe_mount(self) -> str:
        is_share = self.mount.startswith("\\\\")
        if Path(self.mount) == Path(Path(self.mount).anchor) and not is_share:
            return (
                f"It is on the same file system as {self.mount}, so it is probably not mounted now."
            )
        return f"It is on the file system that is mounted at {self.mount}."


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """The approved staging area, and the host keys that still need to be trusted.

    The hosts are contacted one by one while their keys are iterated. A host behind a jump host
    that has not been trusted by then cannot be reached, which raises a `HostKeyError`. `new_folder`
    has to be confirmed, if files are written to a folder.
    """

    area: StagingArea
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
        kind = KINDS[request.settings.transfer.method]
        access = TransportAccess(request, observer, connection)
        approval_request = access.ask_approval()
        if here:
            approval_request.claim_uploader()
        ask = partial(kind.request_area, access, approval_request)
        area = ask() if request.patience is None else gate.call(ask)
    if not kind.is_confirmed:
        return RegistrationResult(area, iter(()))
    endpoints: list[Endpoint] = []
    timeout = request.settings.transfer.stall_timeout
    for destination in list_destinations(approval_request, area, request.settings, places):
        if isinstance(destination, StagingFolder):
            return RegistrationResult(area, iter(()), _find_new_folder(destination, timeout))
        endpoints.append(destination)
    return RegistrationResult(area, _find_unknown(endpoints, accepted))


def _find_new_folder(folder: StagingFolder, timeout: float) -> NewFolder | None:
    """Return a folder that is not confirmed yet; raises if it cannot be used."""
    with open_folder_process(folder, timeout) as process:
        try:
            process.open()
        except ServerUnavailableError as error:
            if error.problem_code != "staging.unconfirmed":
                raise
            return NewFolder(folder, process.find_mount(), timeout)
    return None


def confirm_folder(new: NewFolder) -> None:
    """Write the marker that lets every uploader use the folder, and try whether it takes files."""
    with open_folder_process(new.folder, new.timeout) as process:
        process.confirm()
        process.open()


def fetch_server_settings(request: RunRequest, observer: RunObserver) -> bool:
    """Fetch the server's settings for this uploader; return whether they have changed."""
    require_complete(request.settings, request.config)
    places, clock = find_places(request.config), SystemClock()
    prepare_places(request.settings, places)
    gate = build_gate(request, observer, clock)
    with connected(request, observer, gate) as connection:
        return refresh_settings(connection, request.settings, places, clock)


def _find_unknown(endpoints: Iterable[Endpoint], accepted: tuple[str, ...]) -> Iterator[HostKey]:
    """Yield the keys of untrusted hosts, jump hosts before the hosts behind them."""
    for host in dict.fromkeys(host for endpoint in endpoints for host in endpoint.way):
        host_key = fetch_host_key(host._replace(also_trusted=(*host.also_trusted, *accepted)))
        try:
            check_host_key(host, host_key)
        except HostKeyError as error:
            yield HostKey(host, host_key, trusted_fingerprints(host), error)


def trust_host(key: HostKey) -> None:
    """Trust this host's key from now on, instead of those that it had before.

    Pinned keys stay trusted as well, and the new one only as long as exactly these are pinned.
    """
    known_hosts, mark = key.endpoint.known_hosts, pin_mark(key.endpoint)
    if key.known:
        forget_host_keys(known_hosts, key.host, key.port)
    accept_host_key(known_hosts, key.host, key.port, key.key, mark=mark)


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
