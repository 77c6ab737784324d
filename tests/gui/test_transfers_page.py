"""The page of transfers: what travels, and what became of every file."""

import os
import shutil
from contextlib import closing
from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QItemSelection, QItemSelectionModel, QMimeData, QModelIndex, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QTableView, QToolButton, QWidget

from mydata_like.app.settings_service import save_settings
from mydata_like.core.errors import Problem
from mydata_like.core.events import NextListed, TransferStarted
from mydata_like.core.model import EntryState, Outcome
from mydata_like.core.queries import FileRow
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.engine.user_overrides import NO_TRANSFER
from mydata_like.gui.pages.transfers_page import TransfersModel, TransfersPage
from mydata_like.gui.run_state import Phase
from mydata_like.gui.table_model import BELOW, RowsModel, column_width, style_table
from mydata_like.gui.tables.columns import FRACTION, file_columns, problem_columns
from mydata_like.gui.tables.table_panel import ActionRow, StartButton
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme.widgets import ElidedLabel
from tests.gui.ledgers import WrittenLedger, an_entry, an_outcome

SELECT_ROWS = (
    QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
)
ADD_ROWS = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
MOVE = Qt.DropAction.MoveAction


@pytest.fixture
def open_page(qtbot):
    opened = []  # a page lives as long as someone knows it

    def open_it(context):
        page = TransfersPage(context)
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


def rows(page):
    """Return what becomes or became of files, below what is sent and what waits."""
    model = page._files.model
    return range(model.top, model.rowCount())


def states(page):
    return {page._files.model.row(row).state for row in rows(page)}


def names(page):
    return [page._files.model.index(row, 0).data() for row in rows(page)]


def shows(model):
    """Return the names of all rows, with the headings."""
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def select(page, *found):
    """Select these rows, or the files that wait at these places."""
    model = page._transfers
    select_row = page._files.table.selectionModel().select
    for number, row in enumerate(found):
        wanted = model.queued[row] if isinstance(row, int) else row
        how = SELECT_ROWS if not number else ADD_ROWS
        select_row(model.index(model.above.index(wanted), 0), how)


@pytest.fixture
def model(qapp, tmp_path):
    tasks = Tasks()
    model = TransfersModel(tasks)
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    yield model
    model.close()
    tasks.close()


def wait(*keys, size=1):
    return [FileRow(key, size, "found", None) for key in keys]


def travel(number, name, **known):
    return ActiveTransfer(number, 1, name, 1, **{"size": 10} | known)


def fill(written):
    written.ledger.record([an_entry(b"a/old.tif"), an_entry(b"b/one.dat", 9)])
    written.clock.move(60)
    written.ledger.record([an_entry(b"a/new.tif", state=EntryState.STAGED)])
    written.ledger.record_outcomes([an_outcome(b"a/bad.tif"), an_outcome(b"c/w.tif", "waiting")])


@pytest.fixture
def filled_page(still_context, written, open_page):
    fill(written)
    return open_page(still_context)


def test_after_a_run_every_file_is_reported_to_be_verified(qtbot, context, site, open_page):
    site.run()

    page = open_page(context)

    assert len(names(page)) == len(site.place.expected_files())
    assert {page._files.model.index(row, 1).data() for row in range(3)} == {"Verified"}


def test_the_newest_file_is_on_top(still_context, written, open_page):
    fill(written)

    assert names(open_page(still_context)) == ["w.tif", "new.tif", "bad.tif", "one.dat", "old.tif"]


def test_typing_filters_by_name(qtbot, still_context, written, open_page):
    fill(written)
    page = open_page(still_context)

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


def test_what_leaves_nothing_says_so_and_can_be_lifted(qtbot, still_context, written, open_page):
    fill(written)
    page = open_page(still_context)
    page.look_for("folder:nowhere")
    qtbot.waitUntil(lambda: names(page) == [])
    assert page._files._empty.text() == "No matching rows."

    qtbot.mouseClick(page._files._all, Qt.MouseButton.LeftButton)

    qtbot.waitUntil(lambda: len(names(page)) == 5)


def test_without_a_ledger_the_page_says_what_it_is_for(still_context, open_page):
    assert open_page(still_context)._files._empty.text() == "No file has been sent yet."


