"""The command `copy` to hosts that allow only SFTP, or have no checksum program."""

import os
import pwd
import re
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.copy_site import (
    CopySite,
    find_false_claims,
    open_copy_site,
    read_checksums,
)
from tests.site import DEADLINE, close_streams, finish
from tests.sshd_fixture import needs_sshd, script, sftp_only, sshd_with

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="the host is this computer"),
]

TWICE = "The host computes no checksums: each file is read back, so each byte travels twice."
NO_CHECKSUM = 'PATH={}; export PATH\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'

SFTP_SERVERS = [
    f"/usr/{folder}/sftp-server"
    for folder in ("lib/openssh", "lib/ssh", "libexec/openssh", "libexec")
    if Path(f"/usr/{folder}/sftp-server").exists()
]


def no_checksum_program(folder):
    """Return options of a host with a shell, and all programs but those for checksums."""
    programs = folder / "bin"
    programs.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in os.scandir(place):
            if not re.search("sum$|md5|openssl|sh$", program.name):
                (programs / program.name).unlink(missing_ok=True)
                (programs / program.name).symlink_to(program.path)
    (programs / "sh").symlink_to("/bin/sh")
    gate = script(folder / "gate", NO_CHECKSUM.format(programs))
    return (f"ForceCommand {gate}", f"Subsystem sftp {SFTP_SERVERS[0]}")


HOSTS = {
    "only SFTP": lambda folder: sftp_only(),
    "no checksum program": no_checksum_program,
}


class Copying(CopySite):
    """A user with data, and a host that has the folder `there`."""

    def start_copy(self, *words):
        return self.start(self.data, self.target, *words)

    def copy(self, *words):
        """Copy; return the exit code, and the output without its figures of time."""
        ended = finish(self.start_copy(*words), DEADLINE)
        assert not ended.complaints
        return ended.code, ended.output

    def make(self, name, content):
        path = self.data / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    @property
    def named(self):
        return [it for it in (self.there / "data").rglob("*") if it.is_file()]

    def check_there(self):
        """Compare all that is there with what is here; return the number of listed files."""
        assert find_false_claims(self.there) == []
        subprocess.run(
            ["diff", "-r", "--no-dereference", self.data, self.there / "data"], check=True
        )
        return read_checksums(self.there).total()


@pytest.fixture(params=HOSTS)
def site(request, tmp_path):
    (tmp_path / "host").mkdir()
    with (
        sshd_with(tmp_path / "host", *HOSTS[request.param](tmp_path / "host")) as sshd,
        open_copy_site(tmp_path / "site", "host", sshd, Copying) as site,
    ):
        yield site


def flip_byte(path, *, later):
    """Change one byte of a file, and its time only if it is to be `later`; return the content."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + later * 10**9))
    return bytes(content)


def test_a_copy_is_proven_by_reading_it_back(site):
    contents = ((b"a", 0), (b"sub/b c", 3_000_000), (b"sub/\xff\n'x", 100), (b"d/e", 70_000))
    for name, size in contents:
        site.make(name, os.urandom(size))
    (site.data / "empty").mkdir()
    (site.data / "link").symlink_to("sub/b c")

    preview = site.copy("--dry-run")
    assert not site.there.exists()
    first = site.copy()

    assert first[0] == 0
    assert TWICE not in preview[1]
    assert TWICE in first[1]
    assert first[1].endswith("4 files: 4 written to the disk, read back and compared now (MD5)\n")
    assert site.check_there() == 4
    assert stat.S_IMODE((site.there / "data/d").stat().st_mode) == stat.S_IMODE(
        (site.data / "d").stat().st_mode
    )
    assert int((site.there / "data/empty").stat().st_mtime) == int(
        (site.data / "empty").stat().st_mtime
    )
    again = site.copy()
    assert again[0] == 0
    assert again[1].endswith("4 files: 4 proven earlier, of the same size and time there\n")


def test_a_stronger_proof_than_the_host_gives_is_refused_before_anything_is_sent(site):
    site.make(b"a", b"content")

    refused = finish(site.start_copy("--evidence", "host"), DEADLINE)

    assert refused.code == 2
    assert "gives a weaker proof (read-back) than --evidence host demands" in refused.complaints
    assert not site.there.exists()
    assert site.copy("--evidence", "read-back")[0] == 0
    (segment,) = (site.there / ".mydata-like/manifest").rglob("*.jsonl")
    assert '"evidence": "read-back"' in segment.read_text()


def test_a_file_that_was_changed_there_is_noticed_by_its_time_and_the_others_by_verify(site):
    for number in range(4):
        site.make(b"%d" % number, os.urandom(1000))
    assert site.copy()[0] == 0
    changed = flip_byte(site.there / "data/1", later=5)
    flip_byte(site.there / "data/2", later=0)
    (site.there / "data/3").unlink()

    code, text = site.copy()
    verified = finish(site.start_command("verify", site.target), DEADLINE)

    assert code == 0
    assert text.endswith(
        "4 files: 2 proven earlier, of the same size and time there, "
        "2 written to the disk, read back and compared now (MD5)\n"
    )
    (kept,) = (site.there / "data").glob(".mydata-old-*-1")
    assert kept.read_bytes() == changed
    assert verified.code == 1
    assert "Changed: data/2 " in verified.output
    assert "3 of 4 files are as listed" in verified.output
    flip_byte(site.there / "data/2", later=0)  # as it was


def test_what_verify_finds_is_unsafe_and_sent_again_by_the_next_run(site):
    for name in (b"run/a", b"run/b", b"c"):
        site.make(name, os.urandom(5_000))
    added = site.folder / "usb" / "added"
    added.mkdir(parents=True)
    (added / "d").write_bytes(os.urandom(5_000))
    site.write_settings()
    assert site.call("run").code == site.call("run", "--source", added).code == 0
    flip_byte(site.there / "run" / "a", later=False)
    (site.there / "added" / "d").unlink()

    found = site.call("verify", site.target)
    status = site.call("status", "--json")
    ended = site.call("run", "--events"), site.call("run", "--events", "--source", added)
    again = site.call("verify", site.target)

    assert (found.code, again.code) == (1, 0)
    assert (status.lines[0]["safety"], status.lines[0]["recheck"]) == ("at risk", 2)
    assert [(it.code, it.sums["sent"]) for it in ended] == [(0, 1), (0, 1)]
    assert (site.there / "run" / "a").read_bytes() == (site.data / "run" / "a").read_bytes()
    assert site.call("status", "--json").lines[0]["safety"] == "safe"


def test_a_copy_that_was_killed_goes_on(site):
    for number in range(60):
        site.make(b"%d/file" % number, os.urandom(500_000))
    process = site.start_copy("--bandwidth", "4", "--channels", "2")
    until = time.monotonic() + DEADLINE
    while len(site.named) < 5:
        assert time.monotonic() < until
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    close_streams(process)
    before = len(site.named)

    code, text = site.copy()

    assert before < 60
    assert code == 0, text
    site.check_there()
    assert list((site.there / ".mydata-like/tmp").rglob("*")) == []
    sent = int(re.search(r"^(\d+) files?, .* sent in", text, re.MULTILINE)[1])
    assert 0 < sent < 60, text


def test_a_destination_may_be_relative_to_the_home_of_the_account(site):
    site.make(b"file", b"content")
    relative = os.path.relpath(site.there, pwd.getpwuid(os.getuid()).pw_dir)

    ended = finish(site.start(site.data, f"store:{relative}"), DEADLINE)

    assert ended.code == 0, ended.output
    assert site.check_there() == 1
