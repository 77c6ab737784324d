"""Commands on standard input, as a window gives them to the real command while it runs."""

import json
import os
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest

from mydata_like.app.run_control import ActiveRun, ControlFiles, give_command
from mydata_like.core.errors import RunError
from mydata_like.core.formatting import format_size
from mydata_like.engine.pipeline import CancelFlag
from tests.invariants import check_complete, check_sums
from tests.site import (
    a_site,
    finish_reading,
    kill_group,
    make_data,
    open_site,
    wait_for,
    yield_processor,
)
from tests.sshd_fixture import needs_sshd, scp_only, sftp_only

pytestmark = [pytest.mark.e2e, needs_sshd]

LARGE = "alice/Tomogram 7/volume.raw"
SLOW = "limits.bandwidth=0.1"  # a minute for what is there; nothing ends on its own in a test


class Commanded:
    """A run that reads commands, and what it has said so far."""

    def __init__(self, site, *settings):
        self.process = site.start("run", "--events", settings=settings, stdin=subprocess.PIPE)
        self.seen = []
        self._ids = count(1)

    def wait(self, event, **fields):
        """Read until there is such an event; return it."""
        while True:
            self.seen += wait_for(self.process, event)
            if fields.items() <= self.seen[-1].items():
                return self.seen[-1]

    def write(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, command, **fields):
        """Give a command; return the answer to it."""
        number = next(self._ids)
        self.write(json.dumps({"command": command, "id": number, **fields}))
        while True:
            line = json.loads(self.process.stdout.readline())
            self.seen.append(line)
            if line["event"].startswith("command_") and line["id"] == number:
                assert line["command"] == command
                return line

    def ask_successfully(self, command, **fields):
        answer = self.ask(command, **fields)
        assert answer["event"] == "command_done", answer

    def finish(self):
        self.process.stdin.close()
        ended = finish_reading(self.process)
        self.seen += ended.lines
        return ended

    def of_kind(self, event):
        return [line for line in self.seen if line["event"] == event]


site = a_site(tiny_files=10, large=3_000_000)


WAYS = {
    "shell": lambda folder: (),
    "scp": scp_only,
    "sftp": lambda folder: sftp_only(),
    "http": lambda folder: (),
}


def stored_bytes(site):
    """Return how many bytes have arrived, once none came for two seconds."""
    since, size = time.monotonic(), -1
    while time.monotonic() - since < 2.0:
        now = sum(map(size_if_there, files_below(site.server.box_location)))
        if now != size:
            since, size = time.monotonic(), now
        yield_processor()
    return size


def files_below(folder):
    """Yield the files below `folder`, in which others make and delete folders meanwhile."""
    for parent, _, names in os.walk(folder):  # a folder that is gone is left out
        yield from (Path(parent, name) for name in names)


