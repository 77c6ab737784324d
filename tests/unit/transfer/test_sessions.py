"""Which session a channel is given, over a long way, by a host that refuses some."""

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.transfer.sessions import Sessions
from mydata_like.transfer.worker_messages import ChannelOpened
from tests.fakes.clock import FakeClock

FAR = ChannelOpened(
    HostCapabilities("shell", cpus=1), "libssh", "aes128-gcm@openssh.com", round_trip=0.05
)
REFUSED = TransientError("No further session.", code="link.refused")


class Worker:
    """A process that does nothing."""

    def __init__(self):
        self.channels = set()

    def kill(self):
        pass

    def reap(self):
        pass


class Host:
    host = "staging"


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def sessions(clock):
    return Sessions([Host()], lambda name: Worker(), clock.monotonic)


def found(sessions, number):
    """Found a session for a channel, which comes to stand."""
    place = sessions.find_place(number, [])
    assert place.founded
    sessions.stand(place, FAR)
    return place


def be_refused(sessions, number):
    """Have a further session refused; return the place that the channel is given instead."""
    place = sessions.find_place(number, [])
    assert place.founded
    sessions.give_up(number, place, REFUSED)
    return sessions.find_place(number, [place])


def test_a_refused_session_is_shared_and_asked_for_again_after_a_minute(sessions, clock):
    first = found(sessions, 1)
    shared = be_refused(sessions, 2)
    assert (shared.worker, shared.founded) == (first.worker, False)

    clock.move(59)
    assert not sessions.find_place(3, []).founded
    clock.move(1)
    assert sessions.find_place(4, []).founded


def test_a_session_that_was_never_open_is_not_a_broken_connection(sessions):
    first = found(sessions, 1)
    be_refused(sessions, 2)
    assert not sessions.broken

    sessions.drop(first.worker, failed=True)
    assert sessions.broken
