"""Interrupt uploads in many ways, and compare the claims of each view with the truth.

`python -m tests.trials.claim [--rounds 3] [--seed 1] [--only WORDS]`

A trial starts with a server, a staging host and a few files. It interrupts an upload and collects
the claims of all views: overview, tray, folders, transfers, problems, history, the page "Where is
my data?", `status`, `where` and `free --dry-run`. No view may claim more than what is on the
server's disk and in its database. One undisturbed run follows, after which all views must show
exactly the truth. The rounds differ in the data, in the moment and in the SSH library.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from threading import Event
from typing import Any

import psutil

from mydata_like.app.settings_service import save_settings
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.invariants import FileThere
from mydata_like.demo.middleware import Fault, Hang, Reply
from mydata_like.ssh.keys import PublicKey
from tests.invariants import find_wrong_records
from tests.site import (
    DEADLINE,
    Ended,
    Site,
    finish,
    finish_reading,
    kill_group,
    left_behind,
    open_site,
    wait_for,
)
from tests.trials.claims import (
    AWAY,
    CUT_OFF,
    Look,
    OpenWindow,
    Views,
    find_disagreements,
    find_false_claims,
    find_forgotten,
    read_look,
)
from tests.trials.truth import Inventory, Truth

LARGE = 1_500_000  # bytes of a file that takes about a second
LARGE_FILES, SMALL_FILES = 4, 5  # of a dataset
DATASETS = ("alice/Scan 1", "bob/Run 2/deep")
ADDED = "carol/Added later"
DROPPED = "Dropped day"
GAINED = "of another uploader.raw"
HEARD = "large 0.raw"
LEFT_OUT = "alice/Scan 1/notes.tmp"
LEFT_OUT_WHOLE = ("bob/Only notes/first.tmp", "bob/Only notes/second.tmp")
# One channel, at a speed at which a run can be interrupted in the middle.
SLOW_SETTINGS = {
    "limits.bandwidth": 2,
    "transfer.channels": 1,
    "transfer.batch_below": 1_000_000,
    "transfer.batch_age": 0.2,
}
SLOW = tuple(f"{name}={value}" for name, value in SLOW_SETTINGS.items())
QUICK_SETTINGS = {
    "schedule.kind": "manual",
    "limits.bandwidth": 0,
    "transfer.channels": 0,
    "filters.settle_seconds": 0,
    "filters.excludes": ["*.tmp"],
    "advanced.verify_interval": 0.1,
}
IMPATIENT = ("advanced.pause_patience=1", "transfer.connect_timeout=2", "transfer.stall_timeout=2")
STACKS = ("libssh", "paramiko")
POLL = 0.02  # seconds between two checks
HOUR = 3600
WINDOW = ("gui",)
SAID = 12  # errors of a trial that are printed by default; the others are counted


@dataclass
class Trial:
    """A site with data, and the expected effects of an interruption.

    `must_say` has claims that views must make. `forgotten` says that the ledger is lost. `excused`
    are the keys of files that the server lost after the last check, `remaining` the keys of files
    that no run can make safe.
    """

    site: Site
    chance: random.Random
    stack: ExitStack
    inventory: Inventory
    must_say: set[tuple[str, str]] = field(default_factory=set)  # views and their claims
    forgotten: bool = False
    excused: set[str] = field(default_factory=set)
    remaining: set[str] = field(default_factory=set)
    looks: list[Look] = field(default_factory=list)  # texts of a window open during the trial
    final: tuple[str, ...] = ()  # settings of the final run
    spoilt: bool = False  # whether the server's storage has faults on purpose
    heal: Callable[[], object] = bool

    # The data

    def add_files(
        self, folder: Path, *, large: int = LARGE_FILES, small: int = SMALL_FILES
    ) -> None:
        """Create files in a folder; the upload of each large one takes about a second."""
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(large):
            self.write(folder / f"large {number}.raw", LARGE + number)
        for number in range(small):
            self.write(folder / f"small_{number}.txt", self.chance.randrange(1, 5000))

    def write(self, path: Path, size: int) -> None:
        """Write random bytes to a file that is some days old."""
        path.write_bytes(self.chance.randbytes(size))
        old = time.time() - 48 * HOUR + self.chance.random() * HOUR
        os.utime(path, (old, old))

    def make_all_safe(self, *settings: str) -> None:
        """Execute an undisturbed run."""
        ended = self.site.run(*settings)
        assert ended.code == 0, (ended.output[-2000:], ended.complaints[-2000:])
        assert not self.truth().at_risk

    def truth(self) -> Truth:
        return Truth.take(self.site, self.inventory, self.excused)

    # The interrupted run

    def start(
        self, *words: str, settings: tuple[str, ...] = (), stdin: int = subprocess.DEVNULL
    ) -> "Popen[str]":
        """Start a slow command."""
        return self.site.start(*words, settings=(*SLOW, *settings), stdin=stdin)

    def start_in_the_middle(self, *settings: str, stdin: int = subprocess.DEVNULL) -> "Popen[str]":
        """Start a slow run and wait until it is in the middle."""
        options = ("--events", "--brief") if stdin == subprocess.PIPE else ("--json",)
        process = self.start("run", *options, settings=settings, stdin=stdin)
        self.wait_for_the_middle(process)
        return process

    def wait_for_the_middle(self, process: "Popen[str]") -> None:
        """Wait until two or three more large files have arrived, one after the other.

        That takes more than a second, so that the found files are in the ledger.
        """
        enough = self._count_large() + self.chance.choice((2, 3))
        self.wait(process, lambda: self._count_large() >= enough)

    def _count_large(self) -> int:
        # Unlike `rglob`, this passes over folders that vanish meanwhile.
        walked = os.walk(self.site.server.directory)
        sizes = (_size_of(Path(at, name)) for at, _, names in walked for name in names)
        return sum(size is not None and LARGE <= size < LARGE + 100 for size in sizes)

    def wait(self, process: "Popen[str]", happened: Callable[[], bool]) -> None:
        """Wait until `happened` is true while the command runs."""
        deadline = time.monotonic() + DEADLINE
        while not happened():
            assert time.monotonic() < deadline, "nothing happened"
            try:
                process.wait(POLL)
            except TimeoutExpired:
                continue
            output = process.communicate()[0] or ""
            raise AssertionError(f"ended before it was in the middle: {output[-2000:]}")

    def signal(self, number: int) -> None:
        """Interrupt a run in the middle by a signal."""
        process = self.start_in_the_middle()
        process.send_signal(number)
        finish(process)

    def open_window(self) -> "Popen[str]":
        """Open the real window without a screen; its engine starts a slow run immediately."""
        self.save(SLOW_SETTINGS | {"schedule.kind": "startup"})
        process = Popen(
            [sys.executable, "-m", "mydata_like", "gui", "--config", str(self.site.config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self.site.environment | {"QT_QPA_PLATFORM": "offscreen"},
        )
        self.stack.callback(_kill, process)
        self.wait_for_the_middle(process)
        self.save(QUICK_SETTINGS)
        return process

    def save(self, settings: Mapping[str, object]) -> None:
        """Change the settings file."""
        save_settings(self.site.config, dict(settings))


def _size_of(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _kill(process: "Popen[str]") -> None:
    kill_group(process)
    process.communicate()


def _kill_alone(process: "Popen[str]") -> None:
    process.kill()
    process.wait()
    assert not left_behind(process.pid), "processes outlive the engine"
    process.communicate()


TELL_CUT_OFF = {(view, CUT_OFF) for view in ("overview", "status", "status --json")}
TELL_AWAY = {("overview", AWAY)}

# The interruptions. Each starts with files that no run has found yet.


def kill_window_and_engine(trial: Trial) -> None:
    trial.make_all_safe()
    trial.add_files(trial.site.data / ADDED)
    process = trial.open_window()
    _kill(process)
    trial.must_say = TELL_CUT_OFF


def kill_engine(trial: Trial) -> None:
    _kill_alone(trial.start_in_the_middle())
    trial.must_say = TELL_CUT_OFF


def kill_worker(trial: Trial) -> None:
    process = trial.start_in_the_middle()
    workers = [one for one in psutil.Process(process.pid).children() if _is_worker(one)]
    for worker in workers:
        worker.kill()
    assert workers
    finish(process)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "resource_tracker" not in " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False


def kill_sshd(trial: Trial) -> None:
    process = trial.start_in_the_middle(*IMPATIENT)
    trial.site.sshd.stop()
    trial.heal = trial.site.sshd.start
    finish(process)


def kill_server(trial: Trial) -> None:
    site, port = trial.site, trial.site.server.port
    process = trial.start_in_the_middle(*IMPATIENT)
    site.server.stop()
    finish(process)
    server = EmbeddedServer(site.server.directory, port=port, auto_approve=True)
    site.server = trial.stack.enter_context(server)


def stop_by_command(trial: Trial) -> None:
    process = trial.start_in_the_middle(stdin=subprocess.PIPE)
    _order(process, "stop")
    _close(process)


def _order(process: "Popen[str]", command: str) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"command": command, "id": command}) + "\n")
    process.stdin.flush()


def _close(process: "Popen[str]") -> Ended:
    assert process.stdin is not None
    process.stdin.close()
    return finish_reading(process)


def stop_in_the_window(trial: Trial) -> None:
    _upload_in_a_window(trial, "stop")


def crash_under_the_window(trial: Trial) -> None:
    _upload_in_a_window(trial, "crash")


def _upload_in_a_window(trial: Trial, end: str) -> None:
    """Start a run in a window, end it there, and read the texts of the same window."""
    trial.save(SLOW_SETTINGS)
    with OpenWindow(trial.site) as window:
        window.tell("start")
        trial.wait_for_the_middle(window.process)
        window.tell(end)
        trial.looks.append(window.tell("read"))
    trial.save(QUICK_SETTINGS)


def interrupt(trial: Trial) -> None:
    trial.signal(signal.SIGINT)


def terminate(trial: Trial) -> None:
    trial.signal(signal.SIGTERM)


def pause_then_quit(trial: Trial) -> None:
    words = ("watch", "--events", "--brief", "--attended")
    process = trial.start(*words, settings=("schedule.kind=startup",), stdin=subprocess.PIPE)
    trial.wait_for_the_middle(process)
    _order(process, "pause")
    wait_for(process, "run_paused")
    _order(process, "stop_run")
    wait_for(process, "run_finished")
    _close(process)


def quit_while_running(trial: Trial) -> None:
    process = trial.open_window()
    process.terminate()
    process.communicate(timeout=DEADLINE)
    assert not left_behind(process.pid, DEADLINE), "the engine outlives the window"


def fill_staging_disk(trial: Trial) -> None:
    folder = trial.site.server.box_location
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=5m", "small", str(folder)]
    subprocess.run(mount, check=True)
    trial.stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=True)
    larger = ["mount", "-o", "remount,size=100m", str(folder)]
    trial.heal = lambda: subprocess.run(larger, check=True)
    finish(trial.start("run", "--json", settings=IMPATIENT))


def take_data_folder_away(trial: Trial) -> None:
    process = trial.start_in_the_middle(*IMPATIENT)
    _move_data(trial)
    finish(process)
    trial.must_say = TELL_AWAY


def lose_data_folder(trial: Trial) -> None:
    trial.make_all_safe()
    _move_data(trial)
    trial.must_say = TELL_AWAY


def _move_data(trial: Trial) -> Path:
    data = trial.site.data
    away = data.rename(data.with_name("unmounted"))
    trial.inventory.data = away
    trial.heal = lambda: _bring_back(trial, away)
    return away


def _bring_back(trial: Trial, away: Path) -> None:
    if trial.site.data.exists():
        trial.site.data.rmdir()
    trial.inventory.data = away.rename(trial.site.data)


def empty_data_folder(trial: Trial) -> None:
    trial.signal(signal.SIGTERM)
    _move_data(trial)
    trial.site.data.mkdir()
    trial.site.run(*IMPATIENT)
    trial.must_say = TELL_AWAY


def revoke_key(trial: Trial) -> None:
    site = trial.site
    process = trial.start_in_the_middle("transfer.method=ssh", *IMPATIENT)
    site.server.withdraw_approval(site.uuid)
    site.sshd.forbid_all()
    site.sshd.kill_sessions()
    trial.heal = lambda: _approve(site)
    finish(process)


def _approve(site: Site) -> None:
    site.server.approve(site.uuid)
    for key in site.server.public_keys():
        site.sshd.authorize(PublicKey.parse(key))


def kill_dropped_folder(trial: Trial) -> None:
    trial.make_all_safe()
    folder = trial.site.place.folder / "usb" / "Day 1"
    trial.add_files(folder)
    trial.inventory.sources[folder] = DROPPED
    words = ("run", "--json", "--source", str(folder), "--as", f"bob/Dropped/{DROPPED}")
    process = trial.start(*words)
    trial.wait_for_the_middle(process)
    _kill(process)
    trial.must_say = TELL_CUT_OFF


@dataclass(frozen=True, kw_only=True)
class HungWrite(Fault):
    """A fault that blocks writing requests, and sets an event when the first one arrives."""

    arrived: Event = field(default_factory=Event, compare=False)

    def matches(self, method: str, path: str) -> bool:
        found = method != "GET" and super().matches(method, path)
        if found:
            self.arrived.set()
        return found


def kill_while_replacing(trial: Trial) -> None:
    """Kill a run after its new bytes were sent and before its record is written."""
    trial.make_all_safe()
    _rewrite_one(trial)
    written = HungWrite(action=Hang(), path="dataset_file", count=None)
    trial.site.server.faults.add(written)
    process = trial.start("run", "--json")
    trial.wait(process, written.arrived.is_set)
    _kill(process)
    trial.site.server.faults.clear()
    trial.must_say = TELL_CUT_OFF


def _rewrite_one(trial: Trial) -> Path:
    """Replace the bytes of a file by other bytes of the same size."""
    path = trial.site.data / DATASETS[0] / "large 1.raw"
    trial.write(path, path.stat().st_size)
    return path


def delete_ledger(trial: Trial) -> None:
    trial.make_all_safe()
    trial.add_files(trial.site.data / ADDED)
    trial.signal(signal.SIGTERM)
    for file in trial.site.ledgers:
        file.unlink()
    trial.forgotten = True


def lose_record(trial: Trial) -> None:
    """Lose a record and add another, so that the totals of the dataset stay the same."""
    trial.make_all_safe()
    server = trial.site.server
    files = {file.filename: file for file in server.datafiles()}
    lost = files["large 0.raw"]
    store = server.site.store
    (row,) = store.rows("SELECT * FROM datafile WHERE id = ?", lost.id)
    (replica,) = store.rows("SELECT * FROM replica WHERE datafile = ?", lost.id)
    uri = str(Path(replica["uri"]).with_name(GAINED))
    server.lose(lost.id)
    (server.box_location / replica["uri"]).rename(server.box_location / uri)
    number = store.insert("datafile", **_but_for_its_id(row) | {"filename": GAINED})
    store.insert("replica", **_but_for_its_id(replica) | {"datafile": number, "uri": uri})
    truth = trial.truth()
    trial.excused = {file.key for file in truth.at_risk}
    assert len(trial.excused) == 1


def _but_for_its_id(row: sqlite3.Row) -> dict[str, Any]:
    return {name: value for name, value in dict(row).items() if name != "id"}


def rot_there(trial: Trial) -> None:
    """Damage the server's copy of a file, which only a new verification finds out."""
    stored = _find_stored(trial)
    stored.path.write_bytes(b"-" * stored.size)
    _hear(trial, "--yes")


