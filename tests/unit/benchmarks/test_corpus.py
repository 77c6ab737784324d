"""What the benchmarks carry has the shape that it is said to have, the same every time."""

import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.cases import CASES
from benchmarks.contest import Case
from benchmarks.corpus import (
    ARCHIVE_MIX,
    Corpus,
    Scale,
    forget_pages,
    make_growing,
    make_hollow,
    make_mixed,
    make_sparse,
    make_text,
    make_tiny,
    mixed_sizes,
    modify_some,
)
from benchmarks.measure import ContestError

SMALL = Scale(
    large_count=2,
    large_size=1000,
    tiny_count=2000,
    tiny_size=10,
    mixed_count=10,
    known_count=2000,
    sparse_size=16 * 2**20,
    sparse_held=2**20,
    hollow_size=16 * 2**20,
    growing_counts=(1, 2, 3, 4),
    growing_sizes=(2**20, 2**21, 2**22),
    growing_holes=(2**20, 2**21),
)


@pytest.mark.parametrize(("share", "low", "high"), ARCHIVE_MIX)
def test_an_archive_has_its_share_of_every_size(share: float, low: int, high: int):
    sizes = mixed_sizes(5000)

    assert sum(10**low <= size < 10**high for size in sizes) == round(share * 5000)


def test_an_archive_is_the_same_every_time_and_mixed(tmp_path: Path):
    sizes = mixed_sizes(10)

    made = make_mixed(tmp_path / "source", SMALL)

    assert [(made.root / name).stat().st_size for name in made.files] == sizes
    assert sizes not in (sorted(sizes), sorted(sizes, reverse=True))


def test_a_sparse_file_occupies_little_more_than_it_holds(tmp_path: Path):
    made = make_sparse(tmp_path / "source", SMALL)

    (name,) = made.files
    found = (made.root / name).stat()
    assert found.st_size == made.bytes == SMALL.sparse_size
    assert made.held <= found.st_blocks * 512 <= 1.5 * made.held


def test_a_hollow_file_occupies_all_of_its_size_and_holds_little(tmp_path: Path):
    made = make_hollow(tmp_path / "source", SMALL)

    (name,) = made.files
    content = (made.root / name).read_bytes()
    assert (made.root / name).stat().st_blocks * 512 >= len(content) == SMALL.hollow_size
    assert len(content) - content.count(0) <= made.held == SMALL.sparse_held


def test_text_has_the_size_that_is_asked_for_and_shrinks_well(tmp_path: Path):
    made = make_text(tmp_path / "source", SMALL._replace(large_size=100_000))

    first, second = ((made.root / path).read_bytes() for path in made.files)

    assert first != second
    assert len(first) == len(second) == 100_000
    assert len(zlib.compress(first, 1)) < 100_000 / 2


def test_a_part_is_a_corpus_of_its_own(tmp_path: Path):
    made = make_growing(tmp_path / "source", SMALL)

    part = made.part("2 files")

    assert part == Corpus(
        made.root / "2 files",
        ("dataset-000/image-000000.raw", "dataset-000/image-000001.raw"),
        bytes=20,
        folders=("dataset-000",),
        held=20,
    )


def test_one_file_in_a_thousand_is_modified_repeatedly(tmp_path: Path):
    made = make_tiny(tmp_path / "source", SMALL)
    pictures = [_picture(made)]

    for _ in range(2):
        assert modify_some(made) == 2
        pictures.append(_picture(made))

    for before, after in pairwise(pictures):
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {made.files[0], made.files[1000]}
        assert all(after[name][0] > before[name][0] for name in changed)


def test_what_is_forgotten_can_be_read_again(tmp_path: Path):
    made = make_tiny(tmp_path / "source", SMALL._replace(tiny_count=2))
    before = _picture(made)

    forget_pages(made)

    assert _picture(made) == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_target_names_rows_that_there_are(case: Case, tmp_path: Path):
    made = case.make(tmp_path / "source", SMALL._replace(tiny_count=2))
    families = {
        entrant.family for contestant in case.contestants(made) for entrant in contestant.entrants
    }

    named = {family for target in case.targets for family in (target.ours, *target.peers)}

    assert named <= families


def test_data_that_find_no_room_are_not_made(tmp_path: Path):
    with pytest.raises(ContestError, match=r"GB free, but .* GB are needed"):
        make_tiny(tmp_path / "source", SMALL._replace(tiny_count=1, tiny_size=2**60))

    assert not (tmp_path / "source").exists()


def test_a_case_is_called_by_its_number_too():
    names = {case.name: case.names for case in CASES}

    assert names["P6B"] == {"P6B", "P6"}
    assert names["P17G"] == {"P17G", "P17"}
    assert names["P1"] == {"P1"}
    assert names["HOG"] == {"HOG"}


def test_every_case_has_a_name_of_its_own():
    names = [case.name for case in CASES]

    assert len(set(names)) == len(names)


def _picture(made: Corpus) -> dict[str, tuple[int, bytes]]:
    paths = {name: made.root / name for name in made.files}
    return {name: (path.stat().st_mtime_ns, path.read_bytes()) for name, path in paths.items()}
