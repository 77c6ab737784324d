"""Keys of an SSH agent, which also signs with FIDO devices and smart cards.

The protocol is draft-ietf-sshm-ssh-agent.
"""

import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Thread
from types import MappingProxyType
from typing import Final

from mydata_like.core.errors import SettingsError
from mydata_like.ssh.keys import PublicKey, split_string
from mydata_like.ssh.sftp_protocol import pack

# The types of keys on FIDO devices: OpenSSH's PROTOCOL.u2f.
FIDO_KEYS: Final = ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")

_FAILURE: Final = 5
_REQUEST_IDENTITIES: Final = 11
_IDENTITIES_REPLY: Final = 12
_SIGN_REQUEST: Final = 13
_SIGN_RESPONSE: Final = 14
_FLAGS: Final[Mapping[str, int]] = MappingProxyType({"rsa-sha2-256": 2, "rsa-sha2-512": 4})
_LARGEST: Final = 256 * 1024  # bytes of a message, the limit of OpenSSH's agent


# Work-around: paramiko 5.1.0 finds an agent by SSH_AUTH_SOCK only, and its agent client fails where
# the comment of any key is not UTF-8. No report known; see test_an_agent_may_hold_the_key.
# Remove when `paramiko.Agent` takes a path and leaves comments as bytes.
class Agent:
    """A connection to an agent; its methods raise OSError if it does not answer in time."""

    def __init__(self, path: str, timeout: float) -> None:
        """Connect; raises `SettingsError` if the agent does not answer."""
        if sys.platform == "win32":
            raise SettingsError(
                "SSH agents cannot be used on Windows.",
                hint="Switch transfer.ssh_agent off, and use a key without a passphrase.",
                code="ssh.no-agent",
            )
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(path)
            self.keys = self._list_keys()
        except OSError as error:
            self._socket.close()
            raise SettingsError(
                f"The SSH agent at {path} does not answer: {error}.",
                hint="Start ssh-agent before mydata-like, or switch transfer.ssh_agent off.",
                code="ssh.no-agent",
            ) from error

    def close(self) -> None:
        """Close the connection; a call that waits for an answer fails."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def sign(self, key: PublicKey, data: bytes, algorithm: str) -> bytes:
        """Return a signature of the data; raises OSError if the agent refuses."""
        flags = struct.pack(">I", _FLAGS.get(algorithm, 0))
        reply = self.request(_SIGN_REQUEST, _SIGN_RESPONSE, pack(key.blob) + pack(data) + flags)
        try:
            return split_string(reply)[0]
        except ValueError as error:
            raise _invalid_reply() from error

    def _list_keys(self) -> tuple[PublicKey, ...]:
        rest = self.request(_REQUEST_IDENTITIES, _IDENTITIES_REPLY)
        try:
            (count,) = struct.unpack_from(">I", rest)
            rest = rest[4:]
            keys = []
            for _ in range(count):
                blob, rest = split_string(rest)
                _comment, rest = split_string(rest)
                keys.append(PublicKey(split_string(blob)[0].decode("ascii"), blob))
        except (ValueError, struct.error) as error:
            raise _invalid_reply() from error
        return tuple(keys)

    def request(self, kind: int, reply_kind: int, body: bytes = b"") -> bytes:
        """Return the body of the reply; raises OSError if it is of another kind."""
        self._socket.sendall(pack(bytes([kind]) + body))
        reply = _receive_message(self._socket)
        if reply[0] != reply_kind:
            raise OSError("the agent refused")
        return reply[1:]


class OneKeyAgent:
    """An agent for libssh with one of the keys of the user's agent, which signs.

    Libssh would offer a host all keys of an agent. It is given the socket `remote`, which it owns
    from then on. `failure` is the reason why signing failed.
    """

    def __init__(self, agent: Agent, key: PublicKey) -> None:
        self.failure = ""
        self._agent = agent
        self._key = key
        self._socket, self.remote = socket.socketpair()
        self._thread = Thread(target=self._serve, name="ssh-agent", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close both connections."""
        self._agent.close()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                self._socket.sendall(pack(self._answer(_receive_message(self._socket))))

    def _answer(self, request: bytes) -> bytes:
        if request[0] == _REQUEST_IDENTITIES:
            only = struct.pack(">I", 1) + pack(self._key.blob) + pack(b"")
            return bytes([_IDENTITIES_REPLY]) + only
        if request.startswith(bytes([_SIGN_REQUEST]) + pack(self._key.blob)):
            try:
                signature = self._agent.request(_SIGN_REQUEST, _SIGN_RESPONSE, request[1:])
            except OSError as error:
                self.failure = str(error)
            else:
                return bytes([_SIGN_RESPONSE]) + signature
        return bytes([_FAILURE])


def _receive_message(connection: socket.socket) -> bytes:
    """Return the type and body of a message; raises OSError if it is invalid or none comes."""
    length = int.from_bytes(_receive(connection, 4), "big")
    if not 0 < length <= _LARGEST:
        raise _invalid_reply()
    return _receive(connection, length)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise OSError("it closed the connection")
        received += more
    return received


def _invalid_reply() -> OSError:
    return OSError("its reply does not follow the agent protocol")
