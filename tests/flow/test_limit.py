"""Whole runs, each with one thing that is far too slow: the run says which."""

import pytest

from mydata_like.core.events import StagesMeasured
from mydata_like.demo.middleware import Delay, Fault
from tests.invariants import check_carried
from tests.openssh import on_host, python_on_host
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd, script

pytestmark = [pytest.mark.e2e, needs_sshd]

# What a command is given, it gets in pieces of 64 KiB, eight a second.
SLOW_DISK = """
import os, subprocess, sys, time
shell = ["/bin/sh", "-c", os.environ["SSH_ORIGINAL_COMMAND"]]
command = subprocess.Popen(shell, stdin=subprocess.PIPE, bufsize=0)
while piece := os.read(0, 65536):
    time.sleep(0.125 * len(piece) / 65536)
    command.stdin.write(piece)
command.stdin.close()
sys.exit(command.wait())
"""


@pytest.fixture
def open_ours(tmp_path):
    folder = tmp_path / "site"
    make_data(folder, tiny_files=4, large=600_000)
    return lambda *options: open_site(folder, options=options)


def slow_disk(folder):
    """Return options of a staging host that writes slowly."""
    program = on_host(folder / "slow.py")
    program.write_text(SLOW_DISK)
    slow = script(folder / "slow", f"exec {python_on_host()} {program}")
    return (f"ForceCommand {slow}",)


def named(carried):
    """Return the stages and limits that were told during a run."""
    return {(told.stage, told.limit) for told in carried.of_kind(StagesMeasured)}


def test_a_bandwidth_that_is_set(open_ours):
    with open_ours() as site:
        carried = site.carry("limits.bandwidth=1")
        check_carried(site, carried)

    assert carried.sums.limit == "bandwidth"
    assert ("send", "bandwidth") in named(carried)


def test_a_staging_host_that_writes_slowly(open_ours, tmp_path):
    with open_ours(*slow_disk(tmp_path)) as site:
        carried = site.carry("transfer.compression=never")
        check_carried(site, carried)

    assert carried.sums.limit == "server"
    assert ("send", "server") in named(carried)


def test_a_server_that_registers_slowly(open_ours):
    with open_ours() as site:
        site.server.faults.add(
            Fault(action=Delay(0.4), method="PATCH", path="dataset_file", count=100)
        )
        carried = site.carry("advanced.register_requests=1", "advanced.register_batch=5")
        check_carried(site, carried)

    assert carried.sums.limit == "API"
    assert ("register", "API") in named(carried)


def test_a_server_that_verifies_late(open_ours):
    with open_ours() as site:
        site.server.hold_verification()
        carried = site.carry("advanced.verify_patience=2")

    assert carried.sums.limit == "verification"
