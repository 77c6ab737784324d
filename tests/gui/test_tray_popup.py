"""The pop-up of the tray tells what the Overview tells, and gets out of the way."""

import os
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QPushButton

from mydata_like.app.settings_service import load_settings
from mydata_like.engine.progress import NO_PROGRESS, ActiveTransfer
from mydata_like.gui.base import AppContext
from mydata_like.gui.overview.bars import SentBar, ShareBar
from mydata_like.gui.overview.recent_datasets import MIN_ROWS, RecentDatasets
from mydata_like.gui.run_state import LiveView, Phase
from mydata_like.gui.theme.metrics import SECTION
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.tray.tray_popup import SAME_CLICK, TrayPopup
from mydata_like.gui.window_state import WindowState
from tests.gui.conftest import DEADLINE
from tests.gui.scripted import run_that

HALF = replace(NO_PROGRESS, found=2, wanted=2, wanted_bytes=10, transferred_bytes=5)
SIDE = 22  # pixels of an icon


@pytest.fixture
def clock():
    """The seconds that the pop-up believes."""
    return [0.0]


@pytest.fixture
def popup(controller, clock, qtbot):
    context = AppContext(controller, controller.threads, WindowState(controller))
    popup = TrayPopup(context, lambda: clock[0])
    qtbot.addWidget(popup)
    return popup


@pytest.fixture
def area(qapp):
    return qapp.primaryScreen().availableGeometry()


def texts_of(popup):
    return " ".join(label.text() for label in popup.findChildren(PlainLabel) if label.isVisible())


def button(popup, text):
    (found,) = (
        one
        for one in popup.findChildren(QPushButton)
        if one.isVisible() and one.text().replace("&", "") == text
    )
    return found


def _find_file(data, dataset):
    """Return the transfer of a file of a dataset."""
    file = next(data.rglob(f"{dataset}/*"))
    return ActiveTransfer(1, 1, os.fsencode(file.relative_to(data).as_posix()), 1, 10)


def _list_bars(datasets):
    return [bar for bar in datasets.findChildren(ShareBar) if bar.isVisible()]


def test_it_follows_the_run(controller, popup, area):
    popup.toggle(QRect(area.topLeft(), area.topLeft()))
    assert not popup.findChild(SentBar).isVisible()

    controller.turn(phase=Phase.RUNNING, sums=HALF)
    assert popup.findChild(SentBar).value() == SentBar.PARTS / 2
    assert "5 bytes of 10 bytes sent" in texts_of(popup)
    button(popup, "Pause").click()
    assert controller.orders == ["pause"]


def test_it_lists_the_datasets_that_arrive(site, controller, popup, area, qtbot):
    assert site.run().code == 0
    controller.config, controller.loaded = site.config, load_settings(site.config)
    controller.settings = controller.loaded.settings
    controller.live = LiveView((_find_file(site.data, "Cell count*"),), ())
    controller.turn(phase=Phase.RUNNING, sums=HALF, run="a run")
    popup.toggle(QRect(area.topLeft(), area.topLeft()))
    listed = popup.findChild(RecentDatasets)
    small = popup.height()
    qtbot.waitUntil(listed.isVisible, timeout=DEADLINE)
    qtbot.waitUntil(lambda: popup.height() > small)
    names = [bar.accessibleName() for bar in _list_bars(listed)]
    assert len(names) == MIN_ROWS
    assert any(name.startswith("Cell count") for name in names)


def test_it_shows_the_state_of_now_when_it_comes(controller, popup, area):
    controller.turn(phase=Phase.RUNNING, sums=HALF)
    controller.turn(phase=Phase.IDLE, last=run_that(failed=1))
    popup.toggle(QRect(area.topLeft(), area.topLeft()))

    assert button(popup, "Show problems")


@pytest.mark.parametrize("corner", ["topLeft", "topRight", "bottomLeft", "bottomRight"])
def test_it_is_on_the_screen_and_beside_the_icon(popup, area, corner):
    icon = QRect(0, 0, SIDE, SIDE)
    getattr(icon, f"move{corner[0].upper()}{corner[1:]}")(getattr(area, corner)())
    popup.toggle(icon)

    assert area.contains(popup.frameGeometry())
    assert not popup.frameGeometry().intersects(icon)


@pytest.mark.parametrize("edge", ["top", "bottom"])
def test_it_keeps_beside_the_icon_when_it_has_more_to_tell_or_less(
    controller, popup, qtbot, area, edge
):
    icon = QRect(0, 0, SIDE, SIDE)
    getattr(icon, f"move{edge.capitalize()}")(getattr(area, edge)())
    popup.toggle(icon)
    small = popup.height()

    controller.turn(phase=Phase.RUNNING, sums=HALF)
    qtbot.waitUntil(lambda: popup.height() > small)
    assert area.contains(popup.frameGeometry())
    assert not popup.frameGeometry().intersects(icon)

    controller.turn(phase=Phase.IDLE)
    qtbot.waitUntil(lambda: popup.height() == small)
    assert not popup.frameGeometry().intersects(icon)


def test_it_comes_at_the_mouse_where_the_tray_does_not_tell_its_place(popup, area):
    popup.toggle(QRect())
    assert popup.isVisible()
    assert area.contains(popup.frameGeometry())


def test_a_second_click_or_escape_hides_it(popup, qtbot, area):
    icon = QRect(area.topLeft(), area.topLeft())
    popup.toggle(icon)
    popup.toggle(icon)
    assert not popup.isVisible()

    popup.toggle(icon)
    qtbot.keyClick(popup, Qt.Key.Key_Escape)
    assert not popup.isVisible()


def test_a_click_on_the_icon_that_took_the_focus_does_not_bring_it_back(popup, clock, area):
    icon = QRect(area.topLeft(), area.topLeft())
    popup.toggle(icon)
    QApplication.sendEvent(popup, QEvent(QEvent.Type.WindowDeactivate))
    assert not popup.isVisible()
    popup.toggle(icon)
    assert not popup.isVisible()

    clock[0] += SAME_CLICK
    popup.toggle(icon)
    assert popup.isVisible()


def test_its_buttons_open_the_window(controller, popup, qtbot, area):
    controller.turn(phase=Phase.IDLE, last=run_that(failed=1))
    popup.toggle(QRect(area.topLeft(), area.topLeft()))
    with qtbot.waitSignal(controller.page_wanted) as asked:
        button(popup, "Show problems").click()
    assert asked.args == ["problems", "failed"]
    assert not popup.isVisible()

    popup.toggle(QRect(area.topLeft(), area.topLeft()))
    with qtbot.waitSignal(controller.page_wanted):
        button(popup, "Open the window").click()
    assert not popup.isVisible()


def test_it_follows_a_change_of_the_font(controller, popup, area, qtbot):
    usual = QApplication.font()
    popup.toggle(QRect(area.topLeft(), area.topLeft()))
    large = QFont(usual)
    large.setPointSizeF(usual.pointSizeF() * 2)
    labels = popup.findChildren(PlainLabel)
    margin = popup.layout().contentsMargins().top()
    try:
        QApplication.setFont(large)

        qtbot.waitUntil(lambda: popup.layout().contentsMargins().top() > margin)
        assert popup.layout().contentsMargins().top() == popup.fontMetrics().height()
        sizes = {label.font().pointSizeF() / large.pointSizeF() for label in labels}
        assert sizes == {1.0, SECTION}
    finally:
        QApplication.setFont(usual)
