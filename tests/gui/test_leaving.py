"""Closing the window and quitting, with and without a tray, with and without an upload."""

import os
import signal
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QPushButton

from mydata_like.app.receipt_service import DriveReceipt
from mydata_like.gui.base import AppContext
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.overview.headline import Headline
from mydata_like.gui.run_state import Phase
from mydata_like.gui.tray.app_shell import STOP_TIMEOUT, AppShell, QuitPrompt
from mydata_like.gui.tray.drive_notifier import describe_receipt
from mydata_like.gui.tray.single_instance import LaunchRequest
from mydata_like.gui.tray.tray_menu import Tray
from mydata_like.gui.tray.tray_popup import TrayPopup
from mydata_like.gui.window import MainWindow
from mydata_like.gui.window_state import WindowState
from tests.gui.scripted import FULL, NOT_APPROVED, ScriptedController, run_that

LEAVE, STOP, STAY = "Quit and &leave the upload running", "Stop the &upload and quit", "&Cancel"


class Stage:
    """The program without an engine, on a desktop with or without a tray."""

    def __init__(self, qtbot, tmp_path, *, tray=True, start=None):
        self.controller = ScriptedController()
        self.trays = [tray]
        start = start or LaunchOptions(None, tmp_path / "settings.toml", tmp_path, tmp_path)
        context = AppContext(self.controller, self.controller.threads, WindowState())
        self.window = MainWindow(context)
        qtbot.addWidget(self.window, before_close_func=self.close)
        self.tray = Tray(self.controller, is_available=lambda: self.trays[0])
        self.presence = AppShell(context, self.window, start, self.tray)
        self.said = []
        self.presence.shutdown.notice_raised.connect(self.said.append)
        self.left = []
        self.presence.shutdown.quit_requested.connect(lambda: self.left.append(True))
        self.paths = []
        self.presence.paths_given.connect(self.paths.append)

    def close(self, _window):
        self.controller.threads.close()

    def open(self):
        self.controller.settings_changed.emit()
        return self

    def answer(self, words):
        question = self.window.findChild(QuitPrompt)
        button = next(one for one in question.findChildren(QPushButton) if one.text() == words)
        button.click()


@pytest.fixture
def stage(qtbot, tmp_path):
    return Stage(qtbot, tmp_path).open()


@pytest.fixture
def trayless(qtbot, tmp_path):
    return Stage(qtbot, tmp_path, tray=False).open()


def test_the_window_closes_to_the_tray_and_says_so_once(stage):
    for _ in range(2):
        stage.window.show()
        stage.window.close()
        assert not stage.window.isVisible()

    assert stage.said == ["The program keeps running in the tray. Use Quit to end it."]


def test_without_a_tray_the_window_gets_small_and_says_so_once(trayless):
    for _ in range(2):
        trayless.window.showNormal()
        trayless.window.close()
        assert trayless.window.isMinimized()

    assert len(trayless.said) == 1
    assert trayless.presence.banner.isVisibleTo(trayless.window)


def test_where_the_tray_has_gone_the_window_gets_small_and_says_so(stage):
    stage.window.close()
    stage.window.show()
    stage.trays[0] = False
    stage.window.close()

    assert stage.window.isMinimized()
    assert len(set(stage.said)) == 2


def test_a_problem_is_reported_until_a_run_ends_well(trayless):
    banner = trayless.presence.banner
    trayless.controller.turn(last=run_that())
    trayless.controller.problem_raised.emit(FULL)
    trayless.controller.turn(last=run_that(failed=1))
    assert banner.isVisibleTo(trayless.window)

    trayless.controller.turn(last=run_that(found=4))
    assert not banner.isVisibleTo(trayless.window)


def test_where_the_window_is_not_to_be_kept_closing_it_quits(stage):
    stage.controller.choose(close_to_tray=False)
    stage.window.close()

    assert stage.left


def test_quitting_asks_nothing_while_nothing_goes_on(stage):
    stage.tray.quit.trigger()

    assert stage.left
    assert stage.window.findChild(QuitPrompt) is None


def test_the_window_has_an_action_that_quits_where_there_is_no_tray(trayless):
    (action,) = [one for one in trayless.window.list_actions() if one.text() == "&Quit"]
    assert action.shortcut().toString() == "Ctrl+Q"

    trayless.controller.turn(phase=Phase.RUNNING)
    action.trigger()
    assert trayless.left == []
    trayless.answer(LEAVE)
    assert trayless.left == [True]


def test_an_upload_of_another_program_is_nothing_to_ask_about(stage):
    stage.controller.turn(phase=Phase.ELSEWHERE)
    stage.tray.quit.trigger()

    assert stage.left


