"""Background tasks of the window, and how their results come back."""

import gc
import threading
from functools import partial

import pytest
from PySide6.QtCore import QObject

from mydata_like.core.errors import SettingsError
from mydata_like.gui.tasks import LEAVE_AFTER, Tasks

DEADLINE = 30


class Listener(QObject):
    def __init__(self):
        super().__init__()
        self.heard = []

    def hear(self, what):
        self.heard.append((what, threading.current_thread() is threading.main_thread()))


def test_results_and_errors_come_back_in_the_gui_thread(qtbot):
    tasks, listener = Tasks(), Listener()
    error = SettingsError("No.")

    def fail():
        raise error

    tasks.run(lambda: 7, listener.hear)
    tasks.run(fail, listener.hear, listener.hear)
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert sorted(listener.heard, key=str) == sorted([(7, True), (error, True)], key=str)


def test_an_internal_error_is_reported_as_one(qtbot, caplog):
    tasks, listener = Tasks(), Listener()
    tasks.run(lambda: 1 / 0, listener.hear, listener.hear)
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    ((error, _),) = listener.heard
    assert error.problem_code == "window.failed"


@pytest.mark.parametrize("prepare", [lambda method: method, partial], ids=["method", "partial"])
def test_a_dead_process_is_not_reported(qtbot, prepare):
    tasks, listener = Tasks(), Listener()
    heard, gate = listener.heard, threading.Event()
    tasks.run(gate.wait, prepare(listener.hear))
    listener.deleteLater()
    with qtbot.waitSignal(listener.destroyed):
        pass
    gate.set()
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert heard == []


def test_what_hangs_does_not_keep_the_program_from_ending(qtbot):
    tasks, listener, gate = Tasks(threads=1), Listener(), threading.Event()
    tasks.run(gate.wait, listener.hear)
    tasks.run(lambda: 7, listener.hear)
    tasks.close()
    gate.set()

    assert listener.heard == []


class Asker:
    """A caller that gets an answer and is deleted; the thread that releases it last is noted."""

    def __init__(self, ends):
        self.ends = ends

    def ask(self):
        raise SettingsError("No.")

    def hear(self, what):
        pass

    def __del__(self):
        self.ends.append(threading.current_thread() is threading.main_thread())


def test_the_gui_thread_is_the_last_to_release_the_caller(qtbot):
    tasks, ends = Tasks(), []
    for _ in range(300):
        asker = Asker(ends)
        tasks.run(asker.ask, asker.hear, asker.hear)
        del asker
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    gc.collect()
    assert ends == [True] * 300


def test_progress_comes_in_order_and_before_the_result(qtbot):
    tasks, listener = Tasks(), Listener()

    def count(report):
        for number in range(3):
            report(number)
        return "done"

    tasks.run(count, listener.hear, progress=listener.hear)
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert listener.heard == [(0, True), (1, True), (2, True), ("done", True)]


def test_a_cancelled_task_ends_early_and_delivers_nothing(qtbot):
    tasks, listener = Tasks(), Listener()
    begun = threading.Event()

    def work(report, cancel):
        begun.set()
        cancel.wait(DEADLINE)
        report("late")
        return "late"

    task = tasks.run(work, listener.hear, progress=listener.hear, cancel=True)
    begun.wait(DEADLINE)
    task.cancel()
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert listener.heard == []
    assert not task.running


def test_a_stopped_task_ends_early_and_delivers_its_result(qtbot):
    tasks, listener = Tasks(), Listener()
    task = tasks.run(lambda cancel: cancel.wait(DEADLINE), listener.hear, cancel=True)
    task.stop()
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert listener.heard == [(True, True)]


def test_a_task_that_was_cancelled_before_it_began_never_begins(qtbot):
    tasks, listener, begun = Tasks(threads=1), Listener(), []
    gate = threading.Event()
    tasks.run(gate.wait)
    queued = tasks.run(lambda: begun.append("queued"), listener.hear)
    delayed = tasks.run(lambda: begun.append("delayed"), listener.hear, delay=1)
    queued.cancel()
    delayed.cancel()
    gate.set()
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert begun == listener.heard == []


@pytest.mark.parametrize("prepare", [lambda method: method, partial], ids=["method", "partial"])
def test_only_the_latest_of_several_results_is_delivered(qtbot, prepare):
    tasks, listener = Tasks(), Listener()
    gate = threading.Event()

    earlier = tasks.run(lambda: gate.wait() and 1, prepare(listener.hear), latest=True)
    tasks.run(lambda: 2, prepare(listener.hear), latest=True)
    gate.set()
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert listener.heard == [(2, True)]
    assert earlier.cancel_flag.is_set()


def test_a_task_says_whether_its_result_is_awaited_and_whether_it_has_failed(qtbot):
    tasks = Tasks()

    def fail():
        raise SettingsError("No.")

    good, bad = tasks.run(lambda: 7), tasks.run(fail)
    assert good.running
    qtbot.waitUntil(lambda: not tasks.busy)
    tasks.close()

    assert not good.running
    assert (good.failed, bad.failed) == (False, True)


def test_the_end_waits_for_what_writes_even_where_it_has_not_begun(qtbot):
    tasks, gate, written = Tasks(threads=1), threading.Event(), []
    tasks.run(gate.wait)
    tasks.run(lambda: written.append("read"))
    tasks.run(lambda: written.append("write"), writes=True)
    tasks.run(lambda: written.append("typed"), delay=1)
    threading.Timer(LEAVE_AFTER / 2, gate.set).start()
    tasks.close()

    assert written == ["write"]


def test_nothing_is_run_after_the_end(qtbot):
    tasks, begun = Tasks(), []
    tasks.close()
    task = tasks.run(lambda: begun.append(1))

    assert not task.running
    assert not tasks.busy
    assert begun == []
