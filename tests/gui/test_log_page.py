"""The log as it grows, and the bundle that is shown before it is saved."""

import logging
import zipfile
from datetime import UTC, datetime
from time import thread_time

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QTableView,
)

from mydata_like.cli.output import log_line
from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    CommandDone,
    FileFailed,
    LimitsChanged,
    RunFinished,
    RunScheduled,
    RunStarted,
)
from mydata_like.core.log_line import LogLine
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.log_viewer.bundle_dialog import BundleDialog
from mydata_like.gui.log_viewer.log_model import MAX_LINES, TEXT, FilteredLines, LogFilter, LogModel
from mydata_like.gui.pages.log_page import LogPage
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme.texts import moment
from mydata_like.gui.window_state import WindowState
from mydata_like.hostos.logs import LogStyle, Redaction, logging_to

DEADLINE = 30_000
NOW = datetime(2027, 1, 1, tzinfo=UTC)
GONE = Problem("data.unavailable", "It is gone (really).")
logger = logging.getLogger("mydata_like.engine.send")


@pytest.fixture
def log(home):
    """The engine's log, open to be written."""
    with logging_to(home / "logs", Redaction(), LogStyle()):
        yield home / "logs" / "mydata-like.log"


@pytest.fixture
def context(home):
    tasks = Tasks()
    controller = WindowController(None, tasks)
    yield AppContext(controller, tasks, WindowState(controller))
    tasks.close()


@pytest.fixture
def page(context, log, qtbot):
    page = LogPage(context)
    qtbot.addWidget(page)
    page.resize(900, 500)
    page.show()
    yield page
    page.hide()


def texts(page):
    model = page.findChild(QTableView).model()
    return [model.index(row, TEXT).data() for row in range(model.rowCount())]


def wait_for(qtbot, page, expected):
    qtbot.waitUntil(lambda: texts(page) == expected, timeout=DEADLINE)


def button(parent, text):
    return next(one for one in parent.findChildren(QPushButton) if one.text().startswith(text))


def write(count):
    for number in range(count):
        logger.info("line %d", number)


def test_lines_appear_as_they_are_written(page, qtbot):
    logger.info("one")
    wait_for(qtbot, page, ["one"])
    logger.info("two \x1b[31m")
    wait_for(qtbot, page, ["one", "two \\x1b[31m"])


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (RunStarted(run="r", at=NOW, data_directory=b"/data"), "A run has started."),
        (RunFinished.of_nothing(NOW, GONE), "It is gone (really)."),
        (FileFailed(path=b"a/b c", size=1, problem=GONE), "a/b c: It is gone (really)."),
        (LimitsChanged(channels=2, reason=""), "At most 2 channel(s) are used."),
        (RunScheduled(at=None, kind="manual"), "No run is planned."),
        (RunScheduled(at=NOW, kind="daily"), f"The next run is planned for {moment(NOW)}."),
        (CommandDone(id=1, command="start"), "Start was chosen."),
    ],
    ids=lambda it: type(it).__name__,
)
def test_events_are_shown_as_sentences_and_in_full_as_tips(event, shown):
    model = LogModel()
    line = log_line(event)
    model.append([LogLine("2027-01-01 12:00:00", "INFO", "mydata_like.cli.output", line)])

    cell = model.index(0, TEXT)
    assert cell.data() == shown
    assert line.partition(" ")[0] in cell.data(Qt.ItemDataRole.ToolTipRole)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("The system refuses to stay awake", "The system refuses to stay awake."),
        ("Is it there?", "Is it there?"),
        ("command_done command=list_next", "command_done command=list_next"),
    ],
)
def test_a_sentence_without_a_full_stop_gets_one(line, shown):
    model = LogModel()
    model.append([LogLine("2027-01-01 12:00:00", "INFO", "mydata_like.hostos", line)])

    assert model.index(0, TEXT).data() == shown


@pytest.mark.parametrize("line", ["limits_changed channels=many", "run_scheduled at=soon"])
def test_a_damaged_line_is_shown_as_it_is(line):
    model = LogModel()
    model.append([LogLine("2027-01-01 12:00:00", "INFO", "mydata_like.cli.output", line)])

    assert model.index(0, TEXT).data() == line


def test_lines_are_sifted_by_level_and_text_those_to_come_as_well(page, qtbot):
    logger.info("a file was sent")
    logger.error("a file failed")
    wait_for(qtbot, page, ["a file was sent", "a file failed"])
    level = page.findChildren(QComboBox)[1]
    level.setCurrentIndex(2)
    wait_for(qtbot, page, ["a file failed"])

    level.setCurrentIndex(0)
    qtbot.keyClicks(page.findChild(QLineEdit), "SENT")
    wait_for(qtbot, page, ["a file was sent"])
    logger.info("another was sent")
    logger.info("and this was not")
    wait_for(qtbot, page, ["a file was sent", "another was sent"])


