"""Shows whether changed packets are refused: for each cipher, direction, library and situation.

`python -m tests.trials.tamper` prints a table. Each cell has the number of refused and of made
changes. In each case one bit of one packet after the key exchange is changed on the way, at another
place each time. Refused means an error or a stall that was noticed, and never data: neither the
reply nor anything after it on this connection.
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Final

from mydata_like.core.errors import UploaderError
from mydata_like.selftest.tampering import TamperingProxy
from mydata_like.settings.values import CIPHERS
from mydata_like.ssh.capabilities import build_scp, probe, quote
from mydata_like.ssh.connect import connect
from mydata_like.ssh.libssh_version import checks_gcm
from mydata_like.ssh.session import Endpoint, OpenSession
from tests.sshd_fixture import STACKS, endpoint_of, sshd_with

GCM: Final = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
WITHOUT_ETM: Final = "aes128-ctr without etm"
ALL_CIPHERS: Final = (*CIPHERS, WITHOUT_ETM)
DIRECTIONS: Final = {"to the host": False, "from the host": True}
PLACES: Final = (0, 3, 4, 5, 17, 31, 44, 60, 77, 96)  # bytes of an exchange before the changed one
_STALL: Final = 2.0  # seconds
_CONTENT: Final = b"content " * 500
_CHECKSUM: Final = md5(_CONTENT, usedforsecurity=False).hexdigest().encode() + b"  -\n"


class Hosts:
    """Servers for the ciphers, and a folder with a file on them; a context manager."""

    def __init__(self, folder: Path) -> None:
        self.location = os.fsencode(folder / "staging")
        self.file = os.fsencode(folder / "staging" / "file")
        self._folder = folder
        self._open = ExitStack()
        self._endpoints: dict[bool, Endpoint] = {}  # by whether MACs are of the plain text

    def __enter__(self) -> "Hosts":
        (self._folder / "staging").mkdir()
        (self._folder / "staging" / "file").write_bytes(_CONTENT)
        for plain, options in {False: (), True: ("MACs hmac-sha2-256,hmac-sha2-512",)}.items():
            folder = self._folder / f"host {plain}"
            (folder / "keys").mkdir(parents=True)
            sshd = self._open.enter_context(sshd_with(folder, *options))
            self._endpoints[plain] = endpoint_of(sshd, folder / "keys", stall_timeout=_STALL)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def find(self, cipher: str, stack: str) -> Endpoint:
        """Return the endpoint of a host, with this cipher in both directions if that is allowed."""
        name = cipher.partition(" ")[0]
        inward = CIPHERS if stack == "libssh" and name in GCM else (name,)
        found = self._endpoints[cipher == WITHOUT_ETM]
        return found._replace(ciphers=(name,), inward=inward, stack=stack)


def _log_in(session: OpenSession, hosts: Hosts) -> bool:
    return session.run(b"echo in").output == b"in\n"


def _ask_checksum(session: OpenSession, hosts: Hosts) -> bool:
    return session.run(b"md5sum < " + quote(hosts.file)) == (0, _CHECKSUM, b"")


def _read_by_sftp(session: OpenSession, hosts: Hosts) -> bool:
    return session.open_sftp().read_file(hosts.file) == _CONTENT


def _write_by_scp(session: OpenSession, hosts: Hosts) -> bool:
    stream = session.start(build_scp(hosts.location))
    answers = [stream.read(1)]
    for part in (b"C0660 %d sent\n" % len(_CONTENT), _CONTENT + b"\0"):
        stream.write(part)
        answers.append(stream.read(1))
    return answers == [b"\0"] * 3 and stream.finish().status == 0


def _probe(session: OpenSession, hosts: Hosts) -> bool:
    return probe(lambda: session, hosts.location)[1].access == "shell"


# What is done while a packet is changed; each returns whether the answers are the right ones.
SITUATIONS: Final[dict[str, Callable[[OpenSession, Hosts], bool]]] = {
    "login": _log_in,
    "probe": _probe,
    "checksum": _ask_checksum,
    "SFTP": _read_by_sftp,
    "scp": _write_by_scp,
}


def is_used(cipher: str, stack: str, *, inward: bool) -> bool:
    """Return whether a library has the cipher, and we let it use it in this direction."""
    if stack == "paramiko":
        return not cipher.startswith("chacha20")
    return not (inward and cipher in GCM) or checks_gcm()


def tamper(
    endpoint: Endpoint, hosts: Hosts, situation: str, *, inward: bool, after: int, bit: int = 0
) -> bool:
    """Change a bit in a situation; return whether the changed packet was accepted.

    Then the connection still works. What is received without an error must be right in any case.
    """
    with TamperingProxy(endpoint.port) as proxy:
        flip = partial(proxy.flip, inward=inward, after=after, bit=bit)
        if situation == "login":
            flip()
        session = None
        try:
            session = connect(endpoint._replace(port=proxy.port))
            if situation != "login":
                flip()
            right = SITUATIONS[situation](session, hosts)
        except UploaderError:
            right = True
        try:
            alive = session is not None and _log_in(session, hosts)
        except UploaderError:
            alive = False
        finally:
            if session is not None:
                session.close()
        if not proxy.changed.is_set():
            raise RuntimeError(f"Byte {after} was not reached: {situation}.")
        return alive or not right


def _fill_cell(hosts: Hosts, cipher: str, stack: str, direction: str) -> str:
    inward = DIRECTIONS[direction]
    if not is_used(cipher, stack, inward=inward):
        return "not used"
    endpoint = hosts.find(cipher, stack)
    changes = [(situation, place) for situation in SITUATIONS for place in PLACES]
    accepted = sum(
        tamper(endpoint, hosts, situation, inward=inward, after=place, bit=place % 8)
        for situation, place in changes
    )
    return f"{accepted} ACCEPTED" if accepted else f"refused: {len(changes)} of {len(changes)}"


def main() -> int:
    """Print the table; return 1 if a change was accepted."""
    rows = [f"| cipher | direction | {' | '.join(STACKS)} |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder, Hosts(Path(folder)) as hosts:
        for cipher in ALL_CIPHERS:
            for direction in DIRECTIONS:
                cells = [_fill_cell(hosts, cipher, stack, direction) for stack in STACKS]
                rows.append(f"| {cipher} | {direction} | {' | '.join(cells)} |")
                sys.stderr.write(rows[-1] + "\n")
    table = "\n".join(rows)
    refused = sum(map(int, re.findall(r"refused: (\d+)", table)))
    accepted = sum(map(int, re.findall(r"(\d+) ACCEPTED", table)))
    sys.stdout.write(f"{table}\n{refused} changed packets refused, {accepted} accepted\n")
    return int(accepted > 0)


if __name__ == "__main__":
    sys.exit(main())
