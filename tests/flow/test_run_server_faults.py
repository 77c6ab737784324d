"""Whole runs against a server that fails: whatever it does, the next run completes all, once."""

import os
from contextlib import contextmanager
from math import inf

import pytest

from mydata_like.catalogues.mytardis.client import ATTEMPTS
from mydata_like.core.errors import AccessDeniedError
from mydata_like.core.events import (
    FileRegistered,
    FileStaged,
    FileWaiting,
    RunPaused,
    RunStarted,
    ServerSilent,
)
from mydata_like.demo.middleware import EMPTY_LIST, Delay, Fault, Hang, Reply, Reset, Truncate
from tests.faults.tcpproxy import TcpProxy
from tests.invariants import check_carried, check_law
from tests.site import a_site, finish_reading, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LISTS = r"/v1/(user|dataset|mydata_experiment|mydata_dataset_file)/\?"
BURSTS = {
    "lost replies": [
        Fault(action=Reset(), method="POST", path="mydata_experiment/"),
        Fault(action=Reset(), method="POST", path="/dataset/"),
        Fault(action=Reset(), method="PATCH", path="dataset_file"),
    ],
    "errors after the work was done": [
        Fault(action=Reply(502, handled=True), method="POST", path="mydata_experiment/"),
        Fault(action=Reply(500, handled=True), method="POST", path="/dataset/"),
        Fault(action=Reply(504, handled=True), method="PATCH", path="dataset_file", count=2),
    ],
    "errors instead of work": [
        Fault(action=Reply(500), method="GET", skip=2),
        Fault(action=Reply(503, headers={"Retry-After": "1"}), method="POST"),
        Fault(action=Reply(500), method="PATCH", path="dataset_file", count=1),
    ],
    "half answers": [
        Fault(action=Truncate(), method="GET", skip=7),
        Fault(action=Truncate(), method="PATCH", path="dataset_file", count=1),
    ],
    "silence": [
        Fault(action=Hang(handled=True), method="PATCH", path="dataset_file", count=1),
        Fault(action=Hang(), method="GET", path="stats", count=1),
    ],
}


site = a_site(tiny_files=10, large=1_000_000)


@pytest.mark.parametrize("faults", BURSTS.values(), ids=BURSTS)
def test_a_run_comes_through_a_burst_of_faults(site, faults):
    site.server.faults.add(*faults)

    carried = site.carry("server.read_timeout=1")

    check_carried(site, carried)


def test_a_server_that_does_not_answer_for_long_is_reported_meanwhile(site):
    late = Fault(action=Delay(11.5), method="PATCH", path="dataset_file", count=1)
    slow = Fault(action=Delay(3), method="PATCH", path="dataset_file", skip=1, count=1)
    site.server.faults.add(late, slow)
    one_by_one = ("advanced.register_requests=1", "advanced.register_batch=1")

    carried = site.carry("server.write_timeout=60", *one_by_one)

    check_carried(site, carried)
    *silent, answered = [event.seconds for event in carried.of_kind(ServerSilent)]
    assert answered == 0
    assert 10 in silent
    assert all(10 <= seconds < 13 for seconds in silent)
    assert carried.of_kind(RunPaused) == []


@pytest.mark.parametrize("knows", [True, False], ids=["known", "unknown"])
def test_a_record_without_a_path_holds_up_its_own_file_only(site, knows):
    check_carried(site, site.carry())
    for file in site.ledgers if not knows else ():
        file.unlink()
    some = site.server.datafiles()[0]
    site.server.lose_path(some.id)
    changed = site.place.expected_files()[some.key]
    changed.write_bytes(b"changed")
    sibling = changed.with_name("sibling.txt")
    sibling.write_bytes(b"new")
    records = len(site.server.datafiles())

    for _ in range(2):
        carried = site.carry()

        check_law(carried)
        waiting = carried.of_kind(FileWaiting)
        assert [event.problem.code for event in waiting] == ["server.strange-record"]
        assert waiting[0].path == os.fsencode(changed.relative_to(site.data))
        assert carried.sums.problem is None
        assert carried.sums.verified == carried.sums.found - 1
    assert len(site.server.datafiles()) == records + 1
    site.server.lose(some.id)
    check_carried(site, site.carry())


def test_a_verified_file_whose_record_becomes_invalid_is_no_longer_safe(site):
    check_carried(site, site.carry())
    some = site.server.datafiles()[0]
    site.server.lose_path(some.id)

    carried = site.carry("advanced.full_check_days=0")

    check_law(carried)
    assert [it.problem.code for it in carried.of_kind(FileWaiting)] == ["server.strange-record"]
    assert carried.sums.verified == carried.sums.found - 1


def test_an_outage_while_the_server_verifies_pauses_the_run(site):
    site.server.hold_verification()
    left = len(site.place.expected_files())

    def watch(seen):
        nonlocal left
        if isinstance(seen, FileRegistered):
            left -= 1
            if not left:
                site.server.faults.add(Fault(action=Reset(handled=False), count=None))
        elif isinstance(seen, RunPaused):
            site.server.faults.clear()
            site.server.release_verification()

    carried = site.carry(watch=watch)

    paused = [event.problem.code for event in carried.of_kind(RunPaused)]
    assert paused == ["server.connection-lost"]
    check_carried(site, carried)