def test_a_run_can_be_started_where_no_file_was_sent(controller, still_context, written, open_page):
    page = open_page(still_context._replace(controller=controller))
    start = page.findChild(StartButton)
    assert not start.isVisible()  # no run can start yet

    controller.turn(phase=Phase.IDLE)
    start.click()

    assert controller.orders == ["start"]
    assert not start.isVisible()


def test_the_header_orders_all_rows(qtbot, still_context, written, open_page):
    fill(written)
    page = open_page(still_context)

    page._files.table.sortByColumn(2, Qt.SortOrder.DescendingOrder)

    qtbot.waitUntil(lambda: names(page)[0] == "one.dat")


def test_rows_are_copied_with_tabs_as_they_are_shown(qtbot, still_context, written, open_page):
    fill(written)
    page = open_page(still_context)
    table = page._files.table
    table.setColumnHidden(2, True)
    table.selectAll()

    table.copy_rows()

    qtbot.waitUntil(lambda: "one.dat" in QGuiApplication.clipboard().text())
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "Name\tState\tWhen\tFolder\tWhat happened"  # with the second lines
    assert lines[3].startswith("bad.tif\tFailed\t")
    assert len(lines) == 6


def test_selected_rows_stay_selected_when_the_engine_writes(
    qtbot, still_context, written, open_page
):
    fill(written)
    page = open_page(still_context)
    page._files.table.selectRow(4)
    written.clock.move(60)
    written.ledger.record([an_entry(b"z/newer.tif")])

    with qtbot.waitSignal(page._files.model.relocated, timeout=10_000):
        still_context.controller.ledger_changed.emit()

    assert names(page)[0] == "newer.tif"
    assert [row.key for row in page._files.table.rows()] == [b"a/old.tif"]


def test_the_scroll_position_far_below_is_kept(qtbot, still_context, written, open_page):
    written.fill(500)
    page = open_page(still_context)
    table, bar = page._files.table, page._files.table.verticalScrollBar()
    bar.setValue(300)
    qtbot.waitUntil(lambda: page._files.model.row(table.rowAt(0)) is not None)
    before = page._files.model.row(bar.value()).key
    written.clock.move(60)
    written.ledger.record([an_entry(b"z/%03d" % number) for number in range(7)])

    with qtbot.waitSignal(page._files.model.relocated, timeout=10_000):
        still_context.controller.ledger_changed.emit()

    assert bar.value() == 307
    qtbot.waitUntil(lambda: page._files.model.row(307) is not None)
    assert page._files.model.row(307).key == before


def test_columns_stay_as_the_user_left_them(qtbot, still_context, written, open_page):
    fill(written)
    page = open_page(still_context)
    first = page._files.table
    menu = first.column_menu()
    next(action for action in menu.actions() if action.text() == "Size").trigger()
    first.setColumnWidth(0, 123)
    qtbot.waitUntil(lambda: not first._kept._saving.isActive())

    another = open_page(still_context)

    second = another._files.table
    assert second.isColumnHidden(2)
    assert second.columnWidth(0) == 123


def turn(controller, phase):
    """Set this state, whatever the status query returns."""
    controller._look_timer.stop()
    controller._set(phase=phase, missing=())


def test_the_rows_are_counted_in_the_plural(spoken, still_context, written, open_page):
    spoken("en")
    fill(written)

    assert open_page(still_context)._files._count.text() == "5 rows"


def test_what_can_be_done_depends_on_what_is_selected(qtbot, still_context, written, open_page):
    fill(written)
    page = open_page(still_context)
    turn(still_context.controller, Phase.RUNNING)
    actions = page._files.row_actions

    page._files.table.selectRow(2)  # the one that failed
    assert actions._retry.isEnabled()
    assert not actions._web.isEnabled()
    page._files.table.selectRow(3)
    assert not actions._retry.isEnabled()
    assert actions._web.isEnabled()
    with qtbot.waitSignal(page._controller.page_wanted) as wanted:
        actions._where.trigger()
    assert wanted.args == ["where", "b/one.dat"]


