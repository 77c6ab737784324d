"""The command `get`, from destinations that the real `copy` has made, on hosts and in a folder.

No file gets its name with other bytes than those that were copied.
"""

import base64
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from random import Random

import psutil
import pytest

from mydata_like.core.events import parse_event
from mydata_like.engine.progress import RunProgress
from mydata_like.hostos.clock import SystemClock
from mydata_like.selftest.tampering import TamperingProxy
from mydata_like.transfer.folder.received_files import WantedFile
from tests.copy_site import CopySite, hash_file, look, open_copy_site
from tests.mounts import MOUNTS, SmallDisk, may_mount_disks, needs_mounts
from tests.site import DEADLINE, close_streams, finish, kill_group, yield_processor
from tests.sshd_fixture import first_in_path, needs_sshd, sftp_only, sshd_with

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="names, modes and programs of POSIX"),
]

ODD = (
    *(b"caf\xe9", b"\xff", b"new\nline", b"CR\r", b"tab\t", b"back\\slash", b"\\n", b"\\\\"),
    *(b"-", b"-rf", b"--help", b" leading", b"two  spaces", b"trailing ", b"quote'\"", b"*"),
    *(b"?[a]", b"$HOME;`id`", b"#x#", b"~", b"~root", b"%20", b"a:b", b"=", b"n" * 255),
    *("\u00e9".encode(), "e\u0301".encode(), b".hidden", b"...", b"x.tmp", b".mydata-probe"),
)
LARGE = 20_000_000  # bytes
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
# Each of these is what a host prints instead of a tar stream; see `write_hostile`.
HOSTILE = """
import sys, tarfile
kind, names = sys.argv[1], [it for it in sys.stdin.buffer.read().split(b"\\0") if it]
out = tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT)
class Zeros:
    def read(self, size):
        return bytes(size)
for name in names:
    name = name.decode("utf-8", "surrogateescape")
    made = {
        "other names": (name + "x", tarfile.REGTYPE, 10, ""),
        "above": ("../" + name, tarfile.REGTYPE, 10, ""),
        "absolute": ("/tmp/get-" + name[2:], tarfile.REGTYPE, 10, ""),
        "links": (name, tarfile.SYMTYPE, 0, "/etc/passwd"),
        "hard links": (name, tarfile.LNKTYPE, 0, "/etc/passwd"),
        "devices": (name, tarfile.CHRTYPE, 0, ""),
        "larger": (name, tarfile.REGTYPE, 3_000_000, ""),
        "empty": (name, tarfile.REGTYPE, 0, ""),
        "zeros": (name, tarfile.REGTYPE, 10, ""),
    }[kind]
    member = tarfile.TarInfo(made[0])
    member.type, member.size, member.linkname = made[1:]
    out.addfile(member, Zeros())
out.close()
"""


class Getting(CopySite):
    """A user who has copied `data/src` to the folder `there`, and gets it in `here`."""

    @property
    def source(self):
        return self.data / "src"

    @property
    def here(self):
        return self.folder / "here"

    def make(self, name, content):
        path = self.source / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def copy_all(self):
        ended = self.copy(self.source)
        assert ended.code == 0, ended.output + ended.complaints

    def start_get(self, *words, what=b"", where=None):
        name = os.fsencode(self.target) + b"/" + os.fsencode(what) if what else self.target
        return self.start_command("get", name, where or self.here, *words)

    def get(self, *words, what=b"", where=None):
        """Get something; return the exit code and the output without its line of speed."""
        ended = finish(self.start_get(*words, what=what, where=where))
        assert not ended.complaints
        lines = ended.output.splitlines()
        return ended.code, [line for line in lines if "fetched in" not in line]

    def get_or_complain(self, *words, what=b"", where=None):
        ended = finish(self.start_get(*words, what=what, where=where))
        return ended.code, ended.output + ended.complaints

    def get_json(self, *words, what=b""):
        ended = finish(self.start_get("--json", *words, what=what))
        return ended.code, json.loads(ended.output)

    def listed(self):
        """Return the lines of the only segment."""
        (segment,) = self.segments
        return segment, segment.read_text().splitlines()


HOSTS = {
    "host": lambda folder: (),
    "SFTP": lambda folder: sftp_only(),
    "no tar": lambda folder: first_in_path(folder, tar="exit 1\n"),
}
KINDS = (*HOSTS, "folder")


def open_site(folder, kind, sshd):
    return open_copy_site(folder, "folder" if kind == "folder" else "host", sshd, Getting)


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    with sshd_with(folder, *HOSTS.get(request.param, HOSTS["host"])(folder)) as sshd:
        yield request.param, sshd


@pytest.fixture
def site(kind, tmp_path):
    with open_site(tmp_path / "site", *kind) as site:
        yield site


@pytest.fixture
def host_site(tmp_path, sshd):
    with open_site(tmp_path / "site", "host", sshd) as site:
        yield site


@pytest.fixture(params=["host", "folder"])
def any_site(request, tmp_path, sshd):
    with open_site(tmp_path / "site", request.param, sshd) as site:
        yield site


