"""A speed test against a real server and a real staging host: results for all, and nothing left."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

import pytest

from mydata_like.app.run_request import RunObserver
from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.app.speedtest_records import apply_advice, load_speed_tests
from mydata_like.app.speedtest_service import (
    SpeedTestRequest,
    finish_speed_test,
    open_speed_test,
)
from mydata_like.core.errors import AlreadyRunningError, Cancelled, RunError
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_data_directory
from mydata_like.ledger.sqlite_ledger import PastRunRow, SqliteLedger
from mydata_like.speedtest.remote_host import RemoteHost
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    QUICK,
    RECORDS,
    RENAME,
    TINY_FILES,
    Measurement,
    SettingsComparison,
    SpeedTestBudget,
    SpeedTestEffort,
    SpeedTestResult,
    StageResult,
    Workload,
)
from mydata_like.transfer.ssh.staging_host import StagingHost
from tests.faults.tcpproxy import TcpProxy
from tests.site import make_data, open_site
from tests.sshd_fixture import (
    endpoint_of,
    needs_sshd,
    scp_only,
    script,
    sftp_only,
    sshd_with,
    with_programs,
)
from tests.staging import use_folder

pytestmark = needs_sshd
TOGETHER = {workload.together for workload in Workload}
LEAST = SpeedTestEffort(
    seconds=0.01,
    samples=3,
    line=300_000,
    disk=1_000_000,
    files=40,
    total=1000.0,
    sending=0.02,
    sent=400_000,
)


@contextmanager
def site_with(folder, *options, method="auto"):
    make_data(folder, large=8_000_000)
    with open_site(folder, options=options) as site:
        assert site.command("register").code == 0
        if method == "folder":
            use_folder(site)
        yield site


@contextmanager
def speed_test(site, *assignments, cancel=None, effort=LEAST, **asked):
    settings = load_settings(site.config, assignments).settings
    observer = RunObserver(cancel=cancel or CancelFlag())
    order = SpeedTestRequest(config=site.config, effort=effort, **asked)
    with open_speed_test(settings, order, observer) as test:
        yield test


def left_behind(site):
    """Return what a test has written and not removed, here or in the staging area."""
    folder = site.place.folder
    return [*folder.rglob(".mydata-like-doctor-*"), *folder.rglob("speed-test-*")]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with site_with(tmp_path_factory.mktemp("speed") / "site") as made:
        yield made


class Examined(NamedTuple):
    """What came of one whole test, after one that was killed."""

    results: list
    findings: SpeedTestResult
    record: dict
    left: list


@pytest.fixture(scope="module")
def examined(site):
    put_leftovers(site)
    settings = load_settings(site.config).settings
    with speed_test(site) as test:
        results = list(test.measure())
        record = finish_speed_test(settings, SpeedTestRequest(config=site.config), test.findings)
    return Examined(results, test.findings, record, left_behind(site))


def put_leftovers(site):
    """Leave in the staging area what a test has there at one moment, as if it were killed."""
    kept = site.state / "kept"
    with speed_test(site) as test, closing(test.measure()) as parts:
        next(one for one in parts if is_of(one, StageResult.SERVER_DISK))
        (there,) = site.place.folder.rglob(".mydata-like-doctor-*")
        shutil.copytree(there, kept)
    assert left_behind(site) == []
    shutil.move(kept, there)
    (site.state / "speed-test-killed").mkdir()


def is_of(result, stage):
    return isinstance(result, Measurement) and result.stage is stage


def names(results):
    return {(one.stage, one.what) for one in results if isinstance(one, Measurement)}


def test_each_part_has_a_figure(examined):
    measured = [one for one in examined.results if isinstance(one, Measurement)]
    assert {one.stage for one in measured} == set(StageResult) - {StageResult.FOLDER}
    assert all(one.value > 0 for one in measured)
    assert [one.what for one in measured if len(one.samples) < 3 and one.unit != "seconds"] == [
        COMPRESSED
    ]
    assert [
        text for text in examined.findings.unknown if "registering and verifying" not in text
    ] == []
    assert all(one["limit"] and one["together"] for one in examined.record["verdict"]["workloads"])


def test_other_ciphers_are_compared_with_the_negotiated_one(examined):
    compared = [one for one in examined.results if isinstance(one, SettingsComparison)]

    assert compared
    assert {one.code for one in compared} == {"cipher"}
    assert all(one.changes["transfer.ciphers"][0] != examined.findings.cipher for one in compared)


def test_nothing_is_left_not_even_of_a_test_that_was_killed(examined):
    assert examined.left == []


def test_a_test_is_kept_to_be_compared_with_later_ones(examined, site):
    settings = load_settings(site.config).settings

    kept = load_speed_tests(settings, site.config)[-1]

    assert kept == json.loads(json.dumps(examined.record))


@contextmanager
def busy_programs(count):
    """Keep processors busy with programs that only count."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def test_with_a_busy_computer_no_difference_is_found_between_ciphers_that_are_alike(site):
    """A figure alone would make one of them look faster."""
    ciphers = 'transfer.ciphers=["aes128-gcm@openssh.com","aes256-gcm@openssh.com"]'
    effort = QUICK._replace(total=1000.0, seconds=0.01)
    with (
        busy_programs(2 * (os.cpu_count() or 1)),
        speed_test(site, ciphers, "transfer.channels=2", effort=effort) as test,
    ):
        compared = [one for one in test.measure() if isinstance(one, SettingsComparison)]

    assert [one.code for one in compared] == ["cipher"]
    assert [one for one in compared if one.won] == []
    settings = load_settings(site.config).settings
    record = finish_speed_test(settings, SpeedTestRequest(config=site.config), test.findings)
    assert record["verdict"]["advice"] == []
    assert "No difference found" in record["verdict"]["sentence"]


