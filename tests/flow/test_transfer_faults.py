"""What breaks between us and the staging area: nothing false is claimed, and work goes on."""

import os
import random
import threading
import time
from pathlib import Path

import psutil
import pytest

from mydata_like.core.errors import StagingError, TransientError
from mydata_like.core.events import ChannelChanged
from mydata_like.core.model import Payload
from mydata_like.core.ports import SentFile
from mydata_like.transfer.ssh import multi_stream
from tests.fakes.place import checksum
from tests.faults.tcpproxy import TcpProxy
from tests.openssh import on_host, run_on_host
from tests.privileges import count_descriptors
from tests.sshd_fixture import needs_limits, script
from tests.staging import Staging, single, wanted

LARGE = multi_stream.LARGE - (1 << 20)  # for one stream, however far a busy machine seems to be


@pytest.fixture(scope="module")
def staging(tmp_path_factory):
    with Staging(tmp_path_factory.mktemp("staging")) as staging:
        yield staging


@pytest.fixture
def proxy(staging):
    with TcpProxy(staging.sshd.port) as proxy:
        yield proxy


@pytest.fixture(params=["libssh", "paramiko"])
def transport(request, staging, proxy, place):
    """A transport through the proxy, quick to notice that nothing moves."""
    staging.events.clear()
    transport = staging.build(place.location, port=proxy.port, ssh=request.param, stall_timeout=2.0)
    yield transport
    transport.close()


def ignore(*_: int) -> None: ...


def batch(members) -> Payload:
    return Payload(1, tuple(map(wanted, members)), batched=True)


def once(action):
    """Return a progress callback that acts when the first bytes have gone."""
    done = []

    def progress(count: int, _: int = 0) -> None:
        if count and not done:
            done.append(count)
            action()

    return progress


def kill_workers() -> None:
    for child in psutil.Process().children():
        if any("transfer.worker" in word for word in child.cmdline()):
            child.kill()


@pytest.mark.parametrize("fault", ["session killed", "reset", "black hole", "worker killed"])
def test_a_broken_line_is_noticed_and_the_next_attempt_succeeds(
    place, staging, proxy, transport, fault
):
    member = place.write("a/large", LARGE * 3)
    place.settle(member)
    channel = transport.open_channel()
    faults = {
        "session killed": staging.sshd.kill_sessions,
        "reset": proxy.reset_all,
        "black hole": proxy.stall.set,
        "worker killed": kill_workers,
    }
    started = time.monotonic()
    with pytest.raises(TransientError):
        channel.send(single(member), once(faults[fault]))
    assert time.monotonic() - started < 60  # seconds; TCP would wait for a quarter of an hour
    assert not place.there(member).exists()
    proxy.stall.clear()
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert place.arrived(member)
    states = [event.state for event in staging.events if isinstance(event, ChannelChanged)]
    assert states == ["open", "lost", "open"]


@pytest.mark.parametrize("stack", ["libssh", "paramiko"])
@pytest.mark.parametrize("kind", ["single", "batch"])
def test_an_sftp_server_that_dies_costs_an_attempt_and_no_file(place, tmp_path, stack, kind):
    members = [place.write(f"a/{n}", 10_000) for n in range(20)]
    large = place.write("a/large", 4 << 20)
    place.settle(*members, large)
    payload = single(large) if kind == "single" else batch(members)
    with Staging(tmp_path / "sftp", "sftp") as staging:
        transport = staging.build(place.location, ssh=stack)
        try:
            channel = transport.open_channel()
            staging.sshd.kill_commands()
            with pytest.raises(TransientError):
                channel.send(payload, ignore)
            assert all(isinstance(fate, SentFile) for fate in channel.send(payload, ignore))
        finally:
            transport.close()


def send_for_ever(channel, payload, before):
    """Send a payload repeatedly, until that fails."""
    while True:
        before()
        assert all(isinstance(fate, SentFile) for fate in channel.send(payload, ignore))


@needs_limits
@pytest.mark.parametrize(
    ("kind", "stack"), [("shell", "libssh"), ("shell", "paramiko"), ("scp", "libssh")]
)
def test_a_host_that_runs_no_more_commands_for_now_ends_no_run(place, tmp_path, stack, kind):
    place.location = on_host(tmp_path / "plain")  # a host with scp only splits its words at spaces
    place.location.mkdir()
    member = place.write("a/file", 10_000)
    place.settle(member)
    with Staging(tmp_path / "host", kind) as staging:
        transport = staging.build(place.location, ssh=stack)
        try:
            channel = transport.open_channel()
            with pytest.raises(TransientError):
                send_for_ever(channel, single(member), staging.sshd.limit_sessions)
            assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
        finally:
            transport.close()


def test_a_batch_cut_at_random_never_claims_what_is_not_there(place, proxy, transport, tmp_path):
    rng = random.Random(7)
    sizes = [rng.choice([0, 10, 3000, 70_000]) for _ in range(300)]
    members = [place.write(f"s/{n % 5}/{n}", size) for n, size in enumerate(sizes)]
    place.settle(*members)
    total = sum(sizes)
    channel = transport.open_channel()
    proven = 0
    for _ in range(6):
        proxy.cut_after = 8000 + rng.randrange(total)  # the greeting takes a few thousand
        try:
            fates = channel.send(batch(members), ignore)
        except TransientError:
            fates = []
        proxy.cut_after = None
        for fate, member in zip(fates, members, strict=bool(fates)):
            assert not isinstance(fate, SentFile) or place.arrived(member)
        proven += sum(isinstance(fate, SentFile) for fate in fates)
    assert proven
    fates = channel.send(batch(members), ignore)
    assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
    assert all(map(place.arrived, members))


