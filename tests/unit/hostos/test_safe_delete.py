"""What goes is exactly the file that was looked at, whatever others do in between."""

import os
import subprocess
import sys
from contextlib import closing, suppress
from hashlib import md5

import pytest

from mydata_like.core.deletion import DeletedFile
from mydata_like.core.errors import Cancelled, FileChangedError
from mydata_like.core.file_access import open_shared
from mydata_like.core.model import DatafileId, DatasetId, Entry, EntryState
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.safe_delete import SafeDirectories, SafeDirectory
from mydata_like.state.state_files import DeletionLogFile
from tests.builders import a_file
from tests.privileges import IS_ROOT, needs_fifos, needs_links
from tests.settled import settle
from tests.site import Picture
from tests.trials.racing import FRAME, racing

needs_posix = pytest.mark.skipif(
    os.name == "nt", reason="Windows lets nobody replace, or rename a folder above, an open file"
)
LONG_AGO = 1_600_000_000
NAME = "a/b/scan.tif"


@pytest.fixture
def folder(tmp_path):
    a_file(tmp_path / "data" / NAME, 1000, LONG_AGO)
    a_file(tmp_path / "outside.tif", 1000, LONG_AGO)
    settle(tmp_path / "data" / NAME)
    return tmp_path / "data"


@pytest.fixture
def premises(folder):
    with closing(SafeDirectory(os.fsencode(folder))) as opened:
        yield opened


def entry(name=NAME, size=1000):
    key = os.fsencode(name)
    return Entry(key, size, LONG_AGO * 10**9, EntryState.VERIFIED, DatasetId(1), "0" * 32)


def delete(premises, between, name=NAME):
    """Read a file, do something between, delete it; return why it was not."""
    with premises.hold(entry(name)) as held:
        held.measure(CancelFlag())
        between()
        with pytest.raises(FileChangedError) as refusal:
            held.delete(lambda: None)
    return refusal.value.problem_code


def test_a_file_is_measured_and_deleted_and_its_folder_stays(premises, folder):
    content = (folder / NAME).read_bytes()
    with premises.hold(entry()) as held:
        assert held.measure(CancelFlag()) == md5(content).hexdigest()
        held.delete(lambda: None)

    assert list((folder / "a/b").iterdir()) == []


@needs_links
def test_a_link_that_takes_the_files_place_stays_and_so_does_what_it_leads_to(premises, folder):
    def swap():
        (folder / NAME).rename(folder.parent / "old.tif")
        (folder / NAME).symlink_to(folder.parent / "outside.tif")

    assert delete(premises, swap) in ("free.changed", "free.link")
    assert (folder / NAME).is_symlink()
    assert (folder.parent / "outside.tif").exists()


def test_a_new_file_that_takes_the_files_place_stays(premises, folder):
    def swap():
        (folder / NAME).rename(folder.parent / "old.tif")
        a_file(folder / "new.tif", 1000, LONG_AGO).rename(folder / NAME)

    assert delete(premises, swap) == "free.changed"
    assert (folder / NAME).exists()
    assert (folder.parent / "old.tif").exists()


def test_a_file_that_is_not_there_any_more_is_told_so(premises, folder):
    assert delete(premises, lambda: (folder / NAME).rename(folder / "moved.tif")) == "free.gone"
    assert (folder / "moved.tif").exists()


def test_an_empty_key_is_all_of_the_data_directory(premises, folder, tmp_path):
    a_file(tmp_path / "usb/old.tif", 10, LONG_AGO)
    usb = os.fsencode((tmp_path / "usb").as_posix())
    with closing(SafeDirectory(usb, usb + b"/")) as other:
        found = SafeDirectories([premises, other]).find(b"")
        assert [(one.key, one.problem) for one in found] == [(b"a/b/scan.tif", None)]


@pytest.mark.skipif(os.name != "nt", reason="POSIX has no drives")
def test_a_whole_drive_is_a_source(folder):
    drive = os.fsencode(folder.drive)
    row = entry((folder / NAME).as_posix())
    with closing(SafeDirectory(drive, drive + b"/")) as opened:
        premises = SafeDirectories([opened])
        assert [(one.key, one.problem) for one in premises.find(row.key)] == [(row.key, None)]
        with premises.hold(row) as held:
            held.measure(CancelFlag())
            held.delete(lambda: None)
    assert not (folder / NAME).exists()


