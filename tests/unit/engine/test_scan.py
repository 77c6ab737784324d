import os
import socket
import subprocess
import sys
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import Cancelled, SettingsError
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesSeen,
    FileWaiting,
    FolderFailed,
    FolderFound,
    FolderSkipped,
    Notice,
)
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.core.file_access import is_remote
from mydata_like.core.model import Layout
from mydata_like.core.openat import FolderCache
from mydata_like.engine.layout_walk import ALL, ScanScope
from mydata_like.engine.scan import Scan
from mydata_like.settings.schema import Data, Filters, Instrument, Settings
from tests.builders import a_file, a_tree
from tests.fakes.clock import FakeClock
from tests.privileges import (
    HAS_LINKS,
    IS_ROOT,
    needs_case,
    needs_fifos,
    needs_links,
    needs_undecodable_names,
)
from tests.umasks import posix_modes

LATER = datetime(2100, 1, 1, tzinfo=UTC)
LEFT_OUT = FileWaiting | FileSkipped | FileFailed


def settings_of(layout=Layout.DATASET, **filters):
    return Settings(
        instrument=Instrument(name="Scope"),
        data=Data(layout=layout),
        filters=Filters(**filters),
    )


def scanned(root, layout=Layout.DATASET, clock=None, part=ALL, **filters):
    """Scan a tree; check what holds of every scan; return what was found, by kind."""
    events = []
    clock = clock or FakeClock(LATER)
    scan = Scan(settings_of(layout, **filters), events.append, clock, clock.cancel(), part)
    groups = list(scan.scan(root))

    files = [file for group in groups for file in group.files]
    left_out = [event for event in events if isinstance(event, LEFT_OUT)]
    ended = [group.folder.path for group in groups if group.last]
    assert len(files) + len(left_out) == sum(e.files for e in of(FilesSeen, events))
    assert sum(f.size for f in files + left_out) == sum(e.bytes for e in of(FilesSeen, events))
    assert ended == [event.path for event in of(FolderFound, events)]
    assert len({file.key for file in files}) == len(files)
    return SimpleNamespace(
        events=events,
        groups=groups,
        files=files,
        keys=sorted(file.key for file in files),
        folders={group.folder.path: group.folder for group in groups},
        left=codes(left_out),
        skipped=codes(of(FolderSkipped, events)),
        failed=codes(of(FolderFailed, events)),
    )


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def codes(events):
    return {event.path: event.problem.code for event in events}


# --- layouts ---


@pytest.mark.parametrize(
    ("layout", "path"),
    [
        (Layout.USERNAME_DATASET, "jo/ds"),
        (Layout.EMAIL_DATASET, "jo@x.org/ds"),
        (Layout.USERNAME_EXPERIMENT_DATASET, "jo/ex/ds"),
        (Layout.EMAIL_EXPERIMENT_DATASET, "jo@x.org/ex/ds"),
        (Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET, "jo/mYtArDiS/ex/ds"),
        (Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET, "lab/Scope/Jo Doe/ds"),
        (Layout.GROUP_DATASET, "lab/ds"),
        (Layout.GROUP_EXPERIMENT_DATASET, "lab/ex/ds"),
        (Layout.EXPERIMENT_DATASET, "ex/ds"),
        (Layout.DATASET, "ds"),
    ],
    ids=lambda value: value.name if isinstance(value, Layout) else "",
)
def test_every_layout_finds_its_files_and_reports_those_outside(tmp_path, layout, path):
    a_file(tmp_path / path / "sub/.hidden", 5)
    a_file(tmp_path / path / "empty", 0)
    a_file(tmp_path / "beside", 7)

    found = scanned(tmp_path, layout)

    folder = os.fsencode(path)
    assert found.keys == [folder + b"/empty", folder + b"/sub/.hidden"]
    assert found.folders[folder].name == "ds"
    assert found.left == {b"beside": "skipped.outside-dataset"}


def test_a_local_file_is_described_as_the_disk_has_it(tmp_path):
    path = a_file(tmp_path / "ds/a/b/c.tif", 9, modified=1000.5)

    (file,) = scanned(tmp_path).files

    status = path.stat()
    # Windows tells device and inode only of open files.
    device, inode = (status.st_dev, status.st_ino) if os.name == "posix" else (0, 0)
    assert file == (
        os.fsencode(path), b"ds/a/b/c.tif", b"a/b", b"c.tif",
        9, 1_000_500_000_000, device, inode, status.st_ctime_ns,
        len(os.fsencode(tmp_path)), status.st_mode,
    )  # fmt: skip


