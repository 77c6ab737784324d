"""Whole runs over a staging host that fails, fills up, or allows less than a shell."""

import os
from math import inf

import pytest

from mydata_like.core.events import (
    ChannelChanged,
    FileFailed,
    FileStaged,
    FileVerified,
    FileWaiting,
    FileWanted,
    LimitsChanged,
    RunPaused,
    RunResumed,
    TransferRetried,
    TransferStarted,
)
from tests.invariants import check_carried, check_law
from tests.privileges import needs_two_processors
from tests.site import a_site, make_data, once, open_site
from tests.sshd_fixture import needs_sshd, scp_only, script, sftp_only
from tests.staging import enlarge, fill, small_disk

MANY = ("transfer.channels=4", "transfer.batch_below=0")

pytestmark = [pytest.mark.e2e, needs_sshd]


site = a_site(tiny_files=30, large=3_000_000)


@pytest.mark.parametrize("stack", ["libssh", "paramiko"])
def test_killed_sessions_are_replaced_and_nothing_is_lost(site, stack):
    kill = once(TransferStarted, site.sshd.kill_sessions)

    carried = site.carry(f"transfer.ssh={stack}", watch=kill)

    check_carried(site, carried)
    assert carried.of_kind(TransferRetried)


def test_a_host_that_restarts_is_reconnected(site):
    restart = once(TransferStarted, site.sshd.restart)

    check_carried(site, site.carry(watch=restart))


def test_a_host_that_stays_away_for_a_while_pauses_the_run(site):
    stop = once(TransferStarted, site.sshd.stop)
    start = once(RunPaused, site.sshd.start)

    carried = site.carry(watch=lambda event: (stop(event), start(event)))

    check_carried(site, carried)
    assert len(carried.of_kind(RunPaused)) == len(carried.of_kind(RunResumed)) == 1


def test_a_session_that_stalls_is_given_up(site):
    stall = once(TransferStarted, site.sshd.pause_sessions)

    carried = site.carry("transfer.stall_timeout=1", watch=stall)

    check_carried(site, carried)
    assert carried.of_kind(TransferRetried)


# Only one session may run commands, as where the logins of an account are limited.
ONE_SESSION = """
read -r owner < "$0.owner"
[ -d "/proc/$owner" ] || echo $PPID > "$0.owner"
read -r owner < "$0.owner"
[ "$owner" = $PPID ] || { echo "Too many logins for this account." >&2; exit 254; }
exec sh -c "$SSH_ORIGINAL_COMMAND"
"""


@needs_two_processors
def test_a_host_at_its_limit_of_logins_gets_all_files_over_those_it_allows(tmp_path):
    make_data(tmp_path / "site", tiny_files=30)
    gate = script(tmp_path / "gate", ONE_SESSION)
    gate.with_name("gate.owner").write_text("0\n")
    options = (f"ForceCommand exec {gate}", "Subsystem none /bin/false")
    with open_site(tmp_path / "site", options=options) as site:
        carried = site.carry(*MANY, "advanced.pause_patience=0")

        check_carried(site, carried)
        assert carried.of_kind(RunPaused) == []
        reasons = [event.reason for event in carried.of_kind(LimitsChanged)]
        assert "Too many logins" in "".join(reasons)
        assert len(reasons) == len(set(reasons))


@pytest.mark.parametrize("rung", ["shell", "sftp", "scp"])
@pytest.mark.parametrize("limit", ["MaxSessions 1", "MaxStartups 1:100:1"])
def test_a_host_with_few_channels_or_logins_gets_all_files(tmp_path, rung, limit):
    make_data(tmp_path / "site", tiny_files=30)
    rungs = {"shell": (), "sftp": sftp_only(), "scp": scp_only(tmp_path)}
    with open_site(tmp_path / "site", options=(limit, *rungs[rung])) as site:
        carried = site.carry(*MANY, "advanced.pause_patience=0")

        check_carried(site, carried)
        assert carried.of_kind(RunPaused) == []


