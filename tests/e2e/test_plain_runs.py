"""Runs of the settings to a host and to a folder without a server, with the real commands."""

import os
import shutil

import pytest

from tests.copy_site import (
    KINDS,
    find_false_claims,
    hash_file,
    open_copy_site,
    read_checksums,
)
from tests.mounts import MOUNTS, needs_mounts
from tests.site import finish_reading, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="names, modes and programs of POSIX"),
]

HOUR = 3600
SAME = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


@pytest.fixture(params=KINDS)
def site(request, tmp_path, sshd):
    """A user whose settings name a host or a folder, and a data directory with two folders."""
    with open_copy_site(tmp_path / request.param, request.param, sshd) as site:
        for number in range(12):
            write(site.data / f"run {number % 2}" / f"{number}.raw", f"content of {number}\n" * 40)
        write(site.data / "run 0" / "below" / os.fsdecode(b"caf\xe9"), "a name that is not UTF-8")
        write(site.data / ".hidden" / "a", "in a folder with a dot")
        write(site.data / "loose.txt", "in no folder")
        site.write_settings()
        yield site
        assert not find_false_claims(site.there)


def write(path, text, *, age=HOUR):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    status = path.stat()
    os.utime(path, (status.st_atime, status.st_mtime - age))


def names_below(top):
    files = (path.relative_to(top) for path in top.rglob("*") if path.is_file())
    return sorted(os.fsencode(path) for path in files if ".mydata" not in str(path))


def run(site, *words):
    return site.call("run", "--events", *words)


def test_a_run_sends_the_tree_as_it_is_and_a_second_one_sends_nothing(site):
    first = run(site)
    second = run(site)

    names = names_below(site.data)
    assert (first.code, first.sums["verified"]) == (0, len(names))
    assert (second.code, second.sums["verified"], second.sums["sent"]) == (0, len(names), 0)
    assert names_below(site.there) == names
    assert sorted(name for name, _ in read_checksums(site.there)) == names
    own = {it.name for it in (site.there / ".mydata-like").rglob("*")}
    assert "tmp" not in own or not list((site.there / ".mydata-like" / "tmp").iterdir())
    assert site.call("status").output.splitlines()[1] == f"Destination: {site.target}"


def test_it_is_said_where_the_data_is(site):
    ended = site.call("run")
    told = site.call("where", "loose.txt").output

    place = {"host": "on store", "folder": f"in {site.there}"}[site.kind]
    assert f"All 15 files are safe {place}.\n" in ended.output
    assert f"  verified: safe {place} (compared with the destination today)\n" in told
    assert f"  path {place}: loose.txt\n" in told
    assert "server" not in ended.output + told


def test_a_new_file_is_found_and_a_changed_one_keeps_what_it_replaces(site):
    run(site)
    write(site.data / "run 0" / "new.raw", "new")
    before = hash_file(site.data / "run 1" / "1.raw")
    write(site.data / "run 1" / "1.raw", "other bytes of the same file\n" * 40, age=60)

    ended = run(site)

    assert (ended.code, ended.sums["sent"], ended.sums["replaced"]) == (0, 2, 1)
    assert hash_file(site.there / "run 1" / f".mydata-old-{before}-1.raw") == before
    newer = hash_file(site.there / "run 1" / "1.raw")
    undone = site.call("changed", "undo", "--yes", site.data / "run 1" / "1.raw")
    assert undone.code == 0, undone.complaints
    assert hash_file(site.there / "run 1" / "1.raw") == before
    assert hash_file(site.there / "run 1" / f".mydata-old-{newer}-1.raw") == newer
    again = run(site)
    assert (again.sums["sent"], again.sums["skipped"]) == (0, 1)
    assert hash_file(site.there / "run 1" / "1.raw") == before


def test_links_to_files_are_followed_if_the_settings_say_so(site):
    (site.data / "link").symlink_to("loose.txt")
    (site.data / "run 0" / "link").symlink_to("../loose.txt")
    site.write_settings(filters__symlinks="files")

    ended, again = run(site), run(site)

    assert (ended.code, ended.sums["verified"]) == (0, 17)
    assert (again.sums["verified"], again.sums["sent"]) == (17, 0)
    assert (site.there / "link").read_text() == (site.data / "loose.txt").read_text()
    assert not (site.there / "link").is_symlink()


def test_files_that_are_gone_there_are_sent_again_only_if_that_is_accepted(site):
    for number in range(30):  # in folders with few files each
        write(site.data / f"tiny {number % 6}" / f"{number}.raw", f"{number}")
    run(site)
    for folder in site.there.glob("tiny *"):
        shutil.rmtree(folder)

    refused = run(site)
    ended = run(site, "--accept-missing")

    assert refused.problem == "destination.missing"
    assert "--accept-missing" in refused.sums["problem"]["hint"]
    assert ended.code == 0
    assert len(list(site.there.glob("tiny */*.raw"))) == 30


def test_an_added_folder_goes_beside_those_of_the_data_directory(site):
    run(site)
    extra = site.folder / "elsewhere" / "extra"
    write(extra / "a" / "b", "added")

    ended = run(site, "--source", extra)

    assert (ended.code, ended.sums["verified"]) == (0, 1)
    assert (site.there / "extra" / "a" / "b").read_text() == "added"