def make_tree(site):
    """Make files with odd names, holes, times and modes, links and empty folders."""
    for number, name in enumerate(ODD):
        path = site.make(b"odd/" + name, b"content of " + name)
        os.utime(path, ns=(0, 1_600_000_000_000_000_000 + number * 10**9))
        path.chmod((0o640, 0o444, 0o755)[number % 3])
    site.make("empty file", b"")
    site.make("large", Random(1).randbytes(LARGE))
    with site.make("sparse", b"begin").open("r+b") as file:
        file.truncate(40_000_000)
        file.seek(30_000_000)
        file.write(b"middle")
    (site.source / "empty" / "folder").mkdir(parents=True)
    (site.source / "empty").chmod(0o750)
    (site.source / "link").symlink_to("odd/-rf")
    (site.source / "odd" / os.fsdecode(b"dangling \xff")).symlink_to("no\nwhere")
    os.utime(site.source / "odd", ns=(0, 1_500_000_000 * 10**9))


def forget_lists(site):
    """Remove the lists that md5sum would complain about."""
    shutil.rmtree(site.there / ".mydata-like" / "manifest")


def seen(folder):
    """Return what is in a folder, with times in seconds."""
    return {
        path: it._replace(modified_ns=it.modified_ns // 10**9)
        for path, it in look(folder).items()
        if path and path.split(b"/")[0] != b".mydata-like"
    }


def await_that(process, happened):
    deadline = time.monotonic() + DEADLINE
    while not happened():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        yield_processor()


def has_part(folder):
    """Return whether a large file is here in part."""
    with suppress(FileNotFoundError):
        return [it for it in left_in(folder) if it.stat().st_size > 2_000_000]
    return []


def left_in(folder):
    return [it for it in folder.rglob("*") if it.name.startswith(".mydata-get-")]


def test_what_was_copied_comes_back_as_it_was(site, kind):
    make_tree(site)
    site.copy_all()

    code, output = site.get(what="src")

    files = len(ODD) + 3
    size = output[-1].partition(": ")[0]
    problems = output[:-1]
    assert output[-1] == f"{size}: {files} fetched and compared with the manifest (MD5)"
    assert seen(site.here / "src").keys() - seen(site.source).keys() == set()
    if kind[0] == "no tar":
        assert (code, len(problems)) == (1, 1)
        assert "no tar" in problems[0]
        return
    assert (code, problems) == (0, [])
    assert seen(site.here / "src") == seen(site.source)
    if kind[0] != "SFTP":
        assert (site.here / "src" / "sparse").stat().st_blocks * 512 < 1_000_000


def test_a_second_time_all_is_already_here(site):
    for number in range(40):
        site.make(f"{number}.raw", b"%d\n" % number * 1000)
    site.copy_all()
    site.get(what="src")
    (site.here / "src" / "7.raw").unlink()
    before = {path: path.stat().st_ino for path in site.here.rglob("*.raw")}

    ended, again = site.get_json(what="src"), site.get_json(what="src")

    assert [(code, it["here"], it["fetched"]) for code, it in (ended, again)] in (
        [(0, 39, 1), (0, 40, 0)],
        [(1, 39, 1), (1, 40, 0)],  # without tar
    )
    assert before.items() <= {path: path.stat().st_ino for path in site.here.rglob("*.raw")}.items()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("", {"there/src/a", "there/src/sub/b", "there/src/sub/c"}),
        ("/", {"src/a", "src/sub/b", "src/sub/c"}),
        ("/src", {"src/a", "src/sub/b", "src/sub/c"}),
        ("/src/", {"a", "sub/b", "sub/c"}),
        ("/src/sub", {"sub/b", "sub/c"}),
        ("/src/sub/.", {"b", "c"}),
        ("/src/sub/b", {"b"}),
    ],
)
def test_a_folder_or_its_contents_or_one_file_come_here(any_site, what, expected):
    for name in ("a", "sub/b", "sub/c"):
        any_site.make(name, name.encode())
    any_site.copy_all()

    ended = finish(any_site.start_command("get", any_site.target + what, any_site.here))

    assert ended.code == 0, ended.output
    files = {path for path, it in look(any_site.here).items() if it.kind == "file"}
    assert files == {os.fsencode(it) for it in expected}
    assert all((any_site.here / it).read_bytes().decode()[-1] == it[-1] for it in expected)


def test_patterns_choose_files_and_folders(any_site):
    for name in ("a.raw", "a.txt", "sub/b.raw", "sub/b.txt", "texts/c.txt"):
        any_site.make(name, name.encode())
    (any_site.source / "link.raw").symlink_to("a.raw")
    (any_site.source / "link.txt").symlink_to("a.txt")
    any_site.copy_all()

    code, output = any_site.get("--include", "*.raw", "--exclude", "/a.raw", what="src/")

    assert (code, output[-1][:7]) == (0, "1 file,")
    assert look(any_site.here).keys() == {b"", b"sub", b"sub/b.raw", b"link.raw"}


def test_a_dry_run_changes_nothing(any_site):
    any_site.make("a", b"aaa")
    any_site.make("b", b"b")
    any_site.copy_all()
    any_site.here.mkdir()
    (any_site.here / "a").write_bytes(b"aaa")
    before = look(any_site.folder)

    code, output = any_site.get("--dry-run", what="src/")

    assert (code, output) == (0, ["2 files, 4 bytes: 1 already here, 1 would be fetched"])
    after = look(any_site.folder)
    assert {path for path in after if after[path] != before.get(path)} <= {
        path for path in after if path.startswith((b"own files", b"home"))
    } | {b""}


def test_what_is_not_listed_is_named_and_stays_there(any_site):
    any_site.make("a", b"aaa")
    any_site.copy_all()
    (any_site.there / "src" / "other").write_bytes(b"not proven")

    code, output = any_site.get(what="src")

    assert (code, output[0]) == (0, "Not listed, so not fetched: src/other")
    assert not (any_site.here / "src" / "other").exists()


def test_other_bytes_get_no_name(site):
    for name in ("same", "changed", "shorter", "longer", "missing"):
        site.make(name, name.encode() * 100)
    site.make("large", Random(1).randbytes(LARGE))
    site.copy_all()
    there = site.there / "src"
    (there / "changed").write_bytes(b"CHANGED" * 100)
    (there / "shorter").write_bytes(b"shorter")
    (there / "longer").write_bytes(b"longer" * 100 + b"x")
    (there / "missing").unlink()
    with (there / "large").open("r+b") as file:
        file.seek(LARGE // 2)
        file.write(b"wrong")

    code, found = site.get_json(what="src")

    wrong = {it["path"]: it["code"] for it in found["problems"] if it["path"]}
    changed = ("changed", "shorter", "longer", "large")
    assert code == 1
    assert wrong == {f"src/{it}": "destination.differs" for it in changed} | {
        "src/missing": "server.lost"
    }
    assert (found["found"], found["fetched"], found["failed"]) == (6, 1, 5)
    assert [it.name for it in (site.here / "src").iterdir()] == ["same"]
    forget_lists(site)


def test_what_is_here_is_replaced_only_on_request(any_site):
    for name in ("same size", "other size", "folder", "link", "same"):
        any_site.make(name, name.encode() * 10)
    any_site.copy_all()
    here = any_site.here
    here.mkdir()
    (here / "same size").write_bytes(b"SAME SIZE" * 10)
    (here / "other size").write_bytes(b"mine")
    (here / "same").write_bytes(b"same" * 10)
    (here / "folder").mkdir()
    (any_site.folder / "elsewhere").write_bytes(b"mine")
    (here / "link").symlink_to(any_site.folder / "elsewhere")
    before = look(here)

    refused, found = any_site.get_json(what="src/")
    after = look(here)
    replaced, again = any_site.get_json("--replace", what="src/")

    occupied = [(it["path"], it["code"]) for it in found["problems"]]
    names = ("same size", "other size", "folder", "link")
    assert (refused, found["here"]) == (1, 1)
    assert sorted(occupied) == sorted((f"src/{it}", "destination.occupied") for it in names)
    assert {**after, b"": None} == {**before, b"": None}
    assert (replaced, again["here"], again["fetched"], again["failed"]) == (1, 1, 2, 2)
    assert (here / "same size").read_bytes() == b"same size" * 10
    assert (here / "other size").read_bytes() == b"other size" * 10
    assert (any_site.folder / "elsewhere").read_bytes() == b"mine"
    assert left_in(here) == []


def test_nothing_is_written_through_a_link(any_site):
    any_site.make("sub/file", b"content")
    any_site.make("large/file", Random(1).randbytes(LARGE))
    any_site.copy_all()
    outside = any_site.folder / "outside"
    outside.mkdir()
    any_site.here.mkdir()
    for name in ("sub", "large"):
        (any_site.here / name).symlink_to(outside)

    code, found = any_site.get_json(what="src/")

    assert (code, found["failed"]) == (1, 2)
    assert {it["code"] for it in found["problems"]} == {"destination.link"}
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "path", [b"../escaped", b"/tmp/escaped", b"src/../../escaped", b"a//b", b".mydata-like/x", b""]
)
def test_a_hostile_manifest_writes_nothing_elsewhere(any_site, path):
    any_site.make("file", b"content")
    any_site.copy_all()
    segment, lines = any_site.listed()
    name = base64.b64encode(path).decode()
    file = json.loads(lines[1])
    lines += [json.dumps([name, *file[1:]])]
    head = json.loads(lines[0]) | {"files": 2}
    segment.write_text("\n".join([json.dumps(head), *lines[1:], ""]))
    for place in (any_site.folder / "escaped", any_site.there.parent / "escaped"):
        place.write_bytes(b"mine")

    code, found = any_site.get_json(what=b"/")

    forget_lists(any_site)
    assert code == 1
    assert [it["code"] for it in found["problems"]] == ["destination.manifest"]
    assert (any_site.here / "src" / "file").read_bytes() == b"content"
    assert {path for path, it in look(any_site.here).items() if it.kind == "file"} == {b"src/file"}
    assert (any_site.folder / "escaped").read_bytes() == b"mine"


def write_hostile(folder, kind):
    """Return options of a host whose tar writes something else."""
    program = folder / "hostile.py"
    program.write_text(HOSTILE)
    tar = 'for f do shift; case $f in ./*) printf "%s\\0" "$f";; esac; done | '
    return first_in_path(folder, tar=f"{tar}{sys.executable} {program} '{kind}'\n")


