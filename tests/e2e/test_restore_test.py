"""`verify --restore-test`, on destinations that the real `copy` has made.

What does not come back right stays known, whatever other files are fetched later.
"""

import json
import os
import re
from random import Random
from time import monotonic

import pytest

from mydata_like.app.host_login import parse_destination
from mydata_like.app.plain_destination import open_target
from mydata_like.app.restore_test import run_restore_test
from mydata_like.app.verify_service import Surroundings
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from tests.copy_site import CopySite, look, open_copy_site
from tests.privileges import IS_ROOT
from tests.sshd_fixture import needs_sshd, sftp_only, sshd_with

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="the host is this computer"),
]

FILES = 12
LARGE = 300_000  # bytes of a file that is fetched alone
AGE = 30 * 86_400


class Restored(CopySite):
    """A user who has copied `data/src` to `there`."""

    def copy_files(self, size=1000, files=FILES):
        for number in range(files):
            path = self.data / "src" / f"{number:02}.raw"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(Random(number).randbytes(size))
        ended = self.copy(self.data / "src")
        assert ended.code == 0, ended.output + ended.complaints

    def age_proofs(self):
        """Let the manifest say that all files were proven a month ago."""
        for path in self.segments:
            text = path.read_text()
            at = int(re.search(r'"at": (\d+)', text)[1])
            path.write_text(text.replace(f'"at": {at}', f'"at": {at - AGE}', 1))

    def stored(self, number):
        return self.there / "src" / f"{number:02}.raw"

    def test(self, number, *words):
        ended = self.call("verify", self.target, "--restore-test", str(number), "--json", *words)
        return ended.code, json.loads(ended.output)

    def tell(self, number):
        ended = self.call("verify", self.target, "--restore-test", str(number))
        return ended.code, ended.output + ended.complaints

    def status(self):
        (copy,) = json.loads(self.call("status", "--json").output)["copies"]
        return copy["restore_test"], self.call("status").output