def restore_backup(trial: Trial) -> None:
    """Let the number of a record be that of another file, as after a restored backup."""
    stored = _find_stored(trial)
    store, box = trial.site.server.site.store, trial.site.server.box_location
    (replica,) = store.rows("SELECT * FROM replica WHERE datafile = ?", stored.id)
    uri = str(Path(replica["uri"]).with_name(GAINED))
    stored.path.rename(box / uri)
    store.change("UPDATE replica SET uri = ? WHERE datafile = ?", uri, stored.id)
    store.change("UPDATE datafile SET filename = ? WHERE id = ?", GAINED, stored.id)
    _hear(trial, "--dry-run")


def change_record(trial: Trial) -> None:
    """Change the checksum of a record, which the server then no longer verifies."""
    stored = _find_stored(trial)
    trial.site.server.rewrite(stored.id, "f" * 32)
    trial.site.server.unverify(stored.id)
    _hear(trial, "--dry-run")


def _find_stored(trial: Trial) -> FileThere:
    trial.make_all_safe()
    files = {file.key: file for file in trial.site.server.datafiles()}
    return files[Path(DATASETS[0]).name, "", HEARD]


def _hear(trial: Trial, how: str) -> None:
    """Let `free` hear of it; the file stays."""
    path = trial.site.data / DATASETS[0] / HEARD
    finish(trial.site.start("free", str(path), how, "--json"))
    trial.spoilt = True
    assert path.exists()
    assert len(trial.truth().at_risk) == 1


