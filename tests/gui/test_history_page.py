"""The page of history: every run, and what it did."""

import csv
import json
from datetime import timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStyleOptionViewItem

from mydata_like.core.queries import RunRow, View
from mydata_like.gui.pages.history_page import DayBars, HistoryPage
from mydata_like.gui.run_state import Phase
from mydata_like.gui.tables.columns import file_columns, run_columns
from mydata_like.gui.tables.table_panel import export_rows
from mydata_like.gui.theme import texts
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sql import PastRunRow
from tests.gui.ledgers import an_entry

SUMS = {"found": 3, "verified": 3, "waiting": 0, "failed": 0, "sent": 3, "bytes": 3000}
EARLY = {"code": "server.unavailable", "message": "Away.", "hint": "Wait."}


@pytest.fixture
def open_page(qtbot):
    opened = []  # a page lives as long as someone knows it

    def open_it(context):
        page = HistoryPage(context)
        qtbot.addWidget(page)
        opened.append(page)
        page.resize(1000, 700)
        page.show()
        page.show_page()
        qtbot.waitUntil(lambda: not page._runs.model.busy)
        return page

    return open_it


def record(written, name, **sums):
    began = written.clock.now()
    written.clock.move(30)
    written.ledger.record([an_entry(f"{name}.tif".encode())])
    record = SUMS | {"seconds": 30.0, "reason": "daily", "problem": None} | sums
    written.ledger.record_run(PastRunRow(name, began, written.clock.now(), record))
    written.clock.move(600)


def column(page, number):
    model = page._runs.model
    return [model.index(row, number).data() for row in range(model.rowCount())]


def test_a_run_is_reported_with_what_it_sent(qtbot, context, site, open_page):
    site.run()

    page = open_page(context)

    files = len(site.place.expected_files())
    assert column(page, 1) == ["Started by a user"]
    assert column(page, 2) == [str(files)]
    page._runs.table.selectRow(0)
    qtbot.waitUntil(lambda: page._files.model.rowCount() == files)


def test_outcomes_are_shown_in_words(still_context, written, open_page):
    record(written, "a")
    record(written, "b", failed=2)
    record(written, "c", problem=EARLY)
    record(written, "e", left_behind=2)
    record(written, "d", problem=EARLY | {"code": "run.interrupted"})

    page = open_page(still_context)

    assert column(page, 7) == [
        "Stopped",
        "2 left out",
        "Ended early",
        "2 file(s) failed",
        "All 3 file(s) safe",
    ]
    assert column(page, 4)[0] == "100 bytes/s"


def test_what_did_not_have_to_be_sent_is_no_size_and_no_speed_of_a_run(
    still_context, written, open_page
):
    record(written, "a", bytes=90_000, omitted=87_000)
    record(written, "b", bytes=6_000)

    page = open_page(still_context)

    assert column(page, 4) == ["200 bytes/s", "100 bytes/s"]
    tip = page._runs.model.index(1, 3).data(Qt.ItemDataRole.ToolTipRole)
    assert "A further 87.0 kB did not have to be sent: holes, or left by earlier runs." in tip


def test_replaced_content_is_counted_and_said_to_be_kept(still_context, written, open_page):
    record(written, "a", sent=5, replaced=2)

    page = open_page(still_context)

    assert column(page, 2) == ["5, 2 replaced"]
    tip = page._runs.model.index(0, 2).data(Qt.ItemDataRole.ToolTipRole)
    assert "which is kept for a while" in tip


def test_the_files_of_one_run_are_those_of_its_time(qtbot, still_context, written, open_page):
    record(written, "a")
    record(written, "b")
    page = open_page(still_context)

    page._runs.table.selectRow(1)

    qtbot.waitUntil(lambda: page._files.model.complete and not page._files.model.busy)
    assert page._files.model.index(0, 0).data() == "a.tif"
    assert page._files.model.rowCount() == 1


def test_runs_without_any_sums_are_shown(still_context, written, open_page):
    written.ledger.record_run(PastRunRow("x", written.clock.now(), None, {}))

    assert column(open_page(still_context), 7) == ["Interrupted"]


def test_a_run_that_was_cut_off_says_what_stayed_open(still_context, written, open_page):
    sums = {"found": 40, "verified": 5, "waiting": 1, "skipped": 1, "failed": 0}
    written.ledger.record_run(PastRunRow("x", written.clock.now(), None, sums))

    assert column(open_page(still_context), 7) == ["Interrupted, 34 file(s) unfinished"]


def test_only_the_run_at_work_is_not_finished(still_context, written, open_page):
    for name in ("old", "new"):
        written.ledger.record_run(PastRunRow(name, written.clock.now(), None, {}))
        written.clock.move(60)
    still_context.controller._set(phase=Phase.RUNNING, run="new")

    assert column(open_page(still_context), 7) == ["Not finished", "Interrupted"]


def test_a_run_that_found_nothing_calls_nothing_safe(still_context, written, open_page):
    record(written, "a", found=0, verified=0)
    record(written, "b", found=2, verified=0, skipped=2)

    assert column(open_page(still_context), 7) == ["Nothing to send", "No files found"]


