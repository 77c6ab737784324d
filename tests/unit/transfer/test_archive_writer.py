"""Archives: written once through, read by every `tar`, and by ourselves with suspicion."""

import hashlib
import io
import itertools
import json
import os
import shutil
import subprocess
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.core.errors import ArchiveError, FileChangedError
from mydata_like.core.file_access import system_path
from mydata_like.core.local_files import ArchiveMember
from mydata_like.transfer import tar
from mydata_like.transfer.archive_reader import (
    ArchiveFile,
    extract_member,
    read_index,
    verify_member,
)
from mydata_like.transfer.archive_writer import (
    INDEX_HEAD,
    INDEX_TAIL,
    ArchiveSource,
    index_name,
    measure_archive,
)
from tests.archives import MODIFIED_NS, NAME, members_of, write
from tests.privileges import needs_links

NAMES = {
    b"Set 1/a.txt": 3,
    b"Set 1/empty": 0,
    b"Set 1/" + b"n" * 120: 511,
    b"Set 1/deep/" + b"d" * 200 + b"/" + b"e" * 200: 512,
    "Set 1/größe 数据 'x' $(id).tif".encode(): 513,
    b'Set 1/"two"\nlines' if os.name == "posix" else b"Set 1/two lines": 70_000,
    b"Set 1/large": 700_001,
}
COMMANDS = {
    "gnu": ["tar", "-xf"],
    "bsd": ["bsdtar", "-xf"],
    "busybox": ["busybox", "tar", "-xf"],
}


