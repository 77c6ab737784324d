"""Fixtures for tests of the window, which run offscreen and clean up after themselves."""

import gc
import os
from contextlib import contextmanager

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QLocale, QTranslator
from PySide6.QtGui import QFont, QFontMetrics
from pytestqt.qtbot import QtBot

from mydata_like.app.settings_service import save_settings
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme.widgets import app_icon
from mydata_like.gui.theme_settings import set_language
from mydata_like.gui.window_state import WindowState
from tests.gui.ledgers import WrittenLedger
from tests.gui.scripted import ScriptedController
from tests.gui.xvfb import open_screen
from tests.site import make_data, open_site

# Settings that avoid waiting, as `tests.site.QUICK`.
QUICK = {
    "filters.settle_seconds": 0,
    "advanced.verify_interval": 0.1,
    "advanced.pause_patience": 30,
    "server.write_timeout": 5,
    "transfer.stall_timeout": 10,
    "transfer.batch_age": 0.2,
    "schedule.kind": "manual",
}
DEADLINE = 60_000  # milliseconds after which something counts as hanging


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Keep the program's own files in a folder of the test."""
    folder = tmp_path / "home"
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(folder))
    return folder


@pytest.fixture
def controller(qapp):
    """A controller without an engine."""
    controller = ScriptedController()
    yield controller
    controller.threads.close()


@pytest.fixture
def site(tmp_path, home):
    """A server, a staging host and sample data, with settings that avoid waiting."""
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as opened:
        save_settings(opened.config, QUICK)
        yield opened


@pytest.fixture
def open_context(qtbot):
    """Return a function that creates the context of pages; its engine ends with the test."""
    opened = []

    def open_it(config=None):
        tasks = Tasks()
        controller = WindowController(config, tasks)
        opened.append((controller, tasks))
        controller.open()
        return AppContext(controller, tasks, WindowState(controller))

    yield open_it
    for controller, tasks in opened:
        controller.close()
        qtbot.waitUntil(lambda controller=controller: controller.engine is None, timeout=DEADLINE)
        tasks.close()


@pytest.fixture
def still_context(tmp_path, home, open_context, qtbot):
    """The context of pages before the set-up is complete: without an engine."""
    config = tmp_path / "settings.toml"
    config.write_text(f"[data]\ndirectory = {str(tmp_path / 'data')!r}\n")
    context = open_context(config)
    qtbot.waitUntil(lambda: context.controller.state.phase == "unset", timeout=DEADLINE)
    return context


@pytest.fixture
def written(still_context):
    """The ledger of `still_context`, for a test to write."""
    opened = WrittenLedger.of(still_context.controller.settings, still_context.controller.config)
    yield opened
    opened.close()


@pytest.fixture
def context(site, open_context, qtbot):
    """The context of pages for `site`, with an idle engine."""
    context = open_context(site.config)
    qtbot.waitUntil(lambda: context.controller.state.phase == "idle", timeout=DEADLINE)
    return context


@pytest.fixture
def full(qapp):
    """Return a context manager in which this process cannot open files or start processes."""
    resource = pytest.importorskip("resource")
    # Qt never tries again to load a plugin or a font that it could not load.
    assert not app_icon().isNull()
    for weight in (QFont.Weight.Normal, QFont.Weight.Bold):
        font = QFont()
        font.setWeight(weight)
        assert QFontMetrics(font).height()

    @contextmanager
    def fill():
        least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (least, most))

    return fill


@pytest.fixture
def spoken(qapp):
    """Return a function that sets the language; the translators are removed after the test."""
    before = QLocale()
    yield lambda language: set_language(qapp, language)
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.setParent(None)
    QLocale.setDefault(before)


@pytest.fixture
def screen():
    """A private display with a window manager and a tray; see tests/gui/xvfb.py."""
    with open_screen() as opened:
        yield opened


@pytest.fixture(autouse=True, scope="module")
def _collected_here():
    """Collect garbage in the GUI thread only, as the program does.

    Objects of earlier tests must not be collected later in another thread.
    """
    gc.disable()
    yield
    gc.collect()
    if QCoreApplication.instance() is not None:
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.enable()


class PatientBot(QtBot):
    """A qtbot with time limits for a busy computer."""

    def waitUntil(self, callback, *, timeout=DEADLINE):
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal, *, timeout=DEADLINE, **options):
        return super().waitSignal(signal, timeout=timeout, **options)


@pytest.fixture
def qtbot(qapp, request):
    return PatientBot(request)
