"""Receipts of copies and of runs, which the real `md5sum -c` reads, and their check.

A receipt calls a file verified only if a ledger does, and names all others.
"""

import hashlib
import os
import subprocess
from html.parser import HTMLParser

import pytest

from tests.copy_site import open_copy_site
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="names and programs of POSIX"),
]

ODD = (b"caf\xe9", b"new\nline", b"CR\r", b"back\\slash", b"\\n", b"-", b"#x", b"two  spaces")
HOSTILE = b"<script>alert(1)<\\script>&amp;'\" \x1b[31m\xe2\x80\xae.txt"
READS_BACK = "the copy was read back"


@pytest.fixture
def site(tmp_path, sshd):
    with open_copy_site(tmp_path / "site", "host", sshd) as opened:
        yield opened


def source(site):
    return site.data / "src"


def make(site, *names):
    for number, name in enumerate(names):
        path = source(site) / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content %d" % number)


def copy(site, *words):
    ended = site.copy(source(site), *words)
    assert ended.code == 0, ended.output + ended.complaints


def save(site, *words, path=None):
    """Save the receipt of the source as text; return exit code, output and file."""
    file = site.folder / "receipt.txt"
    ended = site.call("receipt", path or source(site), "--text", file, *words)
    assert not ended.complaints
    return ended.code, ended.output, file


def sums(file, folder, program="md5sum"):
    """Check a receipt as a user does by hand; return the exit code and the lines."""
    done = subprocess.run([program, "-c", file], cwd=folder, capture_output=True, check=False)
    assert b"improperly" not in done.stderr
    return done.returncode, done.stdout.removesuffix(b"\n").split(b"\n")


def check(site, file, folder=None):
    """Compare files with a receipt; return the exit code and the lines."""
    ended = site.call("receipt", "--check", file, "--below", folder or source(site))
    assert not ended.complaints
    return ended.code, ended.output.splitlines()


def test_md5sum_reads_the_receipt_of_a_copy_with_odd_names(site):
    make(site, *ODD, b"sub/file")
    copy(site)
    code, output, file = save(site)

    assert code == 0
    assert output.splitlines()[-1] == "9 of 9 files are verified"
    assert "the host has computed this checksum of its own copy" in output
    found, lines = sums(file, source(site))
    assert (found, len(lines)) == (0, 9)
    assert all(line.endswith(b": OK") for line in lines)
    code, (counted, intact) = check(site, file)
    assert (code, counted) == (0, "9 files: 9 equal, 0 missing, 0 changed, 0 unreadable")
    assert intact.startswith("The receipt is as it was made")


def test_the_last_line_is_the_checksum_of_all_others(site):
    make(site, b"a")
    copy(site)
    _, output, file = save(site)

    *lines, last = file.read_bytes().splitlines(keepends=True)
    checksum = hashlib.sha256(b"".join(lines)).hexdigest()
    assert last.decode() == f"# SHA-256 of all lines above: {checksum}\n"
    assert f"SHA-256 of the receipt: {checksum}" in output


def test_what_is_not_verified_comes_first_and_counts(site):
    make(site, b"kept", b"changed", b"gone")
    copy(site)
    (source(site) / "changed").write_bytes(b"other content")
    (source(site) / "gone").unlink()
    make(site, b"new")
    (source(site) / "link").symlink_to("kept")
    code, _, file = save(site)

    lines = file.read_text().splitlines()
    assert code == 1
    assert lines[0] == "# 2 of 4 files are verified"
    assert lines[2] == "# NOT verified: 2 files"
    assert lines[3].startswith("#   changed (13 bytes): changed here since it was verified on ")
    assert hashlib.md5(b"content 1").hexdigest() in lines[3]
    assert lines[4] == "#   new (9 bytes): no run of this computer has sent it"
    assert "# Links and special files are not covered: 1." in lines
    assert any(line.endswith("; no longer here") for line in lines)
    assert sums(file, source(site)) == (1, [b"./gone: FAILED open or read", b"./kept: OK"])


def test_the_check_names_what_has_changed_and_what_is_missing(site):
    make(site, b"same", b"changed", b"missing")
    copy(site)
    _, _, file = save(site)
    status = (source(site) / "changed").stat()
    (source(site) / "changed").write_bytes(b"CONTENT 1")
    os.utime(source(site) / "changed", ns=(status.st_atime_ns, status.st_mtime_ns))
    (source(site) / "missing").unlink()

    code, (*named, intact) = check(site, file)
    counted = "3 files: 1 equal, 1 missing, 1 changed, 0 unreadable"
    assert (code, named) == (1, ["Missing: missing", "Changed: changed", counted])
    assert intact.startswith("The receipt is as it was made")


