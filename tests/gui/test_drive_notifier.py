"""Once all that was added from a drive is safe, it can be ejected, and there is a receipt."""

import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from psutil import disk_partitions
from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMainWindow, QPushButton

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.extra_sources import Destination, ExtraSource, SourceRequest
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import PastRunState, Phase
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.tray.drive_notifier import DriveNotifier
from mydata_like.gui.tray.notifications import Banner
from mydata_like.gui.window_state import WindowState
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger

DRIVE = Path("/dev/shm")

pytestmark = pytest.mark.skipif(
    not (os.path.ismount(DRIVE) and os.access(DRIVE, os.W_OK)), reason="no other drive is mounted"
)


@pytest.fixture
def dropped():
    """A folder with two files on a drive of its own."""
    folder = Path(tempfile.mkdtemp(prefix="mydata-like-test-", dir=DRIVE))
    for name in ("a.tif", "b.tif"):
        (folder / name).write_text(name)
    yield folder
    shutil.rmtree(folder)


class Shown:
    """A window with the banner, whose notifications of drives are kept."""

    def __init__(self, site, qtbot, tasks):
        self.qtbot, self.tasks = qtbot, tasks
        self.controller = WindowController(site.config, tasks)
        self.controller.loaded = load_settings(site.config)
        self.controller.settings = self.controller.loaded.settings
        context = AppContext(self.controller, tasks, WindowState(self.controller))
        notifier = DriveNotifier(context, self.controller, (Path("/dev"),))
        self.window = QMainWindow()
        qtbot.addWidget(self.window)
        self.banner = Banner(self.controller, self.window)
        self.banner.eject_wanted.connect(notifier.eject)
        self.notified = []
        notifier.notified.connect(self.notified.append)
        notifier.notified.connect(self.banner.show_notification)

    def end_run(self, began):
        """End a run, and return all notifications."""
        self.controller._set(phase=Phase.RUNNING)
        self.controller._set(phase=Phase.IDLE, last=PastRunState(started=began, finished=began))
        self.qtbot.waitUntil(lambda: not self.tasks.busy)
        return self.notified

    def eject(self):
        """Click on the button, and return what is said then."""
        self.button.click()
        assert not self.button.isEnabled()
        self.qtbot.waitUntil(lambda: not self.tasks.busy)
        return self.notified[-1]

    @property
    def button(self):
        return self.find_button("&Eject")

    def find_button(self, text):
        buttons = self.banner.findChildren(QPushButton)
        return next(button for button in buttons if button.text() == text)


class Opened(QObject):
    """Keeps the paths that the desktop is asked to open."""

    def __init__(self):
        super().__init__()
        self.paths = []

    @Slot(QUrl)
    def open(self, url):
        self.paths.append(url.toLocalFile())


@pytest.fixture
def shown(site, qtbot):
    tasks = Tasks()
    yield Shown(site, qtbot, tasks)
    tasks.close()


@pytest.fixture
def said(shown):
    """Return a function that ends a run, and returns the notifications of drives."""
    return shown.end_run


@pytest.fixture
def system(tmp_path, monkeypatch):
    """Put a `udisksctl` on the path that notes how it is called; return a function with a script.

    Returns the calls.
    """
    folder, calls = tmp_path / "programs", tmp_path / "calls"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def answer(script="exit 0"):
        program = folder / "udisksctl"
        program.write_text(f'#!/bin/sh\necho "$@" >>{calls}\n{script}\n')
        program.chmod(0o700)

    answer()
    answer.calls = lambda: calls.read_text().splitlines() if calls.exists() else []
    return answer


def find_device():
    return next(it.device for it in disk_partitions(all=True) if it.mountpoint == str(DRIVE))


def carry(site, *folders):
    began = datetime.now(UTC)
    assert site.carry(sources=[SourceRequest(os.fsencode(it)) for it in folders]).code == 0
    return began


def test_a_drive_may_be_ejected_once_all_of_it_is_safe(site, dropped, said):
    began = carry(site, dropped)
    (message,) = said(began)

    assert message.title == "You can eject “shm”"
    assert message.text == "All 2 file(s) that were added from it are safe on the server."
    assert "<h1>2 of 2 files are verified</h1>" in message.receipt.file.read_text()
    assert message.receipt.file.is_relative_to(site.state / "receipts")


