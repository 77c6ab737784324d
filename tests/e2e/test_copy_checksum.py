"""`copy --checksum sha256` and `verify` of it, on hosts and in folders.

The real sha256sum checks what the manifest lists.
"""

import json
import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from tests.copy_site import find_false_claims, find_lists, open_copy_site, read_checksums
from tests.e2e.test_sftp_copy import flip_byte
from tests.site import close_streams, kill_group
from tests.sshd_fixture import needs_sshd, script, sftp_only, sshd_with, with_path

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="the host is this computer"),
]

SHA256 = ("--checksum", "sha256")


def only_busybox(folder):
    (folder / "bin").mkdir()
    subprocess.run(["busybox", "--install", "-s", folder / "bin"], check=True)
    return with_path(folder, folder / "bin")


def no_sha256_program(folder):
    """Return options of a host whose programs compute only MD5."""
    (folder / "bin").mkdir()
    for name in ("sha256sum", "shasum", "openssl", "sha256"):
        script(folder / "bin" / name, "exit 127\n")
    return with_path(folder, f"{folder / 'bin'}:$PATH")


HOSTS = {
    "GNU": lambda folder: (),
    "busybox": only_busybox,
    "only SFTP": lambda folder: sftp_only(),
    "folder": lambda folder: (),
    "no SHA-256": no_sha256_program,
}
KINDS = ("GNU", "busybox", "only SFTP", "folder")
HOW = {"GNU": "(sha256sum)", "busybox": "(sha256sum)"}  # else by reading it back


@pytest.fixture(params=KINDS)
def kind(request):
    if request.param == "busybox" and not shutil.which("busybox"):
        pytest.skip("needs busybox")
    return request.param


@contextmanager
def open_site(folder, kind):
    (folder / "host").mkdir()
    with (
        sshd_with(folder / "host", *HOSTS[kind](folder / "host")) as sshd,
        open_copy_site(folder / "site", "folder" if kind == "folder" else "host", sshd) as site,
    ):
        yield site


@pytest.fixture
def site(kind, tmp_path):
    with open_site(tmp_path, kind) as site:
        yield site


@pytest.fixture
def folder_site(tmp_path):
    with open_site(tmp_path, "folder") as site:
        yield site


@pytest.fixture
def host_site(tmp_path):
    with open_site(tmp_path, "GNU") as site:
        yield site


def make_source(folder):
    """Make files of all sizes that are sent in ways of their own, some with odd names."""
    for number in range(40):
        path = folder / f"run {number % 3}" / f"{number}.raw"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(100 * number))
    for name, size in (("new\nline", 200_000), ("back\\slash", 0), ("film", 20_000_000)):
        (folder / name).write_bytes(os.urandom(size))
    with (folder / "holes").open("wb") as file:
        file.write(b"begin")
        file.truncate(9_000_000)
    return folder


def read_marker(site):
    return json.loads((site.there / ".mydata-like/destination.json").read_bytes())


def complete(site, source):
    """Return what is wrong with a copy whose checksums are all SHA-256."""
    wrongs = [it.name for it in find_lists(site.there) if it.suffix != ".sha256"]
    there = site.there / source.name
    names = {os.fsencode(it.relative_to(source.parent)) for it in source.rglob("*") if it.is_file()}
    compared = subprocess.run(["diff", "-r", source, there], capture_output=True, check=False)
    wrongs += [*find_false_claims(site.there), *compared.stdout.decode("latin-1").splitlines()]
    return wrongs + [name for name in names if (name, 64) not in _find_listed(site)]


def _find_listed(site):
    return {(name, len(checksum)) for name, checksum in read_checksums(site.there)}


def test_a_copy_has_the_checksums_that_were_asked_for_and_keeps_them(site, kind):
    source = make_source(site.data / "src")

    first = site.copy(source, *SHA256, "--text")
    again = site.copy(source)
    (source / "new").write_text("new")
    more = site.copy(source, "--json")

    assert first.code == 0, first.output
    assert HOW.get(kind, "(SHA-256)") in first.output.splitlines()[-1]
    assert (again.code, again.sums["sent"]) == (0, 0)
    assert (more.code, more.sums["sent"], more.lines[-1]["checksum"]) == (0, 1, "sha256")
    assert read_marker(site)["checksum"] == "sha256"
    assert complete(site, source) == []


def test_a_changed_file_is_replaced_and_an_equal_one_of_others_is_listed(host_site):
    site = host_site
    source = make_source(site.data / "src")
    shutil.copytree(source / "run 0", site.there / "src/run 0")
    site.copy(source, *SHA256)
    before = (source / "run 1/1.raw").read_bytes()
    (source / "run 1/1.raw").write_bytes(os.urandom(200))

    ended = site.copy(source)

    kept = [it for it in (site.there / "src/run 1").iterdir() if "mydata-old-" in it.name]
    assert (ended.code, ended.sums["sent"]) == (0, 1)
    assert [it.read_bytes() for it in kept] == [before]
    kept[0].unlink()
    assert complete(site, source) == []


