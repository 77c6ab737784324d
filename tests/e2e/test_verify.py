"""The command `verify` on destinations that the real `copy` has made, on a host and in a folder."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from mydata_like.core.errors import StagingError
from mydata_like.ssh.keys import create_key
from tests.privileges import IS_ROOT
from tests.site import DEADLINE, NEW_GROUP, Ended, close_streams, finish, kill_group
from tests.sshd_fixture import NO_PYTHON, needs_sshd, script, sshd_with

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="the host is this computer"),
]

KINDS = ("folder", "host")
DAY = 86_400
STAGING_EXIT = StagingError.exit_code
# Waits at the barrier before it hashes `stalls`, and cannot read `unreadable` while `bad` exists.
MD5SUM = """
for f in "$@" "$(readlink /proc/self/fd/0)"; do case $f in
*/unreadable) [ -e {0}/bad ] && {{ echo "md5sum: Input/output error" >&2; exit 1; }} ;;
*/stalls) [ -p {0}/reached ] && {{ echo > {0}/reached; cat {0}/go; }} ;;
esac; done
exec {1} "$@"
"""
ODD = (
    *(b"\x1b[2J\x1b]0;title\x07", b"\xc2\x9b31m", b"\r\nforged: all as listed\n", b"back\\slash"),
    *("\u202egnp.exe".encode(), "\u2028".encode(), b"\xff\xfe", b"-rf", b"a b", b"it's $(x)"),
)


class Verified:
    """A user, and a destination `there` of the kind."""

    def __init__(self, folder, kind, sshd):
        self.folder = folder
        self.kind = kind
        self.sshd = sshd
        self.home = folder / "home"
        self.data = folder / "data"
        self.there = folder / "there"
        self._started = []
        if self.home.exists():
            return
        ssh = self.home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        sshd.authorize(create_key(ssh / "id_ed25519").public)
        lines = ("Host store", f"HostName {sshd.host}", f"Port {sshd.port}")
        (ssh / "config").write_text("\n ".join((*lines, f"User {sshd.username}")) + "\n")
        (ssh / "known_hosts").write_text(f"[{sshd.host}]:{sshd.port} {sshd.host_key.line()}\n")

    @property
    def target(self):
        return self.name_target(self.there)

    def name_target(self, folder):
        return f"store:{folder}" if self.kind == "host" else str(folder)

    def start(self, *words):
        kept = {name: value for name, value in os.environ.items() if "MYDATA_" not in name}
        kept.pop("SSH_AUTH_SOCK", None)
        own = {"HOME": str(self.home), "MYDATA_LIKE_HOME": str(self.home / "own files")}
        process = subprocess.Popen(
            [sys.executable, "-m", "mydata_like", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env=kept | own | {"COLUMNS": "110"},
            creationflags=NEW_GROUP,
        )
        self._started.append(process)
        return process

    def copy(self, *names):
        sources = [str(self.data / name) for name in names]
        ended = finish(self.start("copy", *sources, self.target, "--json"))
        assert ended.code == 0, ended.output + ended.complaints

    def verify(self, *words) -> Ended:
        return finish(self.start("verify", self.target, *words), DEADLINE)

    def verify_json(self, *words):
        ended = self.verify("--json", *words)
        return ended.code, json.loads(ended.output)

    def close(self):
        for process in self._started:
            if process.poll() is None:
                kill_group(process)
                close_streams(process)

    @property
    def own(self):
        return self.there / ".mydata-like"

    @property
    def segments(self):
        return sorted((self.own / "manifest").rglob("*.jsonl"))

    def age_proofs(self, seconds, segments=None):
        """Change the time of the proofs in the manifest to an earlier one."""
        for path in self.segments if segments is None else segments:
            text = path.read_text()
            at = int(re.search(r'"at": (\d+)', text)[1])
            path.write_text(text.replace(f'"at": {at}', f'"at": {at - seconds}', 1))


def make_files(folder, files):
    """Make files with these contents by their paths."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def flip_byte(path):
    """Change one byte of a file, which has the same size and time as before."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory):
    """The folder of the host's md5sum and its barrier."""
    return tmp_path_factory.mktemp("bin")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory, bin_folder):
    """A host whose md5sum can be disturbed."""
    script(bin_folder / "python3", NO_PYTHON["python3"])
    script(bin_folder / "md5sum", MD5SUM.format(bin_folder, shutil.which("md5sum")))
    forced = script(
        bin_folder / "forced",
        f'PATH={bin_folder}:$PATH; export PATH; exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n',
    )
    with sshd_with(tmp_path_factory.mktemp("server"), f"ForceCommand {forced}") as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory, sshd):
    """Return a folder with a user and a destination of 12 files, by the kind of destination."""
    folders = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        site = Verified(folder, kind, sshd)
        files = {f"src/sub/{number}.bin": bytes([number]) * 1000 for number in range(10)}
        make_files(site.data, files | {"src/empty": b"", "src/unreadable": b"text"})
        site.copy("src")
        folders[kind] = folder
    return folders


