"""All pages, dialogs and windows of the program, for the audit and for the screenshots.

Add a scene for each new page, dialog or window. The audit covers it in both themes, with text of
twice the size, in German and in the pseudo-language.
"""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random

from PySide6.QtCore import QCoreApplication, QDeadlineTimer, QEventLoop, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPushButton,
    QTabWidget,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from mydata_like.app.restore_test import run_restore_test
from mydata_like.app.settings_destination import open_place
from mydata_like.app.verify_service import Surroundings
from mydata_like.core.errors import HELD
from mydata_like.core.extra_sources import Destination, KnownSource
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.base import AppContext
from mydata_like.gui.drop.drop_dialog import DropDialog
from mydata_like.gui.drop.import_dialog import ImportDialog
from mydata_like.gui.dry_run import DryRunDialog
from mydata_like.gui.help_menu import HelpDialog
from mydata_like.gui.log_viewer.bundle_dialog import BundleDialog
from mydata_like.gui.overview.destination_check import DestinationCheck
from mydata_like.gui.overview.details_panel import DetailsPanel
from mydata_like.gui.overview.overview_page import SetByServer
from mydata_like.gui.overview.summary_cards import RemoveQuestion, UnfinishedList
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.settings_editor.connection_test_view import ConnectionTestDialog
from mydata_like.gui.settings_editor.settings_dialog import SettingsDialog
from mydata_like.gui.tables.problem_groups import ProblemFilter
from mydata_like.gui.tables.queue_actions import HoldBackToast
from mydata_like.gui.theme.colours import DARK, LIGHT, Shades, build_palette
from mydata_like.gui.tray.app_shell import QuitPrompt
from mydata_like.gui.tray.notifications import Banner, Notification, NotificationKind
from mydata_like.gui.tray.tray_icon import TrayIcon, TrayState, draw_icon
from mydata_like.gui.tray.tray_popup import TrayPopup
from mydata_like.gui.where.free_dialog import FreeDialog
from mydata_like.gui.where.get_dialog import GetDialog
from mydata_like.gui.where.status_tasks import GetOffer
from mydata_like.gui.window import MainWindow, list_pages
from mydata_like.gui.wizard import SetupWizard
from mydata_like.gui.wizard.destination_steps import HostStep
from mydata_like.gui.wizard.mydata_import_dialog import MyDataImportDialog
from mydata_like.gui.wizard.step_base import Readiness
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.layers import ServerDecision, find_setting
from tests.gui.ledgers import WrittenLedger
from tests.gui.speed_records import AES, BEGAN, CHACHA, LATE, OTHER_CIPHER, a_record, findings, keep

# One setting of each tab.
SETTINGS = (
    "server.url",
    "data.directory",
    "filters.includes",
    "schedule.kind",
    "transfer.method",
    "advanced.log_level",
)


@dataclass(frozen=True)
class Stage:
    """The main window of the scenes, and its context."""

    window: MainWindow
    context: AppContext


class Moment(Enum):
    """The state of the program in a scene."""

    FIRST_START = "nothing is set up"
    RUNNING = "files are being sent"
    PAUSED = "the run waits for the server"
    BROKEN = "the engine has ended unexpectedly"
    AFTER = "a run has ended"
    SAFE = "nothing is left to do"
    HOST = "a run has sent everything to a host"


@dataclass(frozen=True)
class Scene:
    """A part of the program; `open` shows it and returns its window."""

    name: str
    open: Callable[[Stage], QWidget]
    moment: Moment = Moment.AFTER


