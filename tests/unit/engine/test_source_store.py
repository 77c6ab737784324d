"""Sources: what can be carried from outside of the data directory, and when."""

import os

import pytest

from mydata_like.core.errors import SourceError
from mydata_like.core.extra_sources import (
    Destination,
    ExtraSource,
    SourceRequest,
    check_destination,
    parse_destination,
    suggest_destination,
)
from mydata_like.core.model import Layout, OwnerKind
from mydata_like.engine.layout import source_folder
from mydata_like.engine.source_store import ExtraSources, check_source
from mydata_like.settings.schema import Data, Settings
from tests.fakes.roll import MemoryRoll
from tests.privileges import HAS_LINKS, needs_fifos, needs_links, needs_one_case

PLACE = Destination("", "Mice", "Day 1")


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "data" / "ada" / "scan" / "deep").mkdir(parents=True)
    (tmp_path / "usb" / "day 1").mkdir(parents=True)
    (tmp_path / "usb" / "a.tif").write_bytes(b"a")
    if HAS_LINKS:
        (tmp_path / "link").symlink_to(tmp_path / "usb")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
    return Settings(data=Data(directory=tmp_path / "data"))


def offer(path, destination=PLACE):
    return SourceRequest(os.fsencode(path), destination)


def key_of(path):
    return os.fsencode(path.as_posix())


def name_of(source):
    return source.path.rpartition(b"/")[2]


def refusal(act):
    with pytest.raises(SourceError) as caught:
        act()
    return caught.value


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ("data", "source.inside"),
        ("data/ada/scan/deep", "source.inside"),
        ("data/../data/ada", "source.inside"),
        ("", "source.holds-data"),
        ("nowhere", "source.gone"),
        pytest.param("link", "source.link", marks=needs_links),
        pytest.param("pipe", "source.special", marks=needs_fifos),
    ],
)
def test_what_cannot_be_carried_is_refused(settings, tmp_path, place, code):
    error = refusal(lambda: check_source(settings, offer(tmp_path / place)))

    assert error.problem_code == code
    assert error.exit_code == 2


@needs_links
def test_what_lies_in_the_data_directory_behind_a_link_is_refused(settings, tmp_path):
    (tmp_path / "usb" / "in").symlink_to(tmp_path / "data")
    error = refusal(lambda: check_source(settings, offer(tmp_path / "usb" / "in" / "ada")))

    assert error.problem_code == "source.inside"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("ada/scan", 'It is the dataset "scan".'),
        ("ada/scan/deep", 'It is part of the dataset "scan".'),
        ("ada", "The layout maps its folders to datasets."),
    ],
)
def test_it_is_said_what_becomes_of_a_folder_of_the_data_directory(settings, tmp_path, place, said):
    assert said in refusal(lambda: check_source(settings, offer(tmp_path / "data" / place))).message


@needs_one_case
def test_a_source_in_other_letters_is_the_same_one(settings, tmp_path):
    typed = tmp_path / "USB" / "Day 1"

    source = check_source(settings, SourceRequest(os.fsencode(typed)))
    refused = refusal(lambda: check_source(settings, offer(tmp_path / "DATA" / "Ada")))

    assert source.path == key_of(tmp_path / "usb" / "day 1")
    assert source.destination == Destination("", "usb", "day 1")
    assert refused.problem_code == "source.inside"


@pytest.mark.parametrize("text", ["Mice", "a/b/c/d", "Mice/", "/ /x", "a/b\x1b", "x" * 401 + "/b"])
def test_names_that_the_server_cannot_hold_are_refused(text):
    assert refusal(lambda: parse_destination(text)).problem_code == "source.name"


def test_bytes_that_are_no_text_are_no_name():
    assert refusal(lambda: check_destination(Destination("", "a", "\udcff"))).problem_code


def test_names_lose_the_blanks_around_them():
    assert parse_destination(" ada / Mice /Day 1 ") == Destination("ada", "Mice", "Day 1")


def test_a_folder_is_named_after_itself_and_a_file_after_its_folder():
    assert suggest_destination(b"/usb/Mice/Day 1") == PLACE
    assert suggest_destination(b"/usb/Mice/Day 1/a.tif", alone=True) == PLACE


@pytest.mark.skipif(os.name != "nt", reason="only Windows has drives")
@pytest.mark.parametrize(
    ("path", "name"),
    [(b"E:", "E"), (b"//store/scans", "scans"), (b"E:/Day 1", "Day 1")],
    ids=["drive", "network share", "folder at the top"],
)
def test_a_drive_is_named_after_its_letter_and_a_share_after_itself(path, name):
    assert suggest_destination(path) == Destination("", name, name)


