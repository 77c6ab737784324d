"""Signs of change, from the real system."""

import os
import time
from contextlib import closing

import pytest
from watchdog.events import (
    DirModifiedEvent,
    FileClosedEvent,
    FileClosedNoWriteEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileOpenedEvent,
)

from mydata_like.hostos.folder_watcher import FolderWatcher
from mydata_like.hostos.lock import lock_data_directory
from tests.fakes.clock import FakeClock

PATIENCE = 60.0


def wait_for_sign(changes):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if changes.take():
            return True
    return False


def test_a_new_file_in_a_new_folder_is_a_sign(tmp_path):
    with closing(FolderWatcher(tmp_path)) as changes:
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
        (FileModifiedEvent("data/.mydata-like.lock"), False),
        (FileMovedEvent("data/.mydata-like-1-of-2.lock", "data/a"), True),
        (DirModifiedEvent("data"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reading_and_deleting_are_no_signs(tmp_path, event, sign):
    with closing(FolderWatcher(tmp_path)) as changes:
        changes.on_any_event(event)

        assert changes.take() is sign
        assert not changes.take()


def test_a_missing_folder_is_reported_and_signals_nothing(tmp_path):
    with closing(FolderWatcher(tmp_path / "gone")) as changes:
        assert "gone" in changes.problem
        assert not changes.take()


class Recorded(FolderWatcher):
    """Notes of which paths there were signs."""

    def __init__(self, folder):
        self.paths = []
        super().__init__(folder)

    def on_any_event(self, event):
        super().on_any_event(event)
        if self.take():
            self.paths.append(event.src_path)


def test_our_own_locks_are_no_signs(tmp_path):
    data, state = tmp_path / "data", tmp_path / "state"
    data.mkdir()
    with closing(Recorded(data)) as changes:
        with lock_data_directory(state, os.fsencode(data), FakeClock()) as lease:
            lease.renew()
        (data / "last").mkdir()  # its sign comes after all that the locks have led to
        deadline = time.monotonic() + PATIENCE
        while not changes.paths and time.monotonic() < deadline:
            pass

    assert changes.paths == [str(data / "last")]