@pytest.mark.parametrize(
    ("phase", "enabled"),
    [(Phase.IDLE, True), (Phase.PAUSED, True), (Phase.ELSEWHERE, False), (Phase.TESTING, False)],
)
def test_what_failed_is_tried_again_only_where_a_run_can_do_it(filled_page, phase, enabled):
    filled_page._files.table.selectRow(2)
    turn(filled_page._controller, phase)

    assert filled_page._files.row_actions._retry.isEnabled() is enabled


def test_enter_and_a_double_click_show_the_journey_of_a_file(qtbot, filled_page):
    table = filled_page._files.table
    table.selectRow(3)
    place = table.visualRect(table.model().index(3, 0)).center()

    with qtbot.waitSignal(filled_page._controller.page_wanted) as entered:
        qtbot.keyClick(table, Qt.Key.Key_Return)
    with qtbot.waitSignal(filled_page._controller.page_wanted) as clicked:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        qtbot.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)

    assert entered.args == clicked.args == ["where", "b/one.dat"]


def test_tab_leads_from_the_table_to_what_can_be_done_with_a_row(qtbot, filled_page):
    table = filled_page._files.table
    filled_page.activateWindow()
    qtbot.waitUntil(filled_page.isActiveWindow)
    table.selectRow(3)
    table.setFocus()

    qtbot.keyClick(table, Qt.Key.Key_Tab)

    assert filled_page.focusWidget().text() == "Open folder"  # of what can be done now the first


def test_only_what_can_be_done_with_the_selected_files_is_shown(qtbot, filled_page):
    table = filled_page._files.table
    row = filled_page.findChild(ActionRow)
    before = row.height()

    def shown():
        buttons = [one.text() for one in row.findChildren(QToolButton) if one.isVisible()]
        hints = [one.full_text for one in row.findChildren(ElidedLabel) if one.isVisible()]
        return [text for text in buttons if text], hints

    assert shown() == ([], ["Select files to open their folder, find them, or send them again."])
    table.selectRow(3)
    one_file = ["Open folder", "Open on server", "Where is it?", "Copy path"]
    qtbot.waitUntil(lambda: shown() == (one_file, []))
    table.selectAll()
    qtbot.waitUntil(lambda: shown() == (["Copy path"], []))
    assert row.height() == before


def test_the_path_of_a_row_is_copied(still_context, written, open_page, tmp_path):
    fill(written)
    page = open_page(still_context)
    page._files.table.selectRow(3)

    page._files.row_actions._copy.trigger()

    assert QGuiApplication.clipboard().text() == str(tmp_path / "data" / "b" / "one.dat")


def test_cancelling_a_batch_leaves_all_of_its_files(qtbot, context, site, open_page):
    save_settings(site.config, {"limits.bandwidth": 0.1})
    page = open_page(context)
    batches = lambda: [it for it in page._transfers.transfers if it.files > 1]  # noqa: E731
    context.controller.start()
    qtbot.waitUntil(lambda: bool(batches()))
    batch = batches()[0]
    select(page, batch)

    page._files.row_actions._queue.hold.trigger()
    context.controller._order("set_bandwidth", bandwidth=0)

    qtbot.waitUntil(
        lambda: bool(context.controller.state.last) and not context.controller.state.at_work
    )
    assert context.controller.state.last.waiting == batch.files


@pytest.fixture
def numbered(site):
    """Only two folders with ten files each."""
    for owner in site.data.iterdir():
        shutil.rmtree(owner) if owner.is_dir() else owner.unlink()
    for number in range(20):
        file = site.data / "alice" / f"Set {number // 10}" / f"{number:02}.raw"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(1_000_000))
    return site


def start_one_by_one(qtbot, context, site, page):
    """Start a run that takes long for each file, and wait until the page shows what comes next."""
    save_settings(
        site.config,
        {"transfer.channels": 1, "transfer.batch_below": 0, "limits.bandwidth": 0.05},
    )
    context.controller.start()
    model = page._transfers
    qtbot.waitUntil(lambda: bool(model.transfers) and len(model.queued) >= 17)
    assert page._files.table.isVisible()


