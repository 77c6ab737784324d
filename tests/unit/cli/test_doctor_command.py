"""What `mydata-like doctor` prints, and how it ends when someone stops it."""

import json
import signal
import subprocess
from dataclasses import replace

from mydata_like.app.settings_service import load_settings
from mydata_like.cli.doctor_command import conclude, describe_result
from mydata_like.speedtest.recommendations import as_verdict
from mydata_like.speedtest.results import (
    LARGE_FILES,
    LocalMachine,
    Measurement,
    SettingsComparison,
    SpeedTestResult,
    StageResult,
    Unit,
    Workload,
)
from mydata_like.state.state_files import add_speed_test, read_speed_tests
from tests.site import finish_reading, make_data, open_site
from tests.sshd_fixture import needs_sshd

BATCHES = SettingsComparison(
    "batches",
    "Send more tiny files together.",
    Workload.TINY,
    {"transfer.batch_files": 1000},
    (40.0, 50.0, 60.0),
    (90.0, 100.0, 200.0),
    won=True,
)
FOUND = SpeedTestResult(
    measured=(
        Measurement(StageResult.SOURCE, LARGE_FILES, Unit.BYTES, (90e6, 100e6, 101e6)),
        Measurement(StageResult.NETWORK, "1 session", Unit.BYTES, (900e6,)),
        Measurement(StageResult.CHANNELS, Workload.LARGE.together, Unit.BYTES, (80e6,)),
    ),
    compared=(BATCHES,),
    here=LocalMachine(4, busy=0.5),
    there=LocalMachine(8, aes=True),
    rung="shell",
    unknown=("Something is unknown.",),
)


def advising(changes):
    """Return the record of a test in which these changes were faster."""
    found = replace(FOUND, compared=(BATCHES._replace(changes=changes),))
    record = {"at": "2026-03-02T10:00:00+00:00", "quick": True, "findings": found.as_record()}
    return json.loads(json.dumps(record | {"verdict": as_verdict(found)}))


def test_a_row_shows_the_spread_where_it_is_wide():
    narrow, wide = FOUND.measured[0], FOUND.measured[0]._replace(samples=(50e6, 100e6, 150e6))

    assert describe_result(narrow).endswith("100.0 MB/s")
    assert describe_result(wide).endswith("100.0 MB/s  (50.0 MB/s to 150.0 MB/s)")


def test_a_comparison_shows_both_speeds_and_whether_the_change_won():
    lost = BATCHES._replace(won=False)

    assert describe_result(BATCHES).endswith(
        "Tiny files: 100 files/s, 50 files/s now: faster twice (x 2.00)"
    )
    assert describe_result(lost).endswith("100 files/s, 50 files/s now: not faster twice")


def test_it_ends_with_both_computers_the_slowest_part_and_what_was_faster():
    lines = list(conclude(FOUND))

    assert "This computer has 4 cores, the staging host 8 cores, encrypting by AES." in lines
    assert any("slowest part alone is the disk of this computer (100.0 MB/s)" in it for it in lines)
    assert "- Send more tiny files together. (tiny files: x 2.00)" in lines
    assert "Other programs used CPU time of this computer: 50% when the test began." in lines
    assert lines[-1] == "Something is unknown."


def test_what_others_took_after_it_is_said():
    busy = replace(FOUND, here=LocalMachine(4, busy=0.1, busy_after=0.7))

    assert "Other programs used CPU time of this computer: 70% when the test ended." in list(
        conclude(busy)
    )


@needs_sshd
def test_only_what_was_faster_twice_is_applied(tmp_path):
    """What is faster depends on what else keeps this computer busy: it may be nothing."""
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        assert site.command("register").code == 0

        ended = site.command("doctor", "--quick", "--apply", "--json")

        assert ended.code == 0, ended.complaints
        advised = {}
        for one in ended.sums["findings"]["compared"]:
            advised |= one["changes"] if one["won"] else {}
        assert (ended.sums["proof"] or {"changes": {}})["changes"] == advised
        written = load_settings(site.config).settings.transfer.ciphers
        assert advised == ({"transfer.ciphers": list(written)} if advised else {})


def write_setting(site, line):
    text = site.config.read_text()
    site.config.write_text(text.replace("[transfer]\n", f"[transfer]\n{line}\n"))


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


def test_the_advice_of_the_latest_test_is_applied_without_a_new_one(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        words = ("doctor", "--events", "--apply", "--latest")

        nothing = site.command(*words)
        add_speed_test(site.state / "speed-tests.jsonl", advising({"transfer.channels": 2}))
        applied = site.command(*words)
        again = site.command(*words)
        kept = read_speed_tests(site.state / "speed-tests.jsonl")

        assert nothing.problem == "speed.no-test"
        events, last = finished(applied.output)
        assert events == ["settings_applied", "test_finished"]
        assert last["proof"]["changes"] == {"transfer.channels": 2}
        assert last["proof"]["replaced"] == {"transfer.channels": None}
        assert load_settings(site.config).settings.transfer.channels == 2
        assert kept == [{name: last[name] for name in last if name != "event"}]
        assert finished(again.output)[1] == last, "the way back is kept"


def test_advice_that_an_earlier_version_predicted_is_not_applied(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        record = advising({"transfer.channels": 2})
        del record["findings"]["compared"]
        add_speed_test(site.state / "speed-tests.jsonl", record)

        refused = site.command("doctor", "--events", "--apply", "--latest")

        assert refused.problem == "speed.no-test"
        assert load_settings(site.config).settings.transfer.channels == 0


def test_what_is_applied_later_adds_to_the_way_back(tmp_path):
    make_data(tmp_path / "site")
    with open_site(tmp_path / "site") as site:
        changes = {"transfer.channels": 2, "transfer.compression": "auto"}
        record = advising(changes | {"transfer.ciphers": ["aes256-ctr", "aes128-ctr"]})
        proof = {"changes": {"transfer.channels": 2}, "replaced": {"transfer.channels": 7}}
        add_speed_test(site.state / "speed-tests.jsonl", record | {"proof": proof})
        write_setting(site, "channels = 2")
        write_setting(site, 'compression = "never"')
        write_setting(site, 'ciphers = ["aes192-ctr", "aes256-ctr"]')

        applied = site.command("doctor", "--events", "--apply", "--latest")

        (event,) = applied.events("settings_applied")
        assert event["changes"] == {
            "transfer.channels": 2,
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