def test_what_was_left_out_is_to_be_looked_at(site, dropped, said):
    (dropped / "Thumbs.db").write_text("left out")
    (message,) = said(carry(site, dropped))

    assert message.title == "Look at the receipt before you eject “shm”"
    assert message.text == "1 file(s) of what was added from it are not verified."


def test_nothing_is_said_before_the_last_folder_is_safe(site, dropped, said):
    (dropped / "second").mkdir()
    began = carry(site, dropped / "a.tif")
    settings, root = load_settings(site.config).settings, os.fsencode(site.data)
    file = ledger_file(settings, find_places(site.config), root)
    with SqliteLedger.open(file, root, SystemClock()) as ledger:
        path = os.fsencode(dropped / "second")
        ledger.record_source(ExtraSource(path, Destination("", "Mice", "second")))

    assert said(began) == []


def test_a_drive_is_told_after_the_run_that_finished_it(site, dropped, said):
    carry(site, dropped)

    assert said(datetime(2100, 1, 1, tzinfo=UTC)) == []


def test_other_folders_are_not_told(site, said, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.tif").write_text("c")

    assert said(carry(site, tmp_path / "elsewhere")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="drives are ejected by another program")
class TestEject:
    """The button of the notification."""

    def test_a_drive_is_ejected_once_all_of_it_is_safe(self, site, dropped, shown, system):
        shown.end_run(carry(site, dropped))
        assert shown.button.isVisibleTo(shown.window)
        message = shown.eject()

        assert (message.title, message.text) == ("“shm” is ejected", "You can unplug it.")
        assert system.calls() == [
            f"unmount --no-user-interaction --block-device {find_device()}",
        ]
        assert not shown.button.isVisibleTo(shown.window)

    def test_what_was_left_out_keeps_the_drive(self, site, dropped, shown):
        (dropped / "Thumbs.db").write_text("left out")
        shown.end_run(carry(site, dropped))

        assert not shown.button.isVisibleTo(shown.window)

    def test_what_came_or_changed_since_keeps_the_drive(self, site, dropped, shown, system):
        shown.end_run(carry(site, dropped))
        (dropped / "b.tif").write_text("another content")
        message = shown.eject()

        assert message.title == "“shm” was not ejected"
        assert message.text == (
            "Files that were added from it are not verified. Start a run, then eject it."
        )
        assert system.calls() == []
        assert shown.button.isVisibleTo(shown.window)
        assert shown.button.isEnabled()

    def test_a_program_that_uses_the_drive_is_named(self, site, dropped, shown, system):
        shown.end_run(carry(site, dropped))
        system("echo 'Error unmounting /dev/sdb1: target is busy' >&2; exit 1")
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=dropped) as user:
            message = shown.eject()
            user.stdin.close()

        said, _, users = message.text.partition(" It is still in use by ")
        assert said == "The system did not eject it: target is busy."
        assert "cat" in users

    def test_what_the_system_says_is_passed_on(self, site, dropped, shown, system):
        shown.end_run(carry(site, dropped))
        system("echo 'Error unmounting /dev/sdb1: Not authorized.' >&2; exit 1")

        assert shown.eject().text.startswith("The system did not eject it: Not authorized. ")

    def test_a_missing_program_is_named(self, site, dropped, shown, monkeypatch):
        shown.end_run(carry(site, dropped))
        monkeypatch.setenv("PATH", "/nowhere")

        assert "udisksctl was not found on this computer" in shown.eject().text

    def test_the_receipt_can_be_looked_at_before(self, site, dropped, shown):
        opened = Opened()
        QDesktopServices.setUrlHandler("file", opened, "open")
        shown.end_run(carry(site, dropped))
        shown.find_button("Show &receipt").click()
        QDesktopServices.unsetUrlHandler("file")

        assert opened.paths == [str(shown.notified[0].receipt.file)]
        assert shown.button.isVisibleTo(shown.window)
