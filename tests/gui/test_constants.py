"""None and True outlive every call of Qt."""

import subprocess
import sys

import pytest

CALLS = """
import mydata_like.gui
from PySide6.QtCore import QObject, Signal
class Thing(QObject):
    told = Signal()
thing = Thing()
for _ in range(300_000):
    {call}
"""


@pytest.mark.parametrize("call", ["thing.setObjectName('x')", "thing.told.emit()"])
def test_no_number_of_calls_of_qt_ends_the_process(call):
    words = [sys.executable, "-c", CALLS.format(call=call)]
    ended = subprocess.run(words, capture_output=True, text=True)

    assert ended.returncode == 0, ended.stderr