@pytest.fixture(params=KINDS)
def site(request, tmp_path, sshd, made):
    """A user with a destination of 12 files."""
    folder = tmp_path / "site"
    shutil.copytree(made[request.param], folder, symlinks=True)
    site = Verified(folder, request.param, sshd)
    yield site
    site.close()


@pytest.fixture
def empty(tmp_path, sshd):
    """A user with a host, and no destination yet."""
    site = Verified(tmp_path / "site", "host", sshd)
    yield site
    site.close()


class Barrier:
    """Where the host's md5sum waits, once, before it hashes `stalls`."""

    def __init__(self, folder):
        self._reached, self._go = folder / "reached", folder / "go"

    def set(self):
        """Let the next program wait."""
        os.mkfifo(self._go)
        os.mkfifo(self._reached)

    def wait(self):
        """Wait until a program waits; the next ones do not."""
        self._reached.read_bytes()
        self._reached.unlink()

    def open(self):
        """Let the program continue."""
        self._go.write_text("")

    def close(self):
        for pipe in (self._reached, self._go):
            pipe.unlink(missing_ok=True)


@pytest.fixture
def barrier(bin_folder):
    barrier = Barrier(bin_folder)
    yield barrier
    barrier.close()


def test_all_files_are_as_listed(site):
    how = {
        "folder": r"read( back|, possibly from memory,) and hashed now: MD5",
        "host": "hashed on the host now: md5sum",
    }

    first, second = site.verify(), site.verify()

    assert (first.code, second.code) == (0, 0), first.complaints
    line = rf"12 of 12 files are as listed \({how[site.kind]}\), 10.0 kB\.\n"
    assert re.fullmatch(line, first.output)
    assert re.fullmatch(
        r"The last verification, on .* by .*@.*: 12 files checked: all as listed\.\n" + line,
        second.output,
    )


def test_status_shows_what_copies_and_checks_have_found(empty):
    make_files(empty.data, {f"src/{number}": b"text" for number in range(3)})
    empty.copy("src")
    before = finish(empty.start("status"))
    flip_byte(empty.there / "src/1")
    empty.verify()

    after = finish(empty.start("status"))
    (known,) = json.loads(finish(empty.start("status", "--json")).output)["copies"]

    copied = f":{empty.there}: 3 of 3 files proven on "
    assert copied in before.output
    assert "verification" not in before.output
    assert copied in after.output
    assert ": 3 files checked: 1 changed.\n" in after.output
    assert (known["run"]["proven"], known["check"]["changed"]) == (3, 1)


def test_what_is_wrong_is_named(site):
    top = site.there / "src"
    flip_byte(top / "sub/1.bin")
    os.truncate(top / "sub/2.bin", 999)
    (top / "sub/3.bin").unlink()
    (top / "sub/4.bin").rename(site.folder / "elsewhere")
    (top / "sub/4.bin").symlink_to(site.folder / "elsewhere")
    (top / "empty").unlink()
    (top / "empty").mkdir()
    (top / "foreign").write_text("not ours")
    (top / f".mydata-old-{'0' * 32}-empty").write_text("kept")

    code, found = site.verify_json()
    text = site.verify()

    faults = {it["path"]: (it["fault"], it["found_size"]) for it in found["files"]}
    assert code == text.code == 1
    assert faults == {
        "src/sub/1.bin": ("changed", 1000),
        "src/sub/2.bin": ("changed", 999),
        "src/sub/3.bin": ("missing", None),
        "src/sub/4.bin": ("missing", None),
        "src/empty": ("missing", None),
    }
    assert (found["missing"], found["changed"], found["unreadable"]) == (3, 2, 0)
    assert (found["checked"], found["as_listed"], found["complete"]) == (12, 7, True)
    assert (found["unlisted"], found["unlisted_files"]) == (1, ["src/foreign"])
    assert re.search(
        r"^Changed: src/sub/1.bin \(listed \w{8}..., now \w{8}...\)$", text.output, re.M
    )
    assert "(listed 1,000 bytes, " in text.output
    assert "Missing: src/sub/3.bin\n" in text.output
    assert "Not listed: src/foreign\n" in text.output
    assert "3 missing, 2 changed.\n7 of 12 files are as listed (" in text.output
    assert "3 missing, 2 changed.\n" in text.output.splitlines(keepends=True)[0]


