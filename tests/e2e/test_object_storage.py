"""The real command against object storage: killed, stopped, cut off, slowed, and continued."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.fakes.objects import SECRET, ObjectServer, refusal
from tests.faults.tcpproxy import TcpProxy
from tests.invariants import check_complete, check_idle, check_sums, check_untouched
from tests.object_site import add_storage
from tests.s3_service import REAL, SERVICES, open_service
from tests.site import (
    QUICK,
    Picture,
    a_site,
    finish,
    finish_reading,
    kill_group,
    wait_for,
    yield_processor,
)
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LARGE = 24_000_000
SLOWLY = "limits.bandwidth=4"


@pytest.fixture(params=SERVICES)
def service(request, tmp_path):
    with open_service(request.param, tmp_path / "s3") as service:
        yield service


@pytest.fixture(params=REAL)
def real_service(request, tmp_path):
    with open_service(request.param, tmp_path / "s3") as service:
        yield service


site = a_site(tiny_files=20, large=LARGE)


def start(site, *settings):
    return site.start("run", "--events", settings=settings)


@pytest.mark.parametrize("moment", ["transfer_progressed", "file_staged", "file_registered"])
def test_a_killed_run_is_completed_by_the_next_one(site, service, moment):
    settings, before = add_storage(site, service.url), Picture.take(site.data)
    process = start(site, *settings, SLOWLY)
    wait_for(process, moment)
    kill_group(process)
    process.communicate()

    check_complete(site, site.run(*settings))

    check_untouched(before)
    check_idle(site, *settings)


def test_runs_killed_at_random_lose_nothing(site, service):
    settings, chance = add_storage(site, service.url), random.Random(20261127)
    for _ in range(4):
        process = start(site, *settings, "limits.bandwidth=20")
        for _ in range(chance.randrange(1, 60)):
            assert process.stdout.readline()
        kill_group(process)
        process.communicate()

    check_complete(site, site.run(*settings))


def test_a_stopped_run_leaves_no_parts_and_the_next_one_completes_it(site, real_service):
    settings = add_storage(site, real_service.url)
    process = start(site, *settings, "limits.bandwidth=1")
    wait_for(process, "transfer_progressed")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    ended = finish_reading(process)

    assert ended.code != 0
    parts = [path for path in real_service.folder.rglob("*") if "multipart" in str(path)]
    assert [path for path in parts if path.is_file()] == []
    check_complete(site, site.run(*settings))


def test_a_run_outlasts_a_crash_of_the_service(site, real_service):
    settings = add_storage(site, real_service.url)
    process = start(site, *settings, "limits.bandwidth=10", "transfer.channels=3")
    wait_for(process, "transfer_progressed")
    real_service.kill()
    paused = wait_for(process, "run_paused")[-1]
    real_service.start()
    wait_for(process, "run_resumed")
    ended = finish(process)

    assert paused["problem"]["code"] == "s3.unreachable"
    check_complete(site, ended)


def test_a_run_outlasts_broken_connections(site, service):
    with TcpProxy(service.port) as proxy:
        settings = add_storage(site, service.url, f"http://127.0.0.1:{proxy.port}")
        process = start(site, *settings, "limits.bandwidth=20", "transfer.channels=3")
        for _ in range(3):
            wait_for(process, "transfer_progressed")
            proxy.reset_all()
        ended = finish(process)

    check_complete(site, ended)


def test_a_slow_and_distant_service_is_reached(site, service):
    with TcpProxy(service.port, latency=0.02, bandwidth=20_000_000) as proxy:
        settings = add_storage(site, service.url, f"http://127.0.0.1:{proxy.port}")
        ended = site.run(*settings)

    check_complete(site, ended)


def test_a_black_hole_is_noticed_and_outlasted(site, service):
    with TcpProxy(service.port) as proxy:
        settings = add_storage(site, service.url, f"http://127.0.0.1:{proxy.port}")
        short = ("transfer.stall_timeout=2", "transfer.connect_timeout=2", "transfer.channels=2")
        process = start(site, *settings, *short, "limits.bandwidth=10")
        wait_for(process, "transfer_progressed")
        proxy.stall.set()
        before = proxy.connections
        while proxy.connections == before:  # until a connection is given up for another
            yield_processor()
        proxy.stall.clear()
        ended = finish(process)

    check_complete(site, ended)


def test_no_log_has_the_secret(site):
    with ObjectServer() as server:
        server.interfere = lambda request: refusal("AccessDenied", 403, f"not with {SECRET}")
        settings = add_storage(site, server.url)
        ended = site.run(*settings, "advanced.log_level=DEBUG", "advanced.pause_patience=0")

    assert ended.problem == "s3.denied"
    logs = [path.read_text() for path in site.place.folder.rglob("*.log")]
    assert logs
    assert not any(SECRET in log for log in logs)
    check_sums(ended)


def test_the_secret_comes_from_the_environment(site, service):
    settings = add_storage(site, service.url)
    secrets = site.config.with_name("secrets.toml")
    lines = secrets.read_text().splitlines(keepends=True)
    secrets.write_text("".join(line for line in lines if SECRET not in line))
    choices = [word for value in (*QUICK, *settings) for word in ("--set", value)]
    words = ["run", "--events", "--config", str(site.config), *choices, "--set", SLOWLY]
    process = subprocess.Popen(
        [sys.executable, "-m", "mydata_like", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=site.environment | {"MYDATA_LIKE_S3_SECRET": SECRET},
    )
    wait_for(process, "transfer_started")
    children = psutil.Process(process.pid).children(recursive=True)
    shown = [Path(f"/proc/{child.pid}/environ").read_bytes() for child in children]
    ended = finish(process)

    check_complete(site, ended)
    assert not any(SECRET.encode() in environment for environment in shown)
