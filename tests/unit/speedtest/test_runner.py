"""A speed test against a real server and a real staging host: figures for all, and nothing left."""

import json
import shutil
from contextlib import closing, contextmanager
from typing import NamedTuple

import pytest

from mydata_like.app.run_request import RunObserver
from mydata_like.app.settings_service import (
    find_places,
    ledger_file,
    load_settings,
    load_speed_tests,
)
from mydata_like.app.speedtest_service import SpeedTestRequest, open_speed_test
from mydata_like.core.errors import AlreadyRunningError, Cancelled, RejectedError, RunError
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import lock_data_directory
from mydata_like.ledger.sqlite_ledger import PastRunRow, SqliteLedger
from mydata_like.speedtest.remote_host import RemoteHost
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    RECORDS,
    RENAME,
    TINY_FILES,
    SpeedTestBudget,
    SpeedTestEffort,
    SpeedTestResult,
    StageResult,
    carried,
    flooded,
)
from mydata_like.speedtest.runner import ProbeFiles, clean_by_shell, remove_files
from mydata_like.state.state_files import add_speed_test
from mydata_like.transfer.pool import count_cpus
from tests.faults.tcpproxy import TcpProxy
from tests.site import make_data, open_site
from tests.sshd_fixture import (
    endpoint_of,
    needs_sshd,
    open_session,
    scp_only,
    script,
    sftp_only,
    sshd_with,
    with_programs,
)
from tests.staging import use_folder

pytestmark = needs_sshd
CIPHERS = ["chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com"]
LEAST = SpeedTestEffort(
    seconds=0.01,
    samples=3,
    flood=1_500_000,
    disk=1_000_000,
    files=40,
    total=1000.0,
    together=0.1,
    carried=4_000_000,
)

MADE_BY_SHELL = {"findings": SpeedTestResult(rung="shell").as_record()}


@contextmanager
def site_with(folder, *options, method="auto"):
    make_data(folder, large=8_000_000)
    with open_site(folder, options=options) as site:
        assert site.command("register").code == 0
        if method == "folder":
            use_folder(site)
        yield site


@contextmanager
def speed_test(site, *assignments, cancel=None, **asked):
    settings = load_settings(site.config, assignments).settings
    observer = RunObserver(cancel=cancel or CancelFlag())
    order = SpeedTestRequest(config=site.config, effort=LEAST, **asked)
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
    """What came of one whole test, after one that was killed, and of applying its advice."""

    measured: list
    findings: SpeedTestResult
    record: dict
    proof: list
    left: list


@pytest.fixture(scope="module")
def examined(site):
    put_leftovers(site)
    with speed_test(site) as test:
        measured = list(test.measure())
        record = test.as_record(test.judge())
        test.keep(record)
        proof = list(test.apply({"transfer.channels": 2, "transfer.ciphers": CIPHERS}))
    return Examined(measured, test.findings, record, proof, left_behind(site))


def put_leftovers(site):
    """Leave in the staging area what a test has there at one moment, as if it were killed."""
    kept = site.state / "kept"
    with speed_test(site) as test, closing(test.measure()) as parts:
        next(one for one in parts if one.stage is StageResult.SERVER_DISK)
        (there,) = site.place.folder.rglob(".mydata-like-doctor-*")
        shutil.copytree(there, kept)
    assert left_behind(site) == []
    shutil.move(kept, there)
    (site.state / "speed-test-killed").mkdir()


def test_each_stage_has_a_figure(examined):
    elsewhere = {StageResult.SERVER_CPU, StageResult.FOLDER}
    assert {one.stage for one in examined.measured} == set(StageResult) - elsewhere
    once = [one.what for one in examined.measured if len(one.samples) < 3]
    assert all(one.value > 0 for one in examined.measured)
    assert once == [COMPRESSED]
    assert [
        text for text in examined.findings.unknown if "registering and verifying" not in text
    ] == []
    assert examined.findings.one_machine
    assert all(one["limit"] for one in examined.record["verdict"]["workloads"])


def test_nothing_is_left_not_even_of_a_test_that_was_killed(examined):
    assert examined.left == []


