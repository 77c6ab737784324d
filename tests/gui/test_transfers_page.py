"""The page of transfers: what travels, and what became of every file."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester

from mydata_like.app.settings_service import save_settings
from mydata_like.core.errors import Problem
from mydata_like.core.model import EntryState
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.base import NavigationRequest
from mydata_like.gui.pages.transfers_page import TransfersModel, TransfersPage
from mydata_like.gui.run_state import Phase
from mydata_like.gui.tables.columns import FRACTION
from tests.gui.ledgers import an_entry, an_outcome


@pytest.fixture
def open_page(qtbot):
    opened = []  # a page lives as long as someone knows it

    def open_it(desk):
        page = TransfersPage(desk)
        qtbot.addWidget(page)
        opened.append(page)
        page.resize(1000, 700)
        page.show()
        page.show_page()
        settle(qtbot, page)
        return page

    return open_it


def settle(qtbot, page):
    qtbot.waitUntil(lambda: page._files.model.complete and not page._files.model.busy)


def names(page):
    model = page._files.model
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def fill(written):
    written.ledger.record([an_entry(b"a/old.tif"), an_entry(b"b/one.dat", 9)])
    written.clock.move(60)
    written.ledger.record([an_entry(b"a/new.tif", state=EntryState.STAGED)])
    written.ledger.record_outcomes([an_outcome(b"a/bad.tif"), an_outcome(b"c/w.tif", "waiting")])


@pytest.fixture
def filled_page(still_desk, written, open_page):
    fill(written)
    return open_page(still_desk)


def test_after_a_run_every_file_is_reported_to_be_verified(qtbot, desk, site, open_page):
    site.run()

    page = open_page(desk)

    assert len(names(page)) == len(site.place.expected_files())
    assert {page._files.model.index(row, 1).data() for row in range(3)} == {"Verified"}


def test_the_newest_file_is_on_top(still_desk, written, open_page):
    fill(written)

    assert names(open_page(still_desk)) == ["w.tif", "new.tif", "bad.tif", "one.dat", "old.tif"]


def test_typing_filters_by_name(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)

    qtbot.keyClicks(page._files.field, "b/ON")

    qtbot.waitUntil(lambda: names(page) == ["one.dat"])


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ("verified", ["one.dat", "old.tif"]),
        ("staged", ["new.tif"]),
        ("failed", ["bad.tif"]),
        ("folder:a", ["new.tif", "bad.tif", "old.tif"]),
    ],
)
def test_another_page_can_ask_for_a_state_or_a_folder(qtbot, filled_page, wish, expected):
    page = filled_page

    page.look_for(wish)

    qtbot.waitUntil(lambda: names(page) == expected)


def test_a_folder_is_named_on_the_button_as_it_is(filled_page):
    filled_page.look_for("folder:R&D")

    assert filled_page._files._only.text() == "Only in R&&D"  # which is shown as R&D


def test_what_leaves_nothing_says_so_and_can_be_lifted(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)
    page.look_for("folder:nowhere")
    qtbot.waitUntil(lambda: names(page) == [])
    assert page._files._empty.text() == "No matching rows."

    qtbot.mouseClick(page._files._all, Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: len(names(page)) == 5)


def test_without_a_ledger_the_page_says_what_it_is_for(still_desk, open_page):
    assert open_page(still_desk)._files._empty.text() == "No file has been sent yet."


def test_the_header_orders_all_rows(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)

    page._files.table.sortByColumn(2, Qt.SortOrder.DescendingOrder)

    qtbot.waitUntil(lambda: names(page)[0] == "one.dat")


def test_rows_are_copied_with_tabs_as_they_are_shown(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)
    table = page._files.table
    table.setColumnHidden(2, True)
    table.selectAll()

    table.copy_rows()

    qtbot.waitUntil(lambda: "one.dat" in QGuiApplication.clipboard().text())
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "Name\tState\tWhen\tFolder\tWhat happened"
    assert lines[3].startswith("bad.tif\tFailed\t")
    assert len(lines) == 6


def test_selected_rows_stay_selected_when_the_engine_writes(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)
    page._files.table.selectRow(4)
    written.clock.move(60)
    written.ledger.record([an_entry(b"z/newer.tif")])

    with qtbot.waitSignal(page._files.model.relocated, timeout=10_000):
        still_desk.controller.ledger_changed.emit()

    assert names(page)[0] == "newer.tif"
    assert [row.key for row in page._files.table.rows()] == [b"a/old.tif"]


def test_the_scroll_position_far_below_is_kept(qtbot, still_desk, written, open_page):
    written.fill(500)
    page = open_page(still_desk)
    table, bar = page._files.table, page._files.table.verticalScrollBar()
    bar.setValue(300)
    qtbot.waitUntil(lambda: page._files.model.row(table.rowAt(0)) is not None)
    before = page._files.model.row(bar.value()).key
    written.clock.move(60)
    written.ledger.record([an_entry(b"z/%03d" % number) for number in range(7)])

    with qtbot.waitSignal(page._files.model.relocated, timeout=10_000):
        still_desk.controller.ledger_changed.emit()

    assert bar.value() == 307
    qtbot.waitUntil(lambda: page._files.model.row(307) is not None)
    assert page._files.model.row(307).key == before


def test_columns_stay_as_the_user_left_them(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)
    first = page._files.table
    menu = first.column_menu()
    next(action for action in menu.actions() if action.text() == "Folder").trigger()
    first.setColumnWidth(0, 123)
    qtbot.waitUntil(lambda: not first._kept._saving.isActive())

    another = open_page(still_desk)

    second = another._files.table
    assert second.isColumnHidden(4)
    assert second.columnWidth(0) == 123


def turn(controller, phase):
    """Set this state, whatever the status query returns."""
    controller._look_timer.stop()
    controller._set(phase=phase, missing=())


def test_what_can_be_done_depends_on_what_is_selected(qtbot, still_desk, written, open_page):
    fill(written)
    page = open_page(still_desk)
    turn(still_desk.controller, Phase.RUNNING)
    actions = page._actions

    page._files.table.selectRow(2)  # the one that failed
    assert actions._retry.isEnabled()
    assert not actions._web.isEnabled()
    page._files.table.selectRow(3)
    assert not actions._retry.isEnabled()
    assert actions._web.isEnabled()
    with qtbot.waitSignal(page.wanted) as wanted:
        actions._where.trigger()
    assert wanted.args == [NavigationRequest("where", "b/one.dat")]


@pytest.mark.parametrize(
    ("phase", "enabled"),
    [(Phase.IDLE, True), (Phase.PAUSED, True), (Phase.ELSEWHERE, False), (Phase.TESTING, False)],
)
def test_what_failed_is_tried_again_only_where_a_run_can_do_it(filled_page, phase, enabled):
    filled_page._files.table.selectRow(2)
    turn(filled_page._controller, phase)

    assert filled_page._actions._retry.isEnabled() is enabled


def test_enter_and_a_double_click_show_the_journey_of_a_file(qtbot, filled_page):
    table = filled_page._files.table
    table.selectRow(3)
    place = table.visualRect(table.model().index(3, 0)).center()

    with qtbot.waitSignal(filled_page.wanted) as entered:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    with qtbot.waitSignal(filled_page.wanted) as clicked:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)

    assert entered.args == clicked.args == [NavigationRequest("where", "b/one.dat")]


def test_tab_leads_from_the_table_to_what_can_be_done_with_a_row(qtbot, filled_page):
    table = filled_page._files.table
    filled_page.activateWindow()
    qtbot.waitUntil(filled_page.isActiveWindow)
    table.selectRow(3)
    table.setFocus()

    qtbot.keyClick(table, Qt.Key.Key_Tab)

    assert filled_page.focusWidget().text() == "Open folder"  # of what can be done now the first


def test_the_path_of_a_row_is_copied(still_desk, written, open_page, tmp_path):
    fill(written)
    page = open_page(still_desk)
    page._files.table.selectRow(3)

    page._actions._copy.trigger()

    assert QGuiApplication.clipboard().text() == str(tmp_path / "data" / "b" / "one.dat")


def test_cancelling_a_batch_leaves_all_of_its_files(qtbot, desk, site, open_page):
    save_settings(site.config, {"limits.bandwidth": 0.1})
    page = open_page(desk)
    batches = lambda: [it for it in page._transfers.transfers if it.files > 1]  # noqa: E731
    desk.controller.start()
    qtbot.waitUntil(lambda: bool(batches()))
    batch = batches()[0]
    page._live.selectRow(page._transfers.transfers.index(batch))

    page._cancel.trigger()
    desk.controller._order("set_bandwidth", bandwidth=0)

    qtbot.waitUntil(lambda: bool(desk.controller.state.last) and not desk.controller.state.at_work)
    assert desk.controller.state.last.waiting == batch.files


def test_transfers_keep_their_rows_until_they_end(qapp):
    model = TransfersModel()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    one = ActiveTransfer(1, 1, b"a.tif", 1, 100)
    two = ActiveTransfer(
        2, 2, b"b.tif", 5, 100, done=50, attempt=2, problem=Problem("link.lost", "Gone.")
    )

    model.show((one, two))
    model.show((two._replace(done=75), ActiveTransfer(3, 1, b"c.tif", 1, 0)))

    assert [model.index(row, 0).data() for row in range(2)] == ["b.tif and 4 more", "c.tif"]
    assert model.index(0, 1).data(FRACTION) == 0.75
    assert [model.index(0, column).data() for column in (1, 6, 7)] == ["75 %", "2", "Gone."]


def test_a_transfer_shows_what_is_sent_and_about_how_long_the_rest_takes(qapp):
    model = TransfersModel()

    model.show(
        (
            ActiveTransfer(1, 1, b"a", 1, 40_000_000, done=10_000_000, rate=1e6),
            ActiveTransfer(2, 2, b"b", 1, 40_000_000),
        )
    )

    rows = [[model.index(row, column).data() for column in (2, 3)] for row in range(2)]
    assert rows == [["10.0 MB of 40.0 MB", "about 30 s"], ["0 bytes of 40.0 MB", ""]]
