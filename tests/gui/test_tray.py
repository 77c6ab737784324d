"""The tray's icon and menu follow how things stand."""

from dataclasses import replace

import pytest
from PySide6.QtWidgets import QSystemTrayIcon

from mydata_like.core.errors import Problem
from mydata_like.engine.progress import NO_PROGRESS
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.tray.tray_icon import TrayIcon, TrayState, choose_icon
from mydata_like.gui.tray.tray_menu import Tray
from tests.gui.scripted import AWAY, FULL, NOT_APPROVED, QUIET, run_that

GONE = Problem("data.unavailable", "The data directory cannot be read.")
STOPPED = Problem("run.interrupted", "The run was stopped.")
CUT = run_that(found=5, verified=3)
HALF = replace(NO_PROGRESS, wanted_bytes=10, transferred_bytes=5)


@pytest.fixture
def tray(controller):
    return Tray(controller, is_available=lambda: True)


@pytest.mark.parametrize(
    ("state", "emblem"),
    [
        (RunState(phase=Phase.IDLE), TrayIcon(TrayState.AT_RISK)),
        (RunState(phase=Phase.IDLE, last=run_that()), TrayIcon(TrayState.IDLE)),
        (RunState(phase=Phase.IDLE, last=run_that(waiting=1)), TrayIcon(TrayState.AT_RISK)),
        (RunState(phase=Phase.IDLE, last=run_that(left_behind=1)), TrayIcon(TrayState.AT_RISK)),
        (RunState(phase=Phase.IDLE, last=run_that(found=0)), TrayIcon(TrayState.AT_RISK)),
        (
            RunState(phase=Phase.IDLE, last=run_that(), interrupted=run_that()),
            TrayIcon(TrayState.AT_RISK),
        ),
        (
            RunState(phase=Phase.IDLE, last=run_that(), data_problem=GONE),
            TrayIcon(TrayState.PROBLEM),
        ),
        (RunState(phase=Phase.IDLE, last=run_that(problem=STOPPED)), TrayIcon(TrayState.AT_RISK)),
        (RunState(phase=Phase.IDLE, last=run_that(reason="source")), TrayIcon(TrayState.AT_RISK)),
        (RunState(phase=Phase.IDLE, last=run_that(failed=1)), TrayIcon(TrayState.PROBLEM)),
        (RunState(phase=Phase.IDLE, last=run_that(problem=FULL)), TrayIcon(TrayState.PROBLEM)),
        (RunState(phase=Phase.IDLE, last=run_that(problem=AWAY)), TrayIcon(TrayState.OFFLINE)),
        (RunState(phase=Phase.IDLE, awaited=NOT_APPROVED), TrayIcon(TrayState.WAITING)),
        (RunState(phase=Phase.UNSET), TrayIcon(TrayState.WAITING)),
        (RunState(phase=Phase.LOADING), TrayIcon(TrayState.WORKING)),
        (RunState(phase=Phase.STARTING), TrayIcon(TrayState.WORKING)),
        (RunState(phase=Phase.RUNNING), TrayIcon(TrayState.WORKING)),
        (RunState(phase=Phase.RUNNING, sums=HALF), TrayIcon(TrayState.WORKING, 50)),
        (RunState(phase=Phase.ELSEWHERE, sums=HALF), TrayIcon(TrayState.WORKING, 50)),
        (RunState(phase=Phase.PAUSED), TrayIcon(TrayState.PAUSED)),
        (RunState(phase=Phase.PAUSED, problem=QUIET), TrayIcon(TrayState.PAUSED)),
        (RunState(phase=Phase.PAUSED, problem=AWAY), TrayIcon(TrayState.OFFLINE)),
        (RunState(phase=Phase.PAUSED, problem=NOT_APPROVED), TrayIcon(TrayState.WAITING)),
        (RunState(phase=Phase.PAUSED, problem=FULL), TrayIcon(TrayState.PROBLEM)),
        (RunState(phase=Phase.BROKEN), TrayIcon(TrayState.PROBLEM)),
    ],
    ids=lambda value: value.phase.value if isinstance(value, RunState) else str(value.state.value),
)
def test_every_state_has_its_shape(state, emblem):
    assert choose_icon(state) == emblem