def list_scenes() -> list[Scene]:
    return [
        Scene("first-start", partial(_open_page, "overview"), Moment.FIRST_START),
        Scene("overview-running", partial(_open_page, "overview"), Moment.RUNNING),
        Scene("transfers-running", partial(_open_page, "transfers"), Moment.RUNNING),
        Scene("transfers-held-back", partial(_hold_back, "transfers"), Moment.RUNNING),
        Scene("folders-running", partial(_open_page, "folders"), Moment.RUNNING),
        Scene("folders-held-back", partial(_hold_back, "folders"), Moment.RUNNING),
        Scene("tray-popup", _show_tray_popup, Moment.RUNNING),
        Scene("overview-details", _show_details, Moment.RUNNING),
        Scene("overview-paused", partial(_open_page, "overview"), Moment.PAUSED),
        Scene("transfers-paused", partial(_open_page, "transfers"), Moment.PAUSED),
        Scene("problems-paused", partial(_open_page, "problems"), Moment.PAUSED),
        Scene("overview-broken", partial(_open_page, "overview"), Moment.BROKEN),
        Scene("problems-broken", partial(_open_page, "problems"), Moment.BROKEN),
        Scene("support-bundle", _show_bundle),
        Scene("tray", _show_tray),
        Scene("banner", _show_banner),
        Scene("quitting", _ask_about_quitting),
        Scene("unfinished", _show_unfinished),
        Scene("set-by-server", _show_set_by_server),
        Scene("remove-source", _ask_to_remove),
        Scene("dry-run", _look_ahead),
        Scene("help", _show_help),
        Scene("about", _show_about),
        *(
            Scene(f"settings-{key.partition('.')[0]}", partial(_open_settings, key))
            for key in SETTINGS
        ),
        Scene("settings-s3", _open_s3_settings),
        *(
            Scene(f"wizard-{name}", partial(_open_wizard, number))
            for number, name in enumerate(
                ("destination", "server", "account", "instrument", "data", "when", "approval")
            )
        ),
        Scene("wizard-host", _open_host_step),
        *(Scene(leaf.name, partial(_open_page, leaf.name)) for leaf in list_pages()),
        Scene("speed-compared", _compare_tests),
        Scene("where-file", _find_file),
        Scene("free", _free_space),
        Scene("drop", _drop_folders),
        Scene("drop-settings", _drop_settings),
        Scene("takeover", _take_over),
        Scene("connection", _try_connection),
        Scene("overview-safe", partial(_open_page, "overview"), Moment.SAFE),
        Scene("tray-popup-safe", _show_tray_popup, Moment.SAFE),
        Scene("problems-held", _show_held, Moment.SAFE),
        Scene("overview-host", _check_destination, Moment.HOST),
        Scene("where-host", _find_file, Moment.HOST),
        Scene("folders-host", _choose_folder, Moment.HOST),
        Scene("get", _ask_where_to_get, Moment.HOST),
        Scene("get-differs", _get_elsewhere, Moment.HOST),
    ]


def _open_settings(key: str, stage: Stage) -> QWidget:
    dialog = SettingsDialog(stage.context, stage.window)
    dialog.show_key(key, {})
    dialog.show()
    return dialog


def _open_s3_settings(stage: Stage) -> QWidget:
    """Show the secret of an access key that is not saved yet."""
    entered = {
        "transfer.method": "s3",
        "transfer.s3_endpoint": "https://s3.example.org",
        "transfer.s3_access_key": "AKIA7CONFOCAL2",
    }
    dialog = SettingsDialog(stage.context, stage.window)
    dialog.show_key("transfer.s3_access_key", entered)
    dialog.show()
    _wait_until(lambda: dialog.ready)
    dialog.notice.act()
    dialog.s3_row.propose("not a real secret")
    dialog.panes.reveal("transfer.s3_access_key")
    return dialog


def _open_page(name: str, stage: Stage) -> QWidget:
    stage.window.show_page(name)
    return stage.window


def _check_destination(stage: Stage) -> QWidget:
    """Fetch a sample of the files at the destination, and check all of them."""
    settings, config = stage.context.controller.place
    if settings.destination.takes_tree:
        around = Surroundings(SystemClock(), CancelFlag(), Random(1), lambda _: None)
        run_restore_test(open_place(settings, config), 20, 0.0, config, around)
    window = _open_page("overview", stage)
    check = window.findChild(DestinationCheck)
    assert check
    button = check.findChild(QPushButton)
    assert isinstance(button, QPushButton)
    button.click()
    _wait_until(lambda: not stage.context.tasks.busy)
    return window


