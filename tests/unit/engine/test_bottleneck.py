"""What keeps a run from going faster, judged by tables of how its time was shared out."""

import pytest

from mydata_like.core.channel_time import NOTHING_SPENT, TimeByCause
from mydata_like.engine.bottleneck import Bottleneck, StageLoad, name_limit


def evidence(**facts):
    """Return two channels at work for ten seconds, on a machine of four processors."""
    usual = {
        "seconds": 10.0,
        "busy": {},
        "blocked": {},
        "channels": 2.0,
        "spent": NOTHING_SPENT,
        "engine": 0.1,
        "cores": 4,
        "rate": 50e6,
    }
    return StageLoad(**(usual | facts))


@pytest.mark.parametrize(
    ("spent", "name"),
    [
        (TimeByCause(source=12, hash=4, line=4), "source"),
        (TimeByCause(source=4, hash=8, cipher=6, line=2), "processor"),
        (TimeByCause(source=2, hash=4, line=14), "line"),
        (TimeByCause(source=2, hash=3, channels=13, line=2), "channels"),
        (TimeByCause(source=2, hash=3, server=14, line=1), "server"),
        (TimeByCause(bandwidth=15, hash=5), "bandwidth"),
        (
            TimeByCause(source=4, hash=5, line=6, server=5),
            "line",
        ),  # one of the two, not known which
        (TimeByCause(source=7, hash=6, channels=7), ""),
        (TimeByCause(line=1), ""),  # channels that report a twentieth of their time
        (NOTHING_SPENT, ""),
    ],
)
def test_channels_at_work_are_limited_by_what_they_wait_for_most(spent, name):
    assert name_limit(evidence(spent=spent)) == Bottleneck("send", name)


@pytest.mark.parametrize(
    ("cores", "engine", "name"), [(4, 0.1, "line"), (2, 0.1, "line"), (2, 0.5, "processor")]
)
def test_processors_that_are_full_are_the_limit_whatever_channels_wait_for(cores, engine, name):
    spent = TimeByCause(hash=8, cipher=4, line=28)  # of four channels, in ten seconds

    facts = evidence(channels=4.0, spent=spent, engine=engine, cores=cores)

    assert name_limit(facts).name == name


@pytest.mark.parametrize(("idle", "name"), [(0.2, "processor"), (2.0, "line"), (None, "line")])
def test_a_line_is_not_the_limit_while_this_computers_processors_are_full(idle, name):
    spent = TimeByCause(hash=4, line=14)  # the staging host is this computer

    assert name_limit(evidence(spent=spent, idle=idle)) == Bottleneck("send", name)


def test_a_reached_bandwidth_is_the_limit_even_of_channels_without_measurements():
    assert name_limit(evidence(bandwidth=52e6)) == Bottleneck("send", "bandwidth")
    assert name_limit(evidence(bandwidth=80e6)) == Bottleneck("send", "")


def test_channels_whose_files_are_not_registered_wait_for_the_server():
    facts = evidence(busy={"register": 3.0}, blocked={"send": 1.6}, spent=TimeByCause(line=19))

    assert name_limit(facts) == Bottleneck("register", "API")


@pytest.mark.parametrize(
    ("busy", "engine", "limit"),
    [
        ({"source": 0.9, "check": 0.2}, 0.3, Bottleneck("scan", "source")),
        ({"source": 0.9, "check": 0.2}, 0.95, Bottleneck("scan", "processor")),
        ({"source": 0.1, "check": 1.8}, 0.3, Bottleneck("check", "API")),
        ({"bundle": 0.9}, 0.3, Bottleneck("send", "processor")),
        ({"register": 2.5, "check": 0.1}, 0.3, Bottleneck("register", "API")),
        ({"register": 0.1}, 0.3, Bottleneck("", "")),
        ({}, 0.0, Bottleneck("", "")),
    ],
)
def test_where_no_channel_has_work_the_busiest_stage_is_the_limit(busy, engine, limit):
    assert name_limit(evidence(channels=0.1, busy=busy, engine=engine)) == limit


def test_where_nothing_is_left_but_to_wait_it_is_the_servers_verification():
    waiting = evidence(channels=0.0, busy={"register": 0.0}, pending=True)

    assert name_limit(waiting) == Bottleneck("verify", "verification")