def test_a_host_that_allows_no_channel_is_reported_with_what_to_do(tmp_path):
    make_data(tmp_path / "site", tiny_files=1)
    with open_site(tmp_path / "site", options=("MaxSessions 0",)) as site:
        carried = site.carry("advanced.pause_patience=1")

        check_law(carried)
        assert [event.problem.code for event in carried.of_kind(RunPaused)] == ["ssh.no-channel"]
        assert (carried.code, carried.sums.problem.code) == (3, "ssh.no-channel")
        assert "MaxSessions" in carried.sums.problem.hint


@pytest.mark.parametrize("rung", ["scp", "sftp"])
def test_a_host_without_a_shell_gets_all_files(tmp_path, rung):
    make_data(tmp_path / "site")
    options = scp_only(tmp_path) if rung == "scp" else sftp_only()
    with open_site(tmp_path / "site", options=options) as site:
        carried = site.carry()

        check_carried(site, carried)
        opened = [event for event in carried.of_kind(ChannelChanged) if event.state == "open"]
        assert {event.rung for event in opened} == {rung}


@pytest.fixture(params=["shell", "sftp", "scp"])
def small(request, tmp_path):
    """A site on one of the ways, with a file that is larger than the disk of a megabyte."""
    make_data(tmp_path / "site", tiny_files=30, large=3_000_000)
    options = {"shell": (), "sftp": sftp_only(), "scp": scp_only(tmp_path)}[request.param]
    with open_site(tmp_path / "site", options=options) as site, small_disk(site, "2m"):
        yield site


def name_large(site):
    """Return the files that do not fit, as events name them."""
    large = [path for path in site.data.rglob("*") if path.is_file() and path.stat().st_size > 2e6]
    return {os.fsencode(path.relative_to(site.data)) for path in large}


def test_a_file_that_does_not_fit_waits_and_the_others_are_sent(small):
    full = small.carry("advanced.pause_patience=0")
    enlarge(small)
    after = small.carry()

    check_law(full)
    waiting = {event.path for event in full.of_kind(FileWaiting)}
    assert waiting  # a sparse file may fit after all
    assert waiting <= name_large(small)
    assert {event.problem.code for event in full.of_kind(FileWaiting)} == {"staging.full"}
    assert full.sums.verified == full.sums.found - len(waiting)
    assert (full.code, full.sums.problem.code) == (3, "staging.full")
    assert full.of_kind(RunPaused) == []
    check_carried(small, after)


def test_a_run_is_paused_until_what_did_not_fit_fits(small):
    large = name_large(small)
    room = once(RunPaused, lambda: enlarge(small))

    carried = small.carry(watch=room)

    paused = [event.problem.code for event in carried.of_kind(RunPaused)]
    assert paused == ["staging.full"]
    *_, last = [event.path for event in carried.of_kind(FileStaged)]
    assert last in large
    check_carried(small, carried)


def test_what_never_fits_waits_after_the_patience(small):
    carried = small.carry("advanced.pause_patience=2")

    check_law(carried)
    waiting = {event.path for event in carried.of_kind(FileWaiting)}
    assert waiting  # a sparse file may fit after all
    assert waiting <= name_large(small)
    assert [event.problem.code for event in carried.of_kind(RunPaused)] == ["staging.full"]
    assert (carried.code, carried.sums.problem.code) == (3, "staging.full")


def test_an_unattended_run_leaves_what_does_not_fit_to_the_next_one(small):
    carried = small.carry(patience=inf)

    check_law(carried)
    waiting = {event.path for event in carried.of_kind(FileWaiting)}
    assert waiting  # a sparse file may fit after all
    assert waiting <= name_large(small)
    assert carried.of_kind(RunPaused) == []


