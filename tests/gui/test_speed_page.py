"""The page of the speed test: the real test in a process of its own, and what it shows."""

import os
import signal
from dataclasses import replace

import pytest
from PySide6.QtGui import QGuiApplication

from mydata_like.app.settings_service import save_settings
from mydata_like.gui.engine_process import Engine
from mydata_like.gui.pages.speed_page import EMPTY, RESULT, RUNNING, SpeedPage
from mydata_like.gui.speed_test import speedtest_texts
from mydata_like.gui.speed_test.result_view import ResultView, choose_scale
from mydata_like.gui.speed_test.speedtest_process import (
    STAGES,
    TOGETHER,
    WORKLOADS,
    SpeedTestProcess,
    read_report,
)
from mydata_like.gui.theme.widgets import FoldButton
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_data_directory
from mydata_like.settings.schema import Settings
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest import runner
from mydata_like.speedtest.results import StageResult, Workload
from tests.gui.speed_records import AUTOMATIC, UNKNOWN, a_record, findings, in_folder, keep
from tests.sshd_fixture import needs_sshd

FASTER = findings(compared=(AUTOMATIC,))
LOCK = {"transfer.channels": "the facility (/etc/mydata-like.toml)"}


@pytest.fixture
def open_page(qtbot):
    opened = []  # a page lives as long as someone knows it

    def open_it(context):
        page = SpeedPage(context)
        qtbot.addWidget(page)
        opened.append(page)
        page.resize(900, 700)
        page.show()
        page.show_page()
        qtbot.waitUntil(lambda: not context.tasks.busy)
        return page

    return open_it


@pytest.fixture
def view(qtbot):
    """Return what is shown of tests, the latest first."""
    opened = []

    def show(*records, locks=(), **settings):
        view = ResultView()
        qtbot.addWidget(view)
        opened.append(view)
        view.show_reports([read_report(record) for record in records])
        view.show_settings(Settings(transfer=Transfer(**settings)), dict(locks))
        view.show()
        return view

    return show


def choose(view, workload):
    view._workloads.button(WORKLOADS.index(workload)).click()


def bars(view):
    return view._chart.accessibleDescription().replace(",", "").splitlines()


def test_a_page_without_tests_says_what_one_is_for(still_context, open_page):
    page = open_page(still_context)

    assert page._middle.currentIndex() == EMPTY
    assert page._test_first.isVisible()
    assert not page._test_first.isEnabled()
    assert "Set up" in page._notice.text


def test_the_latest_test_is_shown_with_its_sentence(still_context, open_page):
    keep(still_context, a_record(0), {"at": "of another version"}, a_record(1))

    page = open_page(still_context)

    assert page._middle.currentIndex() == RESULT
    assert page._result.report == read_report(a_record(1))
    assert page._sentence.text().replace(",", "") == (
        "Large files: 84.0 MB/s. The limit is the connection to the server's storage "
        "(112.0 MB/s).\n"
        "Tiny files: 4000 files/s. The limit is the server in earlier runs (190 files/s)."
    )


def test_each_part_has_a_bar_and_the_slowest_a_word(view):
    assert bars(view(a_record())) == [
        "Disk of this computer: 480.0 MB/s",
        "Checksums: 2.3 GB/s",
        "Connection: 112.0 MB/s; this is the slowest",
        "Disk of the server: 310.0 MB/s",
        "All together: 84.0 MB/s",
    ]


def test_without_the_way_to_the_server_it_says_what_is_known_before_it(view):
    before_it = (StageResult.SOURCE, StageResult.HASH, StageResult.API)
    measured = tuple(one for one in findings().measured if one.stage in before_it)

    report = view(a_record(0, replace(findings(), measured=measured, compared=()))).report

    assert speedtest_texts.limit_sentence(report).startswith(
        "Large files: not sent. The limit is the disk of this computer"
    )
    assert report.advice == []


def test_a_mounted_folder_takes_the_place_of_network_and_server(view):
    shown = view(a_record(0, in_folder()))

    assert "The limit is the mounted folder" in speedtest_texts.limit_sentence(shown.report)
    assert [bar.partition(":")[0] for bar in bars(shown)] == [
        "Disk of this computer",
        "Checksums",
        "Mounted folder",
        "All together",
    ]
    model = shown._figures.figures
    rows = [tuple(model.index(row, column).data() for column in range(3)) for row in range(8)]
    assert ("Mounted folder", "Renaming a file", "4.0 ms") in rows


def test_a_test_of_an_earlier_version_is_shown_without_what_it_predicted(view):
    """It had bytes a second for tiny files as well, and recommendations without comparisons."""
    record = a_record(0, FASTER)
    del record["findings"]["compared"]
    rates = {"API": 570e3, "source": 8.7e6}
    record["verdict"]["workloads"] = [
        {"workload": "tiny", "rate": 570e3, "files_per_second": 190.0, "limit": "API",
         "behind": "source", "rates": rates},
    ]  # fmt: skip

    shown = view(record)
    choose(shown, "tiny")

    assert bars(shown) == [
        "Disk of this computer: 2900 files/s",
        "Server's API: 190 files/s; this is the slowest",
    ]
    assert shown._advice.text() == ""
    assert shown._apply.isHidden()


