"""How the hosts before the staging area are reached: the server's word and the settings' in one."""

import os
from pathlib import Path

from mydata_like.core.errors import SettingsError
from mydata_like.core.model import StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.settings.values import parse_jump
from mydata_like.ssh.session import Endpoint


def build_endpoints(
    area: StagingArea, settings: Transfer, *, key_file: Path, known_hosts: Path
) -> list[Endpoint]:
    """Return how each host before the staging area is reached.

    Where host keys are pinned here, the server's word on them does not count: an attacker
    who controls the server must not be able to add one.
    """
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
        agent=_find_agent() if settings.ssh_agent else "",
    )
    via = _find_way(plain, settings.ssh_jump, settings.host_keys)
    host_keys = settings.host_keys or area.host_keys
    return [plain._replace(host=host, host_keys=host_keys, via=via) for host in area.hosts]


def _find_way(plain: Endpoint, jumps: tuple[str, ...], trusted: tuple[str, ...]) -> Endpoint | None:
    """Return the last host on the way, which knows the one before it; None without any."""
    via = None
    for text in jumps:
        username, host, port = parse_jump(text)
        hop = plain._replace(host=host, port=port, username=username or plain.username, via=via)
        via = hop._replace(also_trusted=trusted, any_key=bool(plain.agent))
    return via


def _find_agent() -> str:
    if agent := os.environ.get("SSH_AUTH_SOCK"):
        return agent
    raise SettingsError(
        "transfer.ssh_agent is on, but there is no agent: SSH_AUTH_SOCK is not set.",
        hint="Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.",
        code="ssh.no-agent",
    )