def test_files_that_are_not_listed_do_not_fail_the_check(site):
    make_files(site.there, {f"other/{number}": b"" for number in range(25)})

    ended = site.verify()

    assert ended.code == 0
    assert ended.output.count("Not listed: other/") == 20
    assert "Not listed: 5 more.\nThe manifest does not list 25 files" in ended.output


def test_a_touched_file_with_the_same_bytes_is_as_listed(site):
    os.utime(site.there / "src/sub/1.bin", (1, 1))

    assert site.verify().code == 0


def damage_line(text):
    return text.replace('",1000,"', '",1000,"x', 1)


def cut_last_line(text):
    return "\n".join(text.splitlines()[:-1]) + "\n"


def make_newer(text):
    return text.replace('"format": 1', '"format": 2')


@pytest.mark.parametrize("damage", [damage_line, cut_last_line, make_newer])
def test_a_damaged_part_of_the_manifest_fails_the_check(site, damage):
    path = site.segments[-1]
    path.write_text(damage(path.read_text()))

    code, found = site.verify_json()

    assert code == 1
    assert found["listed"] < 12
    assert found["listed"] + found["unlisted"] == 12
    assert [it["code"] for it in found["damaged"]] == ["destination.manifest"]
    assert path.name in site.verify().output


def test_a_folder_without_marker_is_no_destination(site):
    (site.own / "destination.json").unlink()

    ended, (code, found) = site.verify(), site.verify_json()

    assert ended.code == code == STAGING_EXIT
    assert "is not a destination of mydata-like copy" in ended.complaints
    assert found["problem"]["code"] == "destination.unmarked"


def test_a_destination_that_does_not_exist_is_an_error(site):
    site.there = site.there / "nothing"

    code, found = site.verify_json()

    assert code
    assert found["problem"]["code"] == "destination.absent"
    assert not site.there.exists()


def test_a_marker_of_a_newer_version_is_an_error(site):
    (site.own / "destination.json").write_text('{"format": 2}')

    code, found = site.verify_json()

    assert (code, found["problem"]["code"]) == (STAGING_EXIT, "destination.marker")


def test_a_destination_without_manifest_is_an_error(site):
    shutil.rmtree(site.own / "manifest")

    code, found = site.verify_json()

    assert (code, found["problem"]["code"]) == (STAGING_EXIT, "destination.no-manifest")


@pytest.mark.parametrize(("sample", "files"), [("25%", 3), ("0.1", 1), ("100%", 12)])
def test_a_sample_has_so_many_files(site, sample, files):
    code, found = site.verify_json("--sample", sample)

    assert (code, found["listed"], found["chosen"], found["checked"]) == (0, 12, files, files)


def test_wrong_values_of_options_are_refused(site):
    wrong = (("--sample", "0%"), ("--sample", "101%"), ("--older", "5"), ("--older", "-1d"))

    assert {site.verify(*words).code for words in wrong} == {2}
    assert site.verify("--sample", "5%", "--older", "1d").code == 2


def test_older_omits_what_was_proven_or_verified_since(site):
    new = site.verify("--older", "30d")
    site.age_proofs(40 * DAY)
    old, again = site.verify("--older", "30d"), site.verify("--older", "30d")

    assert (new.code, old.code, again.code) == (0, 0, 0)
    assert "Nothing was to be verified" in new.output
    assert "12 of 12 files are as listed" in old.output
    assert "12 files verified or proven more recently" in again.output


@pytest.mark.parametrize("words", [(), ("--sample", "100%")])
def test_what_was_wrong_is_verified_again_whatever_its_age(site, words):
    flip_byte(site.there / "src/sub/1.bin")

    first, again = site.verify(*words), site.verify("--older", "30d")
    flip_byte(site.there / "src/sub/1.bin")
    repaired, known = site.verify("--older", "30d"), site.verify("--older", "30d")

    assert (first.code, again.code, repaired.code, known.code) == (1, 1, 0, 0)
    assert "12 of 12 files are as listed" in repaired.output
    assert "Nothing was to be verified" in known.output


