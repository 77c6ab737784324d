"""The page of folders: how every dataset stands."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester

from mydata_like.core.model import FolderSums
from mydata_like.core.queries import MAX_UNFINISHED, FolderGroup
from mydata_like.gui.pages.folders_page import FoldersPage
from mydata_like.gui.run_state import Phase
from mydata_like.gui.status_text import overview_sentence
from mydata_like.gui.tables.columns import FRACTION
from mydata_like.gui.tables.folder_tree import (
    FILES,
    SIZE,
    TOP,
    FolderTree,
    Parents,
    RunPhase,
    mark_of_folder,
)
from tests.gui.ledgers import an_entry, an_outcome

ROOT = QModelIndex()
WELL = {"found": 4, "found_bytes": 40, "verified": 4, "verified_bytes": 40}
ILL = WELL | {"verified": 1, "waiting": 1, "skipped": 1, "failed": 1}


def sums(path, owner, title, dataset, counts=WELL):
    return FolderSums(path, dataset, title, owner, "", **counts)


def texts(model, parent=ROOT, column=0):
    return [model.index(row, column, parent).data() for row in range(model.rowCount(parent))]


@pytest.fixture
def page(qtbot, still_context, written):
    written.ledger.record_folders(
        [
            sums(b"ann/x/1", "ann", "x", "1"),
            sums(b"ann/x/2", "ann", "x", "2", ILL),
            sums(b"bob/1", "bob", None, "1"),
        ]
    )
    page = FoldersPage(still_context)
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    page.show_page()
    qtbot.waitUntil(lambda: page._model.rowCount() == 2)
    return page


def open_to(qtbot, page, *rows):
    """Open one line below the other, as a user does; return the last one."""
    index = QModelIndex()
    for row in rows:
        index = page._model.index(row, 0, index)
        page._tree.expand(index)
        qtbot.waitUntil(lambda index=index: page._model.rowCount(index) > 0)
    return index


def test_folders_after_a_run_are_those_of_the_layout(qtbot, context, site):
    site.run()
    page = FoldersPage(context)
    qtbot.addWidget(page)
    page.show_page()

    qtbot.waitUntil(lambda: bool(texts(page._model)))

    assert set(texts(page._model, column=1)) == {"Verified"}


def test_a_line_is_filled_when_it_is_opened(qtbot, page):
    assert texts(page._model) == ["ann", "bob"]

    owner = open_to(qtbot, page, 0)
    experiment = open_to(qtbot, page, 0, 0)

    assert texts(page._model, owner) == ["x"]
    assert texts(page._model, experiment) == ["1", "2"]


def test_the_only_experiment_of_an_owner_has_no_line_without_a_title(qtbot, page, written):
    assert texts(page._model, open_to(qtbot, page, 1)) == ["1"]

    written.ledger.record_folders([FolderSums(b"bob/y", "y", "Mice", "bob", "")])
    page._controller.ledger_changed.emit()

    unnamed = "Experiment named after the instrument"
    owner = page._model.index(1, 0)
    qtbot.waitUntil(lambda: set(texts(page._model, owner)) == {unnamed, "Mice"})


def test_the_tree_is_opened_down_to_the_datasets(qtbot, page):
    owner = page._model.index(0, 0)
    qtbot.waitUntil(lambda: page._model.rowCount(owner) > 0)
    experiment = page._model.index(0, 0, owner)
    qtbot.waitUntil(lambda: texts(page._model, experiment) == ["1", "2"])

    assert page._tree.isExpanded(experiment)
    page._tree.collapse(experiment)
    page._controller.ledger_changed.emit()
    qtbot.waitUntil(lambda: not page._context.tasks.busy)
    assert not page._tree.isExpanded(experiment)


def test_each_line_shows_the_status_of_its_files(qtbot, page):
    experiment = open_to(qtbot, page, 0, 0)

    assert texts(page._model, column=1) == ["Failed", "Verified"]
    assert texts(page._model, experiment, 2) == ["4 of 4", "1 of 3"]
    assert texts(page._model, experiment, 5)[0] == ""
    assert texts(page._model, experiment, 5)[1] == "1 failed, 1 waiting, 1 left out"


NONE = {"found": 0, "found_bytes": 0, "verified": 0, "verified_bytes": 0}


@pytest.mark.parametrize(
    ("counts", "at_rest", "at_work", "cut_off"),
    [
        (WELL, "Verified", "Verified", "Verified"),
        (NONE | {"found": 35}, "Not sent yet", "Unfinished", "Not sent yet"),
        (WELL | {"found": 35}, "Unfinished", "Unfinished", "Unfinished"),
        (NONE, "No files", "Unfinished", "Not sent yet"),
        (NONE | {"found": 4, "skipped": 4}, "Left out", "Left out", "Left out"),
        (WELL | {"found": 5, "waiting": 1}, "Waiting", "Waiting", "Waiting"),
        (WELL | {"found": 5, "failed": 1}, "Failed", "Failed", "Failed"),
        (WELL | {"found": 5, "skipped": 1}, "Verified", "Verified", "Verified"),
    ],
)
def test_a_folder_is_never_called_better_than_it_is(counts, at_rest, at_work, cut_off):
    rest = dict.fromkeys(("waiting", "skipped", "failed"), 0)
    group = FolderGroup("", "", "x", "1", b"x", 1, **(rest | counts))

    marks = [
        mark_of_folder(group, pace)
        for pace in (RunPhase.AT_REST, RunPhase.ACTIVE, RunPhase.INTERRUPTED)
    ]
    assert [mark.word for mark in marks] == [at_rest, at_work, cut_off]
    good = {mark.status == "good" for mark in marks}
    assert good == {at_rest == "Verified"}


def test_a_folder_with_files_that_nothing_leaves_out_on_purpose_is_not_green(qtbot, page, written):
    counts = WELL | {"found": 6, "skipped": 2}
    written.ledger.record_folders([sums(b"zoe/1", "zoe", "x", "1", counts)])
    written.ledger.record_outcomes([an_outcome(b"zoe/1/a", "skipped", "skipped.ignored")])
    page._context.controller.ledger_changed.emit()
    qtbot.waitUntil(lambda: texts(page._model, column=1)[-1] == "Verified")

    written.ledger.record_outcomes([an_outcome(b"zoe/1/b\xff", "skipped", "skipped.name")])
    page._context.controller.ledger_changed.emit()

    qtbot.waitUntil(lambda: texts(page._model, column=1)[-1] == "Files left out")


def test_a_folder_that_is_left_out_whole_has_no_bar(qapp):
    model = FolderTree()
    counts = {"waiting": 0, "failed": 0} | NONE | {"found": 12, "skipped": 12}
    model.show(TOP, [FolderGroup("carol", "", None, None, None, 1, **counts)])

    assert model.index(0, 1, ROOT).data() == "Left out"
    assert model.index(0, 2, ROOT).data() == ""
    assert model.index(0, 2, ROOT).data(FRACTION) is None


def test_what_is_open_stays_open_while_the_engine_writes(qtbot, page, written):
    experiment = open_to(qtbot, page, 0, 0)
    page._tree.setCurrentIndex(page._model.index(1, 0, experiment))
    written.ledger.record_folders(
        [sums(b"ann/x/2", "ann", "x", "2"), sums(b"aaa/1", "aaa", "y", "new")]
    )

    page._context.controller.ledger_changed.emit()
    qtbot.waitUntil(lambda: texts(page._model)[0] == "aaa", timeout=10_000)

    assert page._tree.isExpanded(page._model.index(1, 0))
    assert page._tree.currentIndex().data() == "2"
    assert texts(page._model, column=1) == ["Verified"] * 3


def test_the_files_of_a_folder_are_shown_on_their_page(qtbot, page):
    experiment = open_to(qtbot, page, 0, 0)
    page._tree.setCurrentIndex(experiment)
    assert not page._files.isEnabled()
    page._tree.setCurrentIndex(page._model.index(1, 0, experiment))

    with qtbot.waitSignal(page._controller.page_wanted) as wanted:
        page._files.trigger()

    assert wanted.args == ["transfers", "folder:ann/x/2"]


def test_the_tree_is_a_sound_model_while_lines_come_and_go(qapp):
    model = FolderTree()
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal, model)
    owner = FolderGroup("ann", "", None, None, None, 1, *([0] * 7))
    folder = owner._replace(title="x", dataset="1", path=b"1")

    experiment, inner = Parents(("ann", "", "x")), owner._replace(owner="", path=b"2/a")

    model.show(TOP, [owner])
    model.show(Parents(("ann", "")), [owner._replace(title="x")])
    model.show(experiment, [folder, folder._replace(path=b"2")])
    model.show(experiment, [folder._replace(path=b"0"), folder._replace(path=b"2")])
    model.show(Parents(("ann", "", "x"), b"2"), [inner, inner._replace(path=None, rest=True)])
    model.show(Parents(("", "", None), b"2/a"), [])
    model.show(TOP, [owner._replace(owner="bob")])

    assert texts(model) == ["bob"]
    assert model.opened() == [TOP]


@pytest.fixture
def page_with_files(page, written):
    """A page on which the dataset folder ann/x/2 has folders with files in them."""
    keys = (b"ann/x/2/raw/day 1/a", b"ann/x/2/raw/day 2/b", b"ann/x/2/raw/c", b"ann/x/2/d")
    written.ledger.record([an_entry(key, 10) for key in keys])
    written.ledger.record_outcomes([an_outcome(b"ann/x/2/raw/day 2/b"), an_outcome(b"ann/x/2/e/f")])
    return page


def test_a_dataset_is_opened_down_to_the_last_of_its_folders(qtbot, page_with_files):
    model = page_with_files._model

    dataset = open_to(qtbot, page_with_files, 0, 0, 1)
    raw = open_to(qtbot, page_with_files, 0, 0, 1, 1)

    assert texts(model, dataset) == ["e", "raw"]
    assert texts(model, dataset, 1) == ["Failed", "Failed"]
    assert texts(model, dataset, 2) == ["0 of 1", "2 of 3"]
    assert texts(model, raw) == ["day 1", "day 2"]
    assert texts(model, raw, 1) == ["Verified", "Failed"]
    assert model.index(0, 2, raw).data(FRACTION) == 1.0


def test_the_bar_is_that_of_the_bytes_and_full_only_if_every_file_is_verified(qapp):
    model = FolderTree()
    sums = {"found": 4, "found_bytes": 100, "waiting": 0, "skipped": 0, "failed": 0}
    known = [(1, 60), (3, 99), (4, 100)]  # files and bytes
    owners = [
        FolderGroup(
            f"{files}", "", None, None, None, 1, verified=files, verified_bytes=size, **sums
        )
        for files, size in known
    ]

    model.show(TOP, owners)

    cells = [model.index(row, 2, ROOT) for row in range(3)]
    assert [cell.data(FRACTION) for cell in cells] == [0.6, MAX_UNFINISHED, 1.0]
    assert [cell.data() for cell in cells] == ["1 of 4", "3 of 4", "4 of 4"]


def test_what_has_no_folders_no_longer_offers_to_be_opened(qtbot, page_with_files):
    page, model = page_with_files, page_with_files._model
    leaf = model.index(0, 0, open_to(qtbot, page, 0, 0, 1, 1))
    assert model.hasChildren(leaf)

    page._tree.expand(leaf)

    qtbot.waitUntil(lambda: not model.hasChildren(leaf))
    shown = page._tree.grab().toImage()
    page._tree.doItemsLayout()
    assert page._tree.grab().toImage() == shown


def test_a_folder_of_a_dataset_is_opened_copied_and_shown_but_not_uploaded_alone(
    qtbot, page_with_files, tmp_path
):
    page = page_with_files
    dataset = open_to(qtbot, page, 0, 0, 1)
    page._controller.state = replace(page._controller.state, phase=Phase.IDLE)
    page._tree.setCurrentIndex(dataset)
    assert page._only.isEnabled()

    page._tree.setCurrentIndex(page._model.index(1, 0, dataset))

    enabled = [action for action in page._actions if action.isEnabled()]
    assert enabled == [page._files, page._open, page._web, page._copy, page._receipt]
    page._copy.trigger()
    folder = tmp_path / "data" / "ann" / "x" / "2" / "raw"
    assert QGuiApplication.clipboard().text() == str(folder)
    with qtbot.waitSignal(page._controller.page_wanted) as wanted:
        page._files.trigger()
    assert wanted.args == ["transfers", "folder:ann/x/2/raw"]


def test_after_a_failure_every_line_can_be_opened_again(qtbot, page, written):
    open_to(qtbot, page, 0)
    with closing(sqlite3.connect(written.file)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute("PRAGMA user_version = 1")
        page._controller.ledger_changed.emit()
        qtbot.waitUntil(lambda: page._model.rowCount() == 0)
        connection.execute(f"PRAGMA user_version = {version}")

    qtbot.waitUntil(lambda: texts(page._model) == ["ann", "bob"])

    assert texts(page._model, open_to(qtbot, page, 0, 0)) == ["1", "2"]


def test_only_one_folder_is_uploaded_when_the_user_wants_that(qtbot, context, site):
    chosen = min(path for path in site.data.glob("*/*") if path.is_dir())
    page = FoldersPage(context)
    qtbot.addWidget(page)
    page.show()

    context.controller.start_only(bytes(chosen.relative_to(site.data)))
    qtbot.waitUntil(lambda: bool(context.controller.state.last), timeout=60_000)

    page.show_page()
    qtbot.waitUntil(lambda: bool(texts(page._model)))
    files = sum(path.is_file() for path in chosen.rglob("*"))
    assert context.controller.state.last.found == files
    # It changes when the ledger has been read again after the end of the run.
    safe = f"{files} file(s) of the last upload are safe"
    qtbot.waitUntil(lambda: overview_sentence(context.controller.state) == safe)
    assert len(texts(page._model)) == 1
    assert texts(page._model, open_to(qtbot, page, 0)) == [chosen.name]


@pytest.mark.parametrize(
    ("take_up_again", "waiting"),
    [
        (lambda page: None, 1),
        (lambda page: page._send_again.trigger(), 0),
        (lambda page: page._queue.toast._button.click(), 0),
    ],
    ids=["left", "taken up again", "undone"],
)
def test_what_is_queued_of_a_folder_can_be_left_for_the_next_run(
    qtbot, context, site, take_up_again, waiting
):
    site.run()
    left, kept = sorted(path for path in site.data.glob("*/*") if path.is_dir())[:2]
    for folder in (left, kept):
        (folder / "new.raw").write_bytes(bytes(folder))
    page = FoldersPage(context)
    qtbot.addWidget(page)
    page.show()
    page.show_page()
    page._tree.setCurrentIndex(open_path(qtbot, page, left.relative_to(site.data)))
    assert not page._queue.hold.isEnabled()
    context.controller.start()
    context.controller.pause()
    qtbot.waitUntil(lambda: context.controller.state.phase == "paused")

    page._queue.hold.trigger()
    assert page._queue.toast._message.full_text == f"{left.name} is held back."
    take_up_again(page)
    assert page._queue.toast.isVisible() is bool(waiting)
    context.controller.resume()

    qtbot.waitUntil(lambda: context.controller.state.phase == "idle")
    last = context.controller.state.last
    assert (last.waiting, last.sent) == (waiting, 2 - waiting)


def open_path(qtbot, page, path):
    """Open the tree down to the dataset folder with this path."""
    model = page._model
    qtbot.waitUntil(lambda: bool(texts(model)))
    for owner in range(model.rowCount()):
        below = open_to(qtbot, page, owner)
        for row in range(model.rowCount(below)):
            index = model.index(row, 0, below)
            if model.group(index).path == bytes(path):
                return index
    raise AssertionError(f"{path} is not shown")


def test_numbers_and_their_titles_are_aligned_to_the_right(page):
    model, role = page._model, Qt.ItemDataRole.TextAlignmentRole
    for number in (FILES, SIZE):
        title = model.headerData(number, Qt.Orientation.Horizontal, role)
        assert title == model.index(0, number).data(role)
        assert title & Qt.AlignmentFlag.AlignRight
