"""What the tests of transfers share."""

from pathlib import Path

import pytest

from tests.fakes.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
