"""What the window remembers: how it is arranged, sorted, and what was looked at last."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QSplitter, QStackedWidget, QTableView, QTableWidget

from mydata_like.core.model import FolderSums
from mydata_like.gui.pages.folders_page import FoldersPage
from mydata_like.gui.pages.history_page import HistoryPage
from mydata_like.gui.pages.log_page import LogPage
from mydata_like.gui.pages.problems_page import ProblemsPage
from mydata_like.gui.pages.transfers_page import TransfersPage
from mydata_like.gui.pages.where_page import WherePage
from mydata_like.gui.window import MainWindow
from mydata_like.gui.window_state import KeptColumns
from mydata_like.ledger.sql import PastRunRow
from tests.gui.ledgers import an_entry


@pytest.fixture
def open_page(qtbot, still_context):
    opened = []  # a page lives as long as someone knows it

    def open_it(make):
        page = make(still_context)
        qtbot.addWidget(page)
        opened.append(page)
        page.resize(1000, 700)
        page.show()
        page.show_page()
        qtbot.waitUntil(lambda: not still_context.tasks.busy)
        return page

    return open_it


@pytest.fixture
def open_window(qtbot, still_context):
    def open_it():
        window = MainWindow(still_context)
        qtbot.addWidget(window)
        window.show()
        return window

    return open_it


def files(page):
    model = page._files.model
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def sort(qtbot, table, column):
    header = table.horizontalHeader()
    place = header.rect().center()
    place.setX(header.sectionViewportPosition(column) + 5)
    qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)


@pytest.mark.parametrize(("column", "first"), [(2, "small"), (0, "large")], ids=["size", "folder"])
def test_rows_are_sorted_as_the_user_left_them(qtbot, written, open_page, column, first):
    written.ledger.record([an_entry(b"a/large", 9), an_entry(b"b/small", 1)])
    before = open_page(TransfersPage)
    qtbot.waitUntil(lambda: files(before) == ["small", "large"])
    sort(qtbot, before._files.table, column)

    after = open_page(TransfersPage)

    header = after._files.table.horizontalHeader()
    assert header.sortIndicatorSection() == column
    assert header.sortIndicatorOrder() == Qt.SortOrder.AscendingOrder
    qtbot.waitUntil(lambda: files(after)[:1] == [first])


def test_runs_are_sorted_as_the_user_left_them(qtbot, written, open_page):
    written.ledger.record_run(PastRunRow("a", written.clock.now(), None, {}))
    sort(qtbot, open_page(HistoryPage)._runs.table, 3)

    view = open_page(HistoryPage)._runs.model.view

    assert (view.order, view.descending) == ("size", False)


def test_a_column_that_sorts_nothing_is_not_marked_as_if_it_did(qtbot, written, open_page):
    written.fill(2)
    table = open_page(TransfersPage)._files.table

    table.setColumnHidden(5, False)

    sort(qtbot, table, 5)

    assert table.horizontalHeader().sortIndicatorSection() == 3


def show_halves(page):
    """Return the splitter of a page with both its halves, of which one may have nothing to say."""
    halves = page.findChild(QSplitter)
    if isinstance(stack := halves.parent(), QStackedWidget):
        stack.setCurrentWidget(halves)
    for part in (halves, halves.widget(0), halves.widget(1), *halves.findChildren(QTableView)):
        part.show()
    QApplication.processEvents()
    return halves


@pytest.mark.parametrize("make", [HistoryPage, ProblemsPage, WherePage])
def test_halves_stay_as_the_user_left_them(qtbot, open_page, make):
    before = show_halves(open_page(make))
    usual = before.sizes()
    before.moveSplitter(usual[0] + 40, 1)
    chosen = before.sizes()
    assert chosen != usual

    assert show_halves(open_page(make)).sizes() == chosen


def resize(qtbot, header):
    header.resizeSection(0, 123)
    kept = header.findChild(KeptColumns)
    qtbot.waitUntil(lambda: not kept._saving.isActive())


def test_columns_that_no_ledger_orders_stay_as_the_user_left_them(qtbot, open_page):
    header = open_page(LogPage).findChild(QTableView).horizontalHeader()
    header.parentWidget().show()
    resize(qtbot, header)

    again = open_page(LogPage).findChild(QTableView).horizontalHeader()

    assert again.sectionSize(0) == 123


def test_the_columns_of_folders_stay_as_the_user_left_them(qtbot, written, open_page):
    written.ledger.record_folders([FolderSums(b"ann/x", "x", None, "ann", "")])
    page = open_page(FoldersPage)
    qtbot.waitUntil(lambda: page._model.rowCount() == 1)
    resize(qtbot, page._tree.header())

    assert open_page(FoldersPage)._tree.header().sectionSize(0) == 123


def test_the_window_opens_where_and_as_large_as_it_was(open_window):
    before = open_window()
    before.resize(before.width(), 655)
    before.show_page("history")
    before.close()

    after = open_window()

    assert after.height() == 655  # Qt makes it no wider than the screen, which is small here
    assert after.page is after.find_page("history")


def test_a_page_that_no_longer_exists_is_no_error(still_context, open_window):
    still_context.memory.setValue("window/page", "fax")

    window = open_window()

    assert window.page is window.find_page("overview")


def test_an_arrangement_of_fewer_columns_is_forgotten(qtbot, still_context):
    """Qt would show a new column, even if it is hidden at first."""
    for columns in (2, 3):
        table = QTableWidget(1, columns)
        qtbot.addWidget(table)
        kept = KeptColumns("some", table.horizontalHeader(), still_context.memory)
        if columns == 2:
            kept.save()

    assert not kept.restore()