def test_tiny_files_are_counted(view):
    shown = view(a_record())

    choose(shown, "tiny")

    assert "Server's API: 190 files/s; this is the slowest" in bars(shown)
    assert "Disk of this computer: 2900 files/s" in bars(shown)


def test_another_test_is_shown_next_to_it(view):
    shown = view(a_record(1), a_record(0, findings(network=50e6)))

    shown._earlier.setCurrentIndex(1)

    assert "Connection: 112.0 MB/s; earlier 50.0 MB/s; this is the slowest" in bars(shown)


def test_an_earlier_test_can_be_shown_but_not_applied(view):
    slow = a_record(0, findings(network=50e6, compared=(AUTOMATIC,)))
    shown = view(a_record(1, FASTER), slow, channels=1)
    assert not shown._apply.isHidden()

    shown._shown.setCurrentIndex(1)

    assert "Connection: 50.0 MB/s; this is the slowest" in bars(shown)
    assert shown._apply.isHidden()


@pytest.mark.parametrize("rates", [(5.0,), (3e6, 5e6), (1e6, 9.99e7), (1e8, 1e8)])
def test_the_lowest_rate_has_a_bar_and_the_highest_has_room(rates):
    scale = choose_scale(rates)

    places = [scale.place(rate) for rate in rates]
    assert all(0.05 < place < 1.0 for place in places)
    assert all(0.0 <= scale.place(line) <= 1.0 for line in scale.decades())


def test_what_is_locked_is_said_to_be_and_not_applied(view):
    allowed = view(a_record(0, FASTER), channels=1)
    locked = view(a_record(0, FASTER), locks=LOCK, channels=1)

    assert "Choose the number of channels automatically. (Large files: 2 times as fast)" in (
        allowed._advice.text()
    )
    assert not allowed._apply.isHidden()
    assert "Locked by the facility" in locked._advice.text()
    assert locked._apply.isHidden()


def test_what_made_no_difference_is_shown_with_both_speeds(view):
    tried = view(a_record())._tried.text()

    assert "Offer the cipher chacha20-poly1305@openssh.com first. (Large files: 71.0 MB/s" in tried
    assert "now 82.0 MB/s" in tried
    assert view(a_record())._advice.text() == "No other setting that was tried was faster twice."


def test_what_is_in_force_already_is_not_applied_again(view):
    assert view(a_record(0, FASTER), channels=0)._apply.isHidden()


def test_it_is_copied_as_text_for_support(view):
    shown = view(a_record())

    shown._copy.click()

    text = QGuiApplication.clipboard().text()
    assert "Large files: 84.0 MB/s." in text
    assert "Connection: 112.0 MB/s (the slowest)" in text
    assert "Checksums, MD5 on all cores: 2.3 GB/s" in text
    assert f"- {UNKNOWN}" in text


def test_all_figures_are_in_a_table(view, qtmodeltester):
    shown = view(a_record())

    assert not shown._figures.isVisibleTo(shown)
    shown.findChild(FoldButton).click()

    model = shown._figures.figures
    rows = [tuple(model.index(row, column).data() for column in range(3)) for row in range(15)]
    assert shown._figures.isVisibleTo(shown)
    assert ("Connection", "Round trip", "0.4 ms") in rows
    assert ("Connection", "4 session(s)", "112.0 MB/s") in rows
    assert ("Disk of this computer", "Size when compressed", "62 %") in rows
    qtmodeltester.check(model)


def test_every_stage_and_workload_of_the_program_has_a_name():
    assert {*STAGES, TOGETHER, "cipher"} == set(StageResult)
    assert set(WORKLOADS) == set(Workload)
    for stage in StageResult:
        assert speedtest_texts.stage_title(stage) != stage
    for stage in STAGES:
        assert speedtest_texts.stage_phrase(stage) != stage


def test_sentences_that_the_test_always_says_alike_are_known():
    said = {runner._WITHOUT_SHELL, runner._NO_RECORDS, runner._IN_PLACE}

    assert said <= set(speedtest_texts._SENTENCES)


