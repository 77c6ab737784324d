"""Tiny files that come as a tar stream: the library writes what Python writes, and nothing else."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.app.receiving import SessionReceiver
from mydata_like.core import hashing
from mydata_like.core.destination_files import StoredContent
from mydata_like.core.errors import TransientError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.transfer.folder.received_files import ReceivedFiles, WantedFile
from mydata_like.transfer.ssh.host_files import HostFiles, _Reader
from tests.privileges import needs_bytes

pytestmark = [
    needs_bytes,
    pytest.mark.skipif(
        not hasattr(hashing.LOADED, "unpack_tiny_files"),
        reason="the library was not built, or not for this",
    ),
]

CORE = Path(hashing.__file__).parent
COMPILER = shutil.which("gcc") or shutil.which("clang") or ""
TIME = 1_600_000_000 * 10**9 + 123_456_789
FORMATS = {"GNU": tarfile.GNU_FORMAT, "ustar": tarfile.USTAR_FORMAT, "pax": tarfile.PAX_FORMAT}


def want(name, content, modified_ns=TIME):
    path = os.fsencode(name)
    checksum = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return WantedFile(path, b"here/" + path, len(content), checksum, modified_ns)


def pack(members, kind="GNU", mode=0o640):
    """Return a tar stream of names with their content."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=FORMATS[kind]) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            tar.addfile(info, io.BytesIO(content))
    return output.getvalue()


class Arrived:
    """The output of a host, of which `size` bytes come at once."""

    def __init__(self, content, size):
        self._content = content
        self._size = size

    def read(self, size, least=1):
        cut = min(size, self._size)
        piece, self._content = self._content[:cut], self._content[cut:]
        return piece


class Packed(HostFiles):
    """Files that a host returns together as `stream`, and others alone from `alone`."""

    def __init__(self, stream, alone=(), size=2**18):
        self._stream = stream
        self._alone = dict(alone)
        self._size = size
        self.fetched = []  # alone

    @property
    def concurrent(self):
        return 1

    @contextmanager
    def _reading(self, script, stdin=b""):
        yield _Reader(Arrived(self._stream, self._size))

    @contextmanager
    def open_content(self, path, offset=0):
        self.fetched.append(os.fsdecode(path))
        content = self._alone.get(path)
        yield None if content is None else StoredContent(path, iter([content[offset:]]), 0o640)


class Settled:
    def __init__(self):
        self.moved = 0
        self.settled = {}

    def move(self, size, *, waits):
        self.moved += size

    def settle(self, file, problem):
        assert file.path not in self.settled
        self.settled[file.path] = problem and problem.code


class Target(ReceivedFiles):
    """A folder whose files need not be on stable storage."""

    def sync(self):
        pass


def receive(folder, wanted, files, *, replace=False, together=True):
    target = Target(os.fsencode(folder), together=together)
    target.open(create=True)
    arrivals = Settled()
    receiver = SessionReceiver(files, target, CancelFlag(), replace, sparse=False)
    try:
        receiver.receive(wanted, arrivals, again=False)
    except TransientError as error:
        arrivals.settled["ended"] = error.problem_code
    return arrivals