def _show_details(stage: Stage) -> QWidget:
    """Show the stages and the throughput of the run."""
    window = _open_page("overview", stage)
    panel = window.findChild(DetailsPanel)
    assert panel
    if not panel.is_open:
        panel.toggle()
    return window


def _hold_back(name: str, stage: Stage) -> QWidget:
    """Hold a file back, which can be undone."""
    window = _open_page(name, stage)
    toast = stage.window.find_page(name).findChild(HoldBackToast)
    assert toast
    toast.hold_back([b"bob/Long run/part_7.csv"])
    return window


def _show_held(stage: Stage) -> QWidget:
    """Show changed files that wait for the user's choice."""
    controller = stage.context.controller
    assert controller.config
    now = SystemClock().now()
    with closing(WrittenLedger.of(controller.settings, controller.config, now)) as written:
        for number in range(3):
            changed = int(now.timestamp()) - 600 * (3 - number)
            written.hold(f"Image{number:03d}.tif", 4_000_000, changed)
    window = _open_page("problems", stage)
    _wait_until(lambda: not stage.context.tasks.busy)
    controller.ledger_changed.emit()
    kinds = stage.window.find_page("problems").findChild(ProblemFilter)
    assert kinds
    kinds.look_for(f"waiting:{HELD}")
    _wait_until(lambda: bool(kinds.group) and kinds.group.problem.code == HELD)
    return window


def _compare_tests(stage: Stage) -> QWidget:
    """Show two speed tests in comparison, with recommendations and parts not measured."""
    faster = OTHER_CIPHER._replace(
        changes={"transfer.ciphers": [AES, CHACHA]}, after=(106e6,), won=True
    )
    now = replace(findings(compared=(faster, OTHER_CIPHER)), unknown=(LATE,))
    before = findings(network=54e6)
    today = (SystemClock().now() - BEGAN).days
    keep(stage.context, a_record(today - 7, before), a_record(today, now))
    stage.window.show_page("overview")
    stage.window.show_page("speed")
    _wait_until(lambda: not stage.context.tasks.busy)
    others = stage.window.findChild(QComboBox, "earlier")
    assert others
    others.setCurrentIndex(1)
    return stage.window


def _find_file(stage: Stage) -> QWidget:
    """Show the status of one file."""
    stage.window.show_page("where", "part_3")
    return stage.window


def _free_space(stage: Stage) -> QWidget:
    """Show the files of the data directory that can be deleted."""
    dialog = FreeDialog(
        stage.context, [stage.context.controller.settings.data.directory], stage.window
    )
    dialog.show()
    return dialog


def _choose_folder(stage: Stage) -> QWidget:
    """Select the first folder, for the actions on it."""
    window = _open_page("folders", stage)
    tree = stage.window.find_page("folders").findChild(QTreeView)
    assert isinstance(tree, QTreeView)
    _wait_until(lambda: not stage.context.tasks.busy)
    tree.setCurrentIndex(tree.model().index(0, 0))
    _wait_until(lambda: not stage.context.tasks.busy)
    return window


def _ask_where_to_get(stage: Stage) -> QWidget:
    """Ask where the data directory should go, of which nothing is missing."""
    directory = stage.context.controller.settings.data.directory
    assert directory
    dialog = GetDialog(stage.context, GetOffer(directory, missing=False), stage.window)
    dialog.show()
    return dialog


def _get_elsewhere(stage: Stage) -> QWidget:
    """Get the data directory back to a folder with another file of the same name."""
    dialog = _ask_where_to_get(stage)
    directory = stage.context.controller.settings.data.directory
    assert directory
    other = directory.parent / "again"
    differs = next(it for it in directory.rglob("*") if it.is_file()).relative_to(directory)
    (other / directory.name / differs).parent.mkdir(parents=True, exist_ok=True)
    (other / directory.name / differs).write_text("other bytes")
    field, start = dialog.findChild(QLineEdit), dialog.findChild(QPushButton, "start")
    assert isinstance(field, QLineEdit)
    assert isinstance(start, QPushButton)
    field.setText(str(other))
    start.click()
    _wait_until(lambda: not stage.context.tasks.busy)
    return dialog


