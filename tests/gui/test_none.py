"""None outlives every call of Qt."""

import subprocess
import sys

CALLS = """
import mydata_like.gui
from PySide6.QtCore import QObject
thing = QObject()
for _ in range(300_000):
    thing.setObjectName("x")
"""


def test_no_number_of_calls_of_qt_ends_the_process():
    ended = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr
