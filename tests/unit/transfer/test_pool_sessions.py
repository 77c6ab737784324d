"""Which host and which session a channel gets, over a long way, and where a host refuses some."""

from dataclasses import replace

import pytest

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.core.model import StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.pool import REST, StagingTransport, count_cpus
from mydata_like.transfer.worker_messages import STREAMS, ChannelOpened, JoinChannel
from tests.fakes.clock import FakeClock
from tests.privileges import needs_two_processors
from tests.staging import build_unreached

FAR = ChannelOpened(
    HostCapabilities("shell", cpus=1), "libssh", "aes128-gcm@openssh.com", round_trip=0.05
)
NEAR = replace(FAR, capabilities=HostCapabilities("shell", cpus=64), round_trip=0.001)
REFUSED = TransientError("No further session.", code="link.refused")


class Worker:
    """A process that opens every channel, or fails."""

    def __init__(self, answers):
        self.channels = set()
        self.sent = []
        self.is_open = self.recalled = self.is_closed = False
        self.takes_guests = True
        self._answers = answers

    @property
    def host(self):
        return self.destination.host

    def begin(self, config):
        self.config = config

    def send(self, number, command):
        self.sent.append((number, command))

    def receive(self, number, timeout):
        answer = self._answers.get(self.host, FAR)
        if isinstance(answer, UploaderError):
            raise answer
        return answer

    def kill(self):
        self.is_closed = True

    def reap(self):
        pass


class Starter:
    most = 0

    def __init__(self):
        self.answers = {}  # by host: what opens, or the error
        self.started = []

    def start(self, name):
        self.started.append(Worker(self.answers))
        return self.started[-1]


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def starter():
    return Starter()


@pytest.fixture
def build(clock, starter):
    def build(*hosts):
        return StagingTransport(
            StagingArea(box="box", location="/there", username="me", hosts=hosts or ("a",)),
            Transfer(),
            build=build_unreached,
            emit=lambda event: None,
            starter=starter,
            now=clock.monotonic,
        )

    return build


def test_a_refused_session_is_shared_and_asked_for_again_after_a_minute(build, starter, clock):
    transport = build()
    first = transport.open_worker(1)
    starter.answers["a"] = REFUSED
    with pytest.raises(TransientError):  # the first session refuses, too
        transport.open_worker(2)
    starter.answers.clear()
    asked = len(starter.started)

    clock.move(59)
    assert transport.open_worker(3) is first
    assert len(starter.started) == asked
    clock.move(1)
    assert transport.open_worker(4) is not first


def test_only_after_an_open_session_broke_batches_are_named(build, starter):
    transport = build()
    first = transport.open_worker(1)
    starter.answers["a"] = REFUSED
    with pytest.raises(TransientError):
        transport.open_worker(2)
    assert not any(worker.config.named for worker in starter.started)

    transport.give_up(first, failed=True)
    with pytest.raises(TransientError):
        transport.open_worker(1)
    assert starter.started[-1].config.named


@needs_two_processors
@pytest.mark.parametrize(
    ("opened", "shared"),
    [
        (NEAR, True),
        (replace(NEAR, round_trip=0.05), False),
        (replace(NEAR, stack="paramiko"), False),
        (replace(NEAR, capabilities=HostCapabilities("sftp", cpus=64)), False),
    ],
    ids=["near", "far", "paramiko", "SFTP"],
)
def test_large_files_share_sessions_where_that_saves_processor_time(build, starter, opened, shared):
    starter.answers["a"] = opened
    transport = build()
    first, second = (transport.open_worker(number) for number in (1, 2))

    assert transport.open_shared(2, second) is (first if shared else None)
    assert transport.open_shared(1, first) is None


@needs_two_processors
def test_sessions_are_not_shared_where_all_their_places_are_wanted(build, starter):
    starter.answers["a"] = NEAR
    transport = build()
    transport.open_channel(STREAMS)
    second = transport.open_worker(7)
    assert transport.open_shared(7, second) is starter.started[0]

    last = transport.open_channel(STREAMS + 1)

    assert not transport.may_share
    assert transport.open_shared(7, second) is None

    last.close()  # the engine wants fewer again

    assert transport.open_shared(7, second) is starter.started[0]


def test_the_capacity_names_the_processors_of_both_sides(build, starter):
    here = count_cpus()
    transport = build()
    assert f"({here} processor{'s' * (here != 1)} here)" in transport.describe_capacity()

    starter.answers["a"] = replace(NEAR, capabilities=HostCapabilities("shell", cpus=1))
    transport.open_channel()

    assert transport.describe_capacity() == (
        f"8 channels over 1 session ({here} processor{'s' * (here != 1)} here, 1 there)"
    )


def test_a_channel_that_comes_back_to_its_session_joins_it_again(build, starter):
    starter.answers["a"] = replace(NEAR, capabilities=HostCapabilities("shell", cpus=1))
    transport = build()
    worker, _ = transport.open_worker(1), transport.open_worker(2)

    transport.leave(worker, 1)
    transport.open_worker(1)

    assert worker.sent.count((1, JoinChannel())) == 2


def test_a_prepared_session_is_that_of_the_first_channel(build, starter):
    transport = build()
    transport.prepare()
    transport.prepare()

    transport.open_channel()

    assert [worker.channels for worker in starter.started] == [{1}]


def test_a_session_that_was_prepared_long_ago_is_replaced(build, starter, clock):
    transport = build()
    transport.prepare()
    clock.move(60)

    transport.open_channel()

    assert [worker.is_closed for worker in starter.started] == [True, False]


def test_a_prepared_session_is_kept_for_its_channel(build, starter):
    starter.answers["a"] = NEAR
    transport = build()
    transport.prepare()
    if count_cpus() > 1:
        assert transport.open_worker(2) is not starter.started[0]

    assert transport.open_worker(1) is starter.started[0]


def find_hosts(transport, *numbers):
    return [transport.open_worker(number).host for number in numbers]


def test_the_next_session_goes_to_the_host_with_the_fewest(build):
    assert find_hosts(build("a", "b", "c", "d"), 1, 2, 3, 4) == ["a", "b", "c", "d"]


def test_a_host_that_failed_comes_last_for_a_while(build, clock):
    transport = build("a", "b")
    transport.give_up(transport.open_worker(1), failed=True)
    assert find_hosts(transport, 1) == ["b"]

    transport.give_up(transport.open_worker(1), failed=False)
    clock.move(REST)
    assert find_hosts(transport, 1) == ["a"]


def test_of_hosts_that_failed_the_first_is_tried_first(build, clock):
    transport = build("a", "b")
    for _ in range(2):
        transport.give_up(transport.open_worker(1), failed=True)
        clock.move(1)
    assert find_hosts(transport, 1) == ["a"]


def test_no_host_is_tried_twice_for_one_channel(build, starter):
    starter.answers |= dict.fromkeys("ab", REFUSED)
    with pytest.raises(TransientError):
        build("a", "b").open_worker(1)
    assert [worker.host for worker in starter.started] == ["a", "b"]


def test_a_single_host_is_used_at_once_after_it_failed(build):
    transport = build("a")
    transport.give_up(transport.open_worker(1), failed=True)
    assert find_hosts(transport, 1) == ["a"]