def _show_bundle(stage: Stage) -> QWidget:
    """Show the contents of a support bundle."""
    dialog = BundleDialog(stage.context, stage.window)
    dialog.show()
    return dialog


def _show_banner(stage: Stage) -> QWidget:
    """Show a message in a window, as on systems without a tray."""
    window = QMainWindow(stage.window)
    window.setWindowTitle("banner")
    banner = Banner(stage.context.controller, window)
    text = "The staging area is full, so nothing new is sent. Tell your administrator."
    banner.show_notification(
        Notification(NotificationKind.PROBLEM, banner.tr("Action required"), text, "problems")
    )
    window.resize(stage.window.width(), banner.sizeHint().height())
    window.show()
    return window


def _look_ahead(stage: Stage) -> QWidget:
    """Show the result of a dry run."""
    dialog = DryRunDialog(stage.context, stage.window)
    dialog.show()
    _wait_until(lambda: dialog.ended)
    return dialog


def _show_help(stage: Stage) -> QWidget:
    """Show the first steps."""
    dialog = HelpDialog(stage.context.tasks, stage.window.list_actions(), stage.window)
    dialog.show()
    _wait_until(lambda: not stage.context.tasks.busy)
    return dialog


def _show_about(stage: Stage) -> QWidget:
    """Show the components of the program."""
    dialog = _show_help(stage)
    tabs = dialog.findChild(QTabWidget)
    assert isinstance(tabs, QTabWidget)
    tabs.setCurrentIndex(3)
    return dialog


def _ask_about_quitting(stage: Stage) -> QWidget:
    question = QuitPrompt(stage.window)
    question.open()
    return question


def _list_unfinished() -> tuple[KnownSource, ...]:
    added = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)
    return tuple(
        KnownSource(b"/media/usb/" + name.encode(), Destination("alice", "Mice", name), added, None)
        for name in ("Kidney section 4", "Kidney section 5")
    )


