"""Once all that was added from a drive is safe, the user may eject it, and gets a receipt."""

import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.extra_sources import Destination, ExtraSource, SourceRequest
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import PastRunState, Phase
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.tray.drive_notifier import DriveNotifier
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


@pytest.fixture
def said(site, qtbot):
    """Return a function that ends a run, and returns the notifications of drives."""
    tasks = Tasks()
    controller = WindowController(site.config, tasks)
    controller.loaded = load_settings(site.config)
    controller.settings = controller.loaded.settings
    context = AppContext(controller, tasks, WindowState(controller))
    notifier = DriveNotifier(context, controller, (Path("/dev"),))
    notified = []
    notifier.notified.connect(notified.append)

    def end(began):
        controller._set(phase=Phase.RUNNING)
        controller._set(phase=Phase.IDLE, last=PastRunState(started=began, finished=began))
        qtbot.waitUntil(lambda: not tasks.busy)
        return notified

    yield end
    tasks.close()


def carry(site, *folders):
    began = datetime.now(UTC)
    assert site.carry(sources=[SourceRequest(os.fsencode(it)) for it in folders]).code == 0
    return began


def test_a_drive_may_be_ejected_once_all_of_it_is_safe(site, dropped, said):
    began = carry(site, dropped)
    (message,) = said(began)

    assert message.title == "You can eject “shm”"
    assert message.text == "All 2 file(s) that were added from it are safe on the server."
    assert "<h1>2 of 2 files are verified</h1>" in message.file.read_text()
    assert message.file.is_relative_to(site.state / "receipts")


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