def test_what_is_really_faster_is_recommended_and_applied(tmp_path):
    """Tiny files that travel alone are many times slower, whatever else the computer does."""
    with site_with(tmp_path / "site") as site:
        alone = "transfer.batch_files=1"
        effort = LEAST._replace(files=200, sending=0.2)
        with speed_test(site, alone, effort=effort) as test:
            list(test.measure())
            batches = next(one for one in test.findings.compared if one.code == "batches")
            settings = load_settings(site.config, [alone]).settings
            finish_speed_test(settings, SpeedTestRequest(config=site.config), test.findings)
        site.config.write_text(
            site.config.read_text().replace("[transfer]\n", "[transfer]\nbatch_files = 1\n")
        )

        record = apply_advice(settings, site.config)

        assert batches.won
        assert batches.gain > 1.05
        assert record["proof"]["changes"]["transfer.batch_files"] == 1000
        assert record["proof"]["replaced"]["transfer.batch_files"] == 1
        assert load_settings(site.config).settings.transfer.batch_files == 1000
        assert left_behind(site) == []


@pytest.mark.parametrize("moment", ["1 session", Workload.LARGE.together])
def test_a_test_that_is_cancelled_leaves_nothing(site, moment):
    cancel = CancelFlag()
    with speed_test(site, cancel=cancel) as test, closing(test.measure()) as parts:
        next(one for one in parts if one.what == moment)
        cancel.set("by the test")
        with pytest.raises(Cancelled):
            next(parts)
        assert left_behind(site) == []


def test_it_does_not_start_during_a_run(site):
    with (
        lock_data_directory(site.state, bytes(site.data), SystemClock()),
        pytest.raises(AlreadyRunningError),
        speed_test(site),
    ):
        pass


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ('limits.quiet_hours=["00:00-24:00"]', "limits.quiet-hours"),
        ('limits.timetable=["00:00-24:00 5"]', "limits.bandwidth"),
        ("limits.bandwidth=5", "limits.bandwidth"),
    ],
)
def test_it_leaves_instrument_and_line_alone_unless_asked(site, setting, code):
    with pytest.raises(RunError) as refused, speed_test(site, setting):
        pass
    assert refused.value.problem_code == code

    with speed_test(site, setting, anyway=True):
        pass