@pytest.fixture
def two_runs(still_context, written, open_page):
    record(written, "a")
    record(written, "b", failed=1)
    return open_page(still_context)


@pytest.mark.parametrize("ending", ["csv", "json", "html"])
def test_all_runs_are_exported(qtbot, two_runs, tmp_path, ending):
    page, file = two_runs, tmp_path / f"runs.{ending}"

    page.export(file)
    qtbot.waitUntil(lambda: "runs." in page._message.text())

    assert read(file) == 2


def read(file):
    """Return how many runs a file has, read as its kind of file is."""
    text = file.read_text(encoding="utf-8-sig")
    match file.suffix:
        case ".csv":
            return len(list(csv.DictReader(text.splitlines())))
        case ".json":
            return len(json.loads(text))
        case _:
            return text.count("<tr><td")


def test_where_nothing_can_be_written_the_page_says_so(qtbot, still_context, open_page, tmp_path):
    page = open_page(still_context)

    page.export(tmp_path / "nowhere" / "runs.csv")

    qtbot.waitUntil(lambda: "cannot be written" in page._message.text())


def test_names_that_are_formulas_or_markup_stay_names(written, tmp_path):
    written.ledger.record([an_entry(b"=1+1"), an_entry(b"<b>&.tif")])
    for ending in ("csv", "html"):
        export_rows(tmp_path / f"f.{ending}", "<Files>", file_columns(), written.open, View())

    table = (tmp_path / "f.csv").read_text(encoding="utf-8-sig")
    page = (tmp_path / "f.html").read_text()
    assert "'=1+1" in table
    assert "<b>" not in page
    assert "&lt;b&gt;&amp;.tif" in page
    assert "&lt;Files&gt;" in page


def test_an_inconsistent_run_is_shown_as_far_as_possible():
    row = RunRow("x", None, None, {"sent": "many", "problem": "odd"})

    assert [column.text(row) for column in run_columns(lambda _: False)][2] == "0"


def test_each_day_has_a_bar_of_what_was_sent(qtbot, still_context, written, open_page):
    now = SystemClock().now()
    for number, (days, size) in enumerate([(0, 3000), (0, 1000), (2, 2000), (400, 9000)]):
        at = now - timedelta(days=days, seconds=number)
        record = SUMS | {"seconds": 1.0, "bytes": size}
        written.ledger.record_run(PastRunRow(str(number), at, at, record))
    page = open_page(still_context)
    bars = page.findChild(DayBars)

    qtbot.waitUntil(lambda: not bars.isHidden())
    assert bars.accessibleName().endswith(texts.size(6000))
    assert [size for _, size in bars._days][-3:] == [2000, 0, 4000]


def headings(page):
    days = page._runs.table.itemDelegate()
    return [days.heading(row) for row in range(page._runs.model.rowCount())]


def test_the_runs_of_a_day_are_below_its_heading(qtbot, still_context, written, open_page):
    now = SystemClock().now()
    for number, days in enumerate([0, 0, 1, 400]):
        at = now - timedelta(days=days, microseconds=number)
        written.ledger.record_run(PastRunRow(str(number), at, at, SUMS))
    page = open_page(still_context)
    table, model = page._runs.table, page._runs.model
    long_ago = texts.day((now - timedelta(days=400)).astimezone().date(), now.date())

    assert headings(page) == ["Today", "", "Yesterday", long_ago]
    assert table.rowHeight(0) == table.rowHeight(2) > 2 * table.rowHeight(1)

    table.sortByColumn(1, Qt.SortOrder.AscendingOrder)

    qtbot.waitUntil(lambda: model.view.order == "reason" and not model.busy)
    assert headings(page) == [""] * 4
    assert table.rowHeight(0) == table.rowHeight(1)


def test_headings_have_room_wherever_the_user_scrolls_to(still_context, written, open_page):
    now = SystemClock().now()
    for number in range(190):  # all are read at once
        at = now - timedelta(hours=12 * number)
        written.ledger.record_run(PastRunRow(str(number), at, at, SUMS))
    page = open_page(still_context)
    table = page._runs.table

    table.verticalScrollBar().setValue(150)

    heads = headings(page)
    tall = [
        table.rowHeight(row) > 2 * table.verticalHeader().defaultSectionSize() for row in range(190)
    ]
    assert tall[150:165] == [bool(heads[row]) for row in range(150, 165)]
    assert True in tall[150:165]


def test_below_the_heading_of_its_day_a_run_has_only_its_time(still_context, written, open_page):
    now = SystemClock().now()
    for number in range(40):
        written.ledger.record_run(PastRunRow(str(number), now, now, SUMS))
    page = open_page(still_context)
    table, model = page._runs.table, page._runs.model

    def shown(row):
        option = QStyleOptionViewItem()
        table.itemDelegate().initStyleOption(option, model.index(row, 0))
        return option.text

    assert [shown(0), shown(1)] == [texts.clock(now)] * 2
    table.verticalScrollBar().setValue(5)
    assert [shown(5), shown(6)] == [texts.moment(now), texts.clock(now)]