@needs_posix
def test_a_new_file_that_replaces_the_file_stays(premises, folder):
    def swap():
        a_file(folder / "new.tif", 1000, LONG_AGO).replace(folder / NAME)

    assert delete(premises, swap) == "free.changed"
    assert (folder / NAME).exists()
    assert [path.name for path in (folder / "a/b").iterdir()] == ["scan.tif"]


def test_a_file_that_is_written_to_after_it_was_read_stays(premises, folder):
    def write():
        with (folder / NAME).open("r+b") as opened:
            opened.write(b"new")
        os.utime(folder / NAME, (LONG_AGO, LONG_AGO))

    assert delete(premises, write) == "free.changed"
    assert (folder / NAME).read_bytes()[:3] == b"new"


@needs_posix
def test_a_folder_that_is_replaced_by_a_link_leads_nowhere_else(premises, folder):
    """The folder stays open: what has its name by now is not looked at."""
    elsewhere = a_file(folder.parent / "elsewhere/b/scan.tif", 1000, LONG_AGO).parent.parent
    with premises.hold(entry()) as held:
        held.measure(CancelFlag())
        (folder / "a").rename(folder / "old")
        (folder / "a").symlink_to(elsewhere)
        held.delete(lambda: None)

    assert (elsewhere / "b/scan.tif").exists()
    assert not (folder / "old/b/scan.tif").exists()


def test_another_folder_that_gets_the_folders_name_leads_nowhere_else(premises, folder):
    elsewhere = a_file(folder.parent / "elsewhere/a/b/scan.tif", 1000, LONG_AGO)
    folder.rename(folder.parent / "old")
    (folder.parent / "elsewhere").rename(folder)
    with suppress(FileChangedError), premises.hold(entry()) as held:
        held.measure(CancelFlag())
        held.delete(lambda: None)

    assert (folder / NAME).exists()
    assert not elsewhere.exists()


@needs_links
def test_a_folder_that_is_a_link_is_not_entered(premises, folder):
    (folder / "way").symlink_to(folder / "a")

    with pytest.raises(FileChangedError) as refusal, premises.hold(entry("way/b/scan.tif")):
        pass
    assert refusal.value.problem_code == "free.link"
    (found,) = premises.find(b"way")
    assert found.problem.code == "free.link"


def test_what_is_open_to_be_written_stays(premises, folder):
    with (folder / NAME).open("ab"):
        assert delete(premises, lambda: None) == "free.open"
    assert (folder / NAME).exists()


def test_what_is_open_to_be_written_by_a_program_that_shares_it_stays(premises, folder):
    opened = open_shared(os.fsencode(folder / NAME), os.O_WRONLY | os.O_APPEND)
    try:
        assert delete(premises, lambda: None) == "free.open"
    finally:
        os.close(opened)
    assert (folder / NAME).exists()


@pytest.mark.skipif(os.name != "nt", reason="POSIX does not tell of readers")
def test_what_another_program_reads_without_sharing_it_stays(premises, folder):
    with (folder / NAME).open("rb"):
        assert delete(premises, lambda: None) == "free.open"
    assert (folder / NAME).exists()


@needs_posix
def test_a_process_that_opens_the_file_to_write_does_not_disturb_the_program(premises, folder):
    with premises.hold(entry()) as held:
        held.measure(CancelFlag())
        with (folder / NAME).open("ab"), pytest.raises(FileChangedError):
            held.delete(lambda: None)
        with (folder / NAME).open("rb"):
            held.delete(lambda: None)
    assert not (folder / NAME).exists()


DELETE_AS_NOBODY = """
import os, sys
from mydata_like.core.errors import FileChangedError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.safe_delete import SafeDirectory
from tests.unit.hostos.test_safe_delete import entry

with SafeDirectory(os.fsencode(sys.argv[1])) as premises:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    with premises.hold(entry()) as held:
        held.measure(CancelFlag())
        try:
            held.delete(lambda: None)
        except FileChangedError as error:
            print(error.problem_code)
"""


