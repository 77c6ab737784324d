"""What the library packs is what Python writes for the same files; it leaves out what is odd."""

import os
import random
import shutil
import socket
import subprocess
import time
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.core import hashing
from mydata_like.core.errors import FileChangedError
from mydata_like.core.openat import FolderCache
from mydata_like.transfer import tar
from mydata_like.transfer.archive_writer import TINY, read_tiny
from mydata_like.transfer.tiny_files import TinyFilePacker
from mydata_like.transfer.worker_messages import Member
from tests.privileges import IS_ROOT, count_descriptors
from tests.settled import settle_keeping_times

pytestmark = pytest.mark.skipif(
    not hasattr(hashing.LOADED, "pack_tiny_files"),
    reason="the library was not built, or not for this",
)

CORE = Path(hashing.__file__).parent
COMPILER = shutil.which("gcc") or shutil.which("clang") or ""
MODIFIED = 1_600_000_000_123_456_789
SIZES = [0, 1, 55, 56, 63, 64, 65, 511, 512, 513, 3000, 4096, 65535, TINY]
LENGTHS = [1, 99, 100, 101, 102, 154, 155, 156, 157, 200, 255, 256, 257, 258, 300]
KINDS = ["link", "fifo", "socket", "folder", "missing", "shorter", "longer", "later", "replaced"]
LATEST = 2**33 * 10**9  # beyond what eleven octal digits hold
TIMES = [0, 1, MODIFIED, -1, -(10**18), LATEST - 10**9, LATEST]


def describe(path, remote, top=0):
    status = path.lstat()
    where = status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
    return Member(os.fsencode(path), *where, remote, top=top)


def write(path, content, modified_ns=MODIFIED):
    path.write_bytes(content)
    os.utime(path, ns=(0, modified_ns))


def spoil(path, kind):
    """Let a file be something else than what the scan saw."""
    size, modified_ns = path.stat().st_size, path.stat().st_mtime_ns
    if kind in ("link", "fifo", "socket", "folder", "missing"):
        path.rename(path.with_name("moved")) if kind == "link" else path.unlink()
    match kind:
        case "link":
            path.symlink_to("moved")
        case "fifo":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
        case "folder":
            path.mkdir()
        case "shorter":
            os.truncate(path, max(0, size - 1))
        case "longer":
            os.truncate(path, size + 1)
        case "later":
            os.utime(path, ns=(0, modified_ns + 1))
        case "replaced":
            write(path.with_name("other"), bytes(size), modified_ns)
            path.with_name("other").replace(path)
    if kind in ("shorter", "longer"):
        os.utime(path, ns=(0, modified_ns))


def by_python(member):
    """Return what Python writes for a member, and its checksum; None if it cannot be read."""
    with FolderCache() as folders:
        try:
            content, checksum = read_tiny(member, folders)
        except FileChangedError:
            return None
    head = tar.header(member.remote, member.size, member.modified)
    return head + content + tar.padding(member.size), checksum


def pack(members, packer=None):
    """Return the stream, and the indexes with checksums, of what the library packs."""
    stream, named = b"", []
    with FolderCache() as folders:
        for part, packed in (packer or TinyFilePacker()).pack(
            members, range(len(members)), folders
        ):
            stream += part
            named += packed
    return stream, named


def expect(members):
    """Check that the library packs, byte for byte, what Python reads and writes with one header."""
    by_index = {n: by_python(member) for n, member in enumerate(members)}
    stream, named = pack(members)
    assert dict(named) == {n: it[1] for n, it in by_index.items() if it and not is_odd(members[n])}
    assert stream == b"".join(by_index[n][0] for n, _ in named)


def is_odd(member):
    one_block = len(tar.header(member.remote, member.size, member.modified)) == tar.BLOCK
    return not (one_block and 0 <= member.modified_ns < LATEST)


def settle_all(folder):
    """Wait until all that was written before is old enough not to count as changing."""
    (folder / "last").touch()
    settle_keeping_times(folder / "last")


