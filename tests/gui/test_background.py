"""What runs beside the GUI thread, and how its results come back."""

import gc
import threading
from functools import partial

import pytest
from PySide6.QtCore import QObject

from mydata_like.core.errors import SettingsError
from mydata_like.gui.background import Background


class Listener(QObject):
    def __init__(self):
        super().__init__()
        self.heard = []

    def hear(self, what):
        self.heard.append((what, threading.current_thread() is threading.main_thread()))


def test_results_and_errors_come_back_in_the_gui_thread(qtbot):
    background, listener = Background(), Listener()
    error = SettingsError("No.")

    def fail():
        raise error

    background.run(lambda: 7, listener.hear)
    background.run(fail, listener.hear, listener.hear)
    qtbot.waitUntil(lambda: not background.busy)
    background.close()

    assert sorted(listener.heard, key=str) == sorted([(7, True), (error, True)], key=str)


def test_a_mistake_of_ours_is_told_as_one(qtbot, caplog):
    background, listener = Background(), Listener()
    background.run(lambda: 1 / 0, listener.hear, listener.hear)
    qtbot.waitUntil(lambda: not background.busy)
    background.close()

    ((error, _),) = listener.heard
    assert error.problem_code == "window.failed"


@pytest.mark.parametrize("prepare", [lambda method: method, partial], ids=["method", "partial"])
def test_who_has_died_is_not_told(qtbot, prepare):
    background, listener = Background(), Listener()
    heard, gate = listener.heard, threading.Event()
    background.run(gate.wait, prepare(listener.hear))
    listener.deleteLater()
    with qtbot.waitSignal(listener.destroyed):
        pass
    gate.set()
    qtbot.waitUntil(lambda: not background.busy)
    background.close()

    assert heard == []


def test_what_hangs_does_not_keep_the_program_from_ending(qtbot):
    background, listener, gate = Background(threads=1), Listener(), threading.Event()
    background.run(gate.wait, listener.hear)
    background.run(lambda: 7, listener.hear)
    background.close()
    gate.set()

    assert listener.heard == []


class Asker:
    """Somebody who asks, is told, and goes; the thread that lets go of it last is noted."""

    def __init__(self, ends):
        self.ends = ends

    def ask(self):
        raise SettingsError("No.")

    def hear(self, what):
        pass

    def __del__(self):
        self.ends.append(threading.current_thread() is threading.main_thread())


def test_the_gui_thread_is_the_last_to_let_go_of_who_asked(qtbot):
    background, ends = Background(), []
    for _ in range(300):
        asker = Asker(ends)
        background.run(asker.ask, asker.hear, asker.hear)
        del asker
    qtbot.waitUntil(lambda: not background.busy)
    background.close()

    gc.collect()
    assert ends == [True] * 300
