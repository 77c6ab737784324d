"""A table of which only those rows are in memory that are looked at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QAbstractItemModelTester

from mydata_like.core.model import EntryState
from mydata_like.core.queries import View
from mydata_like.gui.tables.columns import file_columns
from mydata_like.gui.tables.table_view import ELLIPSIS, WindowedModel
from mydata_like.gui.tasks import Tasks
from tests.gui.ledgers import WrittenLedger, an_entry

BY_NAME = View(order="name", descending=False)
MANY = 100_000
DESCENDING = Qt.SortOrder.DescendingOrder


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WrittenLedger]:
    written = WrittenLedger(tmp_path_factory.mktemp("large") / "ledger.db")
    written.fill(MANY)
    yield written
    written.close()


@pytest.fixture
def written(tmp_path: Path) -> Iterator[WrittenLedger]:
    written = WrittenLedger(tmp_path / "ledger.db")
    yield written
    written.close()


@pytest.fixture
def model(qapp) -> Iterator[WindowedModel]:
    tasks = Tasks()
    model = WindowedModel(file_columns(), tasks)
    yield model
    model.close()
    tasks.close()
    model.deleteLater()


@pytest.fixture
def tested(model: WindowedModel) -> WindowedModel:
    """A model whose every change is examined, which looks at every row."""
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    return model


def show(qtbot, model: WindowedModel, written: WrittenLedger, view: View = BY_NAME) -> None:
    with qtbot.waitSignal(model.ordered):
        model.show(written.open, view)


def text(model: WindowedModel, row: int, column: int = 0) -> str:
    return model.data(model.index(row, column))


def test_the_first_rows_are_shown_before_all_are_in_order(qtbot, model, large):
    with qtbot.waitSignal(model.modelReset):
        model.show(large.open, BY_NAME)

    assert text(model, 0) == "file 000000.tif"
    assert not model.complete
    qtbot.waitUntil(lambda: model.complete)
    assert model.rowCount() == MANY


def test_a_row_far_below_shows_dots_until_it_has_been_read(qtbot, model, large):
    show(qtbot, model, large)

    assert text(model, 87_654) == ELLIPSIS
    qtbot.waitUntil(lambda: text(model, 87_654) == "file 087654.tif")


def test_of_rows_that_were_scrolled_past_only_the_last_are_read(qtbot, model, large):
    show(qtbot, model, large)

    for row in range(1000, 90_000, 1000):
        text(model, row)
    qtbot.waitUntil(lambda: text(model, 89_000) != ELLIPSIS)

    assert text(model, 1000) == ELLIPSIS


def test_rows_that_were_not_read_for_long_are_forgotten(qtbot, model, large):
    show(qtbot, model, large)

    for row in range(300, 7_000, 100):
        qtbot.waitUntil(lambda row=row: text(model, row) != ELLIPSIS)

    assert model.row(0) is None
    assert model.row(6_900) is not None


def test_another_order_is_made_by_the_ledger(qtbot, model, large):
    show(qtbot, model, large)

    with qtbot.waitSignal(model.ordered):
        model.sort(2, DESCENDING)

    assert text(model, 0) == f"file {MANY - 1:06d}.tif"
    assert model.view.order == "size"


def test_only_the_last_of_many_filters_is_shown(qtbot, model, large):
    for letters in ("9", "98", "987", "98765"):
        model.show(large.open, View(text=letters, order="name", descending=False))
    qtbot.waitUntil(lambda: not model.busy)

    assert model.rowCount() == 1
    assert text(model, 0) == "file 098765.tif"


def test_what_the_engine_writes_appears_and_rows_are_found_again(qtbot, tested, written):
    written.fill(300)
    show(qtbot, tested, written)
    tested.anchors = lambda: [b"d/file 000010.tif", b"gone"]
    written.ledger.record([an_entry(b"a new one", state=EntryState.STAGED)])

    with qtbot.waitSignal(tested.relocated, timeout=10_000) as relocated:
        tested.refresh()

    assert relocated.args == [{b"d/file 000010.tif": 11}]
    assert tested.rowCount() == 301
    assert text(tested, 0) == "a new one"
    assert text(tested, 0, 1) == "Sent"


def test_the_ledger_is_not_read_repeatedly(qtbot, model, written):
    written.fill(3)
    show(qtbot, model, written)

    for _ in range(50):
        model.refresh()
    with qtbot.waitSignal(model.relocated, timeout=10_000):
        model.refresh()

    assert written.opened == 2


def test_the_ledger_is_not_read_while_nobody_sees_the_rows(qtbot, model, written):
    written.fill(3)
    show(qtbot, model, written)
    waits = next(timer for timer in model.findChildren(QTimer) if timer.isActive())

    model.refresh()
    model.rest()
    with qtbot.waitSignal(waits.timeout, timeout=10_000):
        pass
    assert not model.busy

    with qtbot.waitSignal(model.relocated, timeout=10_000):
        model.refresh()


def test_fewer_rows_than_before_leave_no_gap(qtbot, tested, written):
    written.fill(30)
    view = View(states=frozenset({"verified"}), order="name", descending=False)
    show(qtbot, tested, written, view)
    changed = [an_entry(b"d/file %06d.tif" % number, 1, EntryState.STAGED) for number in range(5)]
    written.ledger.record(changed)

    with qtbot.waitSignal(tested.relocated, timeout=10_000):
        tested.refresh()

    assert tested.rowCount() == 25
    assert text(tested, 0) == "file 000005.tif"


def test_a_ledger_that_is_not_there_yet_is_reported(qtbot, model):
    model.show(lambda view: None, View())
    qtbot.waitUntil(lambda: not model.busy)

    assert model.rowCount() == 0


def test_a_ledger_that_cannot_be_read_is_reported(qtbot, model, written, tmp_path):
    show(qtbot, model, written)
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"no ledger" * 1000)
    written.file = damaged

    show(qtbot, model, written)

    assert model.problem.code == "ledger.failed"
    assert model.rowCount() == 0


def test_rows_are_read_for_a_copy_however_many(qtbot, model, large):
    show(qtbot, model, large)
    copied = []

    model.read_rows([range(10, 12), range(50_000, 50_300)], copied.extend)
    qtbot.waitUntil(lambda: len(copied) == 302)

    assert copied[1].key == b"d/file 000011.tif"