@pytest.mark.parametrize(
    ("phase", "offered"),
    [
        (Phase.UNSET, []),
        (Phase.IDLE, ["start"]),
        (Phase.RUNNING, ["pause", "pause_hour", "stop"]),
        (Phase.PAUSED, ["resume", "stop"]),
        (Phase.STOPPING, []),
        (Phase.ELSEWHERE, []),
    ],
)
def test_the_menu_offers_what_can_be_done(controller, tray, qtbot, phase, offered):
    controller.turn(phase=phase, missing=("server.url",) if phase is Phase.UNSET else ())
    names = ("start", "pause", "pause_hour", "resume", "stop")

    def usable():
        actions = {name: getattr(tray, name) for name in names}
        return [name for name, one in actions.items() if one.isVisible() and one.isEnabled()]

    qtbot.waitUntil(lambda: usable() == offered)


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("start", "start"),
        ("pause", "pause"),
        ("pause_hour", "pause"),
        ("resume", "resume"),
        ("stop", "stop_run"),
    ],
)
def test_the_menu_does_what_it_says(controller, tray, name, order):
    controller.turn(phase=Phase.IDLE)
    getattr(tray, name).trigger()

    assert controller.orders == [order]


def test_the_menus_letters_are_unique(tray):
    texts = [one.text() for one in tray.menu.actions() if one.text() and one is not tray.sentence]
    letters = [text[text.index("&") + 1].lower() for text in texts]

    assert len(letters) == len(set(letters)) == 9


def test_the_menu_tells_the_story_of_the_overview(controller, tray):
    controller.turn(phase=Phase.RUNNING, sums=HALF, whole=run_that())
    tray.menu.aboutToShow.emit()

    assert tray.amount.text() == "5 bytes of 10 bytes sent, 50 %"
    assert tray.safe.text().startswith("Everything up to")
    assert tray.amount.isVisible()
    assert tray.safe.isVisible()

    controller.turn(phase=Phase.IDLE, whole=None)
    tray.menu.aboutToShow.emit()
    assert not tray.amount.isVisible()
    assert not tray.safe.isVisible()


def test_the_sentence_is_passed_on_unchanged(controller, tray, qtbot):
    controller.turn(phase=Phase.PAUSED, problem=Problem("source.gone", "R&D is full"))

    qtbot.waitUntil(lambda: tray.icon.toolTip() == "R&D is full")
    assert tray.sentence.text() == "R&&D is full"


def test_some_desktops_find_markup_in_tool_tips_and_find_none(controller, tray, qtbot):
    controller.turn(phase=Phase.PAUSED, problem=Problem("source.gone", "<b>x</b> is full"))

    qtbot.waitUntil(lambda: "is full" in tray.icon.toolTip())
    assert "<" not in tray.icon.toolTip()
    assert tray.sentence.text() == "<b>x</b> is full"


def test_the_icon_changes_twice_a_second_at_most(controller, tray, qtbot):
    controller.turn(phase=Phase.RUNNING)
    keys = [tray.icon.icon().cacheKey()]
    for done in range(11):
        controller.turn(sums=replace(NO_PROGRESS, wanted_bytes=10, transferred_bytes=done))
        keys.append(tray.icon.icon().cacheKey())

    assert len(set(keys)) == 1
    qtbot.waitUntil(lambda: tray.icon.icon().cacheKey() != keys[0])


def test_an_icon_that_shows_the_same_is_left_alone(controller, tray, qtbot):
    controller.turn(phase=Phase.RUNNING, sums=HALF)
    qtbot.waitUntil(lambda: "Looking" in tray.icon.toolTip())
    key = tray.icon.icon().cacheKey()
    controller.turn(sums=replace(HALF, found=1))

    qtbot.waitUntil(lambda: "1" in tray.icon.toolTip())
    assert tray.icon.icon().cacheKey() == key


def test_a_double_click_opens_the_window(tray, controller, qtbot):
    with qtbot.assertNotEmitted(tray.clicked), qtbot.waitSignal(controller.page_wanted):
        tray.icon.activated.emit(QSystemTrayIcon.ActivationReason.DoubleClick)


def test_a_click_is_reported(tray, controller, qtbot):
    with qtbot.assertNotEmitted(controller.page_wanted), qtbot.waitSignal(tray.clicked):
        tray.icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)


def test_a_tray_that_comes_late_is_taken(controller, qtbot):
    there = []
    tray = Tray(controller, is_available=lambda: bool(there))
    assert not tray.available

    there.append(True)
    with qtbot.waitSignal(tray.appeared):
        tray.find_tray()
    assert tray.available


def test_it_is_not_looked_for_a_tray_for_ever(controller, qtbot):
    looks = []
    tray = Tray(controller, is_available=lambda: bool(looks.append(1)))
    timer = tray._search_timer
    while timer.isActive() and len(looks) < 99:
        tray.find_tray()

    assert len(looks) == 11
