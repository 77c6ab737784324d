"""Which host the next channel goes to."""

from pathlib import Path

import pytest

from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.sessions import REST, HostRotation


def endpoint(host: str) -> Endpoint:
    return Endpoint(host=host, port=22, username="me", key_file=Path("k"), known_hosts=Path("h"))


A, B = endpoint("a"), endpoint("b")


@pytest.fixture
def time():
    return [0.0]


@pytest.fixture
def rota(time):
    return HostRotation([A, B], lambda: time[0])


def test_the_host_with_the_fewest_channels_is_next(rota):
    taken = [rota.take() for _ in range(3)]
    rota.leave(A, failed=False)
    rota.leave(A, failed=False)
    assert [*taken, rota.take(), rota.take()] == [A, B, A, A, A]


def test_a_host_that_failed_rests_and_is_tried_again_afterwards(rota, time):
    rota.take()
    rota.leave(A, failed=True)
    assert [rota.take() for _ in range(3)] == [B, B, B]
    time[0] = REST
    assert rota.take() == A


def test_of_resting_hosts_the_one_that_failed_first_is_tried_first(rota, time):
    for host, moment in ((B, 0.0), (A, 1.0)):
        time[0] = moment
        rota.leave(host, failed=True)
    assert rota.take() == B


def test_no_host_is_tried_twice_in_one_attempt(rota):
    assert (rota.take([A]), rota.take([A, B])) == (B, None)


def test_a_single_host_never_rests(time):
    rota = HostRotation([A], lambda: time[0])
    rota.leave(A, failed=True)
    assert rota.take() == A
