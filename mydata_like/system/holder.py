"""Who holds a lock, as the lock says it to those who come in vain."""

import hashlib
import json
import os
import secrets
import socket
from datetime import UTC, datetime
from typing import NamedTuple, Self

import psutil

from mydata_like.core.formatting import format_text
from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.core.ports import Clock
from mydata_like.system.machine import read_account, read_system_id

_NAME = 64  # characters of a name that are shown


class Holder(NamedTuple):
    """A process, its account and its computer, and since when it holds the lock.

    `system` is a digest of the id of the computer's system, `born` when the process began, by
    the computer's clock; `nonce` tells two holds of one process apart.
    """

    pid: int
    host: str
    started: datetime
    account: str = ""
    system: str = ""
    born: float = 0.0
    nonce: str = ""

    @classmethod
    def here(cls, clock: Clock) -> Self:
        """Return this process."""
        system = read_system_id()
        return cls(
            os.getpid(),
            socket.gethostname(),
            clock.now(),
            read_account(),
            hashlib.sha256(system.encode()).hexdigest()[:16] if system else "",
            psutil.Process().create_time(),
            secrets.token_hex(8),
        )

    @classmethod
    def parse(cls, text: str | bytes) -> Self | None:
        """Return the holder that a text names; None for what nobody can read."""
        try:
            facts = parse_json(text)
            return cls(
                int(facts["pid"]),
                _shown(facts["host"]),
                parse_moment(facts["started"]),
                _shown(facts.get("account", "")),
                str(facts.get("system", "")),
                float(facts.get("born", 0.0)),
                str(facts.get("nonce", "")),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def format(self) -> str:
        """Return the text that `parse` reads."""
        return json.dumps(self._asdict() | {"started": self.started.isoformat()})

    def describe(self) -> str:
        """Return since when, and as which process of whom and where, this one is at work."""
        account = f"account {self.account}, " if self.account else ""
        since = f"{self.started.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return f" since {since} ({account}process {self.pid} on {self.host})"

    def is_gone(self) -> bool:
        """Return whether this is known to have ended: a process of this computer, that is."""
        system = read_system_id()
        digest = hashlib.sha256(system.encode()).hexdigest()[:16] if system else ""
        if not digest or (self.host, self.system) != (socket.gethostname(), digest):
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.born) > 1.0
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False


def _shown(text: str) -> str:
    return format_text(text[:_NAME])
