"""Whole runs while the uploader's approval is awaited, withdrawn, ended or given again."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import inf

import pytest

from mydata_like.core.errors import NotApprovedError
from mydata_like.core.events import (
    ChannelChanged,
    Notice,
    RunPaused,
    RunResumed,
    TransferStarted,
)
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.ssh.keys import load_key
from tests.invariants import check_carried
from tests.site import make_data, once, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

SSH = "transfer.method=ssh"


@contextmanager
def site_in(folder, *, auto_approve=True):
    make_data(folder / "site", tiny_files=5, large=200_000)
    with open_site(folder / "site", auto_approve=auto_approve) as site:
        yield site


@pytest.fixture
def site(tmp_path):
    with site_in(tmp_path) as site:
        yield site


def revoke(site):
    """Do what an administrator does: untick the approval, take the key from the host."""
    site.server.withdraw_approval(site.uuid)
    site.sshd.forbid_all()
    site.sshd.kill_sessions()


def readmit(site):
    site.server.approve(site.uuid)
    site.sshd.authorize(load_key(site.place.key_file).public)


def pauses(carried):
    return [event.problem.code for event in carried.of_kind(RunPaused)]


def test_an_unattended_run_waits_for_the_approval_and_continues(tmp_path):
    with site_in(tmp_path, auto_approve=False) as site:
        approve = once(RunPaused, lambda: site.server.approve(site.uuid))

        with pytest.raises(NotApprovedError):
            site.carry(SSH, "advanced.pause_patience=0")
        carried = site.carry(SSH, "advanced.pause_patience=0", watch=approve, patience=inf)

        check_carried(site, carried)
        assert pauses(carried) == ["uploader.not-approved"]
        assert len(carried.of_kind(RunResumed)) == 1


def test_an_approval_that_is_withdrawn_pauses_the_run_until_it_is_given_again(site):
    withdraw = once(TransferStarted, lambda: revoke(site))
    restore = once(RunPaused, lambda: readmit(site))

    carried = site.carry(watch=lambda event: (withdraw(event), restore(event)))

    check_carried(site, carried)
    assert pauses(carried) == ["uploader.revoked"]
    assert site.command("status", "--json").lines[-1]["awaited"] is None


@pytest.mark.parametrize(
    ("known", "code"),
    [("", "uploader.not-admitted"), ("2020-01-31", "uploader.expired")],
)
def test_a_host_that_refuses_an_approved_key_is_explained(site, known, code):
    def shut_out():
        site.sshd.forbid_all()
        site.sshd.kill_sessions()
        site.server.annotate_approval(site.uuid, expiry=known)

    carried = site.carry("advanced.pause_patience=0", watch=once(TransferStarted, shut_out))

    assert (carried.code, carried.sums.problem.code) == (3, code)
    assert load_key(site.place.key_file).public.fingerprint in carried.sums.problem.message
    assert known in carried.sums.problem.message


def test_a_staging_area_that_moved_is_left_for_the_next_run(site):
    sshd = site.sshd

    def move():
        sshd.forbid_all()
        sshd.kill_sessions()
        site.server.set_address(ScpAddress(sshd.username, "127.0.0.9", sshd.port))

    carried = site.carry(watch=once(TransferStarted, move))

    assert (carried.code, carried.sums.problem.code) == (3, "staging.moved")


@pytest.mark.parametrize(("days", "warned"), [(-100, True), (5, True), (100, False)])
def test_the_last_day_of_an_approval_is_warned_of_and_stops_nothing(site, days, warned):
    site.carry()
    day = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    site.server.annotate_approval(site.uuid, expiry=day)

    carried = site.carry()

    check_carried(site, carried)
    told = [event.problem for event in carried.of_kind(Notice)]
    assert [problem.code for problem in told] == (["uploader.expires"] if warned else [])
    assert all(day in problem.message for problem in told)


def test_the_server_is_updated_about_us_only_when_something_changed(site):
    site.carry()
    before = len(site.server.requests)
    site.carry()
    unchanged = site.changes(before)
    before = len(site.server.requests)
    site.carry("instrument.contact_name=Somebody Else")

    assert not [change for change in unchanged if "mydata_uploader" in change]
    assert any(change.startswith("PUT") for change in site.changes(before))


def test_an_approved_key_that_no_host_knows_yet_sends_files_over_http_until_then(site):
    site.sshd.forbid_all()

    carried = site.carry()
    waiting = site.command("status", "--json").lines[-1]["awaited"]
    site.sshd.authorize(load_key(site.place.key_file).public)
    (site.data / "alice" / "more").mkdir()
    (site.data / "alice" / "more" / "file").write_bytes(b"more")
    later = site.carry()

    check_carried(site, carried)
    check_carried(site, later)
    assert waiting["problem"]["code"] == "uploader.not-admitted"
    assert [rungs(carried), rungs(later)] == [{"http"}, {"shell"}]


def rungs(carried):
    return {event.rung for event in carried.of_kind(ChannelChanged) if event.state == "open"}
