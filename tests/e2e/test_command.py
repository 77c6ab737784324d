"""The installed command against a real server and a real staging host."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from mydata_like import __version__
from mydata_like.core.events import Event, event_name
from tests.invariants import check_complete, check_idle, check_sums, check_untouched
from tests.privileges import IS_ROOT
from tests.site import (
    DEADLINE,
    Picture,
    a_site,
    finish,
    left_behind,
    make_data,
    open_site,
    wait_for,
)
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

SUMS = ["found", "verified", "waiting", "skipped", "failed", "sent", "bytes", "seconds", "problem"]
OLD = 1_600_000_000


site = a_site()


def test_the_first_run_brings_all_and_the_second_sends_nothing(site):
    before = Picture.take(site.data)

    ended = site.run()

    check_complete(site, ended)
    assert set(SUMS) <= set(ended.sums)
    assert ended.sums["sent"] == ended.sums["found"] == len(site.place.expected_files())
    assert ended.sums["bytes"] >= sum(p.stat().st_size for p in site.data.rglob("*.*"))
    check_idle(site)
    check_untouched(before)


def test_over_http_all_arrives_too(site):
    check_complete(site, site.run("transfer.method=http"))

    assert "Accepted publickey" not in site.sshd.log


def test_a_changed_file_is_repaired_and_verified_again(site):
    site.run()
    path = site.data / "bob" / "Long run" / "part_3.csv"
    path.write_bytes(b"other bytes" * 5000)
    os.utime(path, (OLD, OLD))
    asked, records = len(site.server.requests), len(site.server.datafiles())

    ended = site.run()

    check_complete(site, ended)
    assert ended.sums["sent"] == 1
    assert any(change.startswith("PATCH") for change in site.changes(asked))
    assert len(site.server.datafiles()) == records
    (stored,) = [file for file in site.server.datafiles() if file.filename == "part_3.csv"]
    assert stored.path.read_bytes() == path.read_bytes()


def test_every_event_is_one_line_of_json_with_its_fields(site):
    told = {event_name(kind): {field.name for field in fields(kind)} for kind in get_args(Event)}

    ended = site.run_events()

    assert ended.code == 0
    for line in ended.lines:
        assert set(line) - {"event"} == told[line["event"]]
    assert ended.lines[0]["event"] == "run_started"
    assert ended.lines[-1]["event"] == "run_finished"
    verified = len(ended.events("file_verified"))
    assert verified == ended.sums["verified"] == ended.sums["found"]


def test_scan_reports_what_would_be_sent_and_changes_nothing(site):
    ended = site.command("scan", "--events")

    assert ended.code == 0
    assert len(ended.events("file_wanted")) == len(site.place.expected_files())
    assert site.changes() == []
    assert site.server.datafiles() == []
    assert not any(site.server.box_location.rglob("*"))


def test_a_scan_after_a_run_finds_everything_known(uploaded):
    asked = len(uploaded.server.requests)

    ended = uploaded.command("scan", "--json")

    assert ended.code == 0
    assert ended.sums["verified"] == ended.sums["found"] == len(uploaded.place.expected_files())
    assert uploaded.changes(asked) == []


@pytest.mark.parametrize(
    "spoil",
    [
        lambda ledger: ledger.unlink(),
        lambda ledger: ledger.write_bytes(b"no database at all" * 500),
        lambda ledger: ledger.write_bytes(b""),
        lambda ledger: ledger.write_bytes(ledger.read_bytes()[:5000]),
        lambda ledger: _overwrite_middle(ledger),
    ],
    ids=["deleted", "rubbish", "emptied", "cut", "rubbish in the middle"],
)
def test_a_lost_ledger_costs_no_byte(uploaded, spoil):
    for file in uploaded.ledgers:
        if file.suffix == ".db":
            spoil(file)
        else:
            file.unlink(missing_ok=True)

    ended = uploaded.run()

    assert (ended.code, ended.sums["sent"], ended.sums["bytes"]) == (0, 0, 0), ended
    assert ended.sums["verified"] == len(uploaded.place.expected_files())


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory):
    """A site that has been uploaded once, for tests that change nothing on the server."""
    folder = tmp_path_factory.mktemp("uploaded")
    make_data(folder / "site")
    with open_site(folder / "site") as site:
        check_complete(site, site.run())
        yield site


def test_a_special_file_is_skipped_with_the_reason(site):
    folder = site.data / "alice" / "Tomogram 7"
    os.mkfifo(folder / "pipe")
    (folder / "broken").symlink_to("nowhere")
    (folder / "link").symlink_to("volume.raw")

    ended = site.run_events()

    check_complete(site, ended)
    reasons = {line["path"]: line["problem"]["code"] for line in ended.events("file_skipped")}
    assert reasons == {
        "alice/Tomogram 7/pipe": "skipped.special",
        "alice/Tomogram 7/broken": "skipped.symlink",
        "alice/Tomogram 7/link": "skipped.symlink",
    }


def test_names_that_the_server_cannot_express_are_left_out_alone(site):
    folder = os.fsencode(site.data / "alice" / "Tomogram 7")
    Path(os.fsdecode(folder + b"/bad \xff.dat")).write_bytes(b"1")

    ended = site.run_events()

    check_sums(ended)
    (skipped,) = ended.events("file_skipped")
    assert (skipped["path"], skipped["problem"]["code"]) == (
        r"alice/Tomogram 7/bad \xff.dat",
        "skipped.name",
    )
    assert ended.code == 0
    assert ended.sums["verified"] == ended.sums["found"] - 1


def test_what_may_not_be_read_fails_alone(site):
    site.wrap = _without_privileges()
    locked = site.data / "bob" / "Long run" / "part_0.csv"
    folder = site.data / "alice" / "Cell count 2024-05-01" / "well 00"
    locked.chmod(0)
    folder.chmod(0)

    ended = site.run_events()
    locked.chmod(0o600)
    folder.chmod(0o700)

    assert ended.code == 1
    check_sums(ended)
    failed = {line["path"]: line["problem"]["code"] for line in ended.events("file_failed")}
    assert failed["bob/Long run/part_0.csv"] == "file.unreadable"
    assert any("well 00" in line["path"] for line in ended.events("folder_failed"))
    assert ended.sums["verified"] == ended.sums["found"] - ended.sums["failed"]
    check_complete(site, site.run())


def test_a_file_that_grows_all_the_time_is_left_alone(site):
    path = site.data / "alice" / "Tomogram 7" / "growing.raw"
    path.write_bytes(bytes(4_000_000))
    process = site.start("run", "--json")
    while process.poll() is None:
        with path.open("ab") as file:
            file.write(b"frame" * 100)

    first = finish(process)

    check_sums(first)
    assert first.sums["verified"] == first.sums["found"] - 1
    assert site.find_wrongs(left_out=[path]) == []
    check_complete(site, site.run())


def test_a_reader_of_events_that_goes_away_leaves_no_mess(site):
    process = site.start("run", "--events")
    wait_for(process, "folder_found")
    process.stdout.close()

    process.wait(DEADLINE)
    complaints = process.stderr.read()
    process.stderr.close()

    assert "Traceback" not in complaints
    assert left_behind(process.pid) == []
    check_complete(site, site.run())


def test_a_reader_of_the_self_test_that_goes_away_leaves_no_mess():
    words = [sys.executable, "-m", "mydata_like", "--self-test", "program", "program"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().startswith(b"ok")
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.skipif(os.name == "nt", reason="a program that aborts has another exit code")
def test_a_part_of_the_self_test_that_crashes_is_named_with_its_exit_code():
    words = [sys.executable, "-m", "mydata_like", "--self-test", "window"]
    fatal = os.environ | {"QT_FATAL_WARNINGS": "1"}  # Qt warns that nothing offscreen has a size

    ended = subprocess.run(words, capture_output=True, text=True, env=fatal)

    assert "FAILED    window     It ended with exit code -6." in ended.stdout


def test_a_served_demonstration_takes_runs_until_it_is_stopped(tmp_path):
    config = tmp_path / "settings.toml"
    words = (sys.executable, "-m", "mydata_like", "demo", "--serve", "--write-config", config)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        said = [line for line in iter(process.stdout.readline, "Stop with Ctrl+C.\n") if line]

        ended = _carry_out("run", "--config", str(config), "--json")
        process.send_signal(signal.SIGINT)
        process.wait(DEADLINE)

    sums = json.loads(ended.stdout)
    assert any(str(config) in line for line in said)
    assert (ended.returncode, process.returncode) == (0, 0)
    assert sums["verified"] == sums["found"] > 300


def test_a_demonstration_ends_with_proof(tmp_path):
    ended = _carry_out("demo", "--json")

    sums = json.loads(ended.stdout.splitlines()[-1])
    assert ended.returncode == 0, ended.stderr
    assert sums["event"] == "run_finished"
    assert sums["verified"] == sums["found"] > 300
    assert "byte for byte" in ended.stderr
    assert not [path for path in Path.home().rglob("*mydata-like*") if path.is_dir()]


def test_the_version_is_printed_without_loading_the_window():
    ended = _carry_out("--version", options=("-X", "importtime"))

    assert ended.stdout == f"mydata-like {__version__}\n"
    for heavy in ("PySide6", "paramiko", "requests"):
        assert heavy not in ended.stderr


def test_the_command_line_needs_no_window():
    ended = _carry_out("--help", options=("-X", "importtime"))

    assert ended.returncode == 0
    assert "PySide6" not in ended.stderr


def _carry_out(*words, options=()):
    return subprocess.run(
        [sys.executable, *options, "-m", "mydata_like", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )


def _without_privileges() -> tuple[str, ...]:
    """Return the words before a command whose user is bound by the modes of files."""
    if not IS_ROOT:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv for this")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def _overwrite_middle(ledger: Path) -> None:
    size = ledger.stat().st_size
    with ledger.open("r+b") as file:
        file.seek(size // 3)
        file.write(os.urandom(size // 3))


def test_a_run_and_its_channel_workers_import_nothing_that_they_do_not_need(site, monkeypatch):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # the interpreter reports what it imports

    ended = site.run()

    lines = ended.complaints.splitlines()
    named = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert {"mydata_like", "urllib3", "ssh"} <= named
    assert not named & {"PySide6", "asyncio", "botocore", "keyring", "paramiko", "rich", "tomlkit"}


def test_a_run_that_finds_nothing_new_starts_no_channel_worker(site, monkeypatch):
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # the interpreter reports what it imports

    first, second = site.run().complaints, site.run().complaints

    assert "mydata_like.transfer.worker\n" in first
    assert "mydata_like.transfer.worker\n" not in second
    assert "cryptography\n" not in second  # which takes long, and no run needs that has a key