@pytest.mark.parametrize(
    "kind",
    [
        *("other names", "above", "absolute", "links", "hard links", "devices", "larger"),
        *("empty", "zeros"),
    ],
)
def test_a_hostile_tar_puts_nothing_here(tmp_path, kind):
    with (
        sshd_with(tmp_path, *write_hostile(tmp_path, kind)) as sshd,
        open_site(tmp_path / "site", "host", sshd) as site,
    ):
        for name in ("a", "b", "c"):
            site.make(name, name.encode() * 10)
        ended = finish(site.start(site.source, site.target, "--json"))
        assert ended.code == 0, ended.output

        code, found = site.get_json(what="src/")

        files = {path for path, it in look(site.here).items() if it.kind == "file"}
        assert {(site.here / os.fsdecode(it)).read_bytes() for it in files} == {
            b"a" * 10,
            b"b" * 10,
            b"c" * 10,
        }
        assert files == {b"a", b"b", b"c"}
        assert (code, found["fetched"]) in ((0, 3), (1, 3))
        assert left_in(site.here) == []


LIES = {
    "less": 'head -c 1000 "$1"',
    "other": 'tr a b < "$1"',
    "endless": "exec yes",
    "failing": 'head -c 10 "$1"; echo "Input/output error" >&2; exit 1',
    "right and failing": '/bin/cat "$1"; echo "Input/output error" >&2; exit 1',
}


@pytest.mark.parametrize("lie", LIES)
def test_a_host_that_lies_about_a_file_puts_nothing_here(tmp_path, lie):
    text = f'case $1 in ./victim) {LIES[lie]}; exit;; esac; exec /bin/cat "$@"\n'
    with (
        sshd_with(tmp_path, *first_in_path(tmp_path, cat=text, tar="exit 1\n")) as sshd,
        open_site(tmp_path / "site", "host", sshd) as site,
    ):
        site.make("victim", b"a" * 5000)
        site.make("other", b"b" * 5000)
        ended = finish(site.start(site.source, site.target, "--json"))
        assert ended.code == 0, ended.output

        code, found = site.get_json(what="src/")

        wrong = {it["path"]: it["code"] for it in found["problems"] if it["path"]}
        expected = "destination.refused" if "failing" in lie else "destination.differs"
        assert (code, wrong) == (1, {"src/victim": expected})
        assert [it.name for it in site.here.iterdir()] == ["other"]


def test_what_is_changed_on_the_way_does_not_arrive(host_site):
    content = Random(1).randbytes(LARGE)
    host_site.make("large", content)
    host_site.copy_all()
    ssh = host_site.home / ".ssh"

    with TamperingProxy(host_site.sshd.port) as proxy:
        for name in ("config", "known_hosts"):
            text = (ssh / name).read_text()
            (ssh / name).write_text(text.replace(str(host_site.sshd.port), str(proxy.port)))
        proxy.flip(inward=True, after=5_000_000, bit=3)
        code, found = host_site.get_json(what="src/")

    assert proxy.changed.is_set()
    assert (code, found["fetched"], found["failed"]) == (0, 1, 0)
    assert (host_site.here / "large").read_bytes() == content
    assert left_in(host_site.here) == []


def test_an_interrupted_get_continues_within_a_file(any_site):
    any_site.make("large", Random(1).randbytes(LARGE))
    for number in range(20):
        any_site.make(f"{number}.raw", b"%d\n" % number * 1000)
    any_site.copy_all()
    part = []

    def has_begun():
        part[:] = has_part(any_site.here)
        return part

    process = any_site.start_get("--bandwidth", "4", what="src/")
    await_that(process, has_begun)
    process.send_signal(signal.SIGINT)
    ended = finish(process)
    kept = part[0].stat().st_size
    moved = any_site.start_get("--bandwidth", "20", "--json", what="src/")
    code = finish(moved).code

    assert ended.code == 130
    assert "Interrupted.\n" in ended.output
    assert "The same command continues." in ended.output
    assert 2_000_000 < kept < LARGE
    assert code == 0
    assert seen(any_site.here).keys() == seen(any_site.source).keys()
    assert (any_site.here / "large").read_bytes() == (any_site.source / "large").read_bytes()
    assert left_in(any_site.here) == []


def test_what_is_continued_is_compared_as_a_whole(any_site):
    content = Random(1).randbytes(LARGE)
    any_site.make("large", content)
    any_site.copy_all()
    process = any_site.start_get("--bandwidth", "4", what="src/")
    await_that(process, lambda: has_part(any_site.here))
    kill_group(process)
    close_streams(process)
    (part,) = left_in(any_site.here)
    with part.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"other bytes")

    code, found = any_site.get_json(what="src/")

    assert (code, found["fetched"]) == (0, 1)
    assert (any_site.here / "large").read_bytes() == content


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_get_leaves_no_wrong_file_and_continues(any_site, seed):
    chance = Random(seed)
    for number in range(300):
        any_site.make(f"{number % 9}/{number}.raw", chance.randbytes(chance.randrange(30_000)))
    any_site.make("large", chance.randbytes(LARGE))
    any_site.copy_all()
    source = look(any_site.source)
    wanted = chance.randrange(10, 250)

    process = any_site.start_get("--bandwidth", "10", what="src/")
    await_that(process, lambda: len(list(any_site.here.rglob("*.raw"))) > wanted)
    kill_group(process)
    close_streams(process)
    after = look(any_site.here)
    code, _ = any_site.get(what="src/")

    named = {
        path: it for path, it in after.items() if it.kind == "file" and b".mydata-get-" not in path
    }
    assert all(it.content == source[path].content for path, it in named.items())
    assert code == 0
    assert seen(any_site.here) == seen(any_site.source)