def test_files_of_an_experiments_own_folder_are_a_dataset(tmp_path):
    a_tree(tmp_path, "ex/\n  loose\n  ds/\n    a\n    sub/\n      b")

    found = scanned(tmp_path, Layout.EXPERIMENT_DATASET)

    assert [folder.name for folder in found.folders.values()] == ["__EXPERIMENT_FILES__", "ds"]
    assert found.keys == [b"ex/ds/a", b"ex/ds/sub/b", b"ex/loose"]


def test_an_experiment_folder_with_only_litter_makes_no_dataset_of_it(tmp_path):
    a_tree(tmp_path, "ex/\n  Thumbs.db\n  ds/\n    a")

    found = scanned(tmp_path, Layout.EXPERIMENT_DATASET)

    assert list(found.folders) == [b"ex/ds"]
    assert found.left == {b"ex/Thumbs.db": "skipped.ignored"}


def test_only_the_folder_mytardis_of_a_user_is_read(tmp_path):
    a_tree(
        tmp_path,
        """
        jo/
          MyTardis/
            ex/
              ds/
                a
          Documents/
            letter
        mo/
          Documents/
            letter
        """,
    )

    found = scanned(tmp_path, Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET)

    assert found.keys == [b"jo/MyTardis/ex/ds/a"]
    assert found.skipped == {b"jo/Documents": "skipped.layout", b"mo": "skipped.layout"}


@needs_case
def test_only_the_folder_of_this_instrument_is_read(tmp_path):
    a_tree(tmp_path, "lab/\n  scope/\n    Jo/\n      ds/\n        a\n  Scope/\n    Jo/\n      ds/")

    found = scanned(tmp_path, Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET)

    assert list(found.folders) == [b"lab/Scope/Jo/ds"]
    assert found.skipped == {b"lab/scope": "skipped.layout"}


def test_an_empty_dataset_folder_is_found_and_ends_once(tmp_path):
    a_tree(tmp_path, "ds/")

    (group,) = scanned(tmp_path).groups

    assert (group.files, group.last) == ((), True)


def test_hidden_litter_and_filtered_folders_are_skipped_with_a_reason(tmp_path):
    a_tree(tmp_path, ".git/\n$RECYCLE.BIN/\nrun 1/\nother/")

    assert scanned(tmp_path, dataset="RUN").skipped == {
        b".git": "skipped.hidden",
        b"$RECYCLE.BIN": "skipped.ignored",
        b"other": "skipped.filtered",
    }


LITTER = (
    *("__MACOSX", "@eaDir", ".Spotlight-V100", ".fseventsd", ".TemporaryItems", ".Trash-1000"),
    *("$RECYCLE.BIN", "System Volume Information", "lost+found"),
)


def test_folders_of_systems_are_skipped_in_a_dataset_as_well_unless_they_are_wanted(tmp_path):
    for name in (*LITTER, "Trash-1000", "eaDir", ".git"):
        a_file(tmp_path / "ds/deep" / name / "a")

    found = scanned(tmp_path)

    taken = [b"ds/deep/.git/a", b"ds/deep/Trash-1000/a", b"ds/deep/eaDir/a"]
    assert sorted(found.keys) == taken
    assert found.skipped == {f"ds/deep/{name}".encode(): "skipped.ignored" for name in LITTER}
    assert len(scanned(tmp_path, default_ignores=False).keys) == len(LITTER) + len(taken)


def test_folders_beyond_an_age_are_skipped(tmp_path):
    a_tree(tmp_path, "ds/\n  a")

    assert scanned(tmp_path, ignore_older_than="1 year").skipped == {b"ds": "skipped.old"}


def test_a_title_longer_than_the_server_holds_is_refused(tmp_path):
    a_tree(tmp_path, f"{'g' * 200}/\n  {'e' * 200}/\n    ds/")

    assert list(scanned(tmp_path, Layout.GROUP_EXPERIMENT_DATASET).skipped.values()) == [
        "skipped.name"
    ]


LETTERS = "ab é 漢\n'" if os.name == "posix" else "ab é 漢'"
NAME = st.text(st.sampled_from(LETTERS), min_size=1, max_size=6).filter(str.strip)
PATHS = st.sets(st.lists(NAME, min_size=5, max_size=6).map(tuple), max_size=6)


