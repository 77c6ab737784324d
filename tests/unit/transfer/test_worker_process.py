"""The start of a channel worker, the pipe to it, and its end."""

import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.folder.staging_folder import StagingFolder
from mydata_like.transfer.ssh.staging_host import StagingHost
from mydata_like.transfer.worker_messages import (
    ChannelOpened,
    JoinChannel,
    Pipe,
    SendTask,
    WorkerConfig,
)
from mydata_like.transfer.worker_process import (
    DYING,
    WORKER,
    WorkerProcess,
    build_command,
)
from tests.site import yield_processor

pytestmark = pytest.mark.process


@pytest.fixture
def start():
    """Return a function that starts a worker; they are ended in the end."""
    started = []

    def start(command) -> WorkerProcess:
        started.append(WorkerProcess(command, "worker"))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()
        worker.reap()


def plan_for(host) -> WorkerConfig:
    endpoint = Endpoint(
        host=host, port=1, username="me", key_file=Path("/none"), known_hosts=Path("/none")
    )
    return WorkerConfig(StagingHost(endpoint, b"/nowhere"))


def open_channel(worker, host):
    worker.begin(plan_for(host))
    worker.send(1, JoinChannel())
    return worker.receive(1, 60)


@pytest.mark.skipif(
    os.name == "nt",
    reason="a worker has no console on Windows, so a child that inherits its streams opens one",
)
def test_what_a_worker_and_its_children_print_and_read_disturbs_nothing(start, capfd):
    opened = open_channel(start(build_command("tests.fakes.talker")), "here")

    assert isinstance(opened, ChannelOpened)
    assert sorted(capfd.readouterr().err.split()) == ["child", "worker"]


# Another process holds the pipe after this one was killed, as if it could not be killed itself.
_HOLDER = """
import subprocess, sys
held = subprocess.Popen([sys.executable, "-c", "input()"], stdin=sys.stdin)
print(held.pid, file=sys.stderr, flush=True)
held.wait()
"""


def start_held(capfd):
    """Return a process that seems to stay when it is killed, and the process that has to end."""
    worker = WorkerProcess([sys.executable, "-c", _HOLDER], "worker")
    while not (printed := capfd.readouterr().err):
        yield_processor()
    return worker, psutil.Process(int(printed))


@pytest.mark.skipif(os.name == "nt", reason="Windows closes the pipes of a killed process")
def test_a_process_that_cannot_be_ended_is_left_behind_until_it_has_ended(capfd):
    worker, holder = start_held(capfd)

    worker.kill()
    worker.reap()

    assert holder.is_running()
    assert not worker.release_if_ended()
    with pytest.raises(TransientError) as caught:
        worker.receive(1, 60)
    assert caught.value.problem_code == "channel.dropped"
    holder.kill()
    while not worker.release_if_ended():
        yield_processor()
    StagingFolder(b"/mnt", "box", "/location").require_ready()
    with pytest.raises(TransientError):
        worker.send(1, JoinChannel())


@pytest.mark.skipif(os.name == "nt", reason="Windows closes the pipes of a killed process")
def test_processes_that_cannot_be_ended_are_waited_for_at_the_same_time(capfd):
    held = [start_held(capfd) for _ in range(2)]
    began = time.monotonic()

    for worker, _ in held:
        worker.kill()
    for worker, _ in held:
        worker.reap()

    assert time.monotonic() - began < 2 * DYING
    for worker, holder in held:
        holder.kill()
        while not worker.release_if_ended():
            yield_processor()


@pytest.mark.parametrize("host", ["faulty", "faulty later"])
def test_an_internal_error_that_ends_a_channel_reaches_the_engine(start, host, place, capfd):
    worker = start(build_command("tests.fakes.channels"))
    member = place.write("a/file", 9)
    place.settle(member)

    def send():
        open_channel(worker, host)
        worker.send(1, SendTask((member,), batched=True))
        worker.receive(1, 60)

    with pytest.raises(TransientError, match="BufferError: a mistake") as raised:
        send()

    assert raised.value.problem_code == "channel.lost"
    assert 'BufferError("a mistake")' in capfd.readouterr().err, "the traceback is complete"


def test_the_program_itself_can_be_a_channel_worker(start):
    command = (sys.executable, "-m", "mydata_like", WORKER)
    with pytest.raises(Exception, match=re.escape(f"{Path('/none')} cannot be read")):
        open_channel(start(command), "localhost")


def test_in_a_bundle_the_program_itself_is_started():
    script = """
import sys
sys.frozen = True  # as in a bundle
from mydata_like.transfer.worker_process import build_command
assert build_command() == (sys.executable, "--channel-worker")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize("said", [b"", pickle.dumps(plan_for("here"))[:-9]])
def test_a_worker_whose_engine_is_gone_ends_quietly(said):
    ended = subprocess.run(build_command(), input=said, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_a_worker_that_cannot_even_start_counts_as_lost(start):
    worker = start((sys.executable, "-c", "raise SystemExit"))
    for channel in (1, 2):
        with pytest.raises(TransientError) as caught:
            worker.receive(channel, 60)
        assert caught.value.problem_code == "channel.lost"
    worker.kill()
    worker.reap()
    with pytest.raises(TransientError):
        worker.begin(plan_for("here"))


def test_a_caller_waiting_for_an_abandoned_worker_is_not_blamed(start):
    worker = start(build_command())
    worker.kill()
    with pytest.raises(TransientError) as caught:
        worker.receive(1, 60)
    assert caught.value.problem_code == "channel.dropped"


def test_a_channel_whose_session_another_one_ended_is_not_blamed(start):
    script = """
from mydata_like.core.errors import TransientError
from mydata_like.transfer.ssh.staging_host import StagingHost
from mydata_like.transfer.worker_messages import take_standard_streams
from mydata_like.transfer.ssh.staging_host import StagingHost
from mydata_like.transfer.worker_messages import ChannelReply, pack_error
failed = pack_error(TransientError("It was torn.", code="link.lost"))
take_standard_streams().send(ChannelReply(1, failed))
"""
    worker = start((sys.executable, "-c", script))
    for channel, code in ((1, "link.lost"), (2, "channel.dropped")):
        with pytest.raises(TransientError) as caught:
            worker.receive(channel, 60)
        assert caught.value.problem_code == code


@pytest.fixture
def ends():
    """Return the two ends of a pipe."""
    (there, outgoing), (incoming, back) = os.pipe(), os.pipe()
    ends = (
        Pipe(os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")),
        Pipe(os.fdopen(there, "rb"), os.fdopen(back, "wb")),
    )
    yield ends
    for end in ends:
        end.close()


def test_messages_come_out_of_a_pipe_as_they_went_in(ends):
    ours, theirs = ends
    messages = [b"x" * 3, plan_for("here"), list(range(9))]
    for message in messages:
        ours.send(message)
    assert [theirs.receive() for _ in messages] == messages


def test_one_end_of_a_pipe_notices_that_the_other_is_gone(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(EOFError):
        ours.receive()
    with pytest.raises(OSError, match=r"roken pipe|nvalid argument"):  # the latter on Windows
        ours.send(b"")