def leave_folder_out(trial: Trial) -> None:
    """Add a folder whose files are all excluded."""
    for name in LEFT_OUT_WHOLE:
        (trial.site.data / name).parent.mkdir(exist_ok=True)
        trial.write(trial.site.data / name, 100)
    trial.make_all_safe()


def store_nothing(trial: Trial) -> None:
    """Answer every registration with 202, and store nothing."""
    nothing = Fault(action=Reply(202), method="PATCH", path="dataset_file", count=None)
    trial.site.server.faults.add(nothing)
    trial.heal = trial.site.server.faults.clear
    patience = ("advanced.verify_patience=30", *IMPATIENT)
    finish(trial.site.start("run", "--json", settings=patience))


def delete_local_file(trial: Trial) -> None:
    trial.signal(signal.SIGTERM)
    lost = next(file for file in trial.truth().at_risk if file.size >= LARGE)
    assert lost.path
    trial.inventory.delete(lost.path)


def change_without_ssh(trial: Trial) -> None:
    """Change a file that can only be sent over HTTP, which cannot replace records."""
    over_http = ("transfer.method=http",)
    trial.make_all_safe(*over_http)
    path = _rewrite_one(trial)
    finish(trial.start("run", "--json", settings=over_http))
    trial.remaining = {path.relative_to(trial.site.data).as_posix()}
    trial.final = over_http


