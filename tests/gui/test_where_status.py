"""What the page Where says of files that no run is needed to make: by ledgers and the disk."""

import os

import pytest
from PySide6.QtWidgets import QLabel, QLineEdit

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.model import UNSENT, DatasetId, Entry, EntryState, Outcome
from mydata_like.gui.base import AppContext
from mydata_like.gui.controller import WindowController
from mydata_like.gui.pages.where_page import WherePage
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.where.status_view import list_steps
from mydata_like.gui.window_state import WindowState
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.builders import a_file
from tests.fakes.clock import FakeClock

LONG_AGO = 1_600_000_000


class Seen:
    """A page over a data directory, and ledgers that a test writes."""

    def __init__(self, folder, qtbot):
        self.data = folder / "data"
        self.data.mkdir()
        self.qtbot = qtbot
        self.tasks = Tasks()
        config = folder / "settings.toml"
        config.write_text(
            f'[server]\nurl = "https://data.example.org"\n[data]\ndirectory = "{self.data}"\n'
            f'[advanced]\nstate_directory = "{folder / "state"}"\n[filters]\nsymlinks = "within"\n'
        )
        self.controller = WindowController(config, self.tasks)
        self.controller.loaded = load_settings(config)
        self.controller.settings = self.controller.loaded.settings
        self.page = WherePage(AppContext(self.controller, self.tasks, WindowState(self.controller)))
        qtbot.addWidget(self.page)
        self.page.show()

    def open_ledger(self, shard=WHOLE, clock=None):
        settings, config = self.controller.settings, self.controller.config
        root = os.fsencode(self.data)
        file = ledger_file(settings, find_places(config), root, shard)
        return SqliteLedger.open(file, root, clock or SystemClock())

    def record(self, path, shard=WHOLE, clock=None, **changes):
        """Let a ledger know a path of the data directory as verified, but for the changes."""
        status = path.stat()
        entry = Entry(
            os.fsencode(path.relative_to(self.data).as_posix()),
            status.st_size,
            status.st_mtime_ns,
            EntryState.VERIFIED,
            DatasetId(7),
            "0" * 32,
            "S-7/x",
            ctime_ns=status.st_ctime_ns,
            inode=status.st_ino,
        )
        with self.open_ledger(shard, clock) as ledger:
            ledger.record([entry._replace(**changes)])

    def record_outcome(self, path, kind="found", problem=UNSENT):
        key = os.fsencode(path.relative_to(self.data).as_posix())
        with self.open_ledger() as ledger:
            ledger.record_outcomes([Outcome(key, 5, LONG_AGO * 10**9, kind, problem)])

    def ask(self, what):
        """Return all that the page says of a path, or of a part of one."""
        self.page.look_for(str(what))
        self.qtbot.waitUntil(lambda: not self._is_busy())
        labels = self.page.findChildren(QLabel)
        return "\n".join(label.text() for label in labels if label.isVisible())

    def has_step(self, word):
        """Return whether a step of the file is reported as taken."""
        steps = list_steps(self.page.view.status)
        return next(step.status for step in steps if step.word == word) == "good"

    def _is_busy(self):
        page = self.page
        return self.tasks.busy or page._search_task.running


@pytest.fixture
def seen(tmp_path, home, qtbot):
    opened = Seen(tmp_path, qtbot)
    yield opened
    opened.tasks.close()


def test_a_linked_file_that_a_scan_follows_is_judged_by_its_target(seen):
    a_file(seen.data / "alice/real/x.tif", 5, LONG_AGO)
    link = seen.data / "alice/Scan/x.tif"
    link.parent.mkdir(parents=True)
    link.symlink_to("../real/x.tif")
    seen.record(link)

    told = seen.ask(link)
    assert "It was safe when the server was last checked" in told
    assert "changed" not in told


def test_a_link_that_no_scan_follows_is_reported_as_such(seen, tmp_path):
    link = seen.data / "alice/Scan/out.tif"
    link.parent.mkdir(parents=True)
    link.symlink_to(a_file(tmp_path / "elsewhere.tif", 5, LONG_AGO))

    assert "The settings exclude symbolic links of this kind." in seen.ask(link)


def test_a_file_that_a_shard_has_carried_does_not_exist_only_here(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file, Shard(2, 4))

    assert "It was safe when the server was last checked" in seen.ask(file)
    assert "1 verified by the server" in seen.ask(seen.data / "alice")
    assert "It was safe" in seen.ask("x.ti")  # one name that is found is shown


def test_what_one_ledger_knows_as_verified_wins_over_an_older_state_of_another(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file, state=EntryState.STAGED)
    seen.record(file, Shard(2, 4))

    assert "It was safe when the server was last checked" in seen.ask(file)
    assert "1 verified by the server" in seen.ask(seen.data / "alice")


def test_a_later_run_that_misses_a_file_on_the_server_wins_over_an_older_shard(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file, Shard(2, 4), clock=FakeClock())  # whose time is past
    seen.record(file, state=EntryState.STAGED)

    assert "No: the server has not verified it yet" in seen.ask(file)


def test_what_was_found_and_not_sent_is_found_by_its_name(seen):
    file = a_file(seen.data / "alice/Scan/new.tif", 5, LONG_AGO)
    seen.record_outcome(file)

    told = seen.ask("new.ti")
    assert "No run has found" not in told
    assert "No: it is not on the server" in told
    assert UNSENT.message in told
    assert "1 found, not sent yet (5 bytes)" in seen.ask(seen.data / "alice")


def test_no_step_of_other_bytes_is_shown_as_taken(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file)
    seen.ask(file)
    assert seen.has_step("Verified by the server")

    file.write_bytes(b"other bytes")
    told = seen.ask(file)

    assert "No: it has changed since it was sent" in told
    assert not seen.has_step("Verified by the server")
    assert not seen.has_step("Sent")


def test_a_file_that_the_system_has_seen_change_may_have_changed(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file, ctime_ns=1)

    told = seen.ask(file)
    assert "No: it may have changed since it was verified" in told
    assert not seen.has_step("Verified by the server")


def test_a_verified_file_that_a_run_has_missed_since_is_not_safe(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file)
    seen.record_outcome(file)

    told = seen.ask(file)
    assert "No: it is not on the server" in told
    assert not seen.has_step("Verified by the server")


def test_files_of_a_folder_that_cannot_be_read_are_not_called_gone(seen):
    file = a_file(seen.data / "alice/Scan/x.tif", 5, LONG_AGO)
    seen.record(file)
    seen.data.rename(seen.data.with_name("unmounted"))

    told = seen.ask(file)
    assert "It cannot be read now" in told
    assert "no longer on this computer" not in told


def test_names_that_are_listed_say_how_the_files_stand_now(seen):
    changed = a_file(seen.data / "alice/Scan/one.tif", 5, LONG_AGO)
    seen.record(changed)
    seen.record(a_file(seen.data / "alice/Scan/two.tif", 5, LONG_AGO))
    changed.write_bytes(b"other bytes")
    seen.ask("Scan")

    assert seen.page.findChild(QLineEdit).text() == "Scan"
    states = [one.state for one in seen.page._suggestions.rows]
    assert states == ["changed", "verified"]
