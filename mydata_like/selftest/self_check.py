"""Runs the checks of the self-test one after the other, and reports each.

Each check runs in its own process, so that a crash is reported like any other failure.
"""

import os
import subprocess
import sys
from tempfile import TemporaryDirectory
from typing import Final

from mydata_like.hostos.process import find_program
from mydata_like.selftest.checks import PARTS, LeftOut
from mydata_like.state.paths import HOME

_TIMEOUT: Final = 180.0  # seconds for one part


def main(words: list[str]) -> int:
    """Check all parts, or the named one; return exit code 0 if all checks pass.

    Each line of standard output has `ok`, `left out` or `FAILED`, the part, and what was found.
    No user data is read or changed, and nothing is sent over the network.
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
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return _report("FAILED", name, f"It did not finish within {_TIMEOUT:.0f} seconds.")
    if ended.returncode == 0:
        return _report("ok", name, _last_line(ended.stdout))
    complaint = _last_line(ended.stderr) or f"It ended with exit code {ended.returncode}."
    reason = complaint.partition(f"{LeftOut.__name__}: ")[2]
    return _report("left out", name, reason) if reason else _report("FAILED", name, complaint)


def _report(how: str, name: str, text: str) -> int:
    sys.stdout.write(f"{how:8}  {name:9}  {text}\n")
    sys.stdout.flush()
    return int(how == "FAILED")


def _last_line(text: str) -> str:
    """Return the last line of a program's output, ignoring its bundle's loader."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("[PYI-")]
    return lines[-1] if lines else ""
