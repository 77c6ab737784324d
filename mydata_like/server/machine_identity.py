"""The computer that an uploader belongs to, as the server remembers it for us.

The server shows nothing of what it is told of an uploader's computer, but it keeps settings for
each uploader, of which one is ours. Whoever finds another computer there uses a copied identity.
Traits of a computer are kept as digests: enough to know it again, and of no other use.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple, Self

from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.server.responses import plain

KEY: Final = "mydata_like_computer"  # of the setting; MyData ignores what it does not know
_ENOUGH: Final = 2  # of three traits: each of them may change in the life of a computer
_NAME: Final = 64


class MachineIdentity(NamedTuple):
    """A computer by its name and by digests of its system's id and its network interfaces.

    `system` is empty where it is unknown; `since` is the day on which the uploader came here.
    """

    hostname: str
    system: str
    interfaces: frozenset[str]
    since: str = ""

    @classmethod
    def of(cls, uuid: str, hostname: str, system: str, interfaces: Iterable[str]) -> Self:
        """Return what is remembered of a computer with an uploader of this uuid."""

        def digest(text: str) -> str:
            return hashlib.sha256(f"{uuid} {text}".encode()).hexdigest()[:16] if text else ""

        return cls(plain(hostname, _NAME), digest(system), frozenset(map(digest, interfaces)))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the computer that a setting names; None for what nobody can read."""
        try:
            found = parse_json(text)
            return cls(
                plain(found["hostname"], _NAME),
                str(found["system"]),
                frozenset(map(str, found["interfaces"])),
                parse_moment(found["since"]).date().isoformat(),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def format(self, now: datetime) -> str:
        """Return the setting that says that the uploader is here from now on."""
        return json.dumps(
            {
                "hostname": self.hostname,
                "system": self.system,
                "interfaces": sorted(self.interfaces),
                "since": now.isoformat(timespec="seconds"),
            }
        )

    def is_same(self, other: Self) -> bool:
        """Return whether this is the same computer, though it may have been altered."""
        alike = (
            self._has_name_of(other),
            self.system != "" and self.system == other.system,
            bool(self.interfaces & other.interfaces),
        )
        return sum(alike) >= _ENOUGH

    def is_out_of_date(self, now: Self) -> bool:
        """Return whether the same computer has another name or system now.

        Interfaces come and go, and are all that tells two copies of one disk apart: they do
        not count, or such copies would take the seat from each other at every run.
        """
        return not self._has_name_of(now) or self.system != now.system

    def _has_name_of(self, other: Self) -> bool:
        return self.hostname.casefold() == other.hostname.casefold()
