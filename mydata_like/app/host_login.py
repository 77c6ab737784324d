"""The login to a host that is a destination without a server, and what its shell can do.

It imports little, so that the host can be asked while the rest is imported.
"""

import os
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.copy_arguments import CopyTarget, HostTarget, parse_target
from mydata_like.core.errors import RejectedError, TransientError, UploaderError
from mydata_like.core.openat import join
from mydata_like.hostos.process import read_account
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.ssh.capabilities import CommandFacts, HostCapabilities, probe_commands
from mydata_like.ssh.connect import connect, keep
from mydata_like.ssh.credentials import LoginCredentials
from mydata_like.ssh.login import Prompts as Prompts
from mydata_like.ssh.login import Trust, log_in
from mydata_like.ssh.session import Endpoint
from mydata_like.ssh.sftp import open_on
from mydata_like.ssh.user_config import find_login
from mydata_like.state.paths import StatePaths
from mydata_like.transfer.ssh.host_programs import PROBE, HostPrograms

ONE_SESSION: Final = (
    "{host} wants a new code for each session, so all channels share one. That is slower. If it "
    "breaks, run the same command again."
)
SHELL: Final = HostCapabilities("shell")


class FoundHost(NamedTuple):
    """A folder on a host; the fields are those of `HostPlace`."""

    endpoint: Endpoint
    path: bytes
    evidence: str
    notes: tuple[str, ...]
    found: HostCapabilities
    programs: HostPrograms | None


def parse_destination(text: str) -> CopyTarget:
    """Return the destination of a command line; raises `SettingsError`."""
    return parse_target(text, windows=os.name == "nt", home=os.fsencode(Path.home()))


def find_host(
    target: HostTarget,
    config: Path | None,
    accepted_keys: tuple[str, ...] = (),
    prompts: Prompts | None = None,
    transfer: Transfer | None = None,
) -> FoundHost:
    """Return a folder of an absolute path, or of one below the account's home, after a login.

    The arguments are those of `open_target`.
    """
    places = StatePaths.chosen(os.environ, config)
    login = find_login(target, Path.home(), {**os.environ, "LOGNAME": read_account()})
    if transfer and transfer.key_file:
        login = login._replace(key_files=(transfer.key_file, *login.key_files))
    trust = Trust(places.known_hosts, accepted_keys, prompts and prompts.confirm)
    credentials = LoginCredentials(prompts and prompts.ask)
    endpoint = log_in(login, places.key_file, trust, credentials)
    notes = login.notes
    if endpoint.account in credentials.logins:
        notes += (ONE_SESSION.format(host=login.host),)
    if transfer:
        endpoint = _adjust(endpoint, transfer)
    path = target.path
    facts, programs, refusal = ask_shell(endpoint)
    home, evidence = facts.home if facts else b"", "host"
    if facts is None or not facts.checksum:
        try:
            with closing(connect(endpoint)) as session:
                sftp = open_on(session)
                home = home or sftp.find_home()
                evidence = "read-back" if sftp.flushes else "read-back-cached"
        except RejectedError:
            if refusal and not path.startswith(b"/"):
                raise refusal from None
    if path and not path.startswith(b"/"):
        path = join(home, path)
    found = SHELL
    if facts:
        found = found._replace(checksum=facts.checksum, sha256=facts.sha256)
    return FoundHost(endpoint, path or home, evidence, notes, found, programs)


def ask_shell(
    endpoint: Endpoint,
) -> tuple[CommandFacts | None, HostPrograms | None, UploaderError | None]:
    """Return what the shell of a host tells and what programs it has, or why it tells nothing.

    A host without one may refuse commands, break the connection or stay silent. A connection that
    breaks for another reason is opened again.
    """
    failure: UploaderError | None = None
    for _ in range(2):
        with ExitStack() as stack:
            session = stack.enter_context(closing(connect(endpoint)))
            try:
                facts = probe_commands(session, PROBE)
            except RejectedError as error:
                return None, None, error
            except TransientError as error:
                failure = error
                continue
            stack.pop_all()
            keep(endpoint, session)
            return facts, HostPrograms.parse(facts.output) if facts.checksum else None, None
    return None, None, failure


def _adjust(endpoint: Endpoint, transfer: Transfer) -> Endpoint:
    """Return an endpoint and its jump hosts with ciphers and timeouts of the settings."""
    return endpoint._replace(
        ciphers=transfer.ciphers,
        connect_timeout=transfer.connect_timeout,
        stall_timeout=transfer.stall_timeout,
        stack=transfer.ssh,
        via=_adjust(endpoint.via, transfer) if endpoint.via else None,
    )
