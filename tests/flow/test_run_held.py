"""Changed files: a file that went bad here does not destroy the only good copy there."""

import json
import os
import time
from pathlib import Path

import pytest

from mydata_like.app.cleanup_service import open_cleanup
from mydata_like.app.run_request import RunObserver
from mydata_like.app.settings_service import load_settings
from mydata_like.core.deletion import KeptFile
from mydata_like.core.errors import HELD, KEPT
from mydata_like.core.events import (
    FileReplaced,
    FileSkipped,
    FileVerified,
    FileWaiting,
    FileWanted,
    Notice,
    TransferStarted,
)
from tests.invariants import check_law
from tests.site import QUICK, open_site, yield_processor
from tests.sshd_fixture import needs_sshd, scp_only

pytestmark = [pytest.mark.e2e, needs_sshd]

OLD = 1_600_000_000
FOLDER = "alice/Scan"
SIZE = 3000
RULES = 'archive.rules=["*.dat below 100 kB from 10 files"]'


def write(path: Path, content: bytes, modified: int = OLD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (modified, modified))
    return path


def make(data: Path, count: int, suffix: str = ".tif") -> list[Path]:
    return [
        write(data / FOLDER / f"{number:03}{suffix}", os.urandom(SIZE)) for number in range(count)
    ]


def rewrite(paths, later=100):
    for path in paths:
        write(path, os.urandom(path.stat().st_size), OLD + later)


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens a site with so many verified files."""
    stack = []

    def open_it(count, suffix=".tif", *settings):
        files = make(tmp_path / "data", count, suffix)
        context = open_site(tmp_path)
        site = context.__enter__()
        stack.append(context)
        ended = site.carry(*settings)
        assert (ended.code, ended.sums.verified) == (0, count)
        return site, files

    yield open_it
    for context in stack:
        context.__exit__(None, None, None)


def stored(site):
    """Return the bytes of every record on the server, by name."""
    return {file.filename: file.path.read_bytes() for file in site.server.datafiles()}


def held(ended):
    return {
        os.fsdecode(event.path)
        for event in ended.of_kind(FileWaiting)
        if event.problem.code == HELD
    }


def key(path):
    return f"{FOLDER}/{path.name}"


def leave_unverified(site, path):
    """Send a file that the server does not verify yet."""
    site.server.hold_verification()
    write(path, os.urandom(SIZE))
    assert site.carry("advanced.verify_patience=0.2").sums.waiting == 1


def contradict(site, path):
    """Let `free` find that the server's copy is damaged."""
    (record,) = [file for file in site.server.datafiles() if file.filename == path.name]
    record.path.write_bytes(record.path.read_bytes()[::-1])
    assert site.command("free", "--yes", str(path)).code == 1


@pytest.mark.parametrize("doubt", [leave_unverified, contradict])
def test_a_file_that_shrinks_before_its_copy_is_verified_is_held(opened, doubt):
    site, files = opened(2)
    path = files[0].with_name("new.tif") if doubt is leave_unverified else files[0]
    doubt(site, path)
    before = stored(site)
    write(path, b"", OLD + 100)

    ran = site.carry("advanced.verify_patience=0.2")

    assert held(ran) == {key(path)}
    assert (ran.code, stored(site)) == (0, before)
    assert "verified copy" not in "".join(it.problem.message for it in ran.of_kind(FileWaiting))
    site.server.release_verification()