@pytest.mark.parametrize(
    ("layout", "kind", "owner", "group"),
    [
        (Layout.USERNAME_DATASET, OwnerKind.USERNAME, "ada", ""),
        (Layout.EMAIL_DATASET, OwnerKind.EMAIL, "ada", ""),
        (Layout.DATASET, OwnerKind.USERNAME, "ada", ""),
        (Layout.GROUP_DATASET, OwnerKind.ACCOUNT, "", "ada"),
    ],
)
def test_the_owner_is_looked_up_as_the_layouts_are(layout, kind, owner, group):
    folder = source_folder(layout, ExtraSource(b"/usb/x", PLACE._replace(owner="ada")))

    assert (folder.owner_kind, folder.owner, folder.group_folder) == (kind, owner, group)
    assert (folder.title, folder.name) == ("Mice", "Day 1")
    assert source_folder(layout, ExtraSource(b"/usb/x", PLACE)).owner_kind is OwnerKind.ACCOUNT


def test_without_a_word_a_source_becomes_what_it_was(settings, tmp_path):
    roll = MemoryRoll()
    ExtraSources(settings, roll).add(offer(tmp_path / "usb" / "day 1"))
    again = ExtraSources(settings, roll)
    again.add(offer(tmp_path / "usb" / "day 1", None))

    assert [source.destination for source in again.take()] == [PLACE]


def test_a_dry_run_remembers_nothing(settings, tmp_path):
    roll = MemoryRoll()
    ExtraSources(settings, roll, dry_run=True).add(offer(tmp_path / "usb"))

    assert roll.destinations == {}


def test_of_a_source_that_still_waits_the_last_word_counts(settings, tmp_path):
    sources = ExtraSources(settings, MemoryRoll())
    other = PLACE._replace(dataset="Day 2")

    assert sources.add(offer(tmp_path / "usb"))
    assert sources.add(offer(tmp_path / "usb", other))
    assert [source.destination for source in sources.take()] == [other]


def test_what_was_read_or_comes_at_the_end_is_for_the_next_run(settings, tmp_path):
    sources = ExtraSources(settings, MemoryRoll())
    sources.add(offer(tmp_path / "usb"))
    assert not sources.end()
    assert len(list(sources.take())) == 1

    assert not sources.add(offer(tmp_path / "usb"))
    assert sources.end()
    (tmp_path / "late").mkdir()
    assert not sources.add(offer(tmp_path / "late"))


def test_folders_in_each_other_are_refused(settings, tmp_path):
    sources = ExtraSources(settings, MemoryRoll())
    sources.add(offer(tmp_path / "usb" / "day 1"))
    error = refusal(lambda: sources.add(offer(tmp_path / "usb")))

    assert error.problem_code == "source.overlap"
    assert sources.add(offer(tmp_path / "usb" / "a.tif"))


def test_what_comes_too_late_is_remembered_and_stays_unfinished(settings, tmp_path):
    roll = MemoryRoll()
    sources = ExtraSources(settings, roll)
    sources.add(offer(tmp_path / "usb"))
    list(sources.take())
    assert sources.end()
    (tmp_path / "late").mkdir()
    for place in ("usb", "late"):
        assert not sources.add(offer(tmp_path / place))
    sources.finish()

    assert [name_of(it) for it in roll.find_sources()] == [b"late", b"usb"]
    assert [it.finished for it in roll.find_sources()] == [None, None]


def test_what_earlier_runs_have_not_finished_is_carried_on(settings, tmp_path):
    roll = MemoryRoll()
    before = ExtraSources(settings, roll)
    for place in ("usb/day 1", "usb/a.tif", "link"):
        roll.record_source(ExtraSource(key_of(tmp_path / place), PLACE))
    roll.finish_source(key_of(tmp_path / "link"))
    roll.record_source(ExtraSource(b"/gone", PLACE))

    before.carry_on()

    assert [(name_of(it), it.alone) for it in before.waiting] == [
        (b"gone", False),
        (b"a.tif", True),
        (b"day 1", False),
    ]


def test_what_is_added_now_counts_before_what_it_holds(settings, tmp_path):
    roll = MemoryRoll()
    roll.record_source(ExtraSource(key_of(tmp_path / "usb" / "day 1"), PLACE))
    sources = ExtraSources(settings, roll)
    sources.add(offer(tmp_path / "usb"))
    sources.carry_on()

    assert [name_of(source) for source in sources.take()] == [b"usb"]


def test_what_is_remembered_for_a_run_that_opens_is_finished_by_it(settings, tmp_path):
    roll = MemoryRoll()
    sources = ExtraSources(settings, roll)
    sources.remember(offer(tmp_path / "usb"))
    sources.add(offer(tmp_path / "usb"))
    list(sources.take())
    sources.finish()

    assert [it.finished is None for it in roll.find_sources()] == [False]
