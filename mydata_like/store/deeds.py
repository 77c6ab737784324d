"""A log that stays: every local file that was deleted to free space, one JSON document a line."""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mydata_like.core.errors import Problem, RunError
from mydata_like.core.format import format_path
from mydata_like.core.freeing import Freed
from mydata_like.core.parsing import LONGEST_FILE, parse_json
from mydata_like.core.ports import Clock
from mydata_like.settings.writing import make_private_file, require_plain

NAME: Final = "freed.jsonl"


def load_freed(file: Path) -> frozenset[tuple[str, str]]:
    """Return path and checksum of every file that was deleted; a line that is none is left out.

    Raises `RunError` where the log is there and cannot be read.
    """
    freed: dict[str, str] = {}
    require_plain(file)
    try:
        with file.open("rb") as log:
            while line := log.readline(LONGEST_FILE):
                if line.startswith(b"{"):
                    _follow(line, freed)
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise RunError(
            f"The log of deletions {file} cannot be read: {error.strerror or error}.",
            hint="Check its permissions.",
            code="free.no-log",
        ) from error
    return frozenset(freed.items())


def _follow(line: bytes, freed: dict[str, str]) -> None:
    """Add what a line says was deleted; take out what it says is still there."""
    try:
        record = parse_json(line)
        if record["deleted"]:
            freed[record["path"]] = record["md5"]
        else:
            freed.pop(record["path"], None)
    except (ValueError, TypeError, KeyError):  # the last line of a disk that was full
        return


class DeedsFile:
    """Appends to the file; what is noted is there before the deletion that it tells of.

    Raises `RunError` where the disk takes nothing: then nothing may be deleted.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._clock = clock
        self._path = file
        try:
            make_private_file(file)
            self._file = file.open("ab")
        except OSError as error:
            raise self._failed(error) from error

    def note(self, freed: Freed) -> None:
        """Keep that a file is about to be deleted, and where its bytes are."""
        entry = freed.entry
        self._write(
            freed,
            size=freed.size,
            md5=entry.checksum,
            dataset=entry.dataset,
            datafile=freed.datafile,
            archive=entry.archive or None,
            deleted=True,
        )

    def take_back(self, freed: Freed, problem: Problem) -> None:
        """Keep that a file which was noted is still there."""
        self._write(freed, deleted=False, problem=problem.code)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, freed: Freed, **facts: object) -> None:
        record = {"at": self._clock.now().isoformat(), "path": format_path(freed.key), **facts}
        try:
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> RunError:
        return RunError(
            f"The log of deletions {self._path} cannot be written: {error.strerror or error}.",
            hint="Nothing was deleted. Check that the disk is not full, and its permissions.",
            code="free.no-log",
        )
