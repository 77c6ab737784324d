"""The page of problems: everything that is not well, and what to do about it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QLocale, Qt, QTranslator
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QListView, QPushButton, QToolButton

from mydata_like.app.held_choices import take_choices
from mydata_like.core.errors import Problem
from mydata_like.core.model import HELD_FILES, ChangeChoice
from mydata_like.gui.pages.problems_page import ProblemsPage, ReplaceQuestion
from mydata_like.gui.run_state import Phase
from mydata_like.gui.tables.problem_groups import ProblemCard
from mydata_like.gui.theme.widgets import PlainLabel, RowIcon
from mydata_like.gui.theme_settings import set_language
from mydata_like.gui.window import DEFAULT_SIZE, MainWindow
from tests.builders import a_file
from tests.gui.conftest import DEADLINE
from tests.gui.ledgers import LONG_AGO, an_outcome
from tests.gui.scripted import run_that


@pytest.fixture
def open_page(qtbot, still_context):
    opened = []  # a page lives as long as someone knows it

    def open_it():
        page = ProblemsPage(still_context)
        qtbot.addWidget(page)
        opened.append(page)
        page.resize(1000, 700)
        page.show()
        page.show_page()
        settle(qtbot, still_context)
        return page

    return open_it


def settle(qtbot, context):
    qtbot.waitUntil(lambda: not context.tasks.busy)


def kinds(page):
    return [(group.kind, group.problem.code) for group in page._kinds.groups]


def button(page, text):
    return next(one for one in page.findChildren(QPushButton) if one.text() == text)


def click(qtbot, widget):
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


@pytest.fixture
def ill(written):
    written.ledger.record_outcomes(
        [
            an_outcome(b"s", "skipped", "skipped.ignored"),
            an_outcome(b"w", "waiting", "waiting.settling"),
            an_outcome(b"f1", "failed", "file.unreadable"),
            an_outcome(b"f2", "failed", "file.unreadable"),
            an_outcome(b"d", "folder-skipped", "skipped.layout"),
        ]
    )
    return written


def test_all_columns_are_seen_in_a_window_that_is_narrower_than_usual(ill, still_context, qtbot):
    window = MainWindow(still_context)
    qtbot.addWidget(window)
    window.resize(DEFAULT_SIZE.width() - 60, DEFAULT_SIZE.height())
    window.show_page("problems", "failed")
    window.show()
    settle(qtbot, still_context)

    page = window.findChild(ProblemsPage)
    qtbot.waitUntil(page._files.table.isVisible)
    assert page._files.table.horizontalScrollBar().maximum() == 0


def test_with_settings_that_cannot_be_read_only_their_problem_is_shown(
    tmp_path, open_context, qtbot
):
    config = tmp_path / "settings.toml"
    config.write_text('[limits]\nbandwidth = "fast"\n')
    context = open_context(config)
    qtbot.waitUntil(lambda: context.controller.state.phase == Phase.BROKEN, timeout=DEADLINE)
    page = ProblemsPage(context)
    qtbot.addWidget(page)
    page.show()
    page.show_page()

    said = [label.text() for label in page.findChildren(PlainLabel) if label.isVisible()]
    assert any("must be a number" in text for text in said)
    assert not any("last run" in text or "wrong" in text for text in said)  # neither was looked at
    assert not page.findChild(QListView).isVisible()
    assert not any(bar.isVisible() for bar in page.findChildren(QToolButton))


@pytest.fixture
def held(written):
    """Two files that became empty, and are held."""
    for name in ("a.tif", "b.tif"):
        written.hold(name)
    return written


def choices(ledger):
    """Return the choices that the next run takes from the state folder."""
    take_choices(ledger.ledger, ledger.file)
    return [row.choice for row in ledger.ledger.list_held()]


def test_the_copies_of_held_files_are_kept_by_a_button(held, open_page, still_context, qtbot):
    page = open_page()
    assert page._card.problem.message == HELD_FILES.message
    assert "mydata-like" not in page._card.as_text()
    qtbot.waitUntil(lambda: page._files.model.rowCount() == 2)

    click(qtbot, button(page, "&Keep the server's"))
    qtbot.waitUntil(page._chosen.isVisible)

    assert "2 file" in page._chosen.text()
    assert choices(held) == [ChangeChoice.KEEP] * 2


def test_the_copies_of_selected_files_are_replaced_after_a_question(
    held, open_page, still_context, qtbot
):
    page = open_page()
    qtbot.waitUntil(lambda: page._files.model.rowCount() == 2)
    settle(qtbot, still_context)
    page._files.table.selectRow(0)

    click(qtbot, button(page, "Rep&lace the server's…"))
    question = page.findChild(ReplaceQuestion)
    assert "1 file" in question.text()
    assert choices(held) == [ChangeChoice.NONE] * 2
    click(qtbot, next(one for one in question.buttons() if one.text() == "&Replace"))
    qtbot.waitUntil(page._chosen.isVisible)

    assert sorted(choices(held)) == [ChangeChoice.NONE, ChangeChoice.REPLACE]


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_buttons_of_held_files_leave_room_for_the_kinds(
    language, held, still_context, qapp, qtbot
):
    set_language(qapp, language)
    window = MainWindow(still_context)
    qtbot.addWidget(window)
    window.resize(1024, 700)
    window.show_page("problems", "waiting")
    window.show()
    page = window.findChild(ProblemsPage)
    qtbot.waitUntil(page._keep.isVisible)
    settle(qtbot, still_context)

    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
    QLocale.setDefault(QLocale.c())
    assert page._kinds.width() >= page.fontMetrics().averageCharWidth() * 24


def test_a_file_that_changed_again_gets_no_choice(held, open_page, still_context, qtbot):
    for name in ("a.tif", "b.tif"):
        a_file(Path(os.fsdecode(held.root)) / "alice/Scan" / name, 7, LONG_AGO)
    page = open_page()
    qtbot.waitUntil(lambda: page._files.model.rowCount() == 2)

    click(qtbot, button(page, "&Keep the server's"))
    qtbot.waitUntil(page._chosen.isVisible)

    assert "not possible" in page._chosen.text()
    assert choices(held) == [ChangeChoice.NONE] * 2


def test_other_kinds_have_no_buttons_for_copies(ill, open_page):
    page = open_page()

    assert not button(page, "&Keep the server's").isVisible()
    assert not button(page, "Rep&lace the server's…").isVisible()


def test_the_worst_kind_comes_first(ill, open_page):
    assert kinds(open_page()) == [
        ("failed", "file.unreadable"),
        ("waiting", "waiting.settling"),
        ("folder-skipped", "skipped.layout"),
        ("skipped", "skipped.ignored"),
    ]


def test_files_left_out_unintentionally_come_first(qtbot, ill, open_page, still_context):
    page = open_page()
    page.look_for("skipped")
    settle(qtbot, still_context)

    assert page._kinds.group.problem.code == "skipped.layout"


def test_a_kind_is_found_by_its_name(qtbot, ill, open_page, still_context):
    page = open_page()
    page.look_for("skipped:skipped.ignored")
    settle(qtbot, still_context)

    assert page._kinds.group.problem.code == "skipped.ignored"


def test_the_files_of_the_chosen_kind_are_shown(qtbot, ill, open_page, still_context):
    page = open_page()
    page.look_for("waiting")
    settle(qtbot, still_context)

    model = page._files.model
    assert [model.row(number).key for number in range(model.rowCount())] == [b"w"]
    assert "Nothing needs to be fixed." in page._card.as_text()


def test_the_button_opens_the_settings_at_the_key(qtbot, ill, open_page):
    page = open_page()
    page._kinds._list.setCurrentRow(2)

    with qtbot.waitSignal(page._controller.page_wanted) as wanted:
        click(qtbot, page._card._button)

    assert wanted.args == ["settings", "data.layout"]


def test_a_problem_is_copied_for_the_one_who_can_fix_it(qtbot, ill, open_page):
    page = open_page()
    click(qtbot, page._card._copy)

    assert QGuiApplication.clipboard().text() == (
        "2 file(s), 10 bytes\nIt changed. (file.unreadable)\nSend it again.\n"
        "2 file(s), 10 bytes · You can fix this."
    )


def test_a_hidden_kind_stays_hidden_until_that_is_undone(qtbot, ill, open_page, still_context):
    page = open_page()
    page._hide.trigger()
    assert ("failed", "file.unreadable") not in kinds(page)
    assert ("failed", "file.unreadable") not in kinds(open_page())

    click(qtbot, button(page, "Undo"))

    assert kinds(page)[0] == ("failed", "file.unreadable")


def test_hidden_kinds_can_be_looked_at(qtbot, ill, open_page):
    page = open_page()
    page._hide.trigger()

    page._kinds._show_hidden.setChecked(True)
    page._kinds._list.setCurrentRow(0)

    assert kinds(page)[0] == ("failed", "file.unreadable")
    assert page._hide.text() == "Show this kind"


def test_where_nothing_is_wrong_the_page_says_so(written, open_page):
    page = open_page()

    assert page._no_problems.isVisible()
    assert page._no_problems.text() == "No problems are known."


def test_what_holds_the_run_is_on_top(open_page, still_context):
    page = open_page()
    problem = Problem("staging.full", "The staging area is full.", "Make room.")

    held = replace(still_context.controller.state, phase=Phase.PAUSED, problem=problem)
    still_context.controller.run_changed.emit(held)

    assert page._run.isVisible()
    assert "Your administrator can fix this." in page._run.as_text()
    assert page._no_problems.text() == "Nothing else is wrong."
    still_context.controller.run_changed.emit(still_context.controller.state)
    assert page._no_problems.text() == "No problems are known."


def test_what_no_run_has_sent_is_listed_with_a_way_to_start_one(
    written, open_page, still_context, qtbot
):
    unsent = [an_outcome(b"a", "found", "waiting.unsent"), an_outcome(b"b", "waiting", "x.y")]
    written.ledger.record_outcomes(unsent)
    page = open_page()
    page.look_for("waiting")
    assert kinds(page) == [("found", "waiting.unsent"), ("waiting", "x.y")]
    assert page._kinds.group.kind == "found"
    assert button(page._card, "Start").isVisible()

    still_context.controller._set(phase=Phase.RUNNING)  # now it is under way
    qtbot.waitUntil(lambda: kinds(page) == [("waiting", "x.y")])


def test_a_run_that_was_cut_off_is_on_top(open_page, still_context):
    page = open_page()
    still_context.controller._set(phase=Phase.IDLE, missing=(), interrupted=run_that(verified=1))

    assert page._run.problem.code == "run.cut-off"
    assert button(page._run, "Start").isVisible()
    assert page._no_problems.text() == "Nothing else is wrong."


def test_what_the_engine_writes_appears_while_one_looks(qtbot, ill, open_page, still_context):
    page = open_page()
    ill.ledger.record_outcomes([an_outcome(b"new", "failed", "file.vanished")])

    still_context.controller.ledger_changed.emit()

    qtbot.waitUntil(lambda: ("failed", "file.vanished") in kinds(page), timeout=10_000)
    assert page._kinds.group.problem.code == "file.unreadable"


@pytest.mark.parametrize(
    ("phase", "enabled"), [(Phase.IDLE, True), (Phase.ELSEWHERE, False), (Phase.TESTING, False)]
)
def test_a_kind_is_tried_again_only_where_a_run_can_do_it(written, open_page, phase, enabled):
    written.ledger.record_outcomes([an_outcome(b"f", "failed", "item.failed")])
    page = open_page()
    page._controller._look_timer.stop()
    page._controller._set(phase=phase, missing=())

    assert page._card._button.text() == "Try again"
    assert page._card._button.isEnabled() is enabled


def test_the_buttons_of_a_card_do_not_touch(qtbot):
    card = ProblemCard()
    qtbot.addWidget(card)
    problem = Problem("window.engine-ended", "It ended.", "Try again.")
    card.show_problem(problem, RowIcon("Failed", "error", "problem"))
    card.show()
    assert card._button.isVisible()
    assert card._copy.x() > card._button.geometry().right() + 1


def test_a_card_folds_the_fingerprints_of_another_host_key_and_copies_them(qtbot):
    message = (
        "staging.example, port 22, has a different key than the known one: SHA256:new (ssh-ed25519)"
        " instead of SHA256:old."
    )
    card = ProblemCard()
    qtbot.addWidget(card)
    problem = Problem("host-key.changed", message, "Trust it with --accept-host-key SHA256:new")
    card.show_problem(problem, RowIcon("Failed", "error", "problem"))
    card.show()
    assert not any("SHA256" in text for text in visible_texts(card))
    assert message in card.as_text()

    qtbot.mouseClick(card.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert any(message in text for text in visible_texts(card))


def visible_texts(card):
    return [label.text() for label in card.findChildren(PlainLabel) if label.isVisible()]


def test_a_card_names_settings_as_the_dialog_does(qtbot):
    card = ProblemCard()
    qtbot.addWidget(card)
    hint = "filters.settle_seconds says how long a file has to be still."
    card.show_problem(
        Problem("waiting.settling", "It is new.", hint), RowIcon("Waits", "waiting", "")
    )

    assert "settle_seconds" not in card.as_text()
    assert "says how long a file has to be still." in card.as_text()