def test_an_upload_may_go_on_without_the_window(stage):
    stage.controller.turn(phase=Phase.RUNNING)
    stage.tray.quit.trigger()
    assert not stage.left
    stage.answer(LEAVE)

    assert stage.left
    assert stage.controller.orders == []


def test_an_upload_is_stopped_before_the_program_ends(stage):
    stage.controller.turn(phase=Phase.RUNNING)
    stage.tray.quit.trigger()
    stage.answer(STOP)
    assert stage.controller.orders == ["stop_run"]
    assert not stage.left
    stage.controller.turn(phase=Phase.IDLE, last=run_that())

    assert stage.left


def test_an_upload_that_does_not_stop_is_left_behind_within_five_seconds(stage, qtbot):
    assert STOP_TIMEOUT < 5000
    stage.presence.shutdown.findChild(QTimer).setInterval(50)
    stage.controller.turn(phase=Phase.RUNNING)
    stage.tray.quit.trigger()
    stage.answer(STOP)

    qtbot.waitUntil(lambda: bool(stage.left))


def test_staying_changes_nothing(stage):
    stage.controller.turn(phase=Phase.RUNNING)
    for _ in range(2):  # the question can come again
        stage.tray.quit.trigger()
        stage.answer(STAY)

    assert not stage.left
    assert stage.controller.orders == []


def test_escape_means_to_stay(stage, qtbot):
    stage.controller.turn(phase=Phase.RUNNING)
    stage.tray.quit.trigger()
    qtbot.keyClick(stage.window.findChild(QuitPrompt), Qt.Key.Key_Escape)

    assert not stage.left
    stage.tray.quit.trigger()
    stage.answer(LEAVE)
    assert stage.left


def test_a_signal_ends_the_program_without_questions(stage, qtbot):
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    before[signal.SIGHUP] = signal.getsignal(signal.SIGHUP)
    stage.presence.shutdown.handle_signals()
    os.kill(os.getpid(), signal.SIGTERM)
    qtbot.waitUntil(lambda: bool(stage.left))
    for number, answer in before.items():
        signal.signal(number, answer)

    assert stage.window.findChild(QuitPrompt) is None


def test_a_start_at_login_shows_no_window_where_there_is_a_tray(qtbot, tmp_path):
    start = LaunchOptions(None, tmp_path / "settings.toml", tmp_path, tmp_path, hidden=True)

    assert not Stage(qtbot, tmp_path, start=start).open().window.isVisible()


def test_a_start_at_login_moves_into_a_tray_that_comes_late(qtbot, tmp_path):
    start = LaunchOptions(None, tmp_path / "settings.toml", tmp_path, tmp_path, hidden=True)
    stage = Stage(qtbot, tmp_path, start=start, tray=False).open()
    assert stage.window.isMinimized()
    stage.trays[0] = True
    stage.tray.find_tray()

    assert not stage.window.isVisible()


@pytest.mark.parametrize(
    ("opens", "shown"),
    [("normal", True), ("maximized", True), ("minimized", True), ("tray", False)],
)
def test_the_window_opens_as_the_settings_say(qtbot, tmp_path, opens, shown):
    stage = Stage(qtbot, tmp_path)
    stage.controller.choose(opens=opens)
    stage.open()

    assert stage.window.isVisible() is shown
    assert stage.window.isMaximized() is (opens == "maximized")
    assert stage.window.isMinimized() is (opens == "minimized")


def test_settings_that_cannot_be_read_open_the_window(qtbot, tmp_path):
    stage = Stage(qtbot, tmp_path)
    stage.controller.turn(phase=Phase.BROKEN, problem=FULL)

    assert stage.window.isVisible()


def popups():
    return [one for one in QApplication.topLevelWidgets() if isinstance(one, TrayPopup)]


def test_a_click_on_the_tray_shows_the_pop_up_while_the_window_is_hidden(stage):
    stage.controller.turn(phase=Phase.IDLE, last=run_that(failed=1))
    stage.window.hide()
    stage.tray.clicked.emit()
    (popup,) = (one for one in popups() if one.isVisible())
    assert not stage.window.isVisible()

    stage.tray.open.trigger()
    assert stage.window.isVisible()
    assert not popup.isVisible()

    stage.tray.clicked.emit()
    assert not popup.isVisible()


@pytest.mark.parametrize("phase", [Phase.UNSET, Phase.BROKEN])
def test_a_click_on_the_tray_shows_the_window_if_the_user_has_to_do_something(stage, phase):
    stage.controller.turn(phase=phase)
    stage.window.hide()
    stage.tray.clicked.emit()

    assert stage.window.isVisible()