def test_two_folders_of_one_name_do_not_replace_each_other(site):
    run(site)
    extra = site.folder / "elsewhere" / "run 0"
    write(extra / "0.raw", "another file")

    ended = run(site, "--source", extra)

    assert (ended.code, ended.sums["failed"]) == (1, 1)
    assert ended.events("file_failed")[0]["problem"]["code"] == "source.name-taken"
    assert hash_file(site.there / "run 0" / "0.raw") == hash_file(site.data / "run 0" / "0.raw")


def test_free_deletes_only_what_the_destination_has_still(site):
    run(site)
    rotten, gone = site.there / "run 0" / "0.raw", site.there / "run 0" / "2.raw"
    status = rotten.stat()
    rotten.write_bytes(b"x" * status.st_size)
    gone.unlink()

    ended = site.call("free", "--yes", "--json", site.data / "run 0", site.data / "loose.txt")

    assert ended.code == 1
    kept = {it["path"]: it["problem"]["code"] for it in ended.sums["files"] if it["problem"]}
    assert kept == {"run 0/0.raw": "free.differs", "run 0/2.raw": "free.no-record"}
    left = {name for name in names_below(site.data) if not name.startswith(b"run 1")}
    assert left == {b".hidden/a", b"run 0/0.raw", b"run 0/2.raw"}
    assert "not known to be safe" in site.call("where", site.data / "run 0" / "0.raw").output
    again = run(site)
    assert (again.code, again.sums["sent"]) == (0, 2)
    assert gone.exists()


@needs_mounts
def test_free_deletes_nothing_if_the_destination_is_the_data_directory_itself(site):
    """As a mount or an export makes it: every file is there, and has the right bytes."""
    run(site)
    site.wrap = (*MOUNTS, "sh", "-c", SAME, "sh", str(site.there), str(site.data))

    ended = site.call("free", "--yes", site.data / "run 0")

    assert ended.code != 0
    assert "by another name" in ended.complaints
    assert (site.there / "run 0" / "0.raw").exists()


@needs_mounts
def test_free_deletes_nothing_in_a_folder_that_is_the_same_at_the_destination(site):
    """The sample file at the top does not show this: the destination loses what is renamed here."""
    site.there.mkdir()
    (site.data / "run 0").rename(site.there / "run 0")
    (site.data / "run 0").mkdir()
    both = (str(site.there / "run 0"), str(site.data / "run 0"))
    site.wrap = (*MOUNTS, "sh", "-c", SAME, "sh", *both)
    assert run(site).sums["verified"] == 15

    ended = site.call("free", "--yes", "--json", site.data / "run 0")

    assert (ended.sums["freed"], ended.sums["kept"]) == (0, 7)
    assert (site.there / "run 0" / "0.raw").exists()


@pytest.mark.parametrize("name", ["..", ".mydata-like"])
def test_an_added_folder_does_not_go_to_a_reserved_place(site, name):
    run(site)
    before = sorted(site.there.rglob("*"))
    extra = site.folder / "elsewhere" / "extra"
    write(extra / "a", "added")

    ended = run(site, "--source", extra, "--as", f"own/experiment/{name}")

    assert ended.events("file_failed")[0]["problem"]["code"] == "source.name"
    assert sorted(site.there.rglob("*")) == before


def test_a_folder_of_the_destinations_own_name_is_left_out(site):
    write(site.data / ".mydata-like" / "x", "not a destination")
    write(site.data / "run 0" / ".mydata-like" / "x", "below, it is a name like any other")

    ended = run(site)

    (skipped,) = ended.events("folder_skipped")
    assert (skipped["path"], skipped["problem"]["code"]) == (".mydata-like", "skipped.destination")
    assert not (site.there / ".mydata-like" / "x").exists()
    assert (site.there / "run 0" / ".mydata-like" / "x").exists()
    assert site.call("copy", f"{site.data}/.mydata-like", site.target).code == 2
    site.call("copy", f"{site.data}/", site.target)
    assert not (site.there / ".mydata-like" / "x").exists()


def test_a_destination_in_the_data_directory_is_refused(site):
    site.there = site.data / "run 0" / "there"
    site.write_settings()

    ended = run(site)

    assert ended.problem == "destination.inside"


def test_a_watch_sends_what_appears(site):
    site.write_settings(schedule__kind="watch")
    process = site.start_command("watch", "--events")
    wait_for(process, "run_finished")
    write(site.data / "run 2" / "late.raw", "late")
    wait_for(process, "run_started")
    wait_for(process, "run_finished")

    process.terminate()
    finish_reading(process)
    assert (site.there / "run 2" / "late.raw").exists()


def test_the_speed_test_measures_the_destination_and_leaves_nothing_there(site):
    run(site)
    before = sorted(site.there.rglob("*"))

    ended = site.call("doctor", "--quick", "--anyway", "--json")

    measured = {it["what"] for it in ended.sums["findings"]["stages"]}
    assert {"together, large files", "together, tiny files"} <= measured
    assert sorted(site.there.rglob("*")) == before


def test_what_needs_a_server_says_so(site):
    ended = site.call("register")

    assert ended.code == 2
    assert "This is only for MyTardis servers" in ended.complaints + ended.output


@pytest.mark.parametrize(
    ("kind", "address", "said"),
    [
        ("host", "/tmp/x", "is the address of a folder"),
        ("folder", "store:x", "is the address of a host"),
        ("folder", "x/y", "must be an absolute path"),
        ("host", "a b:x", "cannot be used"),
        ("host", "", "destination.address"),
    ],
)
def test_a_wrong_address_is_refused(site, kind, address, said):
    site.write_settings(destination__kind=kind, destination__address=address)

    ended = site.call("run")

    assert ended.code == 2
    assert said in ended.complaints
