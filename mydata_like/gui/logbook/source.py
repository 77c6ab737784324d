"""Reads logs and makes support bundles; what that needs is imported in the thread that does it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from mydata_like.core.log_line import LogLine

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class Follower(Protocol):
    """What reads a log as it grows."""

    def read(self) -> list[LogLine]: ...


class Document(NamedTuple):
    """One file of the support bundle."""

    name: str
    text: str


class Sieve(NamedTuple):
    """Which lines a person wants to see: from a level on, and with a text in them."""

    level: int = 0  # the place in LEVELS
    text: str = ""

    def passes(self, line: LogLine) -> bool:
        """Return whether a line is wanted."""
        if self.level and LEVELS.index(line.level) < self.level:
            return False
        return not self.text or self.text in line.text.lower() or self.text in line.origin.lower()


class Come(NamedTuple):
    """What has come of a log, and what reads on from there."""

    name: str
    follower: Follower
    lines: Sequence[LogLine]


class Sifted(NamedTuple):
    """Lines, and which of them are wanted."""

    lines: Sequence[LogLine]
    sieve: Sieve
    wanted: Sequence[LogLine]


def read(config: Path | None, name: str, most: int, follower: Follower | None) -> Come:
    """Return what has come of a log: all of it where nothing follows it yet."""
    from mydata_like.app import logging_setup

    follower = follower or logging_setup.follow_log(config, name, most)
    return Come(name, follower, follower.read())


def sift(lines: Sequence[LogLine], sieve: Sieve) -> Sifted:
    """Return which lines are wanted."""
    return Sifted(lines, sieve, [line for line in lines if sieve.passes(line)])


def join(lines: Sequence[LogLine]) -> str:
    """Return lines as the log has them."""
    return "\n".join(" ".join(filter(None, line)) if line.at else line.text for line in lines)


def find_folder(config: Path | None) -> Path:
    """Return the folder of the logs."""
    from mydata_like.app import logging_setup

    return logging_setup.find_logs(config)


def collect(config: Path | None, *, names: bool) -> list[Document]:
    """Return all that goes into the support bundle."""
    from mydata_like.app import support_bundle

    return [
        Document(*document) for document in support_bundle.collect_documents(config, names=names)
    ]


def write(file: Path, documents: Sequence[Document]) -> None:
    """Write the support bundle; raises `UploaderError`."""
    from mydata_like.app import support_bundle

    support_bundle.write_bundle(
        file, [support_bundle.BundleDocument(*document) for document in documents]
    )
