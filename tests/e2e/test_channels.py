"""The number of channels that a run finds, by the real command over a long link."""

import pytest

from mydata_like.core.events import LimitsChanged
from mydata_like.demo.uploaders import ScpAddress
from tests.e2e.test_commands import Commanded
from tests.faults.tcpproxy import TcpProxy
from tests.invariants import check_carried, check_complete
from tests.site import a_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

ONE_BY_ONE = "transfer.batch_below=0"


site = a_site(tiny_files=150, large=1000)


@pytest.fixture
def link(site):
    """The way to the staging host, made long: a file at a time is slow there."""
    sshd = site.place.sshd
    with TcpProxy(sshd.port, latency=0.05) as link:
        address = ScpAddress(sshd.username, sshd.host, link.port, (sshd.fingerprint,))
        site.server.set_address(address)
        yield link


def test_far_away_a_run_begins_with_more_than_two_channels_and_says_why(site, link):
    run = Commanded(site, ONE_BY_ONE)
    run.wait("limits_changed")
    run.wait("channel_changed", channel=3)
    link.latency = 0.0
    check_complete(site, run.finish())

    first = run.of_kind("limits_changed")[0]
    assert first["channels"] in (4, 8)  # as many as the processors bear
    assert first["reason"].startswith("a round trip takes ")
    assert first["reason"].endswith(f" ms: starting with {first['channels']}")


def test_a_fixed_number_of_channels_is_kept(site):
    carried = site.carry("transfer.channels=2")

    check_carried(site, carried)
    assert carried.of_kind(LimitsChanged) == []
