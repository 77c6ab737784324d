"""A host that hashes for longer than a line may be silent: what has arrived is gone on with."""

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mydata_like.ssh.remote import Rung
from mydata_like.transfer import crew
from mydata_like.transfer.crew import Room
from mydata_like.transfer.sealed import part_name
from mydata_like.transfer.shell import Shells
from mydata_like.transfer.single import SingleSender
from tests.fakes.place import checksum
from tests.faults.tcpproxy import TcpProxy
from tests.sshd_fixture import endpoint_of, needs_sshd, open_session, sshd_with, with_programs

pytestmark = needs_sshd

MIB = 1 << 20
THERE = 64 * MIB  # of the file, when the line broke
STALL = 2.0  # seconds of silence that end a session; the host hashes for three
BY_ONE = Rung("shell", checksum=b"md5sum")
BY_SEVERAL = BY_ONE._replace(tar="gnu")  # whose dd writes at any place

SLOW = """
import hashlib, sys, threading
found = hashlib.md5()
while piece := sys.stdin.buffer.read(1 << 20):
    found.update(piece)
    threading.Event().wait(3 / 64)
print(found.hexdigest(), " -")
"""


@pytest.fixture
def sshd(tmp_path):
    program = tmp_path / "slow.py"
    program.write_text(SLOW)
    with sshd_with(tmp_path, *with_programs(tmp_path, md5sum=f"{sys.executable} {program}")) as it:
        yield it


@pytest.mark.parametrize(("rung", "rest"), [(BY_ONE, MIB), (BY_SEVERAL, crew.LARGE)])
def test_what_a_slow_host_has_of_a_large_file_is_not_sent_again(place, sshd, tmp_path, rung, rest):
    member = place.write("set/large", 0, os.urandom(MIB) * ((THERE + rest) // MIB))
    place.settle(member)
    part = place.there(member).parent / os.fsdecode(part_name(member))
    part.parent.mkdir(parents=True)
    part.write_bytes(Path(os.fsdecode(member.path)).read_bytes()[:THERE])
    (tmp_path / "keys").mkdir()
    moved = []
    with TcpProxy(sshd.port, latency=crew.FAR) as proxy:

        def follow(count: int) -> None:
            moved.append(count)
            proxy.latency = 0.0 if count else proxy.latency  # it is known by now to be far

        endpoint = endpoint_of(sshd, tmp_path / "keys", port=proxy.port, stall_timeout=STALL)
        with open_session(endpoint) as session, closing(Shells(session)) as shells:
            shells.open()
            sender = SingleSender(shells, os.fsencode(place.location), rung, Room(2))
            assert sender.send(0, member, follow).checksum == checksum(member)
        assert proxy.passed < rest + 2 * MIB
    assert place.arrived(member)
    assert sum(moved) == member.size