def test_files_that_failed_before_are_shown_once_while_they_are_sent_again(
    qtbot, context, numbered, open_page
):
    problem = Problem("file.refused", "The server refused it.", "")
    with closing(WrittenLedger.of(*context.controller.place)) as written:
        for path in numbered.data.glob("*/*/*"):
            key, status = bytes(path.relative_to(numbered.data)), path.stat()
            failure = Outcome(key, status.st_size, status.st_mtime_ns, "failed", problem)
            written.ledger.record_outcomes([failure])
    page = open_page(context)
    assert states(page) == {"failed"}

    start_one_by_one(qtbot, context, numbered, page)

    qtbot.waitUntil(lambda: not states(page))
    page._files.select_states(frozenset({"failed"}))
    qtbot.waitUntil(lambda: states(page) == {"failed"})
    page._files.select_states(frozenset())
    assert let_it_end(qtbot, context).verified == 20


def test_what_comes_next_is_shown_and_what_is_chosen_goes_first(
    qtbot, context, numbered, open_page
):
    page = open_page(context)
    start_one_by_one(qtbot, context, numbered, page)
    model = page._transfers
    path = model.queued[4].key
    select(page, 4)
    assert page._files.row_actions._queue.send_next.isEnabled()

    modifiers = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    press(qtbot, page, Qt.Key.Key_Up, modifiers)

    qtbot.waitUntil(lambda: model.queued[0].key == path)
    assert [row.key for row in page._files.table.rows()] == [path]
    context.controller._order("set_bandwidth", bandwidth=600_000)
    qtbot.waitUntil(lambda: path in [it.name for it in model.transfers])
    assert len(model.queued) >= 15
    context.controller._order("set_bandwidth", bandwidth=0)
    qtbot.waitUntil(
        lambda: bool(context.controller.state.last) and not context.controller.state.at_work
    )


@pytest.mark.parametrize("released", [False, True])
def test_a_waiting_file_is_held_back_until_it_is_released(
    qtbot, context, numbered, open_page, released
):
    page = open_page(context)
    start_one_by_one(qtbot, context, numbered, page)
    model = page._transfers
    path = model.queued[3].key
    select(page, 3)
    assert page._selected_waiting == [path]
    queue = page._files.row_actions._queue
    assert queue.hold.isEnabled()
    assert "found" not in states(page)  # the rows above have these files

    queue.hold.trigger()
    qtbot.waitUntil(lambda: path not in [it.key for it in model.queued])
    qtbot.waitUntil(lambda: "Held back" in shows(model))
    held = model.above[shows(model).index("Held back") + 1]
    assert (held.key, held.message) == (path, "The user held this file back.")
    if released:
        select(page, held)
        queue.send_next.trigger()
        qtbot.waitUntil(lambda: "Held back" not in shows(model))
    context.controller._order("set_bandwidth", bandwidth=0)

    qtbot.waitUntil(
        lambda: bool(context.controller.state.last) and not context.controller.state.at_work
    )
    assert context.controller.state.last.waiting == (not released)


def press(qtbot, page, key, modifiers):
    """Press a key in the upper table."""
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    page._files.table.setFocus()
    qtbot.keyClick(page._files.table, key, modifiers)
    for modifier in (Qt.Key.Key_Shift, Qt.Key.Key_Alt):  # otherwise Qt regards them as still held
        qtbot.keyClick(page._files.table, modifier)


def shown(model, paths):
    """Return those of these waiting files that are shown, in their order."""
    return [file.key for file in model.queued if file.key in paths]


def let_it_end(qtbot, context):
    """Let the run send the rest at once; return its last state."""
    context.controller._order("set_bandwidth", bandwidth=0)
    qtbot.waitUntil(
        lambda: bool(context.controller.state.last) and not context.controller.state.at_work
    )
    return context.controller.state.last


def test_files_that_are_held_back_are_sent_after_all_when_that_is_undone(
    qtbot, context, numbered, open_page
):
    page = open_page(context)
    start_one_by_one(qtbot, context, numbered, page)
    model = page._transfers
    both = [file.key for file in model.queued][:2]
    refused = []
    context.controller.command_refused.connect(refused.append)
    page._files.table.selectionModel().select(
        QItemSelection(model.index(0, 0), model.index(4, 0)),  # with the headings
        SELECT_ROWS,
    )

    page._files.row_actions._queue.hold.trigger()
    qtbot.waitUntil(lambda: not shown(model, both))
    assert page._toast.isVisible()
    assert page._toast._message.full_text == "3 file(s) are held back."
    page._toast._button.click()

    assert not page._toast.isVisible()
    listed = lambda: {*shown(model, both), *(it.name for it in model.transfers)}  # noqa: E731
    qtbot.waitUntil(lambda: {*both} <= listed())  # the first may be sent at once
    last = let_it_end(qtbot, context)
    assert (last.sent, last.waiting, refused) == (20, 0, [])


