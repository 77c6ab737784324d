"""`copy` with the real command, to a host and to a folder; independent programs check what it did.

Nothing may be claimed falsely: a file that is listed has exactly these bytes at the destination.
"""

import os
import shutil
import stat
from pathlib import Path

import psutil
import pytest

from tests.copy_site import (
    find_differences,
    find_false_claims,
    hash_file,
    look,
    open_copy_site,
    read_checksums,
)
from tests.mounts import MOUNTS, needs_mounts
from tests.site import close_streams, finish, finish_reading, kill_group, wait_for
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="names, modes and programs of POSIX"),
]

ODD = (
    *(b"caf\xe9", b"\xff", b"new\nline", b"CR\r", b"tab\t", b"back\\slash", b"\\n", b"\\\\"),
    *(b"-", b"-rf", b"--help", b" leading", b"two  spaces", b"trailing ", b"quote'\"", b"*"),
    *(b"?[a]", b"$HOME;`id`", b"#x#", b"~", b"~root", b"%20", b"a:b", b"=", b"n" * 255),
    *("\N{MICROSCOPE}" * 63).encode().split(),
    *("\u00e9".encode(), "e\u0301".encode(), b".hidden", b"...", b"x.tmp", b"y.part", b"Thumbs.db"),
    *(b".mydata-old-x", b".mydata-probe", b".write-x", b".DS_Store", b"d~", b"lost+found"),
)
LARGE = 20_000_000  # bytes
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


@pytest.fixture
def host_site(tmp_path, sshd):
    with open_copy_site(tmp_path / "site", "host", sshd) as site:
        yield site


@pytest.fixture
def source(site):
    """A source of thirty small files in folders."""
    return make_source(site.data / "src", 30)


def make_source(folder, files=30):
    for number in range(files):
        path = folder / f"run {number % 3}" / f"{number}.raw"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"content of {number}\n".encode() * (number + 1))
    return folder


def names_of(source):
    return sorted(path for path, seen in look(source).items() if seen.kind == "file")


def sent(ended):
    return ended.sums["sent"]


def outcome(ended, *names):
    return tuple(ended.sums[name] for name in names)


def complete(site, source, place=b"src", **options):
    return find_differences(source, site.there, place, **options)


def problems(ended, event="file_failed"):
    return {os.path.basename(it["path"]): it["problem"]["code"] for it in ended.events(event)}


# The tree