@given(paths=PATHS, layout=st.sampled_from(Layout))
def test_every_file_of_a_random_tree_is_found_or_reported(paths, layout, tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    wanted = sorted(os.fsencode("/".join((*path, "f.tif"))) for path in paths)
    for key in wanted:
        a_file(root / os.fsdecode(key))

    found = scanned(root, layout)

    if layout != Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET and "MyTardis" not in layout:
        assert found.keys == wanted
    else:
        assert found.keys == []
        assert set(found.skipped) == {key.split(b"/")[0] for key in wanted}


# --- time ---


def test_a_file_that_changed_a_moment_ago_waits(tmp_path):
    now = FakeClock(LATER).now().timestamp()
    a_file(tmp_path / "ds/new", modified=now - 59)
    a_file(tmp_path / "ds/still", modified=now - 60)
    a_file(tmp_path / "ds/future", modified=now + 1)

    found = scanned(tmp_path)

    assert sorted(found.keys) == [b"ds/future", b"ds/still"]  # the first is judged later
    assert found.left == {b"ds/new": "waiting.settling"}


@pytest.mark.parametrize("modified", [0, -86_400.5, -2_000_000_000])
def test_a_file_of_long_ago_is_taken(tmp_path, modified):
    a_file(tmp_path / "ds/a", modified=modified)

    assert scanned(tmp_path).keys == [b"ds/a"]


# --- odd names and odd things ---


def test_odd_names_are_taken_as_they_are(tmp_path):
    names = ["$(x)`;", "-rf", " x ", "e\u0301", "\u00e9", "a", "con"]
    if os.name == "posix":
        names += ["a\nb", "*", "\\", "\x1b[0m", "A"]
    for name in names:
        a_file(tmp_path / "ds" / name)

    assert scanned(tmp_path).keys == sorted(os.fsencode(f"ds/{name}") for name in names)


@needs_undecodable_names
def test_names_that_are_no_text_are_skipped(tmp_path):
    for name in ("ds/a\udcff", "ds/b\udcff/a", "c\udcff/a", "ds/good"):
        a_file(tmp_path / name)

    found = scanned(tmp_path)

    assert found.keys == [b"ds/good"]
    assert found.left == {os.fsencode("ds/a\udcff"): "skipped.name"}
    assert found.skipped == {
        os.fsencode("ds/b\udcff"): "skipped.name",
        os.fsencode("c\udcff"): "skipped.name",
    }


def make_deep(top):
    """Create folders in each other, with a file in each; POSIX limits the length of paths."""
    if os.name == "nt":
        for depth in range(1, 100):
            a_file(top / "/".join(["d" * 30] * depth) / "f")
        return
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d" * 30, dir_fd=folder)
        inner = os.open("d" * 30, os.O_RDONLY, dir_fd=folder)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.close(folder)
        folder = inner
    os.close(folder)


def test_a_tree_deeper_than_the_server_can_hold_is_read_as_far_as_it_goes(tmp_path):
    make_deep(tmp_path / "ds")

    found = scanned(tmp_path)

    assert len(found.keys) == 8
    assert list(found.skipped.values()) == ["skipped.name"]


def test_a_hundred_levels_are_read(tmp_path):
    a_file(tmp_path / "ds" / "/".join("d" * 120) / "f")

    assert len(scanned(tmp_path).keys) == 1


@needs_fifos
def test_pipes_sockets_and_devices_are_skipped(tmp_path):
    folder = a_file(tmp_path / "ds/real").parent
    os.mkfifo(folder / "pipe")
    expected = {b"ds/pipe": "skipped.special", b"ds/socket": "skipped.special"}
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
    if IS_ROOT:
        os.mknod(folder / "null", 0o20666, os.makedev(1, 3))
        expected[b"ds/null"] = "skipped.special"

    found = scanned(tmp_path)

    assert (found.keys, found.left) == ([b"ds/real"], expected)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "win32", reason="other systems have no such attribute")
