"""The command line and the window ask the same rule what became of a file."""

import json
import os

import pytest
from typer.testing import CliRunner

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.cli.main import build_app
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import Problem
from mydata_like.core.file_status import FolderStatus, LocalState, UnknownReason
from mydata_like.core.model import DatasetId, Entry, EntryState, Outcome
from mydata_like.gui.where import status_tasks
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.builders import a_file
from tests.fakes.clock import FakeClock
from tests.privileges import HAS_LINKS, needs_links

LONG_AGO = 1_600_000_000
SHARD = Shard(1, 2)
FAILED = Problem("item.io", "The disk failed.", "Check it.")
LEFT_OUT = Problem("skipped.pattern", "The patterns leave it out.", "Change them.")
STATES = {
    "verified.tif": "verified",
    "changed.tif": "changed",
    "touched.tif": "uncertain",
    "gone.tif": "verified",
    "registered.tif": "registered",
    "failed.tif": "failed",
    "left out.tif": "skipped",
    "link.tif": "verified",  # the link to it is followed
    "dangling.tif": "skipped",  # the link leads nowhere
    "of a shard.tif": "verified",
    "of both.tif": "failed",  # as the shard, whose run was the latest, found it
    "removed.tif": "verified",  # in a folder that is no longer a source
}
LINKS = ("link.tif", "dangling.tif")
HERE = [name for name in STATES if HAS_LINKS or name not in LINKS]


class Installation:
    """A data directory with files in all states, and what asks about them."""

    def __init__(self, folder):
        self.root, self.usb = folder / "data", folder / "usb"
        self.data = self.root / "alice/Scan"
        self.config = folder / "settings.toml"
        self.config.write_text(
            f"""\
            [server]
            url = "https://data.example.org"
            [data]
            directory = '{self.root}'
            [advanced]
            state_directory = '{folder / "state"}'
            [filters]
            symlinks = "within"
            """
        )
        self.settings = load_settings(self.config).settings
        for name in STATES.keys() - {*LINKS, "removed.tif"}:
            a_file(self.data / name, 5, LONG_AGO)
        a_file(self.data / "target", 5, LONG_AGO)
        a_file(self.usb / "removed.tif", 5, LONG_AGO)
        if HAS_LINKS:
            (self.data / "link.tif").symlink_to("target")
            (self.data / "dangling.tif").symlink_to("nothing")

    def path(self, name):
        return (self.usb if name == "removed.tif" else self.data) / name

    def key(self, name):
        path = self.path(name)
        below = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        return os.fsencode(below.as_posix())

    def open_ledger(self, shard=WHOLE, clock=None):
        root = os.fsencode(self.root)
        file = ledger_file(self.settings, find_places(self.config), root, shard)
        return SqliteLedger.open(file, root, clock or SystemClock())

    def entry(self, name, **changes):
        status = self.path(name).stat()
        return Entry(
            self.key(name),
            status.st_size,
            status.st_mtime_ns,
            EntryState.VERIFIED,
            DatasetId(7),
            "0" * 32,
            "S-7/x",
            ctime_ns=status.st_ctime_ns,
            inode=status.st_ino,
        )._replace(**changes)

    def outcome(self, name, kind, problem):
        return Outcome(self.key(name), 5, LONG_AGO * 10**9, kind, problem)

    def ask_command_line(self, what):
        words = ["where", str(what), "--json", "--config", str(self.config)]
        return json.loads(CliRunner().invoke(build_app(), words).output)["files"]

    def ask_window(self, what):
        return status_tasks.find(self.settings, self.config, str(what))


@pytest.fixture
def installation(tmp_path):
    made = Installation(tmp_path)
    verified = ("verified.tif", "gone.tif", "link.tif", "removed.tif")
    entries = [made.entry(name) for name in verified if name in HERE]
    entries += [
        made.entry("changed.tif", size=6),
        made.entry("touched.tif", inode=1),
        made.entry("registered.tif", state=EntryState.REGISTERED),
    ]
    with made.open_ledger() as ledger:
        ledger.record(entries)
        ledger.record_outcomes(
            [
                made.outcome("failed.tif", "failed", FAILED),
                made.outcome("left out.tif", "skipped", LEFT_OUT),
                *(made.outcome(name, "skipped", LEFT_OUT) for name in LINKS[1:] if HAS_LINKS),
            ]
        )
    with made.open_ledger(clock=FakeClock()) as ledger:
        ledger.record([made.entry("of both.tif")])
    with made.open_ledger(SHARD) as ledger:
        ledger.record([made.entry("of a shard.tif")])
        ledger.record_outcomes([made.outcome("of both.tif", "failed", FAILED)])
    made.path("gone.tif").unlink()
    return made


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[needs_links] * (name in LINKS)) for name in STATES]
)
def test_command_line_and_window_agree_on_a_file(installation, name):
    path = installation.path(name)

    (told,) = installation.ask_command_line(path)
    shown = installation.ask_window(path).status

    assert told["state"] == STATES[name]
    assert shown is not None
    assert shown.as_record() == told


def test_command_line_and_window_agree_on_all_files_of_a_folder(installation):
    told = {file["path"]: file["state"] for file in installation.ask_command_line("alice/Scan")}
    shown = installation.ask_window("alice/Scan/").suggestions

    assert told
    assert {os.fsdecode(one.key): one.state for one in shown if not one.folder} == told


@pytest.mark.parametrize("name", ["verified.tif", "of a shard.tif", "of both.tif"])
def test_a_name_finds_the_same_file_in_the_same_state(installation, name):
    (told,) = installation.ask_command_line(name)
    (shown,) = installation.ask_window(name).suggestions

    assert (os.fsdecode(shown.key), shown.state) == (told["path"], told["state"])


def test_an_unknown_value_is_unknown_to_both(installation, tmp_path):
    if HAS_LINKS:
        (tmp_path / "outside").symlink_to("nothing")
    else:
        a_file(tmp_path / "outside")
    a_file(installation.data / "new.tif", 5, LONG_AGO)
    paths = [installation.data / "new.tif", installation.data / "none", tmp_path / "outside"]

    shown = [installation.ask_window(path).status for path in (*paths, tmp_path / "none")]

    assert [installation.ask_command_line(path) for path in paths] == [[], [], []]
    assert [status and status.unknown for status in shown] == [
        UnknownReason.UNSEEN,
        None,
        UnknownReason.OUTSIDE,
        None,
    ]
    assert shown[2].local is LocalState.NEW


def test_a_folder_of_an_unfinished_shard_counts_its_files(installation):
    status = installation.ask_window(installation.data).status

    assert isinstance(status, FolderStatus)
    assert sum(amount.files for amount in status.states.values()) == len(HERE) - 1