def test_a_view_scrolled_up_stays_there(page, qtbot):
    write(200)
    qtbot.waitUntil(lambda: len(texts(page)) == 200, timeout=DEADLINE)
    bar, follow = page.findChild(QTableView).verticalScrollBar(), page.findChild(QCheckBox)
    assert bar.value() == bar.maximum()
    bar.setValue(3)
    assert not follow.isChecked()

    write(100)
    qtbot.waitUntil(lambda: len(texts(page)) == 300, timeout=DEADLINE)
    assert bar.value() == 3
    follow.setChecked(True)
    assert bar.value() == bar.maximum()


def test_the_other_log_is_chosen(page, home, qtbot):
    (home / "logs" / "mydata-like-window.log").write_text("of the window\n")
    logger.info("of the engine")
    wait_for(qtbot, page, ["of the engine"])
    page.findChildren(QComboBox)[0].setCurrentIndex(1)
    wait_for(qtbot, page, ["of the window"])


def test_lines_are_copied_with_their_times(page, qtbot):
    write(3)
    wait_for(qtbot, page, ["line 0", "line 1", "line 2"])
    page.findChild(QTableView).selectRow(1)
    button(page, "Copy lines").click()
    qtbot.waitUntil(lambda: "line 1" in QGuiApplication.clipboard().text())
    copied = QGuiApplication.clipboard().text()
    assert copied.endswith(" INFO mydata_like.engine.send line 1")


def test_all_lines_are_copied_where_none_is_chosen(page, qtbot):
    write(3)
    wait_for(qtbot, page, ["line 0", "line 1", "line 2"])
    QGuiApplication.clipboard().clear()
    button(page, "Copy lines").click()
    qtbot.waitUntil(lambda: bool(QGuiApplication.clipboard().text()))
    copied = QGuiApplication.clipboard().text().split("\n")
    assert [line.partition("send ")[2] for line in copied] == ["line 0", "line 1", "line 2"]


def test_very_many_lines_are_joined_outside_the_gui_thread(context, home, qtbot):
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "mydata-like.log").write_text("a line of the log\n" * MAX_LINES)
    page = LogPage(context)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: page.findChild(QTableView).model().rowCount() == MAX_LINES)
    page.hide()
    page.findChild(QTableView).selectAll()
    QGuiApplication.clipboard().clear()

    before = thread_time()
    button(page, "Copy lines").click()
    assert thread_time() - before < 0.2
    qtbot.waitUntil(lambda: bool(QGuiApplication.clipboard().text()))
    assert QGuiApplication.clipboard().text().count("\n") == MAX_LINES - 1


def test_the_key_for_searching_leads_to_the_field(page, qtbot):
    with qtbot.waitActive(page):
        page.activateWindow()
    page.findChild(QCheckBox).setFocus()
    qtbot.keyClick(page, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)

    assert page.findChild(QLineEdit).hasFocus()


def test_all_of_the_bundle_is_shown_before_it_is_saved(page, tmp_path, qtbot):
    logger.info("line of the log")
    button(page, "Support bundle").click()
    dialog = page.findChild(BundleDialog)
    names, text = dialog.findChild(QListWidget), dialog.findChild(QPlainTextEdit)
    qtbot.waitUntil(button(dialog, "Save").isEnabled, timeout=DEADLINE)
    shown = {}
    for row in range(names.count()):
        names.setCurrentRow(row)
        shown[names.item(row).text()] = text.toPlainText()
    assert "line of the log" in shown["mydata-like.log"]

    file = tmp_path / "help.zip"
    button(dialog, "Save").click()
    with qtbot.waitSignal(dialog.accepted, timeout=DEADLINE):
        dialog.findChild(QFileDialog).fileSelected.emit(str(file))
    with zipfile.ZipFile(file) as bundle:
        assert {name: bundle.read(name).decode() for name in bundle.namelist()} == shown


def test_names_of_files_are_left_out_where_that_is_wished(page, qtbot):
    logger.info("Sending patient.dat")
    button(page, "Support bundle").click()
    dialog = page.findChild(BundleDialog)
    save = button(dialog, "Save")
    qtbot.waitUntil(save.isEnabled, timeout=DEADLINE)
    dialog.findChild(QCheckBox).setChecked(False)
    qtbot.waitUntil(save.isEnabled, timeout=DEADLINE)
    dialog.findChild(QListWidget).setCurrentRow(dialog.findChild(QListWidget).count() - 1)
    assert "mydata_like.engine.send: (hidden)" in dialog.findChild(QPlainTextEdit).toPlainText()
    assert "patient" not in dialog.findChild(QPlainTextEdit).toPlainText()


def a_line(number, level="INFO"):
    return LogLine("2026-01-05 09:00:00", level, "a.b", f"line {number}")


def test_the_oldest_lines_go_when_there_are_too_many():
    model = LogModel(most=10)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    line_filter = LogFilter(level=2)
    model.show_filtered(FilteredLines((), line_filter, ()))
    lines = [a_line(number, "ERROR" if number % 2 else "INFO") for number in range(30)]
    for start in range(0, 30, 6):
        model.append(lines[start : start + 6])

    assert model.lines == lines[-10:]
    shown = [model.index(row, TEXT).data() for row in range(model.rowCount())]
    assert shown == [f"line {number}" for number in range(21, 30, 2)]
