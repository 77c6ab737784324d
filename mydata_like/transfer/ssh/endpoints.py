"""The endpoints of staging hosts: how each is reached, by what server and settings say."""

import os
from collections.abc import Sequence
from pathlib import Path

from mydata_like.core.errors import SettingsError
from mydata_like.core.model import StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.settings.values import parse_jump
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.ssh.staging_host import StagingHost


def build_hosts(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> Sequence[StagingHost]:
    """Return the hosts of a staging area."""
    endpoints = build_endpoints(area, settings, key_file=key_file, known_hosts=known_hosts)
    return [StagingHost(endpoint, os.fsencode(area.location)) for endpoint in endpoints]


def build_endpoints(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> list[Endpoint]:
    """Return the endpoint of each host of the staging area.

    If host keys are pinned in the settings, the server's keys are ignored: an attacker who controls
    the server must not be able to add one.
    """
    agent = os.environ.get("SSH_AUTH_SOCK", "") if settings.ssh_agent else ""
    if settings.ssh_agent and not agent:
        raise SettingsError(
            "transfer.ssh_agent is on, but there is no agent: SSH_AUTH_SOCK is not set.",
            hint="Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.",
            code="ssh.no-agent",
        )
    plain = Endpoint(
        host="",
        port=area.port,
        username=area.username,
        key_file=key_file,
        known_hosts=known_hosts,
        ciphers=settings.ciphers,
        connect_timeout=settings.connect_timeout,
        stall_timeout=settings.stall_timeout,
        stack=settings.ssh,
        agent=agent,
    )
    via = None  # the last jump host, linked to those before it
    for text in settings.ssh_jump:
        username, jump, port = parse_jump(text)
        hop = plain._replace(host=jump, port=port, username=username or plain.username, via=via)
        via = hop._replace(also_trusted=settings.host_keys, any_key=bool(agent))
    pinned = plain._replace(
        host_keys=settings.host_keys or area.host_keys,
        pinned_by_server=not settings.host_keys,
        via=via,
    )
    return [pinned._replace(host=host) for host in area.hosts]
