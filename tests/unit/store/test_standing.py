"""What is remembered of how we stand with a server."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from mydata_like.core.errors import Problem
from mydata_like.store.standing import Awaited, Standing

MOMENT = datetime(2027, 3, 1, 12, 30, tzinfo=UTC)
AWAITED = Awaited("SHA256:abc", MOMENT, Problem("uploader.not-approved", "Not yet.", "Ask."))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "standing.json"


def test_what_is_saved_is_found_again(file):
    for standing in (
        Standing(told="digest", told_at=MOMENT, awaited=AWAITED),
        Standing(told="digest", told_at=MOMENT, let_in="key host"),
    ):
        standing.save(file)
        assert Standing.load(file) == standing
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"told": 1, "told_at": 2, "awaited": 3}'])
def test_a_damaged_file_remembers_nothing(file, text):
    file.write_text(text)
    assert Standing.load(file) == Standing()


def test_a_missing_file_and_a_missing_folder_are_no_failure(file):
    assert Standing.load(file) == Standing()
    replace(Standing(), told="x").save(file.parent / "nowhere" / "standing.json")