REPLACE_ALL = {"data.changed": "replace", "data.brake": 0}
MANY = 30  # rewritten files of a dataset; the brake holds those after the first twenty


def _change(
    trial: Trial, change: Callable[[Trial, Path], object], *, files: int, held: int, **settings: Any
) -> None:
    """Change verified files and run: so many are held, their copies stay, the rest is replaced."""
    folder = trial.site.data / ADDED
    trial.add_files(folder, large=0, small=files)
    trial.make_all_safe()
    before = {file.key: _read(file.path) for file in trial.site.server.datafiles()}
    trial.save(settings)
    for path in sorted(folder.iterdir()):
        change(trial, path)
    ended = trial.site.run()
    after = {file.key: _read(file.path) for file in trial.site.server.datafiles()}
    left = trial.truth().at_risk
    trial.remaining = {file.key for file in left}
    assert (ended.code, len(left)) == (0, held), ended.output[-1000:]
    assert all(before[file.place] == after[file.place] for file in left), "a copy was replaced"
    assert sum(before[key] != after[key] for key in before) == files - held, "not all were replaced"


def _read(path: Path | None) -> bytes:
    return path.read_bytes() if path else b""


def _empty(trial: Trial, path: Path) -> None:
    trial.write(path, 0)


def _rewrite(trial: Trial, path: Path) -> None:
    trial.write(path, path.stat().st_size)


