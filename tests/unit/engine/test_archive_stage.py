"""Bundling: which files share an archive, and that none is lost on the way."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.archives import ArchiveRecord, archive_name, is_archive_name, member_name
from mydata_like.core.local_files import ArchiveMember, LocalFile
from mydata_like.core.model import (
    CheckedGroup,
    EntryState,
    FileGroup,
    FileRecord,
)
from mydata_like.engine import archive_stage as module
from mydata_like.engine.archive_stage import Bundle
from mydata_like.engine.run import count_files
from mydata_like.settings.transfer_sections import Archive as Settings
from mydata_like.transfer.archive_reader import TarArchives
from tests.fakes.ledger import MemoryLedger
from tests.unit.engine.files import (
    DATASET,
    MODIFIED_NS,
    a_folder,
    a_record,
    a_staged,
    a_wanted,
    as_registered,
)

FOLDER = a_folder()


def a_file(number: int, directory: str = "raw", size: int = 3) -> LocalFile:
    name = f"{number:03d}.dat"
    key = "/".join(filter(None, ["alice/Set 1", directory, name])).encode()
    return LocalFile(
        b"/data/" + key, key, directory.encode(), name.encode(), size, MODIFIED_NS + number, 1, 2
    )


def wanted(file: LocalFile, **changes) -> FileRecord:
    return FileRecord(file, DATASET, f"Set%201-7/{file.name.decode()}", **changes)


def checked(files, *, known=(), number=0, last=True) -> CheckedGroup:
    """All files are wanted but those known."""
    group = FileGroup(FOLDER, tuple(files), last=last, number=number)
    return CheckedGroup(group, [wanted(file) for file in files if file not in known])


def bundle(*groups, rules=("*.dat below 1 kB from 3 files",), ledger=None, size_limit=1_000_000):
    settings = Settings(rules=rules, size_limit=size_limit)
    stage = Bundle(settings, ledger or MemoryLedger())
    return [item for items in stage(iter(groups)) for item in items]


def shown(items):
    """Archives as the numbers of what they hold, single files as their number."""
    return sorted(
        [int(member.file.name[:3]) for member in item.members]
        if item.members
        else [int(item.file.name[:3])] * 2
        for item in items
    )


def test_enough_files_of_a_folder_become_one_archive():
    (archive,) = bundle(checked([a_file(2), a_file(0), a_file(1)]))

    assert [member.name for member in archive.members] == [
        b"Set 1/raw/000.dat",
        b"Set 1/raw/001.dat",
        b"Set 1/raw/002.dat",
    ]
    file = archive.file
    assert (file.path, file.directory, file.modified_ns) == (b"", b"raw", MODIFIED_NS + 2)
    assert is_archive_name(file.name.decode())
    assert file.name.startswith(b"raw-")
    assert file.name.endswith(b"-0001.tar")
    assert file.key == b"alice/Set 1/raw/" + file.name
    assert archive.remote == "Set%201-7/raw/" + file.name.decode()
    assert archive.datafile is None


def test_too_few_files_go_alone():
    assert shown(bundle(checked([a_file(0), a_file(1)]))) == [[0, 0], [1, 1]]


def test_what_no_rule_fits_goes_alone():
    large, other = a_file(3, size=1000), a_file(4)._replace(name=b"004.txt", key=b"x.txt")

    items = bundle(checked([a_file(0), a_file(1), large, a_file(2), other]))

    assert shown(items) == [[0, 1, 2], [3, 3], [4, 4]]


def test_known_files_make_a_folder_one_of_many_tiny_files():
    files = [a_file(n) for n in range(4)]

    assert shown(bundle(checked(files, known=files[:3]))) == [[3]]


def test_a_file_that_has_a_record_keeps_it():
    files = [a_file(n) for n in range(4)]
    group = checked(files)
    group.open[0] = wanted(files[0], earlier=a_record())

    assert shown(bundle(group)) == [[0, 0], [1, 2, 3]]


def test_each_folder_has_archives_of_its_own():
    files = [a_file(n, "a") for n in range(3)] + [a_file(n, "b") for n in range(3, 6)]

    assert shown(bundle(checked(files))) == [[0, 1, 2], [3, 4, 5]]


def test_a_folder_goes_on_after_its_sub_folders():
    inner = [a_file(n, "a/inner") for n in range(3, 6)]
    files = [a_file(0, "a"), *inner, a_file(1, "a"), a_file(2, "a"), a_file(6, "b")]

    assert shown(bundle(checked(files))) == [[0, 1, 2], [3, 4, 5], [6, 6]]


def test_an_archive_of_a_folder_does_not_wait_for_the_others():
    stage = Bundle(Settings(rules=("* below 1 kB from 3 files",)), MemoryLedger())
    files = [a_file(n, "a") for n in range(3)] + [a_file(3, "b")]

    first = next(items for items in stage(iter([checked(files, last=False)])) if items)

    assert shown(first) == [[0, 1, 2]]


def test_a_rule_by_dataset_takes_all_folders_together():
    files = [a_file(0, ""), a_file(1, "a"), a_file(2, "a/b"), a_file(3, "c")]

    (archive,) = bundle(checked(files), rules=("* below 1 kB from 4 files by dataset",))

    assert shown([archive]) == [[0, 1, 2, 3]]
    assert archive.file.directory == b""
    assert archive.file.name.startswith(b"Set 1-")


def test_the_first_rule_that_fits_counts():
    rules = ("00*.dat below 1 kB from 1 file", "* below 1 kB from 1 file by dataset")

    items = bundle(checked([a_file(1), a_file(2), a_file(100), a_file(3, "x")]), rules=rules)

    assert shown(items) == [[1, 2], [3], [100]]


def test_groups_are_sorted_as_the_walk_found_them():
    files = [a_file(n) for n in range(9)]
    groups = [checked(files[at : at + 3], number=at // 3, last=at == 6) for at in (0, 3, 6)]

    assert shown(bundle(*reversed(groups))) == [list(range(9))]


def test_what_a_group_that_never_came_would_have_completed_is_not_lost():
    late = checked([a_file(n) for n in range(3)], number=1)

    assert shown(bundle(late)) == [[0, 1, 2]]


def test_archives_are_bounded_in_size():
    files = [a_file(n, size=300_000) for n in range(7)]

    items = bundle(checked(files), rules=("* below 1 MB from 1 file",), size_limit=1_000_000)

    assert shown(items) == [[0, 1, 2], [3, 4, 5], [6]]
    form = TarArchives()
    assert all(form.measure(item.file.name, item.members) <= 1_000_000 for item in items)


def test_files_that_were_held_before_there_were_enough_are_divided_too():
    files = [a_file(n, size=600_000) for n in range(4)]

    assert shown(bundle(checked(files), rules=("* below 1 MB from 4 files",))) == [
        [0],
        [1],
        [2],
        [3],
    ]


def test_archives_are_bounded_in_number_and_come_while_the_scan_goes_on():
    stage = Bundle(Settings(rules=("* below 1 kB from 1 file",)), MemoryLedger())
    many = [a_file(n % 1000)._replace(key=b"%d" % n, name=b"%d" % n) for n in range(10_001)]

    first = next(items for items in stage(iter([checked(many, last=False)])) if items)

    assert [len(item.members) for item in first] == [module.MOST_MEMBERS]


@given(st.lists(st.integers(0, 60_000), max_size=40), st.integers(1, 12))
def test_nothing_is_lost_and_no_archive_is_larger_than_allowed(sizes, enough):
    files = [a_file(n, f"d{n % 3}", size) for n, size in enumerate(sizes)]
    files.sort(key=lambda file: file.directory)

    items = bundle(checked(files), rules=(f"* below 50 kB from {enough} files",))

    assert sorted(file.key for item in items for file in item.files) == sorted(
        file.key for file in files
    )
    form = TarArchives()
    for item in items:
        assert not item.members or form.measure(item.file.name, item.members) <= 1_000_000


def test_no_name_is_given_twice():
    ledger = MemoryLedger()
    (archive,) = bundle(checked([a_file(n) for n in range(3)]), ledger=ledger)
    ledger.record_archive(ArchiveRecord.of(replace(archive, state=EntryState.FAILED)), [])

    (again,) = bundle(checked([a_file(n) for n in range(3)]), ledger=ledger)

    assert archive.file.name.endswith(b"-0001.tar")
    assert again.file.name == archive.file.name.replace(b"-0001", b"-0002")


@pytest.mark.parametrize(
    ("folder", "stem"),
    [
        ("Scan 1", "Scan 1"),
        ("Größe µm", "Größe µm"),
        ("-rf $(x)/'\"", "rf _(x)___".replace("(x)", "_x_")),
        ("...", "archive"),
        ("n" * 255, "n" * 50),
        ("\N{CJK UNIFIED IDEOGRAPH-6570}" * 255, "\N{CJK UNIFIED IDEOGRAPH-6570}" * 50),
    ],
)
def test_a_name_says_what_is_inside_in_safe_characters(folder, stem):
    name = archive_name(folder, [], 1)

    assert name.startswith(f"{stem}-")
    assert len(name.encode()) <= 255
    assert is_archive_name(name)


def test_a_member_begins_with_the_name_of_its_dataset_folder():
    assert member_name(b"alice/Set 1", a_file(0, "a/b")) == b"Set 1/a/b/000.dat"
    assert member_name(b"alice/Set 1", a_file(0, "")) == b"Set 1/000.dat"


# What earlier runs have left.


def resumed(file: LocalFile, state=EntryState.STAGED):
    archive = ArchiveRecord(
        DATASET.id, "raw/x-0123abcd-0001.tar", 4096, 5, EntryState.STAGED, "1", "r"
    )
    member = ArchiveMember(file, b"Set 1/" + file.name, "0" * 32)
    found = FileRecord(archive.as_file(FOLDER.path), DATASET, "r", members=(member,))
    return replace(found.arrive("1"), state=state)


@pytest.mark.parametrize("state", [EntryState.STAGED, EntryState.REGISTERED])
@pytest.mark.parametrize("rules", [(), ("*.dat below 1 kB from 3 files",)])
def test_the_files_of_an_earlier_archive_become_it_again(state, rules):
    files = [a_file(n) for n in range(4)]
    groups = [
        CheckedGroup(FileGroup(FOLDER, tuple(files[:2]), last=False), []),
        CheckedGroup(FileGroup(FOLDER, tuple(files[2:]), last=True, number=1), []),
    ]
    for group in groups:
        group.open.extend(resumed(file, state) for file in group.group.files)

    (item,) = bundle(*groups, rules=rules)

    assert item.state is state
    assert [member.file for member in item.members] == files


def test_without_rules_all_passes_by_at_once():
    items = [a_wanted("a"), a_staged("b"), as_registered(a_wanted("c"), "0" * 32)]
    group = CheckedGroup(FileGroup(FOLDER, (), last=False), items)

    stage = Bundle(Settings(), MemoryLedger())

    assert next(stage(iter([group]))) == items


def test_what_waits_counts_as_its_files_and_an_archive_as_all_of_its_own():
    group = checked([a_file(number) for number in range(5)])

    assert [count_files(item) for item in (group.group, group, group.open)] == [5, 5, 5]
    assert count_files(bundle(group)) == 5
    assert count_files([a_staged("one"), a_staged("two")]) == 2
