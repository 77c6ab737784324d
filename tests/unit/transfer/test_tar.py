"""What we write must be read, byte for byte, by every `tar` a server may have."""

import io
import os
import shutil
import subprocess
import tarfile
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.core.errors import FileChangedError, TransientError
from mydata_like.transfer.sparse import find_extents
from mydata_like.transfer.tar import (
    END,
    directory,
    header,
    pad_member,
    padding,
    sparse_header,
    write_member,
)
from tests.privileges import needs_shell

GIB = 1024**3
COMMANDS = {
    "gnu": ["tar", "-xvpf", "-"],
    "bsd": ["bsdtar", "-xvpf", "-"],
    "busybox": ["busybox", "tar", "-xvpf", "-"],
}
NAMES = {
    "one byte": b"a",
    "100 bytes": b"n" * 100,
    "101 bytes": b"n" * 101,
    "a component of 255 bytes": b"folder/" + b"n" * 255,
    "155 + 100 bytes": b"p" * 155 + b"/" + b"n" * 100,
    "156 + 100 bytes": b"p" * 156 + b"/" + b"n" * 100,
    "155 + 101 bytes": b"p" * 155 + b"/" + b"m" * 101,
    "200 folders": b"d/" * 200 + b"end",
    "folders of 255 bytes": (b"f" * 255 + b"/") * 3 + b"end",
    "composed": "größe µm 数据.tif".encode(),
    "decomposed": "große\u0308.tif".encode(),
    "long unicode": "数".encode() * 80,
    "invalid UTF-8": b"caf\xe9 \xff\xfe",
    "long invalid UTF-8": b"\xe9" * 130,
    "spaces": b"  two  words ",
    "quotes": b'it\'s a "name" `id` $(id) $HOME;*?[a]\\n',
    "leading dash": b"--checkpoint=1",
    "line break": b"two\nlines\tand a tab\r",
    "controls": b"\x01\x1b[31m\x7f",
    "dots": b"...",
    "hidden": b".hidden/..name..",
    "looks like a drive": b"folder/C:\\scan 1",  # at the start, bsdtar would cut it off
    "case": b"CASE",
    "other case": b"case",
}


@pytest.fixture(params=COMMANDS)
def tool(request):
    if os.name == "nt":
        pytest.skip("tests the tar programs of staging hosts, which are POSIX systems")
    if shutil.which(COMMANDS[request.param][0]) is None:
        pytest.skip(f"{COMMANDS[request.param][0]} is not installed")
    return request.param


@pytest.fixture(params=["C", "C.UTF-8"])
def locale(request):
    return request.param


def a_member(name, content=b"", modified=0.0):
    return header(name, len(content), modified) + content + padding(len(content))


def extract(tool, archive, folder, locale="C"):
    """Unpack an archive with a real tar; return its status and the members it named."""
    folder.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "LC_ALL": locale}
    done = subprocess.run(
        COMMANDS[tool], input=archive, cwd=folder, capture_output=True, env=environment, umask=0o007
    )
    lines = (done.stderr if tool == "bsd" else done.stdout).split(b"\n")
    if tool == "bsd":
        lines = [line[2:].split(b": ")[0] for line in lines if line.startswith(b"x ")]
    return done.returncode, [line for line in lines if line]