def test_files_whose_content_is_elsewhere_are_marked(tmp_path):
    here, away = (a_file(tmp_path / "ds" / name) for name in ("here", "away"))
    subprocess.run(["attrib", "+o", str(away)], check=False)
    if not is_remote(away.stat()):
        pytest.skip("Wine 8 does not keep the attribute")
    clock = FakeClock(LATER)

    (group,) = Scan(settings_of(), [].append, clock, clock.cancel()).scan(tmp_path)

    assert here.exists()
    assert len(group.files) == 2
    assert group.remote == {b"ds/away"}


def test_hard_links_are_files_of_their_own(tmp_path):
    a_file(tmp_path / "ds/a")
    os.link(tmp_path / "ds/a", tmp_path / "ds/b")

    assert scanned(tmp_path).keys == [b"ds/a", b"ds/b"]


# --- symbolic links ---


@pytest.fixture
def linked(tmp_path):
    root = a_tree(tmp_path / "root", "ds/\n  a\n  sub/\n    b\nmore/\n  c")
    outside = a_tree(tmp_path / "outside", "x | 9\nfolder/\n  y")
    for name, target in {
        "to-a": "a",
        "to-x": outside / "x",
        "to-more": root / "more",
        "to-outside": outside / "folder",
        "broken": "nothing",
        "self": "self",
        "up": ".",
        "sub/up": "..",
    }.items():
        (root / "ds" / name).symlink_to(target)
    return root


@needs_links
@pytest.mark.parametrize(
    ("policy", "taken"),
    [("skip", ""), ("files", "to-a to-x"), ("within", "to-a to-more/c")],
)
def test_links_are_followed_as_far_as_the_policy_says(linked, policy, taken):
    found = scanned(linked, symlinks=policy)

    expected = [b"ds/a", b"ds/sub/b", b"more/c", *(b"ds/" + n for n in taken.encode().split())]
    assert found.keys == sorted(expected)
    assert set(found.left.values()) == {"skipped.symlink"}


@needs_links
@pytest.mark.parametrize("policy", ["files", "within"])
def test_what_a_followed_link_leads_to_can_be_opened_without_links(linked, policy):
    link = linked.with_name("data-link")
    link.symlink_to(linked)
    for root in (linked, link):
        with FolderCache() as folders:
            for file in scanned(root, symlinks=policy).files:
                descriptor = folders.open(file.path, file.top, os.O_RDONLY | os.O_NOFOLLOW)
                assert os.fstat(descriptor).st_ino == file.inode
                os.close(descriptor)


@needs_links
def test_a_followed_links_file_is_read_where_it_really_lies(linked):
    files = {file.key: file for file in scanned(linked, symlinks="files").files}

    assert files[b"ds/to-x"].path == os.fsencode(linked.parent / "outside/x")
    assert files[b"ds/to-x"].size == 9


@needs_links
def test_links_between_folders_do_not_multiply(tmp_path):
    for name in "abcdefgh":
        a_file(tmp_path / "ds" / name / "f")
        for other in "abcdefgh":
            (tmp_path / "ds" / name / f"to-{other}").symlink_to(tmp_path / "ds" / other)

    assert len(scanned(tmp_path, symlinks="within").keys) <= 16


@needs_links
@pytest.mark.parametrize(("policy", "taken"), [("skip", []), ("within", [b"link/a", b"real/a"])])
def test_a_linked_dataset_folder_is_taken_as_the_policy_says(tmp_path, policy, taken):
    a_file(tmp_path / "real/a")
    (tmp_path / "link").symlink_to("real")

    found = scanned(tmp_path, symlinks=policy)

    assert found.keys == (taken or [b"real/a"])
    assert found.skipped == ({} if taken else {b"link": "skipped.symlink"})


# --- what cannot be read ---


def without_rights(root: str, results) -> None:
    """Scan as a user who is not root, for whom modes mean something."""
    os.seteuid(65534)
    found = scanned(root)
    results.put((found.keys, found.failed, found.left))


def scanned_without_rights(root):
    if not IS_ROOT:
        found = scanned(root)
        return found.keys, found.failed, found.left
    context = get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=without_rights, args=(root, results))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    return results.get()


@pytest.fixture
def open_tmp(tmp_path):
    """Return a folder that anybody may enter."""
    folder = tmp_path
    while folder != Path(tmp_path.anchor) and folder.stat().st_mode & 0o001 == 0:
        folder.chmod(folder.stat().st_mode | 0o755)
        folder = folder.parent
    return tmp_path


