"""Tests the parts of an installation one after the other and reports each result.

Each is tried in a process of its own, so that one that crashes is told of like any other.
"""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Final

from mydata_like.hostos.process import find_program
from mydata_like.selftest.checks import PARTS, LeftOut
from mydata_like.state.paths import HOME

_PATIENCE: Final = 180.0  # seconds for one part


def main(words: list[str]) -> int:
    """Try all parts, or the one that is named; the exit code says whether all is well.

    A line of standard output says `ok`, `left out` or `FAILED`, which part, and what was found.
    Nothing of the person's own is read or changed, and nothing leaves the computer.
    """
    if words:
        sys.stdout.write(PARTS[words[0]]() + "\n")
        return 0
    with TemporaryDirectory(prefix="mydata-like-self-test-") as home:
        return max([_try(name, home) for name in PARTS])


def _try(name: str, home: str) -> int:
    command = [*find_program(), "--self-test", name]
    environment = os.environ | {HOME: home, "QT_QPA_PLATFORM": "offscreen"}
    try:
        ended = subprocess.run(  # noqa: S603 - our own program
            command, env=environment, capture_output=True, text=True, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        return _tell("FAILED", name, f"Nothing came of it in {_PATIENCE:.0f} seconds.")
    if ended.returncode == 0:
        return _tell("ok", name, _last_line(ended.stdout))
    complaint = _last_line(ended.stderr) or f"It ended with exit code {ended.returncode}."
    reason = complaint.partition(f"{LeftOut.__name__}: ")[2]
    return _tell("left out", name, reason) if reason else _tell("FAILED", name, complaint)


def _tell(how: str, name: str, said: str) -> int:
    sys.stdout.write(f"{how:8}  {name:9}  {said}\n")
    sys.stdout.flush()
    return int(how == "FAILED")


def _last_line(text: str) -> str:
    """Return the last line that a program said, rather than the loader of its bundle."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("[PYI-")]
    return lines[-1] if lines else ""
