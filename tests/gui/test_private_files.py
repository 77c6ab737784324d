"""The window's own files are its user's alone, whatever the umask."""

import os

import pytest
from PySide6.QtCore import QByteArray

from mydata_like.core.queries import View
from mydata_like.gui.tables.table_panel import export_rows
from mydata_like.gui.tray.crash_handler import UiHangDetector
from mydata_like.gui.tray.single_instance import InstanceServer, LaunchRequest, SingleInstance
from mydata_like.gui.window_state import WindowState
from tests.umasks import modes_below, umask

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX has modes")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    return tmp_path / "home"


def test_all_that_the_window_makes_is_private(qtbot, home):
    with umask(0o000):
        instance = SingleInstance(home / "settings.toml", home / "state")
        assert instance.claim(LaunchRequest())
        bell = InstanceServer(instance.address)
        watchdog = UiHangDetector(home / "logs")
        memory = WindowState()
        memory.setValue("page", QByteArray(b"x"))
        memory.sync()
        export_rows(home / "state" / "rows.csv", "Rows", (), lambda view: None, View())

        modes = modes_below(home.parent)

    bell.close()
    watchdog.stop()
    instance.release()
    names = {path.rpartition("/")[2].rpartition(".")[2] for path in modes}
    assert {"ini", "csv", "lock", "log"} <= names
    assert {mode[1:] for mode in modes.values()} == {"rwx------", "rw-------"}
