"""Which session a channel is given, over a long way, by a host that refuses some."""

from dataclasses import replace

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.sessions import Sessions, count_cpus
from mydata_like.transfer.worker_messages import ChannelOpened
from tests.fakes.clock import FakeClock
from tests.privileges import needs_two_processors

ONE = HostCapabilities("shell", cpus=1)
FAR = ChannelOpened(
    HostCapabilities("shell", cpus=1), "libssh", "aes128-gcm@openssh.com", round_trip=0.05
)
REFUSED = TransientError("No further session.", code="link.refused")


class Worker:
    """A process that does nothing."""

    def __init__(self):
        self.channels = set()
        self.ended = False

    def send(self, number, command):
        pass

    def kill(self):
        self.ended = True

    def reap(self):
        pass


class Host:
    host = "staging"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def started():
    return []


@pytest.fixture
def sessions(clock, started):
    def start(name, endpoint):
        started.append(Worker())
        return started[-1]

    return Sessions([Host()], start, clock.monotonic)


def found(sessions, number):
    """Found a session for a channel, which comes to stand."""
    place = sessions.find_slot(number, [])
    assert place.is_new
    sessions.mark_open(place, FAR)
    return place


def be_refused(sessions, number):
    """Have a further session refused; return the place that the channel is given instead."""
    place = sessions.find_slot(number, [])
    assert place.is_new
    sessions.give_up(number, place, REFUSED)
    return sessions.find_slot(number, [place])


def test_a_refused_session_is_shared_and_asked_for_again_after_a_minute(sessions, clock):
    first = found(sessions, 1)
    shared = be_refused(sessions, 2)
    assert (shared.worker, shared.is_new) == (first.worker, False)

    clock.move(59)
    assert not sessions.find_slot(3, []).is_new
    clock.move(1)
    assert sessions.find_slot(4, []).is_new


def test_a_session_that_was_never_open_is_not_a_broken_connection(sessions):
    first = found(sessions, 1)
    be_refused(sessions, 2)
    assert not sessions.broken

    sessions.drop(first.worker, failed=True)
    assert sessions.broken


NEAR = replace(FAR, capabilities=HostCapabilities("shell", cpus=64), round_trip=0.001)


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
def test_large_files_share_sessions_where_that_saves_processor_time(sessions, opened, shared):
    slots = [sessions.find_slot(number, []) for number in (1, 2)]
    for slot in slots:
        sessions.mark_open(slot, opened)

    found = sessions.find_shared(2, slots[1].worker)

    assert (found and found.worker) == (slots[0].worker if shared else None)
    assert sessions.find_shared(1, slots[0].worker) is None


def test_a_channel_in_two_sessions_counts_once(sessions):
    slots = [sessions.find_slot(number, []) for number in (1, 2)]
    slots[0].worker.channels.add(2)

    assert sessions.count_open_channels() == 2


def test_the_capacity_names_the_processors_of_both_sides(sessions):
    here = count_cpus()
    assert f"({here} processor{'s' * (here != 1)} here)" in sessions.describe_capacity()

    sessions.mark_open(sessions.find_slot(1, []), replace(NEAR, round_trip=0.0, capabilities=ONE))

    assert sessions.describe_capacity() == (
        f"8 channels over 1 session ({here} processor{'s' * (here != 1)} here, 1 there)"
    )


def find_first(sessions):
    """Return the place of the first channel."""
    return sessions.take_prepared(1) or sessions.find_slot(1, [])


def test_a_prepared_session_is_that_of_the_first_channel(sessions, started):
    sessions.prepare(1)
    sessions.prepare(1)

    slot = find_first(sessions)

    assert started == [slot.worker]
    assert slot.is_new
    assert slot.worker.channels == {1}


def test_a_session_that_was_prepared_long_ago_is_replaced(sessions, started, clock):
    sessions.prepare(1)
    clock.move(60)

    slot = find_first(sessions)

    assert started == [started[0], slot.worker]
    assert [worker.ended for worker in started] == [True, False]


def test_a_prepared_session_is_kept_for_its_channel(sessions, started):
    sessions.prepare(1)
    sessions.capabilities_by_host["staging"] = HostCapabilities("shell", cpus=64)

    other = None if count_cpus() == 1 else sessions.find_slot(2, [])

    assert other is None or other.worker is not started[0]
    assert find_first(sessions).worker is started[0]
