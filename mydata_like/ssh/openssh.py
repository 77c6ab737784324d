"""The system's `ssh`: where it is, how it is started, and what it means by what it says.

It reads nobody's configuration, asks nothing, forwards nothing and knows one host key: the one
that our own check has vouched for. Its files lie in a directory of ours in which it is started,
so that no path of a person's computer has to survive ssh's rules of quoting.
"""

import os
import re
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from math import ceil
from pathlib import Path
from typing import Final

from mydata_like.core.errors import (
    AccessDeniedError,
    HostKeyError,
    SettingsError,
    UploaderError,
)
from mydata_like.core.format import format_path
from mydata_like.ssh import links
from mydata_like.ssh.algorithms import CIPHERS, HOST_KEYS, KEY_EXCHANGES, MACS, signatures
from mydata_like.ssh.hosts import CHANGED
from mydata_like.ssh.keys import PublicKey
from mydata_like.ssh.session import Endpoint

_ALIAS: Final = "staging"  # what the host is called in the file of known hosts
_ON_DEVICES: Final = ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")
_QUESTION: Final = 10.0  # seconds for ssh to tell what it can
_LONG: Final = 3600.0  # seconds after which no login is still under way
_GLANCE: Final = 0.1  # seconds for a socket to answer
_NOWHERE: Final = re.compile(r" (by|with) UNKNOWN port \d+")  # how ssh calls our connection
_SAYING: Final = 200  # characters of what ssh said that are passed on
_OPTIONS: Final = {
    "BatchMode": "yes",
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": os.devnull,
    "HostKeyAlias": _ALIAS,
    "CheckHostIP": "no",
    "UpdateHostKeys": "no",
    "VerifyHostKeyDNS": "no",
    "PreferredAuthentications": "publickey",
    "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "RequestTTY": "no",
    "EscapeChar": "none",
    "PermitLocalCommand": "no",
    "Compression": "no",
    "ControlMaster": "yes",
    "ControlPersist": "no",
    # The connection is ours already: its two directions are ssh's standard input and output.
    "ProxyCommand": "-",
    "LogLevel": "DEBUG1",  # tells when we are let in, and by which cipher
}


class Files:
    """What one ssh finds in the directory that it is started in: three names, nobody else's.

    They are short, since a socket's path may have some hundred bytes. When we are killed, ssh
    ends and takes its control socket along; where both are killed, a later login sweeps up.
    """

    def __init__(self, endpoint: Endpoint, host_key: PublicKey) -> None:
        self.directory = _ensure_place()
        token = secrets.token_hex(8)
        self.key = self.directory / f"{token}.key"
        self.known_hosts = self.directory / f"{token}.hosts"
        self.control = self.directory / token
        self.known_hosts.write_text(f"{_ALIAS} {host_key.line()}\n", encoding="ascii")
        self.key.symlink_to(endpoint.key_file.absolute())

    def remove(self, *, but_control: bool = False) -> None:
        """Remove what ssh needs no more: all but the control socket once it is logged in."""
        for path in (self.key, self.known_hosts, *(() if but_control else (self.control,))):
            path.unlink(missing_ok=True)


def build_command(endpoint: Endpoint, files: Files, host_key: PublicKey) -> list[str]:
    """Return the words that make ssh log in and wait for what it is asked to do."""
    ssh = find_ssh()
    chosen = _OPTIONS | {
        "UserKnownHostsFile": files.known_hosts.name,
        "ControlPath": files.control.name,
        "HostKeyAlgorithms": ",".join(signatures(host_key.type)),
        "Ciphers": _offer(ssh, "cipher", endpoint.ciphers or CIPHERS),
        "KexAlgorithms": _offer(ssh, "kex", KEY_EXCHANGES),
        "MACs": _offer(ssh, "mac", MACS),
        "PubkeyAcceptedKeyTypes": _offer(ssh, "key-sig", HOST_KEYS + _ON_DEVICES),
        "IdentityAgent": "SSH_AUTH_SOCK" if endpoint.agent else "none",
        "IdentitiesOnly": "no" if endpoint.any_key else "yes",
        # Longer than a stall may last, whose witness it would be otherwise: this is for a
        # connection that nobody waits for any more.
        "ServerAliveInterval": str(ceil(2 * endpoint.stall_timeout)),
        "ServerAliveCountMax": "1",
    }
    options = [word for name, value in chosen.items() for word in ("-o", f"{name}={value}")]
    where = ["-l", endpoint.username, "-p", str(endpoint.port), "--", endpoint.host]
    return [ssh, "-F", "none", "-N", "-T", "-i", files.key.name, *options, *where]