def test_another_kind_is_refused_and_nothing_is_sent(folder_site):
    site = folder_site
    source = make_source(site.data / "src")
    site.copy(source / "run 0", *SHA256)

    other = site.copy(source, "--checksum", "md5")
    unknown = site.copy(source, "--checksum", "sha1", "--text")

    assert (other.code != 0, other.problem) == (True, "destination.checksum")
    assert unknown.code == 2
    assert not (site.there / "src").exists()


def test_a_destination_that_has_md5_stays_so(folder_site):
    source = make_source(folder_site.data / "src")
    folder_site.copy(source)

    other = folder_site.copy(source, *SHA256)
    preview = folder_site.copy(source, *SHA256, "--dry-run")
    same = folder_site.copy(source, "--checksum", "md5")

    assert other.problem == preview.problem == "destination.checksum"
    assert (same.code, same.sums["sent"]) == (0, 0)
    assert read_marker(folder_site) == {"format": 1, "id": read_marker(folder_site)["id"]}


@pytest.mark.parametrize("number", [4, 30])
def test_a_killed_copy_goes_on(host_site, number):
    site = host_site
    source = make_source(site.data / "src")
    process = site.start(source, site.target, *SHA256, "--events")
    assert process.stdout
    for _ in range(number):
        process.stdout.readline()

    kill_group(process)
    close_streams(process)
    ended, again = site.copy(source, *SHA256), site.copy(source)

    assert ended.code == 0, ended
    assert (again.code, again.sums["sent"]) == (0, 0)
    assert complete(site, source) == []


def test_verify_finds_a_flipped_byte(site, kind):
    source = make_source(site.data / "src")
    site.copy(source, *SHA256)
    good = site.call("verify", site.target)
    path = site.there / "src/film"
    flip_byte(path, later=False)

    wrong = site.call("verify", site.target, "--json")
    path.write_bytes((source / "film").read_bytes())  # for the check at the end

    assert good.code == 0, good.output
    assert HOW.get(kind, ": SHA-256)").strip("()") in good.output
    assert wrong.code == 1
    (found,) = json.loads(wrong.output)["files"]
    assert (found["path"], found["fault"]) == ("src/film", "changed")
    assert len(found["sha256"]) == len(found["found_sha256"]) == 64
    assert found["sha256"] != found["found_sha256"]


def test_a_new_marker_with_another_kind_makes_no_false_claim(host_site):
    site = host_site
    source = make_source(site.data / "src")
    site.copy(source)
    (site.there / ".mydata-like/destination.json").unlink()

    ended = site.copy(source, *SHA256, "--accept-missing")
    again = site.copy(source)
    changed = source / "run 2/2.raw"
    changed.write_bytes(changed.read_bytes() + b"more")
    last = site.copy(source)

    assert (ended.code, ended.sums["sent"]) == (0, 0)
    assert (again.code, again.sums["sent"], again.sums["verified"]) == (0, 0, 44)
    assert (last.code, last.sums["sent"]) == (0, 1)
    assert find_false_claims(site.there) == []
    assert (b"src/film", 64) in _find_listed(site)


def test_a_marker_that_is_made_again_has_the_kind_of_the_manifest(folder_site):
    source = make_source(folder_site.data / "src")
    folder_site.copy(source, *SHA256)
    before = read_marker(folder_site)
    (folder_site.there / ".mydata-like/destination.json").unlink()

    ended = folder_site.copy(source, "--accept-missing")

    assert (ended.code, ended.sums["sent"]) == (0, 0)
    assert read_marker(folder_site) == before | {"id": read_marker(folder_site)["id"]}
    assert complete(folder_site, source) == []


def test_a_host_without_a_program_is_refused_before_anything_is_sent(tmp_path):
    with open_site(tmp_path, "no SHA-256") as site:
        source = make_source(site.data / "src")

        refused = site.copy(source, *SHA256)
        ended = site.copy(source)

        assert (refused.code != 0, refused.problem) == (True, "destination.no-checksum")
        assert (ended.code, read_marker(site)["format"]) == (0, 1)


def test_runs_use_the_checksums_of_their_destination_and_free_compares_these(folder_site):
    site = folder_site
    source = make_source(site.data / "src")
    for path in source.rglob("*"):
        os.utime(path, (1e9, 1e9))
    site.copy(source / "run 0", *SHA256)
    site.write_settings()

    ran = site.call("run")
    freed = site.call("free", "--yes", source)

    assert (ran.code, freed.code) == (0, 0), (ran, freed)
    assert not (source / "film").exists()
    assert {it.suffix for it in find_lists(site.there)} == {".sha256"}
