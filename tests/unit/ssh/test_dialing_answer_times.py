"""Whether a host is near or far, by the times of its answers; no clock, no network."""

import pytest

from mydata_like.ssh.dialing import AnswerTimes

NEAR, FAR = 0.0002, 0.04


@pytest.mark.parametrize(
    ("seconds", "constant", "network", "expected"),
    [
        pytest.param((0.03, 0.0004), False, NEAR, NEAR, id="one quick answer"),
        pytest.param((0.041, 0.0405, 0.0402), True, FAR, 0.0402, id="far"),
        pytest.param((0.09, 0.041, 0.0405, 0.0402), True, NEAR, 0.0402, id="far behind a proxy"),
        pytest.param((0.02, 0.05, 0.012, 0.031), False, NEAR, NEAR, id="near and busy"),
        pytest.param((0.1, 0.05, 0.2, 0.06), False, FAR, FAR, id="far and busy"),
        pytest.param((0.02, 0.05, 0.012, 0.031), False, None, 0.012, id="busy, not measured"),
        pytest.param((0.02, 0.03, 0.019, 0.028), False, NEAR, 0.019, id="late, hardly varying"),
    ],
)
def test_the_round_trip_is_that_of_the_network_if_the_host_is_busy(
    seconds, constant, network, expected
):
    assert AnswerTimes(seconds, constant).round_trip(network) == expected