@pytest.mark.parametrize(
    ("said", "german"),
    [
        (
            "The disk of the server could not be fully measured: no room",
            "Nicht vollständig gemessen: Festplatte des Servers (no room)",
        ),
        (
            "together, tiny files: there was no time left to measure this.",
            "Für diese Messung blieb keine Zeit: Alles zusammen, winzige Dateien",
        ),
        (
            "The connection to the server was not measured: ask for approval first (register).",
            "Die Verbindung zum Server wurde nicht gemessen: Bitten Sie zuerst um die Freigabe.",
        ),
        (
            "The connection to the server was not measured: files are sent to object storage.",
            "Die Verbindung zum Server wurde nicht gemessen: Dateien werden in einen "
            "Objektspeicher übertragen.",
        ),
        (
            "The mounted folder could not be fully measured: The folder /mnt does not respond.",
            "Nicht vollständig gemessen: Eingehängter Ordner (Der Ordner /mnt antwortet nicht.)",
        ),
        (
            ".mydata-like-doctor-1 in the folder could not be removed; the next test removes it.",
            ".mydata-like-doctor-1 im Ordner konnte nicht entfernt werden; der nächste Test "
            "entfernt es.",
        ),
        (
            "A speed test would disturb the instrument or its network now. scan.exe is running: "
            "nothing is sent.",
            "Ein Geschwindigkeitstest würde das Instrument oder sein Netz jetzt stören. scan.exe "
            "läuft: Es wird nichts gesendet.",
        ),
        ("Nobody knows this sentence.", "Nobody knows this sentence."),
    ],
)
def test_the_texts_of_the_speed_test_are_translated(spoken, said, german):
    spoken("de")

    assert speedtest_texts.interpret(said) == german


@needs_sshd
def test_a_test_with_a_limit_is_made_if_the_user_insists(context, site, open_page, qtbot):
    assert site.command("register").code == 0
    save_settings(site.config, {"limits.bandwidth": 1.0})
    page = open_page(context)

    page._run_quick_test()
    assert page._middle.currentIndex() == RUNNING
    assert context.controller.state.phase == "testing"
    qtbot.waitUntil(lambda: not page._notice.isHidden())
    assert "would disturb the instrument or its network" in page._notice.text
    assert "(“Bandwidth”) now" in page._notice.text
    assert "--anyway" not in page._notice.text
    page._notice.anyway.click()
    qtbot.waitUntil(lambda: page._middle.currentIndex() == RESULT)

    assert page._notice.isHidden()
    assert page._sentence.text().startswith("Large files: ")
    assert any("this is the slowest" in bar for bar in bars(page._result))
    assert context.controller.state.phase == "idle"


def test_a_test_that_is_cancelled_ends_automatically(context, open_page, qtbot):
    page = open_page(context)
    page._test_first.click()
    qtbot.waitUntil(lambda: page._partial.figures.rowCount() > 0)

    page._cancel.click()
    assert not page._cancel.isEnabled()
    qtbot.waitUntil(lambda: page._middle.currentIndex() == EMPTY)

    assert page._notice.isHidden()
    assert page._test_first.isEnabled()


def test_a_test_that_crashes_is_reported_and_another_one_can_be_made(context, open_page, qtbot):
    page = open_page(context)
    page._test_first.click()
    qtbot.waitUntil(lambda: page._partial.figures.rowCount() > 0)

    os.kill(page._process._engine.number, signal.SIGKILL)
    qtbot.waitUntil(lambda: not page._notice.isHidden())

    assert "ended unexpectedly (a crash)" in page._notice.text
    assert page._middle.currentIndex() == EMPTY
    assert page._test_first.isEnabled()


def test_no_speed_test_starts_during_a_run(context, site, open_page, qtbot):
    page = open_page(context)
    told = []
    examiner = SpeedTestProcess(context.controller)
    examiner.ended.connect(told.append)
    with lock_data_directory(site.state, bytes(site.data), SystemClock()):
        qtbot.waitUntil(lambda: context.controller.state.phase == "elsewhere")
        assert not page._test_first.isEnabled()
        assert "A run is active" in page._notice.text

        examiner.test(quick=True, anyway=False)
        qtbot.waitUntil(lambda: bool(told))
        assert told[0].code == "run.already-running"


def test_advice_is_applied_and_undone(context, site, open_page, qtbot):
    save_settings(site.config, {"transfer.channels": 1})
    with qtbot.waitSignal(context.controller.settings_changed):
        context.controller.reload_settings()
    keep(context, a_record(0, FASTER))
    page = open_page(context)

    page._result._apply.click()
    qtbot.waitUntil(lambda: context.controller.settings.transfer.channels == 0)
    qtbot.waitUntil(lambda: not page._result._undo.isHidden())
    assert page._notice.text == ""
    assert page._result._apply.isHidden()

    page._result._undo.click()
    qtbot.waitUntil(lambda: context.controller.settings.transfer.channels == 1)
    qtbot.waitUntil(lambda: page._result._undo.isHidden())


def test_a_test_that_cannot_be_started_ends_and_says_so(context, full, qtbot):
    examiner = SpeedTestProcess(context.controller)
    with qtbot.waitSignal(examiner.ended) as ended, full():
        examiner.test(quick=True, anyway=False)

    assert ended.args[0].code == "window.test-ended"
    assert not examiner.at_work
    qtbot.waitUntil(lambda: not examiner.findChildren(Engine))
    assert context.controller.state.phase == "idle"
    assert context.controller.state.can_start
