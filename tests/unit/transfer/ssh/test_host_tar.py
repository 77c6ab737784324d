"""The tar streams of hosts are read as Python's tarfile writes them; anything else ends them."""

import io
import tarfile

import pytest

from mydata_like.core.destination_files import HOLE
from mydata_like.core.errors import TransientError
from mydata_like.transfer import tar
from mydata_like.transfer.ssh.host_tar import read_members

pytestmark = pytest.mark.pure

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
NAMES = ["./a", "./sub/b c", "./" + "n" * 90 + "/" + "m" * 60, "./new\nline"]
LONG = ["./" + "x" * 250, "./zwölf/日本", "./" + "/".join(["deep"] * 80)]


def pack(members, kind=tarfile.GNU_FORMAT):
    """Return an archive of name and content, or of a ready member and its content."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=kind) as archive:
        for name, content in members:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def member(name, kind, target="", mode=0o755, modified=0):
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode, found.mtime = kind, target, mode, modified
    return found


def read(content):
    return [(it, b"".join(it.pieces)) for it in read_members(io.BytesIO(content).read)]


@pytest.mark.parametrize("kind", FORMATS)
def test_files_have_their_names_and_bytes(kind):
    names = NAMES if kind == tarfile.USTAR_FORMAT else NAMES + LONG
    members = [(name, name.encode() * (number * 500)) for number, name in enumerate(names)]

    found = [(it.path, it.kind, content) for it, content in read(pack(members, kind))]

    assert found == [(name[2:].encode(), "file", content) for name, content in members]


@pytest.mark.parametrize("kind", FORMATS[1:])
def test_folders_and_links_have_modes_times_and_targets(kind):
    target = "../" + "t" * 300
    members = [
        (member("./", tarfile.DIRTYPE, mode=0o2750, modified=7), b""),
        (member("./sub/", tarfile.DIRTYPE), b""),
        (member("./sub/link", tarfile.SYMTYPE, target), b""),
    ]

    top, sub, link = (it for it, _ in read(pack(members, kind)))

    assert (top.path, top.kind, top.mode, top.modified) == (b"", "folder", 0o750, 7)
    assert (sub.path, sub.kind) == (b"sub", "folder")
    assert (link.path, link.kind, link.target) == (b"sub/link", "link", target.encode())


@pytest.mark.parametrize("kind", [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S", b"Z"])
def test_other_members_are_of_no_kind(kind):
    ((found, content),) = read(pack([(member("./a", kind, "./b"), b"")]))

    assert (found.kind, content) == ("", b"")


def sparse(size, extents, change=lambda head: head):
    """Return a sparse file as GNU tar packs it, with ones as its data, and its bytes."""
    content = bytearray(size)
    for offset, length in extents:
        content[offset : offset + length] = b"1" * length
    data = b"".join(content[offset : offset + length] for offset, length in extents)
    head = change(tar.sparse_header(b"image", size, 0, extents))
    return head + data + tar.padding(len(data)), bytes(content)


@pytest.mark.parametrize(
    ("size", "extents"),
    [
        (10, []),
        (5_000_000, []),
        (3_000_000, [(0, 512), (1_048_576, 1024), (2_999_808, 192)]),
        (9_000_000, [(at * 1024, 512) for at in range(3000)]),
    ],
)
def test_holes_of_a_sparse_file_are_zeros_again(size, extents):
    packed, content = sparse(size, extents)

    (first, found), (second, _) = read(packed + pack([("./next", b"next")]))

    assert (first.path, first.kind, first.size) == (b"image", "file", size)
    assert found == content
    assert second.path == b"next"


def test_pieces_of_a_large_hole_say_what_they_are():
    packed, _ = sparse(20_000_000, [(10_000_384, 512)])

    (pieces,) = (list(it.pieces) for it in read_members(io.BytesIO(packed).read))

    assert sum(piece is HOLE for piece in pieces) == 18


@pytest.mark.parametrize(
    ("wrong", "instead"),
    [
        (b"3\n1024\n512\n", b"3\n9024\n512\n"),  # behind the end
        (b"3\n1024\n512\n4096", b"3\n1024\n512\n1100"),  # an overlap
        (b"3\n1024\n512\n", b"3\n1024\n999\n"),  # more than there is
        (b"3\n1024\n", b"3\n-024\n"),
        (b"3\n1024\n", b"9000000\n"),
        (b"3\n1024\n", b"9999999"),
        (b"realsize=8192", b"realsize=819x"),
        (b"realsize=8192", b"realsize=1192"),
    ],
)
def test_a_sparse_file_that_cannot_be_ends_the_stream(wrong, instead):
    def change(head):
        assert wrong in head
        return head.replace(wrong, instead).ljust(len(head), b"\0")[: len(head)]

    packed, _ = sparse(8192, [(1024, 512), (4096, 512)], change)

    with pytest.raises(TransientError):
        read(packed)


def test_what_is_not_read_of_a_file_is_skipped():
    content = pack([("./a", b"a" * 600_000), ("./b", b"b" * 5)])

    found = [(it.path, next(it.pieces)[:1]) for it in read_members(io.BytesIO(content).read)]

    assert found == [(b"a", b"a"), (b"b", b"b")]


def test_several_archives_follow_each_other():
    found = [it.path for it, _ in read(pack([("./a", b"a")]) + pack([("./b", b"b")]))]

    assert found == [b"a", b"b"]


def test_an_empty_answer_has_no_members():
    assert read(b"") == []


def huge_name():
    return member("././@LongLink", tarfile.GNUTYPE_LONGNAME)


def damage(content, at, byte):
    return content[:at] + byte + content[at + 1 :]


HOSTILE = {
    "text": b"tar: command not found\n" * 100,
    "a part of a header": pack([("./a", b"a")])[:300],
    "a file that is cut off": pack([("./a", b"a" * 5000)])[:2000],
    "padding that is cut off": pack([("./a", b"a" * 700)])[:1300],
    "a header with a wrong sum": damage(pack([("./a", b"a")]), 0, b"x"),
    "a long name without end": pack([(huge_name(), b"n" * 1_000_000)]),
    "pax records that are none": pack([(member("x", tarfile.XHDTYPE), b"999999 path=a\n")]),
    "a pax record without a value": pack([(member("x", tarfile.XHDTYPE), b"8 path\n\n")]),
    "a pax record of no length": pack([(member("x", tarfile.XHDTYPE), b"0 path=a\n")]),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_anything_else_ends_the_stream(name):
    with pytest.raises(TransientError):
        read(HOSTILE[name])