def test_the_host_reports_the_cpu_time_of_each_byte(examined):
    (cost,) = [one.cost for one in examined.measured if one.what == flooded(1)]

    assert cost.here > 0
    assert cost.there is not None


def test_a_test_is_kept_to_be_compared_with_later_ones(examined, site):
    settings = load_settings(site.config).settings

    kept = load_speed_tests(settings, site.config)[-1]

    assert kept == json.loads(json.dumps(examined.record))


def test_settings_are_written_and_what_they_gain_is_measured(examined, site):
    assert [one.what for one in examined.proof] == [carried(LARGE_FILES), carried(TINY_FILES)]
    assert all(one.value > 0 for one in examined.proof)
    written = load_settings(site.config).settings.transfer
    assert (written.channels, list(written.ciphers)) == (2, CIPHERS)


def test_a_test_that_is_cancelled_leaves_nothing(site):
    cancel = CancelFlag()

    def cancel_at_once(parts):
        for measured in parts:
            if measured.what == flooded(1):
                cancel.set("by the test")

    with speed_test(site, cancel=cancel) as test, closing(test.measure()) as parts:
        with pytest.raises(Cancelled):
            cancel_at_once(parts)
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
        measured = {one.stage for one in test.measure()}

        assert measured.isdisjoint(
            {StageResult.CHANNELS, StageResult.NETWORK, StageResult.SERVER_DISK}
        )
        assert reason in test.obstacle
        assert test.obstacle in test.findings.unknown


def test_a_mounted_folder_is_measured_in_the_place_of_a_host(tmp_path):
    with site_with(tmp_path / "site", method="folder") as site, speed_test(site) as test:
        measured = {(one.stage, one.what): one for one in test.measure()}

        assert {stage for stage, _ in measured} == {
            StageResult.HASH,
            StageResult.SOURCE,
            StageResult.API,
            StageResult.FOLDER,
            StageResult.CHANNELS,
        }
        assert {what for stage, what in measured if stage is StageResult.FOLDER} == {
            RENAME,
            LARGE_FILES,
            TINY_FILES,
        }
        assert {what for stage, what in measured if stage is StageResult.CHANNELS} == {
            *(flooded(count) for count in (2, 4, 8) if count <= 8 * count_cpus()),
            carried(LARGE_FILES),
            carried(TINY_FILES),
        }
        assert all(one.value > 0 and len(one.samples) >= 3 for one in measured.values())
        assert test.findings.rung == "folder"
        assert test.judge().predictions[0].limit
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


def test_without_a_shell_it_names_what_cannot_be_measured(tmp_path):
    with site_with(tmp_path / "site", *sftp_only()) as site, speed_test(site) as test:
        measured = list(test.measure())

        assert {one.stage for one in measured} >= {
            StageResult.CHANNELS,
            StageResult.CIPHER,
            StageResult.API,
        }
        assert StageResult.SERVER_DISK not in {one.stage for one in measured}
        assert any("allows no shell" in sentence for sentence in test.findings.unknown)
        assert test.judge().predictions[0].limit
        assert left_behind(site) == []


def test_advice_of_a_host_that_allows_no_shell_any_more_is_applied_and_leaves_nothing(tmp_path):
    """The shell was there when the latest test was made: its word counts for nothing now."""
    with site_with(tmp_path / "site", *sftp_only()) as site:
        add_speed_test(site.state / "speed-tests.jsonl", MADE_BY_SHELL)

        with speed_test(site) as test:
            test.recall()
            proof = list(test.apply({"transfer.channels": 2}))

        assert proof == []
        assert any("no longer allows a shell" in sentence for sentence in test.findings.unknown)
        assert left_behind(site) == []


def test_a_host_that_takes_the_word_to_remove_and_does_nothing_is_found_out(tmp_path):
    with sshd_with(tmp_path, *sftp_only()) as sshd:
        staging = ProbeFiles(endpoint_of(sshd, tmp_path), bytes(tmp_path), "folder", lambda _: None)
        with open_session(staging.endpoint) as session:
            with pytest.raises(RejectedError):
                clean_by_shell(staging, session)
            assert not remove_files(staging, session, clean_by_shell)