def _show_unfinished(stage: Stage) -> QWidget:
    """Show added folders whose upload is incomplete."""
    window = QMainWindow(stage.window)
    window.setWindowTitle("unfinished")
    window.resize(stage.window.width(), stage.window.height() // 4)
    shown = UnfinishedList(stage.context.controller, window)
    first, second = _list_unfinished()
    sources = first._replace(open_files=12, open_bytes=34_000_000), second
    shown.show_state(RunState(phase=Phase.IDLE, sources=sources))
    window.setCentralWidget(shown)
    window.show()
    return window


def _show_set_by_server(stage: Stage) -> QWidget:
    """Show settings that are set by the server."""
    window = QMainWindow(stage.window)
    window.setWindowTitle("set by server")
    window.resize(stage.window.width(), stage.window.height() // 4)
    shown = SetByServer(window)
    decisions = tuple(
        ServerDecision(find_setting(key), value, "", "data.example.org")
        for key, value in (("filters.excludes", "*.tmp, *.log"), ("limits.quiet_hours", "08-18"))
    )
    shown.show_state(RunState(phase=Phase.IDLE, set_by_server=decisions))
    window.setCentralWidget(shown)
    window.show()
    return window


def _ask_to_remove(stage: Stage) -> QWidget:
    question = RemoveQuestion(_list_unfinished()[0], stage.window)
    question.open()
    return question


def _drop_folders(stage: Stage) -> QWidget:
    """Show two dropped folders."""
    assert stage.context.controller.config
    stick = stage.context.controller.config.parent / "USB stick"
    for name, files in (("Kidney section 4", 24), ("Kidney section 5", 31)):
        folder = stick / name
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(files):
            path = folder / f"tile_{number:03d}.tif"
            path.write_bytes(b"tile" * 30_000)
            os.utime(path, (0, 1_700_000_000))
    paths = [os.fsencode(path) for path in sorted(stick.iterdir())]
    sheet = DropDialog(stage.context, paths, stage.window)
    sheet.open()
    return sheet


def _drop_settings(stage: Stage) -> QWidget:
    """Show the changes by the dropped settings of another installation."""
    other = _write_next_to_settings(stage, "other.toml", '[instrument]\nname = "Confocal 9"\n')
    sheet = ImportDialog(stage.context, other, stage.window)
    sheet.open()
    _wait_until(lambda: bool(sheet.notes.count()))
    return sheet


def _take_over(stage: Stage) -> QWidget:
    """Show the settings to import from MyData."""
    old = "[MyData]\nusername = ada\ninstrument_name = Confocal 9\nfolder_structure = Dataset\n"
    sheet = MyDataImportDialog(
        stage.context, _write_next_to_settings(stage, "MyData.cfg", old), stage.window
    )
    sheet.open()
    _wait_until(lambda: bool(sheet.report.toPlainText()))
    return sheet


def _try_connection(stage: Stage) -> QWidget:
    """Show the steps of the connection test."""
    controller = stage.context.controller
    dialog = ConnectionTestDialog(stage.context.tasks, stage.window)
    dialog.test.start(controller.config, controller.settings)
    dialog.show()
    _wait_until(lambda: not stage.context.tasks.busy)
    return dialog


def _write_next_to_settings(stage: Stage, name: str, text: str) -> Path:
    """Write a file next to the settings file, to be dropped on the window."""
    assert stage.context.controller.config
    path = stage.context.controller.config.parent / name
    path.write_text(text)
    return path


def _open_wizard(number: int, stage: Stage) -> QWidget:
    """Show a step of the set-up wizard after its checks."""
    wizard = SetupWizard(stage.context, stage.window, first=number)
    wizard.show()
    checking = Readiness.CHECKING
    _wait_until(lambda: not wizard.verdict.text and wizard.step.readiness is not checking)
    return wizard


def _open_host_step(stage: Stage) -> QWidget:
    """Show the step for a host whose key is not known yet."""
    wizard = SetupWizard(stage.context, stage.window, first=0)
    wizard.show()
    _wait_until(lambda: not wizard.verdict.text)
    wizard.kind.kinds["host"].setChecked(True)
    wizard._show_step(1)
    page = wizard.step
    assert isinstance(page, HostStep)
    page.account.setText("ada@store.example.org")
    page.folder.setText("/data/confocal-2")
    page.key_file.clear()
    page.look()
    page.test.key_unknown.emit(
        "store.example.org", "SHA256:q1HlN5kTpgmjmLh4TUBGz4RRUZkdIvqWPfzHVGxJFkc"
    )
    return wizard


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = QDeadlineTimer(60_000)
    while not condition() and not deadline.hasExpired():
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def _show_tray(stage: Stage) -> QWidget:
    """Show all tray icons with their names, on a light and a dark panel."""
    strip = QWidget(stage.window, Qt.WindowType.Window)
    strip.setWindowTitle("tray")
    rows = QVBoxLayout(strip)
    rows.setContentsMargins(0, 0, 0, 0)
    rows.setSpacing(0)
    for shades in (LIGHT, DARK):
        rows.addWidget(_panel(shades))
    strip.show()
    return strip


def _show_tray_popup(stage: Stage) -> QWidget:
    popup = TrayPopup(stage.context)
    popup.toggle(QRect())
    return popup


def _panel(shades: Shades) -> QWidget:
    panel = QWidget()
    panel.setPalette(build_palette(shades))
    panel.setAutoFillBackground(True)
    row = QHBoxLayout(panel)
    for shape in TrayState:
        picture = QLabel()
        emblem = TrayIcon.of(shape, 0.65)
        picture.setPixmap(draw_icon(emblem).pixmap(QSize(24, 24), 2.0))
        row.addWidget(picture)
        row.addWidget(QLabel(shape.value))
        row.addStretch()
    return panel