COMPONENT = st.binary(min_size=1, max_size=80).filter(lambda it: not {0, ord("/")} & set(it))
NAMES = st.one_of(
    st.lists(COMPONENT, min_size=1, max_size=5).map(b"/".join),
    st.sampled_from(LENGTHS).flatmap(
        lambda length: st.lists(st.integers(0, length), max_size=4).map(
            lambda slashes: bytes(ord("/") if n in slashes else ord("n") for n in range(length))
        )
    ),
).filter(tar.is_plain)
FILES = st.tuples(
    NAMES,
    st.one_of(st.sampled_from(SIZES), st.integers(0, TINY)),
    st.sampled_from(TIMES),
    st.sampled_from([*KINDS, *[""] * 20]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(FILES, max_size=40), st.booleans())
def test_the_stream_is_the_one_that_python_writes(files, inodes_are_known):
    content = random.Random(1).randbytes(TINY)
    with TemporaryDirectory() as folder:
        members = []
        for number, (remote, size, modified_ns, kind) in enumerate(files):
            path = Path(folder, f"folder {number // 7}", f"file {number}")
            path.parent.mkdir(exist_ok=True)
            write(path, content[:size], modified_ns)
            members.append(describe(path, remote))
            spoil(path, kind)
        settle_all(Path(folder))
        if not inodes_are_known:
            members = [member._replace(device=0, inode=0) for member in members]

        expect(members)


@pytest.mark.parametrize("length", LENGTHS)
def test_names_of_all_lengths_have_the_header_that_python_writes(tmp_path, length):
    write(tmp_path / "a", b"content")
    settle_all(tmp_path)
    names = [
        b"n" * length,
        *(b"d" * n + b"/" + b"n" * (length - n - 1) for n in range(1, length - 1)),
    ]

    expect([describe(tmp_path / "a", name) for name in names])


@pytest.fixture
def members(tmp_path):
    """Return 100 settled files in one folder."""
    for number in range(100):
        write(tmp_path / f"{number}", b"%d" % number * number)
    settle_all(tmp_path)
    return [describe(tmp_path / f"{number}", b"a/%d" % number) for number in range(100)]


def test_nothing_is_packed_without_the_library(members):
    assert pack(members, TinyFilePacker(None)) == (b"", [])


def test_files_from_a_disk_are_opened_and_fetched_together(members):
    before = count_descriptors()
    Path(os.fsdecode(members[50].path)).unlink()
    fetched = count()

    cold = pack(members, TinyFilePacker(count_fetched=lambda: next(fetched)))

    assert cold == pack(members)
    assert [index for index, _ in cold[1]] == [n for n in range(100) if n != 50]
    assert count_descriptors() == before


@pytest.mark.parametrize("remote", [b"../a", b"/a", b"a//b", b"a/.", b"", b"a\0b"])
def test_what_would_leave_the_destination_is_left_out(members, remote):
    assert not pack([members[0]._replace(remote=remote)])[1]


def test_a_path_with_a_zero_byte_leads_to_no_other_file(members):
    assert not pack([members[0]._replace(path=members[0].path + b"\0more")])[1]


def test_a_time_that_a_later_write_may_leave_unchanged_is_not_trusted(members):
    path = Path(os.fsdecode(members[0].path))
    soon = time.time_ns() // 10**9 * 10**9 + 10**9
    os.utime(path, ns=(0, soon))
    settle_keeping_times(path)
    fresh = [describe(path, b"a"), members[1]]

    assert by_python(fresh[0]) is None
    assert [index for index, _ in pack(fresh)[1]] == [1]


def test_links_are_followed_only_where_the_user_named_them(tmp_path, members):
    (tmp_path / "link").symlink_to(tmp_path)
    path = os.fsencode(tmp_path / "link" / "1")
    below, above = len(os.fsencode(tmp_path)), len(os.fsencode(tmp_path / "link"))
    linked = [members[1]._replace(path=path, top=top) for top in (below, above, len(path))]

    assert [index for index, _ in pack(linked)[1]] == [1]


@pytest.mark.skipif(IS_ROOT, reason="root may read everything")
def test_what_may_not_be_read_is_left_out(members):
    Path(os.fsdecode(members[0].path)).chmod(0)
    settle_keeping_times(Path(os.fsdecode(members[0].path)))
    assert [index for index, _ in pack(members[:2])[1]] == [1]


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler here")
@pytest.mark.process
def test_sanitizers_find_nothing_and_what_changes_while_it_is_read_is_left_out(tmp_path, members):
    for number, size in enumerate([0, 1, 511, 512, 513, TINY, TINY, *range(25)]):
        write(tmp_path / f"{number}", bytes(size))
    settle_all(tmp_path)
    program = tmp_path / "program"
    program.with_suffix(".c").write_text(PROGRAM)
    sources = CORE / "md5.c", CORE / "tiny_files.c", program.with_suffix(".c")
    sanitizers = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    built = subprocess.run(
        [COMPILER, "-O1", "-Dread=read_and_change", *sanitizers, "-o", program, *sources],
        capture_output=True,
    )
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")

    done = subprocess.run([program, tmp_path], capture_output=True, check=True)

    # Six have names that need two headers, and one is missing after the first time.
    assert done.stdout == b"26 25 0 0 0 0 "


# The output is just as large as it must be.
PROGRAM = """
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#undef read

ssize_t read(int file, void *data, size_t size);

size_t pack_tiny_files(
    int folder, const char *names, const char *members, const uint64_t (*seen)[4], size_t count,
    int ahead, uint8_t *output, uint8_t *checksums, uint8_t *done);

enum { NOTHING, REMOVED, TOUCHED, REWRITTEN, LONGER, SHORT, ROUNDS };
static int round_now;
static int folder;

ssize_t read_and_change(int file, void *data, size_t size)
{
    ssize_t count = read(file, data, size);
    struct timespec times[2] = {{0, 0}, {0, 0}};
    char path[40];
    snprintf(path, sizeof path, "/dev/fd/%d", file);
    int writable = round_now < TOUCHED ? -1 : open(path, O_WRONLY | O_APPEND);
    struct stat before;
    fstat(file, &before);
    times[1] = before.st_mtim;
    if (round_now == TOUCHED)
        times[1].tv_sec++;
    if (round_now == REWRITTEN)
        write(writable, "x", 1), ftruncate(writable, before.st_size);
    if (round_now == LONGER)
        write(writable, "x", 1);
    if (writable >= 0)
        futimens(writable, times), close(writable);
    return round_now == SHORT ? count - 1 : count;
}

int main(int count, char **words)
{
    char *names = malloc(86), *members = malloc(32 * 31 * 4 + 32), *name = names, *member = members;
    for (int each = 0; each < 32; each++) {
        name += sprintf(name, "%d", each) + 1;
        memset(member, 'n', each * 8);
        member[each * 4] = '/';
        member[each * 8] = 0;
        member += each * 8 + 1;
    }
    folder = open(words[count - 1], O_RDONLY);
    for (round_now = 0; round_now < ROUNDS; round_now++) {
        uint64_t seen[32][4] = {0};
        size_t room = 1;
        name = names;
        for (int each = 0; each < 32; each++, name += strlen(name) + 1) {
            struct stat status = {0};
            fstatat(folder, name, &status, 0);
            seen[each][0] = status.st_size;
            seen[each][1] = status.st_mtim.tv_sec * 1000000000ULL + status.st_mtim.tv_nsec;
            room += 512 + (status.st_size + 511) / 512 * 512;
        }
        uint8_t *output = malloc(room), *checksums = malloc(32 * 16), *done = malloc(32);
        int packed = 0;
        pack_tiny_files(
            folder, names, members, seen, 32, round_now % 2, output, checksums, done);
        for (int each = 0; each < 32; each++)
            packed += done[each];
        printf("%d ", packed);
        free(output), free(checksums), free(done);
        unlinkat(folder, "7", 0);
    }
    free(names), free(members);
    return 0;
}
"""