def _append(trial: Trial, path: Path) -> None:
    path.write_bytes(path.read_bytes() + trial.chance.randbytes(100))


def shrink(trial: Trial) -> None:
    _change(trial, _empty, files=SMALL_FILES, held=SMALL_FILES)


def shrink_freely(trial: Trial) -> None:
    _change(trial, _empty, files=SMALL_FILES, held=0, **REPLACE_ALL)


def rewrite(trial: Trial) -> None:
    _change(trial, _rewrite, files=SMALL_FILES, held=0)


def rewrite_freely(trial: Trial) -> None:
    _change(trial, _rewrite, files=SMALL_FILES, held=0, **REPLACE_ALL)


def append(trial: Trial) -> None:
    _change(trial, _append, files=MANY, held=0)


def append_freely(trial: Trial) -> None:
    _change(trial, _append, files=MANY, held=0, **REPLACE_ALL)


def change_many(trial: Trial) -> None:
    _change(trial, _rewrite, files=MANY, held=MANY - 20)


def change_many_freely(trial: Trial) -> None:
    _change(trial, _rewrite, files=MANY, held=0, **REPLACE_ALL)


def write_on_elsewhere(trial: Trial) -> None:
    """Write to a verified file, and keep it open while a run takes place."""
    trial.make_all_safe()
    path = trial.site.data / DATASETS[0] / "large 1.raw"
    growing = trial.stack.enter_context(path.open("ab", buffering=0))
    trial.heal = growing.close
    growing.write(b"one more frame")
    ended = trial.site.run()
    assert (ended.code, ended.sums["waiting"], ended.sums["sent"]) == (0, 1, 0), ended.sums