def test_a_batch_that_is_held_back_is_sent_after_all_when_that_is_undone(
    qtbot, context, site, open_page
):
    folder = next(path for path in site.data.glob("*/*") if path.is_dir())
    (folder / "large.raw").write_bytes(os.urandom(9_000_000))  # too large for the batch
    save_settings(site.config, {"limits.bandwidth": 0.4})
    page = open_page(context)
    context.controller.start()
    batches = lambda: [it for it in page._transfers.transfers if it.files > 1]  # noqa: E731
    qtbot.waitUntil(lambda: bool(batches()))
    batch = batches()[0]
    select(page, batch)

    page._files.row_actions._queue.hold.trigger()
    qtbot.waitUntil(lambda: batch.number not in [it.number for it in page._transfers.transfers])
    assert page._toast._message.full_text == f"{batch.files} file(s) are held back."
    press(qtbot, page, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)

    assert not page._toast.isVisible()
    assert let_it_end(qtbot, context).waiting == 0


def test_what_a_run_lacks_when_all_is_held_back_is_sent_by_a_new_one(
    qtbot, context, numbered, open_page
):
    page = open_page(context)
    start_one_by_one(qtbot, context, numbered, page)
    refused = []
    context.controller.command_refused.connect(refused.append)

    save_settings(numbered.config, {"limits.bandwidth": 0})
    page._toast.hold_back([b"alice/Set 0", b"alice/Set 1"], page._transfers.transfers)
    qtbot.waitUntil(lambda: context.controller.state.phase == "idle")
    first = context.controller.state.last
    page._toast._button.click()

    assert not page._toast.isVisible()
    qtbot.waitUntil(lambda: context.controller.state.last not in (None, first))
    assert first.waiting > 17
    assert (context.controller.state.last.verified, refused) == (20, [])


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({"phase": Phase.PAUSED}, True),
        ({"phase": Phase.IDLE}, True),
        ({"phase": Phase.STOPPING}, False),
        ({"phase": Phase.ELSEWHERE}, False),
        ({"run": "the next one"}, False),
    ],
)
def test_undoing_is_offered_as_long_as_a_run_can_do_it(filled_page, changes, offered):
    turn(filled_page._controller, Phase.RUNNING)
    filled_page._toast.hold_back([b"a/b.tif"])
    assert filled_page._toast._message.full_text == "b.tif is held back."
    assert filled_page._toast.isVisible()

    filled_page._controller._set(**changes)

    assert filled_page._toast.isVisible() is offered


@pytest.mark.parametrize(
    "act",
    [
        lambda page: page._up.trigger(),
        lambda page: page._files.row_actions._queue.send_next.trigger(),
        lambda page: page._files.row_actions._retry.trigger(),
        lambda page: page._controller.command_refused.emit(NO_TRANSFER),
    ],
    ids=["move up", "send next", "try again", "refusal"],
)
def test_undoing_is_not_offered_after_another_action(filled_page, act):
    turn(filled_page._controller, Phase.RUNNING)
    filled_page._transfers.show_queued(wait(b"a/a.tif", b"a/b.tif"))
    select(filled_page, 1)
    filled_page._files.row_actions._retry.setEnabled(True)
    filled_page._toast.hold_back([b"a/b.tif"])

    act(filled_page)

    assert not filled_page._toast.isVisible()