def test_a_connection_that_breaks_is_opened_again(host_site):
    host_site.make("large", Random(1).randbytes(LARGE))
    host_site.copy_all()
    process = host_site.start_get("--bandwidth", "10", "--json", what="src/")
    await_that(process, lambda: has_part(host_site.here))

    host_site.sshd.kill_sessions()
    ended = finish(process)

    assert ended.code == 0, ended.output
    assert (host_site.here / "large").stat().st_size == LARGE


def make_many_large(site):
    """Make so many that each session reads two at once, of different sizes."""
    for number in range(10):
        site.make(f"{number}", Random(number).randbytes(LARGE // 8 + 100_000 * number))
    site.copy_all()


def test_of_large_files_that_come_together_only_the_wrong_ones_fail(site):
    make_many_large(site)
    with (site.there / "src/3").open("r+b") as file:
        file.write(b"wrong")
    (site.there / "src/8").unlink()

    code, found = site.get_json(what="src/")

    wrong = {it["path"]: it["code"] for it in found["problems"] if it["path"]}
    assert (code, found["fetched"]) == (1, 8)
    assert wrong == {"src/3": "destination.differs", "src/8": "server.lost"}
    right = {str(number) for number in range(10)} - {"3", "8"}
    assert {it.name for it in site.here.iterdir()} == right
    assert all(
        (site.here / name).read_bytes() == (site.source / name).read_bytes() for name in right
    )
    forget_lists(site)


def test_a_host_with_one_channel_is_asked_for_one_large_file_at_once(tmp_path):
    with sshd_with(tmp_path, "MaxSessions 1") as sshd, open_site(tmp_path, "host", sshd) as site:
        make_many_large(site)

        code, _ = site.get(what="src/")

        assert code == 0
        assert seen(site.here) == seen(site.source)


def test_large_files_that_come_together_continue_after_their_connection_broke(host_site):
    make_many_large(host_site)
    process = host_site.start_get("--bandwidth", "5", "--json", what="src/")
    await_that(process, lambda: has_part(host_site.here))

    host_site.sshd.kill_sessions()
    ended = finish(process)

    assert ended.code == 0, ended.output
    assert seen(host_site.here) == seen(host_site.source)


def make_many_bytes(site):
    """Make so many that processes receive them; most are holes, which are not sent."""
    site.make("holes", b"x")
    os.truncate(site.source / "holes", 300_000_000)
    for number in range(8):
        site.make(f"{number}", Random(number).randbytes(LARGE // 2))
        site.make(f"small/{number}", b"%d" % number)
    site.copy_all()


def test_a_killed_process_is_reported_and_another_receives_what_is_left(host_site):
    make_many_bytes(host_site)
    process = host_site.start_get("--events", what="src/")
    await_that(process, lambda: has_part(host_site.here))

    for child in psutil.Process(process.pid).children():
        child.kill()
    ended = finish(process)

    events = [json.loads(line) for line in ended.output.splitlines()]
    retried = [it["problem"]["code"] for it in events if it["event"] == "transfer_retried"]
    assert ended.code == 0, ended.output
    assert set(retried) == {"channel.lost"}
    assert seen(host_site.here) == seen(host_site.source)
    assert left_in(host_site.here) == []


def test_processes_end_with_their_command_and_the_next_one_continues(host_site):
    make_many_bytes(host_site)
    process = host_site.start_get(what="src/")
    await_that(process, lambda: has_part(host_site.here))
    children = psutil.Process(process.pid).children()

    process.kill()  # only this one
    close_streams(process)
    _, alive = psutil.wait_procs(children, DEADLINE)
    code, _ = host_site.get(what="src/")

    assert children
    assert (code, alive) == (0, [])
    assert seen(host_site.here) == seen(host_site.source)


def test_processes_that_are_interrupted_leave_only_what_can_be_continued(host_site):
    make_many_bytes(host_site)
    process = host_site.start_get(what="src/")
    await_that(process, lambda: has_part(host_site.here))
    children = psutil.Process(process.pid).children()

    process.send_signal(signal.SIGINT)
    ended = finish(process)

    assert ended.code == 130, ended.output
    assert not any(it.is_running() for it in children)
    names = (b"holes", *(b"%d" % number for number in range(8)))
    parts = {WantedFile(it, it, 0, "", 0).part for it in names}
    assert {os.fsencode(it.name) for it in left_in(host_site.here)} <= parts
    assert host_site.get(what="src/")[0] == 0
    assert seen(host_site.here) == seen(host_site.source)


def test_holes_are_made_of_zeros_on_request(any_site):
    any_site.make("zeros", b"x" + bytes(10_000_000) + b"x")
    any_site.copy_all()

    any_site.get(what="src", where=any_site.here / "plain")
    any_site.get("--sparse", what="src", where=any_site.here / "sparse")

    sizes = [
        (any_site.here / it / "src" / "zeros").stat().st_blocks * 512 for it in ("plain", "sparse")
    ]
    assert sizes[0] > 10_000_000 > 1_000_000 > sizes[1]


@pytest.mark.skipif(not may_mount_disks(), reason="mounting is not permitted")
def test_a_full_disk_ends_it_and_more_space_lets_it_continue(any_site):
    for number in range(8):
        any_site.make(f"{number}.raw", Random(number).randbytes(2_000_000))
    any_site.copy_all()
    any_site.here.mkdir()

    with SmallDisk(any_site.here, "8m") as disk:
        code, found = any_site.get_json(what="src/")
        disk.enlarge()
        again, rest = any_site.get_json(what="src/")

        assert (code, found["problem"]["code"]) == (3, "staging.full")
        assert found["problem"]["message"].startswith("The target folder has no space for ")
        assert (again, rest["here"] + rest["fetched"], rest["here"]) == (0, 8, found["fetched"])
        assert left_in(any_site.here) == []


@needs_mounts
def test_a_read_only_target_is_refused(any_site):
    any_site.make("a", b"a")
    any_site.copy_all()
    any_site.here.mkdir()
    any_site.wrap = (*MOUNTS, "sh", "-c", READ_ONLY, "sh", str(any_site.here))

    code, output = any_site.get_or_complain(what="src/")

    assert code == 3
    assert "cannot be written: the target folder is mounted read-only." in output


def write_marker(there, text):
    (there / ".mydata-like" / "destination.json").write_text(text)


def test_other_places_are_refused_with_a_sentence(any_site):
    any_site.make("a", b"a")
    any_site.copy_all()
    (any_site.folder / "other" / "folder").mkdir(parents=True)
    found = {}

    def call(name, *words):
        ended = finish(any_site.start_command("get", *words))
        found[name] = ended.code, (ended.output + ended.complaints).splitlines()[0]

    here, name = any_site.here, any_site.name_target
    call("no destination", name(any_site.folder / "other" / "folder"), here)
    call("missing", name(any_site.folder / "missing"), here)
    call("not listed", name(any_site.there / "src" / "b"), here)
    call("a file as a folder", f"{name(any_site.there)}/src/a/", here)
    call("own folder", name(any_site.there / ".mydata-like"), here)
    if any_site.kind == "host":
        call("folder above", f"{name(any_site.there)}/src/..", here)
    call("target on a host", any_site.target, "store:/somewhere")
    (any_site.folder / "file").write_bytes(b"")
    call("target is a file", any_site.target, any_site.folder / "file")
    write_marker(any_site.there, '{"format": 9, "id": "x"}')
    call("newer", any_site.target, here)

    codes = {it: code for it, (code, _) in found.items()}
    text = {it: line for it, (_, line) in found.items()}
    assert codes == {
        "no destination": 3,
        "missing": 3,
        "not listed": 2,
        "a file as a folder": 2,
        "own folder": 2,
        **({"folder above": 2} if any_site.kind == "host" else {}),
        "target on a host": 2,
        "target is a file": 3,
        "newer": 3,
    }
    assert "is not a destination of mydata-like copy" in text["no destination"]
    assert "is not in the manifest of" in text["not listed"]
    assert "is not a local folder" in text["target on a host"]
    assert "is not a folder" in text["target is a file"]
    assert "a newer version wrote it" in text["newer"]
    assert not here.exists()
    write_marker(any_site.there, "")


def test_a_target_in_the_destination_is_refused(any_site):
    any_site.make("a", b"a")
    any_site.copy_all()
    if any_site.kind != "folder":
        pytest.skip("only a folder is on this computer")
    before = look(any_site.there)

    inside = any_site.get_or_complain(what="src", where=any_site.there / "again")
    same = any_site.get_or_complain(where=any_site.there.parent)

    assert [inside[0], same[0]] == [2, 2]
    assert look(any_site.there) == before


def test_one_target_is_used_by_one_command(any_site):
    any_site.make("large", bytes(LARGE))
    any_site.copy_all()
    process = any_site.start_get("--bandwidth", "1", what="src/")
    await_that(process, lambda: left_in(any_site.here))

    code, output = any_site.get_or_complain(what="src/")
    process.send_signal(signal.SIGINT)
    finish(process)

    assert code == 3
    assert "Another command has used" in output


def test_a_destination_with_sha256_is_compared_so(any_site):
    any_site.make("a", b"a" * 100)
    ended = finish(any_site.start(any_site.source, any_site.target, "--checksum", "sha256"))
    assert ended.code == 0

    code, output = any_site.get(what="src/")

    assert (code, output[-1]) == (
        0,
        "1 file, 100 bytes: 1 fetched and compared with the manifest (SHA-256)",
    )


def test_what_is_missing_comes_back_to_its_place(any_site):
    for number in range(30):
        any_site.make(f"run {number % 3}/{number}.raw", b"%d\n" % number * 100)
    any_site.copy_all()
    before = look(any_site.source)
    shutil.rmtree(any_site.source / "run 1")
    (any_site.source / "run 2" / "2.raw").unlink()
    (any_site.source / "run 2" / "5.raw").write_bytes(b"other")

    refused = finish(any_site.start_command("get", "--missing", "--json", any_site.source))
    replaced = finish(
        any_site.start_command("get", "--missing", "--replace", "--json", any_site.source)
    )
    again = finish(any_site.start(any_site.source, any_site.target, "--json"))

    found = [json.loads(it.output) for it in (refused, replaced)]
    assert [it.code for it in (refused, replaced, again)] == [1, 0, 0]
    assert [(it["here"], it["fetched"], it["failed"]) for it in found] == [(18, 11, 1), (29, 1, 0)]
    files = {path: it for path, it in look(any_site.source).items() if it.kind == "file"}
    assert files == {path: it for path, it in before.items() if it.kind == "file"}
    assert json.loads(again.output)["sent"] == 0


def test_a_missing_file_or_a_whole_source_comes_back(any_site):
    for name in ("a", "sub/b"):
        any_site.make(name, name.encode() * 100)
    any_site.copy_all()
    before = seen(any_site.source)
    (any_site.source / "a").unlink()

    one = finish(any_site.start_command("get", "--missing", any_site.source / "a"))
    after = seen(any_site.source)
    shutil.rmtree(any_site.source)
    all_ = finish(any_site.start_command("get", "--missing", any_site.source))

    assert [it.code for it in (one, all_)] == [0, 0], one.output + all_.output
    assert one.output.splitlines()[-1][:7] == "1 file,"
    assert after.keys() == before.keys()
    assert {path: it.content for path, it in seen(any_site.source).items()} == {
        path: it.content for path, it in before.items()
    }


def make_empty_folders_and_links(site):
    (site.source / "sub" / "empty").mkdir(parents=True)
    (site.source / "sub" / "empty").chmod(0o750)
    (site.source / "sub" / "link").symlink_to("a")
    site.make("sub/a", b"a")
    for path in ("sub/empty", "sub", ""):
        os.utime(site.source / path, ns=(0, 1_500_000_000 * 10**9))
    return seen(site.source)


def test_folders_and_links_come_back_by_a_local_path(site, kind):
    before = make_empty_folders_and_links(site)
    site.copy_all()

    code = site.call("get", f"{site.source}/", site.here).code
    chosen = site.call("get", "--exclude", "link", f"{site.source}/", site.folder / "chosen").code

    has_tree = kind[0] != "no tar"
    assert (code, chosen) == ((0, 0) if has_tree else (1, 1))
    assert (seen(site.here) == before) is has_tree
    assert look(site.folder / "chosen").keys() == {b"", b"sub", b"sub/a"}


@pytest.mark.parametrize("ending", ["", "/"], ids=["folder", "contents"])
def test_folders_and_links_that_are_missing_come_back_and_others_stay(any_site, ending):
    make_empty_folders_and_links(any_site)
    any_site.make("here/a", b"a")
    before = seen(any_site.source)
    assert any_site.copy(f"{any_site.source}{ending}").code == 0
    (any_site.there / "of others" / "empty").mkdir(parents=True)
    shutil.rmtree(any_site.source / "sub")
    (any_site.source / "here").chmod(0o700)

    ended = any_site.call("get", "--missing", any_site.source)

    after = seen(any_site.source)
    assert ended.code == 0, ended.output + ended.complaints
    assert after.pop(b"here").mode == 0o700
    del before[b"here"]
    assert after == before


def test_a_local_path_names_what_was_copied_from_there(any_site):
    for name in ("a", "sub/b"):
        any_site.make(name, name.encode() * 100)
    any_site.copy_all()
    shutil.rmtree(any_site.source)

    ended = finish(any_site.start_command("get", any_site.source / "sub", any_site.here))

    assert ended.code == 0, ended.output + ended.complaints
    assert look(any_site.here).keys() == {b"", b"sub", b"sub/b"}


def test_what_a_run_has_sent_comes_back(any_site):
    any_site.write_settings()
    for name in ("a", "sub/b"):
        any_site.make(name, name.encode() * 100)
    assert any_site.call("run", "--json").code == 0
    before = seen(any_site.data)
    shutil.rmtree(any_site.source)

    ended = any_site.call("get", "--missing", "--json", any_site.data)
    again = any_site.call("run", "--json")

    assert (ended.code, json.loads(ended.output)["fetched"]) == (0, 2)
    assert {path: it.content for path, it in seen(any_site.data).items()} == {
        path: it.content for path, it in before.items()
    }
    assert (again.code, json.loads(again.output)["sent"]) == (0, 0)


def find_restored(site, *paths):
    """Return whether `where` tells for each file that it was brought back."""
    answers = [json.loads(site.call("where", "--json", path).output)["files"] for path in paths]
    return [it["restored"] is not None for (it,) in answers]


def find_counts(site):
    """Return what `status` tells of files that were brought back."""
    found = json.loads(site.call("status", "--json").output)["restored"]
    lines = site.call("status").output.splitlines()
    assert len([it for it in lines if it.startswith("Brought back from")]) == len(found)
    return [(it["destination"].rpartition("/")[2], it["files"]) for it in found]


def test_status_counts_what_came_back_of_each_copy(any_site):
    paths = [any_site.make(f"{number}", b"%d" % number) for number in range(3)]
    any_site.copy_all()
    before = find_counts(any_site)
    for path in paths[:2]:
        path.unlink()

    assert any_site.call("get", "--missing", any_site.source).code == 0
    after = find_counts(any_site)
    paths[0].write_bytes(b"other bytes")
    any_site.copy_all()

    assert (before, after) == ([], [("there", 2)])
    assert find_counts(any_site) == [("there", 1)]


def test_where_and_status_tell_what_came_back_and_nothing_of_it_is_sent(any_site):
    any_site.write_settings()
    here, lost = any_site.make("here", b"h" * 100), any_site.make("lost", b"l" * 100)
    assert any_site.call("run", "--json").code == 0
    lost.unlink()

    got = any_site.call("get", "--missing", "--json", any_site.data)
    told = find_restored(any_site, here, lost)
    again = json.loads(any_site.call("run", "--json").output)
    told_later = find_restored(any_site, here, lost)
    said = any_site.call("where", lost).output
    counted = find_counts(any_site)

    assert counted == [("there", 1)]
    assert got.code == 0, got.output
    assert told == told_later == [False, True]
    assert (again["sent"], again["bytes"], again["verified"]) == (0, 0, 2)
    assert "brought back to this computer: 20" in said


def test_a_file_that_changes_after_it_came_back_is_not_taken_for_the_copy(any_site):
    any_site.write_settings()
    path = any_site.make("lost", b"l" * 100)
    assert any_site.call("run", "--json").code == 0
    path.unlink()
    assert any_site.call("get", "--missing", any_site.data).code == 0
    before = path.stat()
    path.write_bytes(b"x" * 100)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    (known,) = json.loads(any_site.call("where", "--json", path).output)["files"]
    again = json.loads(any_site.call("run", "--json").output)

    assert (known["state"], known["safe"]) == ("uncertain", False)
    assert (again["sent"], again["bytes"]) == (1, 100)
    assert (any_site.there / "src" / "lost").read_bytes() == b"x" * 100


def test_what_comes_back_elsewhere_is_not_noted(any_site):
    path = any_site.make("a", b"a")
    any_site.copy_all()

    assert any_site.call("get", any_site.source, any_site.here).code == 0

    assert find_restored(any_site, path) == [False]


def test_what_was_never_copied_is_not_known(any_site):
    any_site.make("a", b"a")

    ended = any_site.call("get", "--missing", any_site.source)

    assert (ended.code, ended.output) == (2, "")
    assert "does not know that" in ended.complaints
    ended = any_site.call("get", any_site.source, any_site.here)
    assert (ended.code, ended.output) == (3, "")
    assert "is not a destination of mydata-like copy, and this computer" in ended.complaints


def get_events(site, *words, what="src/"):
    """Get something with events; return the exit code, the events and their names."""
    ended = finish(site.start_get("--events", *words, what=what))
    events = [json.loads(line) for line in ended.output.splitlines()]
    return ended.code, events, [it["event"] for it in events]


def test_events_are_those_of_a_run(site, kind):
    for number in range(30):
        site.make(f"{number}.raw", b"%d\n" % number * 1000)
    site.make("large", Random(1).randbytes(LARGE))
    site.make("wrong", b"right")
    site.copy_all()
    (site.there / "src" / "wrong").write_bytes(b"wrong")
    site.here.mkdir()
    shutil.copy(site.source / "7.raw", site.here)

    code, events, names = get_events(site)

    progress = RunProgress(SystemClock())
    for it in events:
        progress.add(parse_event(it))
    totals = progress.totals
    first, last = events[0], events[-1]
    outcomes = Counter(it for it in names if it.startswith("file_"))
    assert code == 1
    assert (first["event"], first["reason"]) == ("run_started", "get")
    assert first["data_directory"] == str(site.here)
    assert outcomes == {"file_wanted": 31, "file_verified": 31, "file_failed": 1}
    assert [it["path"] for it in events if it.get("known")] == ["7.raw"]
    assert {it["checksum"] for it in events if it.get("path") == "large" and "checksum" in it} == {
        hash_file(site.source / "large")
    }
    assert (last["event"], last["found"], last["verified"], last["failed"]) == (
        *("run_finished", 32, 31, 1),
    )
    assert (last["sent"], last["waiting"], last["problem"]) == (30, 0, None)
    assert (last["verified"], last["sent"]) == (totals.verified, totals.sent)
    assert last["bytes"] == totals.sent_bytes >= LARGE
    assert progress.transfers == []
    assert names.count("transfer_started") == names.count("transfer_finished") > 1
    assert (last["left_behind"] > 0) == (kind[0] == "no tar")
    forget_lists(site)


def test_events_of_a_dry_run_and_of_nothing(any_site):
    any_site.make("a", b"aaa")
    any_site.copy_all()

    code, planned, names = get_events(any_site, "--dry-run")
    refused, events, _ = get_events(any_site, what="nothing")
    brief, _, kinds = get_events(any_site, "--brief")

    assert (code, refused, brief) == (0, 2, 0)
    assert names.count("file_wanted") == 1
    assert (planned[-1]["waiting"], planned[-1]["sent"]) == (1, 0)
    assert [(it["event"], it["problem"]["code"]) for it in events] == [
        ("run_finished", "copy.source")
    ]
    assert not [it for it in kinds if it.startswith("file_")]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")


def test_a_broken_connection_is_an_event_and_what_came_is_not_fetched_again(host_site):
    host_site.make("large", Random(1).randbytes(LARGE))
    host_site.copy_all()
    process = host_site.start_get("--events", "--bandwidth", "4", what="src/")
    await_that(process, lambda: has_part(host_site.here))
    host_site.sshd.kill_sessions()

    ended = finish(process)

    events = [json.loads(line) for line in ended.output.splitlines()]
    retried = [it for it in events if it["event"] == "transfer_retried"]
    started = [it for it in events if it["event"] == "transfer_started"]
    last = events[-1]
    assert ended.code == 0, ended.output
    assert [it["attempt"] for it in started] == [1, 2]
    assert len(retried) == 1
    assert (last["sent"], last["bytes"], last["verified"]) == (1, LARGE, 1)
