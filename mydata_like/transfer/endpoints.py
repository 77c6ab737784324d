"""How the hosts before the staging area are reached: the server's word and the settings' in one."""

import os
from dataclasses import replace
from pathlib import Path

from mydata_like.core.errors import SettingsError
from mydata_like.core.model import StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.settings.values import parse_jump
from mydata_like.ssh.hosts import known_keys
from mydata_like.ssh.session import Endpoint


def build_endpoints(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> list[Endpoint]:
    """Return how each host before the staging area is reached."""
    plain = Endpoint(
        host="",
        port=area.port,
        username=area.username,
        key_file=key_file,
        known_hosts=known_hosts,
        host_keys=settings.host_keys,
        ciphers=settings.ciphers,
        connect_timeout=settings.connect_timeout,
        stall_timeout=settings.stall_timeout,
        stack=settings.ssh,
        agent=_find_agent() if settings.ssh_agent else "",
    )
    via = _find_way(plain, settings.ssh_jump)
    host_keys = (*area.host_keys, *settings.host_keys)
    return [replace(plain, host=host, host_keys=host_keys, via=via) for host in area.hosts]


def _find_way(plain: Endpoint, jumps: tuple[str, ...]) -> Endpoint | None:
    """Return the last host on the way, which knows the one before it; None without any."""
    via = None
    for text in jumps:
        username, host, port = parse_jump(text)
        hop = replace(plain, host=host, port=port, username=username or plain.username, via=via)
        if plain.host_keys:  # those of the staging host are no reason to distrust a known hop
            known = (key.fingerprint for key in known_keys(hop))
            hop = replace(hop, host_keys=(*plain.host_keys, *known))
        via = replace(hop, any_key=bool(plain.agent))
    return via


def _find_agent() -> str:
    if agent := os.environ.get("SSH_AUTH_SOCK"):
        return agent
    raise SettingsError(
        "transfer.ssh_agent is on, but there is no agent: SSH_AUTH_SOCK is not set.",
        hint="Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.",
        code="ssh.no-agent",
    )