INTERRUPTIONS: dict[str, Callable[[Trial], None]] = {
    "window and engine are killed": kill_window_and_engine,
    "the engine alone is killed": kill_engine,
    "a worker is killed": kill_worker,
    "sshd is killed": kill_sshd,
    "the server goes away and comes back": kill_server,
    "the run is stopped by a command": stop_by_command,
    "the upload is stopped in the window": stop_in_the_window,
    "the engine crashes under the window": crash_under_the_window,
    "the run gets SIGINT": interrupt,
    "the run gets SIGTERM": terminate,
    "the run is paused and the program quit": pause_then_quit,
    "the program is quit while it uploads": quit_while_running,
    "the disk of the staging host is full": fill_staging_disk,
    "the data folder is unmounted while it uploads": take_data_folder_away,
    "the data folder is unmounted when all is safe": lose_data_folder,
    "the data folder is empty": empty_data_folder,
    "the key is revoked": revoke_key,
    "the upload of a dropped folder is killed": kill_dropped_folder,
    "a run is killed while it replaces a changed file": kill_while_replacing,
    "the ledger is deleted": delete_ledger,
    "the server loses a record and gains another": lose_record,
    "a file has rotted there, and free has noticed": rot_there,
    "the server was restored from a backup, and free has noticed": restore_backup,
    "a record was changed there, and free has noticed": change_record,
    "a folder is left out whole": leave_folder_out,
    "the server answers 202 and stores nothing": store_nothing,
    "a file that was found is deleted here": delete_local_file,
    "a file has changed where there is no SSH": change_without_ssh,
    "verified files shrank": shrink,
    "verified files shrank, and all may be replaced": shrink_freely,
    "verified files were rewritten": rewrite,
    "verified files were rewritten, and all may be replaced": rewrite_freely,
    "verified files were appended to": append,
    "verified files were appended to, and all may be replaced": append_freely,
    "many verified files were rewritten": change_many,
    "many verified files were rewritten, and all may be replaced": change_many_freely,
    "a file is open elsewhere": write_on_elsewhere,
}
NEEDS_ROOT = {"the disk of the staging host is full"}


