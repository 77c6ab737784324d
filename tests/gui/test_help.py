"""Help: the keys, and what the program is built on."""

import threading

import pytest
from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QPushButton, QTabWidget, QTextBrowser

from mydata_like.gui.help_menu import HelpDialog
from mydata_like.gui.tasks import Tasks
from mydata_like.hostos.dependencies import describe_versions


@pytest.fixture
def tasks(qapp):
    tasks = Tasks(threads=1)
    yield tasks
    tasks.close()


def open_help(qtbot, tasks, actions=()):
    dialog = HelpDialog(tasks, actions)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def find_text(dialog, name):
    texts = dialog.findChildren(QTextBrowser)
    return next(text for text in texts if text.accessibleName() == name).toPlainText()


def test_licences_are_read_outside_the_gui_thread(qtbot, tasks):
    gate = threading.Event()
    tasks.run(gate.wait, print)
    dialog = open_help(qtbot, tasks)
    assert find_text(dialog, "Licences") == ""

    gate.set()
    qtbot.waitUntil(lambda: "PySide6" in find_text(dialog, "Licences"))


def test_the_versions_that_security_depends_on_are_shown_and_copied(qtbot, tasks):
    dialog = open_help(qtbot, tasks)
    dialog.findChild(QTabWidget).setCurrentIndex(3)
    copy = next(it for it in dialog.findChildren(QPushButton) if it.text() == "&Copy")
    qtbot.waitUntil(copy.isEnabled)

    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)

    copied = QGuiApplication.clipboard().text()
    assert copied == describe_versions()
    assert copied.strip() == find_text(dialog, "Versions")
    assert f"Qt {qVersion()}\n" in copied


def test_keys_are_listed_with_what_they_do(qtbot, tasks):
    action = QAction("&Find <it>…")
    action.setShortcut(QKeySequence("Ctrl+F"))
    dialog = open_help(qtbot, tasks, [action, action])

    assert find_text(dialog, "Keys").split() == ["Find", "<it>", "Ctrl+F"]


def test_the_first_steps_and_the_changes_can_be_read(qtbot, tasks):
    dialog = open_help(qtbot, tasks)

    assert "May I delete it?" in find_text(dialog, "Getting started")
    changes = find_text(dialog, "What is new")
    assert "0.9.0 (2026" in changes
    assert "towncrier" not in changes
    assert "##" not in changes
    tabs = dialog.findChild(QTabWidget)
    assert tabs.tabText(tabs.currentIndex()) == "&Getting started"
