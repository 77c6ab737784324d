"""Signs of change, from the real system."""

import time
from contextlib import closing

import pytest
from watchdog.events import (
    FileClosedEvent,
    FileClosedNoWriteEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileOpenedEvent,
)

from mydata_like.system.changes import FolderChanges

PATIENCE = 10.0


def wait_for_sign(changes):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if changes.take():
            return True
    return False


def test_a_new_file_in_a_new_folder_is_a_sign(tmp_path):
    with closing(FolderChanges(tmp_path)) as changes:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "file").write_bytes(b"data")

        assert wait_for_sign(changes)


@pytest.mark.parametrize(
    ("event", "sign"),
    [
        (FileOpenedEvent("a"), False),
        (FileClosedNoWriteEvent("a"), False),
        (FileDeletedEvent("a"), False),
        (FileClosedEvent("a"), True),
        (FileModifiedEvent("a"), True),
        (FileMovedEvent("a", "b"), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reading_and_deleting_are_no_signs(tmp_path, event, sign):
    with closing(FolderChanges(tmp_path)) as changes:
        changes.on_any_event(event)

        assert changes.take() is sign
        assert not changes.take()


def test_a_folder_that_is_not_there_is_told_and_gives_no_signs(tmp_path):
    with closing(FolderChanges(tmp_path / "gone")) as changes:
        assert "gone" in changes.problem
        assert not changes.take()
