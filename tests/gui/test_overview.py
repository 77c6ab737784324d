"""The first page: one sentence, the conservation bar, the pipeline, the way on."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton, QVBoxLayout, QWidget

from mydata_like.app.settings_service import save_settings
from mydata_like.core.errors import OUTSIDE, HostKeyError, Problem
from mydata_like.core.events import RetryScheduled, RunPaused, RunResumed, StagesMeasured
from mydata_like.core.extra_sources import Destination, KnownSource
from mydata_like.core.formatting import LIMITS
from mydata_like.core.model import UNSENT, AtRisk, EntryState, FolderSums, Outcome
from mydata_like.core.queries import FolderGroup, ProblemGroup
from mydata_like.engine.progress import NO_PROGRESS, ActiveTransfer
from mydata_like.gui.base import AppContext
from mydata_like.gui.overview.bars import (
    SentBar,
    ShareBar,
    StatusBreakdownBar,
    StatusCounts,
    count_files,
)
from mydata_like.gui.overview.details_panel import (
    DetailsPanel,
    PipelineStrip,
    StageCard,
    StageCount,
    count_stages,
)
from mydata_like.gui.overview.headline import Headline, _icon_of
from mydata_like.gui.overview.overview_page import OpenProblems, OutsideNote, OverviewPage
from mydata_like.gui.overview.recent_datasets import (
    MAX_ROWS,
    MIN_ROWS,
    RecentDatasets,
    group_transfers,
)
from mydata_like.gui.overview.route_row import RouteRow
from mydata_like.gui.overview.summary_cards import SummaryRow
from mydata_like.gui.run_state import Phase, Rise, RunState, ServerIndicator
from mydata_like.gui.status_text import end_sentence, overview_sentence, safe_sentence
from mydata_like.gui.tables.problem_groups import HIDDEN, name_of_group
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.metrics import PAGE_WIDTH, SECTION
from mydata_like.gui.theme.texts import limit_name, limit_word
from mydata_like.gui.theme.widgets import ElidedLabel, PlainLabel
from mydata_like.gui.tray.tray_popup import LONGEST
from mydata_like.gui.window_state import WindowState
from mydata_like.settings.layers import LayerSources, load_settings
from mydata_like.ssh.keys import PublicKey, accept_host_key, check_host_key
from mydata_like.ssh.session import Endpoint
from tests.fakes.clock import FakeClock
from tests.gui.conftest import DEADLINE
from tests.gui.ledgers import WrittenLedger, an_entry
from tests.gui.scripted import BEGAN, ENDED, run_that

WHY = Problem("file.unreadable", "It cannot be read.", "Check it.")
MIDWAY = replace(
    NO_PROGRESS,
    found=100,
    checked=90,
    verified=30,
    wanted=60,
    sent=40,
    registered=25,
    waiting=5,
    skipped=3,
    failed=2,
    remaining=240.0,
)
MEASURED = StagesMeasured(
    stage="send", limit="source", byte_rate=56e6, busy={}, blocked={}, spent={}, processors=1.0
)


def test_the_parts_of_a_run_add_up_to_what_was_found():
    parts = count_files(RunState(phase=Phase.RUNNING, sums=MIDWAY))

    assert parts == StatusCounts(found=100, verified=30, open=60, waiting=5, skipped=3, failed=2)
    assert sum(parts[1:]) == parts.found


def test_each_stage_reports_its_queue():
    assert count_stages(MIDWAY) == [
        StageCount("scan", 100, 0),
        StageCount("check", 90, 10),
        StageCount("send", 40, 20),
        StageCount("register", 25, 15),
        StageCount("verify", 8, 17),
    ]


def test_the_strip_marks_the_limit_and_says_what_it_is(qtbot):
    strip = PipelineStrip()
    qtbot.addWidget(strip)

    strip.show_state(RunState(sums=MIDWAY, measured=MEASURED))
    shown = [label.text() for label in strip.findChildren(PlainLabel)]
    assert f"The limit: the disk of this computer, at {texts.rate(56e6)}" in shown
    assert "The limit" in shown

    strip.show_state(RunState(sums=MIDWAY))
    shown = [label.text() for label in strip.findChildren(PlainLabel)]
    assert not [text for text in shown if "limit" in text]
    assert "20 waiting" in shown


@pytest.mark.parametrize(
    ("size", "expected"),
    [(10_000_000, ["64.0 MB", "1.0 MB/s"]), (3_000, ["40", "0 files/s"])],
)
def test_of_large_files_the_stage_send_shows_bytes(qtbot, size, expected):
    strip = PipelineStrip()
    qtbot.addWidget(strip)
    wanted = MIDWAY.wanted * size
    sums = replace(MIDWAY, wanted_bytes=wanted, transferred_bytes=64_000_000, byte_rate=1e6)

    strip.show_state(RunState(phase=Phase.RUNNING, sums=sums))

    send = strip.findChildren(StageCard)[2]
    shown = [label.text() for label in send.findChildren(PlainLabel)]
    assert shown == ["Send", *expected, "20 waiting"]


def test_every_limit_of_a_run_has_words():
    assert {name: limit_name(name) for name in LIMITS} == LIMITS
    assert all(limit_word(name) for name in LIMITS)


UNAPPROVED = Problem("uploader.not-approved", "The key SHA256:x awaits approval.", "Approve it.")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (RunState(phase=Phase.UNSET), "Not set up"),
        (RunState(phase=Phase.RUNNING, sums=MIDWAY), "4 min left"),
        (RunState(phase=Phase.PAUSED, problem=WHY), "It cannot be read"),
        (RunState(phase=Phase.IDLE, awaited=UNAPPROVED), "let this computer in"),
        (RunState(phase=Phase.IDLE, awaited=UNAPPROVED, last=run_that(sent=3)), "are safe"),
        (RunState(phase=Phase.IDLE), "Ready"),
    ],
)
def test_one_sentence_says_how_things_stand(state, words):
    assert words in overview_sentence(state)


def test_a_part_of_the_bar_is_a_button_that_leads_to_its_files(controller, qtbot):
    bar = StatusBreakdownBar(controller)
    qtbot.addWidget(bar)
    bar.show_parts(StatusCounts(10, 7, 0, 0, 1, 2))
    failed = bar.findChild(QToolButton, "failed")

    with qtbot.waitSignal(controller.page_wanted) as chosen:
        failed.click()
    assert chosen.args == ["problems", "failed"]
    assert "2" in failed.text()


def test_only_parts_with_files_have_a_button(controller, qtbot):
    bar = StatusBreakdownBar(controller)
    qtbot.addWidget(bar)
    bar.show()

    bar.show_parts(StatusCounts(2, 0, 0, 0, 0, 2))

    shown = {one.objectName() for one in bar.findChildren(QToolButton) if one.isVisible()}
    assert shown == {"verified", "failed"}


def test_while_bytes_are_sent_their_bar_is_the_only_one(still_context, qtbot):
    page = OverviewPage(still_context)
    qtbot.addWidget(page)
    page.show()
    sums = replace(MIDWAY, wanted_bytes=290_000_000, transferred_bytes=58_000_000)

    def show(phase):
        state = RunState(phase=phase, sums=sums, last=run_that())
        still_context.controller.run_changed.emit(state)
        bars = page.findChild(SentBar), page.findChild(StatusBreakdownBar)._bar
        return [bar.isVisible() for bar in bars]

    assert show(Phase.RUNNING) == [True, False]
    assert page.findChild(SentBar).value() == 0.2 * ShareBar.PARTS
    assert page.findChild(QToolButton, "failed").isVisible()
    assert show(Phase.IDLE) == [False, True]


def test_before_the_first_run_nothing_warns_and_no_zeros_are_shown(controller, qtbot):
    context = AppContext(controller, controller.threads, WindowState(controller))
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    bar = page.findChild(StatusBreakdownBar)
    controller.turn(phase=Phase.IDLE)
    assert not bar.isVisible()
    assert _icon_of(controller.state) == ("start", "skipped")

    controller.turn(phase=Phase.RUNNING)
    assert bar.isVisible()
    controller.turn(phase=Phase.IDLE, last=run_that())
    assert bar.isVisible()
    controller.turn(last=None, at_risk=AtRisk(files=3, bytes=5000))
    assert _icon_of(controller.state)[1] == "waiting"


def test_before_the_set_up_there_are_two_ways_to_begin(open_context, qtbot):
    context = open_context()
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    qtbot.waitUntil(lambda: context.controller.state.phase == Phase.UNSET, timeout=DEADLINE)

    buttons = [button for button in page.findChildren(QPushButton) if button.isVisible()]
    assert len(buttons) == 2
    with qtbot.waitSignal(page._controller.page_wanted) as wanted:
        buttons[0].click()
    assert wanted.args == ["set-up", ""]
    with qtbot.waitSignal(page._controller.page_wanted) as wanted:
        buttons[1].click()
    assert wanted.args == ["demo", ""]


def test_before_the_set_up_a_lock_of_what_is_missing_is_named(still_context, tmp_path, qtbot):
    controller = still_context.controller
    page = OverviewPage(still_context)
    qtbot.addWidget(page)
    page.show()
    assert "server.username" in controller.state.missing
    assert not any("ocked" in text for text in shown_texts(page))

    managed = tmp_path / "managed.toml"
    managed.write_text(
        '[server]\nurl = "https://x.example.org"\n[locked]\nkeys = ["server.*"]\nby = "IT"\n'
    )
    user = tmp_path / "none.toml"
    controller.loaded = load_settings(LayerSources(user=user, managed=managed, environment={}))
    controller.run_changed.emit(replace(controller.state, missing=("server.username",)))

    said = f"Missing and locked by IT ({managed}): Account. Ask your administrator to enter it"
    assert [text for text in shown_texts(page) if text.startswith(said)], shown_texts(page)


def test_the_next_run_of_a_watch_comes_with_new_files(qtbot):
    at = datetime(2027, 1, 1, tzinfo=UTC)
    watch = RunState(phase=Phase.IDLE, schedule="watch", next_start=at, last=run_that())
    said = said_of(qtbot, watch)
    assert "With new files" in said
    assert f"A run starts when they no longer change, or {texts.moment(at)}." in said

    failed = replace(watch, last=run_that(problem=WHY))  # it is tried again then
    assert "With new files" not in said_of(qtbot, failed)
    assert texts.moment(at) in said_of(qtbot, failed)


def test_a_broken_engine_is_explained_and_the_button_goes_on(context, site, qtbot):
    controller = context.controller
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    controller.start()
    controller.pause()
    qtbot.waitUntil(lambda: controller.state.phase == Phase.PAUSED, timeout=DEADLINE)
    controller.engine.kill()
    qtbot.waitUntil(lambda: controller.state.phase == Phase.BROKEN, timeout=DEADLINE)
    (button,) = [button for button in page.findChildren(QPushButton) if button.isVisible()]

    button.click()
    qtbot.waitUntil(lambda: controller.state.phase == Phase.IDLE, timeout=DEADLINE)
    assert controller.state.last.safe
    assert site.find_wrongs() == []


def test_wrong_settings_are_opened_where_the_problem_is(controller, qtbot):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    wrong = Problem("s3.no-secret", "The secret is not stored.", "Enter it.")
    controller.turn(phase=Phase.BROKEN, problem=wrong)
    headline.show_state(controller.state)
    button = headline.findChild(QPushButton)
    assert button.text().replace("&", "") == "Open settings…"

    with qtbot.waitSignal(headline._controller.page_wanted) as wanted:
        button.click()
    assert wanted.args == ["settings", "transfer.s3_access_key"]
    assert not controller.orders


def test_settings_have_their_labels_in_sentence_hint_and_card(controller, qtbot):
    away = Problem("data.unavailable", "Wrong: data.directory.", "Check data.directory.")
    controller.turn(phase=Phase.IDLE, data_problem=away)
    headline, cards = Headline(controller, None), SummaryRow()
    for shown in (headline, cards):
        qtbot.addWidget(shown)
        shown.show_state(controller.state)

    said = [label.text() for label in headline.findChildren(PlainLabel)]
    assert [text for text in said if text] == ["Wrong: “Data directory”", "Check “Data directory”."]
    assert "Wrong: “Data directory”." in [label.text() for label in cards.findChildren(PlainLabel)]


def test_a_run_that_could_not_start_is_tried_again_at_the_time_that_is_shown(context, site, qtbot):
    controller = context.controller
    save_settings(site.config, {"instrument.facility": "None such"})
    controller.start()
    qtbot.waitUntil(lambda: controller.state.phase == Phase.BROKEN, timeout=DEADLINE)
    qtbot.waitUntil(lambda: controller.state.next_start is not None, timeout=DEADLINE)
    page = OverviewPage(context)
    qtbot.addWidget(page)

    said = [label.text() for label in page.findChildren(PlainLabel)]
    when = texts.moment(controller.state.next_start)
    assert [text for text in said if text.endswith(f"Next automatic try: {when}.")]
    assert when in said  # the card of the next run


@pytest.mark.parametrize(
    ("code", "again", "mark"),
    [
        ("server.connection-lost", True, ("waiting", "waiting")),
        ("server.connection-lost", False, ("error", "problem")),
        ("settings.invalid", True, ("error", "problem")),
    ],
)
def test_an_outage_that_will_be_tried_again_is_no_dead_end(code, again, mark):
    start = datetime(2027, 1, 1, tzinfo=UTC) if again else None
    state = RunState(phase=Phase.BROKEN, problem=Problem(code, "It broke."), next_start=start)

    assert _icon_of(state) == mark


def test_an_engine_that_dies_at_once_is_reported_and_not_restarted_for_ever(context, qtbot):
    with qtbot.waitSignal(context.controller.problem_raised, timeout=DEADLINE):
        context.controller.engine.kill()

    assert context.controller.state.phase == Phase.BROKEN
    assert context.controller.engine is None


def test_before_the_first_run_it_is_not_claimed_that_nothing_is_only_here(qtbot):
    row = SummaryRow()
    qtbot.addWidget(row)
    row.show_state(RunState(phase=Phase.IDLE))

    texts = [label.text() for label in row.findChildren(PlainLabel)]
    assert "Not known yet" in texts
    assert "Nothing" not in texts


def test_a_pause_by_the_user_has_the_windows_own_wording():
    paused = Problem("run.paused", "The user paused the run.")

    assert overview_sentence(RunState(phase=Phase.PAUSED, problem=paused)) == "Paused"
    assert overview_sentence(RunState(phase=Phase.PAUSED, problem=WHY)) == "It cannot be read"


def test_a_file_in_no_dataset_is_a_footnote_and_the_rest_is_safe(context, site, qtbot):
    (site.data / "notes.txt").write_text("beside the datasets")
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    controller = context.controller
    controller.start()
    qtbot.waitUntil(lambda: controller.state.last is not None, timeout=DEADLINE)
    last = controller.state.last
    assert (last.safe, last.outside, last.left_behind) == (True, 1, 0)
    note = "1 file(s) are in no dataset and stay here: notes.txt"
    qtbot.waitUntil(lambda: note in shown_texts(page), timeout=DEADLINE)
    safe = f"All {last.verified} file(s) are safe on the server as of {texts.moment(last.started)}"
    qtbot.waitUntil(lambda: safe in shown_texts(page), timeout=DEADLINE)

    said = shown_texts(page)
    assert _icon_of(controller.state) == ("check", "good")
    assert "Needs your attention" not in said
    assert not any("on purpose" in text or "Every file" in text for text in said)
    link = page.findChild(OutsideNote).findChild(QToolButton)
    with qtbot.waitSignal(controller.page_wanted) as wanted:
        link.click()
    assert wanted.args == ["problems", "skipped:skipped.outside-dataset"]


def test_the_note_of_files_in_no_dataset_is_hidden_with_their_kind(still_context, qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    note = OutsideNote(still_context, window)
    why = Problem(OUTSIDE, "It is in no dataset.")
    group = ProblemGroup("skipped", 12, 60, 1, b"a.txt", why)
    note.show_groups([group])
    assert not note.isHidden()
    assert note.findChild(ElidedLabel).full_text.endswith("a.txt, …")

    still_context.memory.setValue(HIDDEN, [name_of_group(group)])
    note.show_groups([group])
    assert note.isHidden()


def test_a_file_that_is_not_data_is_reported_without_alarm(context, site, qtbot):
    folder = next(site.data.rglob("*.*")).parent
    (folder / "Thumbs.db").write_text("made by the system")
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    context.controller.start()
    qtbot.waitUntil(lambda: context.controller.state.last is not None, timeout=DEADLINE)
    last = context.controller.state.last
    assert last.safe

    def read_page():
        return [label.text() for label in page.findChildren(PlainLabel) if label.isVisible()]

    # It changes when the ledger has been read again after the end of the run.
    safe = f"All {last.verified} file(s) are safe on the server as of {texts.moment(last.started)}"
    qtbot.waitUntil(lambda: safe in read_page(), timeout=DEADLINE)
    said = read_page()
    assert [text for text in said if "left out" in text] == [
        "Except for 1 file(s) that were left out."
    ]
    assert not any("Every file" in text for text in said)

    context.controller.show_test(under_way=True)
    assert "A speed test is in progress" in read_page()


def test_where_nothing_was_wanted_nothing_is_called_safe():
    state = RunState(phase=Phase.IDLE, last=run_that(found=2, skipped=2, verified=0))

    assert overview_sentence(state) == "No files to send were found"


def test_a_folder_that_was_not_read_is_only_here(qtbot):
    row = SummaryRow()
    qtbot.addWidget(row)
    row.show_state(RunState(phase=Phase.IDLE, last=run_that(left_behind=1)))

    texts = [label.text() for label in row.findChildren(PlainLabel)]
    assert "1 left out" in texts
    assert "Nothing" not in texts


def said_of(qtbot, state):
    row = SummaryRow()
    qtbot.addWidget(row)
    row.show_state(state)
    return [label.text() for label in row.findChildren(PlainLabel)]


SOURCE = KnownSource(b"/usb/a", Destination("", "usb", "a"), datetime(2026, 1, 1, tzinfo=UTC), None)
CUT = run_that(found=40, verified=6)
GONE = Problem("data.unavailable", "The data directory is gone.", "Connect it.")


@pytest.mark.parametrize(
    "changes",
    [
        {"interrupted": CUT},
        {"data_problem": GONE},
        {"sources": (SOURCE,)},
        {"at_risk": AtRisk(files=3, bytes=5000)},
        {"last": run_that(waiting=2)},
        {"last": run_that(problem=Problem("run.interrupted", "It was stopped."))},
        {"last": run_that(found=0)},
        {"last": run_that(reason="source"), "whole": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_with_any_doubt_nothing_is_called_safe_or_nothing(qtbot, changes):
    well = RunState(phase=Phase.IDLE, last=run_that())
    began = texts.moment(BEGAN)
    assert overview_sentence(well) == f"All 3 file(s) are safe on the server as of {began}"
    assert not safe_sentence(well)  # which would say it again
    assert "Nothing" in said_of(qtbot, well)

    state = replace(well, **changes)

    assert "All " not in overview_sentence(state)
    assert "Nothing" not in said_of(qtbot, state)
    assert _icon_of(state)[0] != "check"


def test_files_whose_copies_the_user_keeps_are_named_apart_from_safe_ones(qtbot, controller):
    whole = run_that(found=6, verified=4, skipped=2, kept=1)
    state = RunState(phase=Phase.IDLE, last=whole, kept=1)
    assert overview_sentence(state) == (
        f"4 file(s) are safe on the server as of {texts.moment(BEGAN)}; 1 file(s) differ from the "
        "server's copies, which you kept"
    )
    said = said_of(qtbot, state)
    assert "1 file(s)" in said
    assert "Different from the server's copies, which you kept." in said
    assert "Nothing" not in said
    page = QWidget()
    qtbot.addWidget(page)
    headline = Headline(controller, page, SECTION)  # as in the tray's pop-up
    headline.show_state(state)
    assert "1 file(s) were left out on purpose." in (
        label.text() for label in headline.findChildren(PlainLabel)
    )


def test_kept_copies_are_named_next_to_what_is_at_risk(qtbot):
    risk = AtRisk(files=3, bytes=5000)
    state = RunState(phase=Phase.IDLE, last=run_that(waiting=3, skipped=2), at_risk=risk, kept=2)

    assert "All " not in overview_sentence(state)
    said = said_of(qtbot, state)
    assert "3 file(s)" in said
    assert any(
        "2 more file(s) differ from the server's copies, which you kept" in it for it in said
    )


@pytest.mark.parametrize(
    ("skipped", "except_for"),
    [
        (2, "the files whose copies on the server you kept."),
        (3, "what was left out and the files whose copies on the server you kept."),
    ],
)
def test_until_when_everything_is_safe_excepts_kept_copies(skipped, except_for):
    whole = run_that(found=6, verified=6 - skipped, skipped=skipped, kept=2)
    said = safe_sentence(RunState(phase=Phase.RUNNING, whole=whole))

    assert said.endswith(f"is safe on the server, except for {except_for}")


def test_a_run_that_was_cut_off_is_said_with_what_exists_only_here(qtbot):
    risk = AtRisk(files=34, bytes=170_000_000)
    state = RunState(phase=Phase.IDLE, last=run_that(), interrupted=CUT, at_risk=risk)

    assert overview_sentence(state) == (
        f"The last run was interrupted. 34 file(s) ({texts.size(170e6)}) are still only on this "
        "computer"
    )
    assert "34 file(s)" in said_of(qtbot, state)
    assert count_files(state) == StatusCounts(40, 6, 0, 34, 0, 0)


@pytest.mark.parametrize(
    ("at_risk", "parts"),
    [
        (35, StatusCounts(75, 40, 0, 34, 1, 0)),  # one of them was left out
        (30, StatusCounts(75, 40, 0, 34, 1, 0)),
        (37, StatusCounts(77, 40, 0, 36, 1, 0)),  # found after the last count
    ],
)
def test_the_parts_of_an_interrupted_run_count_each_file_once(at_risk, parts):
    cut = replace(run_that(found=75, verified=40, skipped=1), finished=None)
    risk = AtRisk(files=at_risk, bytes=5000)
    state = RunState(phase=Phase.IDLE, interrupted=cut, at_risk=risk)

    assert count_files(state) == parts
    assert sum(parts[1:]) == parts.found


@pytest.mark.parametrize(
    "changes", [{"problem": Problem("run.stopped", "The user stopped it.")}, {"failed": 1}]
)
def test_a_run_that_sent_a_part_of_a_file_is_not_said_to_have_sent_nothing(qtbot, changes):
    said = said_of(qtbot, RunState(phase=Phase.IDLE, last=run_that(waiting=1, sent=0, **changes)))

    assert any("no file was sent completely" in text.lower() for text in said)


def test_a_data_folder_that_cannot_be_read_is_not_empty(qtbot):
    state = RunState(phase=Phase.IDLE, last=run_that(), data_problem=GONE)

    assert overview_sentence(state) == "The data directory is gone"
    assert "Cannot be read" in said_of(qtbot, state)


def test_without_the_data_directory_no_bar_contradicts_what_is_verified(still_context, qtbot):
    page = OverviewPage(still_context)
    qtbot.addWidget(page)
    page.show()
    bar = page.findChild(StatusBreakdownBar)
    state = RunState(phase=Phase.IDLE, last=run_that(found=0, problem=GONE))
    still_context.controller.run_changed.emit(state)
    assert bar.isVisible()

    still_context.controller.run_changed.emit(replace(state, data_problem=GONE))
    assert not bar.isVisible()


def test_while_a_run_is_at_work_the_card_names_the_larger_of_what_is_known(qtbot):
    risk = AtRisk(files=500, bytes=9_000_000)
    state = RunState(phase=Phase.RUNNING, sums=MIDWAY, at_risk=risk)

    assert "500 file(s)" in said_of(qtbot, state)
    assert "67 file(s)" in said_of(qtbot, replace(state, at_risk=AtRisk()))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Everything up to"),
        ({"whole": run_that(found=4, verified=3, skipped=1)}, "except for what was left out"),
        ({"whole": run_that(waiting=1)}, ""),
        ({"whole": run_that(found=0)}, ""),
        ({"whole": None}, ""),
        ({"sources": (SOURCE,)}, ""),
        ({"data_problem": WHY}, ""),
        ({"at_risk": AtRisk(1, 5, ENDED)}, "Everything up to"),
        ({"at_risk": AtRisk(1, 5, BEGAN)}, ""),
        ({"at_risk": AtRisk(1, 5, None)}, ""),
    ],
)
def test_until_when_everything_is_safe_is_said_of_what_a_complete_run_found(changes, words):
    state = replace(RunState(phase=Phase.RUNNING, whole=run_that()), **changes)

    said = safe_sentence(state)

    assert (words in said) if words else not said
    assert not said or texts.moment(BEGAN) in said


@pytest.fixture
def changed_key(tmp_path):
    """The problem of a staging host with another key than the known one, and both fingerprints."""
    kind = b"\0\0\0\x0bssh-ed25519"
    known, other = (PublicKey("ssh-ed25519", kind + bytes([last]) * 32) for last in (1, 2))
    hosts = tmp_path / "known_hosts"
    endpoint = Endpoint("staging.example", 2222, "mydata", tmp_path / "key", known_hosts=hosts)
    accept_host_key(hosts, endpoint.host, endpoint.port, known)
    with pytest.raises(HostKeyError) as raised:
        check_host_key(endpoint, other)
    return raised.value.problem, (known.fingerprint, other.fingerprint)


@pytest.mark.parametrize(
    ("last", "said"),
    [(None, "You can start already"), (run_that(sent=3), "Uploads get faster once")],
)
def test_while_the_approval_is_pending_the_next_step_is_named(controller, qtbot, last, said):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.turn(phase=Phase.IDLE, awaited=UNAPPROVED, last=last)
    headline.show_state(controller.state)
    headline.show()

    (_, hint) = shown_texts(headline)
    assert hint.startswith(said)
    assert "“Check key and approval” has a message" in hint


@pytest.mark.parametrize("ended", [False, True])
def test_another_host_key_is_a_sentence_with_fingerprints_folded_below(
    controller, qtbot, changed_key, ended
):
    problem, fingerprints = changed_key
    state = {"phase": Phase.BROKEN, "problem": problem}
    if ended:
        state = {"phase": Phase.IDLE, "last": replace(run_that(), problem=problem)}
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.turn(**state)
    headline.show_state(controller.state)
    headline.show()

    sentence, hint = shown_texts(headline)
    assert sentence == "The server's storage has changed its identity"
    assert "administrator" in hint
    assert "--accept-host-key" not in hint

    fold = headline.findChild(QToolButton)
    qtbot.mouseClick(fold, Qt.MouseButton.LeftButton)
    (details,) = set(shown_texts(headline)) - {sentence, hint}
    assert all(part in details for part in (*fingerprints, "--accept-host-key", "staging.example"))
    headline.show_state(controller.state)
    assert details in shown_texts(headline)
    qtbot.mouseClick(fold, Qt.MouseButton.LeftButton)
    assert shown_texts(headline) == [sentence, hint]

    controller.turn(phase=Phase.BROKEN, problem=WHY)
    headline.show_state(controller.state)
    assert not fold.isVisible()


def shown_texts(widget):
    return [label.text() for label in widget.findChildren(PlainLabel) if label.isVisible()]


@pytest.mark.parametrize(
    ("phase", "changes", "button"),
    [
        (Phase.IDLE, {"last": run_that()}, ("Start now", "start")),
        (Phase.IDLE, {"last": run_that(left_behind=1), "interrupted": CUT}, ("Continue", "start")),
        (Phase.RUNNING, {}, ("Pause", "pause")),
        (Phase.PAUSED, {"problem": WHY}, ("Resume", "resume")),
        (Phase.BROKEN, {"problem": WHY}, ("Start again", "start")),
    ],
)
def test_one_button_does_what_is_next(controller, qtbot, phase, changes, button):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.turn(phase=phase, **changes)
    headline.show_state(controller.state)
    shown = headline.findChild(QPushButton)

    shown.click()

    assert (shown.text().replace("&", ""), *controller.orders) == button


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": Phase.BROKEN, "problem": Problem("host-key.changed", "It has another key.")},
        {
            "phase": Phase.IDLE,
            "last": replace(run_that(), problem=Problem("host-key.changed", "It has another key.")),
        },
        {"phase": Phase.IDLE, "awaited": Problem("uploader.not-approved", "It waits.")},
    ],
    ids=["not started", "run ended", "not approved"],
)
def test_the_button_leads_to_key_and_approval_where_these_are_the_matter(
    controller, qtbot, changes
):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.turn(**changes)
    headline.show_state(controller.state)

    button = headline.findChild(QPushButton)
    with qtbot.waitSignal(controller.page_wanted) as wanted:
        button.click()
    assert button.text().replace("&", "") == "Check key and approval…"
    assert (wanted.args, controller.orders) == (["set-up", ""], [])


def test_a_pause_for_another_host_key_leads_to_where_it_is_judged(controller, qtbot):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.turn(phase=Phase.PAUSED, problem=Problem("host-key.changed", "It has another key."))
    headline.show_state(controller.state)

    button = headline.findChild(QPushButton)
    with qtbot.waitSignal(controller.page_wanted) as wanted:
        button.click()
    assert button.text().replace("&", "") == "Check key…"
    assert (wanted.args, controller.orders) == (["set-up", ""], [])


@pytest.mark.parametrize(
    ("code", "plain"),
    [
        ("link.refused", "The server's storage does not answer"),
        ("server.connection-lost", "The server does not answer"),
    ],
)
def test_an_outage_says_that_nothing_is_lost_and_when_it_is_tried_again(
    controller, qtbot, code, plain
):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.run_changed.connect(headline.show_state)
    headline.show()
    refused = "127.0.0.1 cannot be reached on port 22281: the connection was refused."
    sent = replace(MIDWAY, wanted_bytes=290_000_000, transferred_bytes=58_000_000, byte_rate=1e6)
    controller.turn(phase=Phase.RUNNING, sums=sent)
    now = datetime.now(UTC)
    controller._take_events(
        [
            RunPaused(problem=Problem(code, refused, "Check the network.")),
            RetryScheduled(at=now + timedelta(seconds=40, milliseconds=400)),
        ]
    )

    sentence, more = shown_texts(headline)
    assert sentence == plain
    assert "58.0 MB of 290.0 MB sent, 20 %. Your files are kept. Next try in " in more
    qtbot.mouseClick(headline.findChild(QToolButton), Qt.MouseButton.LeftButton)
    assert f"{refused}\nCheck the network." in shown_texts(headline)

    controller._set(next_try=now)
    assert "Next try" not in shown_texts(headline)[1]
    controller._take_events([RunResumed()])
    assert controller.state.next_try is None


def test_the_time_until_the_next_try_is_counted_down(controller, qtbot):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    headline.show()
    at = datetime.now(UTC) + timedelta(seconds=50)
    controller.turn(phase=Phase.PAUSED, problem=WHY, next_try=at)
    assert not any("Next try" in text for text in shown_texts(headline))

    controller.live_changed.emit(controller.live)

    assert any("Next try" in text for text in shown_texts(headline))


def test_a_pause_is_requested_once(controller, qtbot):
    headline = Headline(controller, None)
    qtbot.addWidget(headline)
    controller.run_changed.connect(headline.show_state)
    controller.turn(phase=Phase.RUNNING)
    button = headline.findChild(QPushButton)

    button.click()
    button.click()
    assert controller.orders == ["pause"]
    assert not button.isEnabled()
    controller.turn(phase=Phase.PAUSED)
    assert button.isEnabled()


class Listed(NamedTuple):
    """The list of datasets in a window of its own."""

    window: QWidget
    datasets: RecentDatasets

    @property
    def names(self) -> list[str]:
        return [bar.accessibleName() for bar in self.bars]

    @property
    def bars(self) -> list[ShareBar]:
        return [bar for bar in self.datasets.findChildren(ShareBar) if bar.isVisible()]


@pytest.fixture
def list_datasets(context, qtbot):
    """Return a function that opens the list of datasets."""

    def open_it(most=3):
        window = QWidget()
        qtbot.addWidget(window)
        layout = QVBoxLayout(window)
        listed = RecentDatasets(context, window, most)
        layout.addWidget(listed)
        window.show()
        return Listed(window, listed)

    return open_it


def write_datasets(context, *names, verified=3):
    """Record datasets of three files of 10 bytes, the last one a second later than the others."""
    controller = context.controller
    written = WrittenLedger.of(controller.settings, controller.config)
    sums = {"found": 3, "found_bytes": 30, "verified": verified, "verified_bytes": 10 * verified}
    for name in names:
        written.ledger.record_folders([FolderSums(name, name.decode(), None, "ann", "", **sums)])
        written.ledger.record([an_entry(name + b"/a", 10)])
        written.clock.move(1)
    written.close()


def test_datasets_are_listed_without_a_run_of_this_program(context, qtbot, list_datasets):
    write_datasets(context, b"first", b"second", b"third")
    listed = list_datasets()

    listed.datasets.query.refresh()
    qtbot.waitUntil(lambda: len(listed.names) == 3, timeout=DEADLINE)

    when = texts.moment(FakeClock().now())
    assert "Recent datasets" in shown_texts(listed.datasets)
    assert [name.partition(" ")[0] for name in listed.names] == ["third", "second", "first"]
    assert sum(when[:-3] in text for text in shown_texts(listed.datasets)) == 3


def test_datasets_are_read_again_after_a_run_of_another_program(context, qtbot, list_datasets):
    listed = list_datasets()
    listed.datasets.query.refresh()
    write_datasets(context, b"first")

    elsewhere = RunState(phase=Phase.RUNNING, elsewhere=True)
    listed.datasets.show_state(elsewhere)
    qtbot.waitUntil(lambda: len(listed.names) == 1, timeout=DEADLINE)

    write_datasets(context, b"second")
    listed.datasets.show_state(RunState(phase=Phase.IDLE, last=run_that()))
    qtbot.waitUntil(lambda: len(listed.names) == 2, timeout=DEADLINE)


def test_there_are_as_many_datasets_as_have_room(context, qtbot):
    write_datasets(context, *(b"%d" % number for number in range(MAX_ROWS + 1)))
    page = OverviewPage(context)
    qtbot.addWidget(page)
    listed = page.findChild(RecentDatasets)

    def count():
        return len([bar for bar in listed.findChildren(ShareBar) if bar.isVisible()])

    page.resize(900, 2000)
    page.show()
    qtbot.waitUntil(lambda: count() == MAX_ROWS, timeout=DEADLINE)
    page.resize(900, 100)
    qtbot.waitUntil(lambda: count() == MIN_ROWS, timeout=DEADLINE)
    page.resize(900, 2000)
    qtbot.waitUntil(lambda: count() == MAX_ROWS, timeout=DEADLINE)


def test_a_bar_is_full_only_if_every_file_is_verified(context, qtbot, list_datasets):
    written = WrittenLedger.of(context.controller.settings, context.controller.config)
    sums = {"found": 2, "found_bytes": 10**9, "verified": 1, "verified_bytes": 10**9 - 1}
    written.ledger.record_folders([FolderSums(b"one", "one", None, "ann", "", **sums)])
    written.ledger.record([an_entry(b"one/a", 10**9 - 1)])
    written.close()
    listed = list_datasets()

    listed.datasets.query.refresh()
    qtbot.waitUntil(lambda: len(listed.bars) == 1, timeout=DEADLINE)

    assert listed.bars[0].value() == 0.97 * ShareBar.PARTS


def test_the_datasets_of_active_transfers_are_listed_with_what_is_verified(
    context, site, qtbot, list_datasets
):
    assert site.run().code == 0
    files = [path for path in sorted(site.data.rglob("*")) if path.is_file()]
    key = os.fsencode(files[0].relative_to(site.data).as_posix())
    listed = list_datasets()

    listed.datasets.show_transfers((ActiveTransfer(1, 1, key, 1, 10),))
    listed.datasets.show_state(RunState(phase=Phase.RUNNING))
    folder = key.split(b"/")[1].decode()
    qtbot.waitUntil(lambda: any(folder in name for name in listed.names), timeout=DEADLINE)

    assert all(name.endswith("verified") for name in listed.names)


def test_bytes_that_were_sent_stay_in_the_bar_until_they_are_verified(
    context, qtbot, list_datasets
):
    controller = context.controller
    written = WrittenLedger.of(controller.settings, controller.config)
    sums = {"found": 2, "found_bytes": 10, "verified": 0, "verified_bytes": 0}
    written.ledger.record_folders([FolderSums(b"ann/1", "1", None, "ann", "", **sums)])
    found = [Outcome(key, 5, 0, "found", UNSENT) for key in (b"ann/1/a", b"ann/1/b")]
    written.ledger.record_outcomes(found)
    written.ledger.record([an_entry(b"ann/1/a", 5, EntryState.REGISTERED)])
    written.close()
    listed = list_datasets()

    listed.datasets.show_transfers((ActiveTransfer(1, 1, b"ann/1/b", 1, 5, done=2),))
    listed.datasets.show_state(RunState(phase=Phase.RUNNING))
    qtbot.waitUntil(lambda: len(listed.bars) == 1, timeout=DEADLINE)

    assert listed.bars[0].value() == 0.7 * ShareBar.PARTS
    assert listed.names[0].endswith("0 of 2 file(s) verified")


def test_what_someone_has_to_fix_leads_to_its_kind_of_problem(context, qtbot):
    kinds = {
        b"a": ("waiting", Problem("file.changed", "It changed.")),  # needs nobody
        b"b": ("failed", Problem("staging.full", "The staging area is full.")),  # is hidden
        b"c": ("skipped", Problem("skipped.layout", "It does not fit the layout.")),
        b"g": ("skipped", Problem(OUTSIDE, "It is in no dataset folder.")),
        b"d": ("failed", WHY),
        b"e": ("failed", Problem("staging.no-host", "There is no staging host.")),
        b"f": ("folder-failed", WHY),
        b"h": ("found", UNSENT),  # the headline says so
    }
    written = WrittenLedger.of(context.controller.settings, context.controller.config)
    written.ledger.record_outcomes(
        [Outcome(path, 5, 0, kind, problem) for path, (kind, problem) in kinds.items()]
    )
    written.close()
    context.memory.setValue(HIDDEN, ["failed:staging.full"])
    window = QWidget()
    qtbot.addWidget(window)
    shown = OpenProblems(context, window)
    window.show()

    shown.query.refresh()
    qtbot.waitUntil(lambda: not shown.isHidden(), timeout=DEADLINE)

    buttons = [one for one in shown.findChildren(QPushButton) if one.isVisible()]
    said = [button.accessibleName().partition(": ")[2] for button in buttons]
    assert said[0] == "1 file(s): It cannot be read."
    assert len(said) == 3
    assert "and 1 more kind(s) of problems" in shown_texts(shown)
    with qtbot.waitSignal(context.controller.page_wanted) as wanted:
        buttons[0].click()
    assert wanted.args == ["problems", "failed:file.unreadable"]


def test_bytes_under_way_belong_to_the_innermost_dataset():
    group = FolderGroup("ann", "", None, "1", b"ann/1", 1, 9, 90, 3, 30, 0, 0, 0)
    above = group._replace(path=b"ann")
    transfers = [
        ActiveTransfer(1, 1, b"ann/1/a", 1, 20, done=7),
        ActiveTransfer(2, 2, b"ann/10/b", 1, 20, done=5),
        ActiveTransfer(3, 3, b"eve/c", 1, 20, done=3),
    ]

    found = group_transfers([above.path, group.path], transfers)
    assert {path: [one.done for one in those] for path, those in found.items()} == {
        above.path: [5],
        group.path: [7],
    }


def test_what_is_being_sent_comes_first_and_moves_only_when_it_is_begun_or_sent(
    context, qtbot, list_datasets
):
    write_datasets(context, b"a", b"b", b"c", b"d", verified=1)
    listed = list_datasets(most=4)
    datasets = listed.datasets

    def send(*files):
        datasets.show_transfers(
            [ActiveTransfer(at, 1, name, 1, 20, done=7) for at, name in enumerate(files)]
        )
        return "".join(name[0] for name in listed.names)

    datasets.show_state(RunState(phase=Phase.RUNNING))
    qtbot.waitUntil(lambda: len(listed.names) == 4, timeout=DEADLINE)
    assert send(b"c/tile_7.tif") == "cabd"
    assert "tile_7.tif" in [it.full_text for it in datasets.findChildren(ElidedLabel)]
    assert send(b"c/tile_8.tif", b"b/one") == "bcad"
    assert send() == send(b"b/two") == send(b"c/tile_9.tif") == "bcad"

    sent = datasets._shown[0]._replace(at=None)
    groups = {it.group.path: it.group for it in datasets._shown}
    done = groups[b"b"]._replace(sent_bytes=20)
    datasets._show_datasets(
        [sent._replace(group=done if path == b"b" else groups[path]) for path in sorted(groups)]
    )
    assert send(b"c/tile_9.tif") == "cabd"


def test_the_details_stay_open_until_they_are_closed(qtbot, still_context):
    panel = DetailsPanel(still_context.memory, None)
    qtbot.addWidget(panel)
    assert not panel.is_open
    assert not panel.findChild(PipelineStrip).isVisibleTo(panel)

    with qtbot.waitSignal(panel.changed):
        panel.toggle()
    again = DetailsPanel(still_context.memory, None)
    qtbot.addWidget(again)

    assert again.is_open
    assert again.findChild(PipelineStrip).isVisibleTo(again)


def test_the_way_from_instrument_to_server_has_their_names(context, site, qtbot):
    route = RouteRow(context.controller, None)
    qtbot.addWidget(route)
    save_settings(site.config, {"instrument.name": "Confocal 2"})
    with qtbot.waitSignal(context.controller.settings_changed):
        context.controller.reload_settings()

    route.show_state(RunState(phase=Phase.RUNNING, server=ServerIndicator.REACHABLE, heard=True))

    said = [label.text() for label in route.findChildren(PlainLabel)]
    host = context.controller.settings.server.url.partition("://")[2].strip("/")
    assert said == ["Confocal 2", host, "Server reachable"]


@pytest.mark.parametrize(("name", "whole"), [("Confocal 2", True), ("Confocal " * 5, False)])
def test_a_name_uses_the_room_that_the_other_leaves(context, site, qtbot, name, whole):
    route = RouteRow(context.controller, None, LONGEST)
    qtbot.addWidget(route)
    save_settings(site.config, {"instrument.name": name})
    with qtbot.waitSignal(context.controller.settings_changed):
        context.controller.reload_settings()

    _, server, _ = route.findChildren(PlainLabel)
    host = context.controller.settings.server.url.partition("://")[2].strip("/")
    assert (server.text() == host) is whole


NOON = datetime(2026, 11, 29, 12, 1).astimezone()
LATE = replace(NO_PROGRESS, seconds=4000.0, remaining=6000.0, awake=True)
LEAVE = "You may lock the screen; the computer stays awake until then."


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Everything will be safe by about 13:45."),
        ({"seconds": 1000.0}, "Everything will be safe between 13:00 and 16:15."),
        ({"remaining": 43_200.0, "seconds": 43_200.0}, "Everything will be safe by about tomorrow"),
        ({"waiting": 1}, "What is being sent will be safe by about 13:45."),
        ({"failed": 1, "seconds": 9.0}, "What is being sent will be safe between 13:00 and"),
        ({"awake": False}, ""),
        ({"remaining": None}, ""),
    ],
)
def test_the_overview_says_when_a_run_will_be_done(changes, said):
    state = RunState(phase=Phase.RUNNING, sums=replace(LATE, **changes))
    sentence = end_sentence(state, NOON)

    assert sentence.startswith(said)
    assert sentence.endswith(LEAVE if said else "")
    assert not sentence or said


@pytest.mark.parametrize("phase", [Phase.PAUSED, Phase.PAUSING, Phase.STARTING, Phase.IDLE])
def test_a_run_that_is_held_has_no_end(phase):
    assert end_sentence(RunState(phase=phase, sums=LATE), NOON) == ""


def test_an_estimate_that_has_risen_is_a_range():
    state = RunState(phase=Phase.RUNNING, sums=LATE, rise=Rise.FOUND)

    assert " between " in end_sentence(state, NOON)


def test_on_a_wide_screen_the_overview_keeps_to_a_readable_width(still_context, qtbot):
    page = OverviewPage(still_context)
    qtbot.addWidget(page)
    page.resize(1740, 1000)
    page.show()
    still_context.controller.run_changed.emit(RunState(phase=Phase.IDLE, last=run_that()))
    row = page.findChild(SummaryRow)
    card = row.findChild(PlainLabel).parentWidget()
    widest = page.fontMetrics().averageCharWidth() * PAGE_WIDTH

    qtbot.waitUntil(lambda: 0 < row.width() <= widest)
    assert card.height() < page.fontMetrics().height() * 8
