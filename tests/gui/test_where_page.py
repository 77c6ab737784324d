"""Where is my data? From a typed name to the last step, and to the freed disk."""

import os
from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, QPointF, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QDropEvent, QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QPushButton, QTableView, QTabWidget

from mydata_like.app.settings_service import load_settings, save_settings
from mydata_like.core.file_status import Suggestion
from mydata_like.demo.middleware import EMPTY_LIST, Fault
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.pages.where_page import SuggestionsModel, SuggestionsTable, WherePage
from mydata_like.gui.table_model import BELOW
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.where.free_dialog import CleanupResultsModel, FreeDialog
from mydata_like.gui.window_state import WindowState
from tests.builders import a_file
from tests.gui.conftest import DEADLINE, QUICK
from tests.site import open_site

LONG_AGO = 1_600_000_000
NAMES = ("found", "doubted", "changed", "late", "last")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site after a run that has brought all to the server."""
    folder = tmp_path_factory.mktemp("site")
    for name in NAMES:
        a_file(folder / "data/alice/Scan" / f"{name}.tif", 1000 + len(name), LONG_AGO)
    for number in range(5):
        a_file(folder / "data/bob/Series" / f"{number}.dat", 10 + number, LONG_AGO)
    with open_site(folder) as opened:
        save_settings(opened.config, QUICK)
        assert opened.carry().code == 0
        yield opened


@pytest.fixture
def page(site, qtbot):
    tasks = Tasks()
    yield open_page(site, qtbot, tasks)
    tasks.close()


def open_page(site, qtbot, tasks):
    """Return the page, with a controller that knows the settings and has no engine."""
    controller = WindowController(site.config, tasks)
    controller.loaded = load_settings(site.config)
    controller.settings = controller.loaded.settings
    page = WherePage(AppContext(controller, tasks, WindowState(controller)))
    qtbot.addWidget(page)
    page.resize(1000, 700)
    page.show()
    page.show_page()
    return page


def find_sample(site, name):
    """Return a file that is safe on the server; tests that spoil one take their own."""
    return site.data / f"alice/Scan/{name}.tif"


def drag(dropped, kind):
    """Return how a widget answers a drag."""
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    return QDropEvent(QPointF(9, 9), Qt.DropAction.CopyAction, dropped, buttons, keys, kind)


def said(page):
    """All that is to be read on a page or dialog."""
    return "\n".join(label.text() for label in page.findChildren(QLabel) if label.isVisible())


def wait(qtbot, page, text):
    qtbot.waitUntil(lambda: text in said(page), timeout=DEADLINE)


def button(parent, text):
    return next(one for one in parent.findChildren(QPushButton) if one.text().startswith(text))


def test_a_typed_name_finds_its_files_and_shows_the_steps(page, site, qtbot):
    sample = find_sample(site, "found")
    field = page.findChild(QLineEdit)
    qtbot.keyClicks(field, sample.name)
    qtbot.waitUntil(lambda: page.findChild(QTableView).model().rowCount() > 0, timeout=DEADLINE)
    page.look_for(str(sample))

    wait(qtbot, page, "Verified by the server\ntoday")
    assert "It was safe when the server was last checked" in said(page)
    assert page.view.status.path == sample


def test_the_files_that_changed_last_are_listed_before_a_search(page, site, qtbot):
    wait(qtbot, page, "These files changed last. Choose one")
    names = page.findChild(QTableView)
    assert names.isVisible()
    names.setCurrentIndex(names.model().index(0, 0))

    wait(qtbot, page, "Verified by the server")


def test_several_files_of_a_name_are_listed_and_one_is_chosen(page, site, qtbot):
    page.look_for("tif")
    names = page.findChild(QTableView)
    qtbot.waitUntil(names.isVisible, timeout=DEADLINE)
    names.setCurrentIndex(names.model().index(names.model().rowCount() - 1, 0))

    wait(qtbot, page, "Verified by the server")
    assert page.view.status.path.suffix == ".tif"


def test_what_tells_files_of_a_name_apart_has_columns(page, site, qtbot):
    table = page.findChild(QTableView)
    page.look_for("tif")
    model = table.model()
    # The times of files that changed last, which are listed before, are not known.
    qtbot.waitUntil(lambda: bool(model.index(0, 2).data()), timeout=DEADLINE)

    heads = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(4)]
    rows = [[model.index(row, at).data() for at in range(4)] for row in range(model.rowCount())]
    assert heads == ["Name", "Size", "Changed", "State"]
    assert all(name.endswith(".tif") for name, *_ in rows)
    assert all(model.index(row, 0).data(BELOW) for row in range(model.rowCount()))
    assert "Verified" in {state for *_, state in rows}
    assert all(changed and size for _, size, changed, _ in rows)


def test_a_dropped_file_is_looked_up(page, site, qtbot):
    sample = find_sample(site, "found")
    dropped = QMimeData()
    dropped.setUrls([QUrl.fromLocalFile(str(sample))])
    page.dragEnterEvent(entering := drag(dropped, QEvent.Type.DragEnter))
    assert entering.isAccepted()
    page.dropEvent(drag(dropped, QEvent.Type.Drop))

    wait(qtbot, page, "Registered on the server")
    assert page.view.status.path == sample


def test_the_checksum_is_copied(page, site, qtbot):
    sample = find_sample(site, "found")
    page.look_for(str(sample))
    wait(qtbot, page, "MD5")
    button(page, "Copy checksum").click()
    assert QGuiApplication.clipboard().text() == page.view.status.entry.checksum


def test_only_a_fresh_check_says_yes(page, site, qtbot):
    sample = find_sample(site, "doubted")
    page.look_for(str(sample))
    wait(qtbot, page, "Use Check now to find out")
    button(page, "Check now").click()
    wait(qtbot, page, "Yes, you may delete it")

    (number,) = [file.id for file in site.server.datafiles() if file.filename == sample.name]
    site.server.unverify(number)
    button(page, "Check now").click()
    wait(qtbot, page, "No: keep it")
    assert "The server has no verified copy of this file at present." in said(page)
    assert sample.exists()


def test_what_was_never_sent_is_reported_with_the_reason(page, site, qtbot):
    a_file(site.data / "alice" / "New" / "new.tif", 5, LONG_AGO)
    page.look_for("alice/New/new.tif")
    wait(qtbot, page, "No run has found it.")
    assert not button(page, "Check now").isEnabled()

    outside = a_file(site.data.parent / "elsewhere.tif", 5, LONG_AGO)
    page.look_for(str(outside))
    wait(qtbot, page, "It is not in the data folder")

    page.look_for("no such name")
    wait(qtbot, page, "No run has found a file with this name.")


def test_a_changed_file_and_a_deleted_one_are_reported(page, site, qtbot):
    sample = find_sample(site, "changed")
    with sample.open("ab") as opened:
        opened.write(b"more")
    page.look_for(str(sample))
    wait(qtbot, page, "No: it has changed since it was sent")
    sample.unlink()
    page.look_for(str(sample))
    wait(qtbot, page, "It is no longer on this computer")
    assert not button(page, "Free space").isEnabled()


def test_a_folder_shows_its_sums_and_frees_what_is_shown(page, site, qtbot):
    folder = site.data / "bob/Series"
    expected = sorted(folder.iterdir())
    page.look_for(str(folder))
    wait(qtbot, page, f"{len(expected)} verified by the server")
    late = a_file(folder / "late.tif", 5, LONG_AGO)
    button(page, "Free space").click()
    dialog = page.findChild(FreeDialog)
    wait(qtbot, dialog, f"{len(expected)} file(s) can be deleted")
    assert all(path.exists() for path in expected)
    assert dialog.findChild(QTabWidget).tabText(1) == "Kept (1)"
    later = a_file(folder / "later.tif", 5, LONG_AGO)

    button(dialog, f"Delete {len(expected)} file(s)").click()
    wait(qtbot, dialog, f"{len(expected)} file(s) were deleted")

    assert not any(path.exists() for path in expected)
    assert late.exists()
    assert later.exists()
    assert folder.is_dir()
    button(dialog, "Close").click()
    wait(qtbot, page, f"{len(expected)} verified by the server")


def test_a_file_that_changes_while_it_is_shown_stays(page, site, qtbot):
    sample = find_sample(site, "late")
    page.look_for(str(sample))
    wait(qtbot, page, "Use Check now to find out")
    button(page, "Free space").click()
    dialog = page.findChild(FreeDialog)
    wait(qtbot, dialog, "1 file(s) can be deleted")
    os.utime(sample, (LONG_AGO + 1, LONG_AGO + 1))
    button(dialog, "Delete 1 file(s)").click()

    wait(qtbot, dialog, "Nothing was deleted")
    assert sample.exists()


def test_what_keeps_everything_is_reported(page, site, qtbot):
    sample = find_sample(site, "last")
    page.look_for(str(sample))
    wait(qtbot, page, "Use Check now to find out")
    site.server.faults.add(Fault(action=EMPTY_LIST, path="user/", count=None))
    button(page, "Check now").click()
    wait(qtbot, page, "does not accept the account")
    site.server.faults.clear()
    assert sample.exists()


def test_the_models_keep_the_rules_of_qt():
    mode = QAbstractItemModelTester.FailureReportingMode.Fatal
    for model in (SuggestionsModel(), CleanupResultsModel(reasons=True)):
        QAbstractItemModelTester(model, mode, model)
        model.show(())


def test_a_page_left_during_a_request_is_ready_again(page, site, qtbot):
    page.look_for(str(find_sample(site, "found")))
    wait(qtbot, page, "Use Check now to find out")
    button(page, "Check now").click()
    page.hide_page()
    page.show_page()

    assert "Use Check now to find out" in said(page)
    assert button(page, "Check now").isEnabled()


class SlowTasks(Tasks):
    """Works at once, but keeps every answer until it is let out."""

    def __init__(self):
        super().__init__()
        self.held = []  # the numbers of tasks that have ended
        self.asked = 0

    @property
    def busy(self):
        return len(self._calls) > len(self.held)

    def run(self, *functions, **options):
        self.asked += 1
        return super().run(*functions, **options)

    def let_out(self, qtbot):
        """Let out the answer to the latest question that has one, when all have come."""
        qtbot.waitUntil(lambda: bool(self.held) and not self.busy, timeout=DEADLINE)
        number = max(self.held)
        self.held.remove(number)
        super()._deliver(number)

    def let_all_out(self, qtbot):
        """Let out all answers, and those to what is asked in the meantime; the latest first."""
        while self.held or self.busy:
            self.let_out(qtbot)

    def _deliver(self, number):
        self.held.append(number)


@pytest.fixture
def slow():
    tasks = SlowTasks()
    yield tasks
    tasks.close()


@pytest.fixture
def slow_page(site, qtbot, slow):
    """The page, where answers come when a test lets them."""
    page = open_page(site, qtbot, slow)
    page.look_for("tif")
    slow.let_out(qtbot)
    return page


def choose(page, path):
    """Choose a file from the list."""
    names = page.findChild(QTableView)
    keys = [os.fsdecode(found.key) for found in names.model().rows]
    (row,) = [row for row, key in enumerate(keys) if key.endswith(f"/{path.name}")]
    names.setCurrentIndex(names.model().index(row, 0))


def test_one_look_at_a_time_however_often_the_ledger_changes(slow_page, slow, site, qtbot):
    choose(slow_page, find_sample(site, "found"))
    slow.let_out(qtbot)
    before = slow.asked
    for _ in range(50):
        slow_page._controller.ledger_changed.emit()

    qtbot.waitUntil(lambda: slow.asked > before, timeout=DEADLINE)
    slow_page._controller.ledger_changed.emit()
    assert slow.asked == before + 1


def test_the_file_that_was_chosen_last_is_shown(slow_page, slow, site, qtbot):
    choose(slow_page, find_sample(site, "found"))
    choose(slow_page, find_sample(site, "last"))
    slow.let_all_out(qtbot)

    assert slow_page.view.status.path == find_sample(site, "last")


def test_a_file_that_was_found_stays_shown(slow_page, slow, site, qtbot):
    choose(slow_page, find_sample(site, "found"))
    slow_page.look_for(str(find_sample(site, "last")))
    slow.let_all_out(qtbot)  # what the search found comes first

    assert slow_page.view.status.path == find_sample(site, "last")


def test_that_nothing_was_found_stays_shown(slow_page, slow, site, qtbot):
    choose(slow_page, find_sample(site, "found"))
    slow_page.look_for("no such name")
    slow.let_all_out(qtbot)

    assert "No run has found a file with this name." in said(slow_page)


def test_a_file_selected_during_a_search_stays_shown(slow_page, slow, site, qtbot):
    slow_page.look_for("Scan")
    choose(slow_page, find_sample(site, "last"))
    slow.let_all_out(qtbot)

    assert slow_page.view.status.path == find_sample(site, "last")
    assert "Use Check now to find out" in said(slow_page)


@pytest.mark.parametrize("fault", [None, Fault(action=EMPTY_LIST, path="user/", count=None)])
def test_a_late_check_says_nothing_of_another_file(slow_page, slow, site, qtbot, fault):
    choose(slow_page, find_sample(site, "found"))
    slow.let_out(qtbot)
    if fault:
        site.server.faults.add(fault)
    button(slow_page, "Check now").click()
    qtbot.waitUntil(lambda: not slow.busy, timeout=DEADLINE)
    site.server.faults.clear()
    choose(slow_page, find_sample(site, "last"))
    slow.let_all_out(qtbot)

    assert slow_page.view.status.path == find_sample(site, "last")
    assert "Use Check now to find out" in said(slow_page)


def test_hidden_characters_of_a_path_are_seen_in_the_field(page, site, qtbot):
    path = a_file(site.data / "alice" / "Odd" / "safe\u202efit.exe", 5, LONG_AGO)
    page.look_for(str(path))
    wait(qtbot, page, "No run has found it.")

    assert page.view.status.path == path
    assert page.findChild(QLineEdit).text() == str(path).replace("\u202e", "\\u202e")


@pytest.mark.parametrize(
    ("text", "name"), [("Choose a file", "alice/Scan/found.tif"), ("Choose a folder", "bob")]
)
def test_what_is_looked_for_is_chosen_while_the_program_goes_on(page, site, qtbot, text, name):
    button(page, text).click()
    dialog = page.findChild(QFileDialog)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    assert dialog.directory().path() == str(site.data)
    dialog.fileSelected.emit(str(site.data / name))

    qtbot.waitUntil(lambda: page.view.status is not None, timeout=DEADLINE)
    assert page.view.status.path == site.data / name


@pytest.mark.parametrize("language", ["en", "de"])
def test_states_and_times_are_not_cut_off(spoken, qtbot, language):
    spoken(language)
    model = SuggestionsModel()
    table = SuggestionsTable(model, None)
    qtbot.addWidget(table)
    yesterday = (datetime.now().astimezone() - timedelta(days=1)).replace(hour=23, minute=59)
    changed = int(yesterday.timestamp()) * 10**9
    model.show([Suggestion(b"a", 1, state, modified_ns=changed) for state in ("", "skipped")])
    for column in (2, 3):
        assert table.sizeHintForColumn(column) <= table.columnWidth(column)


@pytest.mark.parametrize("ending", ["html", "txt"])
def test_a_receipt_is_saved_and_opened(page, site, qtbot, tmp_path, ending):
    opened = Opened()
    QDesktopServices.setUrlHandler("file", opened, "open")
    page.look_for(str(site.data / "bob"))
    wait(qtbot, page, "Check now to find out")
    button(page, "Save a receipt").click()
    dialog = page.findChild(QFileDialog)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    file = tmp_path / f"receipt.{ending}"
    dialog.fileSelected.emit(str(file))

    qtbot.waitUntil(lambda: opened.urls == [QUrl.fromLocalFile(str(file))])
    QDesktopServices.unsetUrlHandler("file")
    assert "# 5 of" in file.read_text() or "<h1>5 of" in file.read_text()
    assert file.read_text().startswith("<!doctype html>" if ending == "html" else "# 5 of")


def test_a_receipt_that_cannot_be_written_is_told(page, site, qtbot, tmp_path):
    page.look_for(str(site.data / "bob"))
    wait(qtbot, page, "Check now to find out")
    button(page, "Save a receipt").click()
    dialog = page.findChild(QFileDialog)
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    (tmp_path / "file").touch()
    with qtbot.waitSignal(page._controller.command_refused) as refused:
        dialog.fileSelected.emit(str(tmp_path / "file" / "receipt.html"))

    assert "cannot be written" in refused.args[0].message


class Opened(QObject):
    """Takes the addresses that the window opens."""

    def __init__(self):
        super().__init__()
        self.urls = []

    @Slot(QUrl)
    def open(self, url):
        self.urls.append(url)
