"""The window's frame: status line, tool bar, keys."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QAction, QContextMenuEvent, QKeySequence
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QToolBar

from mydata_like.app.settings_service import save_settings
from mydata_like.core.errors import Problem
from mydata_like.core.events import RunStarted, ServerSilent
from mydata_like.engine.progress import NO_PROGRESS
from mydata_like.gui.base import PageTitle
from mydata_like.gui.overview.route_row import RouteRow
from mydata_like.gui.run_state import (
    PastRunState,
    Phase,
    RunState,
    ServerIndicator,
    next_indicator,
    with_server,
)
from mydata_like.gui.server_indicator import ServerIndicatorLabel, indicator_mark
from mydata_like.gui.status_text import amount_sentence
from mydata_like.gui.theme.metrics import LARGE_SPACE, TITLE
from mydata_like.gui.theme.texts import moment
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.window import MainWindow, list_pages

AWAY = Problem("server.unreachable", "It does not answer.", "Wait.")
REFUSED = Problem("server.forbidden", "It refuses.", "Ask.")
UNAPPROVED = Problem("uploader.not-approved", "The key is not approved.", "Ask.")
STOPPED = Problem("run.interrupted", "Stopped.", "")
BY_PERSON = Problem("run.paused", "Paused.", "")
IDLE, RUNNING = RunState(phase=Phase.IDLE), RunState(phase=Phase.RUNNING)
PAUSED = RunState(phase=Phase.PAUSED)
SILENT = RunState(phase=Phase.RUNNING, silence=12)


def ended(problem=None, minute=0):
    started = datetime(2027, 1, 1, 12, minute, tzinfo=UTC)
    return replace(IDLE, last=PastRunState(started=started, finished=started, problem=problem))


@pytest.fixture
def window(qtbot, still_context):
    window = MainWindow(still_context)
    qtbot.addWidget(window)
    window.show()
    return window


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([IDLE], ServerIndicator.UNKNOWN),
        ([ended(AWAY)], ServerIndicator.UNKNOWN),
        ([RUNNING], ServerIndicator.REACHABLE),
        ([RUNNING, ended()], ServerIndicator.REACHABLE),
        ([RUNNING, replace(PAUSED, problem=AWAY)], ServerIndicator.UNREACHABLE),
        ([RUNNING, replace(PAUSED, problem=AWAY), RUNNING], ServerIndicator.REACHABLE),
        (
            [replace(PAUSED, problem=AWAY), replace(PAUSED, problem=BY_PERSON)],
            ServerIndicator.UNREACHABLE,
        ),
        ([replace(PAUSED, problem=UNAPPROVED)], ServerIndicator.NOT_APPROVED),
        ([replace(IDLE, awaited=UNAPPROVED)], ServerIndicator.NOT_APPROVED),
        ([replace(IDLE, awaited=UNAPPROVED), IDLE], ServerIndicator.REACHABLE),
        ([ended(), RUNNING, ended(AWAY, 1)], ServerIndicator.UNREACHABLE),
        ([RUNNING, SILENT], ServerIndicator.SILENT),
        ([RUNNING, replace(SILENT, phase=Phase.STARTING)], ServerIndicator.SILENT),
        ([RUNNING, SILENT, RUNNING], ServerIndicator.REACHABLE),
        ([replace(PAUSED, problem=BY_PERSON, silence=12)], ServerIndicator.SILENT),
        (
            [replace(PAUSED, problem=BY_PERSON, silence=12), replace(PAUSED, problem=BY_PERSON)],
            ServerIndicator.REACHABLE,
        ),
        ([SILENT, replace(PAUSED, problem=AWAY, silence=66)], ServerIndicator.UNREACHABLE),
        ([SILENT, ended(STOPPED)], ServerIndicator.UNREACHABLE),
        ([SILENT, ended()], ServerIndicator.REACHABLE),
        ([RUNNING, ended(REFUSED)], ServerIndicator.REACHABLE),
        (
            [replace(RUNNING, phase=Phase.STARTING), replace(IDLE, problem=AWAY)],
            ServerIndicator.UNREACHABLE,
        ),
    ],
    ids=[
        "nothing yet",
        "only of an earlier day",
        "a run began",
        "a run ended well",
        "it went away",
        "it came back",
        "away, and a person paused",
        "approval awaited in a run",
        "approval awaited at rest",
        "approved",
        "away at the end",
        "it does not answer",
        "it does not answer at the start",
        "it answers again",
        "paused, and it does not answer",
        "paused, and it answers again",
        "the time limit is over",
        "stopped before it answered",
        "an answer at the very end",
        "a refusal is an answer",
        "away at the start",
    ],
)
def test_a_run_reports_what_is_known_of_the_server(states, expected):
    known = RunState()

    for state in states:
        known = replace(state, server=next_indicator(known, state))

    assert known.server is expected


def test_the_server_is_reachable_only_as_long_as_its_last_answer_is_recent():
    start = datetime(2027, 1, 1, 12, tzinfo=UTC)
    state, heard = IDLE, []
    for seconds, registered in ((0, 0), (29, 0), (31, 0), (40, 5)):
        sums = replace(NO_PROGRESS, registered=registered)
        sending = replace(state, phase=Phase.RUNNING, run="r", sums=sums)
        state = with_server(state, sending, start + timedelta(seconds=seconds))
        heard.append(state.heard)
    assert heard == [True, True, False, True]

    at_rest = with_server(state, replace(state, phase=Phase.IDLE), start + timedelta(seconds=41))
    answered = start + timedelta(seconds=40)
    assert indicator_mark(at_rest).word == f"Server answered {moment(answered)}"


def test_a_run_of_another_program_shows_an_answer_only_by_its_progress():
    start = datetime(2027, 1, 1, 12, tzinfo=UTC)
    elsewhere = replace(RUNNING, elsewhere=True, run="r", sums=replace(NO_PROGRESS, registered=5))
    seen = with_server(RunState(), elsewhere, start)
    assert indicator_mark(seen).word == ""

    more = replace(seen, sums=replace(NO_PROGRESS, registered=6))
    assert indicator_mark(with_server(seen, more, start)).word == "Server reachable"


def test_the_status_line_shows_state_speed_time_left_and_the_server(window, still_context):
    sums = replace(
        NO_PROGRESS, wanted=20, wanted_bytes=10**9, sent=8, byte_rate=2.5e6, remaining=240.0
    )

    state = replace(RUNNING, sums=sums, server=ServerIndicator.REACHABLE, heard=True)
    still_context.controller.run_changed.emit(state)

    assert window._sentence.full_text == "Sending 12 file(s), about 4 min left"
    assert window._speed.text() == "2.5 MB/s"
    assert window.findChild(ServerIndicatorLabel).text == "Server reachable"

    complete = replace(sums, transferred_bytes=10**9)
    for still in (replace(state, phase=Phase.PAUSED), replace(state, sums=complete)):
        still_context.controller.run_changed.emit(still)
        assert window._speed.text() == ""
        assert " at " not in amount_sentence(still)


def test_the_state_of_the_server_is_in_the_window_once(window, still_context):
    shown = window.findChild(ServerIndicatorLabel)
    window.show_page("overview")
    still_context.controller.settings_changed.emit()
    assert not shown.isVisibleTo(window)
    window.show_page("log")
    assert shown.isVisibleTo(window)


@pytest.mark.parametrize("keys", ["F5", "Ctrl+P", "Ctrl+R"])
def test_the_keys_of_start_and_pause_resume_a_paused_run(window, still_context, qtbot, keys):
    controller = still_context.controller
    controller._set(phase=Phase.PAUSED)
    able = [
        one
        for one in window.findChildren(QAction)
        if QKeySequence(keys) in one.shortcuts() and one.isEnabled() and one.isVisible()
    ]
    assert [one.text().replace("&", "") for one in able] == ["Resume"]

    controller._set(phase=Phase.RUNNING)
    assert not able[0].isEnabled()


def test_a_server_that_does_not_answer_is_shown_with_the_time(window, still_context):
    controller = still_context.controller
    started = RunStarted(run="r", at=datetime(2027, 1, 1, tzinfo=UTC), data_directory=b"/data")
    controller._take_events([started, ServerSilent(seconds=12)])
    label = window.findChild(ServerIndicatorLabel)
    assert label.text == "No answer from the server for 12 s"

    controller._take_events([ServerSilent(seconds=0)])
    assert label.text == "Server reachable"


def test_the_window_of_the_demo_says_that_it_is_one(window):
    window.mark_demo()

    assert window.windowTitle() == "mydata-like: demo"
    marks = [label.text() for label in window.statusBar().findChildren(PlainLabel)]
    assert "Demo: sample data, and a server on this computer" in marks


def test_when_idle_the_status_line_shows_the_next_run_and_no_speed(window, still_context):
    start = datetime(2040, 1, 1, 12, tzinfo=UTC)

    still_context.controller.run_changed.emit(replace(IDLE, next_start=start))

    assert window._next.text().startswith("Next run ")
    assert window._speed.text() == ""
    assert window.findChild(ServerIndicatorLabel).text == ""


def test_the_status_line_does_not_repeat_the_overview(window, still_context):
    still_context.controller.run_changed.emit(replace(RUNNING, server=ServerIndicator.REACHABLE))

    shown = (window._sentence, window._speed, window._server)
    window.show_page("transfers")
    assert not any(part.isHidden() for part in shown)
    window.show_page("overview")
    assert all(part.isHidden() for part in shown)


def test_of_another_server_nothing_is_known_yet(context, site, qtbot):
    window = MainWindow(context)
    qtbot.addWidget(window)
    sign = window.findChild(ServerIndicatorLabel)
    context.controller.start()
    qtbot.waitUntil(lambda: bool(context.controller.state.last))
    assert sign.text.startswith("Server answered today ")
    assert context.controller.settings.server.url in sign.toolTip()
    save_settings(site.config, {"server.url": "https://other.example"})

    with qtbot.waitSignal(context.controller.settings_changed):
        context.controller.reload_settings()

    assert sign.text == ""
    assert "https://other.example" in sign.toolTip()


def test_after_a_run_the_server_is_known_to_answer(context, qtbot):
    window = MainWindow(context)
    qtbot.addWidget(window)
    sign = window.findChild(ServerIndicatorLabel)
    assert sign.text == ""

    context.controller.start()

    qtbot.waitUntil(lambda: bool(context.controller.state.last))
    assert sign.text.startswith("Server answered today ")


def test_a_key_leads_to_the_search_field_and_its_tool_tip_names_it(window, qtbot):
    field = window.findChild(QToolBar, "actions").findChild(QLineEdit)
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    window._navigation.setFocus()

    qtbot.keyClick(
        window,
        Qt.Key.Key_F,
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier,
    )

    qtbot.keyRelease(field, Qt.Key.Key_F)  # else the modifiers would stay pressed for other tests
    assert window.focusWidget() is field
    assert "Ctrl+Shift+F" in field.toolTip()


def test_the_keys_of_pages_that_were_never_shown_are_listed(window):
    before = window.page

    keys = {action.text(): action.shortcut().toString() for action in window.list_actions()}

    assert keys["Send next"] == "Ctrl+Shift+Up"
    assert keys["&Start"] == "F5"
    assert window.page is before


def test_no_menu_takes_the_tool_bar_away(window):
    bar = window.findChild(QToolBar, "actions")
    event = QContextMenuEvent(
        QContextMenuEvent.Reason.Mouse, QPoint(3, 3), bar.mapToGlobal(QPoint(3, 3))
    )

    QApplication.sendEvent(bar, event)

    assert QApplication.activePopupWidget() is None
    assert not window.findChildren(QMenu)


@pytest.mark.parametrize("page", [spec.name for spec in list_pages()])
def test_in_the_tray_no_page_does_anything_regularly(window, still_context, qtbot, page):
    window.show_page(page)
    qtbot.waitUntil(lambda: not still_context.tasks.busy)

    window.hide()

    timers = window.findChildren(QTimer)
    assert not [timer for timer in timers if timer.isActive() and not timer.isSingleShot()]


def test_the_status_line_begins_where_the_names_of_pages_have_their_icons(window):
    assert window._sentence.mapTo(window, QPoint(0, 0)).x() >= 8


@pytest.mark.parametrize(
    ("phase", "shown"),
    [
        (Phase.UNSET, []),
        (Phase.IDLE, ["Start"]),
        (Phase.STARTING, ["Start", "Stop"]),
        (Phase.RUNNING, ["Pause", "Stop"]),
        (Phase.PAUSING, ["Pause", "Stop"]),
        (Phase.PAUSED, ["Resume", "Stop"]),
        (Phase.STOPPING, ["Start"]),
    ],
)
def test_start_pause_and_resume_have_one_place_in_the_tool_bar(window, phase, shown):
    window._context.controller.run_changed.emit(RunState(phase=phase))

    actions = window.findChild(QToolBar).actions()
    first = actions[: next(at for at, action in enumerate(actions) if action.isSeparator())]
    assert [one.text().replace("&", "") for one in first if one.isVisible()] == shown


def test_before_the_set_up_the_tool_bar_has_only_what_can_be_done(window):
    window._context.controller.run_changed.emit(RunState(phase=Phase.UNSET))

    shown = [one for one in window.findChild(QToolBar).actions() if one.isVisible()]
    assert [one.text().replace("&", "") for one in shown[:3]] == ["Settings…", "Help", "Quit"]
    window._context.controller.run_changed.emit(IDLE)
    assert all(one.isVisible() and one.isEnabled() for one in (window._dry_run, window._add))


def test_all_pages_begin_at_the_same_left_edge_with_a_title_of_the_same_size(window, qtbot):
    window._context.controller.run_changed.emit(IDLE)
    edges, sizes = set(), set()
    for spec in list_pages():
        window.show_page(spec.name)
        page = window.page
        kind = RouteRow if spec.name == "overview" else PageTitle
        first = page.findChild(kind)
        qtbot.waitUntil(lambda first=first: first.isVisibleTo(window) and first.width() > 0)
        if kind is PageTitle:
            assert first.text() == spec.title
            sizes.add(first.font().pointSizeF())
        edges.add(first.mapTo(page, QPoint(0, 0)).x())

    assert edges == {LARGE_SPACE}
    assert sizes == {window.font().pointSizeF() * TITLE}