def test_waiting_files_are_moved_with_keys(qtbot, context, numbered, open_page):
    page = open_page(context)
    start_one_by_one(qtbot, context, numbered, page)
    model = page._transfers
    paths = [file.key for file in model.queued]
    select(page, 3, 4)

    press(qtbot, page, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    expected = [*paths[:2], *paths[3:5], paths[2], *paths[5:]]
    qtbot.waitUntil(lambda: shown(model, paths) == expected)
    assert page._selected_waiting == paths[3:5]  # they stay selected
    press(qtbot, page, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: shown(model, paths) == paths)

    assert let_it_end(qtbot, context).sent == 20


def test_files_that_are_dropped_at_another_place_are_sent_in_that_order(
    qtbot, context, numbered, open_page
):
    page = open_page(context)
    start_one_by_one(qtbot, context, numbered, page)
    model = page._transfers
    paths = [file.key for file in model.queued]
    above = model.above.index(model.queued[0])
    mime = model.mimeData([model.index(above + at, 0) for at in (4, 1)])

    assert model.dropMimeData(mime, MOVE, above + 3, 0, QModelIndex())

    assert [file.key for file in model.queued] == paths  # until the engine has answered
    expected = [paths[0], paths[2], paths[1], paths[4], paths[3], *paths[5:]]
    qtbot.waitUntil(lambda: shown(model, paths) == expected)
    started = []
    context.controller.engine.events_received.connect(
        lambda events: started.extend(it.name for it in events if isinstance(it, TransferStarted))
    )
    let_it_end(qtbot, context)
    assert started[:5] == expected[:5]


@pytest.mark.parametrize(
    ("places", "at", "first"),
    [
        ([2], 0, [b"c", b"a", b"b"]),
        ([0], 2, [b"b", b"a"]),
        ([0], 4, [b"b", b"c", b"d", b"a"]),
        ([3], -1, []),
        ([0], -1, [b"b", b"c", b"d", b"a"]),
        ([1], 1, []),
        ([1], 2, []),
        ([0, 2], 1, [b"a", b"c", b"b"]),
    ],
)
def test_a_drop_names_the_files_down_to_the_lowest_that_moves(model, places, at, first):
    asked = []
    model.order_wanted.connect(asked.append)
    model.show_transfers((travel(1, b"x"),))
    model.show_queued(wait(b"a", b"b", b"c", b"d"))
    mime = model.mimeData([model.index(3 + place, column) for place in places for column in (0, 1)])

    assert model.dropMimeData(mime, MOVE, at if at < 0 else 3 + at, 0, QModelIndex())

    assert asked == ([first] if first else [])


def test_only_waiting_files_are_dragged_and_only_to_places_among_them(model):
    model.show_transfers((travel(1, b"x"),))
    model.show_queued(wait(b"a", b"b"))
    assert shows(model) == ["Under way", "x", "Waiting", "a", "b"]
    mime, none = model.mimeData([model.index(3, 0)]), QModelIndex()
    flags = [model.flags(model.index(row, 0)) for row in range(5)]
    files = QMimeData()
    files.setUrls([QUrl("file:///a")])

    dragged = [row for row in range(5) if flags[row] & Qt.ItemFlag.ItemIsDragEnabled]
    assert dragged == [3, 4]
    assert not any(it & Qt.ItemFlag.ItemIsDropEnabled for it in flags)  # drops are between rows
    assert model.flags(none) & Qt.ItemFlag.ItemIsDropEnabled
    allowed = [model.canDropMimeData(mime, MOVE, row, 0, none) for row in range(-1, 7)]
    assert allowed == [True, False, False, False, True, True, True, False]
    assert not model.canDropMimeData(mime, MOVE, 3, 0, model.index(3, 0))
    assert not model.dropMimeData(mime, MOVE, 0, 0, none)
    assert not model.canDropMimeData(files, MOVE, 3, 0, none)


def test_a_row_that_is_being_dragged_may_be_sent_meanwhile(model):
    asked = []
    model.order_wanted.connect(asked.append)
    model.show_queued(wait(b"a", b"b", b"c"))
    mime = model.mimeData([model.index(1, 0)])
    model.show_transfers((travel(1, b"a"),))
    assert shows(model) == ["Under way", "a", "Waiting", "b", "c"]

    assert model.dropMimeData(mime, MOVE, 5, 0, QModelIndex())

    assert asked == []


def test_nothing_can_be_dragged_without_a_run_of_this_window(filled_page):
    turn(filled_page._controller, Phase.RUNNING)
    assert filled_page._files.table.dragEnabled()

    turn(filled_page._controller, Phase.ELSEWHERE)

    assert not filled_page._files.table.dragEnabled()


def test_nothing_is_listed_next_while_no_run_is_under_way(still_context, open_page):
    page = open_page(still_context)
    page._show_next(NextListed(paths=(b"a",), sizes=(1,)))

    assert page._transfers.rowCount() == 0
    assert not page._files.row_actions._queue.send_next.isEnabled()


def test_what_comes_next_is_asked_for_only_while_it_is_seen(qtbot, still_context):
    window = QWidget()
    page = TransfersPage(still_context, window)
    qtbot.addWidget(window)
    window.show()
    assert page._ask_timer.isActive()

    window.hide()  # into the tray
    assert not page._ask_timer.isActive()
    window.show()
    assert page._ask_timer.isActive()


def test_what_comes_next_is_below_the_transfers_in_the_order_of_the_engine(model):
    a, b, c, d = wait(b"a", b"b", b"c", b"d", size=1_000_000)

    model.show_transfers((travel(1, b"x"),))
    model.show_queued([a, b, c])
    assert shows(model) == ["Under way", "x", "Waiting", "a", "b", "c"]
    assert [model.index(3, column).data() for column in (1, 2, 3)] == ["Not sent yet", "1.0 MB", ""]
    assert model.index(3, 1).data(FRACTION) is None

    model.show_queued([c, a, d])
    assert shows(model) == ["Under way", "x", "Waiting", "c", "a", "d"]

    model.show_transfers((travel(2, b"c"),))
    assert shows(model) == ["Under way", "c", "Waiting", "a", "d"]
    model.show_queued([])
    assert shows(model) == ["Under way", "c"]
    model.show_transfers(())
    assert shows(model) == []


def test_transfers_keep_their_rows_until_they_end(model):
    one = travel(1, b"a.tif", size=100)
    two = ActiveTransfer(2, 2, b"b.tif", 5, 100, done=50, attempt=2)

    model.show_transfers((one, two))
    lost = Problem("link.lost", "Gone.")
    model.show_transfers((two._replace(done=75), travel(3, b"c.tif", size=0, problem=lost)))

    assert shows(model) == ["Under way", "b.tif and 4 more", "c.tif"]
    first, second = (model.index(row, 1) for row in (1, 2))
    assert (first.data(), first.data(BELOW)) == ("Attempt 2: 75 bytes of 100 bytes", "75 %")
    assert first.data(FRACTION) == 0.75
    assert (second.data(BELOW), second.data(FRACTION)) == ("Gone.", None)


def test_a_transfer_shows_what_is_sent_and_about_how_long_the_rest_takes(model):
    model.show_transfers(
        (
            travel(1, b"a", size=40_000_000, done=10_000_000, rate=1e6),
            travel(2, b"b", size=40_000_000, done=512, rate=214.0),  # too little to tell
        )
    )

    cells = [model.index(row, column) for row in (1, 2) for column in (1, 3)]
    assert [(index.data(), index.data(BELOW)) for index in cells] == [
        ("Sending: 10.0 MB of 40.0 MB", "25 %"),
        ("about 30 s left", "1.0 MB/s"),
        ("Sending: 512 bytes of 40.0 MB", "0 %"),
        ("", ""),
    ]
    spoken = cells[0].data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Sending: 10.0 MB of 40.0 MB, 25 %"


def test_of_many_files_that_wait_the_first_are_shown_until_the_user_wants_all(qtbot, filled_page):
    turn(filled_page._controller, Phase.RUNNING)
    model, table = filled_page._transfers, filled_page._files.table
    model.show_queued(wait(*(b"%02d" % number for number in range(40))))
    assert shows(model)[:8] == ["Waiting", "00", "01", "02", "03", "04", "Show 35 more", "Earlier"]

    table.setCurrentIndex(model.index(5, 0))
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert table.currentIndex().row() == 6
    qtbot.keyClick(table, Qt.Key.Key_Return)

    assert shows(model)[38:42] == ["37", "38", "39", "Earlier"]


def test_a_click_shows_all_files_that_wait(qtbot, filled_page):
    turn(filled_page._controller, Phase.RUNNING)
    model, table = filled_page._transfers, filled_page._files.table
    model.show_queued(wait(*(b"%02d" % number for number in range(40))))

    place = table.visualRect(model.index(6, 0)).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)

    assert shows(model)[40:42] == ["39", "Earlier"]