@posix_modes
@pytest.mark.process
def test_folders_that_cannot_be_read_fail_alone(open_tmp):
    for key in ("closed/a", "ds/closed/b", "ds/c", "listed/d"):
        a_file(open_tmp / "root" / key)
    for key, mode in {"closed": 0, "ds/closed": 0, "listed": 0o444}.items():
        (open_tmp / "root" / key).chmod(mode)

    keys, failed, left = scanned_without_rights(open_tmp / "root")

    assert keys == [b"ds/c"]
    assert failed == {b"closed": "folder.unreadable", b"ds/closed": "folder.unreadable"}
    assert left == {b"listed/d": "file.unreadable"}


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_missing_data_directory_is_never_an_empty_one(tmp_path, kind):
    root = tmp_path / "root"
    if kind == "file":
        a_file(root)

    with pytest.raises(SettingsError, match="not available"):
        scanned(root)


def test_a_data_directory_that_vanishes_during_the_scan_stops_it_at_once(tmp_path):
    root = tmp_path / "root"
    for name in "abc":
        a_file(root / name / "f")
    events = []
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), events.append, clock, clock.cancel()).scan(root)

    next(groups)
    root.rename(tmp_path / "gone")

    with pytest.raises(SettingsError, match="not available"):
        next(groups)
    assert of(FolderFailed, events) == []


def test_a_folder_whose_drive_vanishes_does_not_end_as_if_it_were_read(tmp_path):
    root = tmp_path / "root"
    for number in range(1500):
        a_file(root / "ds" / str(number), 0)
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), [].append, clock, clock.cancel()).scan(root)

    next(groups)
    root.rename(tmp_path / "gone")

    with pytest.raises(SettingsError, match="not available"):
        next(groups)


def test_another_drive_in_the_place_of_the_data_directory_stops_the_scan(tmp_path):
    root = tmp_path / "root"
    a_file(root / "a/f")
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), [].append, clock, clock.cancel()).scan(root)

    next(groups)
    root.rename(tmp_path / "gone")
    root.mkdir()

    with pytest.raises(SettingsError, match="taken its place"):
        list(groups)


def test_a_folder_that_vanishes_during_the_scan_fails_alone(tmp_path):
    for name in "abc":
        a_file(tmp_path / name / "f")
    events = []
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), events.append, clock, clock.cancel()).scan(tmp_path)

    first = next(groups)
    (tmp_path / "b").rename(tmp_path / ".gone")

    assert [first.folder.path, *(group.folder.path for group in groups)] == [b"a", b"c"]
    assert codes(of(FolderFailed, events)) == {b"b": "folder.unreadable"}


def test_an_empty_data_directory_is_noticed(tmp_path):
    (notice,) = scanned(tmp_path).events

    assert isinstance(notice, Notice)
    assert notice.problem.code == "data.empty"


# --- streaming ---


def test_groups_hold_a_thousand_files_and_the_last_one_says_so(tmp_path):
    for folder in range(3):
        (tmp_path / "ds" / str(folder)).mkdir(parents=True)
    for number in range(2500):
        (tmp_path / "ds" / str(number % 3) / str(number)).touch()

    groups = scanned(tmp_path).groups

    assert [(len(group.files), group.last) for group in groups] == [
        (1000, False), (1000, False), (500, True),
    ]  # fmt: skip


def test_a_stop_takes_effect_between_groups(tmp_path):
    for number in range(2100):
        a_file(tmp_path / "ds" / str(number), 0)
    clock = FakeClock(LATER)
    cancel = clock.cancel()
    groups = Scan(settings_of(), [].append, clock, cancel).scan(tmp_path)

    next(groups)
    cancel.set()

    with pytest.raises(Cancelled):
        next(groups)