def test_a_receipt_that_was_tampered_with_is_recognised(site):
    make(site, b"a", b"b")
    copy(site)
    _, _, file = save(site)
    line = next(it for it in file.read_bytes().splitlines(keepends=True) if it.endswith(b"./b\n"))
    file.write_bytes(file.read_bytes().replace(line, b""))

    code, (counted, intact) = check(site, file)
    assert (code, counted) == (1, "1 file: 1 equal, 0 missing, 0 changed, 0 unreadable")
    assert intact.startswith("The receipt was changed after it was made")


def test_a_list_that_leads_elsewhere_is_not_followed(site):
    make(site, b"a")
    copy(site)
    _, _, file = save(site)
    secret = site.folder / "secret"
    secret.write_bytes(b"x")
    os.mkfifo(source(site) / "pipe")
    checksum = hashlib.md5(b"x").hexdigest()
    lines = f"{checksum}  ./../../secret\n{checksum}  ./pipe\n{checksum}  {secret}\n"
    file.write_bytes(lines.encode() + file.read_bytes())

    code, lines = check(site, file)
    assert code == 1
    assert "4 files: 1 equal, 3 missing, 0 changed, 0 unreadable" in lines


def test_what_is_no_receipt_is_refused(site):
    file = site.folder / "other"
    file.write_text("something\n")
    ended = site.call("receipt", "--check", file)
    assert ended.code == 2
    assert "is no complete receipt" in ended.complaints

    ended = site.call("receipt", site.folder / "nothing")
    assert ended.code == 2
    assert "There are no files at" in ended.complaints


class Page(HTMLParser):
    """A web page: its tags, its text, and what its links contain."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.words, self.links = [], [], []
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data):
        self.words.append(data)


def test_the_web_page_shows_hostile_names_as_text(site):
    make(site, HOSTILE)
    copy(site)
    make(site, b"<img src=x onerror=alert(1)>")
    page = site.folder / "receipt.html"
    save(site, "--html", page)

    content = page.read_text()
    shown = Page(content)
    assert not {"script", "img"} & set(shown.tags)
    assert "<script>alert(1)<\\script>&amp;'\" \\x1b[31m\\u202e.txt" in shown.words
    assert "\x1b" not in content
    (link,) = shown.links
    assert link.startswith("data:text/plain;base64,")
    assert content.index("NOT verified: 1 file") < content.index("own copy")


def test_files_at_two_destinations_are_listed_for_each(site):
    make(site, b"a", b"b")
    copy(site)
    there = site.folder / "second"
    ended = site.call("copy", "--checksum", "sha256", source(site), site.name_target(there))
    assert ended.code == 0
    _, output, file = save(site)

    assert output.splitlines()[-1] == "2 of 2 files are verified"
    found = subprocess.run(["sha256sum", "-c", file], cwd=source(site), capture_output=True)
    assert (found.returncode, found.stdout) == (0, b"./a: OK\n./b: OK\n")
    assert check(site, file)[1][0].startswith("2 files: 2 equal")


def test_the_weakest_evidence_is_told(tmp_path, sshd):
    with open_copy_site(tmp_path / "site", "folder", sshd) as site:
        make(site, b"a")
        copy(site)
        assert READS_BACK in save(site)[1]


def test_a_single_file_is_listed_below_its_folder(site):
    make(site, b"a", b"b")
    copy(site)
    _, output, file = save(site, path=source(site) / "a")

    assert output.splitlines()[-1] == "1 of 1 file is verified"
    assert sums(file, source(site)) == (0, [b"./a: OK"])


def test_md5sum_reads_the_receipt_of_a_run(tmp_path):
    make_data(tmp_path / "site", tiny_files=5)
    with open_site(tmp_path / "site") as site:
        assert site.carry().code == 0
        file = tmp_path / "receipt.txt"
        ended = site.command("receipt", str(site.data), "--text", str(file))
        there, _, heading = ended.output.splitlines()[-3:]
        found, lines = sums(file, site.data)
        above = site.command("receipt", str(site.data.parent / "data" / ".."))

        assert there.startswith("MyTardis server http://127.0.0.1:")
        assert there.endswith("; the server has compared its copy with this checksum")
        assert found == 0
        on_disk = sum(len(names) for _, _, names in os.walk(site.data))
        assert heading == f"{len(lines)} of {on_disk} files are verified"
        assert above.output.splitlines()[-1].startswith(f"{len(lines)} of ")
