"""What is remembered of the staging hosts, and for how long."""

import json
from datetime import timedelta

import pytest

from mydata_like.app.transports.remembered_hosts import RememberedHosts
from mydata_like.core.model import StagingArea
from mydata_like.ssh.capabilities import HostCapabilities
from tests.fakes.clock import FakeClock

AREA = StagingArea(box="box", location="/staging", username="mydata", hosts=("a", "b"))
FOUND = HostCapabilities("shell", "it works", "gnu", b"md5sum", 4, zstd=True)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def file(tmp_path):
    return tmp_path / "hosts.json"


@pytest.fixture
def memory(file, clock):
    return RememberedHosts(file, AREA, clock)


def test_the_next_run_knows_what_was_found(memory, file, clock):
    memory.keep("a", FOUND)

    assert RememberedHosts(file, AREA, clock).find("a") == FOUND
    assert memory.find("b") is None


def test_another_location_on_the_same_host_is_not_known(memory, file, clock):
    memory.keep("a", FOUND)
    elsewhere = StagingArea(box="box", location="/new", username="mydata", hosts=("a",))

    assert RememberedHosts(file, elsewhere, clock).find("a") is None


def test_what_was_found_is_found_anew_after_a_day(memory, clock):
    memory.keep("a", FOUND)
    clock.move(timedelta(days=1).total_seconds())

    assert memory.find("a") is None


def test_a_host_can_be_forgotten(memory):
    memory.keep("a", FOUND)
    memory.keep("b", FOUND)
    memory.keep("a", None)

    assert (memory.find("a"), memory.find("b")) == (None, FOUND)


@pytest.mark.parametrize("change", [{"checksum": "rm -rf"}, {"tar": "other"}, {"access": "telnet"}])
def test_what_no_probe_can_have_found_is_not_believed(memory, file, change):
    memory.keep("a", FOUND)
    [(name, record)] = json.loads(file.read_text()).items()
    file.write_text(json.dumps({name: record | change}))

    assert memory.find("a") is None