def test_where_the_line_is_to_be_spared_only_at_other_times_it_is_tested(site):
    with speed_test(site, "limits.bandwidth=5", 'limits.timetable=["00:00-24:00 0"]'):
        pass


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["transfer.method=http"], "files are sent over HTTP"),
        (["transfer.method=s3", "transfer.s3_bucket=box"], "files are sent to object storage"),
    ],
)
def test_over_http_and_to_object_storage_no_other_way_is_suggested(site, settings, reason):
    with speed_test(site, *settings) as test:
        measured = {stage for stage, _ in names(test.measure())}

        assert measured.isdisjoint(
            {StageResult.CHANNELS, StageResult.NETWORK, StageResult.SERVER_DISK}
        )
        assert reason in test.obstacle
        assert test.obstacle in test.findings.unknown


def test_a_mounted_folder_is_measured_in_the_place_of_a_host(tmp_path):
    with site_with(tmp_path / "site", method="folder") as site, speed_test(site) as test:
        measured = list(test.measure())

        assert {
            (stage, what) for stage, what in names(measured) if stage in ("folder", "channels")
        } == {
            (StageResult.FOLDER, RENAME),
            (StageResult.FOLDER, LARGE_FILES),
            *((StageResult.CHANNELS, what) for what in TOGETHER),
        }
        assert {stage for stage, _ in names(measured)}.isdisjoint({"network", "cipher"})
        assert all(one.value > 0 for one in measured)
        assert test.findings.rung == "folder"
        assert left_behind(site) == []


def test_earlier_runs_report_how_fast_the_server_makes_records(site):
    settings = load_settings(site.config).settings
    root = bytes(settings.data.directory)
    file = ledger_file(settings, find_places(site.config), root)
    runs = [
        {"sent": 900, "seconds": 3.0, "limit": "API"},
        {"sent": 900, "seconds": 1.0, "limit": "network"},
        {"sent": 9, "seconds": 3.0, "limit": "API"},
        {"sent": 600, "seconds": 1.0, "limit": "verification"},
    ]
    with SqliteLedger.open(file, root, SystemClock()) as ledger:
        for number, sums in enumerate(runs):
            now = SystemClock().now()
            ledger.record_run(PastRunRow(f"run {number}", now, now, sums))

    with speed_test(site) as test, closing(test.measure()) as parts:
        found = next(one for one in parts if one.what == RECORDS)

    assert sorted(found.samples) == [300.0, 600.0]


def test_without_a_shell_files_are_sent_and_it_says_what_cannot_be_measured(tmp_path):
    with site_with(tmp_path / "site", *sftp_only()) as site, speed_test(site) as test:
        results = list(test.measure())

        found = names(results)
        assert {what for stage, what in found if stage is StageResult.CHANNELS} == TOGETHER
        assert StageResult.SERVER_DISK not in {stage for stage, _ in found}
        assert any("allows no shell" in sentence for sentence in test.findings.unknown)
        assert left_behind(site) == []


def test_without_a_shell_a_cancelled_test_leaves_nothing_and_files_of_killed_ones_go(tmp_path):
    cancel = CancelFlag()
    with site_with(tmp_path / "site", *sftp_only()) as site:
        with speed_test(site, cancel=cancel) as test, closing(test.measure()) as parts:
            next(one for one in parts if one.what == Workload.LARGE.together)
            (there,) = site.place.folder.rglob(".mydata-like-doctor-*")
            cancel.set("by the test")
            with pytest.raises(Cancelled):
                next(parts)
        assert left_behind(site) == []
        there.mkdir()
        (there / "large-0").write_bytes(b"of a killed test")

        with speed_test(site) as test:
            list(test.measure())

        assert left_behind(site) == []


def test_a_host_that_takes_the_word_to_remove_and_does_nothing_is_found_out(tmp_path):
    """It has a shell when the test begins, and accepts all commands silently at the end."""
    silent = tmp_path / "silent"
    command = f'[ -e {silent} ] && exec cat >/dev/null\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with sshd_with(tmp_path, f"ForceCommand {script(tmp_path / 'host', command)}") as sshd:
        there = StagingHost(endpoint_of(sshd, tmp_path), bytes(tmp_path))
        budget = SpeedTestBudget(LEAST, CancelFlag())
        host = RemoteHost(there, "folder", lambda _: None, budget)
        host.open()
        with closing(host):
            assert host.remove() == ""
            silent.touch()
            assert host.remove() == "folder on the staging host"


