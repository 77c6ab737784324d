"""A channel worker that prints, and whose child reads the standard input it inherits."""

import subprocess

from mydata_like.transfer.worker import work
from tests.fakes import channels


def main() -> None:
    work(connect)


def connect(plan):
    print("worker", flush=True)  # noqa: T201 - that is the point
    subprocess.run(["sh", "-c", "echo child; cat"], check=True)
    return channels.connect(plan)
