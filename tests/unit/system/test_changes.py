"""Signs of change, from the real system."""

import time
from contextlib import closing

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


def test_reading_is_none(tmp_path):
    (tmp_path / "old").write_bytes(b"data")
    with closing(FolderChanges(tmp_path)) as changes:
        (tmp_path / "old").read_bytes()
        list(tmp_path.iterdir())
        (tmp_path / "mark").touch()  # whose sign comes after those of the reading, if there are any
        assert wait_for_sign(changes)
        (tmp_path / "old").read_bytes()
        assert not changes.take()


def test_a_folder_that_is_not_there_is_told_and_gives_no_signs(tmp_path):
    with closing(FolderChanges(tmp_path / "gone")) as changes:
        assert "gone" in changes.problem
        assert not changes.take()
