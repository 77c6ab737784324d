"""The tar streams of hosts are read as Python's tarfile writes them; anything else ends them."""

import io
import tarfile

import pytest

from mydata_like.core.errors import TransientError
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
