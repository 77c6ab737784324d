"""Errors in slots are logged and told; a window that stands still leaves its stacks."""

import logging
import subprocess
import sys

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

from mydata_like.gui.tray.crash_handler import CrashHandler, UiHangDetector

STALL = """
import logging, sys, time
from pathlib import Path
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QWidget
from mydata_like.gui.tray.crash_handler import UiHangDetector

def stand_still():
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        pass
    QTimer.singleShot(200, app.quit)

logging.basicConfig(level="ERROR")
app = QApplication([])
window = QWidget()
window.show()
dog = UiHangDetector(Path(sys.argv[1]), 0.3)
QTimer.singleShot(100, stand_still)
app.exec()
dog.stop()
"""


@pytest.fixture
def last_resort(qapp):
    last_resort = CrashHandler()
    yield last_resort
    last_resort.stop()


@pytest.mark.qt_no_exception_capture
def test_an_error_in_a_slot_is_logged_and_reported_once(qtbot, last_resort, caplog):
    told = []
    last_resort.problem_raised.connect(told.append)
    timer = QTimer()
    timer.timeout.connect(_fail)
    turns = []
    timer.timeout.connect(lambda: turns.append(1))
    with caplog.at_level(logging.CRITICAL):
        timer.start(1)
        qtbot.waitUntil(lambda: len(turns) >= 4)
        timer.stop()

    (problem,) = told
    assert (problem.code, "a sector is bad" in problem.message) == ("window.failed", True)
    assert "_fail" in caplog.text
    assert "has occurred 4 times" in caplog.text


def test_a_window_that_stands_still_leaves_its_stacks(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", STALL, str(tmp_path)], capture_output=True, text=True, timeout=30
    )
    written = (tmp_path / "mydata-like-stalls.log").read_text()

    assert ended.returncode == 0, ended.stderr
    assert "in stand_still" in written
    assert "The window did not respond for more than 0.3 s" in ended.stderr


def test_the_watch_for_stalls_seldom_wakes_a_program_in_the_tray(qtbot, tmp_path):
    watchdog = UiHangDetector(tmp_path)
    timer = watchdog.findChild(QTimer)
    windows = [QWidget(), QWidget(), QWidget()]  # offscreen, a window gets the focus only once
    for window in windows:
        qtbot.addWidget(window)

    for window in windows[:2]:
        window.show()
        qtbot.waitUntil(lambda: timer.interval() == 2500)
        window.hide()
        qtbot.waitUntil(lambda: timer.interval() == 60_000)

    watchdog.stop()
    windows[2].show()
    qtbot.waitUntil(windows[2].isActiveWindow)
    assert not timer.isActive()


def _fail():
    raise OSError("a sector is bad")
