"""Several hosts before one staging area: channels share them, and one that dies is replaced."""

import sys
from functools import partial

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import SentFile
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.keys import create_key
from mydata_like.transfer.pool import StagingTransport
from mydata_like.transfer.ssh.endpoints import build_hosts
from tests.fakes.place import checksum
from tests.openssh import open_ssh
from tests.privileges import needs_two_processors
from tests.sshd_fixture import needs_sshd
from tests.staging import single

pytestmark = [
    needs_sshd,
    pytest.mark.skipif(sys.platform == "darwin", reason="needs 127.0.0.2"),
]
HOSTS = ("127.0.0.1", "127.0.0.2")


@pytest.fixture
def twins(tmp_path):
    """Two SSH servers on one port of two addresses."""
    first = open_ssh(tmp_path / "first", host=HOSTS[0])
    with first, open_ssh(tmp_path / "second", host=HOSTS[1], port=first.port) as second:
        yield first, second


@pytest.fixture
def events():
    return []


@pytest.fixture
def transport(tmp_path, place, twins, events):
    key = create_key(tmp_path / "key")
    for sshd in twins:
        sshd.authorize(key.public)
    place.location.mkdir()
    area = StagingArea(
        box="box",
        location=str(place.location),
        username=twins[0].username,
        hosts=HOSTS,
        port=twins[0].port,
        host_keys=tuple(sshd.fingerprint for sshd in twins),
    )
    transport = StagingTransport(
        area,
        Transfer(),
        build=partial(
            build_hosts, settings=Transfer(), key_file=key.path, known_hosts=tmp_path / "none"
        ),
        emit=events.append,
    )
    yield transport
    transport.close()


def changes(events):
    kept = [event for event in events if isinstance(event, ChannelChanged)]
    return [(event.state, event.host) for event in kept]


@needs_two_processors
def test_a_host_that_is_killed_in_the_middle_is_replaced_by_the_other(
    place, twins, events, transport
):
    member = place.write("a/large", 40 << 20)
    small = place.write("a/small", 1000)
    place.settle(member, small)
    channels = [transport.open_channel() for _ in range(2)]

    def kill(moved: int, _: int = 0) -> None:
        if moved:
            twins[0].stop()

    channels[0].limit(8 << 20)  # so that some is left to be sent when the host is gone
    with pytest.raises(TransientError):
        channels[0].send(single(member), kill)
    channels[0].limit(0)
    assert channels[0].send(single(member), lambda *_: None) == [SentFile(0, checksum(member))]
    assert channels[1].send(single(small), lambda *_: None) == [SentFile(0, checksum(small))]

    assert place.arrived(member)
    assert place.arrived(small)
    first, second = HOSTS
    assert changes(events) == [("open", first), ("open", second), ("lost", first), ("open", second)]


def test_a_host_that_does_not_know_our_key_is_passed_over(place, twins, events, transport):
    member = place.write("a/small", 1000)
    place.settle(member)
    twins[0].forbid_all()

    channel = transport.open_channel()

    assert channel.send(single(member), lambda *_: None) == [SentFile(0, checksum(member))]
    assert changes(events) == [("open", HOSTS[1])]
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.problem.code == "ssh.key-refused"
    assert place.arrived(member)