def test_the_keyboard_passes_over_headings(qtbot, filled_page):
    turn(filled_page._controller, Phase.RUNNING)
    model, table = filled_page._transfers, filled_page._files.table
    model.show_transfers((travel(1, b"x"),))
    model.show_queued(wait(b"a"))
    table.selectRow(1)

    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert [row.key for row in table.rows()] == [b"a"]
    qtbot.keyClick(table, Qt.Key.Key_Down)
    assert [row.key for row in table.rows()] == [b"c/w.tif"]
    table.selectAll()
    assert len(table.rows()) == 7  # without the three headings
    assert filled_page._files._count.text() == "7 row(s)"


@pytest.mark.parametrize(
    ("states", "text", "expected"),
    [
        ({"staged"}, "", ["Under way", b"a/x", "Earlier"]),
        ({"waiting"}, "", ["Held back", b"a/h", "Earlier"]),
        ({"found"}, "", []),  # the ledger has all of them
        ({"verified"}, "", []),
        ((), "B/", ["Waiting", b"b/w", "Earlier"]),
    ],
)
def test_filters_apply_to_what_is_sent_and_what_waits(qtbot, filled_page, states, text, expected):
    turn(filled_page._controller, Phase.RUNNING)
    model = filled_page._transfers
    model.show_transfers((travel(1, b"a/x"),))
    model.show_queued(wait(b"b/w"), [FileRow(b"a/h", 1, "waiting", None)])

    filled_page._files.field.setText(text)
    filled_page._files.select_states(frozenset(states))

    def paths():
        return [getattr(row, "name", row[0]) for row in model.above]

    qtbot.waitUntil(lambda: paths() == expected)