def size_if_there(path):
    """Return the size of `path`, 0 when it is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("way", WAYS)
def test_a_pause_stops_what_is_being_sent_and_it_continues_where_it_was(tmp_path, way):
    make_data(tmp_path / "site", tiny_files=200, large=40_000_000)
    with open_site(tmp_path / "site", options=WAYS[way](tmp_path)) as site:
        method = "http" if way == "http" else "auto"
        run = Commanded(site, "limits.bandwidth=6", f"transfer.method={method}")
        run.wait("transfer_progressed")

        run.ask_successfully("pause")
        size = stored_bytes(site)
        assert size < 30_000_000
        assert run.process.poll() is None

        run.ask_successfully("set_bandwidth", bandwidth=0)
        assert stored_bytes(site) == size  # a limit does not end the pause
        run.ask_successfully("resume")
        ended = run.finish()
        check_complete(site, ended)
        assert not run.of_kind("transfer_retried")


@pytest.mark.parametrize("way", ["shell", "sftp"])
def test_what_a_killed_run_has_left_is_progress_but_no_speed(tmp_path, way):
    make_data(tmp_path / "site", tiny_files=0, large=48_000_000)
    with open_site(tmp_path / "site", options=WAYS[way](tmp_path)) as site:
        run = Commanded(site, "limits.bandwidth=24")
        number = run.wait("transfer_started", name=LARGE)["transfer"]
        while run.wait("transfer_progressed", transfer=number)["bytes"] < 30_000_000:
            pass
        run.ask_successfully("pause")
        stored_bytes(site)  # what is in flight arrives
        kill_group(run.process)
        run.process.communicate()

        ended = site.run_events("limits.bandwidth=8")

        check_complete(site, ended)
        (started,) = (it for it in ended.events("transfer_started") if it["name"] == LARGE)
        progress = [
            it
            for it in ended.events("transfer_progressed")
            if it["transfer"] == started["transfer"] and it["bytes"]
        ]
        assert max(it["omitted"] for it in progress) > 16_000_000
        assert all(it["bytes"] - it["omitted"] <= 32_000_000 for it in progress)
        rates = [it["byte_rate"] for it in ended.events("run_progressed")]
        rates += [it["byte_rate"] for it in ended.events("stages_measured")]
        # At first, what the limit lets go ahead is divided by a short time.
        assert 0 < max(rates) < 4 * 8_000_000
        sums = ended.sums
        omitted = {it["transfer"]: it["omitted"] for it in ended.events("transfer_progressed")}
        assert sums["omitted"] == sum(omitted.values())  # with the holes of the sparse file
        assert 0 < (sums["bytes"] - sums["omitted"]) / sums["seconds"] < 2 * 8_000_000
        sent = format_size(sums["bytes"] - sums["omitted"])
        assert f"; {sent} sent, limited by" in site.command("status").output


@pytest.fixture
def numbered(tmp_path):
    """A site with twelve files in two datasets."""
    for number in range(12):
        file = tmp_path / "site/data/alice" / f"Set {number // 6}" / f"{number:02}.raw"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(400_000))
    with open_site(tmp_path / "site") as site:
        yield site


ONE_BY_ONE = ("transfer.channels=1", "transfer.batch_below=0", "limits.bandwidth=0.02")


def list_all_waiting(run):
    """Return the answer that lists all of the twelve files that have not been begun."""
    while True:
        run.ask_successfully("list_next")
        listed = run.of_kind("next_listed")[-1]
        if len(run.of_kind("transfer_started")) + len(listed["paths"]) == 12:
            return listed


def test_what_is_to_be_sent_next_is_sent_before_the_others(numbered):
    run = Commanded(numbered, *ONE_BY_ONE)
    first = run.wait("transfer_started")["name"]
    list_all_waiting(run)

    run.ask_successfully("send_next", path="alice/Set 1")
    run.ask_successfully("send_next", path="alice/Set 1/09.raw")
    listed = list_all_waiting(run)
    run.ask_successfully("set_bandwidth", bandwidth=0)

    check_complete(numbered, run.finish())
    names = [event["name"].removeprefix("alice/") for event in run.of_kind("transfer_started")]
    assert [path.removeprefix("alice/") for path in listed["paths"]] == names[1:]
    assert listed["sizes"] == [400_000] * 11
    ahead = {"Set 1/09.raw": 0} | {f"Set 1/{n:02}.raw": 1 for n in range(6, 12) if n != 9}
    ahead.pop(first.removeprefix("alice/"), None)
    assert names[1] == next(iter(ahead))
    assert set(names[1 : 1 + len(ahead)]) == set(ahead)


def test_files_are_sent_in_the_order_in_which_one_command_names_them(numbered):
    run = Commanded(numbered, *ONE_BY_ONE)
    wanted = list_all_waiting(run)["paths"][:1:-1]

    run.ask_successfully("send_next", paths=wanted)
    run.ask_successfully("set_bandwidth", bandwidth=0)

    check_complete(numbered, run.finish())
    names = [event["name"] for event in run.of_kind("transfer_started")]
    assert [name for name in names if name in wanted] == wanted


def begin_large(site, name):
    """Return a run that has sent a good half of a large file, and the number of the transfer."""
    (site.data / name).write_bytes(os.urandom(24_000_000))
    run = Commanded(site, "transfer.channels=1", "transfer.batch_below=0")
    run.ask_successfully("set_bandwidth", bandwidth=12_000_000)
    run.ask_successfully("send_next", path=name)
    number = run.wait("transfer_started", name=name)["transfer"]
    while run.wait("transfer_progressed", transfer=number)["bytes"] < 14_000_000:
        pass
    return run, number


def test_a_file_that_is_held_back_lets_others_pass_and_is_continued_later(numbered):
    name = "alice/Set 0/00.raw"
    run, number = begin_large(numbered, name)

    run.ask_successfully("cancel", path=name)
    run.wait("transfer_started")
    assert run.seen[-1]["name"] != name
    run.ask_successfully("retry", path=name)

    check_complete(numbered, run.finish())
    second = [it for it in run.of_kind("transfer_started") if it["name"] == name][-1]
    assert second["transfer"] != number
    again = [
        it for it in run.of_kind("transfer_progressed") if it["transfer"] == second["transfer"]
    ]
    assert again[-1]["omitted"] > 8_000_000


@pytest.mark.parametrize("by", ["path", "transfer"])
def test_a_file_that_is_held_back_for_a_moment_is_continued_at_once(numbered, by):
    name = "alice/Set 0/00.raw"
    run, number = begin_large(numbered, name)

    cancel, retry = ("cancel", "retry") if by == "path" else ("cancel_transfer", "retry_transfer")
    fields = {"path": name} if by == "path" else {"transfer": number}
    for command in (cancel, retry):
        run.write(json.dumps({"command": command, **fields}))

    check_complete(numbered, run.finish())
    assert run.of_kind("command_refused") == run.of_kind("transfer_retried") == []
    *_, last = (it for it in run.of_kind("transfer_progressed") if it["omitted"])
    assert last["omitted"] > 8_000_000


def test_a_run_is_paused_and_goes_on_at_a_new_speed(site):
    run = Commanded(site, SLOW)
    run.wait("transfer_started")

    run.ask_successfully("pause")
    assert run.of_kind("run_paused")[-1]["problem"]["code"] == "run.paused"
    run.ask_successfully("set_bandwidth", bandwidth=0)
    run.ask_successfully("set_channels", channels=1)
    run.ask_successfully("resume")
    check_complete(site, run.finish())

    assert len(run.of_kind("run_resumed")) == 1
    limits = [(line["bandwidth"], line["reason"]) for line in run.of_kind("limits_changed")]
    assert limits[0] == (100_000, "limits.bandwidth")
    assert limits[1] == (0, "requested by the user")
    assert run.of_kind("limits_changed")[-1]["channels"] == 1


def test_a_file_under_way_is_cancelled_alone_and_sent_again_when_wanted(site):
    site.server.hold_verification()
    run = Commanded(site, SLOW, "transfer.batch_below=1_000_000")
    run.wait("transfer_started", name=LARGE)

    run.ask_successfully("cancel", path=LARGE)
    left = run.wait("file_waiting", path=LARGE)
    run.ask_successfully("set_bandwidth", bandwidth=0)
    run.ask_successfully("retry", path="alice/Tomogram 7")
    site.server.release_verification()
    check_complete(site, run.finish())

    assert left["problem"]["code"] == "file.cancelled"
    (again,) = run.of_kind("file_retried")
    assert (again["path"], again["outcome"]) == (LARGE, "waiting")


def test_a_cancelled_transfer_waits_for_the_next_run_with_all_of_its_files(site):
    run = Commanded(site, SLOW)
    batch = run.wait("transfer_started")
    while batch["files"] == 1:
        batch = run.wait("transfer_started")

    run.ask_successfully("cancel_transfer", transfer=batch["transfer"])
    again = run.ask("cancel_transfer", transfer=10_000)
    run.ask_successfully("set_bandwidth", bandwidth=0)
    ended = run.finish()

    assert again["problem"]["code"] == "command.no-transfer"
    check_sums(ended)
    assert ended.sums["waiting"] == len(run.of_kind("file_waiting")) == batch["files"]
    check_complete(site, site.run())


def test_a_cancelled_folder_waits_for_the_next_run(site):
    run = Commanded(site, SLOW)
    run.wait("run_started")

    run.ask_successfully("cancel", path="alice")
    run.ask_successfully("set_bandwidth", bandwidth=0)
    ended = run.finish()

    check_sums(ended)
    left = {line["path"] for line in run.of_kind("file_waiting")}
    assert ended.code == 0
    assert {path.split("/")[0] for path in left} == {"alice"}
    assert ended.sums["waiting"] == len(left) > 0
    check_complete(site, site.run())


def test_what_makes_no_sense_is_refused_and_harms_nothing(site):
    run = Commanded(site, SLOW)
    run.wait("transfer_started")

    for line in ("rubbish", "", "[" * 60_000, "x" * 1_000_000, '{"command": "pauze", "id": "a"}'):
        run.write(line)
    refused = [run.wait("command_refused") for _ in range(4)]
    nothing = run.ask("retry", path="nowhere")
    run.ask_successfully("set_bandwidth", bandwidth=0)

    codes = [line["problem"]["code"] for line in (*refused, nothing)]
    assert codes == ["command.unreadable"] * 3 + [
        "command.unknown",
        "command.nothing-to-retry",
    ]
    assert [line["id"] for line in refused] == [None] * 3 + ["a"]
    check_complete(site, run.finish())


def test_a_request_to_stop_is_obeyed_at_once(site):
    run = Commanded(site, SLOW)
    run.wait("transfer_started")

    run.ask_successfully("stop")
    ended = run.finish()

    assert (ended.code, ended.problem) == (130, "run.interrupted")
    check_complete(site, site.run())


def test_a_request_to_stop_later_lets_what_is_under_way_be_finished(site):
    run = Commanded(site, SLOW, "transfer.channels=1", "transfer.batch_below=0")
    name = run.wait("transfer_started")["name"]

    run.ask_successfully("stop", now=False)
    run.ask_successfully("set_bandwidth", bandwidth=0)
    ended = run.finish()

    check_sums(ended)
    assert (ended.code, ended.problem) == (130, "run.interrupted")
    assert name in {line["path"] for line in run.of_kind("file_verified")}
    assert {line["problem"]["code"] for line in run.of_kind("file_waiting")} == {"run.stopping"}
    check_complete(site, site.run())


def test_a_run_continues_when_the_source_of_commands_is_gone(site):
    run = Commanded(site)

    run.write('{"command": "set_channels", "channels": 1}')

    check_complete(site, run.finish())
    assert run.of_kind("command_done")[0]["id"] is None


def test_a_request_to_stop_that_comes_first_is_obeyed(site):
    run = Commanded(site)

    run.write('{"command": "stop"}')

    assert run.finish().code == 130


def test_a_run_over_one_folder_leaves_the_others_for_later(site):
    chosen = sorted(path for path in site.data.glob("*/*") if path.is_dir())[0]

    partial = site.command("run", "--json", "--only", str(chosen)).sums
    whole = site.run().sums

    files = sum(path.is_file() for path in chosen.rglob("*"))
    assert (partial["found"], partial["verified"]) == (files, files)
    assert whole["sent"] == whole["found"] - files


def start_slowly(site):
    """Start a run as a program does that has gone since: nothing can be written to its input."""
    return site.start("run", "--events", settings=(SLOW,))


def status(site):
    return site.command("status", "--json").lines[-1]


def test_another_process_pauses_a_run_and_resumes_it(site):
    process = start_slowly(site)
    wait_for(process, "transfer_started")

    assert site.command("pause").code == 0
    (paused,) = wait_for(process, "run_paused")[-1:]
    assert status(site)["paused"] == paused["problem"]
    assert site.command("resume").code == 0
    wait_for(process, "run_resumed")
    assert status(site)["paused"] is None

    assert site.command("stop").code == 0
    assert finish_reading(process).problem == "run.interrupted"
    check_complete(site, site.run())


def test_another_process_stops_a_run_that_waits_for_its_server(site):
    site.server.stop()
    process = site.start("watch", "--events", settings=("schedule.kind=startup",))
    wait_for(process, "run_paused")
    assert "The run is still paused: " in site.command("resume").output
    assert site.command("stop").code == 0

    (end,) = wait_for(process, "run_finished")[-1:]
    assert end["problem"]["code"] == "run.interrupted"
    assert process.poll() is None


def test_a_command_without_a_run_changes_nothing(site):
    refused = site.command("pause")

    assert (refused.code, "No run is in progress." in refused.complaints) == (3, True)
    check_complete(site, site.run())


def test_a_command_to_a_killed_run_is_not_obeyed_by_the_next_one(site):
    first = start_slowly(site)
    wait_for(first, "transfer_started")
    (status_file,) = site.state.glob("run-*-status.json")
    killed = json.loads(status_file.read_text())["run"]
    first.kill()
    finish_reading(first)
    command = {"run": killed, "command": "stop_run", "id": "1"}
    order = status_file.with_name(status_file.name.replace("status", "command-1"))
    order.write_text(json.dumps(command))

    second = start_slowly(site)
    wait_for(second, "transfer_started")
    order.write_text(json.dumps(command))
    while order.exists():
        yield_processor()
    assert json.loads(status_file.read_text())["run"] != killed
    commands = status_file.with_name(status_file.name.replace("status.json", "command"))
    ended = ActiveRun(killed, ControlFiles(status_file, commands))
    with pytest.raises(RunError) as caught:
        give_command(ended, "pause", CancelFlag())
    assert caught.value.problem_code == "command.no-run"
    assert site.command("pause").code == 0
    wait_for(second, "run_paused")

    assert site.command("stop").code == 0
    finish_reading(second)