def test_a_disk_is_given_as_many_tiny_files_as_fit_into_a_look(tmp_path):
    many = 500  # of which a slow host unpacks a few within a hundredth of a second
    effort = LEAST._replace(files=many, total=0.0)
    # On a busy computer, the beginning of the work is noticed late.
    sleep, tar = shutil.which("sleep"), shutil.which("tar")
    slow = script(tmp_path / "slow", f'{sleep} 3\nexec {tar} "$@"\n')
    with (
        sshd_with(tmp_path, *with_programs(tmp_path, tar=slow)) as sshd,
        open_session(endpoint_of(sshd, tmp_path, stall_timeout=600.0)) as session,
    ):
        host = RemoteHost(session, bytes(tmp_path), b"folder")
        measured = list(host.measure_disk(SpeedTestBudget(effort, CancelFlag()), "gnu"))

    assert [len(one.samples) for one in measured] == [1, 1], "the time of the test had run out"
    assert 0 < len(list((tmp_path / "folder" / "unpacked").iterdir())) < many


def test_a_host_without_a_readable_load_is_described_without_it(tmp_path):
    strange = script(
        tmp_path / "strange",
        '/bin/sh -c "$SSH_ORIGINAL_COMMAND" | sed "s/^load .*/load average: high/"\n',
    )
    with (
        sshd_with(tmp_path, f"ForceCommand {strange}") as sshd,
        open_session(endpoint_of(sshd, tmp_path)) as session,
    ):
        about = RemoteHost(session, bytes(tmp_path), b"folder").describe(2)

    assert (about.machine.cpus, about.machine.busy) == (2, None)


def test_where_nothing_can_be_removed_nothing_is_sent(tmp_path):
    with site_with(tmp_path / "site", *scp_only(tmp_path)) as site, speed_test(site) as test:
        measured = list(test.measure())

        assert {one.stage for one in measured} == {
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


def test_a_far_host_is_flooded_over_as_many_sessions_as_a_run_has(tmp_path):
    with far_site(tmp_path) as (site, proxy), speed_test(site, "transfer.channels=4") as test:
        before = proxy.connections
        flood = next(one for one in test.measure() if one.what == flooded(4))

    assert proxy.connections - before == 1 + 1 + 2 + 4, "that of the test, and those of floods"
    assert flood.value


def test_where_further_sessions_are_refused_floods_share_those_there_are(tmp_path):
    with far_site(tmp_path) as (site, proxy), speed_test(site, "transfer.channels=4") as test:
        proxy.most = 2
        flood = next(one for one in test.measure() if one.what == flooded(4))

        assert proxy.refused
        assert flood.value
        assert test.findings.sessions == 1
        assert not any(text.startswith(flooded(2)) for text in test.findings.unknown)


def test_without_a_shell_a_far_host_is_flooded_over_as_many_sessions_too(tmp_path):
    with far_site(tmp_path, *sftp_only()) as (site, _), speed_test(site) as test:
        next(one for one in test.measure() if one.stage is StageResult.CHANNELS)

        assert test.findings.sessions == max(4, count_cpus())


def test_a_host_that_grants_fewer_channels_than_are_asked_for_is_measured_with_these(tmp_path):
    programs = {name: shutil.which(name) for name in ("tar", "md5sum", "sync")}
    one_core = with_programs(tmp_path, nproc="echo 1", **programs)
    with (
        site_with(tmp_path / "site", *one_core, "MaxSessions 2") as site,
        speed_test(site, "transfer.channels=5") as test,
    ):
        measured = {one.what for one in test.measure()}

        assert measured >= {flooded(2), TINY_FILES, carried(LARGE_FILES), carried(TINY_FILES)}
        assert flooded(4) not in measured
        assert any(text.startswith(flooded(4)) for text in test.findings.unknown)
        assert test.findings.channels == 2
        assert left_behind(site) == []


def test_without_an_approval_the_rest_is_measured(tmp_path):
    make_data(tmp_path / "site", large=8_000_000)
    with open_site(tmp_path / "site") as site, speed_test(site) as test:
        measured = list(test.measure())

        assert StageResult.API in {one.stage for one in measured}
        assert "ask for approval first" in test.obstacle
        assert test.obstacle in test.findings.unknown