@pytest.fixture(scope="module")
def contents():
    return {name: hashlib.sha256(name).digest() * (size // 32 + 1) for name, size in NAMES.items()}


@pytest.fixture
def contents_of_size(contents):
    return {name: content[: NAMES[name]] for name, content in contents.items()}


@pytest.fixture
def members(tmp_path, contents_of_size):
    return members_of(tmp_path / "source", contents_of_size)


def save(tmp_path, members) -> Path:
    path = tmp_path / os.fsdecode(NAME)
    path.write_bytes(write(members)[0])
    return path


def path_of(member: ArchiveMember) -> Path:
    return Path(os.fsdecode(member.file.path))


@pytest.mark.parametrize("size", [512, 4096, 256 * 1024, 1 << 20])
def test_one_pass_gives_the_size_that_was_promised_and_both_checksums(
    members, contents_of_size, size
):
    content, source, checksum = write(members, size)

    assert len(content) == source.size == measure_archive(NAME, members)
    assert checksum == hashlib.md5(content).hexdigest()
    assert [reading.checksum for reading in source.inside] == [
        hashlib.md5(contents_of_size[member.name]).hexdigest() for member in members
    ]


def test_the_same_files_give_the_same_bytes(members):
    assert write(members)[0] == write(members, 777)[0]


@pytest.mark.process
@pytest.mark.parametrize("kind", COMMANDS)
def test_plain_tar_extracts_it(tmp_path, members, contents_of_size, kind):
    if os.name == "nt" or not shutil.which(COMMANDS[kind][0]):
        pytest.skip("not installed, or not the tar of a POSIX system")
    path = save(tmp_path, members)
    target = tmp_path / "target"
    target.mkdir()

    said = subprocess.run([*COMMANDS[kind], path], cwd=target, capture_output=True, check=True)

    assert said.stderr == b""
    for name, content in contents_of_size.items():
        there = target / os.fsdecode(name)
        assert there.read_bytes() == content
        assert there.stat().st_mtime == MODIFIED_NS // 10**9
    assert json.loads((target / os.fsdecode(index_name(NAME))).read_text())["members"]


def test_python_reads_it_and_the_index_gives_the_offsets(members, contents_of_size):
    content = write(members)[0]

    with tarfile.open(fileobj=io.BytesIO(content)) as opened:
        infos = opened.getmembers()
    index = read_index([content])

    assert [info.name for info in infos[:-1]] == [os.fsdecode(each.name) for each in index]
    assert infos[-1].name == os.fsdecode(index_name(NAME))
    assert [info.offset_data for info in infos[:-1]] == [each.offset for each in index]
    assert {(info.uid, info.gid, info.mode) for info in infos} == {(0, 0, 0o660)}
    for each in index:
        there = content[each.offset : each.offset + each.size]
        assert there == contents_of_size[each.name]
        assert (each.modified_ns, each.checksum) == (MODIFIED_NS, hashlib.md5(there).hexdigest())


def test_an_index_is_read_from_pieces_of_any_size(members):
    content = write(members)[0]

    pieces = [content[start : start + 1000] for start in range(0, len(content), 1000)]

    assert read_index(pieces) == read_index([content])


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


SPOILT = {
    "grown": grow,
    "shrunk": lambda path: os.truncate(path, 1),
    "gone": Path.unlink,
    "touched": lambda path: os.utime(path, ns=(0, 0)),
}


@pytest.mark.parametrize("name", [b"Set 1/a.txt", b"Set 1/large"], ids=["tiny", "large"])
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_member_that_changed_is_zeros_and_bad_and_the_others_are_whole(
    tmp_path, members, contents_of_size, name, spoil
):
    (bad,) = [member for member in members if member.name == name]
    spoil(path_of(bad))

    content, source, _ = write(members)

    assert len(content) == measure_archive(NAME, members)
    assert [r.problem is None for r in source.inside] == [m.name != name for m in members]
    for each in read_index([content]):
        there = content[each.offset : each.offset + each.size]
        assert there == (contents_of_size[each.name] if each.name != name else bytes(each.size))
        assert bool(each.checksum) is (each.name != name)


def test_a_large_member_that_shrinks_on_the_way_is_filled_up(members):
    (large,) = [member for member in members if member.name == b"Set 1/large"]
    source = ArchiveSource(NAME, MODIFIED_NS, [large])
    chunks = source.chunks(bytearray(4096))
    content = bytes(next(chunks))

    os.truncate(path_of(large), 300_000)
    content += b"".join(bytes(chunk) for chunk in chunks)

    assert len(content) == source.size
    assert read_index([content])[0].checksum == ""
    with pytest.raises(FileChangedError):
        source.finish()


def test_an_archive_without_a_good_member_is_not_finished(members):
    for member in members:
        path_of(member).unlink()

    with pytest.raises(FileChangedError) as raised:
        write(members)

    assert raised.value.problem_code == "file.vanished"


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=300).filter(
            lambda name: not set(name.split(b"/")) & {b"", b".", b".."} and b"\0" not in name
        ),
        st.binary(max_size=1500),
        min_size=1,
        max_size=8,
    )
)
def test_any_names_and_bytes_survive(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("any")
    members = members_of(folder, {b"top/" + name: content for name, content in files.items()})

    content = write(members)[0]

    assert {
        each.name: content[each.offset : each.offset + each.size] for each in read_index([content])
    } == {b"top/" + name: content for name, content in files.items()}


# Reading what others made.


def test_extracting_gives_the_identical_tree(tmp_path, members, contents_of_size):
    path, target = save(tmp_path, members), tmp_path / "target"

    with ArchiveFile(path) as archive:
        for member in archive.index:
            verify_member(archive, member)
            extract_member(archive, member, target)

    there = {p.relative_to(target).as_posix().encode(): p for p in target.rglob("*") if p.is_file()}
    assert {name: p.read_bytes() for name, p in there.items()} == contents_of_size
    assert {p.stat().st_mtime_ns for p in there.values()} == {MODIFIED_NS}


def test_what_exists_stays_as_it_is(tmp_path, members):
    path, target = save(tmp_path, members), tmp_path / "target"
    (target / "Set 1").mkdir(parents=True)
    (target / "Set 1/a.txt").write_text("mine")

    with ArchiveFile(path) as archive:
        (member,) = [each for each in archive.index if each.name == b"Set 1/a.txt"]
        with pytest.raises(ArchiveError, match="already exists"):
            extract_member(archive, member, target)

    assert (target / "Set 1/a.txt").read_text() == "mine"


@pytest.mark.parametrize("letter", ["n", "ü", "数", "😀"])
def test_the_longest_names_are_restored(tmp_path, letter):
    name = (letter * 255).encode()[: 255 // len(letter.encode()) * len(letter.encode())]
    member = members_of(tmp_path / "here", {b"Set 1/" + name: b"content"})
    path, target = save(tmp_path, member), tmp_path / "target"

    with ArchiveFile(path) as archive:
        extract_member(archive, archive.index[0], target)

    (there,) = (target / "Set 1").iterdir()
    assert os.fsencode(there.name) == name
    assert there.read_bytes() == b"content"


@pytest.mark.parametrize("name", ["con", "ends with a dot.", "x" * 200 + "/" + "y" * 200])
def test_names_that_windows_would_interpret_are_restored(tmp_path, name):
    member = members_of(tmp_path / "here", {b"Set 1/" + name.encode(): b"content"})
    path, target = save(tmp_path, member), tmp_path / "target"

    with ArchiveFile(path) as archive:
        extract_member(archive, archive.index[0], target)

    there = system_path(os.path.join(os.fsencode(target), b"Set 1", name.encode()))  # noqa: PTH118
    assert Path(os.fsdecode(there)).read_bytes() == b"content"


@pytest.mark.skipif(os.name != "nt", reason="other systems have files with all these names")
@pytest.mark.parametrize("name", [b"a\\b", b"a:b", b"\xff"])
def test_a_name_that_no_file_can_have_here_is_refused(tmp_path, name):
    member = members_of(tmp_path / "here", {b"Set 1/" + name: b"content"})

    path = save(tmp_path, member)

    with ArchiveFile(path) as archive, pytest.raises(ArchiveError, match="not a valid file name"):
        extract_member(archive, archive.index[0], tmp_path / "target")


class Interrupted:
    """An archive during whose reading something happens."""

    def __init__(self, archive, happen):
        self._archive = archive
        self._happen = happen

    def content(self, member):
        yield from self._archive.content(member)
        self._happen()


def test_a_file_that_cannot_have_its_name_leaves_nothing_behind(tmp_path, members):
    path, place = save(tmp_path, members), tmp_path / "target/Set 1/a.txt"

    with ArchiveFile(path) as archive:
        (member,) = [each for each in archive.index if each.name == b"Set 1/a.txt"]
        with pytest.raises(ArchiveError, match="cannot be written"):
            extract_member(Interrupted(archive, place.mkdir), member, tmp_path / "target")

    assert list(place.parent.iterdir()) == [place]


def test_a_restored_file_has_the_modes_of_any_new_one(tmp_path, members):
    path, new = save(tmp_path, members), tmp_path / "new"
    new.touch()

    with ArchiveFile(path) as archive:
        extract_member(archive, archive.index[0], tmp_path / "target")

    (there,) = (found for found in (tmp_path / "target").rglob("*") if found.is_file())
    assert there.stat().st_mode == new.stat().st_mode


@needs_links
def test_a_link_on_the_way_is_not_followed(tmp_path, members):
    path, target, elsewhere = save(tmp_path, members), tmp_path / "target", tmp_path / "elsewhere"
    elsewhere.mkdir()
    target.mkdir()
    (target / "Set 1").symlink_to(elsewhere)

    with ArchiveFile(path) as archive, pytest.raises(ArchiveError, match="is not a folder"):
        extract_member(archive, archive.index[0], target)

    assert list(elsewhere.iterdir()) == []


def test_bytes_that_changed_are_noticed_and_not_kept(tmp_path, members):
    path = save(tmp_path, members)
    with ArchiveFile(path) as archive:
        (member,) = [each for each in archive.index if each.name == b"Set 1/a.txt"]
    content = bytearray(path.read_bytes())
    content[member.offset] ^= 1
    path.write_bytes(content)

    with ArchiveFile(path) as archive:
        with pytest.raises(ArchiveError, match="does not match"):
            verify_member(archive, member)
        with pytest.raises(ArchiveError):
            extract_member(archive, member, tmp_path / "target")

    assert not [found for found in (tmp_path / "target").rglob("*") if found.is_file()]


def test_a_changed_member_is_never_extracted(tmp_path, members):
    path_of(members[0]).unlink()
    path = save(tmp_path, members)

    with ArchiveFile(path) as archive, pytest.raises(ArchiveError) as raised:
        extract_member(archive, archive.index[0], tmp_path / "target")

    assert raised.value.problem_code == "archive.changed-member"


def a_tar(*names: str, **changes: object) -> bytes:
    """Return what Python's tarfile makes of these names, in the format that we write."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as opened:
        for name in names:
            info = tarfile.TarInfo(name)
            for field, value in changes.items():
                setattr(info, field, value)
            opened.addfile(info)
    return stream.getvalue()


def index_text(**changes: object) -> bytes:
    return index_of(index_line(**changes))


def index_line(**changes: object) -> bytes:
    md5 = "d41d8cd98f00b204e9800998ecf8427e"  # of nothing
    member = {"name": "d/a", "size": 0, "modified_ns": 0, "offset": 512, "md5": md5}
    return json.dumps({**member, **changes}).encode()


def index_of(*lines: bytes) -> bytes:
    return INDEX_HEAD + b",\n".join(lines) + INDEX_TAIL


def with_index(text: bytes, *heads: bytes) -> bytes:
    heads = heads or (tar.header(b"d/a", 0, 0),)
    index = tar.header(b"x.index.json", len(text), 0) + text + tar.padding(len(text))
    return b"".join(heads) + index + tar.END


HOSTILE = {
    "nothing": b"",
    "zeros": bytes(1024),
    "text": b"hello" * 1000,
    "a symlink": a_tar("d/a", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": a_tar("d/a", type=tarfile.LNKTYPE, linkname="/etc/passwd"),
    "a device": a_tar("d/a", type=tarfile.CHRTYPE),
    "a directory": a_tar("d/a", type=tarfile.DIRTYPE),
    "an absolute name": a_tar("/etc/passwd"),
    "a way up": a_tar("d/../../passwd"),
    "no index": a_tar("d/a"),
    "an index of another format": with_index(b'{"format": "zip", "members": []}'),
    "an index of no json": with_index(b"["),
    "a deep index": with_index(index_of(b"[" * 100_000)),
    "a name that is no text": with_index(index_text(name=17)),
    "no name at all": with_index(index_text(name=None)),
    "a list of names": with_index(index_text(name=["d/a"])),
    "half a character": with_index(index_text(name="d/a\ud800")),
    "no checksum but a number": with_index(index_text(md5=0)),
    "no member": with_index(index_of(b"null")),
    "a number that is not finite": with_index(index_of(index_line().replace(b"512", b"1e999"))),
    "a number of 5000 digits": with_index(index_of(index_line().replace(b"512", b"5" * 5000))),
    "a member more": with_index(index_of(index_line(), index_line(name="d/b", offset=1024))),
    "a member less": with_index(index_of()),
    "two on a line": with_index(index_of(index_line() + b", " + index_line())),
    "a line without end": with_index(INDEX_HEAD + b" " * 1_000_000),
    "another name": with_index(index_text(name="d/b")),
    "a name that leads elsewhere": with_index(index_text(name="../b")),
    "another size": with_index(index_text(size=1)),
    "another place": with_index(index_text(offset=0)),
    "a negative size": with_index(index_text(size=-512)),
    "a number too large": with_index(index_text(modified_ns=2**64)),
    "a truth instead of a number": with_index(index_text(size=False)),
    "a checksum that is none": with_index(index_text(md5="../../etc")),
    "a name twice": with_index(
        index_of(index_line(), index_line(offset=1024)),
        tar.header(b"d/a", 0, 0),
        tar.header(b"d/a", 0, 0),
    ),
    "a member after the index": with_index(index_text())[:-1024]
    + tar.header(b"d/b", 0, 0)
    + tar.END,
    "a gigabyte of name": tar.header(b"d/" + b"a" * 200, 0, 0)[:124]
    + b"10000000000\0"
    + tar.header(b"d/" + b"a" * 200, 0, 0)[136:],
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_we_did_not_write_is_refused(tmp_path, content):
    path = tmp_path / "hostile.tar"
    path.write_bytes(content)

    with pytest.raises(ArchiveError):
        ArchiveFile(path)
    with pytest.raises(ArchiveError):
        read_index([content])


def test_an_index_takes_no_more_memory_than_its_members(tmp_path):
    # 200,000 members in an archive that has one.
    bomb = with_index(index_of(*[index_line()] * 200_000))
    pieces = [bomb[start : start + 65_536] for start in range(0, len(bomb), 65_536)]
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError):
            read_index(pieces)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4_000_000


@pytest.mark.slow
def test_an_archive_of_too_many_members_is_refused():
    heads = itertools.repeat(tar.header(b"d/a", 0, 0))

    with pytest.raises(ArchiveError, match="too many members"):
        read_index(heads)


def test_an_index_that_claims_other_bytes_than_there_are_is_refused():
    crafted = with_index(index_text(md5="0" * 32))

    with pytest.raises(ArchiveError, match="checksum of d/a differs"):
        read_index([crafted])


def test_what_the_hostile_ones_are_made_from_is_accepted():
    assert [each.name for each in read_index([with_index(index_text())])] == [b"d/a"]


def test_an_archive_that_was_cut_or_lengthened_is_refused(tmp_path, members):
    path = save(tmp_path, members[:2])
    content = path.read_bytes()
    for length in range(0, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(ArchiveError):
            ArchiveFile(path)
    path.write_bytes(content + b"x")
    with pytest.raises(ArchiveError, match="data after its end"):
        ArchiveFile(path)
