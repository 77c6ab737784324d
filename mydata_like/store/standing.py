"""How this installation stands with one server, remembered in a small file of the state.

Losing it costs one request: the server is told about us once more.
"""

import json
import logging
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

from mydata_like.core.errors import Problem, SettingsError
from mydata_like.core.parsing import parse_moment
from mydata_like.core.values import dataclass
from mydata_like.settings.loading import load_json
from mydata_like.settings.writing import write_private

logger = logging.getLogger(__name__)


class Awaited(NamedTuple):
    """An approval that is waited for: of which key, since when, and what keeps it out."""

    fingerprint: str
    since: datetime
    problem: Problem

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "fingerprint": self.fingerprint,
            "since": self.since.isoformat(),
            "problem": self.problem._asdict(),
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """What the server was told of us last (its digest) and when; who lets us in; who does not.

    `let_in` names the key and the hosts that a channel was last opened to with it.
    """

    told: str = ""
    told_at: datetime | None = None
    awaited: Awaited | None = None
    let_in: str = ""

    @classmethod
    def load(cls, file: Path) -> Self:
        """Return what is remembered; a missing or damaged file remembers nothing."""
        try:
            return cls._of(load_json(file))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            logger.warning("%s cannot be read: %s", file, error)
            return cls()

    def save(self, file: Path) -> None:
        """Remember this; a disk that does not take it is no reason to stop."""
        try:
            write_private(file, json.dumps(self._as_record()).encode())
        except SettingsError as error:
            logger.warning("%s", error)

    @classmethod
    def _of(cls, record: dict[str, Any]) -> Self:
        told_at, awaited = record["told_at"], record["awaited"]
        return cls(
            str(record["told"]),
            parse_moment(told_at) if told_at else None,
            _awaited(awaited) if awaited else None,
            str(record.get("let_in", "")),
        )

    def _as_record(self) -> dict[str, object]:
        return {
            "told": self.told,
            "told_at": self.told_at.isoformat() if self.told_at else None,
            "awaited": self.awaited and self.awaited.as_record(),
            "let_in": self.let_in,
        }


def _awaited(record: dict[str, Any]) -> Awaited:
    problem = Problem(**{name: str(value) for name, value in record["problem"].items()})
    return Awaited(str(record["fingerprint"]), parse_moment(record["since"]), problem)
