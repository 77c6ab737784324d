"""A German window says in German what the engine reports, wherever it is shown."""

import os

import pytest

from mydata_like.app.settings_service import save_settings
from mydata_like.core.errors import Problem
from mydata_like.core.model import Outcome
from mydata_like.demo.middleware import Fault, Reset
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.overview.overview_page import OverviewPage
from mydata_like.gui.pages.problems_page import ProblemsPage
from mydata_like.gui.pages.transfers_page import TransfersModel, TransfersPage
from mydata_like.gui.pages.where_page import WherePage
from mydata_like.gui.run_state import Phase
from mydata_like.gui.settings_editor.connection_test_view import ConnectionTestDialog
from mydata_like.gui.table_model import BELOW
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.tray.notifications import NotificationPolicy
from mydata_like.gui.tray.tray_menu import Tray
from mydata_like.gui.wizard.mydata_import_dialog import MyDataImportDialog
from tests.gui.conftest import QUICK
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd
from tests.staging import small_disk

FULL = "Der Server ist voll"
UNREADABLE = Problem(
    "file.unreadable",
    "The file cannot be read: permission denied.",
    "Check its permissions and its drive; the next run tries again.",
)
GONE = Problem("link.lost", "The connection to host-1 was lost.")


@pytest.fixture(autouse=True)
def german(spoken):
    spoken("de")


@pytest.fixture
def full_site(tmp_path, home):
    """A site with a file that is larger than the disk of the staging area."""
    make_data(tmp_path / "site", tiny_files=3, large=3_000_000)
    with open_site(tmp_path / "site") as opened, small_disk(opened, "2m"):
        save_settings(opened.config, QUICK | {"advanced.pause_patience": 0})
        yield opened


@pytest.fixture
def show(qtbot):
    """Return a function that shows a widget and keeps it until the end of the test."""
    shown = []

    def show_it(widget):
        qtbot.addWidget(widget)
        shown.append(widget)
        widget.resize(1000, 700)
        widget.show()
        return widget

    return show_it


def read(widget):
    """Return all texts that a widget shows."""
    return [label.text() for label in widget.findChildren(PlainLabel) if label.isVisible()]


def cells(model):
    rows, columns = range(model.rowCount()), range(model.columnCount())
    return [[model.index(row, column).data() for column in columns] for row in rows]


@needs_sshd
def test_a_full_staging_area_is_explained_in_german(full_site, open_context, show, qtbot):
    largest = max(full_site.data.rglob("*"), key=lambda path: path.stat().st_size)
    large = largest.with_name("large.raw")
    large.write_bytes(os.urandom(5_000_000))  # more than the staging area has
    large.with_name("dead").symlink_to("nowhere")
    context = open_context(full_site.config)
    overview, tray = (
        show(OverviewPage(context)),
        Tray(context.controller, is_available=lambda: True),
    )
    qtbot.waitUntil(lambda: context.controller.state.phase == "idle")
    context.controller.start()
    qtbot.waitUntil(lambda: context.controller.state.last is not None)

    qtbot.waitUntil(lambda: any(text.startswith(FULL) for text in read(overview)))
    problem = context.controller.state.last.problem
    message = NotificationPolicy(lambda kind: True).on_problem(problem, 0.0)
    assert message.text.startswith(f"{FULL}. Der nächste Lauf sendet sie.")
    qtbot.waitUntil(lambda: tray.icon.toolTip().startswith(FULL))
    problems = show(ProblemsPage(context))
    problems.show_page()
    qtbot.waitUntil(lambda: len(problems._kinds.groups) > 1)
    model = problems._kinds._list.model()
    kinds = " ".join(model.index(row).data() for row in range(model.rowCount()))
    assert f"{FULL}." in kinds
    assert "Die Einstellungen schließen symbolische Verknüpfungen dieser Art aus." in kinds
    where = show(WherePage(context))
    where.show_page()
    where.look_for(str(large))
    qtbot.waitUntil(lambda: any("ist kein Platz für" in text for text in read(where)))


@needs_sshd
def test_an_outage_of_the_server_is_explained_in_german(context, site, show, qtbot):
    overview, tray = (
        show(OverviewPage(context)),
        Tray(context.controller, is_available=lambda: True),
    )
    problems = show(ProblemsPage(context))
    problems.show_page()
    site.server.faults.add(Fault(action=Reset(handled=False), count=None))
    context.controller.start()
    qtbot.waitUntil(lambda: context.controller.state.phase is Phase.PAUSED)

    lost, kept = "Der Server antwortet nicht", "Ihre Dateien bleiben erhalten."
    said = read(overview)
    assert lost in said
    assert any(kept in text for text in said)
    assert {f"{lost}.", kept} <= set(read(problems._run))
    qtbot.waitUntil(lambda: tray.icon.toolTip() == lost)
    site.server.faults.clear()
    context.controller.stop()
    qtbot.waitUntil(lambda: not context.controller.state.at_work)


def test_what_an_earlier_version_left_in_the_ledger_is_shown_in_german(
    still_context, written, show, qtbot
):
    written.ledger.record_outcomes([Outcome(b"a/bad.tif", 5, 0, "failed", UNREADABLE)])
    page = show(TransfersPage(still_context))
    page.show_page()

    qtbot.waitUntil(lambda: page._files.model.rowCount() == 1)
    (row,) = cells(page._files.model)
    assert "Die Datei kann nicht gelesen werden: Zugriff verweigert." in row


def test_why_a_transfer_is_tried_again_is_shown_in_german(still_context):
    model = TransfersModel(still_context.tasks)
    model.show_transfers([ActiveTransfer(2, 2, b"b.tif", 5, 100, done=50, attempt=2, problem=GONE)])

    assert model.index(1, 1).data(BELOW) == "Die Verbindung zu host-1 ging verloren."


def test_the_report_of_an_import_from_mydata_is_german(still_context, show, qtbot, tmp_path):
    old = tmp_path / "MyData.cfg"
    old.write_text("[MyData]\nusername = ada\nfake_md5_sum = True\nuser_filter = Ada\nodd = 1\n")
    dialog = show(MyDataImportDialog(still_context, old, None))

    qtbot.waitUntil(lambda: not still_context.tasks.busy)
    said = [line.strip() for line in dialog.report.toPlainText().splitlines()]
    assert "Nicht mehr nötig:" in said
    assert "fake_md5_sum: Prüfsummen werden zum Prüfen immer gebraucht" in said
    assert "odd: MyData hat keinen solchen Schlüssel" in said
    assert "user_filter: Groß- und Kleinschreibung ist gleich, wie in MyData unter Windows" in said
    assert said[-1] == "Die Datei von MyData enthält keinen API-Schlüssel."


@needs_sshd
def test_the_steps_of_a_connection_test_are_german(context, site, show, qtbot):
    dialog = show(ConnectionTestDialog(context.tasks))
    dialog.test.start(context.controller.config, context.controller.settings)

    qtbot.waitUntil(lambda: not context.tasks.busy)
    said = [dialog.test.item(row).text() for row in range(dialog.test.count())]
    host = site.server.url.partition("://")[2]
    assert said[:2] == [
        f"Gut: {host} ist ein MyTardis-Server.",
        "Gut: demo kann sich anmelden und verwaltet die Einrichtung Demo Facility.",
    ]
    assert said[-1].endswith("Beantragen Sie die Freigabe mit: mydata-like register")
