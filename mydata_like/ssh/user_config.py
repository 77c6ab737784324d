"""How the user's own OpenSSH configuration logs in to a host."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.copy_arguments import HostTarget, parse_target
from mydata_like.core.errors import SettingsError
from mydata_like.settings.values import parse_jump
from mydata_like.ssh.keys import STANDARD_PORT
from mydata_like.ssh.openssh_config import INVALID, HostOptions, HostQuery
from mydata_like.ssh.openssh_known_hosts import HostKeys, load_host_keys

SYSTEM_FOLDER: Final = Path(
    os.environ.get("PROGRAMDATA", "C:/ProgramData") + "/ssh" if os.name == "nt" else "/etc/ssh"
)
_STANDARD_KEYS: Final = ("id_ed25519", "id_ecdsa", "id_rsa")
_NONE: Final = "none"


class Login(NamedTuple):
    """A host, its account, and what may log in to it, as the user's configuration says.

    `key_files` are those that it names, `standard_files` those that OpenSSH tries as well if they
    exist. `agent` is the socket of an agent; its other keys are used unless `identities_only`.
    `known_hosts` is the file in which the user's own OpenSSH stores new keys. `via` is the jump
    host before this one. `notes` are sentences on what was not evaluated.
    """

    host: str
    port: int
    username: str
    key_files: tuple[Path, ...]
    standard_files: tuple[Path, ...]
    agent: str
    identities_only: bool
    host_keys: HostKeys
    known_hosts: Path
    via: "Login | None" = None
    notes: tuple[str, ...] = ()


def find_login(
    target: HostTarget,
    home: Path,
    environment: Mapping[str, str],
    *,
    system_folder: Path = SYSTEM_FOLDER,
) -> Login:
    """Return how to log in to a host, whose name may be an alias in `~/.ssh/config`.

    `LOGNAME` is the user of this computer. No command of the configuration is run. Raises
    `SettingsError` if the configuration is invalid or unreadable, or needs a ProxyCommand, or if
    nothing names the user.
    """
    login = _LoginFinder(home, environment, system_folder).find(target, ())
    assert login is not None  # which only a jump host may be
    return login


class _LoginFinder:
    """Finds the logins of a host and of the jump hosts before it."""

    def __init__(self, home: Path, environment: Mapping[str, str], system_folder: Path) -> None:
        self._home = home
        self._folder = home / ".ssh"
        self._environment = environment
        self._system = system_folder
        self._user = environment.get("LOGNAME", "")

    def find(
        self,
        target: HostTarget,
        behind: tuple[tuple[str, int], ...],
        before: Login | None = None,
    ) -> Login | None:
        """Return the login of a host; `behind` are hosts and ports that are reached through it.

        Its own jump hosts are ignored if it is reached through another one `before` it. It is None
        if it would be its own jump host, as with `ProxyJump` for all hosts.
        """
        query = HostQuery(target.host, target.username, self._user, self._home)
        options = HostOptions(query, [self._folder / "config", self._system / "ssh_config"])
        port = target.port or self._parse_port(options)
        place = (target.host, port)
        if behind and place == behind[-1]:
            return None
        if place in behind:
            circle = ", ".join(host for host, _ in (*behind, place))
            raise _refuse(
                options,
                f"its jump hosts lead in a circle: {circle}",
                "Write `ProxyJump none` for the jump host that is reached directly.",
            )
        if not options.username:
            reason = "it does not name a user, and this account has no name, as in a container"
            raise _refuse(options, reason, f"Name the user: USER@{target.host}.")
        via = before or self._find_jump(options, port, (*behind, place))
        users, others = self._find_known_hosts(options, port)
        agent = self._find_agent(options, port)
        return Login(
            host=_check_host(options),
            port=port,
            username=options.username,
            key_files=self._find_key_files(options, port),
            standard_files=tuple(self._folder / name for name in _STANDARD_KEYS),
            agent=agent,
            identities_only=(options.find("identitiesonly") or "").lower() == "yes",
            host_keys=load_host_keys(
                [*users, *others], options.host, port, options.find("hostkeyalias") or ""
            ),
            known_hosts=users[0] if users else self._folder / "known_hosts",
            via=via,
            notes=(*(via.notes if via else ()), *options.notes),
        )

    def _parse_port(self, options: HostOptions) -> int:
        text = options.find("port") or str(STANDARD_PORT)
        if text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 65_536:
            return int(text)
        raise _refuse(options, f"the port {text} does not exist", "Correct the option Port.")

    def _find_jump(
        self, options: HostOptions, port: int, behind: tuple[tuple[str, int], ...]
    ) -> Login | None:
        """Return the login of the last jump host, which leads to those before it."""
        text = options.find("proxyjump")
        command = options.find_path("proxycommand")
        if text is None and command and command.lower() != _NONE:
            raise _refuse(
                options,
                "it is reached with a ProxyCommand, and mydata-like runs no commands of it",
                "Write ProxyJump instead: `ProxyCommand ssh -W %h:%p GATEWAY` is `ProxyJump "
                "GATEWAY`.",
            )
        if not text or text.lower() == _NONE:
            return None
        found: Login | None = None
        for hop in options.expand(text, port, self._environment).split(","):
            target = self._parse_hop(options, hop.strip())
            found = self.find(target, behind, found)
        return found

    def _parse_hop(self, options: HostOptions, hop: str) -> HostTarget:
        try:
            if hop.startswith("ssh://"):
                target = parse_target(hop, windows=False, home=b"")
                assert isinstance(target, HostTarget)
                return target
            username, host, port = parse_jump(hop)
        except (ValueError, SettingsError) as error:
            raise _refuse(
                options, f"ProxyJump does not name a host: {hop}", "Write USER@HOST:PORT."
            ) from error
        return HostTarget(host, b"", username, port if hop.endswith(f":{port}") else None)

    def _find_key_files(self, options: HostOptions, port: int) -> tuple[Path, ...]:
        names = [name for name in options.identity_files if name.lower() != _NONE]
        return tuple(self._make_path(options, name, port) for name in names)

    def _make_path(self, options: HostOptions, name: str, port: int) -> Path:
        return self._home / options.expand(name, port, self._environment)

    def _find_known_hosts(
        self, options: HostOptions, port: int
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the files of the user, and those of the system."""
        standard = ("known_hosts", "known_hosts2")
        users = options.find_all("userknownhostsfile")
        others = options.find_all("globalknownhostsfile")
        return (
            tuple(self._folder / name for name in standard)
            if users is None
            else tuple(self._make_path(options, name, port) for name in users if name != _NONE),
            tuple(self._system / f"ssh_{name}" for name in standard)
            if others is None
            else tuple(self._make_path(options, name, port) for name in others if name != _NONE),
        )

    def _find_agent(self, options: HostOptions, port: int) -> str:
        """Return the socket of the agent, or nothing; on Windows, agents have no sockets."""
        if sys.platform == "win32":
            return ""
        variable = "SSH_AUTH_SOCK"
        named = options.find_path("identityagent") or variable
        if named.lower() == _NONE:
            return ""
        if named == variable or (named.startswith("$") and not named.startswith("${")):
            return self._environment.get(named.removeprefix("$"), "")
        return str(self._make_path(options, named, port))


def _check_host(options: HostOptions) -> str:
    """Return the name of the host; raises `SettingsError` unless it can be one."""
    host = options.host
    if not host or host.startswith("-") or not host.isprintable() or " " in host:
        raise _refuse(options, "its HostName is not a name", "Correct the option HostName.")
    return host


def _refuse(options: HostOptions, reason: str, hint: str) -> SettingsError:
    return SettingsError(
        f"The SSH configuration of {options.query.host} cannot be used: {reason}.",
        hint=hint,
        code=INVALID,
    )