def test_odd_names_are_shown_and_act_on_no_terminal(site):
    names = [os.fsdecode(name) for name in ODD]
    make_files(site.data / "odd", dict.fromkeys(names, b"text"))
    site.copy("odd")
    fine = site.verify()
    there = site.there / "odd"
    for number, name in enumerate(names):
        (there / name).rename(there / f"{name}+")
        if number % 2:
            (there / name).write_bytes(b"other")

    text, (code, found) = site.verify(), site.verify_json()

    assert (fine.code, text.code, code) == (0, 1, 1), fine.output
    assert (found["missing"], found["changed"], found["unlisted"]) == (5, 5, len(ODD))
    assert "odd/\\x1b[2J\\x1b]0;title\\x07" in {it["path"] for it in found["files"]}
    assert "Missing: odd/\\r\\nforged: all as listed\\n\n" in text.output
    shown = text.output.replace("\n", "")
    assert shown.isprintable()


def test_a_file_that_the_host_cannot_read_is_named(empty, bin_folder):
    make_files(empty.data, {"src/unreadable": b"text", "src/fine": b"text"})
    empty.copy("src")
    (bin_folder / "bad").touch()
    try:
        code, found = empty.verify_json()
    finally:
        (bin_folder / "bad").unlink()

    assert code == 1
    assert [(it["path"], it["fault"]) for it in found["files"]] == [
        ("src/unreadable", "unreadable")
    ]


@pytest.mark.skipif(IS_ROOT, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(site):
    (site.there / "src/sub/1.bin").chmod(0)

    code, found = site.verify_json()

    assert (code, found["unreadable"], found["as_listed"]) == (1, 1, 11)


def test_a_destination_that_keeps_no_result_can_be_verified(site):
    (site.own / "checks").write_text("in the way")

    ended = site.verify()

    assert ended.code == 0
    assert "12 of 12 files are as listed" in ended.output
    assert "This result cannot be kept at the destination: " in ended.output


@pytest.fixture
def stalling(empty, barrier):
    """A destination on a host, of which the check waits in the second of two segments."""
    make_files(empty.data, {f"first/{number}": b"text" for number in range(100)})
    make_files(empty.data, {"second/stalls": b"text", "second/other": b"text"})
    empty.copy("first")
    empty.copy("second")
    barrier.set()
    return empty


def test_an_interrupted_check_is_continued(stalling, barrier):
    stalling.age_proofs(40 * DAY)
    process = stalling.start("verify", stalling.target, "--older", "30d")
    barrier.wait()

    process.send_signal(signal.SIGINT)
    ended = finish(process)
    barrier.open()
    code, rest = stalling.verify_json("--older", "30d")

    assert ended.code == 130
    assert "100 of 100 files are as listed" in ended.output
    assert "2 of 102 files were not checked. The same command continues." in ended.output
    assert (code, rest["chosen"], rest["checked"]) == (0, 2, 2)
    assert (rest["last"]["complete"], rest["last"]["checked"]) == (False, 100)


def test_what_a_copy_replaces_meanwhile_is_not_wrong(stalling, barrier):
    process = stalling.start("verify", stalling.target, "--json")
    barrier.wait()
    make_files(stalling.data, {"second/other": b"other bytes", "second/new": b"new"})
    stalling.copy("second")
    barrier.open()

    ended = finish(process)

    found = json.loads(ended.output)
    assert (ended.code, found["checked"], found["files"]) == (0, 102, [])
    assert found["unlisted"] == 0
    assert (stalling.there / "second/other").read_bytes() == b"other bytes"


def test_a_broken_connection_is_opened_again(stalling, barrier):
    process = stalling.start("verify", stalling.target, "--json")
    barrier.wait()
    stalling.sshd.kill_sessions()
    barrier.open()

    ended = finish(process)

    assert (ended.code, json.loads(ended.output)["as_listed"]) == (0, 102)


def test_files_of_a_disk_that_is_no_longer_mounted_are_not_missing(stalling, barrier):
    make_files(stalling.data, {f"third/{number}": b"text" for number in range(200)})
    stalling.copy("third")
    process = stalling.start("verify", stalling.target, "--json")
    barrier.wait()
    stalling.there.rename(stalling.folder / "unmounted")
    stalling.there.mkdir()
    barrier.open()

    ended = finish(process)

    found = json.loads(ended.output)
    assert ended.code == STAGING_EXIT
    assert found["problem"]["code"] == "destination.absent"
    assert (found["complete"], found["files"]) == (False, [])
    assert list(stalling.there.rglob("*")) == []