@pytest.mark.skipif(os.name == "nt", reason="Wine needs minutes to fill such a folder")
@pytest.mark.slow
def test_memory_does_not_grow_with_the_folder(tmp_path):
    folder = tmp_path / "ds"
    folder.mkdir()
    for number in range(30_000):
        open(f"{folder}/a-file-with-a-name-{number}", "xb").close()  # noqa: PTH123 - fast
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), lambda _: None, clock, clock.cancel()).scan(tmp_path)

    tracemalloc.start()
    count = sum(len(group.files) for group in groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert count == 30_000
    assert peak < 3_000_000


@pytest.mark.parametrize(
    ("only", "found"),
    [
        ("ann/x", [b"ann/x/one"]),
        ("ann", [b"ann/x/one", b"ann/xy/two"]),
        ("ann/nowhere", []),
    ],
)
def test_a_run_over_one_folder_reads_nothing_else(tmp_path, only, found):
    for name in ("ann/x/one", "ann/xy/two", "bob/x/three"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"1")
    events, clock = [], FakeClock(LATER)
    settings = settings_of(Layout.USERNAME_DATASET)
    scan = Scan(settings, events.append, clock, clock.cancel(), ScanScope(only))

    groups = list(scan.scan(tmp_path))

    assert [file.key for group in groups for file in group.files] == found
    notices = [event.problem.code for event in events if isinstance(event, Notice)]
    assert notices == ([] if found else ["folder.unknown"])


def test_all_shards_together_show_what_the_whole_shows(tmp_path):
    for number in range(12):
        a_file(tmp_path / f"Experiment {number}" / f"{number % 3}" / "one")
        a_file(tmp_path / f"Experiment {number}" / "loose")
    a_file(tmp_path / "stray")
    if HAS_LINKS:
        (tmp_path / "beside").symlink_to(tmp_path / "nowhere")
    whole, *parts = [
        scanned(tmp_path, Layout.EXPERIMENT_DATASET, part=ScanScope(shard=shard))
        for shard in (WHOLE, Shard(1, 3), Shard(2, 3), Shard(3, 3))
    ]

    assert sorted(key for part in parts for key in part.keys) == whole.keys
    told = Counter(map(repr, (event for part in parts for event in part.events)))
    assert told == Counter(map(repr, whole.events))
    assert all(part.keys for part in parts)


@pytest.mark.parametrize("ignores", [True, False])
def test_the_locks_of_runs_are_never_taken(tmp_path, ignores):
    names = (".mydata-like.lock", ".mydata-like-1-of-2.lock", ".mydata-like-0123456789abcdef.lock")
    for name in (*names, "jo/ds/f", *(f"jo/ds/{name}" for name in names)):
        a_file(tmp_path / name)

    found = scanned(tmp_path, Layout.USERNAME_DATASET, default_ignores=ignores)

    assert found.keys == [b"jo/ds/f"]
    assert found.left == {f"jo/ds/{name}".encode(): "skipped.ignored" for name in names}


def swap(folder, target):
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(target)


@needs_links
def test_a_dataset_folder_that_becomes_a_link_after_it_was_listed_is_not_read(tmp_path):
    data, outside = tmp_path / "data", tmp_path / "outside"
    a_tree(data, "a/\n  own\nb/\n  own\n")
    a_tree(outside, "secret")
    events = []
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), events.append, clock, clock.cancel()).scan(data)

    files = [*next(groups).files]
    swap(data / "b", outside)
    files += [file for group in groups for file in group.files]

    assert [file.key for file in files] == [b"a/own"]
    (failed,) = of(FolderFailed, events)
    assert (failed.path, failed.problem.code) == (b"b", "folder.unreadable")
    assert "link" in failed.problem.message


@needs_links
def test_a_folder_that_becomes_a_link_while_it_is_read_reports_nothing_of_outside(tmp_path):
    data, outside = tmp_path / "data", tmp_path / "outside"
    for folder, content in ((data / "ds", b"own"), (outside, b"secret")):
        folder.mkdir(parents=True)
        for number in range(1100):
            (folder / str(number)).write_bytes(content)
    clock = FakeClock(LATER)
    groups = Scan(settings_of(), [].append, clock, clock.cancel()).scan(data)

    files = [*next(groups).files]
    swap(data / "ds", outside)
    files += [file for group in groups for file in group.files]

    assert len(files) == 1100
    assert {file.size for file in files} == {3}


@needs_links
@pytest.mark.parametrize("alone", [True, False], ids=["file", "folder"])
def test_a_source_that_has_become_a_link_is_not_read(tmp_path, alone):
    source, outside = tmp_path / "source", tmp_path / "outside"
    a_tree(outside, "secret")
    source.symlink_to(outside / "secret" if alone else outside)
    events = []
    clock = FakeClock(LATER)
    scan = Scan(settings_of(), events.append, clock, clock.cancel())
    destination = Destination("", "ex", "ds")

    assert [*scan.read(ExtraSource(os.fsencode(source), destination, alone))] == []

    (failed,) = of(FolderFailed, events)
    assert failed.problem.code == "source.gone"
