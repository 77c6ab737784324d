"""A host that hashes for longer than a line may be silent: it goes on, and ends with us."""

import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.ssh import multi_stream
from mydata_like.transfer.ssh.multi_stream import StreamLimit
from mydata_like.transfer.ssh.remote_shell import Shells
from mydata_like.transfer.ssh.single_file import SingleSender
from mydata_like.transfer.temporary_files import part_name
from tests.fakes.place import checksum
from tests.fakes.session import state
from tests.faults.tcpproxy import TcpProxy
from tests.openssh import on_host, python_on_host
from tests.sshd_fixture import endpoint_of, needs_sshd, open_session, sshd_with, with_programs

pytestmark = needs_sshd

MIB = 1 << 20
THERE = 64 * MIB  # of the file, when the line broke
STALL = 2.0  # seconds of silence that end a session; the host hashes for three
BY_ONE = HostCapabilities("shell", checksum=b"md5sum")
BY_SEVERAL = BY_ONE._replace(tar="gnu")  # whose dd writes at any place

SLOW = """
import hashlib, pathlib, sys, threading
found, hashed = hashlib.md5(), 0
while piece := sys.stdin.buffer.read(1 << 20):
    found.update(piece)
    hashed += len(piece)
    threading.Event().wait(3 / 64)
print(found.hexdigest(), " -")
pathlib.Path(sys.argv[1]).write_text(str(hashed))
"""


@pytest.fixture
def hashed(tmp_path):
    """Return where the host notes how many bytes it has hashed in the end."""
    return on_host(tmp_path / "hashed")


@pytest.fixture
def proxy(tmp_path, hashed):
    program = on_host(tmp_path / "slow.py")
    program.write_text(SLOW)
    md5sum = f"{python_on_host()} {program} {hashed}"
    with sshd_with(tmp_path, *with_programs(tmp_path, md5sum=md5sum)) as sshd:
        (tmp_path / "keys").mkdir()
        with TcpProxy(sshd.port, latency=multi_stream.FAR) as proxy:
            proxy.endpoint = endpoint_of(
                sshd, tmp_path / "keys", port=proxy.port, stall_timeout=STALL
            )
            yield proxy


def leave_behind(place, rest):
    """Return a file of which all but the rest is there from an earlier attempt."""
    member = place.write("set/large", 0, os.urandom(MIB) * ((THERE + rest) // MIB))
    place.settle(member)
    part = place.there(member).parent / os.fsdecode(part_name(member))
    part.parent.mkdir(parents=True)
    part.write_bytes(Path(os.fsdecode(member.path)).read_bytes()[:THERE])
    return member


def send(place, member, endpoint, rung, moving):
    with open_session(endpoint) as session, closing(Shells(session)) as shells:
        shells.open()
        sender = SingleSender(shells, state(place.location, rung, limit=StreamLimit(2)))
        return sender.send(0, member, moving)


@pytest.mark.parametrize(("rung", "rest"), [(BY_ONE, MIB), (BY_SEVERAL, multi_stream.LARGE)])
def test_what_a_slow_host_has_of_a_large_file_is_not_sent_again(place, proxy, rung, rest):
    member = leave_behind(place, rest)
    moved = []

    def follow(count: int, omitted: int = 0) -> None:
        moved.append((count, omitted))
        proxy.latency = 0.0 if count else proxy.latency  # it is known by now to be far

    assert send(place, member, proxy.endpoint, rung, follow).checksum == checksum(member)
    assert place.arrived(member)
    assert tuple(map(sum, zip(*moved, strict=True))) == (rest, THERE)
    assert proxy.passed < rest + 2 * MIB


@pytest.mark.parametrize(("rung", "rest"), [(BY_ONE, MIB), (BY_SEVERAL, multi_stream.LARGE)])
def test_a_host_stops_hashing_when_the_client_has_gone(place, proxy, hashed, rung, rest):
    def cut(*_: int) -> None:
        raise TransientError("It is not wanted any more.")

    with pytest.raises(TransientError, match="not wanted"):
        send(place, leave_behind(place, rest), proxy.endpoint, rung, cut)
    while not hashed.exists() or not hashed.read_text():
        threading.Event().wait(0.02)
    assert int(hashed.read_text()) < THERE