MAINTENANCE = Reply(503, headers={"Retry-After": "600"})


@pytest.mark.parametrize(
    ("path", "count"), [("facility/", 2), ("/dataset/", 1), ("mydata_dataset_file/$", 1)]
)
def test_a_pause_that_the_server_asks_for_is_told_and_resume_ends_it_when_it_is_back(
    site, path, count
):
    site.server.faults.add(Fault(action=MAINTENANCE, path=path, count=count))
    process = site.start("run", "--events", settings=("advanced.pause_patience=600",))
    seen = wait_for(process, "run_paused")
    problem = seen[-1]["problem"]
    while "is paused" not in (status := site.command("status").output):
        assert process.poll() is None

    resumed = site.command("resume").output

    ended = finish_reading(process)
    assert resumed == "The run continues.\n"
    assert problem["code"] == "server.wait-requested"
    assert "asks us to wait until" in problem["message"]
    assert problem["message"] in status
    assert "run_resumed" in [event["event"] for event in ended.lines]
    assert (ended.code, ended.sums["verified"]) == (0, ended.sums["found"])
    assert site.find_wrongs() == []


def test_a_server_that_asks_us_to_wait_for_long_ends_a_run_after_the_patience(site):
    def shut(event):
        if isinstance(event, RunStarted):
            site.server.faults.add(Fault(action=MAINTENANCE, count=None))

    carried = site.carry("advanced.pause_patience=1", watch=shut)

    assert (carried.code, carried.sums.problem.code) == (4, "server.wait-requested")
    assert carried.sums.seconds < 30
    site.server.faults.clear()
    check_carried(site, site.carry())


def test_an_outage_that_ends_while_it_is_found_out_delays_the_start_of_a_run(site):
    failing = Fault(action=Reset(), method="GET", path="facility/", count=ATTEMPTS)
    site.server.faults.add(failing)  # the account is accepted, as after the outage

    carried = site.carry(patience=inf)

    paused = [event.problem.code for event in carried.of_kind(RunPaused)]
    assert paused == ["server.connection-lost"]
    check_carried(site, carried)


@contextmanager
def through_proxy(site):
    """Let the site's runs reach the server through a proxy."""
    with TcpProxy(site.server.port) as proxy:
        for file in (site.config, site.config.with_name("secrets.toml")):
            file.write_text(file.read_text().replace(f":{site.server.port}", f":{proxy.port}"))
        yield proxy


@pytest.mark.parametrize("method", ["ssh", "http"])
def test_a_server_that_is_killed_and_started_again_costs_seconds(site, method):
    with through_proxy(site) as proxy:
        proxy.down_on = b'"md5sum"'  # the end of the first request for records
        settings = ("server.write_timeout=300", f"transfer.method={method}")

        def restart(event):
            if isinstance(event, RunPaused):
                proxy.up()

        carried = site.carry(*settings, watch=restart)

    assert proxy.down_on is None
    assert carried.sums.seconds < 45
    check_carried(site, carried)


@pytest.mark.parametrize("event", [RunStarted, FileStaged, FileRegistered])
def test_a_key_that_is_revoked_ends_the_run_and_nothing_is_made_twice(site, event):
    def revoke(seen):
        if isinstance(seen, event) and site.server.api_key == key:
            site.server.revoke_key()

    key = site.server.api_key

    carried = site.carry(watch=revoke)
    with pytest.raises(AccessDeniedError):
        site.carry()
    site.place.write_settings(site.config)

    check_law(carried)
    assert carried.code == 3
    assert carried.sums.problem.code == "server.denied"
    check_carried(site, site.carry())


@pytest.mark.parametrize(
    "path",
    ["mydata_experiment/", "/dataset/", "mydata_dataset_file/", "stats"],
    ids=["experiments", "datasets", "records", "numbers"],
)
def test_a_list_that_is_wrongly_empty_leads_to_no_duplicates(site, path):
    check_carried(site, site.carry())
    for ledger in site.ledgers:
        ledger.unlink()
    site.server.faults.add(Fault(action=EMPTY_LIST, method="GET", path=path))

    carried = site.carry()
    site.server.faults.clear()

    check_law(carried)
    check_carried(site, site.carry())


def test_lists_that_are_empty_since_we_are_not_known_end_the_run(site):
    check_carried(site, site.carry())
    for ledger in site.ledgers:
        ledger.unlink()

    def forget(event):
        if isinstance(event, RunStarted):
            site.server.faults.add(Fault(action=EMPTY_LIST, method="GET", path=LISTS, count=None))

    asked = len(site.server.requests)

    carried = site.carry(watch=forget)
    site.server.faults.clear()

    assert (carried.code, carried.sums.problem.code) == (3, "server.denied")
    assert not [change for change in site.changes(asked) if "/mydata_uploader/" not in change]
    check_carried(site, site.carry())