def make_odd_tree(top):
    top.mkdir()
    folder = os.fsencode(top)
    for number, name in enumerate(ODD):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(b"%d " % number * 7)
        below = os.path.join(folder, b"folders", name)
        os.makedirs(below)
        with open(os.path.join(below, name), "wb") as file:
            file.write(name)
        os.utime(below, (1_000_000_000 + number, 1_000_000_000 + number))
        os.symlink(name, os.path.join(below, b"link"))
    (top / "empty folder" / "in it").mkdir(parents=True)
    (top / "dangling").symlink_to("/nowhere\n at all")
    (top / "folder link").symlink_to("folders")
    (top / "program").write_bytes(b"#!/bin/sh\n")
    (top / "program").chmod(0o755)
    (top / "empty").touch()
    (top / "old").write_bytes(b"old")
    os.utime(top / "old", ns=(0, 1))
    with (top / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(5_000_000)
        file.write(b"end")
    (top / "read-only").write_bytes(b"do not change")
    (top / "read-only").chmod(0o444)
    (top / "private").mkdir()
    (top / "private" / "key").write_bytes(b"secret")
    (top / "private" / "key").chmod(0o600)
    (top / "private").chmod(0o700)
    (top / "closed").mkdir()
    (top / "closed" / "in a closed folder").write_bytes(b"1")
    (top / "closed").chmod(0o555)
    return top


def test_a_tree_arrives_as_it_is_and_is_listed(site):
    source = make_odd_tree(site.data / "src")
    before = look(site.data)

    ended = site.copy(source)

    assert ended.code == 0, ended
    assert complete(site, source) == []
    assert look(site.data) == before
    assert outcome(ended, "waiting", "skipped", "failed") == (0, 0, 0)
    assert outcome(ended, "found", "verified") == (len(names_of(source)),) * 2
    assert sorted(name for name, _ in read_checksums(site.there)) == sorted(
        b"src/" + name for name in names_of(source)
    )


def test_the_contents_of_a_folder_go_to_the_destination_itself(site):
    source = make_odd_tree(site.data / "src")

    ended = site.copy(f"{source}/")

    assert ended.code == 0, ended
    assert complete(site, source, b"") == []


def test_what_is_neither_file_nor_folder_nor_link_is_reported(site, source):
    os.mkfifo(source / "pipe")

    ended = site.copy(source)

    assert "pipe" not in os.listdir(site.there / "src")
    assert {os.path.basename(it["path"]) for it in ended.events("file_skipped")} == {"pipe"}
    assert ended.sums["skipped"] == 1


def test_a_copy_of_a_destination_is_a_copy_of_its_files(site, source):
    for path in source.rglob("*.raw"):  # the copies have whole seconds, and would be too new
        os.utime(path, (1_000_000_000, 1_000_000_000))
    site.copy(source)
    first, site.there = site.there, site.folder / "second"

    ended = site.copy(f"{first}/")

    assert ended.code == 0, ended
    assert look(site.there / "src") == look(first / "src")
    assert find_differences(first / "src", site.there, b"src") == []
    assert [it["path"] for it in ended.events("folder_skipped")] == [f"{first}/.mydata-like"]


# Again


@pytest.mark.parametrize("forget", [False, True], ids=["known", "forgotten"])
def test_the_same_command_again_sends_nothing(site, source, forget):
    site.copy(source)
    before = look(site.there)
    if forget:
        shutil.rmtree(site.state)

    ended = site.copy(source)

    assert (ended.code, sent(ended), ended.events("transfer_started")) == (0, 0, [])
    assert ended.sums["verified"] == 30
    assert complete(site, source) == []
    assert look(site.there / "src") == {
        path.removeprefix(b"src/") if path != b"src" else b"": seen
        for path, seen in before.items()
        if path.split(b"/")[0] == b"src"
    }


def test_the_summary_says_what_was_proven_when(site, source):
    first, again = site.copy(source, "--text"), site.copy(source, "--text")

    how = "compared on the host now" if site.kind == "host" else "compared now"
    assert how in first.output.splitlines()[-1]
    assert again.output.splitlines()[-1] == "30 files: 30 proven earlier and unchanged there"


# Changes of local files


def test_a_changed_file_is_replaced_and_its_earlier_content_kept(site, source):
    site.copy(source)
    path = source / "run 0" / "3.raw"
    before = hash_file(path)
    path.write_bytes(b"other content, and more of it than there was\n" * 5)
    path.chmod(0o640)

    ended = site.copy(source)

    old = b"run 0/.mydata-old-%b-3.raw" % before.encode()
    assert (ended.code, sent(ended)) == (0, 1)
    assert complete(site, source, others=[old]) == []
    assert hash_file(site.there / "src" / os.fsdecode(old)) == before
    assert sent(site.copy(source)) == 0


def test_an_appended_file_is_listed_with_its_new_content_only(site, source):
    site.copy(source)
    path = source / "run 0" / "3.raw"
    with path.open("ab") as file:
        file.write(b"more")

    ended = site.copy(source)

    assert (ended.code, sent(ended)) == (0, 1)
    assert complete(site, source) == []


def grow(path, size):
    """Append bytes to a file, which may be read-only; return its content before."""
    before, mode = path.read_bytes(), path.stat().st_mode
    path.chmod(mode | stat.S_IWUSR)
    with path.open("ab") as file:
        file.write(os.urandom(size))
    path.chmod(mode)
    return before


@pytest.fixture
def large_file(host_site):
    """A large file that is proven at a host."""
    folder = host_site.data / "src"
    folder.mkdir()
    path = folder / "it's large.raw"
    path.write_bytes(os.urandom(LARGE))
    path.chmod(0o440)
    assert host_site.copy(folder).code == 0
    return path


@pytest.mark.parametrize("forget", [False, True], ids=["known", "forgotten"])
def test_of_a_large_file_that_has_grown_only_the_rest_is_sent(host_site, large_file, forget):
    grow(large_file, 1)
    if forget:
        shutil.rmtree(host_site.state)

    ended = host_site.copy(large_file.parent)

    assert outcome(ended, "bytes", "omitted") == (LARGE + 1, LARGE)
    assert (ended.code, complete(host_site, large_file.parent)) == (0, [])
    assert sent(host_site.copy(large_file.parent)) == 0


def test_a_large_file_that_has_grown_continues_after_what_was_sent_of_the_rest(
    host_site, large_file
):
    before = grow(large_file, LARGE)
    there = host_site.there / "src" / large_file.name
    words = ("--events", "--bandwidth", "10", large_file.parent)
    process = host_site.start(*words, host_site.target)
    while (seen := wait_for(process, "transfer_progressed")[-1])["bytes"] < LARGE + 8_000_000:
        pass
    kill_group(process)
    close_streams(process)
    assert seen["omitted"] == LARGE
    stored = there.read_bytes()

    ended = host_site.copy(large_file.parent)

    assert stored == before
    assert outcome(ended, "bytes", "sent") == (2 * LARGE, 1)
    assert ended.sums["omitted"] > LARGE
    assert (ended.code, complete(host_site, large_file.parent)) == (0, [])


def test_all_of_a_large_file_that_has_grown_is_sent_if_it_was_changed_there(host_site, large_file):
    there = host_site.there / "src" / large_file.name
    there.chmod(0o600)
    there.write_bytes(b"changed" + there.read_bytes()[7:])
    changed = hash_file(there)
    grow(large_file, 1)

    ended = host_site.copy(large_file.parent)

    old = f".mydata-old-{changed}-{large_file.name}"
    assert outcome(ended, "bytes", "omitted", "replaced") == (LARGE + 1, 0, 1)
    assert complete(host_site, large_file.parent, others=[old.encode()]) == []
    assert hash_file(there.parent / old) == changed


@pytest.mark.parametrize("forget", [False, True], ids=["known", "forgotten"])
def test_a_file_that_shrank_is_held_and_its_copy_stays(site, source, forget):
    site.copy(source)
    before = look(site.there / "src")
    (source / "run 0" / "27.raw").write_bytes(b"little")
    if forget:
        shutil.rmtree(site.state)

    ended = site.copy(source)

    assert ended.code == 1
    assert outcome(ended, "sent", "verified") == (0, 29)
    assert problems(ended, "file_waiting") == {"27.raw": "waiting.changed"}
    assert look(site.there / "src") == before
    assert find_false_claims(site.there) == []


def test_a_changed_file_is_replaced_without_the_state_as_well(site, source):
    site.copy(source)
    path = source / "run 0" / "3.raw"
    before = hash_file(path)
    path.write_bytes(path.read_bytes().swapcase())
    shutil.rmtree(site.state)

    ended = site.copy(source)

    old = b"run 0/.mydata-old-%b-3.raw" % before.encode()
    assert ended.code == 0, ended
    assert complete(site, source, others=[old]) == []


def test_a_file_that_is_gone_here_stays_there(site, source):
    site.copy(source)
    kept = look(site.there)
    (source / "run 0" / "3.raw").unlink()

    ended = site.copy(source)

    assert (ended.code, sent(ended)) == (0, 0)
    assert look(site.there).keys() == kept.keys()
    assert find_false_claims(site.there) == []


# Others at the destination


def test_a_file_that_was_there_is_listed_if_it_has_the_same_content(site, source):
    shutil.copytree(source, site.there / "src")

    ended = site.copy(source)

    assert (ended.code, sent(ended), ended.sums["verified"]) == (0, 0, 30)
    assert complete(site, source) == []


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_file_of_somebody_else_is_not_replaced(site, source, when):
    names = ["run 1/4.raw", "run 1/7.raw"]
    if when == "between":
        site.copy(source)
        names = ["new.raw", "newer.raw"]
        for name in names:
            (source / name).write_bytes(b"the new file")
    same, other = (site.there / "src" / name for name in names)
    same.parent.mkdir(parents=True, exist_ok=True)
    same.write_bytes((source / names[0]).read_bytes()[::-1])
    other.write_bytes(b"of somebody else")
    before = look(same), look(other)

    ended = site.copy(source)
    again = site.copy(source)

    expected = {os.path.basename(name): "destination.occupied" for name in names}
    assert (ended.code, again.code) == (1, 1)
    assert problems(ended) == problems(again) == expected
    assert (look(same), look(other)) == before
    assert find_false_claims(site.there) == []
    listed = {name for name, _ in read_checksums(site.there)}
    assert listed.isdisjoint(b"src/" + os.fsencode(name) for name in names)


def test_a_file_of_somebody_else_is_kept_beside_ours_if_overwriting_is_asked_for(site, source):
    folder = site.there / "src" / "run 1"
    folder.mkdir(parents=True)
    (folder / "4.raw").write_bytes((source / "run 1" / "4.raw").read_bytes()[::-1])
    (folder / "10.raw").write_bytes(b"of somebody else")
    same = folder / "7.raw"
    shutil.copy2(source / "run 1" / "7.raw", same)
    before = {name: hash_file(folder / name) for name in ("4.raw", "10.raw")}
    untouched = os.lstat(same).st_ino

    ended = site.copy(source, "--overwrite")

    old = {f"run 1/.mydata-old-{before[name]}-{name}": before[name] for name in before}
    assert (ended.code, ended.sums["verified"]) == (0, 30)
    assert complete(site, source, others=list(map(os.fsencode, old))) == []
    assert {name: hash_file(site.there / "src" / name) for name in old} == old
    assert os.lstat(same).st_ino == untouched
    assert [it["event"] for it in ended.lines].count("file_replaced") == 2
    assert sent(site.copy(source)) == 0


def test_overwriting_stops_before_it_replaces_many_files_of_somebody_else(site, source):
    for name in names_of(source):
        theirs = site.there / "src" / os.fsdecode(name)
        theirs.parent.mkdir(parents=True, exist_ok=True)
        theirs.write_bytes((source / os.fsdecode(name)).read_bytes()[::-1])

    ended = site.copy(source, "--overwrite")

    held = [it for it in ended.lines if it["event"] == "file_waiting"]
    assert (ended.code, ended.sums["verified"], ended.sums["held"]) == (1, 20, 10)
    assert find_false_claims(site.there) == []
    message = held[0]["problem"]["message"]
    assert "Many files changed" in message
    assert "verified copy" not in message
    released = site.copy(source, "--overwrite", "--replace-changed")
    assert (released.code, released.sums["verified"]) == (0, 30)


def test_something_else_of_that_name_stays(site, source):
    there = site.there / "src" / "run 1"
    there.mkdir(parents=True)
    (site.folder / "elsewhere").write_bytes((source / "run 1" / "4.raw").read_bytes())
    (there / "1.raw").mkdir()
    (there / "4.raw").symlink_to(site.folder / "elsewhere")
    (there / "7.raw").symlink_to(site.folder / "nothing")
    os.mkfifo(there / "10.raw")
    before = {path: (os.lstat(path).st_ino, os.lstat(path).st_mode) for path in there.iterdir()}

    ended = site.copy(source)

    assert ended.code == 1
    assert problems(ended) == {path.name: "destination.occupied" for path in before}
    after = {path: (os.lstat(path).st_ino, os.lstat(path).st_mode) for path in before}
    assert after == before
    assert not (site.folder / "nothing").exists()
    assert find_false_claims(site.there) == []
    assert ended.sums["verified"] == 26


def test_a_link_in_place_of_a_folder_is_not_followed(site, source):
    elsewhere = site.folder / "elsewhere"
    elsewhere.mkdir()
    (site.there / "src").mkdir(parents=True)
    (site.there / "src" / "run 1").symlink_to(elsewhere)

    ended = site.copy(source)

    assert ended.code == 1
    assert set(problems(ended).values()) == {"destination.link"}
    assert list(elsewhere.iterdir()) == []
    assert outcome(ended, "verified", "failed") == (20, 10)
    assert find_false_claims(site.there) == []


def test_links_and_folders_that_are_in_the_way_are_reported(site, source):
    (source / "link").symlink_to("run 1")
    (source / "folder").mkdir()
    (site.there / "src").mkdir(parents=True)
    (site.there / "src" / "link").symlink_to("other")
    (site.there / "src" / "folder").write_bytes(b"of somebody else")

    ended = site.copy(source, "--text")

    assert ended.code == 1
    assert os.readlink(site.there / "src" / "link") == "other"
    assert (site.there / "src" / "folder").read_bytes() == b"of somebody else"
    assert ended.output.count("Failed: ") == 2


# Proven files that somebody changed there


@pytest.mark.parametrize("forget", [False, True], ids=["known", "forgotten"])
def test_proven_files_that_were_changed_there_are_proven_or_sent_again(site, source, forget):
    site.copy(source)
    there = site.there / "src" / "run 1"
    other, cut, touched, removed, mode, appended = (
        there / f"{number}.raw" for number in (1, 4, 7, 10, 13, 16)
    )
    content = {path: path.read_bytes() for path in there.iterdir()}
    other.write_bytes(content[other].swapcase())
    os.truncate(cut, 10)
    os.utime(touched)
    removed.unlink()
    mode.chmod(0o644)
    mode.chmod(0o600)
    appended.write_bytes(content[appended] + b"x")
    harmed = {path.read_bytes() for path in (other, cut, appended)}
    if forget:
        shutil.rmtree(site.state)

    ended = site.copy(source)

    assert find_false_claims(site.there) == []
    assert ended.code == 0, ended
    kept = {path for path in there.iterdir() if path.name.startswith(".mydata-old")}
    assert {path: path.read_bytes() for path in {*there.iterdir()} - kept} == content
    assert sent(ended) == 4
    assert {path.read_bytes() for path in kept} == harmed, "what was changed there is lost"
    assert len(kept) == 3
    assert sent(site.copy(source)) == 0


def test_the_run_stops_if_many_proven_files_are_missing(site):
    source = make_source(site.data / "src", 60)
    site.copy(source)
    for path in sorted((site.there / "src").rglob("*.raw"))[:21]:
        path.unlink()
    left = look(site.there / "src")

    stopped = site.copy(source)
    after = look(site.there / "src")
    ended = site.copy(source, "--accept-missing")

    assert (stopped.code != 0, stopped.problem) == (True, "destination.missing")
    assert after == left
    assert (ended.code, sent(ended)) == (0, 21)
    assert complete(site, source) == []


def test_a_few_missing_files_are_sent_again(site):
    source = make_source(site.data / "src", 60)
    site.copy(source)
    for path in sorted((site.there / "src").rglob("*.raw"))[:20]:
        path.unlink()

    ended = site.copy(source)

    assert (ended.code, sent(ended)) == (0, 20)
    assert complete(site, source) == []


def test_the_run_stops_if_the_marker_is_gone(site, source):
    site.copy(source)
    (site.there / ".mydata-like" / "destination.json").unlink()

    stopped = site.copy(source)
    ended = site.copy(source, "--accept-missing")

    assert (stopped.code != 0, stopped.problem) == (True, "destination.absent")
    assert (ended.code, sent(ended)) == (0, 0)
    assert complete(site, source) == []


def test_an_emptied_destination_is_filled_again_if_that_is_accepted(site, source):
    site.copy(source)
    shutil.rmtree(site.there)

    stopped = site.copy(source)
    ended = site.copy(source, "--accept-missing")

    assert stopped.code != 0
    assert ended.code == 0
    assert complete(site, source) == []


def test_another_destination_in_its_place_is_not_taken(site, source):
    site.copy(source)
    other = site.folder / "other"
    site.there.rename(other)
    aside, site.there = site.there, site.folder / "third"
    site.copy(source)
    site.there.rename(aside)
    site.there = aside

    stopped = site.copy(source)

    assert (stopped.code != 0, stopped.problem) == (True, "destination.other")


@pytest.mark.parametrize("harm", ["removed", "cut", "rubbish", "empty", "other checksum"])
@pytest.mark.parametrize("forget", [False, True], ids=["known", "forgotten"])
def test_a_damaged_manifest_leads_to_no_false_claim(site, source, harm, forget):
    site.copy(source)
    (segment,) = site.segments
    content = segment.read_bytes()
    match harm:
        case "removed":
            segment.unlink()
            segment.with_suffix(".md5").unlink()
        case "cut":
            segment.write_bytes(content[: len(content) // 2])
        case "rubbish":
            segment.write_bytes(b"\x00\xff" * 100)
        case "empty":
            segment.write_bytes(b"")
        case "other checksum":
            segment.write_bytes(
                content.replace(
                    b'"' + hash_file(source / "run 0" / "3.raw").encode(), b'"' + b"0" * 32
                )
            )
    if forget:
        shutil.rmtree(site.state)

    ended = site.copy(source)

    assert find_false_claims(site.there) == []
    assert ended.code == 0, ended
    others = [path for path in look(site.there / "src") if b".mydata-old-" in path]
    assert complete(site, source, others=others) == []
    assert others == [] or (forget and harm == "other checksum")


def test_what_only_a_lost_list_of_another_installation_had_is_listed_again(site, source):
    site.copy(source)
    shutil.rmtree(site.state)
    site.copy(source)  # it takes over what the other one has listed
    (segment,) = site.segments
    segment.unlink()
    segment.with_suffix(".md5").unlink()

    ended = site.copy(source)

    assert ended.code == 0, ended
    assert complete(site, source) == []


# Arguments


def test_a_destination_that_is_a_file_is_refused(site, source):
    site.there.write_bytes(b"a file")

    ended = site.copy(source, "--text")

    assert ended.code != 0
    assert "is not a folder" in ended.complaints + ended.output
    assert site.there.read_bytes() == b"a file"


@needs_mounts
def test_a_destination_that_is_read_only_is_refused(site, source):
    site.there.mkdir()
    if site.kind == "host":
        site.there = Path("/proc/sys/not here")
    else:
        site.wrap = (*MOUNTS, "sh", "-c", READ_ONLY, "sh", str(site.there))

    ended = site.copy(source, "--text")

    assert ended.code != 0
    assert "cannot be" in ended.complaints + ended.output
    assert "Traceback" not in ended.complaints


def test_a_missing_source_is_refused(site, source):
    ended = site.copy(source, site.data / "missing", "--text")

    assert ended.code != 0
    assert "missing cannot be copied" in ended.complaints
    assert not site.there.exists()


def test_an_empty_folder_is_copied(site):
    source = site.data / "src"
    source.mkdir()
    os.utime(source, (1_000_000_000, 1_000_000_000))

    ended = site.copy(source)

    assert ended.code == 0, ended
    assert look(site.there / "src") == look(source)


def test_a_source_that_vanishes_is_no_success(site, source):
    site.copy(source)
    process = site.start(source, site.target, "--events")
    shutil.rmtree(source)

    ended = finish(process)

    assert find_false_claims(site.there) == []
    assert len(names_of(site.there / "src")) == 30
    assert ended.code != 0


@pytest.mark.parametrize("place", ["in the source", "the source", "above the source"])
def test_source_and_destination_do_not_contain_each_other(site, source, place):
    inside = {
        "in the source": source / "there",
        "the source": source,
        "above the source": site.data,
    }
    site.there = inside[place]
    before = look(source)

    ended = site.copy(source, "--text")

    assert ended.code != 0
    assert site.kind == "host" or look(source) == before  # a host is recognized by its marker
    assert {*before} <= {*look(source)}


def test_two_sources_of_one_name_are_refused(site, source):
    other = make_source(site.data / "other" / "src")

    ended = site.copy(source, other, "--text")

    assert ended.code != 0
    assert "would both be copied" in ended.complaints
    assert not site.there.exists()


def test_several_sources_and_single_files(site, source):
    other = make_source(site.data / "other", 5)
    single = site.data / "single file"
    single.write_bytes(b"alone")
    executable = site.data / "elsewhere" / "-x"
    executable.parent.mkdir()
    executable.write_bytes(b"run")
    executable.chmod(0o755)

    ended = site.copy(source, other, single, executable)
    again = site.copy(source, other, single, executable)

    assert (ended.code, sent(ended), again.code, sent(again)) == (0, 37, 0, 0)
    assert again.sums["verified"] == 37
    assert complete(site, source) == complete(site, other, b"other") == []
    assert {path for path in os.listdir(site.there)} == {
        ".mydata-like",
        "src",
        "other",
        "single file",
        "-x",
    }
    assert (site.there / "single file").read_bytes() == b"alone"
    assert stat.S_IMODE((site.there / "-x").stat().st_mode) == 0o755
    assert len(read_checksums(site.there)) == 37


def test_a_changed_single_file_is_replaced(site):
    single = site.data / "single"
    single.write_bytes(b"first content")
    site.copy(single)
    single.write_bytes(b"other content")

    ended = site.copy(single)

    assert (ended.code, sent(ended)) == (0, 1)
    assert (site.there / "single").read_bytes() == b"other content"
    assert find_false_claims(site.there) == []


@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
def test_a_dry_run_changes_nothing(site, source, there):
    if there:
        site.copy(source)
        (source / "new").write_bytes(b"new")
        (source / "run 0" / "3.raw").write_bytes(
            b"other content of this file, longer than before" * 3
        )
    before = look(site.there / "src") if there else None
    here = look(site.data)

    ended = site.copy(source, "--dry-run", "--text")
    listed = site.copy(source, "--dry-run", "--json")

    assert (ended.code, listed.code) == (0, 0), ended
    assert "2 files" in ended.output if there else "30 files" in ended.output
    assert (look(site.there / "src") if site.there.exists() else None) == before
    assert there or not site.there.exists()
    assert look(site.data) == here


def test_a_dry_run_prepares_no_channel(site):
    source = site.data / "src"
    source.mkdir()
    for number in range(3000):
        (source / str(number)).touch()

    process = site.start(source, site.target, "--dry-run", "--events")
    assert process.stdout
    for _ in range(1500):  # then it waits, since the pipe is too small for the others
        process.stdout.readline()
    started = psutil.Process(process.pid).children()
    ended = finish_reading(process)

    assert (ended.code, started) == (0, [])
    assert not site.there.exists()


@pytest.mark.parametrize(("files", "processes"), [(3, 1), (150, 2)])
def test_a_few_files_are_sent_to_a_host_without_a_channel_process(
    host_site, monkeypatch, files, processes
):
    site = host_site
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # the interpreter reports what it imports
    source = site.data / "src"
    source.mkdir()
    for number in range(files):
        (source / str(number)).write_text(str(number))

    ended = site.copy(source)

    assert ended.code == 0, ended
    assert ended.complaints.count("mydata_like.core.errors\n") == processes
    assert find_differences(source, site.there, b"src") == []


def test_patterns_choose_the_files(site, source):
    (source / "skip").mkdir()
    (source / "skip" / "it").write_bytes(b"1")

    ended = site.copy(source, "--exclude", "skip/", "--exclude", "run 1/")

    assert ended.code == 0, ended
    assert len(read_checksums(site.there)) == 20
    assert not (site.there / "src" / "skip" / "it").exists()
    assert find_false_claims(site.there) == []


def test_links_can_be_skipped(site, source):
    (source / "link").symlink_to("run 1")

    ended = site.copy(source, "--links", "skip")

    assert ended.code == 0
    assert not os.path.lexists(site.there / "src" / "link")


def test_output_for_programs_can_be_parsed(site, source):
    refused = site.copy(source, site.data / "missing", "--json")
    ended = site.copy(source, "--json")
    events = site.copy(source, "--events")

    assert refused.code != 0
    assert refused.problem == "copy.source"
    assert len(ended.lines) == 1
    assert outcome(ended, "found", "verified") == (30, 30)
    assert events.lines[0]["event"] == "run_started"
    assert events.lines[-1]["event"] == "run_finished"


# Interruptions


def make_large_source(folder):
    make_source(folder, 150)
    for number in range(3):
        (folder / f"large {number}").write_bytes(os.urandom(2_000_000))
    return folder


@pytest.mark.parametrize("number", [4, 12, 20, 60, 170])
def test_a_killed_copy_is_continued_by_the_same_command(site, number):
    source = make_large_source(site.data / "src")
    process = site.start(source, site.target, "--events")
    assert process.stdout
    for _ in range(number):
        process.stdout.readline()

    kill_group(process)
    close_streams(process)
    assert find_false_claims(site.there) == []
    ended = site.copy(source)
    again = site.copy(source)

    assert ended.code == 0, ended
    assert complete(site, source) == []
    assert (again.code, sent(again)) == (0, 0)
    assert not [it for it in (site.there / ".mydata-like" / "tmp").rglob("*") if it.is_file()]


@pytest.mark.parametrize("number", [5, 15, 30, 45])
def test_a_replacement_that_is_killed_is_completed(site, source, number):
    site.copy(source)
    for path in names_of(source)[:20]:
        file = source / os.fsdecode(path)
        file.write_bytes(file.read_bytes().swapcase() + b"!")
    process = site.start(source, site.target, "--events")
    assert process.stdout
    for _ in range(number):
        process.stdout.readline()

    kill_group(process)
    close_streams(process)
    assert find_false_claims(site.there) == []
    ended = site.copy(source)

    others = [path for path in look(site.there / "src") if b".mydata-old-" in path]
    assert ended.code == 0, ended
    assert complete(site, source, others=others) == []
    assert len(others) == 20


def test_two_copies_of_different_sources_at_once(site, source):
    other = make_source(site.data / "elsewhere" / "other", 40)

    processes = [site.start(it, site.target, "--events") for it in (source, other)]
    ended = [finish(process) for process in processes]

    assert [it.code for it in ended] == [0, 0], ended
    assert complete(site, source) == complete(site, other, b"other") == []


def test_two_copies_of_the_same_source_at_once(site):
    source = make_large_source(site.data / "src")
    first = site.start(source, site.target, "--events", "--bandwidth", "4")
    wait_for(first, "transfer_started")

    second = site.copy(source, "--text")
    ended = finish_reading(first)

    assert ended.code == 0, ended
    assert second.code != 0
    assert complete(site, source) == []
    assert "Another" in second.complaints or "running" in second.complaints, second


def test_two_copies_from_two_computers_of_the_same_source_at_once(site, source):
    first = site.start(source, site.target, "--events")
    site.state = site.folder / "own files of another"
    second = site.start(source, site.target, "--events")

    ended = [finish(it) for it in (first, second)]
    site.copy(source)

    assert find_false_claims_but_twice(site.there) == []
    assert {it.code for it in ended} <= {0, 1}, ended
    for path in names_of(source):
        assert hash_file(site.there / "src" / os.fsdecode(path)) == hash_file(
            source / os.fsdecode(path)
        )


def find_false_claims_but_twice(there):
    return [it for it in find_false_claims(there) if "times" not in it]


@pytest.fixture
def host(tmp_path, sshd):
    with open_copy_site(tmp_path / "site", "host", sshd) as site:
        yield site


def test_a_copy_whose_sessions_are_killed_goes_on(host, sshd):
    source = make_large_source(host.data / "src")
    process = host.start(source, host.target, "--events", "--bandwidth", "4")
    wait_for(process, "transfer_progressed")

    sshd.kill_sessions()
    wait_for(process, "file_staged")
    sshd.kill_sessions()
    ended = finish_reading(process)

    assert ended.code == 0, ended
    assert complete(host, source) == []


def test_a_copy_whose_sessions_are_killed_at_its_end_goes_on(host, sshd):
    source = make_large_source(host.data / "src")
    process = host.start(source, host.target, "--events")
    wait_for(process, "file_verified")

    sshd.kill_sessions()
    ended = finish_reading(process)

    assert ended.code == 0, ended
    assert complete(host, source) == []


def test_a_copy_can_be_stopped(site):
    source = make_large_source(site.data / "src")
    process = site.start(source, site.target, "--events", "--bandwidth", "2")
    wait_for(process, "transfer_started")

    process.terminate()
    ended = finish_reading(process)

    assert (ended.code, ended.problem) == (130, "run.interrupted")
    assert find_false_claims(site.there) == []
    assert site.copy(source).code == 0
    assert complete(site, source) == []