def test_what_arrived_before_a_cut_is_not_sent_again(place, proxy, transport):
    member = place.write("a/large", LARGE)
    place.settle(member)
    channel = transport.open_channel()
    proxy.cut_after = LARGE * 3 // 4
    with pytest.raises(TransientError):
        channel.send(single(member), ignore)
    proxy.cut_after = None
    before = proxy.passed
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert place.arrived(member)
    assert proxy.passed - before < LARGE // 2


def test_a_black_hole_at_any_time_is_noticed(place, proxy, transport):
    member = place.write("a/file", 100)
    place.settle(member)
    channel = transport.open_channel()
    proxy.stall.set()
    started = time.monotonic()
    with pytest.raises(TransientError):
        channel.send(single(member), ignore)
    with pytest.raises(TransientError):
        channel.send(single(member), ignore)  # where it is the greeting that never comes
    assert time.monotonic() - started < 60


def test_closing_leaves_no_process_descriptor_or_thread(place, staging):
    member = place.write("a/large", LARGE)
    place.settle(member)
    warm = staging.build(place.location)
    warm.open_channel()
    warm.close()  # what the system starts once for all has been started
    descriptors, children = count_descriptors(), set(psutil.Process().children())
    before = threading.active_count()  # Windows has one that limits the time of a test
    transport = staging.build(place.location)
    channels = [transport.open_channel() for _ in range(2)]
    moved, failures = threading.Event(), []

    def send(channel) -> None:
        try:
            while True:
                channel.send(single(member), lambda *_: moved.set())
        except TransientError as error:
            failures.append(error)

    threads = [threading.Thread(target=send, args=(channel,)) for channel in channels]
    for thread in threads:
        thread.start()
    assert moved.wait(60)
    transport.close()
    for thread in threads:
        thread.join(60)
    assert len(failures) == 2
    assert count_descriptors() == descriptors
    assert set(psutil.Process().children()) <= children
    assert threading.active_count() == before


@pytest.fixture
def mounted(place):
    """Return a function that puts a file system with these options in the location's place."""
    done = []

    def mount(options: str) -> None:
        place.location.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "none", place.location]
        if run_on_host(*command).returncode:
            pytest.skip("nothing can be mounted here")
        done.append(place.location)

    yield mount
    for path in done:
        run_on_host("umount", "-l", path).check_returncode()


@pytest.mark.parametrize("kind", ["single", "batch"])
def test_a_full_disk_is_reported_and_leaves_room_for_others(place, staging, mounted, kind):
    mounted("size=1m")
    members = [place.write(f"a/{n}", 300_000) for n in range(8)]
    large = place.write("b/large", 3 << 20)
    place.settle(*members, large)
    transport = staging.build(place.location)
    try:
        channel = transport.open_channel()
        if kind == "single":
            (fate,) = channel.send(single(large), ignore)
            assert (fate.problem.code, fate.again) == ("staging.full", True)
            assert list((place.location / "b").iterdir()) == []
            assert channel.send(single(members[0]), ignore) == [SentFile(0, checksum(members[0]))]
        else:
            fates = channel.send(batch(members), ignore)
            there = {path.name for path in (place.location / "a").iterdir()}
            sent = [isinstance(fate, SentFile) for fate in fates]
            assert there == {str(number) for number, arrived in enumerate(sent) if arrived}
            assert 0 < sum(sent) < len(sent)
            assert {fate.problem.code for fate in fates if not isinstance(fate, SentFile)} == {
                "staging.full"
            }
    finally:
        transport.close()


@pytest.mark.parametrize("kind", ["single", "batch"])
def test_a_staging_area_that_becomes_read_only_stops_the_run(place, staging, mounted, kind):
    mounted("rw")
    member = place.write("a/0", 100)
    place.settle(member)
    transport = staging.build(place.location)
    try:
        channel = transport.open_channel()
        run_on_host("mount", "-o", "remount,ro", place.location).check_returncode()
        with pytest.raises(StagingError):
            channel.send(single(member) if kind == "single" else batch([member]), ignore)
    finally:
        transport.close()


def test_a_server_that_grants_one_command_at_a_time_is_enough(place, tmp_path):
    members = [place.write(f"a/{n}", 1000) for n in range(20)]
    large = place.write("a/large", 12 << 20)
    place.settle(*members, large)
    with Staging(tmp_path / "one", options=("MaxSessions 1",)) as staging:
        transport = staging.build(place.location)
        try:
            channel = transport.open_channel()
            for _ in range(2):
                assert all(isinstance(f, SentFile) for f in channel.send(batch(members), ignore))
                assert channel.send(single(large), ignore) == [SentFile(0, checksum(large))]
        finally:
            transport.close()


def test_a_login_script_that_talks_is_put_up_with(place, tmp_path):
    members = [place.write(f"a/{n}", 1000) for n in range(20)]
    place.settle(*members)
    words = 'echo "Welcome!"; echo mydata; exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    talk = script(tmp_path / "talk", words)
    with Staging(tmp_path / "talking", options=(f"ForceCommand {talk}",)) as staging:
        transport = staging.build(place.location)
        try:
            fates = transport.open_channel().send(batch(members), ignore)
            assert [fate.checksum for fate in fates] == [checksum(member) for member in members]
        finally:
            transport.close()


def test_a_growing_file_in_a_batch_fails_alone(place, staging):
    members = [place.write(f"a/{n}", 200_000) for n in range(30)]
    place.settle(*members)
    victim = Path(os.fsdecode(members[15].path))
    with victim.open("ab") as file:
        file.write(b"more")
    transport = staging.build(place.location)
    try:
        fates = transport.open_channel().send(batch(members), ignore)
    finally:
        transport.close()
    assert [n for n, fate in enumerate(fates) if not isinstance(fate, SentFile)] == [15]
    assert fates[15].problem.code == "file.changed"
