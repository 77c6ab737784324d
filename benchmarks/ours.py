"""Contestants of ours without a server: the transport alone."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arena import CIPHER, Arena
from benchmarks.contest import OURS, Entrant
from benchmarks.measure import ContestError, Sample, measure
from benchmarks.sending import BOX
from mydata_like.transfer.folder.staging_folder import MARKER, StagingFolder

Settings = tuple[
    tuple[str, str | bool | int | tuple[str, ...]], ...
]  # of the section `transfer`, by name

_CHECKS = "MD5 on the way, size"


@dataclass(frozen=True)
class Sending:
    """`StagingTransport` with a number of channels, in a separate process.

    The time starts with the start of the channel workers and ends with the last file checked on the
    host. The start of Python is not included, since `mydata-like run` is measured as a whole. CPU
    and memory are those of the whole process tree. `hog` is the place of a busy thread or process,
    as in `benchmarks.hog`. `settings` are those that differ from the defaults. The target
    may be a mounted folder.
    """

    channels: int
    family: str = OURS
    hog: str = ""
    settings: Settings = ()
    to_folder: bool = False

    @property
    def entrants(self) -> Sequence[Entrant]:
        plural = "" if self.channels == 1 else "s"
        hog = f", a hog {self.hog}" if self.hog else ""
        folder = ", to a folder" if self.to_folder else ""
        name = f"mydata-like, sending alone{folder}, {self.channels} channel{plural}{hog}"
        return [Entrant(name + format_settings(self.settings), self.family, _CHECKS)]

    def prepare(self, arena: Arena) -> None:
        """Do nothing."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        arena.clear()
        folder = StagingFolder(bytes(arena.target), BOX, str(arena.target))
        marker = Path(os.fsdecode(folder.below(MARKER)))
        if self.to_folder:
            marker.write_bytes(folder.marker)
        plan = arena.directory / "plan.json"
        plan.write_text(json.dumps(self._plan(arena)))
        command = [sys.executable, "-m", "benchmarks.sending", str(plan)]
        sample, printed = measure([command], arena.servers)
        result = json.loads(printed[0])
        if result["proven"] != result["files"]:
            raise ContestError(
                f"{result['proven']} of {result['files']} files proven; {result['problem']}"
            )
        marker.unlink(missing_ok=True)
        arena.check_target()
        facts = {"connecting (s)": result["connecting"], "whole process (s)": sample.seconds}
        return [sample._replace(seconds=result["seconds"], facts=facts)]

    def _plan(self, arena: Arena) -> dict[str, object]:
        link = arena.link
        return {
            "host": link.host,
            "port": link.port,
            "username": link.username,
            "key_file": str(link.key_file),
            "known_hosts": str(link.known_hosts),
            "cipher": CIPHER,
            "location": str(arena.target),
            "root": str(arena.corpus.root),
            "list": str(arena.write_list("files", arena.corpus.files)),
            "channels": self.channels,
            "hog": self.hog,
            "settings": dict(self.settings) | self._choose_folder(arena),
        }

    def _choose_folder(self, arena: Arena) -> dict[str, str]:
        return {"method": "folder", "folder": str(arena.target)} if self.to_folder else {}


def format_settings(settings: Settings) -> str:
    """Return settings as a part of a row's name."""
    return "".join(f", {key} {str(value).lower()}" for key, value in settings)
