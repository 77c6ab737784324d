"""A limited bandwidth over a real SSH server, on every rung: not faster, and freed at once."""

import threading
import time

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.core.model import Payload
from mydata_like.core.ports import SentFile
from tests.fakes.place import checksum
from tests.sshd_fixture import needs_sshd
from tests.staging import Staging, single, wanted

pytestmark = needs_sshd

MB = 1_000_000
SLACK = 0.16  # seconds' worth of bytes that may go ahead: the bucket's credit and its grain


@pytest.fixture(scope="module", params=["shell", "scp", "sftp", "folder"])
def staging(request, tmp_path_factory):
    with Staging(tmp_path_factory.mktemp(request.param), request.param) as staging:
        yield staging


@pytest.fixture
def channel(staging, place):
    if staging.kind == "scp":  # it knows no quotes
        place.location = place.location.with_name("staging")
    place.location.mkdir()
    transport = staging.build(place.location, stall_timeout=1.0)
    yield transport.open_channel()
    transport.close()


def ignore(*_: int) -> None: ...


@pytest.mark.parametrize("batched", [False, True])
def test_a_limited_channel_is_not_faster(place, channel, batched):
    sizes = [250_000] * 8 if batched else [2 * MB]
    members = [place.write(f"a/{number}", size) for number, size in enumerate(sizes)]
    place.settle(*members)
    channel.limit(4 * MB)
    begun = time.monotonic()

    fates = channel.send(Payload(1, tuple(map(wanted, members)), batched=batched), ignore)

    assert time.monotonic() - begun >= 2 / 4 - SLACK
    assert fates == [SentFile(index, checksum(member)) for index, member in enumerate(members)]


def test_lifting_the_limit_frees_a_payload_that_would_take_an_hour(place, channel):
    member = place.write("a/large", 4 * MB)
    place.settle(member)
    channel.limit(1000)
    begun = threading.Event()
    lift = threading.Thread(target=lambda: begun.wait(60) and channel.limit(0))
    lift.start()

    fates = channel.send(single(member), lambda *_: begun.set())

    lift.join()
    assert fates == [SentFile(0, checksum(member))]


@pytest.mark.parametrize("staging", ["shell"], indirect=True)
def test_waiting_longer_than_the_stall_timeout_is_not_a_stall(place, channel):
    member = place.write("a/slow", 16_000)
    place.settle(member)
    channel.limit(8000)  # two seconds, where silence is borne for one
    begun = time.monotonic()

    fates = channel.send(single(member), ignore)

    assert fates == [SentFile(0, checksum(member))]
    assert time.monotonic() - begun >= 1.5


@pytest.mark.parametrize("size", [4 * MB, 40 * MB])
def test_a_limited_channel_is_cut_at_once_and_keeps_its_session(place, staging, channel, size):
    staging.events.clear()
    member = place.write("a/large", size)
    place.settle(member)
    channel.limit(1000)
    begun = threading.Event()
    cut = threading.Thread(target=lambda: begun.wait(60) and channel.cut())
    cut.start()
    with pytest.raises(TransientError) as caught:
        channel.send(single(member), lambda *_: begun.set())
    cut.join()
    assert caught.value.problem_code == "file.cancelled"

    channel.limit(0)
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert staging.events == []
