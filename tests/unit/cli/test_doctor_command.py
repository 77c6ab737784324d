"""What `mydata-like doctor` prints, and how it ends when someone stops it."""

import json
import signal
import subprocess
from dataclasses import replace

from mydata_like.app.settings_service import load_settings
from mydata_like.cli.doctor_command import conclude, describe
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.recommendations import judge
from mydata_like.speedtest.results import (
    LARGE_FILES,
    TINY_FILES,
    LocalMachine,
    Measurement,
    SpeedTestResult,
    StageResult,
    Unit,
    flooded,
)
from mydata_like.state.state_files import add_speed_test, read_speed_tests
from tests.site import finish_reading, kill_group, make_data, open_site, wait_for
from tests.sshd_fixture import needs_sshd

FOUND = SpeedTestResult(
    measured=(
        Measurement(StageResult.SOURCE, LARGE_FILES, Unit.BYTES, (90e6, 100e6, 101e6)),
        Measurement(StageResult.CHANNELS, flooded(1), Unit.BYTES, (900e6,)),
        Measurement(StageResult.SERVER_DISK, LARGE_FILES, Unit.BYTES, (300e6,)),
        Measurement(StageResult.SERVER_DISK, TINY_FILES, Unit.FILES, (4000.0,)),
    ),
    here=LocalMachine(4, busy=0.5),
    unknown=("Something cannot be told.",),
)
ADVISED = {
    "at": "2026-03-02T10:00:00+00:00",
    "quick": True,
    "findings": FOUND.as_record() | {"rung": "shell"},
    "verdict": {"sentence": "", "advice": [{"changes": {"transfer.channels": 2}}]},
}


def test_a_row_shows_the_spread_where_it_is_wide():
    narrow, wide = FOUND.measured[0], FOUND.measured[0]._replace(looks=(50e6, 100e6, 150e6))

    assert describe(narrow).endswith("100.0 MB/s")
    assert describe(wide).endswith("100.0 MB/s  (50.0 MB/s to 150.0 MB/s)")


def test_the_table_marks_the_limit_of_each_workload():
    lines = list(conclude(judge(FOUND, Transfer()), FOUND))

    (source,) = [line for line in lines if line.startswith("source")]
    (disk,) = [line for line in lines if line.startswith("server disk")]
    assert "limit: 100.0 MB/s" in source
    assert "299.9 MB/s" in disk
    assert disk.endswith("limit: 4,000 files/s")


def test_the_sentence_is_followed_by_what_would_help_and_what_is_not_known():
    lines = list(conclude(judge(FOUND, Transfer()), FOUND))

    assert any(line.startswith("The limit is for large files the disk") for line in lines)
    assert any("x 3.0" in line for line in lines)
    assert "Other programs used CPU time of this computer: 50% when the test began." in lines
    assert lines[-1] == "Something cannot be told."


def test_what_others_took_before_and_after_is_said():
    busy = replace(FOUND, here=LocalMachine(4, busy=0.1, busy_after=0.7))

    lines = list(conclude(judge(busy, Transfer()), busy))

    assert "Other programs used CPU time of this computer: 70% when the test ended." in lines


@needs_sshd
def test_what_is_advised_is_applied_and_each_cipher_has_its_cost(tmp_path):
    """What is advised depends on what else keeps this computer busy: it may be nothing."""
    make_data(tmp_path / "site")
    ciphers = ["chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com"]
    with open_site(tmp_path / "site") as site:
        assert site.command("register").code == 0
        write_setting(site, f"ciphers = {ciphers}")

        ended = site.command("doctor", "--quick", "--apply", "--json")

        assert ended.code == 0, ended.complaints
        advised = {}
        for advice in ended.sums["verdict"]["advice"]:
            advised |= advice["changes"]
        proof = ended.sums["proof"] or {"changes": {}}
        assert proof["changes"] == advised
        assert all(find_cost(ended.sums, cipher) > 0 for cipher in ciphers)
        written = load_settings(site.config).settings.transfer.ciphers
        assert list(written) == advised.get("transfer.ciphers", ciphers)


def write_setting(site, line):
    text = site.config.read_text()
    site.config.write_text(text.replace("[transfer]\n", f"[transfer]\n{line}\n"))


