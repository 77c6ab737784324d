"""The step `flow` of the rig: the program under Windows with the SSH servers of Linux."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@contextmanager
def openssh() -> Iterator[str]:
    """Run the process that starts OpenSSH's servers for tests; yield its address.

    The program's own environment has what it needs.
    """
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "tests.openssh"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()