def test_what_is_sent_before_the_staging_area_is_full_is_verified(small):
    fill(small, leave=300_000)

    full = small.carry("advanced.pause_patience=0")

    check_law(full)
    assert (full.code, full.sums.problem.code) == (3, "staging.full")
    staged = {event.path for event in full.of_kind(FileStaged)}
    assert len(staged) > 10
    assert {event.path for event in full.of_kind(FileVerified)} == staged
    assert full.sums.failed == 0
    assert full.sums.verified == len(staged)


def test_a_full_staging_area_that_gets_room_is_used_again(small):
    fill(small, leave=100_000)
    room = once(RunPaused, lambda: enlarge(small))

    carried = small.carry(watch=room)

    check_law(carried)
    assert [event.problem.code for event in carried.of_kind(RunPaused)] == ["staging.full"]
    assert len(carried.of_kind(RunResumed)) == 1
    waiting = {event.path for event in carried.of_kind(FileWaiting)}
    assert waiting <= name_large(small)
    assert carried.sums.verified == carried.sums.found - len(waiting)


@pytest.mark.parametrize("known", [False, True])
def test_a_staging_area_that_is_full_from_the_beginning_is_used_when_it_gets_room(small, known):
    if known:  # from an earlier run, after which no probe is needed
        small.carry("advanced.pause_patience=0")
        (small.data / "bob" / "Long run" / "new.csv").write_bytes(bytes(100_000))
    fill(small)
    room = once(RunPaused, lambda: enlarge(small))

    carried = small.carry(watch=room)

    (small.server.box_location / "filler").unlink()
    left = [path for path in small.server.box_location.glob(".mydata-probe*") if path.is_file()]
    assert left == []
    assert [event.problem.code for event in carried.of_kind(RunPaused)] == ["staging.full"]
    reasons = {event.reason for event in carried.of_kind(LimitsChanged)}
    slow = {reason for reason in reasons if reason.startswith("a round trip takes")}  # busy machine
    assert reasons - slow <= {"", "staging.full"}
    check_law(carried)
    waiting = {event.path for event in carried.of_kind(FileWaiting)}
    assert waiting <= (name_large(small) if known else set())
    assert carried.sums.verified == carried.sums.found - len(waiting)


def test_sftp_without_a_reason_says_so(tmp_path):
    make_data(tmp_path / "site", tiny_files=1, large=3_000_000)
    options = ("ForceCommand internal-sftp -P statvfs",)
    with open_site(tmp_path / "site", options=options) as site, small_disk(site, "2m"):
        ended = site.carry("transfer.attempts=1")

        check_law(ended)
        failed = {event.path: event.problem for event in ended.of_kind(FileFailed)}
        assert failed.keys() == name_large(site)
        assert all("gives no reason" in problem.message for problem in failed.values())
        assert all("quota" in problem.hint for problem in failed.values())


def test_a_file_that_vanishes_before_it_is_read_fails_alone(site):
    path = site.data / "bob" / "Long run" / "part_0.csv"

    def vanish(event):
        if isinstance(event, FileWanted) and event.path.endswith(b"part_0.csv"):
            path.unlink()

    carried = site.carry(watch=vanish)

    check_law(carried)
    (fate,) = carried.of_kind(FileFailed) + carried.of_kind(FileWaiting)
    assert fate.problem.code == "file.vanished"
    assert carried.sums.verified == carried.sums.found - 1
    assert site.find_wrongs() == []


def test_a_file_that_grows_is_left_for_a_later_run(site):
    path = site.data / "bob" / "Long run" / "part_0.csv"

    def grow(event):
        if isinstance(event, FileWanted) and event.path.endswith(b"part_0.csv"):
            with path.open("ab") as file:
                file.write(b"more")

    carried = site.carry(watch=grow)

    check_law(carried)
    (fate,) = carried.of_kind(FileFailed) + carried.of_kind(FileWaiting)
    assert fate.problem.code == "file.changed"
    assert site.find_wrongs(left_out=[path]) == []
    check_carried(site, site.carry())