@contextmanager
def open_trial(folder: Path, seed: int = 0) -> Iterator[Trial]:
    """Start a site with a few files that no run has found."""
    chance = random.Random(seed)
    with ExitStack() as stack:
        site = stack.enter_context(open_site(folder))
        site.data.mkdir(exist_ok=True)
        inventory = Inventory(site.data, left_out=frozenset({LEFT_OUT, *LEFT_OUT_WHOLE}))
        trial = Trial(site, chance, stack, inventory)
        trial.save(QUICK_SETTINGS | {"transfer.ssh": chance.choice(STACKS)})
        for dataset in DATASETS:
            trial.add_files(site.data / dataset)
        trial.write(site.data / LEFT_OUT, 100)
        yield trial


def play(name: str, folder: Path, seed: int = 0) -> list[str]:
    """Execute one trial; return all false claims."""
    with open_trial(folder, seed) as trial:
        INTERRUPTIONS[name](trial)
        wrongs = [f"after it: {wrong}" for wrong in judge_interrupted(trial)]
        trial.heal()
        ended = trial.site.run(*trial.final)
        if ended.code and not trial.remaining:
            wrongs.append(f"the next run ended with exit code {ended.code} ({ended.problem})")
        return [*wrongs, *(f"after the next run: {wrong}" for wrong in judge_ended(trial))]


def judge_interrupted(trial: Trial) -> list[str]:
    """Return the claims after the interruption that exceed the truth."""
    truth = trial.truth()
    claims = _views(trial).collect(truth)
    wrongs = find_false_claims(claims, truth)
    for look in trial.looks:
        shown = read_look(look, truth)
        wrongs += [f"the open {wrong}" for wrong in find_false_claims(shown, truth)]
    unsaid = trial.must_say - {(claim.view, claim.says) for claim in claims}
    wrongs += [f"{view} does not say: {says}" for view, says in sorted(unsaid)]
    if not trial.forgotten:
        wrongs += find_forgotten(claims, truth)
    return wrongs if trial.spoilt else [*wrongs, *find_wrong_records(trial.site)]


def judge_ended(trial: Trial) -> list[str]:
    """Return all deviations from the truth after a successful run."""
    trial.excused.clear()
    truth = trial.truth()
    lost = {file.key for file in truth.at_risk} - trial.remaining
    claims = _views(trial).collect(truth)
    return [
        *(f"{key} is not safe" for key in sorted(lost)),
        *find_disagreements(claims, truth),
        *trial.site.server.check_invariants(),
    ]


def _views(trial: Trial) -> Views:
    return Views(trial.site, tuple(trial.inventory.sources))


def _play_in_a_folder(name: str, seed: int) -> list[str]:
    folder = Path(tempfile.mkdtemp(prefix="claimtrial-"))
    try:
        return play(name, folder, seed)
    except (AssertionError, OSError, psutil.Error, subprocess.SubprocessError) as error:
        return [f"the trial itself failed: {error!r}"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Execute the rounds of the command line; return 1 if a view made a false claim."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rounds", type=int, default=1, help="number of rounds, each with all interruptions"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="only interruptions with these words")
    parser.add_argument("--said", type=int, default=SAID, help="errors of each to print")
    options = parser.parse_args()
    names = [name for name in INTERRUPTIONS if options.only in name]
    _say(f"seed {options.seed}")
    wrong = 0
    for number in range(options.rounds):
        for name in names:
            began = time.monotonic()
            wrongs = _play_in_a_folder(name, options.seed + number)
            wrong += bool(wrongs)
            result = "WRONG" if wrongs else "right"
            _say(f"{result} {name} ({time.monotonic() - began:.1f} s)")
            for text in wrongs[: options.said]:
                _say(f"    {text}")
            if len(wrongs) > options.said:
                _say(f"    and {len(wrongs) - options.said} more")
    _say(f"{options.rounds * len(names)} trials, {wrong} with false claims")
    return int(wrong > 0)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