@pytest.mark.process
@pytest.mark.skipif(
    sys.platform != "linux" or not IS_ROOT, reason="only root can become another account"
)
@pytest.mark.parametrize("mode", ["ab", "r+b"])
def test_a_file_that_another_account_has_open_stays(folder, mode):
    """The system gives a lease only to the owner: it refuses to say who writes to the file."""
    os.chown(folder / "a/b", 65534, 65534)
    with (folder / NAME).open(mode) as other:
        words = [sys.executable, "-c", DELETE_AS_NOBODY, str(folder)]
        ended = subprocess.run(words, capture_output=True, text=True, check=True)
        other.seek(0, os.SEEK_END)
        other.write(b"frame")

    assert ended.stdout.split() == ["free.other-account"]
    assert (folder / NAME).read_bytes().endswith(b"frame")


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "darwin", reason="macOS does not tell of writers")
def test_what_is_written_while_files_are_deleted_is_never_lost(tmp_path):
    count, deleted, log = 1000, 0, tmp_path / "freed.jsonl"
    files = [a_file(tmp_path / "data" / f"{n}.dat", 1000, LONG_AGO) for n in range(count)]
    settle(files[-1])
    # Of ten files, the racer leaves one alone: on a busy computer it may win all its races.
    deeds = {
        file.name: ("append", "overwrite")[number % 2]
        for number, file in enumerate(files)
        if number % 10
    }
    with (
        closing(SafeDirectory(os.fsencode(tmp_path / "data"))) as premises,
        DeletionLogFile(log, SystemClock()) as noted,
        racing(log, tmp_path / "data", deeds, seconds=0.0002) as racer,
    ):
        for file in files:
            row = entry(file.name)
            with premises.hold(row) as held:
                # The other program starts now. Reading the file gives it the time to write.
                noted.note(DeletedFile(row.key, 1000, row, DatafileId(1)))
                with suppress(FileChangedError):
                    held.measure(CancelFlag())
                    held.delete(lambda: None)
                    deleted += 1

    there = [name for name in racer.written if (tmp_path / "data" / name).exists()]
    assert there == racer.written
    assert all(FRAME in (tmp_path / "data" / name).read_bytes() for name in there)
    assert there
    assert deleted
    left = sorted(path.name for path in (tmp_path / "data").iterdir())
    assert len(left) == count - deleted
    assert all(name.endswith(".dat") for name in left)


def test_all_that_is_in_a_folder_is_found(premises, folder):
    a_file(folder / "a/zero", 0)

    assert [(one.key, one.size, one.problem) for one in premises.find(b"a")] == [
        (NAME.encode(), 1000, None),
        (b"a/zero", 0, None),
    ]
    assert [one.key for one in premises.find(b"")] == [NAME.encode(), b"a/zero"]
    assert [one.key for one in premises.find(NAME.encode())] == [NAME.encode()]
    assert [one.problem.code for one in premises.find(b"a/gone")] == ["free.gone"]


@needs_fifos
def test_all_that_is_in_a_folder_is_found_links_and_pipes_with_a_reason(premises, folder):
    a_file(folder / "a/zero", 0)
    (folder / "a/link").symlink_to("b")
    os.mkfifo(folder / "a/pipe")

    found = {os.fsdecode(one.key): one.problem and one.problem.code for one in premises.find(b"a")}

    assert found == {
        NAME: None,
        "a/link": "free.link",
        "a/pipe": "free.special",
        "a/zero": None,
    }
    assert [one.key for one in premises.find(b"")] == [os.fsencode(name) for name in found]


def test_to_look_changes_nothing(premises, folder):
    before = Picture.take(folder)
    with premises.hold(entry()) as held:
        held.measure(CancelFlag())
    list(premises.find(b""))
    assert before.differences() == []


def test_reading_ends_when_a_stop_is_requested(premises):
    cancel = CancelFlag()
    cancel.set()
    with premises.hold(entry()) as held, pytest.raises(Cancelled):
        held.measure(cancel)
