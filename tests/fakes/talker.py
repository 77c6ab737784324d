"""A channel worker that prints, and whose child reads the standard input it inherits."""

import subprocess
import sys

from mydata_like.transfer.worker import work
from tests.fakes import channels

CHILD = "import sys; print('child', flush=True); sys.stdin.read()"


def main() -> None:
    work(connect)


def connect(plan):
    print("worker", flush=True)  # noqa: T201 - that is the point
    subprocess.run([sys.executable, "-c", CHILD], check=True)
    return channels.connect(plan)
