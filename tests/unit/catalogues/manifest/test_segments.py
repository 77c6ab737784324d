"""Segments of the manifest: they are read as they were written, and `md5sum -c` reads them too."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from mydata_like.catalogues.manifest.segments import (
    MARKER,
    TURN,
    DestinationMarker,
    Manifest,
    format_checksums,
    format_marker,
    format_segment,
    parse_segment,
    read_marker,
)
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import ProvenFile, StoredFile
from mydata_like.core.errors import Cancelled, StagingError, TransientError
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.transfer.folder.mounted_files import LocalFiles

ODD = [
    b"plain.txt",
    b"a b",
    b"-",
    b"back\\slash",
    b"new\nline",
    b"cr\r",
    b"\xff",
    "ä".encode(),
    b"*",
]


MD5, SHA256 = Algorithm


def proven(
    path: bytes, content: bytes = b"x", inode: int = 1, algorithm: Algorithm = MD5
) -> ProvenFile:
    checksum = algorithm.hash(content).hexdigest()
    return ProvenFile(StoredFile(path, len(content), 2 * 10**18, 3 * 10**18, inode), checksum)


class WithPython(LocalFiles):
    """Files beside which programs of Python run, as on a host."""

    has_python = True

    def __init__(self, folder):
        super().__init__(folder)
        self.folder = folder
        self.answers = []

    def run_python(self, program, stdin):
        command = [sys.executable, "-I", "-S", "-c", program]
        ended = subprocess.run(command, input=stdin, capture_output=True, cwd=self.folder)
        self.answers.append(ended.stdout)
        return ended.stdout


@pytest.fixture(params=[LocalFiles, pytest.param(WithPython, marks=pytest.mark.process)])
def files(request, tmp_path):
    files = request.param(bytes(tmp_path / "there"))
    files.open(create=True)
    yield files
    files.close()


def open_manifest(files, uploader="us", problems=None):
    return Manifest(files, uploader, (problems if problems is not None else []).append)


def listed(files):
    return sorted((it.path, it.proven.checksum) for it in open_manifest(files).read())


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_segment_is_read_as_it_was_written(algorithm):
    given = [proven(path, inode=n, algorithm=algorithm) for n, path in enumerate(ODD)]
    content = format_segment(given, "host", 1_700_000_000, algorithm)
    found = list(parse_segment(content, algorithm))
    assert [it.proven for it in found] == given
    assert {(it.evidence, it.at) for it in found} == {("host", 1_700_000_000)}


def test_a_segment_without_a_name_of_its_checksums_has_md5():
    content = format_segment([proven(b"a")], "host", 1)
    assert b', "checksum": "md5"' in content
    before = content.replace(b', "checksum": "md5"', b"")
    assert [it.proven for it in parse_segment(before)] == [proven(b"a")]


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_checksum_of_another_length_damages_a_segment(algorithm):
    other = SHA256 if algorithm is MD5 else MD5
    content = format_segment([proven(b"a", algorithm=other)], "host", 1, algorithm)
    with pytest.raises(ValueError, match="damaged"):
        list(parse_segment(content, algorithm))


@pytest.mark.process
@pytest.mark.parametrize("algorithm", Algorithm)
def test_md5sum_and_sha256sum_accept_what_people_check(tmp_path, algorithm):
    for path in ODD:
        (tmp_path / Path(path.decode("utf-8", "surrogateescape"))).write_bytes(path)
    plain, escaped = format_checksums([proven(it, it, algorithm=algorithm) for it in ODD])
    for name, lines in (("plain", plain), ("escaped", escaped)):
        assert lines
        ended = subprocess.run(
            [algorithm.program, "-c", "--strict"], cwd=tmp_path, input=lines, capture_output=True
        )
        assert ended.returncode == 0, (name, ended)
    assert plain.count(b"\n") + escaped.count(b"\n") == len(ODD)


@pytest.mark.process
def test_md5sum_refuses_other_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"other")
    plain, _ = format_checksums([proven(b"a")])
    ended = subprocess.run(["md5sum", "-c"], cwd=tmp_path, input=plain, capture_output=True)
    assert ended.returncode == 1


def test_each_addition_is_a_segment_that_others_do_not_touch(files):
    open_manifest(files).add([proven(b"a")], 1)
    open_manifest(files, "others").add([proven(b"b")], 2)
    open_manifest(files).add([proven(b"c")], 3)
    assert [path for path, _ in listed(files)] == [b"a", b"b", b"c"]
    names = files.list_own(b".mydata-like/manifest")
    assert [name for name in names if name.endswith(b".jsonl")] == [
        b"others/000001.jsonl",
        b"us/000001.jsonl",
        b"us/000002.jsonl",
    ]


class Interrupted(LocalFiles):
    """Files that do something else once, before they write a segment, and tell who waits."""

    before_segment = None

    def __init__(self, folder):
        super().__init__(folder)
        self.waits = Event()

    def read(self, path):
        if path == TURN:
            self.waits.set()
        return super().read(path)

    def write(self, path, content, *, replace=False):
        if path.endswith(b".jsonl") and self.before_segment:
            act, self.before_segment = self.before_segment, None
            act()
        return super().write(path, content, replace=replace)


def test_two_uploaders_that_withdraw_at_once_do_not_undo_each_other(tmp_path):
    ours, theirs = (Interrupted(bytes(tmp_path / "there")) for _ in range(2))
    ours.open(create=True)
    theirs.open(create=True)
    open_manifest(ours).add([proven(b"a"), proven(b"b"), proven(b"c")], 1)

    def withdraw_theirs():
        open_manifest(theirs, "they").withdraw({b"b"})
        theirs.waits.set()

    def begin_theirs():
        thread.start()
        assert theirs.waits.wait(60)  # they wait for their turn, or are through

    thread = Thread(target=withdraw_theirs)
    ours.before_segment = begin_theirs
    open_manifest(ours).withdraw({b"a"})
    thread.join(60)

    assert [path for path, _ in listed(ours)] == [b"c"]
    ours.close()
    theirs.close()


def test_the_wait_for_another_uploader_ends_with_the_run(tmp_path):
    files = Interrupted(bytes(tmp_path / "there"))
    files.open(create=True)
    open_manifest(files).add([proven(b"a")], 1)
    files.write(TURN, b"of another uploader")
    cancel = CancelFlag()
    gate = Gate(SystemClock(), cancel, [].append, Random())
    manifest = Manifest(files, "us", [].append, rest=gate.rest)
    stopper = Thread(target=lambda: files.waits.wait(60) and cancel.set())
    stopper.start()

    with pytest.raises(Cancelled):
        manifest.withdraw({b"a"})

    stopper.join(60)
    assert files.read(TURN) == b"of another uploader"
    assert [path for path, _ in listed(files)] == [b"a"]
    files.close()


class Unanswered(LocalFiles):
    """Files whose first segment is written, but whose answer to that is lost."""

    is_lost = False

    def write(self, path, content, *, replace=False):
        written = super().write(path, content, replace=replace)
        if path.endswith(b".jsonl") and not self.is_lost:
            self.is_lost = True
            raise TransientError("The connection was lost.")
        return written


def test_files_are_listed_once_although_the_answer_was_lost(tmp_path):
    files = Unanswered(bytes(tmp_path / "there"))
    files.open(create=True)
    manifest = open_manifest(files)

    with pytest.raises(TransientError):
        manifest.add([proven(b"a")], 1)
    manifest.add([proven(b"a")], 1)
    manifest.add([proven(b"b")], 1)

    assert [path for path, _ in listed(files)] == [b"a", b"b"]
    files.close()


def test_what_is_withdrawn_is_listed_nowhere(files):
    manifest = open_manifest(files)
    manifest.add([proven(b"a"), proven(b"new\nline")], 1)
    manifest.add([proven(b"a", b"y"), proven(b"b")], 2)
    manifest.withdraw({b"a", b"new\nline"})
    assert [path for path, _ in listed(files)] == [b"b"]
    texts = [
        files.read(b".mydata-like/manifest/" + name)
        for name in files.list_own(b".mydata-like/manifest")
        if name.endswith(b".md5")
    ]
    assert b"".join(texts) == b"%b  ./b\n" % proven(b"b").checksum.encode()


@pytest.mark.process
def test_python_writes_what_is_written_otherwise(tmp_path):
    written = []
    for kind in (LocalFiles, WithPython):
        files = kind(bytes(tmp_path / kind.__name__))
        files.open(create=True)
        for uploader, names in (("us", ODD), ("they", ODD[::2]), ("others", [b"more"])):
            open_manifest(files, uploader).add([proven(it) for it in names], 1)
        open_manifest(files).withdraw(ODD[1::3])
        own = files.list_own(b".mydata-like")
        written.append([(it, files.read(b".mydata-like/" + it)) for it in own])
        files.close()

    assert files.answers == [b"end"]
    assert written[0] == written[1]
    assert sum(content.count(b"new\\nline") for _, content in written[0]) == 0


@pytest.mark.process
def test_python_follows_no_link_in_a_manifest(tmp_path):
    files = WithPython(bytes(tmp_path / "there"))
    files.open(create=True)
    open_manifest(files).add([proven(b"a"), proven(b"b")], 1)
    segment = tmp_path / "there/.mydata-like/manifest/us/000001.jsonl"
    outside = segment.rename(tmp_path / "outside")
    before = outside.read_bytes()
    segment.symlink_to(outside)

    open_manifest(files).withdraw([b"a"])

    assert files.answers == [b""]
    assert outside.read_bytes() == before
    files.close()


class Noting(LocalFiles):
    """Files that note which ones of ours are read and written."""

    def __init__(self, path):
        super().__init__(path)
        self.noted = []

    def read(self, path):
        self.noted.append(b"read " + path.rpartition(b"/")[2])
        return super().read(path)

    def write(self, path, content, *, replace=False):
        self.noted.append(b"write " + path.rpartition(b"/")[2])
        return super().write(path, content, replace=replace)


def test_only_segments_that_list_a_file_are_written_again_and_others_read_once(tmp_path):
    files = Noting(bytes(tmp_path / "there"))
    files.open(create=True)
    for name in b"abc":
        open_manifest(files).add([proven(bytes([name]))], 1)
    manifest = open_manifest(files)
    manifest.withdraw([b"a"])
    files.noted.clear()

    manifest.withdraw([b"b"])
    manifest.withdraw([b"b", b"never listed"])

    ours = [it for it in files.noted if b"withdrawing" not in it]
    assert ours == [
        b"read 000002.md5",
        b"read 000002.jsonl",
        b"write 000002.md5",
        b"write 000002.jsonl",
    ]
    assert [path for path, _ in listed(files)] == [b"c"]
    files.close()


class NotingWithPython(Noting, WithPython):
    """Files that note what is read and written, but by Python."""


@pytest.mark.process
def test_a_run_that_has_withdrawn_a_file_reads_no_segment_for_it(tmp_path):
    files = NotingWithPython(bytes(tmp_path / "there"))
    files.open(create=True)
    manifest = open_manifest(files)
    manifest.add([proven(b"a"), proven(b"b")], 1)
    files.noted.clear()

    manifest.withdraw([b"a"])
    manifest.withdraw_earlier([b"a"])
    assert [it for it in files.noted if b"withdrawing" not in it] == []
    manifest.add([proven(b"a", b"y")], 1)
    manifest.withdraw_earlier([b"a"])

    assert files.answers == [b"end", b"end"]
    assert [path for path, _ in listed(files)] == [b"b"]
    files.close()


def test_what_was_listed_after_a_withdrawal_is_withdrawn_as_well(files):
    manifest, other = open_manifest(files), open_manifest(files, "they")
    manifest.add([proven(b"a")], 1)
    manifest.withdraw([b"a"])
    manifest.add([proven(b"a", b"y")], 2)
    other.add([proven(b"a", b"y"), proven(b"b")], 3)

    manifest.withdraw([b"a"])

    assert [path for path, _ in listed(files)] == [b"b"]


def test_a_segment_that_was_not_complete_is_read_again(files):
    lists = b".mydata-like/manifest/they/000001"
    files.write(lists + b".md5", b"%b  ./a\n" % proven(b"a").checksum.encode())
    manifest = open_manifest(files)
    manifest.withdraw([b"x"])
    files.write(lists + b".jsonl", format_segment([proven(b"a"), proven(b"b")], "host", 1))

    manifest.withdraw([b"b"])

    assert [path for path, _ in listed(files)] == [b"a"]


def test_a_damaged_segment_stays_and_people_find_nothing_withdrawn_in_its_list(files):
    open_manifest(files).add([proven(b"a"), proven(b"b")], 1)
    segment, checksums = (b".mydata-like/manifest/us/000001" + it for it in (b".jsonl", b".md5"))
    damaged = b"".join(files.read(segment).splitlines(keepends=True)[:-1])
    files.write(segment, damaged, replace=True)
    problems = []

    open_manifest(files, problems=problems).withdraw([b"a"])

    assert files.read(segment) == damaged
    assert files.read(checksums) == b"%b  ./b\n" % proven(b"b").checksum.encode()
    assert [it.code for it in problems] == ["destination.manifest"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"{}", b'{"format": 2}\n', b"\xff", b'{"format":1,"evidence":"host","at":1}\n[1]'],
)
def test_a_damaged_segment_is_reported_and_lists_nothing(files, damage):
    open_manifest(files).add([proven(b"a")], 1)
    open_manifest(files, "damaged").add([proven(b"b")], 1)
    files.write(b".mydata-like/manifest/damaged/000001.jsonl", damage, replace=True)
    problems = []
    found = list(open_manifest(files, problems=problems).read())
    assert [it.path for it in found] == [b"a"]
    assert [it.code for it in problems] == ["destination.manifest"]
    assert "damaged/000001.jsonl" in problems[0].message


def test_the_files_of_a_destination_have_the_ending_of_its_checksums(files):
    files.use(SHA256)
    given = [proven(name, algorithm=SHA256) for name in (b"a", b"b", b"new\nline", b"x\ny")]
    open_manifest(files).add(given, 1)
    open_manifest(files).withdraw([b"a", b"x\ny"])
    assert files.list_own(b".mydata-like/manifest/us") == [
        b"000001-escaped.sha256",
        b"000001.jsonl",
        b"000001.sha256",
    ]
    assert listed(files) == [(b"b", given[1].checksum), (b"new\nline", given[2].checksum)]
    lists = (b"000001.sha256", b"000001-escaped.sha256")
    lines = tuple(files.read(b".mydata-like/manifest/us/" + name) for name in lists)
    assert lines == format_checksums(given[1:3])


def test_what_has_other_checksums_than_the_destination_is_not_listed(files):
    open_manifest(files).add([proven(b"a")], 1)
    files.use(SHA256)
    problems = []
    assert list(open_manifest(files, problems=problems).read()) == []
    assert [it.code for it in problems] == ["destination.manifest"]
    assert "of another kind" in problems[0].message


@pytest.mark.parametrize("algorithm", Algorithm)
def test_a_marker_is_read_as_it_was_written(files, algorithm):
    assert read_marker(files.read(MARKER)) == DestinationMarker("", MD5)
    files.write(MARKER, format_marker(DestinationMarker("an-id", algorithm)))
    assert read_marker(files.read(MARKER)) == DestinationMarker("an-id", algorithm)


def test_a_marker_of_md5_is_that_of_earlier_versions_and_another_is_none_to_them():
    assert format_marker(DestinationMarker("x")) == b'{"format": 1, "id": "x"}\n'
    assert json.loads(format_marker(DestinationMarker("x", SHA256)))["format"] != 1


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b'{"format": 1}', b'{"format": 2, "id": "x"}'),
        *(b'{"format": 2, "id": "x", "checksum": "sha512"}', b'{"format": 3, "id": "x"}'),
    ],
)
def test_a_marker_of_another_format_is_refused(content):
    with pytest.raises(StagingError) as caught:
        read_marker(content)
    assert caught.value.problem_code == "destination.marker"
