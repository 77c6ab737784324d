"""The entries of a folder are the same from the library and without it; what is odd is named."""

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mydata_like.core import hashing
from mydata_like.core.folder_entries import EntryReader
from mydata_like.core.openat import BY_DESCRIPTOR, OpenFolder
from tests.privileges import count_descriptors

LIBRARIES = {"library": hashing.LOADED, "interpreter": None}
CORE = Path(hashing.__file__).parent
COMPILER = shutil.which("gcc") or shutil.which("clang") or ""
YEAR_9999 = 253_370_764_800  # beyond 63 bits of nanoseconds

pytestmark = pytest.mark.skipif(not BY_DESCRIPTOR, reason="folders are opened by their paths here")


@pytest.fixture(params=LIBRARIES.values(), ids=LIBRARIES)
def library(request):
    if request.param is not None and not hasattr(request.param, "read_entries"):
        pytest.skip("the library was not built, or not for this")
    return request.param


def read_all(reader, folder, most=3):
    """Return the parts in which a folder is read."""
    parts = []
    with OpenFolder.open(os.fsencode(folder), 0) as opened:
        while (part := opened.read(reader, most)).names or part.others:
            parts.append(part)
    return parts


def test_files_are_described_and_others_are_named(tmp_path, library):
    names = [b"a", b"with space", b"\xff\n", b"n" * 255, b".hidden"]
    for number, name in enumerate(names):
        path = tmp_path / os.fsdecode(name)
        path.write_bytes(bytes(number * 1000))
        os.utime(path, ns=(0, (number - 1) * 10**18 + 123_456_789))
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "broken").symlink_to("nothing")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")

    parts = read_all(EntryReader(1000, library), tmp_path)

    assert sorted(it for part in parts for it in part.others) == [
        b"broken", b"folder", b"link", b"pipe",
    ]  # fmt: skip
    assert sorted(it for part in parts for it in part.names) == sorted(names)
    for part in parts:
        statuses = [(tmp_path / os.fsdecode(name)).lstat() for name in part.names]
        assert list(part.facts) == [
            fact
            for it in statuses
            for fact in (it.st_size, it.st_mtime_ns, it.st_ctime_ns, it.st_ino)
        ]
        assert list(part.devices) == [it.st_dev for it in statuses]
        assert list(part.modes) == [it.st_mode for it in statuses]
        assert part.size == sum(it.st_size for it in statuses)
        if statuses:
            assert part.newest_ns == max(it.st_mtime_ns for it in statuses)
        assert len(part.names) + len(part.others) <= 3


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no file system has such times here")
def test_a_file_of_a_far_time_is_only_named(library):
    with TemporaryDirectory(dir="/dev/shm") as folder:
        far = Path(folder, "far")
        far.touch()
        os.utime(far, (0, YEAR_9999))
        assert far.stat().st_mtime == YEAR_9999
        (part,) = read_all(EntryReader(1000, library), folder)
    assert (part.names, part.others) == ([], [b"far"])


def test_folders_can_be_read_in_turns_and_from_their_beginnings(tmp_path, library):
    reader, before = EntryReader(1000, library), count_descriptors()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for number in range(5):
            (tmp_path / folder / f"{folder}{number}").touch()
    for _ in range(2):
        with (
            OpenFolder.open(os.fsencode(tmp_path / "one"), 0) as one,
            OpenFolder.open(os.fsencode(tmp_path / "two"), 0) as two,
        ):
            found = [it.read(reader, 2) for _ in range(3) for it in (one, two)]
            assert sorted(name for part in found for name in part.names) == [
                f"{folder}{number}".encode() for folder in ("one", "two") for number in range(5)
            ]
            assert one.read(reader, 2).names == []
    assert count_descriptors() == before


def test_a_name_leads_to_the_entry_of_the_open_folder(tmp_path, library):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "file").write_bytes(b"content")
    with OpenFolder.open(os.fsencode(tmp_path / "one"), 0) as opened:
        (tmp_path / "one").rename(tmp_path / "two")
        (name,) = opened.read(EntryReader(1000, library), 1).names
        assert opened.look(name).stat(follow_symlinks=False).st_size == 7


def test_a_folder_that_cannot_be_read_raises_an_error(tmp_path, library):
    reader = EntryReader(1000, library)
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        with pytest.raises(NotADirectoryError), closing(reader.open(descriptor)) as entries:
            entries.read(1)
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler here")
@pytest.mark.process
def test_sanitizers_find_nothing(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(7):
        (folder / (str(number) * 255)).write_bytes(bytes(number))
        (folder / (chr(97 + number) * 255)).symlink_to("nothing")
    program = tmp_path / "program"
    program.with_suffix(".c").write_text(PROGRAM)
    sanitizers = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    sources = CORE / "folder_entries.c", program.with_suffix(".c")
    built = subprocess.run(
        [COMPILER, "-O1", *sanitizers, "-o", program, *sources], capture_output=True
    )
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")

    done = subprocess.run([program, folder], capture_output=True, check=True)

    assert done.stdout == b"7 files of 21 bytes, 7 others, 3584 bytes of names"


# The memory is just as large as it must be.
PROGRAM = """
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 5 };

int open_entries(int folder, DIR **entries);
void close_entries(DIR *entries);
int read_entries(
    DIR *entries, int64_t most, char *files, char *others, void *facts, uint64_t *devices,
    uint32_t *modes, void *totals);

int main(int count, char **words)
{
    int folder = open(words[count - 1], O_RDONLY);
    DIR *entries;
    open_entries(folder, &entries);
    char *files = malloc(MOST * 256), *others = malloc(MOST * 256);
    void *facts = malloc(MOST * 32), *devices = malloc(MOST * 8);
    int64_t sums[6] = {0}, *totals = malloc(sizeof sums);
    do {
        if (read_entries(entries, MOST, files, others, facts, devices, modes, totals))
            return 1;
        for (int each = 0; each < 6; each++)
            sums[each] += totals[each];
    } while (totals[0] + totals[1]);
    printf("%d files of %d bytes, %d others, %d bytes of names", (int)sums[0], (int)sums[4],
           (int)sums[1], (int)(sums[2] + sums[3]));
    free(files), free(others), free(facts), free(devices), free(modes), free(totals);
    close_entries(entries);
    close(folder);
    return 0;
}
"""