def test_files_that_became_empty_are_held_and_every_view_says_so(opened):
    site, files = opened(20)
    before = stored(site)
    for path in files:
        write(path, b"", OLD + 100)

    scan = site.command("scan")
    ran = site.command("run")
    again = site.command("run")
    status, record = site.command("status"), site.command("status", "--json")
    where = site.command("where", str(files[1]))
    listed = json.loads(site.command("changed", "list", "--json").output)["held"]

    assert stored(site) == before
    assert (scan.code, ran.code, again.code) == (0, 0, 0)
    assert "Held until you choose: 20 of" in scan.output
    assert scan.output.count(key(files[1]) + ":") == 1
    sentence = "The local file (0 bytes, changed on 2020-09-13 12:28 UTC) is much smaller than the"
    hint = f'mydata-like changed replace "{key(files[1])}"'
    assert ran.output.count(f"Held: {FOLDER}/") == 20
    for text in (scan.output, ran.output, where.output):
        assert sentence in text
        assert "verified copy on the server (3.0 kB, verified on" in text
        assert hint in text
    assert "0 verified + 20 waiting + 0 skipped + 0 failed" in ran.output
    assert "are safe" not in ran.output + again.output + status.output + where.output
    assert "20 changed files are held until you choose" in ran.output
    assert "20 changed files are held until you choose" in status.output
    assert json.loads(record.output)["held"] == 20
    assert json.loads(record.output)["at_risk"]["files"] == 20
    assert "the next run takes it" not in where.output
    assert ("Note: Changed files wait" in ran.output, "Note: Changed" in again.output) == (
        True,
        False,
    )
    assert {(one["size"], one["copy"]["size"], one["reason"]) for one in listed} == {
        (0, SIZE, "shrunk")
    }