def describe(folder):
    """Return what each file below a folder is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            status = path.stat()
            where = status.st_mode & 0o777, status.st_mtime_ns
            found[str(path.relative_to(folder))] = (*where, path.read_bytes())
    return found


names = st.sampled_from(["a", "b", "c/d", "c/e", "c/f/g", "x" * 98 + "/y", "long/" + "n" * 120])
contents = st.binary(max_size=1500) | st.sampled_from([bytes(512), b"x" * 70_000])
changes = st.sampled_from(["", "", "", "", "other bytes", "longer", "missing", "twice", "earlier"])


@settings(deadline=None, max_examples=150)
@given(
    files=st.dictionaries(names, st.tuples(contents, changes), min_size=2, max_size=7),
    kind=st.sampled_from(sorted(FORMATS)),
    size=st.sampled_from([1000, 2**18]),
    cut=st.none() | st.integers(0, 20_000),
)
def test_the_library_writes_what_python_writes(files, kind, size, cut):
    if kind == "ustar":
        files.pop("long/" + "n" * 120, None)  # it has no form for that
    wanted = [want(name, content) for name, (content, _) in sorted(files.items())]
    alone = {os.fsencode(name): content for name, (content, _) in files.items()}
    members = []
    for name, (content, change) in sorted(files.items()):
        match change:
            case "other bytes":
                members.append((name, content[:-1] + b"X"))
            case "longer":
                members.append((name, content + b"X"))
            case "twice":
                members += [(name, content)] * 2
            case "earlier":
                members.insert(0, (name, content))
            case "":
                members.append((name, content))
    stream = pack(members, kind)[:cut]
    with TemporaryDirectory() as name:
        ours, theirs = Path(name) / "ours", Path(name) / "theirs"

        found = receive(ours, wanted, Packed(stream, alone, size))
        expected = receive(theirs, wanted, Packed(stream, alone, size), together=False)

        if "ended" not in found.settled:
            assert describe(ours) == describe(theirs)
            assert found.settled == expected.settled
        else:  # with some that came too early left for the next attempt
            assert describe(ours).items() <= describe(theirs).items()
            assert found.settled.items() <= expected.settled.items()


def test_files_of_one_stream_have_their_bytes_modes_and_times(tmp_path):
    contents = {f"sub {number // 70}/{number}": bytes([number]) * number for number in range(200)}
    wanted = [
        want(name, content, number - 5) for number, (name, content) in enumerate(contents.items())
    ]
    files = Packed(pack(contents.items(), mode=0o4751))

    arrivals = receive(tmp_path, wanted, files)

    expected = zip(contents.items(), range(-5, 195), strict=True)
    assert describe(tmp_path) == {
        f"here/{name}": (0o751, modified_ns, content) for (name, content), modified_ns in expected
    }
    assert arrivals.settled == dict.fromkeys(it.path for it in wanted)
    assert arrivals.moved == sum(map(len, contents.values()))
    assert files.fetched == []


def test_nothing_that_is_there_is_replaced_or_followed(tmp_path):
    contents = {"file": b"file", "folder": b"folder", "link": b"link", "other": b"other"}
    wanted = [want(name, content) for name, content in contents.items()]
    here = tmp_path / "target" / "here"
    (here / "folder").mkdir(parents=True)
    (here / "file").write_bytes(b"mine")
    (here / "link").symlink_to(tmp_path / "elsewhere")
    part = here / os.fsdecode(wanted[3].part.rpartition(b"/")[2])
    part.symlink_to(tmp_path / "elsewhere")  # in place of its temporary file
    files = Packed(pack(contents.items()))

    arrivals = receive(tmp_path / "target", wanted, files)

    assert files.fetched == []
    assert arrivals.settled == dict.fromkeys(
        (b"file", b"folder", b"link"), "destination.occupied"
    ) | {b"other": None}
    assert sorted(it.name for it in here.iterdir()) == ["file", "folder", "link", "other"]
    assert (here / "file").read_bytes() == b"mine"
    assert (here / "link").is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_on_request_a_file_is_replaced(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a").write_bytes(b"mine")
    contents = {"a": b"new", "b": b"other"}

    wanted = [want(*it) for it in contents.items()]
    receive(tmp_path, wanted, Packed(pack(contents.items())), replace=True)

    assert {name: it[2] for name, it in describe(tmp_path).items()} == {
        "here/a": b"new",
        "here/b": b"other",
    }


# Each byte of the headers is changed, and the stream is cut everywhere; it is just as large as it
# has to be, so that a read beyond its end is found.
PROGRAM = """
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct wanted { uint64_t size; int64_t modified_ns; uint8_t checksum[16]; };

size_t unpack_tiny_files(
    int folder, const char *members, const char *names, const struct wanted *wanted, size_t count,
    const uint8_t *stream, size_t start, size_t length, uint8_t *done);

static uint8_t whole[1 << 20];

int main(int count, char **words)
{
    int folder = open(words[count - 1], O_RDONLY);
    size_t length = read(0, whole, sizeof whole);
    struct wanted wanted[32] = {0};
    char *members = malloc(64), *names = malloc(64);
    memcpy(members, "0\\0001\\0002\\0003", 8), memcpy(names, "a\\0b\\0c\\0d", 8);
    for (int each = 0; each < 4; each++)
        wanted[each].size = each, wanted[each].modified_ns = -each;
    size_t used = 0;
    for (size_t cut = 0; cut <= length; cut++) {
        for (int bit = 0; bit < (cut < 2000 ? 8 : 1); bit++) {
            uint8_t *stream = malloc(bit ? length : cut), *done = malloc(4);
            memcpy(stream, whole, bit ? length : cut);
            if (bit && cut < length)
                stream[cut] ^= 1 << bit;
            used += unpack_tiny_files(
                folder, members, names, wanted, 4, stream, 0, bit ? length : cut, done);
            free(stream), free(done);
        }
    }
    printf("%d", used > 0);
    free(members), free(names);
    return 0;
}
"""


@pytest.mark.skipif(not COMPILER, reason="there is no C compiler here")
@pytest.mark.process
def test_sanitizers_find_nothing_in_damaged_streams(tmp_path):
    stream = pack([(f"{number}", b"x" * number) for number in range(4)])[:4608]
    program = tmp_path / "program"
    program.with_suffix(".c").write_text(PROGRAM)
    sources = CORE / "md5.c", CORE / "tiny_files.c", program.with_suffix(".c")
    sanitizers = "-fsanitize=address,undefined", "-fno-sanitize-recover=all"
    built = subprocess.run(
        [COMPILER, "-O1", *sanitizers, "-o", program, *sources], capture_output=True
    )
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")
    (tmp_path / "target").mkdir()

    done = subprocess.run(
        [program, tmp_path / "target"], input=stream, capture_output=True, check=True
    )

    assert done.stdout == b"1"
    assert [*(tmp_path / "target").iterdir()] == []  # all have the wrong checksum
