"""Local files are deleted only when the server proves, at that moment, that it has them."""

import json
import os
import shutil
from contextlib import contextmanager
from time import time

import pytest

from mydata_like.app.cleanup_service import open_cleanup
from mydata_like.app.run_request import RunObserver
from mydata_like.app.settings_service import load_settings
from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.errors import AccessDeniedError, AlreadyRunningError, RunError
from mydata_like.core.extra_sources import SourceRequest, source_key
from mydata_like.demo.middleware import EMPTY_LIST, Fault
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_data_directory
from tests.builders import a_file
from tests.privileges import needs_links
from tests.site import QUICK, Picture, open_site

LONG_AGO = 1_600_000_000
NAMES = (
    "good",
    "changed",
    "touched",
    "rotten",
    "lost",
    "doubted",
    "rewritten",
    "hidden",
    "unseen",
    "kept",
)
TINY = "alice/Tiny/raw"
RECENT = "alice/Recent/a.tif"
COMMANDED = "alice/Commanded"
WHOLE = "bob/Whole/deep"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site where a run has brought every file to the server, tiny ones in an archive.

    All tests share it, in any order: what one changes or deletes, no other one uses.
    """
    folder = tmp_path_factory.mktemp("site")
    for name in NAMES:
        for place in ("alice/Scan", "bob/Scan/deep"):
            a_file(folder / "data" / place / f"{name}.tif", 1000 + len(name), LONG_AGO)
    for name in ("a", "b"):
        for place in (COMMANDED, WHOLE):
            a_file(folder / "data" / place / f"{name}.tif", 20, LONG_AGO)
    for number in range(12):
        a_file(folder / "data" / TINY / f"{number}.txt", 10 + number, LONG_AGO + number)
    a_file(folder / "data" / RECENT, 50, time() - 3600)
    with open_site(folder) as opened:
        assert opened.carry('archive.rules=["*.txt below 1 kB from 2 files"]').code == 0
        yield opened


def free(site, *names, delete=True, settings=()):
    """Free these files or folders; return what was freed, and why each other file was kept."""
    observer = RunObserver()
    chosen = load_settings(site.config, (*QUICK, *settings)).settings
    with open_cleanup(chosen, site.config, observer, delete=delete) as freeing:
        fates = list(freeing([site.data / name for name in names]))
    freed = [os.fsdecode(fate.key) for fate in fates if isinstance(fate, DeletedFile)]
    kept = {os.fsdecode(f.key): f.problem.code for f in fates if isinstance(f, KeptFile)}
    assert len(fates) == len(freed) + len(kept)
    return freed, kept


def number_of(site, name):
    """Return the server's number of alice's file of this name."""
    (found,) = [
        file.id
        for file in site.server.datafiles()
        if file.filename == name and file.directory in (None, "")
    ]
    return found


@contextmanager
def failing(site, path, skip=0):
    """Let the server show nothing at this path, as it does to strangers."""
    site.server.faults.add(Fault(action=EMPTY_LIST, path=path, count=None, skip=skip))
    try:
        yield
    finally:
        site.server.faults.clear()


def deeds(site):
    file = site.state / "freed.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def check_kept(site, name, code, *, settings=()):
    before, noted = Picture.take(site.data), len(deeds(site))
    assert free(site, name, settings=settings) == ([], {name: code})
    assert before.differences() == []
    assert len(deeds(site)) == noted


def test_a_safe_file_is_deleted_and_nothing_else_is_touched(site):
    name = "alice/Scan/good.tif"
    before = Picture.take(site.data)

    assert free(site, name) == ([name], {})

    assert before.differences() == ["alice/Scan", name]
    noted = deeds(site)[-1]
    assert (noted["path"], noted["deleted"], noted["size"]) == (name, True, 1004)
    (stored,) = [file for file in site.server.datafiles() if file.id == noted["datafile"]]
    assert (stored.md5sum, stored.dataset) == (noted["md5"], noted["dataset"])


def test_to_look_deletes_nothing(site):
    before = Picture.take(site.data)
    assert free(site, "bob/Scan/deep/good.tif", delete=False)[0] == ["bob/Scan/deep/good.tif"]
    assert before.differences() == []


def test_a_file_that_has_grown_since_is_kept(site):
    with (site.data / "alice/Scan/changed.tif").open("ab") as growing:
        growing.write(b"more")
        growing.flush()
        check_kept(site, "alice/Scan/changed.tif", "free.changed")


def test_a_file_of_another_time_is_kept(site):
    os.utime(site.data / "alice/Scan/touched.tif", (LONG_AGO + 5, LONG_AGO + 5))
    check_kept(site, "alice/Scan/touched.tif", "free.changed")


def test_a_file_of_other_bytes_with_the_same_size_and_time_is_kept(site):
    path = site.data / "alice/Scan/rotten.tif"
    path.write_bytes(b"x" * path.stat().st_size)
    os.utime(path, (LONG_AGO, LONG_AGO))
    before = Picture.take(site.data)

    _, kept = free(site, "alice/Scan/rotten.tif")

    # Written a moment ago it says so; later its bytes give it away.
    assert kept["alice/Scan/rotten.tif"] in ("free.settling", "free.other-bytes")
    assert before.differences() == []


def test_a_file_that_a_program_has_open_to_write_is_kept(site):
    with (site.data / "alice/Scan/kept.tif").open("r+b"):
        before = Picture.take(site.data)
        assert free(site, "alice/Scan/kept.tif") == ([], {"alice/Scan/kept.tif": "free.open"})
    assert before.differences() == []
    assert [deed["deleted"] for deed in deeds(site)[-2:]] == [True, False]


def test_a_file_whose_record_is_gone_is_kept(site):
    site.server.lose(number_of(site, "lost.tif"))
    check_kept(site, "alice/Scan/lost.tif", "free.no-record")


def test_a_file_whose_copy_is_not_verified_any_more_is_kept(site):
    site.server.unverify(number_of(site, "doubted.tif"))
    check_kept(site, "alice/Scan/doubted.tif", "free.no-replica")


def test_a_file_that_was_replaced_on_the_server_is_kept(site):
    site.server.rewrite(number_of(site, "rewritten.tif"), "0" * 32)
    check_kept(site, "alice/Scan/rewritten.tif", "free.differs")


def test_where_the_server_shows_an_empty_list_nothing_is_freed(site):
    with failing(site, "mydata_dataset_file/"):
        check_kept(site, "alice/Scan/unseen.tif", "free.no-record")


def test_nothing_is_freed_where_the_server_does_not_recognise_us(site):
    with failing(site, "user/"), pytest.raises(AccessDeniedError):
        free(site, "alice/Scan/hidden.tif")
    assert (site.data / "alice/Scan/hidden.tif").exists()


def test_rights_that_are_lost_in_the_meantime_keep_all_that_follow(site):
    with failing(site, "user/", skip=1):
        check_kept(site, "alice/Scan/hidden.tif", "server.denied")


def test_nothing_is_freed_with_a_key_that_the_server_refuses(site, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_API_KEY", "0" * 40)
    with pytest.raises(AccessDeniedError):
        free(site, "alice/Scan/hidden.tif")
    assert (site.data / "alice/Scan/hidden.tif").exists()


@needs_links
def test_a_link_in_the_place_of_a_file_is_kept_and_so_is_what_it_leads_to(site):
    path, aside = site.data / "bob/Scan/deep/kept.tif", site.data.parent / "kept.tif"
    path.rename(aside)
    path.symlink_to(aside)
    check_kept(site, "bob/Scan/deep/kept.tif", "free.link")
    assert aside.exists()


@needs_links
def test_what_lies_behind_a_linked_folder_is_kept(site):
    (site.data / "alice/Way").symlink_to(site.data / "bob/Scan")
    check_kept(site, "alice/Way/deep/hidden.tif", "free.link")
    (site.data / "alice/Way").unlink()


def test_what_is_unknown_outside_or_gone_is_kept_with_a_reason(site):
    a_file(site.data / "alice/Scan/new.tif", 5, LONG_AGO)
    outside = a_file(site.data.parent / "elsewhere.tif", 5, LONG_AGO)

    freed, kept = free(site, "alice/Scan/new.tif", outside, "../elsewhere.tif", "alice/none.tif")

    assert freed == []
    assert (
        sorted(kept.values())
        == ["free.gone", "free.outside", "free.outside", "free.unknown"][: len(kept)]
    )
    assert outside.exists()


def test_a_file_that_changed_within_the_settling_time_is_kept(site):
    check_kept(site, RECENT, "free.settling", settings=["filters.settle_seconds=7200"])
    assert free(site, RECENT) == ([RECENT], {})


def test_the_command_lists_every_file_and_acts_only_when_confirmed(site):
    a_file(site.data / COMMANDED / "new.tif", 5, LONG_AGO)
    looked = site.command("free", str(site.data / COMMANDED), "--dry-run", "--json")
    assert (looked.code, looked.sums["freed"], looked.sums["kept"]) == (1, 2, 1)
    assert looked.sums["asked"] == 3

    path = site.data / COMMANDED / "a.tif"
    asked = site.command("free", str(path))
    assert asked.code == 2
    assert "use --yes" in asked.complaints
    assert path.exists()

    told = site.command("free", str(path), "--yes")
    assert (told.code, told.output) == (0, "1 file, 20 bytes deleted; 0 kept.\n")
    assert not path.exists()


def test_nothing_is_freed_while_a_run_is_at_work(site):
    with (
        lock_data_directory(site.state, os.fsencode(site.data), SystemClock()),
        pytest.raises(AlreadyRunningError),
    ):
        free(site, "bob")
    assert (site.data / "bob/Scan/deep/lost.tif").exists()


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        (("transfer.method=http",), "free.http-only"),
        (
            ("server.url=http://data.example.org", "server.allow_http=true"),
            "free.unproven-server",
        ),
    ],
)
def test_nothing_is_freed_where_nothing_can_be_proven(site, setting, code):
    with pytest.raises(RunError) as refusal:
        free(site, "bob", settings=setting)
    assert refusal.value.problem_code == code


def test_files_of_an_archive_go_when_its_index_on_the_server_has_them(site):
    os.utime(site.data / TINY / "3.txt", (LONG_AGO, LONG_AGO))
    freed, kept = free(site, TINY)

    assert len(freed) == 11
    assert kept == {f"{TINY}/3.txt": "free.changed"}
    assert [path.name for path in (site.data / TINY).iterdir()] == ["3.txt"]


def test_a_dropped_source_is_freed_and_its_neighbours_are_not(site):
    folder = site.data.parent / "dropped"
    wanted = [a_file(folder / f"{name}.tif", 20, LONG_AGO) for name in ("a", "b")]
    beside = a_file(site.data.parent / "beside.tif", 20, LONG_AGO)
    assert site.carry(sources=[SourceRequest(source_key(folder))]).code == 0
    late = a_file(folder / "late.tif", 20, LONG_AGO)

    freed, kept = free(site, folder, beside)

    assert freed == [path.as_posix() for path in wanted]
    assert kept == {late.as_posix(): "free.unknown", str(beside): "free.outside"}
    assert [path.exists() for path in (*wanted, late, beside)] == [False, False, True, True]
    shutil.rmtree(folder)
    assert free(site, wanted[0])[1] == {wanted[0].as_posix(): "free.gone"}


@needs_links
def test_a_folder_is_freed_file_by_file_and_stays(site):
    link = site.data / WHOLE / "b.tif"
    link.rename(site.data.parent / "b.tif")
    link.symlink_to(site.data.parent / "b.tif")

    freed, kept = free(site, "bob/Whole")

    assert freed == [f"{WHOLE}/a.tif"]
    assert kept == {f"{WHOLE}/b.tif": "free.link"}
    assert (site.data / WHOLE).is_dir()
    assert link.is_symlink()