def build_environment(endpoint: Endpoint) -> dict[str, str]:
    """Return the few variables that ssh is given: nothing that could make it ask a person."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    return environment | ({"SSH_AUTH_SOCK": endpoint.agent} if endpoint.agent else {})


def find_ssh() -> str:
    """Return the path of ssh; raises `SettingsError` where it is missing or of no use to us."""
    if sys.platform == "win32":
        raise SettingsError(
            "OpenSSH on Windows cannot share one connection, as uploads need.",
            hint="Set transfer.ssh to auto, and transfer.ssh_jump to nothing.",
            code="ssh.no-sharing",
        )
    if found := shutil.which("ssh"):
        return found
    raise SettingsError(
        "The program ssh is not installed here.",
        hint="Install OpenSSH's client, or set transfer.ssh to auto without transfer.ssh_jump.",
        code="ssh.no-openssh",
    )


def explain(endpoint: Endpoint, said: Iterable[str]) -> UploaderError:
    """Return the error of a connection that did not come about, from what ssh has said."""
    lines = list(said)
    text = " ".join(lines)
    last = reason(lines)
    if "agent refused" in text or "signing failed" in text:
        return AccessDeniedError(
            f"The uploader's key for {endpoint.host} cannot be used: {last}.",
            hint="The agent or the device that holds the key did not sign.",
            code="ssh.key-refused",
        )
    if "Permission denied" in text or "Too many authentication failures" in text:
        return links.key_refused(endpoint)
    if "Host key verification failed" in text:
        return HostKeyError(
            f"{endpoint.host}, port {endpoint.port}, showed two different keys, one shortly after "
            "the other.",
            hint="Ask your facility whether several hosts share this name. Nothing was sent.",
            code=CHANGED,
        )
    if "Unable to negotiate" in text:
        return links.disagreed(endpoint, last)
    return links.refused(endpoint, last)


def not_started(error: Exception) -> SettingsError:
    """Return the error of an ssh that this computer does not start."""
    return SettingsError(
        f"The program ssh cannot be started: {error}.",
        hint="Check the installation of OpenSSH, and the room in the folder for temporary files.",
        code="ssh.not-started",
    )


def reason(said: Iterable[str]) -> str:
    """Return the last thing that ssh has said, fit for a message."""
    words = [line.strip() for line in said if not line.startswith("debug1:")]
    last = _NOWHERE.sub("", next((line for line in reversed(words) if line), ""))
    return format_path(last.encode())[:_SAYING].rstrip(".") or "it ended the connection"


def _offer(ssh: str, kind: str, wanted: Iterable[str]) -> str:
    """Return those of the wanted algorithms that this ssh has; it stops at unknown ones."""
    known = _query(ssh, kind)
    return ",".join(name for name in wanted if name in known or not known)


def _ensure_place() -> Path:
    """Return a directory with a short path that is ours alone."""
    place = Path(tempfile.gettempdir()) / f"mydata-ssh-{os.geteuid()}"
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if private and found.st_uid == os.geteuid():
        _sweep(place)
        return place
    return Path(tempfile.mkdtemp(prefix="mydata-ssh-"))  # somebody has taken the name


def _sweep(place: Path) -> None:
    """Remove what killed processes have left long ago; a socket that answers is in use."""
    for path in place.iterdir():
        with suppress(OSError):
            old = time.time() - path.lstat().st_mtime > _LONG
            if old and (path.suffix or not _answers(path)):
                path.unlink()


def _answers(control: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(_GLANCE)
        return caller.connect_ex(str(control)) == 0


@cache
def _query(ssh: str, kind: str) -> frozenset[str]:
    """Return the algorithms of a kind that ssh has; none where it does not tell."""
    told = subprocess.run(  # noqa: S603 - a program of the system and fixed words
        [ssh, "-Q", kind], capture_output=True, text=True, timeout=_QUESTION, check=False
    )
    return frozenset(told.stdout.split())
