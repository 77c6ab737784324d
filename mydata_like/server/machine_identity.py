"""The computer that an uploader belongs to, stored as a setting on the server.

The server does not return the facts of an uploader's computer, but it stores settings for each
uploader, of which this is one. An uploader that finds another computer there has a copied
identity. The traits of a computer are stored as digests, which only serve to recognize it.
"""

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple, Self

from mydata_like.core.parsing import parse_json, parse_moment
from mydata_like.server.responses import plain

KEY: Final = "mydata_like_computer"  # of the setting; MyData ignores unknown ones
_ENOUGH: Final = 2  # of three traits: each of them may change over time
_NAME: Final = 64


class MachineIdentity(NamedTuple):
    """A computer, by its name and by digests of its system's id and its network interfaces.

    `system` is empty if unknown; `since` is the day on which the uploader was first used here.
    """

    hostname: str
    system: str
    interfaces: frozenset[str]
    since: str = ""

    @classmethod
    def of(cls, uuid: str, hostname: str, system: str, interfaces: Iterable[str]) -> Self:
        """Return the identity of a computer for an uploader with this uuid."""

        def digest(text: str) -> str:
            return hashlib.sha256(f"{uuid} {text}".encode()).hexdigest()[:16] if text else ""

        return cls(plain(hostname, _NAME), digest(system), frozenset(map(digest, interfaces)))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the computer in a setting; None if it cannot be parsed."""
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
        """Return the setting that assigns the uploader to this computer from now on."""
        return json.dumps(
            {
                "hostname": self.hostname,
                "system": self.system,
                "interfaces": sorted(self.interfaces),
                "since": now.isoformat(timespec="seconds"),
            }
        )

    def is_same(self, other: Self) -> bool:
        """Return whether this is the same computer, possibly with some changed traits."""
        alike = (
            self._has_name_of(other),
            self.system != "" and self.system == other.system,
            bool(self.interfaces & other.interfaces),
        )
        return sum(alike) >= _ENOUGH

    def is_out_of_date(self, now: Self) -> bool:
        """Return whether the same computer has another name or system now.

        Interfaces do not count. They change often, and are the only difference between two copies
        of one disk, which would otherwise overwrite each other's identity at every run.
        """
        return not self._has_name_of(now) or self.system != now.system

    def _has_name_of(self, other: Self) -> bool:
        return self.hostname.casefold() == other.hostname.casefold()