def test_a_file_that_shrank_below_half_is_held_and_one_above_it_is_sent(opened):
    site, (small, half) = opened(2)
    before = stored(site)
    write(small, os.urandom(SIZE // 2 - 1), OLD + 100)
    write(half, os.urandom(SIZE // 2), OLD + 100)

    ended = site.carry()

    check_law(ended)
    assert held(ended) == {key(small)}
    assert stored(site) == before | {half.name: half.read_bytes()}


@pytest.mark.parametrize("runs", [1, 2])
def test_the_brake_holds_what_follows_twenty_rewritten_files_of_a_dataset(opened, runs):
    site, files = opened(40)
    before = stored(site)
    for number in range(runs):
        rewrite(files[number * 40 // runs : (number + 1) * 40 // runs])
        ended = site.carry()
        check_law(ended)
        assert ended.code == 0

    now = stored(site)
    assert sum(now[path.name] == path.read_bytes() for path in files) == 20
    assert sum(now[name] == before[name] for name in now) == 20
    assert len(held(ended)) == 20
    assert len(held(site.carry())) == 20  # also in every later run

    assert site.command("changed", "replace", "--all").code == 0
    ended = site.carry()
    assert (ended.sums.verified, held(ended)) == (40, set())
    assert stored(site) == {path.name: path.read_bytes() for path in files}
    rewrite(files[:5], later=200)
    assert held(site.carry()) == set()  # the choice confirmed the changes of the dataset


def test_the_brake_spares_a_small_part_of_a_large_dataset(opened):
    site, files = opened(500)
    rewrite(files[:30])

    ended = site.carry()

    # 5 % of the dataset are 25 files.
    assert (len(held(ended)), ended.sums.verified) == (5, 495)


def test_without_a_brake_all_rewritten_files_are_sent_and_none_that_shrank(opened):
    site, files = opened(40)
    rewrite(files[1:])
    write(files[0], b"", OLD + 100)

    ended = site.carry("data.brake=0")

    assert (held(ended), ended.sums.verified) == ({key(files[0])}, 39)


def test_with_replace_nothing_is_held(opened):
    site, files = opened(30)
    rewrite(files[1:])
    write(files[0], b"", OLD + 100)

    ended = site.carry("data.changed=replace")

    assert (held(ended), ended.sums.verified) == (set(), 30)
    assert stored(site)[files[0].name] == b""


def test_with_hold_every_rewritten_file_is_held(opened):
    site, files = opened(3)
    before = stored(site)
    rewrite(files[:2])
    appended = write(files[2], files[2].read_bytes() + b"more", OLD + 100)

    ended = site.carry("data.changed=hold")

    assert held(ended) == {key(path) for path in files[:2]}
    assert stored(site) == before | {appended.name: appended.read_bytes()}
    assert held(site.carry("data.changed=hold")) == {key(path) for path in files[:2]}


def test_what_was_appended_to_is_sent_without_a_question_and_never_counts(opened):
    site, files = opened(30)
    for path in files:
        write(path, path.read_bytes() + b"more", OLD + 100)

    ended = site.carry()

    assert (held(ended), ended.sums.verified, ended.sums.sent) == (set(), 30, 30)
    rewrite(files[:20], later=200)
    assert held(site.carry()) == set()


def test_a_dry_run_says_what_appended_files_would_replace(opened):
    site, files = opened(1)
    write(files[0], files[0].read_bytes() + b"more", OLD + 100)

    scan = site.command("scan").output

    assert f"Would be replaced: {key(files[0])}: the server has 3.0 kB, verified on" in scan


def test_what_grew_with_another_beginning_is_rewritten(opened):
    site, files = opened(25)
    for path in files:
        write(path, os.urandom(SIZE + 100), OLD + 100)

    ended = site.carry()

    assert (len(held(ended)), ended.sums.verified) == (5, 20)


def test_what_may_be_replaced_freely_is_neither_held_nor_counted(opened):
    site, files = opened(30, ".log")
    rewrite(files[1:])
    write(files[0], b"", OLD + 100)

    ended = site.carry('data.replace_freely=["*.log"]')

    assert (held(ended), ended.sums.verified) == (set(), 30)


def test_a_kept_copy_is_kept_until_the_local_file_changes_again(opened):
    site, (path, _) = opened(2)
    before = stored(site)
    write(path, b"", OLD + 100)
    site.carry()

    chosen = site.command("changed", "keep", str(path))
    ended = site.carry()

    assert (chosen.code, "1 file: The copy on the server is kept" in chosen.output) == (0, True)
    (skipped,) = ended.of_kind(FileSkipped)
    assert (os.fsdecode(skipped.path), skipped.problem.code) == (key(path), KEPT)
    assert (held(ended), ended.sums.verified, ended.sums.skipped) == (set(), 1, 1)
    assert "user chose to keep the copy" in site.command("where", str(path)).output
    assert kept_by_free(site, path) == "free.changed"
    assert stored(site) == before
    ran, status = site.command("run").output, site.command("status")
    assert "1 changed file differs from what the server has" in ran
    assert "1 changed file differs from what the server has" in status.output
    assert "All other files are safe" in status.output
    assert json.loads(site.command("status", "--json").output)["kept"] == 1

    write(path, b"x", OLD + 200)
    assert held(site.carry()) == {key(path)}
    assert stored(site) == before


def kept_by_free(site, path):
    """Return why `free` keeps a file."""
    settings = load_settings(site.config, QUICK).settings
    with open_cleanup(settings, site.config, RunObserver(), delete=True) as freeing:
        (fate,) = freeing([path])
    assert isinstance(fate, KeptFile)
    assert path.exists()
    return fate.problem.code


def test_a_released_file_replaces_its_copy_and_only_in_the_state_that_was_chosen(opened):
    site, (path, other) = opened(2)
    for each in (path, other):
        write(each, b"", OLD + 100)
    site.carry()

    assert site.command("changed", "replace", FOLDER).code == 0
    write(other, b"x", OLD + 200)
    ended = site.carry()

    assert held(ended) == {key(other)}
    (verified,) = ended.of_kind(FileVerified)
    assert (os.fsdecode(verified.path), stored(site)[path.name]) == (key(path), b"")
    listed = json.loads(site.command("changed", "list", "--json").output)["held"]
    assert [one["path"] for one in listed] == [key(other)]


@pytest.mark.parametrize("full_check", [False, True])
def test_what_the_server_no_longer_has_as_verified_is_held_and_kept_all_the_same(
    opened, full_check
):
    site, files = opened(2)
    before = stored(site)
    write(files[0], b"", OLD + 100)
    write(files[1], b"", OLD + 100)
    site.carry()
    site.command("changed", "keep", str(files[1]))
    site.carry()
    for record in site.server.datafiles():
        site.server.unverify(record.id)

    for _ in range(2):
        ended = site.carry(*["advanced.full_check_days=0"] * full_check)

        assert held(ended) == {key(files[0])}
        skipped = {os.fsdecode(event.path) for event in ended.of_kind(FileSkipped)}
        assert skipped == {key(files[1])}
        assert stored(site) == before


def test_a_choice_shows_at_once_in_the_status_and_in_a_dry_run_which_does_not_take_it(opened):
    site, files = opened(3)
    for path in files:
        write(path, b"", OLD + 100)
    site.carry()
    site.command("changed", "replace", str(files[0]))
    site.command("changed", "keep", str(files[1]))

    for _ in range(2):
        scan, status = site.command("scan").output, site.command("status").output
        assert f"Would be replaced: {key(files[0])}: the server has 3.0 kB" in scan
        assert f"Held: {key(files[2])}" in scan
        assert "Held until you choose: 1 of" in scan
        assert "1 changed file is held" in status

    assert held(site.carry()) == {key(files[2])}


def test_what_a_shard_has_held_is_forgotten_after_a_run_over_everything(opened):
    site, (path,) = opened(1)
    for number in (1, 2):
        site.command("run", "--shard", f"{number}/2")
    write(path, b"", OLD + 100)
    for number in (1, 2):
        site.command("run", "--shard", f"{number}/2")
    assert "1 changed file is held" in site.command("status").output
    assert site.command("changed", "list").output.count(key(path)) == 1

    site.carry("data.changed=replace")

    status, listed = site.command("status").output, site.command("changed", "list").output
    assert ("held until" in status, "No changed files are held" in listed) == (False, True)


def test_no_choice_is_taken_for_a_file_that_no_run_has_seen_as_it_is(opened):
    site, (path,) = opened(1)
    write(path, b"", OLD + 100)
    site.carry()
    write(path, b"x", OLD + 200)

    chosen = site.command("changed", "replace", "--all")
    unknown = site.command("changed", "keep", "alice/Other")

    assert (chosen.code, "has changed again" in chosen.output) == (1, True)
    assert (unknown.code, "No changed file is held" in unknown.complaints) == (1, True)
    assert held(site.carry()) == {key(path)}


def test_a_restored_file_is_safe_and_no_longer_held(opened):
    site, files = opened(25)
    contents = [path.read_bytes() for path in files]
    rewrite(files)
    assert len(held(site.carry())) == 5
    for path, content in zip(files, contents, strict=True):
        write(path, content, OLD)
    ended = site.carry("data.brake=0")

    assert (held(ended), ended.sums.verified) == (set(), 25)
    assert json.loads(site.command("changed", "list", "--json").output) == {"held": []}


def test_a_held_file_that_is_deleted_here_is_no_longer_held(opened):
    site, (path, _) = opened(2)
    write(path, b"", OLD + 100)
    site.carry()
    path.unlink()
    began = int(time.time())
    while int(time.time()) == began:  # the ledger has whole seconds
        yield_processor()
    site.carry()

    assert json.loads(site.command("status", "--json").output)["held"] == 0
    assert json.loads(site.command("changed", "list", "--json").output) == {"held": []}


def test_with_a_lost_ledger_the_server_s_record_alone_holds_what_shrank(opened):
    site, files = opened(30)
    before = stored(site)
    for path in files[:3]:
        write(path, b"", OLD + 100)
    rewrite(files[3:])
    for file in site.ledgers:
        file.unlink()

    ended = site.carry()

    assert {key(path) for path in files[:3]} <= held(ended)
    # The three empty files count as well.
    assert (len(held(ended)), ended.sums.verified) == (13, 17)
    assert all(stored(site)[path.name] == before[path.name] for path in files[:3])


@pytest.mark.parametrize("lost", [False, True])
def test_members_of_archives_are_held_and_counted_as_files(opened, lost):
    site, files = opened(30, ".dat", RULES)
    write(files[0], b"", OLD + 100)
    rewrite(files[1:])
    if lost:
        for file in site.ledgers:
            file.unlink()

    ended = site.carry(RULES)

    assert key(files[0]) in held(ended)
    assert (len(held(ended)), ended.sums.verified) == (11, 19)
    assert len(held(site.carry(RULES))) == 11


def test_over_http_a_changed_file_is_held_and_can_only_be_kept(opened):
    http = "transfer.method=http"
    site, (path,) = opened(1, ".tif", http)
    write(path, path.read_bytes() + b"more", OLD + 100)

    ended = site.carry(http, "data.changed=replace")
    replaced = site.command("changed", "replace", "--all")
    kept = site.command("changed", "keep", "--all")

    assert (held(ended), ended.code) == ({key(path)}, 0)
    assert (replaced.code, "HTTP cannot replace" in replaced.output) == (1, True)
    assert kept.code == 0
    assert site.carry(http).sums.skipped == 1
    by_ssh = site.carry()
    assert (by_ssh.code, by_ssh.sums.skipped) == (0, 1)


def test_what_a_host_with_scp_only_cannot_keep_is_held_until_the_user_chooses(tmp_path):
    files = make(tmp_path / "data", 2)
    with open_site(tmp_path, options=scp_only(tmp_path)) as site:
        assert site.carry().sums.verified == 2
        before = stored(site)
        rewrite(files)
        assert held(site.carry()) == {key(path) for path in files}
        again = site.carry()
        status = site.command("status").output
        chosen = site.command("changed", "replace", str(files[0]))
        ended = site.carry()

        assert (held(again), again.of_kind(TransferStarted)) == ({key(p) for p in files}, [])
        assert "2 changed files are held until you choose" in status
        assert chosen.code == 0, chosen
        assert [event.kept_until for event in ended.of_kind(FileReplaced)] == [None]
        assert stored(site) == before | {files[0].name: files[0].read_bytes()}
        assert held(ended) == {key(files[1])}


def test_a_host_with_scp_only_gets_damaged_content_again(tmp_path):
    files = make(tmp_path / "data", 2)
    with open_site(tmp_path, options=scp_only(tmp_path)) as site:
        site.carry()
        (record,) = [it for it in site.server.datafiles() if it.filename == files[0].name]
        record.path.write_bytes(b"damaged")
        site.server.unverify(record.id)

        for _ in range(2):
            ended = site.carry("advanced.full_check_days=0")

        assert (ended.code, ended.sums.verified) == (0, 2)
        assert stored(site)[files[0].name] == files[0].read_bytes()


def test_a_dry_run_names_what_would_be_replaced_and_changes_nothing(opened):
    site, files = opened(30)
    for path in files:
        write(path, os.urandom(SIZE - 1), OLD + 100)

    scan = site.command("scan")
    ended = site.carry()

    assert scan.output.count("Would be replaced: alice/Scan/") == 20
    assert "Held until you choose: 10 of" in scan.output
    assert len(held(ended)) == 10
    assert len([event for event in ended.of_kind(FileWanted) if event.changed]) == 20


def test_the_notice_comes_once_a_day(opened):
    site, (path,) = opened(1)
    write(path, b"", OLD + 100)

    codes = [
        [notice.problem.code for notice in site.carry().of_kind(Notice)].count(HELD)
        for _ in range(3)
    ]

    assert codes == [1, 0, 0]


def test_files_that_only_the_server_has_stay_there(opened):
    site, files = opened(3)
    before = stored(site)
    files[0].unlink()

    site.carry()

    assert stored(site) == before


def test_a_server_may_release_the_brake_and_users_see_it(opened):
    site, files = opened(30)
    rewrite(files)
    assert len(held(site.carry())) == 10
    site.server.set_settings(site.uuid, {"data.brake": "0"})

    ended = site.run_events()

    assert (ended.code, ended.sums["verified"]) == (0, 30)
    assert "The server sets data.brake to 0 instead of 20" in site.command("status").output