def test_the_scroll_position_is_kept_while_files_are_sent(qtbot, still_context, written, open_page):
    written.fill(500)
    page = open_page(still_context)
    turn(still_context.controller, Phase.RUNNING)
    settle(qtbot, page)
    model, bar = page._transfers, page._files.table.verticalScrollBar()
    model.show_queued(wait(b"1", b"2", b"3"))
    bar.setValue(300)
    qtbot.waitUntil(lambda: model.row(bar.value()) is not None)
    before = model.row(bar.value()).key

    model.show_transfers((travel(1, b"x"), travel(2, b"y")))
    qtbot.waitUntil(lambda: model.row(bar.value()) is not None)
    assert (bar.value(), model.row(bar.value()).key) == (303, before)

    model.show_transfers((travel(2, b"y"),))
    model.show_queued(())
    assert (bar.value(), model.row(bar.value()).key) == (298, before)
    bar.setValue(0)
    model.show_queued(wait(b"1"))
    assert bar.value() == 0


def test_a_window_that_comes_back_from_the_tray_shows_what_happened_meanwhile(
    qtbot, still_context, written, filled_page
):
    filled_page.hide()
    written.ledger.record([an_entry(b"a/newest.tif")])
    still_context.controller.ledger_changed.emit()

    filled_page.show()

    qtbot.waitUntil(lambda: "newest.tif" in names(filled_page))


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("columns", [file_columns, problem_columns])
def test_states_and_times_are_not_cut_off(spoken, qtbot, language, columns):
    spoken(language)
    model, table = RowsModel(), QTableView()
    qtbot.addWidget(table)
    model.columns = tuple(columns())
    style_table(table)
    table.setModel(model)
    yesterday = (datetime.now().astimezone() - timedelta(days=1)).replace(hour=23, minute=59)
    months = [yesterday - timedelta(days=30 * number) for number in range(24)]
    states = ("found", "registered", "waiting", "failed", "skipped")
    model.show(
        FileRow(b"a", 1, state, at, verified_at=at)
        for state in states
        for at in (int(it.timestamp()) for it in months)
    )
    for number, column in enumerate(model.columns):
        if column.name in ("state", "at", "verified"):
            assert table.sizeHintForColumn(number) <= column_width(table, column.width)