def files_below(folder):
    files = (path for path in Path(folder).rglob("*") if path.is_file())
    return {os.fsencode(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.process
def test_every_tar_restores_every_name(tool, locale, tmp_path):
    contents = {name: kind.encode() * 40 for kind, name in NAMES.items()}
    archive = b"".join(a_member(name, content) for name, content in contents.items()) + END

    status, _ = extract(tool, archive, tmp_path / "out", locale)

    assert status == 0
    assert files_below(tmp_path / "out") == contents


@pytest.mark.process
def test_every_length_of_a_name_survives(tool, tmp_path):
    contents = {b"%03d" % n + b"n" * (n - 3): b"%d" % n for n in range(3, 256)}
    contents |= {b"d" * (n % 255 + 1) + b"/%03d" % n + b"n" * (n % 251): b"" for n in range(600)}
    archive = b"".join(a_member(name, content) for name, content in contents.items()) + END

    status, _ = extract(tool, archive, tmp_path / "out")

    assert status == 0
    assert files_below(tmp_path / "out") == contents


COMPONENT = st.binary(min_size=1, max_size=255).filter(
    lambda part: part not in (b".", b"..") and not {0, ord("/")} & set(part)
)
NAME = st.lists(COMPONENT, min_size=1, max_size=6).map(b"/".join)
MEMBER = st.tuples(NAME, st.binary(max_size=1500), st.integers(0, 2**33 - 1))


@settings(max_examples=150, deadline=None)
@given(st.lists(MEMBER, max_size=8))
def test_pythons_tarfile_reads_back_whatever_we_write(members):
    archive = b"".join(a_member(*member) for member in members) + END

    with tarfile.open(fileobj=io.BytesIO(archive)) as read:
        found = [
            (
                info.name.encode("utf-8", "surrogateescape"),
                read.extractfile(info).read(),
                info.mtime,
            )
            for info in read
        ]

    assert found == members


@pytest.mark.process
def test_files_and_folders_have_the_modes_of_the_staging_area(tool, tmp_path):
    archive = directory(b"folder") + directory(b"l" * 150) + a_member(b"folder/file", b"x") + END
    (tmp_path / "out").mkdir()
    (tmp_path / "out").chmod(0o2770)  # from which new folders have their bit of the group

    status, _ = extract(tool, archive, tmp_path / "out")

    assert status == 0
    modes = {p.name[:6]: p.stat().st_mode & 0o7777 for p in (tmp_path / "out").rglob("*")}
    assert modes == {"folder": 0o2770, "llllll": 0o2770, "file": 0o660}


def test_an_archive_member_has_no_owner():
    with tarfile.open(fileobj=io.BytesIO(a_member(b"f") + directory(b"d") + END)) as read:
        owners = {(info.uid, info.gid, info.uname, info.gname) for info in read}

    assert owners == {(0, 0, "", "")}


@pytest.mark.process
@pytest.mark.parametrize("modified", [0, 1, 1_700_000_000.9, 2**33 - 1])
def test_the_time_of_a_file_is_kept_in_whole_seconds(tool, tmp_path, modified):
    extract(tool, a_member(b"f", b"", modified) + END, tmp_path)

    assert (tmp_path / "f").stat().st_mtime == int(modified)


@pytest.mark.parametrize("modified", [-1.5, -(10**10), 10**12])
def test_a_time_that_no_header_can_hold_harms_nothing(modified):
    with tarfile.open(fileobj=io.BytesIO(a_member(b"f", b"x", modified) + END)) as read:
        assert 0 <= read.getmember("f").mtime < 2**33


@pytest.mark.process
@needs_shell
@pytest.mark.parametrize("modified", [1_700_000_000.25, -1.5, 0.5])
def test_fractions_of_seconds_are_kept_when_asked(tmp_path, modified):
    extract("gnu", header(b"f", 0, modified, precise=True) + END, tmp_path)

    assert (tmp_path / "f").stat().st_mtime == modified


@pytest.mark.parametrize(
    "name",
    [b"", b"/", b"/etc/passwd", b"..", b"../up", b"a/../b", b"a/..", b"a\0b", b"a//b", b"a/",
     b".", b"./a", b"a/./b"],
)  # fmt: skip
@pytest.mark.parametrize("build", ["file", "directory", "sparse"])
def test_a_name_that_is_not_plain_and_relative_is_refused(name, build):
    builders = {
        "file": lambda: header(name, 0, 0),
        "directory": lambda: directory(name),
        "sparse": lambda: sparse_header(name, 0, 0, []),
    }

    with pytest.raises(ValueError, match="not a plain relative name"):
        builders[build]()


@pytest.mark.process
@pytest.mark.parametrize("size", [8 * GIB - 1, 8 * GIB, 9 * GIB, 2**50])
def test_every_tar_reads_the_size_of_a_huge_file(tool, tmp_path, size):
    (tmp_path / "archive").write_bytes(header(b"huge", size, 0))
    command = [*COMMANDS[tool][:-2], "-tvf", "archive"]

    listing = subprocess.run(command, cwd=tmp_path, capture_output=True)

    assert b" %d " % size in listing.stdout


SPARSE_FILES = {
    "data in the middle": (4_000_000, [(1_048_576, 65_536)]),
    "data first and last": (4_000_001, [(0, 4096), (3_997_696, 2305)]),
    "nothing but a hole": (4_000_000, []),
    "many": (8_000_000, [(n * 262_144, 8192) for n in range(30)]),
    "9 GiB": (9 * GIB, [(8 * GIB + 8192, 4096)]),
}


def a_sparse_file(path, size, extents):
    with path.open("wb") as file:
        file.truncate(size)
        for offset, length in extents:
            file.seek(offset)
            file.write(os.urandom(length))


def read_at(file, offset, length):
    file.seek(offset)
    return file.read(length)


def sparse_archive(name, path):
    size = path.stat().st_size
    with path.open("rb", buffering=0) as file:
        extents = find_extents(file.fileno(), size)
        body = b"".join(read_at(file, *extent) for extent in extents)
    head = sparse_header(name, size, 0, extents)
    return head + body + padding(len(body)) + a_member(b"next", b"whole") + END


@pytest.mark.process
@pytest.mark.parametrize("tool", ["gnu", "bsd"], indirect=True)
@pytest.mark.parametrize(("size", "extents"), SPARSE_FILES.values(), ids=SPARSE_FILES)
def test_a_file_with_holes_is_restored_with_its_holes(tool, tmp_path, size, extents):
    a_sparse_file(tmp_path / "source", size, extents)
    archive = sparse_archive(b"copy", tmp_path / "source")

    status, _ = extract(tool, archive, tmp_path)

    copy = tmp_path / "copy"
    assert status == 0
    assert copy.stat().st_size == size
    assert copy.stat().st_blocks <= (tmp_path / "source").stat().st_blocks + 16
    assert (tmp_path / "next").read_bytes() == b"whole"
    for offset, length in [*extents, (0, 4096), (size - 4096, 4096)]:
        with copy.open("rb") as left, (tmp_path / "source").open("rb") as right:
            left.seek(offset)
            right.seek(offset)
            assert left.read(length) == right.read(length)


@pytest.mark.process
@pytest.mark.parametrize("tool", ["gnu", "bsd"], indirect=True)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_file_with_holes_may_have_any_name(tool, locale, tmp_path, name):
    a_sparse_file(tmp_path / "source", 300_000, [(131_072, 4096)])

    status, _ = extract(tool, sparse_archive(name, tmp_path / "source"), tmp_path / "out", locale)

    assert status == 0
    assert files_below(tmp_path / "out") == {
        name: (tmp_path / "source").read_bytes(),
        b"next": b"whole",
    }


def test_pythons_tarfile_reads_a_file_with_holes(tmp_path):
    a_sparse_file(tmp_path / "source", 300_000, [(131_072, 4096)])
    archive = sparse_archive(b"copy", tmp_path / "source")

    with tarfile.open(fileobj=io.BytesIO(archive)) as read:
        assert read.extractfile("copy").read() == (tmp_path / "source").read_bytes()


def forty_members():
    """Return an archive of forty members, what they hold, and where each ends."""
    sizes = [0, 1, 511, 512, 513, 1024, 1500, 2049]
    contents = {b"m%02d" % n: os.urandom(sizes[n % len(sizes)]) for n in range(37)}
    contents[b"l" * 140] = b"a long name"
    contents[b"p" * 120 + b"/" + b"n" * 60] = b"a prefix"
    contents[b"last"] = b"x" * 600
    parts = [a_member(name, content) for name, content in contents.items()]
    return b"".join(parts) + END, contents, list(accumulate(map(len, parts)))


@pytest.mark.process
def test_a_stream_that_is_cut_anywhere_leaves_all_named_members_but_the_last_whole(tool, tmp_path):
    archive, contents, ends = forty_members()

    for cut in (*range(0, len(archive), 512), *range(100, len(archive), 5003)):
        status, named = extract(tool, archive[:cut], tmp_path / str(cut))

        proven = named if status == 0 else named[:-1]
        found = files_below(tmp_path / str(cut))
        assert named == list(contents)[: len(named)], cut
        assert {name: found[name] for name in proven} == {n: contents[n] for n in proven}, cut
        if cut in ends:
            assert status == 0, cut
            assert len(named) == ends.index(cut) + 1, cut
        shutil.rmtree(tmp_path / str(cut))


@pytest.mark.process
def test_a_member_that_cannot_be_written_is_named_too_and_only_the_status_shows_it(tool, tmp_path):
    (tmp_path / "out" / "b" / "in the way").mkdir(parents=True)
    archive = a_member(b"a", b"1") + a_member(b"b", b"2") + a_member(b"c", b"3") + END

    status, named = extract(tool, archive, tmp_path / "out")

    assert status != 0
    assert b"b" in named
    assert not (tmp_path / "out" / "b").is_file()


def vanishing(*chunks):
    yield from chunks
    raise FileChangedError("The file vanished.", code="file.vanished")


@pytest.mark.parametrize(
    "chunks",
    [vanishing(), vanishing(b"ab"), vanishing(b"abcd"), iter([b"abc"]), iter([b"abc", b"de"])],
    ids=["at once", "in the middle", "at the end", "too short", "too long"],
)
def test_a_member_whose_source_fails_is_filled_up_and_reported(chunks):
    stream = bytearray()

    with pytest.raises(FileChangedError):
        write_member(stream.extend, header(b"bad", 4, 0), 4, chunks)
    write_member(stream.extend, header(b"good", 4, 0), 4, [b"good"])

    with tarfile.open(fileobj=io.BytesIO(bytes(stream) + END)) as read:
        assert [info.name for info in read] == ["bad", "good"]
        assert read.extractfile("good").read() == b"good"


def test_a_line_that_breaks_is_not_written_to_again():
    written = []

    def write(chunk):
        written.append(bytes(chunk))
        if len(written) == 2:
            raise TransientError("The line broke.")

    with pytest.raises(TransientError):
        write_member(write, b"head", 4, [b"ab", b"cd"])

    assert written == [b"head", b"ab"]


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5_000_000])
def test_missing_bytes_are_made_up_for_exactly(count):
    assert b"".join(pad_member(count)) == bytes(count)
    assert (count + len(padding(count))) % 512 == 0