def test_the_pop_up_opens_the_page_that_it_names(stage):
    stage.controller.turn(phase=Phase.IDLE, last=run_that(failed=1))
    stage.window.hide()
    stage.tray.clicked.emit()
    (popup,) = (one for one in popups() if one.isVisible())
    popup.findChild(Headline)._action.click()

    assert stage.window.isVisible()
    assert stage.window.page is stage.window.find_page("problems")


def test_a_second_start_shows_the_window_and_hands_over_its_paths(stage):
    stage.window.hide()
    stage.presence.handle_request(LaunchRequest(paths=("/data/run 1",)))

    assert stage.window.isVisible()
    assert stage.paths == [(Path("/data/run 1"),)]


def test_a_second_start_at_login_shows_nothing(stage):
    stage.window.hide()
    stage.presence.handle_request(LaunchRequest(show=False))

    assert not stage.window.isVisible()


def test_a_problem_is_not_announced_where_it_is_the_headline(trayless):
    trayless.window.show_page("overview")
    trayless.controller.turn(phase=Phase.PAUSED, problem=FULL)

    assert trayless.presence.banner.isHidden()


def test_without_a_tray_a_banner_informs_and_opens_the_page(trayless, qtbot):
    trayless.window.show_page("history")
    trayless.controller.turn(phase=Phase.PAUSED, problem=FULL)
    banner = trayless.presence.banner
    _, more, _ = banner.findChildren(QPushButton)
    assert banner.isVisibleTo(trayless.window)
    more.click()

    assert banner.isHidden()
    assert trayless.window.page is trayless.window.find_page("problems")


def test_a_click_on_a_message_leads_to_its_page(stage):
    stage.window.hide()
    stage.controller.turn(last=run_that(problem=FULL))
    stage.controller.problem_raised.emit(FULL)
    stage.tray.icon.messageClicked.emit()

    assert stage.window.isVisible()
    assert stage.window.page is stage.window.find_page("problems")


def test_that_of_a_drive_is_in_the_window_too_which_has_its_buttons(stage):
    receipt = DriveReceipt(Path("/media/USB"), "USB", 2, 2, Path("/receipt.html"))
    stage.window.hide()
    stage.presence._drives.notified.emit(describe_receipt(receipt))
    stage.tray.icon.messageClicked.emit()

    assert stage.window.isVisible()
    assert [it.text() for it in stage.presence.banner.findChildren(QPushButton)] == [
        "&Eject",
        "Show &receipt",
        "&Close message",
    ]
    assert stage.presence.banner.isVisible()


def test_a_notice_leads_to_the_log_since_no_other_page_shows_it(trayless):
    trayless.controller.problem_raised.emit(FULL)
    trayless.presence.banner.findChildren(QPushButton)[1].click()

    assert trayless.window.page is trayless.window.find_page("log")


@pytest.mark.parametrize(
    ("concerned", "settled"),
    [
        ({"phase": Phase.PAUSED, "problem": FULL}, {"phase": Phase.RUNNING, "problem": None}),
        ({"phase": Phase.BROKEN, "problem": FULL}, {"phase": Phase.IDLE, "problem": None}),
        ({"last": run_that(problem=FULL)}, {"last": run_that(waiting=1)}),
    ],
    ids=["paused", "broken", "ended"],
)
def test_a_message_disappears_when_its_problem_has_gone(trayless, concerned, settled):
    trayless.window.show_page("history")
    banner = trayless.presence.banner
    trayless.controller.turn(**concerned)
    trayless.controller.problem_raised.emit(FULL)
    assert banner.isVisibleTo(trayless.window)

    trayless.controller.turn(**settled)
    assert not banner.isVisibleTo(trayless.window)


def test_the_message_about_a_pending_approval_disappears_when_it_comes(trayless):
    banner = trayless.presence.banner
    trayless.controller.turn(awaited=NOT_APPROVED)
    assert banner.isVisibleTo(trayless.window)
    trayless.controller.choose(notify_approval=False)

    trayless.controller.turn(awaited=None)
    assert not banner.isVisibleTo(trayless.window)


def test_good_news_disappear_when_a_run_starts(trayless):
    banner = trayless.presence.banner
    trayless.controller.turn(phase=Phase.IDLE, awaited=NOT_APPROVED)
    trayless.controller.turn(awaited=None)
    assert banner.isVisibleTo(trayless.window)

    trayless.controller.turn(phase=Phase.STARTING)
    assert not banner.isVisibleTo(trayless.window)


def test_messages_can_be_switched_off(trayless):
    trayless.controller.choose(notify_problem=False)
    trayless.controller.problem_raised.emit(FULL)

    assert not trayless.presence.banner.isVisibleTo(trayless.window)
