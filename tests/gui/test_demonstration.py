"""The demonstration in a window of its own."""

import os
import subprocess
import sys
from contextlib import suppress

import psutil
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget

from mydata_like.gui.demo_launcher import DemoLauncher
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme import style
from mydata_like.gui.theme.widgets import _load_drawing
from mydata_like.hostos.process import find_program
from tests.gui.conftest import DEADLINE
from tests.site import kill_group, left_behind
from tests.sshd_fixture import needs_sshd


@needs_sshd
def test_all_of_a_demonstration_vanishes_with_its_window(tmp_path, qtbot):
    words = (sys.executable, "-m", "mydata_like", "demo", "--window")
    place = tmp_path / "temporary"
    place.mkdir()
    shown = {"QT_QPA_PLATFORM": "offscreen", "TMPDIR": str(place)}
    process = subprocess.Popen(words, env=os.environ | shown, start_new_session=True)

    try:
        qtbot.waitUntil(lambda: has_window(process), timeout=DEADLINE)
        process.terminate()
        process.wait(DEADLINE / 1000)
    finally:
        kill_group(process)

    assert list(place.glob("mydata-like-demo-*")) == []
    assert left_behind(process.pid) == []


def test_a_demonstration_that_cannot_be_started_is_reported(qapp, qtbot, full):
    style.apply(qapp, "light")
    _load_drawing.cache_clear()  # the icon of the message cannot be read either
    tasks = Tasks()
    parent = QWidget()
    qtbot.addWidget(parent)
    find_program()  # loads what could not be loaded below
    demonstration = DemoLauncher(tasks, parent)
    with full():
        demonstration.open()
        qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()
    (box,) = [one for one in QApplication.topLevelWidgets() if isinstance(one, QMessageBox)]

    assert box.isVisible()
    assert "could not be started" in box.text()
    box.close()


def has_window(process):
    with suppress(psutil.Error):  # what ends while it is looked at is no window
        return any("gui" in child.cmdline() for child in psutil.Process(process.pid).children())
    return False