def flip_byte(path):
    """Change one byte of a file, which has the same size and time as before."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def forget_lists(site):
    """Remove the lists of which md5sum would complain at the end."""
    for path in (site.there / ".mydata-like" / "manifest").rglob("*.md5"):
        path.write_text("")


@pytest.fixture(scope="module", params=["host", "SFTP", "folder"])
def kind(request, tmp_path_factory):
    options = sftp_only() if request.param == "SFTP" else ()
    with sshd_with(tmp_path_factory.mktemp("host"), *options) as sshd:
        yield "folder" if request.param == "folder" else "host", sshd


@pytest.fixture
def site(kind, tmp_path):
    with open_copy_site(tmp_path / "site", *kind, Restored) as site:
        yield site


@pytest.fixture
def folder_site(tmp_path, sshd):
    with open_copy_site(tmp_path / "site", "folder", sshd, Restored) as site:
        yield site


def test_a_sample_comes_back_and_nothing_is_written_here(site):
    site.copy_files()
    before = look(site.data)

    code, found = site.test(5)
    last, said = site.status()

    assert (code, found["complete"], found["wrong"]) == (0, True, {})
    assert (found["listed"], found["chosen"], found["restored"], found["compared"]) == (12, 5, 5, 5)
    assert found["bytes"] == 5000
    assert look(site.data) == before
    assert (last["restored"], last["complete"]) == (5, True)
    assert ": 5 of 5 files came back as listed.\n" in said
    assert "5 also compared with the files here" in site.tell(5)[1]


def test_what_is_wrong_is_named_and_stays_known_until_it_comes_back(site):
    site.copy_files()
    changed, lost = site.stored(1), site.stored(2)
    right = changed.read_bytes(), lost.read_bytes()
    forget_lists(site)
    flip_byte(changed)
    lost.unlink()

    code, found = site.test(FILES)
    said = site.tell(4)
    later = site.status()[1]
    doubted = site.call("verify", site.target, "--older", "1d", "--json")
    (site.there / ".mydata-like/last-restore-test.json").unlink()
    remembered = site.test(4)
    changed.write_bytes(right[0])
    lost.write_bytes(right[1])
    repaired = site.test(4)

    assert (code, found["wrong"]) == (1, {"changed": 1, "missing": 1})
    assert [(it["path"], it["fault"]) for it in found["files"]] == [
        ("src/01.raw", "changed"),
        ("src/02.raw", "missing"),
    ]
    assert said[0] == 1
    assert "Changed: src/01.raw\n" in said[1]
    assert "Missing: src/02.raw\n" in said[1]
    assert "2 of 4 files came back as listed (fetched and hashed now: MD5), 2.0 kB;" in said[1]
    assert ": 2 of 4 files came back as listed, 1 changed, 1 missing.\n" in later
    assert json.loads(doubted.output)["chosen"] == FILES
    assert (remembered[0], remembered[1]["wrong"]) == (1, {"changed": 1, "missing": 1})
    assert (repaired[0], repaired[1]["restored"], repaired[1]["wrong"]) == (0, 4, {})


def test_a_local_file_that_its_disk_has_changed_is_named_and_its_copy_is_not_doubted(folder_site):
    site = folder_site
    site.write_settings()
    for number in range(3):
        path = site.data / "src" / f"{number:02}.raw"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%d" % number * 1000)
    assert site.call("run").code == 0
    (site.data / "src" / "00.raw").write_bytes(b"rewritten since")
    flip_byte(site.data / "src" / "01.raw")

    code, found = site.test(3)
    doubted = json.loads(site.call("status", "--json").output)["recheck"]
    forget_lists(site)
    flip_byte(site.stored(2))
    site.test(3)

    assert (code, found["restored"], found["wrong"]) == (1, 2, {"differs here": 1})
    assert [(it["path"], it["code"]) for it in found["files"]] == [
        ("src/01.raw", "file.differs-here")
    ]
    assert found["compared"] == 2
    assert doubted == 0
    assert json.loads(site.call("status", "--json").output)["recheck"] == 1


def test_an_interrupted_test_continues_with_the_rest_of_its_sample(site, monkeypatch):
    site.copy_files(LARGE)
    monkeypatch.setenv("HOME", str(site.home))
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(site.state))
    cancel = CancelFlag()

    def stop_after_three(progress):
        if progress.step == "files" and progress.files >= 3:
            cancel.set()

    place = open_target(parse_destination(site.target), None)
    around = Surroundings(SystemClock(), cancel, Random(1), stop_after_three)
    stopped = run_restore_test(place, FILES, 0.0, None, around)
    last, _ = site.status()
    code, found = site.test(FILES)

    assert (stopped.exit_code, stopped.result.complete) == (130, False)
    assert 3 <= stopped.result.restored < FILES
    assert (last["restored"], last["chosen"]) == (stopped.result.restored, FILES)
    assert (code, found["complete"], found["restored"]) == (0, True, FILES)
    assert found["bytes"] == (FILES - stopped.result.restored) * LARGE
    assert found["compared"] == FILES - stopped.result.restored


def test_files_that_were_not_looked_at_for_longest_come_first(folder_site):
    folder_site.copy_files()
    forget_lists(folder_site)
    folder_site.age_proofs()

    for _ in range(3):
        assert folder_site.test(4)[0] == 0

    record = json.loads((folder_site.there / ".mydata-like/last-restore-test.json").read_text())
    assert len(record["tested"]) == FILES


@pytest.mark.skipif(IS_ROOT, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_unreadable(folder_site):
    folder_site.copy_files(files=2)
    folder_site.stored(1).chmod(0)

    code, found = folder_site.test(2)
    folder_site.stored(1).chmod(0o600)

    assert (code, found["wrong"]) == (1, {"unreadable": 1})


def test_the_bandwidth_of_the_settings_applies(folder_site, monkeypatch):
    folder_site.copy_files(100_000, files=4)
    folder_site.write_settings(limits__bandwidth=0.2)
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(folder_site.state))
    place = open_target(parse_destination(folder_site.target), None)
    around = Surroundings(SystemClock(), CancelFlag(), Random(1), lambda _: None)

    began = monotonic()
    report = run_restore_test(place, 4, 0.0, None, around)

    assert report.result.restored == 4
    assert monotonic() - began > 1.0


@pytest.mark.parametrize(
    "words", [("--sample", "5%"), ("--older", "1d"), ("--read",)], ids=lambda words: words[0]
)
def test_other_choices_are_refused(folder_site, words):
    ended = folder_site.call("verify", folder_site.target, "--restore-test", "4", *words)

    assert ended.code == 2
    assert "--restore-test excludes" in ended.complaints


def test_a_folder_that_is_no_destination_is_refused(folder_site):
    folder_site.there.mkdir()

    code, found = folder_site.test(4)

    assert (code, found["problem"]["code"]) == (3, "destination.unmarked")
