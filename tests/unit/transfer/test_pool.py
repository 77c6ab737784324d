"""The pool of channels: processes that may die, fall silent, be refused or be closed."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import psutil
import pytest

from mydata_like.core.errors import (
    AccessDeniedError,
    NotApprovedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
)
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import Payload, StagingArea
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.settings.schema import Transfer
from mydata_like.transfer.pool import StagingTransport, count_cpus
from mydata_like.transfer.worker_messages import STREAMS
from mydata_like.transfer.worker_process import WorkerStarter, build_command, start_process
from tests.fakes.channels import HOST
from tests.fakes.place import checksum
from tests.privileges import count_descriptors, needs_shell, needs_two_processors
from tests.site import yield_processor
from tests.staging import Memory, build_unreached, single, wanted

pytestmark = pytest.mark.process

LOCAL = build_command("tests.fakes.channels")


def ignore(*_: int) -> None: ...


def new_workers(before):
    """Return the processes of workers that have started since."""
    return [
        one
        for one in psutil.Process().children()
        if one not in before and "channels import main" in " ".join(command_of(one))
    ]


def command_of(process):
    """Return the command of a process; for a moment after its start, Linux does not know it."""
    while not (words := process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
        pass
    return words


@pytest.fixture
def events():
    return []


@pytest.fixture
def build(place, events):
    """Return a function that makes a transport to these hosts; they are closed in the end."""
    made = []

    def transport(*hosts, explain=lambda error: error, memory=None, **settings) -> StagingTransport:
        area = StagingArea(
            box="box", location=str(place.location), username="me", hosts=hosts or ("here",)
        )
        made.append(
            StagingTransport(
                area,
                Transfer(**settings),
                build=build_unreached,
                emit=events.append,
                explain=explain,
                memory=memory,
                starter=WorkerStarter(LOCAL),
            )
        )
        return made[-1]

    yield transport
    for each in made:
        each.close()


def run_together(*actions) -> None:
    threads = [threading.Thread(target=action) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def states(events) -> list[str]:
    return [event.state for event in events if isinstance(event, ChannelChanged)]


def test_batches_and_single_files_arrive(place, build):
    small = [place.write(f"a/{n}", 500) for n in range(20)]
    large = place.write("a/large", 3 << 20)
    place.settle(*small, large)
    channel = build().open_channel()
    batch = Payload(1, tuple(map(wanted, small)), batched=True)
    assert channel.send(batch, ignore) == [SentFile(n, checksum(m)) for n, m in enumerate(small)]
    assert channel.send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert all(map(place.arrived, [*small, large]))


def test_members_that_fail_are_reported_in_their_order(place, build):
    good, gone, bad = place.write("a/0", 5), place.write("a/1", 5), place.write("../2", 5)
    last = place.write("a/3", 5)
    place.settle(good, gone, bad, last)
    Path(os.fsdecode(gone.path)).unlink()
    batch = Payload(1, tuple(map(wanted, [good, gone, bad, last])), batched=True)
    fates = build().open_channel().send(batch, ignore)
    assert [type(fate) for fate in fates] == [SentFile, UnsentFile, UnsentFile, SentFile]
    assert [fate.index for fate in fates] == [0, 1, 2, 3]
    assert [fates[n].problem.code for n in (1, 2)] == ["file.vanished", "staging.name"]


def test_progress_grows_and_is_thinned(place, build):
    member = place.write("a/large", 64 << 20)
    place.settle(member)
    told = []
    build().open_channel().send(single(member), lambda size, *_: told.append(size))
    assert told == sorted(told)
    assert len(told) < 100
    assert all(count <= member.size for count in told)


def test_a_killed_worker_gives_its_payload_back_and_is_replaced(place, build, events, tmp_path):
    member = place.write("a/large", 12 << 20)
    place.settle(member)
    channel = build(f"dies {tmp_path}/marker").open_channel()
    with pytest.raises(TransientError) as caught:
        channel.send(single(member), ignore)
    assert caught.value.problem_code == "channel.lost"
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert states(events) == ["open", "lost", "open"]


def test_a_silent_worker_is_killed_and_replaced(place, build, events, tmp_path):
    member = place.write("a/large", 12 << 20)
    place.settle(member)
    transport = build(f"stuck {tmp_path}/marker", stall_timeout=0.6)
    channel = transport.open_channel()
    with pytest.raises(TransientError) as caught:
        channel.send(single(member), ignore)
    assert caught.value.problem_code == "channel.stalled"
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert states(events) == ["open", "lost", "open"]


def test_closing_from_elsewhere_ends_a_send_and_leaves_nothing_behind(place, build, tmp_path):
    member = place.write("a/large", 12 << 20)
    place.settle(member)
    build().open_channel()  # what the system starts once for all stays
    threads = threading.active_count()
    descriptors = count_descriptors()
    children = set(psutil.Process().children())
    transport = build(f"stuck {tmp_path}/marker")
    channels = [transport.open_channel() for _ in range(2)]
    caught = []

    def send() -> None:
        try:
            channels[0].send(single(member), lambda *_: moved.set())
        except TransientError as error:
            caught.append(error)

    moved = threading.Event()
    run_together(send, lambda: (moved.wait(1), transport.close()))
    assert caught
    with pytest.raises(TransientError):
        channels[1].send(single(member), ignore)
    assert set(psutil.Process().children()) <= children
    assert count_descriptors() == descriptors
    assert threading.active_count() == threads


def test_the_next_host_is_taken_when_one_is_away(place, build, events):
    member = place.write("a/0", 5)
    place.settle(member)
    channel = build("away", "here").open_channel()
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert [event.host for event in events] == ["here"]


def test_a_host_that_refuses_us_is_reported_once_while_another_works(build, events):
    transport = build("denies", "here")
    for _ in range(2):
        transport.open_channel()
    assert states(events) == ["open", "open"]
    notices = [event.problem for event in events if isinstance(event, Notice)]
    assert notices == [("key.refused", "The key is not accepted.", "Ask.")]


def test_where_every_host_refuses_us_the_reason_is_asked_for(build):
    why = NotApprovedError("It was withdrawn.", code="uploader.revoked")
    with pytest.raises(NotApprovedError) as caught:
        build("away", "denies", explain=lambda refusal: why).open_channel()
    assert caught.value is why
    with pytest.raises(AccessDeniedError):
        build("denies").open_channel()


@needs_two_processors
def test_channels_are_spread_over_the_hosts(build, events):
    transport = build("here", "there")
    for _ in range(4):
        transport.open_channel()
    assert [event.host for event in events] == ["here", "there", "here", "there"]


def test_a_host_whose_session_ended_rests_while_the_other_works(place, build, events, tmp_path):
    member = place.write("a/large", 12 << 20)
    place.settle(member)
    dying = f"dies {tmp_path}/marker"
    channel = build(dying, "here").open_channel()
    with pytest.raises(TransientError):
        channel.send(single(member), ignore)
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    changes = [(event.state, event.host) for event in events if isinstance(event, ChannelChanged)]
    assert changes == [("open", dying), ("lost", dying), ("open", "here")]


def test_no_host_at_all_is_said(build):
    transport = build("unused")
    transport._destinations = ()
    with pytest.raises(ServerUnavailableError):
        transport.open_channel()


@needs_two_processors
def test_a_channel_too_many_is_refused_and_the_others_work_on(place, build, tmp_path):
    member = place.write("a/0", 5)
    place.settle(member)
    transport = build(f"once {tmp_path}/marker")
    channel = transport.open_channel()
    with pytest.raises(TransientError) as caught:
        transport.open_channel()
    assert caught.value.problem_code == "channel.refused"
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]


def test_a_host_that_accepts_the_login_and_allows_nothing_names_the_limit(build):
    with pytest.raises(StagingError) as caught:
        build("refuses").open_channel()
    assert caught.value.problem_code == "ssh.no-channel"
    assert "MaxSessions" in caught.value.hint


@needs_two_processors
def test_a_host_that_is_known_is_not_probed_again(build, events):
    transport = build()
    transport.open_channel()
    transport.open_channel()
    assert [event.detail for event in events] == ["local, probed", "local, known"]


def test_a_host_that_an_earlier_run_has_probed_is_not_probed_again(build, events):
    memory = Memory()
    build(memory=memory).open_channel()
    build(memory=memory).open_channel()
    assert [event.detail for event in events] == ["local, probed", "local, known"]


def test_a_failure_with_what_was_remembered_is_tried_again_after_a_probe(place, build, events):
    missing = single(place.write("a/one", 10)._replace(path=b"/nowhere"))
    memory = Memory()
    build(memory=memory).open_channel()
    channel = build(memory=memory).open_channel()

    [first], [second] = channel.send(missing, ignore), channel.send(missing, ignore)

    assert (first.again, second.again) == (True, False)
    assert [event.detail for event in events if event.state == "open"] == [
        *("local, probed", "local, known", "local, probed")
    ]


def test_a_host_that_no_longer_allows_what_was_remembered_is_probed_at_once(build, events):
    memory = Memory(refuses=HOST)

    with pytest.raises(StagingError):
        build("refuses", memory=memory).open_channel()

    assert memory.known == {}


def test_capacity_is_bounded_by_processors(build):
    ours = count_cpus()
    assert build().capacity == min(STREAMS * ours, max(ours, 16))
    transport = build("no tar")
    transport.open_channel()
    assert transport.capacity == STREAMS  # the server has but one processor


@pytest.fixture
def one_processor():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("processes cannot be kept to one processor here")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("other", [(), ("away",)], ids=["one host", "another is away"])
def test_a_long_way_is_given_more_sessions_than_processors(build, tmp_path, other):
    before = psutil.Process().children()
    transport = build(f"far 9 {tmp_path}/session", *other)

    run_together(*[transport.open_channel] * 8)

    assert len(new_workers(before)) == 4
    assert transport.capacity == 16


@pytest.mark.usefixtures("one_processor")
@pytest.mark.parametrize("at_once", [False, True])
def test_where_fewer_sessions_are_granted_those_are_shared(build, events, tmp_path, at_once):
    before = psutil.Process().children()
    transport = build(f"far 2 {tmp_path}/session")
    openings = [transport.open_channel] * 8

    if at_once:
        run_together(*openings)
    else:
        for open_channel in openings:
            open_channel()

    assert len(new_workers(before)) == 2
    assert states(events) == ["open"] * 8
    assert transport.capacity == 2 * STREAMS


@pytest.mark.usefixtures("one_processor")
def test_channels_that_wait_for_a_session_that_fails_try_no_login_of_their_own(build, tmp_path):
    transport = build(f"hesitates {tmp_path}/logins")
    failed = open_in_vain(transport, 4)

    assert len(failed) == 4
    assert 1 <= len(list(tmp_path.glob("logins*"))) < 4


@pytest.mark.usefixtures("one_processor")
def test_channels_that_wait_for_a_session_end_with_the_transport(build):
    transport = build("silent")
    before = psutil.Process().children()
    closing = threading.Thread(target=close_once_started, args=(transport, before))
    closing.start()

    failed = open_in_vain(transport, 3)

    closing.join()
    assert len(failed) == 3


def open_in_vain(transport, count):
    """Return how as many channels failed that were opened at once."""
    failed = []

    def open_one() -> None:
        try:
            transport.open_channel()
        except TransientError as error:
            failed.append(error)

    run_together(*[open_one] * count)
    return failed


def close_once_started(transport, before):
    while not new_workers(before):
        pass
    transport.close()


def test_a_prepared_process_becomes_that_of_the_first_channel(place, build):
    member = place.write("a/one", 1000)
    place.settle(member)
    transport = build()
    before = psutil.Process().children()
    transport.prepare()
    transport.prepare()
    (prepared,) = new_workers(before)

    channel = transport.open_channel()
    transport.prepare()

    assert new_workers(before) == [prepared]
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]


@pytest.mark.parametrize("host", ["denies", "away"])
def test_a_prepared_login_that_fails_is_reported_once_a_channel_needs_it(build, events, host):
    transport = build(host)
    transport.prepare()

    with pytest.raises((AccessDeniedError, TransientError)):
        transport.open_channel()

    assert states(events) == []


def test_the_first_session_uses_a_process_that_was_started_early():
    before = psutil.Process().children()
    with closing(WorkerStarter(LOCAL)) as workers:
        workers.start_early()
        workers.start_early()
        early = new_workers(before)
        taken = workers.start("session 1")
        assert new_workers(before) == early
        other = workers.start("session 2")
        workers.start_early()
        assert len(new_workers(before)) == 2
    for worker in (taken, other):
        worker.kill()
        worker.reap()


@pytest.mark.parametrize("early", [False, True])
def test_the_first_session_is_started_in_another_way_unless_it_was_started(early):
    starts = []

    def start():
        starts.append("first")
        return start_process(LOCAL)

    with closing(WorkerStarter(LOCAL)) as workers:
        if early:
            workers.start_early()
        workers.start_first_with(start)
        started = [workers.start("session 1"), workers.start("session 2")]
    for worker in started:
        worker.kill()
        worker.reap()

    assert starts == ([] if early else ["first"])


def test_a_process_that_was_started_early_in_vain_ends():
    before = psutil.Process().children()
    workers = WorkerStarter(LOCAL)
    workers.start_early()
    [early] = new_workers(before)

    workers.close()
    workers.start_early()

    assert not early.is_running()
    assert new_workers(before) == []


def test_a_prepared_session_logs_in_before_a_channel_is_opened(build, tmp_path):
    marker = tmp_path / "login"
    transport = build(f"once {marker}")

    transport.prepare()

    while not marker.exists():
        pass
    transport.open_channel()


def test_an_unused_prepared_process_ends_with_the_others(build):
    transport = build()
    before = psutil.Process().children()
    transport.prepare()
    (prepared,) = new_workers(before)

    transport.close()
    transport.prepare()

    assert not prepared.is_running()
    assert new_workers(before) == []


def test_a_worker_needs_no_process_for_a_console(build):
    before = psutil.Process().children()
    build().open_channel()

    (worker,) = new_workers(before)
    commands = [" ".join(command_of(child)) for child in worker.children()]
    assert [command for command in commands if "conhost" in command] == []


def test_more_channels_than_processors_share_sessions(place, build):
    build().open_channel()  # what the system starts once for all stays
    before = set(psutil.Process().children())
    members = [place.write(f"a/{n}", 3 << 20) for n in range(STREAMS)]
    place.settle(*members)
    transport = build("no tar")  # which has one processor
    channels = [transport.open_channel() for _ in members]
    assert len(set(psutil.Process().children()) - before) == 1
    fates = {}

    def send(channel, member) -> None:
        fates[member] = channel.send(single(member), ignore)

    run_together(*(partial(send, *pair) for pair in zip(channels, members, strict=True)))
    assert fates == {member: [SentFile(0, checksum(member))] for member in members}
    with pytest.raises(TransientError) as caught:
        transport.open_channel()
    assert caught.value.problem_code == "channel.refused"
    for channel in channels:
        channel.close()
    assert set(psutil.Process().children()) <= before


def test_channels_that_open_at_once_share_sessions_too(build):
    build().open_channel()  # what the system starts once for all stays
    before = set(psutil.Process().children())
    transport = build()
    run_together(*[transport.open_channel] * 6)
    ours = count_cpus()
    assert len(set(psutil.Process().children()) - before) == min(ours, 6)


def test_channels_that_join_a_session_in_vain_try_the_next_host(build, events):
    transport = build("away", "here")
    run_together(*[transport.open_channel] * 4)
    assert [event.host for event in events] == ["here"] * 4


def test_a_failure_ends_all_channels_of_a_session_which_open_again(place, build, events, tmp_path):
    large, small = place.write("a/large", 12 << 20), place.write("a/small", 5)
    place.settle(large, small)
    transport = build(f"one dies {tmp_path}/marker")
    first, second = transport.open_channel(), transport.open_channel()
    for channel, member, code in (
        (first, large, "channel.lost"),
        (second, small, "channel.dropped"),
    ):
        with pytest.raises(TransientError) as caught:
            channel.send(single(member), ignore)
        assert caught.value.problem_code == code
    for channel, member in ((second, small), (first, large)):
        assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert states(events) == ["open", "open", "lost", "lost", "open", "open"]


def test_a_session_that_is_dropped_while_a_channel_joins_it_is_no_refusal(build, events, tmp_path):
    transport = build(f"hangs {tmp_path}/marker")
    transport.open_channel()
    (worker,) = transport._workers
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(transport.open_channel)
        while len(worker.channels) < 2:
            yield_processor()

        transport.give_up(worker, failed=True)  # as the first channel does when it fails

        assert second.result(60).number == 2
    assert states(events) == ["open", "open"]


def test_what_is_cut_off_leaves_the_session_to_the_others(place, build, events):
    large, small = place.write("a/large", 64 << 20), place.write("a/small", 5)
    place.settle(large, small)
    channel, other = (transport := build("no tar")).open_channel(), transport.open_channel()
    channel.limit(4e6)
    with pytest.raises(TransientError) as caught:
        channel.send(single(large), lambda *_: channel.cut())
    assert caught.value.problem_code == "file.cancelled"
    assert other.send(single(small), ignore) == [SentFile(0, checksum(small))]
    channel.limit(0)
    assert channel.send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert states(events) == ["open", "open"]


def count_channels(transport):
    """Return how many channels have joined each session."""
    return [len(worker.channels) for worker in transport._workers]


def open_two(transport):
    """Return two channels, each with its own session."""
    channels = [transport.open_channel() for _ in range(2)]
    assert count_channels(transport) == [1, 1]
    return channels


@needs_shell
@needs_two_processors
def test_large_files_of_all_channels_share_half_of_the_sessions(place, build, events):
    large, small = place.write("a/large", 12 << 20), place.write("a/small", 5)
    place.settle(large, small)
    transport = build()
    channels = open_two(transport)

    for channel in channels:
        assert channel.send(single(small), ignore) == [SentFile(0, checksum(small))]
    assert count_channels(transport) == [1, 1]
    for channel in channels:
        assert channel.send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert count_channels(transport) == [2, 1]

    assert states(events) == ["open", "open"]
    channels[1].close()
    assert count_channels(transport) == [1]


@needs_shell
@needs_two_processors
def test_many_channels_leave_the_session_that_they_shared(place, build):
    large = place.write("a/large", 12 << 20)
    place.settle(large)
    transport = build()
    channels = open_two(transport)
    assert channels[1].send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert count_channels(transport) == [2, 1]

    transport.open_channel(STREAMS + 1)

    assert channels[1].send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert sum(count_channels(transport)) == 3


@needs_shell
@needs_two_processors
def test_a_shared_session_without_room_is_asked_once(place, build, events):
    large = place.write("a/large", 12 << 20)
    place.settle(large)
    transport = build("full")
    channels = open_two(transport)

    for _ in range(2):
        assert channels[1].send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert channels[0].send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert transport.open_shared(2, transport._workers[1]) is None
    assert states(events) == ["open", "open"]


@needs_shell
@needs_two_processors
def test_after_a_shared_session_broke_a_channel_has_its_own(place, build, events, tmp_path):
    large = place.write("a/large", 12 << 20)
    place.settle(large)
    transport = build(f"dies {tmp_path}/marker")
    channels = open_two(transport)

    with pytest.raises(TransientError) as caught:
        channels[1].send(single(large), ignore)
    assert caught.value.problem_code == "channel.lost"
    assert channels[1].send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert states(events) == ["open", "open"]

    with pytest.raises(TransientError) as caught:
        channels[0].send(single(large), ignore)
    assert caught.value.problem_code == "channel.dropped"
    assert channels[0].send(single(large), ignore) == [SentFile(0, checksum(large))]
    assert states(events) == ["open", "open", "lost", "open"]


@needs_shell
@needs_two_processors
def test_a_file_in_a_shared_session_is_limited_and_can_be_cut_off(place, build, events):
    large, small = place.write("a/large", 64 << 20), place.write("a/small", 5)
    place.settle(large, small)
    transport = build()
    channel = open_two(transport)[1]
    channel.limit(10_000)
    seen = []

    def follow(size, *_) -> None:
        seen.append(size)
        channel.cut()

    with pytest.raises(TransientError) as caught:
        channel.send(single(large), follow)
    assert caught.value.problem_code == "file.cancelled"
    assert count_channels(transport) == [2, 1]
    assert seen[0] < 100_000  # ten seconds of it
    channel.limit(0)
    for member in (small, large):
        assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert states(events) == ["open", "open"]


@needs_shell
def test_a_host_without_tar_takes_batches_file_by_file_and_says_so_once(place, build, events):
    members = [place.write(f"a/{n}", 500) for n in range(3)]
    place.settle(*members)
    transport = build("no tar")
    channels = [transport.open_channel(), transport.open_channel()]
    batch = Payload(1, tuple(map(wanted, members)), batched=True)
    for channel in channels:
        assert all(isinstance(fate, SentFile) for fate in channel.send(batch, ignore))
    notices = [event for event in events if isinstance(event, Notice)]
    assert [notice.problem.code for notice in notices] == ["staging.no-tar"]


ENGINE = """
import sys, threading
from pathlib import Path
from mydata_like.core.model import StagingArea
from mydata_like.settings.schema import Transfer
from mydata_like.transfer.pool import StagingTransport, count_cpus
from mydata_like.transfer.worker_messages import STREAMS
from mydata_like.transfer.worker_process import WorkerStarter, build_command
from tests.staging import build_unreached
if __name__ == "__main__":
    area = StagingArea(box="b", location="/nowhere", username="me", hosts=("here",))
    transport = StagingTransport(area, Transfer(), build=build_unreached, emit=lambda event: None,
        starter=WorkerStarter(build_command("tests.fakes.channels")))
    transport.open_channel()
    print("open", flush=True)
    sys.stdin.read()
"""


def test_no_worker_outlives_a_killed_engine(tmp_path):
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": root},
    ) as engine:
        assert engine.stdout.readline().split() == [b"open"]
        workers = psutil.Process(engine.pid).children(recursive=True)
        assert workers
        engine.kill()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive


def test_a_worker_loads_nothing_heavy():
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, mydata_like.transfer.worker; print(*sys.modules, sep='\\n')",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    ).stdout.split()
    heavy = {"requests", "typer", "PySide6", "paramiko", "ssh", "sqlite3", "logging"}
    assert not heavy & set(loaded)
