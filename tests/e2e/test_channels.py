"""The number of channels that a run finds, by the real command over a long link."""

import pytest

from mydata_like.core.events import LimitsChanged
from mydata_like.demo.approval import ScpAddress
from tests.e2e.test_commands import Commanded
from tests.faults.tcpproxy import TcpProxy
from tests.invariants import check_carried, check_complete
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

ONE_BY_ONE = "transfer.batch_below=0"


@pytest.fixture
def site(tmp_path):
    make_data(tmp_path / "site", tiny_files=150, large=1000)
    with open_site(tmp_path / "site") as site:
        yield site


@pytest.fixture
def link(site):
    """The way to the staging host, made long: a file at a time is slow there."""
    sshd = site.place.sshd
    with TcpProxy(sshd.port, latency=0.05) as link:
        address = ScpAddress(sshd.username, sshd.host, link.port, (sshd.fingerprint,))
        site.server.set_address(address)
        yield link


def test_a_run_tries_more_channels_than_it_has_and_says_why(site, link):
    run = Commanded(site, ONE_BY_ONE)
    run.wait("transfer_finished")
    begun = len(run.of_kind("channel_changed"))

    run.ask_successfully("set_channels", channels=1)
    run.ask_successfully("set_channels", channels=0)
    run.wait("limits_changed", channels=2)
    link.latency = 0.0
    check_complete(site, run.finish())

    reasons = [line["reason"] for line in run.of_kind("limits_changed")]
    assert begun <= 2
    assert reasons[:2] == ["a person asked for it"] * 2
    assert reasons[2].startswith("1 channel carries ")
    assert reasons[2].endswith("files/s: trying 2")


def test_a_fixed_number_of_channels_is_kept(site):
    carried = site.carry("transfer.channels=2")

    check_carried(site, carried)
    assert carried.of_kind(LimitsChanged) == []