def find_cost(record, cipher):
    """Return the processor seconds of a byte."""
    (found,) = [one for one in record["findings"]["stages"] if one["what"] == cipher]
    return found["cpu_seconds_here"] + found["cpu_seconds_there"]


def finished(output):
    """Return the names of events by their lines, and what the last one reports."""
    lines = [json.loads(line) for line in output.splitlines()]
    return [line["event"] for line in lines], lines[-1]


@needs_sshd
def test_a_program_follows_each_figure_and_its_end_ends_the_test(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        process = site.start("doctor", "--events", "--attended", stdin=subprocess.PIPE)
        first = json.loads(process.stdout.readline())
        process.stdin.close()
        process.stdin = None

        ended = finish_reading(process)

        assert (first["event"], first["stage"]) == ("stage_measured", "hash")
        assert ended.code == 130
        assert "test_finished" not in ended.output


@needs_sshd
def test_the_advice_of_the_latest_test_is_applied_without_a_new_one(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        assert site.command("register").code == 0
        words = ("doctor", "--quick", "--events", "--apply", "--latest")

        nothing = site.command(*words)
        add_speed_test(site.state / "speed-tests.jsonl", ADVISED)
        applied = site.command(*words)
        kept = read_speed_tests(site.state / "speed-tests.jsonl")

        assert nothing.problem == "speed.no-test"
        events, last = finished(applied.output)
        assert events == ["settings_applied", "gain_measured", "gain_measured", "test_finished"]
        assert last["proof"]["changes"] == {"transfer.channels": 2}
        assert last["proof"]["replaced"] == {"transfer.channels": None}
        assert all(
            one["before"]["median"] and one["after"]["median"] for one in last["proof"]["measured"]
        )
        assert load_settings(site.config).settings.transfer.channels == 2
        assert kept == [{name: last[name] for name in last if name != "event"}]


@needs_sshd
def test_the_way_back_is_kept_whatever_ends_the_test_and_however_often_it_is_applied(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        assert site.command("register").code == 0
        tests = site.state / "speed-tests.jsonl"
        add_speed_test(tests, ADVISED)
        words = ("doctor", "--quick", "--events", "--apply", "--latest")

        killed = site.start(*words)
        wait_for(killed, "settings_applied")
        kill_group(killed)
        finish_reading(killed)
        (left,) = read_speed_tests(tests)
        again = site.command(*words)
        (kept,) = read_speed_tests(tests)

        assert left["proof"]["replaced"] == {"transfer.channels": None}
        assert again.events("settings_applied") == []
        assert kept == left


@needs_sshd
def test_what_is_applied_later_adds_to_the_way_back(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        changes = {"transfer.channels": 2, "transfer.compression": "auto"}
        advice = [{"changes": changes | {"transfer.ciphers": ["aes256-ctr", "aes128-ctr"]}}]
        proof = {"changes": {"transfer.channels": 2}, "replaced": {"transfer.channels": 7}}
        told = {"verdict": {"advice": advice}, "proof": proof | {"measured": []}}
        add_speed_test(site.state / "speed-tests.jsonl", ADVISED | told)
        write_setting(site, "channels = 2")
        write_setting(site, 'compression = "never"')
        write_setting(site, 'ciphers = ["aes192-ctr", "aes256-ctr"]')

        applied = site.command("doctor", "--events", "--apply", "--latest")

        (event,) = applied.events("settings_applied")
        assert event["changes"] == {
            "transfer.compression": "auto",
            "transfer.ciphers": ["aes256-ctr", "aes192-ctr"],
        }
        assert applied.sums["proof"]["replaced"] == {
            "transfer.channels": 7,
            "transfer.compression": "never",
            "transfer.ciphers": ["aes192-ctr", "aes256-ctr"],
        }


@needs_sshd
def test_an_interrupt_ends_it_and_nothing_is_left(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        assert site.command("register").code == 0
        process = site.start("doctor", "--quick")
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)

        ended = finish_reading(process)

        assert first.startswith("hash")
        assert ended.code == 130
        assert ended.complaints == ""
        assert not list(site.place.folder.rglob(".mydata-like-doctor-*"))