def test_a_disk_is_given_as_many_tiny_files_as_fit_into_a_sample(tmp_path):
    many = 500  # of which a slow host unpacks a few within a hundredth of a second
    effort = LEAST._replace(files=many, total=0.0)
    # On a busy computer, the beginning of the work is noticed late.
    programs = {name: shutil.which(name) for name in ("tar", "md5sum", "sync")}
    slow = f'{shutil.which("sleep")} 3\nexec {programs["tar"]} "$@"\n'
    programs["tar"] = script(tmp_path / "slow", slow)
    with (
        sshd_with(tmp_path, *with_programs(tmp_path, **programs)) as sshd,
    ):
        endpoint = endpoint_of(sshd, tmp_path, stall_timeout=600.0)
        there = StagingHost(endpoint, bytes(tmp_path))
        budget = SpeedTestBudget(effort, CancelFlag())
        host = RemoteHost(there, "folder", lambda _: None, budget)
        host.open()
        with closing(host):
            measured = list(host.parts["The disk of the server"]())

    assert [len(one.samples) for one in measured] == [1, 1], "the time of the test had run out"
    assert 0 < len(list((tmp_path / "folder" / "unpacked").iterdir())) < many


def test_where_nothing_can_be_removed_nothing_is_sent(tmp_path):
    with site_with(tmp_path / "site", *scp_only(tmp_path)) as site, speed_test(site) as test:
        measured = {stage for stage, _ in names(test.measure())}

        assert measured == {
            StageResult.HASH,
            StageResult.SOURCE,
            StageResult.API,
            StageResult.CIPHER,
        }
        assert any("cannot remove files" in sentence for sentence in test.findings.unknown)


@contextmanager
def far_site(folder, *options):
    """Yield a site whose host has one core and is further away than a session should be shared."""
    programs = {name: shutil.which(name) for name in ("tar", "md5sum", "sync")}
    one_core = with_programs(folder, nproc="echo 1", **programs)
    make_data(folder / "site", large=8_000_000)
    with open_site(folder / "site", options=(*one_core, *options)) as site:
        sshd = site.place.sshd
        with TcpProxy(sshd.port, latency=0.012) as proxy:
            address = ScpAddress(sshd.username, sshd.host, proxy.port, (sshd.fingerprint,))
            site.server.set_address(address)
            assert site.command("register").code == 0
            yield site, proxy


def test_the_line_to_a_far_host_is_measured_over_as_many_sessions_as_a_run_has(tmp_path):
    with far_site(tmp_path) as (site, proxy), speed_test(site) as test:
        before = proxy.connections
        line = next(one for one in test.measure() if one.what == "4 sessions")

    assert proxy.connections - before >= 1 + 4
    assert line.value


def test_where_further_sessions_are_refused_the_rest_is_measured(tmp_path):
    with far_site(tmp_path) as (site, proxy), speed_test(site) as test:
        with closing(test.measure()) as parts:
            next(one for one in parts if one.what == "1 session")
            proxy.most = 2
            found = {what for _, what in names(parts)}

        assert proxy.refused
        assert found >= {LARGE_FILES, *TOGETHER}
        assert any(
            text.startswith("The connection to the server") for text in test.findings.unknown
        )


def test_a_host_that_grants_fewer_channels_than_are_asked_for_is_measured_with_these(tmp_path):
    programs = {name: shutil.which(name) for name in ("tar", "md5sum", "sync")}
    one_core = with_programs(tmp_path, nproc="echo 1", **programs)
    with (
        site_with(tmp_path / "site", *one_core, "MaxSessions 2") as site,
        speed_test(site, "transfer.channels=5") as test,
    ):
        measured = {what for _, what in names(test.measure())}

        assert measured >= {TINY_FILES, *TOGETHER}
        assert test.findings.channels == 2
        assert left_behind(site) == []


def test_without_an_approval_the_rest_is_measured(tmp_path):
    make_data(tmp_path / "site", large=8_000_000)
    with open_site(tmp_path / "site") as site, speed_test(site) as test:
        measured = names(test.measure())

        assert StageResult.API in {stage for stage, _ in measured}
        assert "ask for approval first" in test.obstacle
        assert test.obstacle in test.findings.unknown
