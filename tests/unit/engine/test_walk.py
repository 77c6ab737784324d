import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.errors import SettingsError
from mydata_like.engine.layout import Level
from mydata_like.engine.walk import FileFilter, FolderFilter, directory_problem
from mydata_like.settings.schema import Filters

DAY = 86_400.0


def code(problem):
    return problem.code if problem else None


def refused(settings, key):
    path = key.encode()
    return code(FileFilter(settings).refuse(path, path.rpartition(b"/")[2]))


def patterns(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(
    "name",
    [
        *("Thumbs.db", "thumbs.DB", ".DS_Store", "desktop.ini", "~$plan.docx", ".~lock.a.ods#"),
        *("._image.tif", "image.tif.crdownload", "image.tif.part", ".mydata-get-0123456789abcdef"),
    ],
)
def test_litter_is_left_out_unless_it_is_wanted(name):
    assert refused(Filters(), f"a/{name}") == "skipped.ignored"
    assert refused(Filters(default_ignores=False), f"a/{name}") is None


@pytest.mark.parametrize(
    "name",
    [
        *("a.lock", "a.tmp", ".hidden", "Thumbs.db.tif", "a~", "~a", "$x", "desktop.ini2"),
        *("a._b", "_.tif", "a.part1", "a.part.tif", "part", ".part", ".crdownload"),
    ],
)
def test_what_may_be_data_is_never_taken_for_litter(name):
    assert refused(Filters(), name) is None


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("jo/ds/a.tmp", "skipped.pattern"),
        ("jo/ds/keep.tmp", None),
        ("raw/ds/a", "skipped.pattern"),
        ("jo/raw/a", None),
        ("jo/build/a", "skipped.pattern"),
    ],
)
def test_exclude_patterns_mean_what_they_mean_to_git(key, expected):
    settings = Filters(excludes=("*.tmp", "!keep.tmp", "/raw/**", "build/"))

    assert refused(settings, key) == expected


def test_with_include_patterns_a_file_must_match_one_and_no_exclude():
    settings = Filters(includes=("*.tif", "*.txt"), excludes=("b.*",))

    taken = [name for name in ("a.tif", "a.txt", "b.tif", "a.raw") if not refused(settings, name)]

    assert taken == ["a.tif", "a.txt"]


@pytest.mark.parametrize(
    ("includes", "excludes", "taken"),
    [
        (["*.tif"], None, "a.tif b.tif"),
        (None, ["a.*"], "b.tif c.raw"),
        (["*.tif"], ["a.*", "c.*"], "a.tif b.tif"),
        (["x"], ["a.*"], "b.tif c.raw"),
        (["# a.tif", "; b.tif", "", " c.* "], None, "c.raw"),
        ([], None, ""),
    ],
)
def test_pattern_files_follow_mydatas_rule(tmp_path, includes, excludes, taken):
    settings = Filters(
        includes_file=None if includes is None else patterns(tmp_path / "in", *includes),
        excludes_file=None if excludes is None else patterns(tmp_path / "ex", *excludes),
    )

    kept = [name for name in ("a.tif", "b.tif", "c.raw") if not refused(settings, f"d/{name}")]

    assert " ".join(kept) == taken


def test_a_pattern_file_that_cannot_be_read_stops_the_run(tmp_path):
    with pytest.raises(SettingsError, match="pattern file"):
        FileFilter(Filters(excludes_file=tmp_path / "missing"))


@pytest.mark.parametrize("pattern", ["!", "a\\", "[b-a]", "a" * 1_001])
def test_a_pattern_that_means_nothing_stops_the_run(pattern):
    with pytest.raises(SettingsError, match="pattern"):
        FileFilter(Filters(excludes=(pattern,)))


@pytest.mark.parametrize("key", ["includes", "excludes", "includes_file", "excludes_file"])
def test_wildcards_do_not_make_names_slow(tmp_path, key):
    lines = ("*a*a*a*a*a*ab", "*.tmp")
    value = patterns(tmp_path / "patterns", *lines) if key.endswith("_file") else lines
    refuse = FileFilter(Filters(**{key: value})).refuse
    before = time.process_time()

    for _ in range(100):
        refuse(b"a" * 250, b"a" * 250)

    assert time.process_time() - before < 1


@given(st.text(st.sampled_from("*?[]!a/\\-.#"), max_size=12))
def test_hostile_patterns_are_refused_or_matched(pattern):
    try:
        problem = refused(Filters(excludes=(pattern,)), "a/" * 20 + "a" * 40)
    except SettingsError:
        return
    assert problem in (None, "skipped.pattern")


def test_names_the_server_cannot_hold_are_left_out():
    refuse = FileFilter(Filters()).refuse

    assert code(refuse(b"a\xff", b"a\xff")) == "skipped.name"
    assert code(refuse(b"a" * 401, b"a" * 401)) == "skipped.name"
    assert refuse("é".encode() * 201, "é".encode() * 201) is None


def test_directories_are_measured_in_characters():
    assert directory_problem("漢".encode() * 255) is None
    assert code(directory_problem(b"a" * 256)) == "skipped.name"
    assert code(directory_problem(b"a\xff")) == "skipped.name"


@pytest.mark.parametrize(
    ("level", "name", "expected"),
    [
        (Level.OWNER, b"Dr JOan", None),
        (Level.GROUP, b"Dr JOan", None),
        (Level.OWNER, b"anna", "skipped.filtered"),
        (Level.EXPERIMENT, b"a[1]*b", None),
        (Level.EXPERIMENT, b"a1b", "skipped.filtered"),
        (Level.DATASET, "MESSUNG GRÖSSE".encode(), None),
        (Level.FULL_NAME, b"anyone", None),
        (Level.DATASET, b".git", "skipped.hidden"),
        (Level.OWNER, b"$RECYCLE.BIN", "skipped.ignored"),
        (Level.OWNER, b"  ", "skipped.name"),
        (Level.OWNER, b"jo\xff", "skipped.name"),
    ],
)
def test_folders_are_taken_by_a_part_of_their_name(level, name, expected):
    settings = Filters(owner="joan", experiment="[1]*", dataset="größe")

    assert code(FolderFilter(settings).refuse(level, name)) == expected


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("", "", None),
        ("9 days", "", "skipped.old"),
        ("11 days", "", None),
        ("", "11 days", "skipped.young"),
        ("", "9 days", None),
    ],
)
def test_folders_are_left_out_by_age(tmp_path, older, newer, expected):
    settings = Filters(ignore_older_than=older, ignore_newer_than=newer)
    status = tmp_path.stat()

    problem = FolderFilter(settings).refuse_age(status, status.st_ctime + 10 * DAY)

    assert code(problem) == expected


def test_a_folder_of_long_ago_that_changed_lately_is_not_old(tmp_path):
    now = int(tmp_path.stat().st_ctime)
    status = os.stat_result((*tmp_path.stat()[:8], 0, now))  # its mtime, and its ctime

    assert FolderFilter(Filters(ignore_older_than="1 day")).refuse_age(status, now) is None
