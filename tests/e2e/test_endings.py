"""How runs end that cannot, must not or shall not go on: exit code, reason, what is left."""

import signal
import time

import pytest

from mydata_like.demo.middleware import Fault, Hang
from tests.invariants import check_complete, check_sums
from tests.site import a_site, finish_reading, make_data, open_site, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

PROMPT = 30.0  # seconds in which a run obeys


site = a_site(tiny_files=10, large=2_000_000)


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("run_started", signal.SIGTERM),
        ("transfer_started", signal.SIGINT),
        ("file_registered", signal.SIGTERM),
    ],
    ids=["beginning", "sending", "verifying"],
)
def test_a_signal_ends_a_run_soon_and_the_next_one_completes_it(site, number, moment):
    site.server.hold_verification()
    process = site.start("run", "--events")
    wait_for(process, moment)

    ended = _interrupt(process, number)
    state = site.command("status", "--json").lines[-1]
    site.server.release_verification()

    assert (ended.code, ended.problem) == (130, "run.interrupted")
    assert state["runs"][0]["problem"]["code"] == "run.interrupted"
    check_complete(site, site.run())


def test_a_run_that_is_stopped_in_a_file_does_not_say_that_nothing_was_sent(site):
    process = site.start("run", "--events", settings=("limits.bandwidth=1",))
    while wait_for(process, "transfer_progressed")[-1]["bytes"] < 100_000:
        pass

    ended = _interrupt(process, signal.SIGTERM)

    assert ended.sums["unfinished"] >= 100_000


@pytest.mark.parametrize(
    ("method", "path", "event"),
    [("GET", "mydata_experiment/", "folder_found"), ("PATCH", "_dataset_file/", "file_staged")],
    ids=["experiments", "records"],
)
def test_a_signal_ends_a_run_whose_server_does_not_answer(site, method, path, event):
    site.server.faults.add(Fault(action=Hang(), method=method, path=path, count=None))
    process = site.start("run", "--events", settings=("server.read_timeout=60",))
    wait_for(process, event)

    ended = _interrupt(process, signal.SIGTERM)

    assert (ended.code, ended.problem) == (130, "run.interrupted")


def test_a_signal_ends_a_run_that_is_paused(site):
    process = site.start("run", "--events", settings=("advanced.pause_patience=600",))
    wait_for(process, "run_started")
    site.server.stop()
    wait_for(process, "run_paused")

    ended = _interrupt(process, signal.SIGINT)

    assert (ended.code, ended.problem) == (130, "run.interrupted")


def test_two_runs_never_work_on_one_data_directory(site):
    site.server.hold_verification()
    first = site.start("run", "--events")
    wait_for(first, "run_started")

    second = site.run()
    site.server.release_verification()

    assert (second.code, second.problem) == (3, "run.already-running")
    check_complete(site, finish_reading(first))


def test_a_wrong_api_key_is_refused_before_anything_is_made(site):
    site.server.revoke_key()

    ended = site.run()

    assert (ended.code, ended.problem) == (3, "server.denied")
    assert site.changes() == []
    assert site.server.api_key not in ended.output + ended.complaints
    (log,) = (site.place.folder / "home" / "logs").glob("*.log")
    assert "server.denied" in log.read_text()


def test_a_server_that_is_away_is_reported_as_such(site):
    site.server.stop()

    ended = site.run("advanced.pause_patience=0")

    assert (ended.code, ended.problem) == (4, "server.unreachable")


def test_a_staging_host_that_is_away_is_reported_as_such(site):
    site.sshd.stop()

    ended = site.run("advanced.pause_patience=0", "transfer.connect_timeout=2")

    assert ended.code == 4, ended
    check_sums(ended)
    assert site.server.datafiles() == []


def test_a_misspelt_setting_is_refused_with_the_nearest_name(site):
    assigned = site.run("transfer.chanels=2")
    with site.config.open("a") as file:
        file.write('[filters]\nexclude = ["*.tmp"]\n')
    written = site.run()

    assert (assigned.code, written.code) == (2, 2)
    assert "transfer.channels" in str(assigned.sums["problem"])
    assert "excludes" in str(written.sums["problem"])
    assert site.server.requests == []


def test_where_ssh_is_insisted_on_the_approval_is_awaited(tmp_path):
    make_data(tmp_path / "site", tiny_files=5, large=100_000)
    with open_site(tmp_path / "site", auto_approve=False) as site:
        before = site.run("transfer.method=ssh", "advanced.pause_patience=0")
        status = site.command("status", "--json").lines[-1]
        (line,) = site.server.public_keys(approved=False)
        site.server.approve(site.uuid)
        after = site.run("transfer.method=ssh")

        assert (before.code, before.problem) == (3, "uploader.not-approved")
        assert "SHA256:" in str(before.sums["problem"])
        assert status["awaited"]["fingerprint"] in str(before.sums["problem"])
        assert line.startswith("ssh-ed25519 ")
        check_complete(site, after)
        assert site.command("status", "--json").lines[-1]["awaited"] is None


def test_until_the_approval_files_travel_over_http(tmp_path):
    make_data(tmp_path / "site", tiny_files=5, large=100_000)
    with open_site(tmp_path / "site", auto_approve=False) as site:
        ended = site.run_events()

        check_complete(site, ended)
        notices = [line["problem"]["code"] for line in ended.events("notice")]
        assert notices == ["uploader.not-approved"]
        assert {line["rung"] for line in ended.events("channel_changed")} == {"http"}
        assert "Accepted publickey" not in site.sshd.log


def test_a_host_with_another_key_gets_nothing(site):
    site.sshd.restart(new_host_key=True)

    ended = site.run()

    assert (ended.code, ended.problem) == (3, "host-key.changed")
    check_sums(ended)
    assert site.server.datafiles() == []
    assert not any(path.is_file() for path in site.server.box_location.rglob("*"))
    assert "Accepted publickey" not in site.sshd.log


def _interrupt(process, number):
    began = time.monotonic()
    process.send_signal(number)
    ended = finish_reading(process)
    assert time.monotonic() - began < PROMPT
    return ended
