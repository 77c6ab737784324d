"""What goes through the pipe comes out as it went in."""

import pickle
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.local_files import ArchiveMember, LocalFile, Reading
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.ssh.staging_host import StagingHost
from mydata_like.transfer.worker_messages import (
    BytesSent,
    CancelTask,
    ChannelCommand,
    ChannelOpened,
    ChannelReply,
    Command,
    JoinChannel,
    LeaveChannel,
    Member,
    MemberResult,
    RateLimit,
    RenameTasks,
    Reply,
    SendTask,
    ServiceAnswer,
    ServiceCall,
    TaskFailed,
    TaskResult,
    WorkerConfig,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FILE = LocalFile(b"/p", b"k", b"d", b"n", 3, 10**18, 1, 2)


def test_a_task_arrives_with_its_members_by_name():
    inside = (ArchiveMember(FILE, b"n"),)
    task = SendTask(
        (Member(b"/p", 3, 10**18, 1, 2, b"r"), Member(b"", 9, 0, 0, 0, b"a", True, inside)), True
    )

    arrived = pickle.loads(pickle.dumps(task))

    assert arrived == task
    assert [member.inside for member in arrived.members] == [(), inside]
    assert arrived.members[0].modified == 10**9


def test_fates_arrive_with_their_problems_and_readings():
    problem = Problem("file.changed", "It changed.")
    fates = (
        MemberResult(0, "0" * 32),
        MemberResult(1, "", problem, again=True, inside=(Reading("", problem),)),
    )

    arrived = pickle.loads(pickle.dumps(TaskResult(fates, broken=True)))

    assert arrived == TaskResult(fates, broken=True)
    assert [fate.again for fate in arrived.results] == [False, True]
    assert arrived.results[1].problem.code == arrived.results[1].inside[0].problem.code


MESSAGES = [
    WorkerConfig(
        StagingHost(Endpoint("host", 22, "user", Path("key"), Path("known_hosts")), b"/area")
    ),
    JoinChannel(),
    LeaveChannel(),
    CancelTask(),
    SendTask((), False),
    RenameTasks(()),
    RateLimit(0),
    ChannelOpened(HostCapabilities("sftp"), "", ""),
    BytesSent(0),
    TaskResult(()),
    TaskResult((), broken=True),
    TaskFailed("", Problem("", "")),
    ServiceCall("remove", (b"name",)),
    ServiceAnswer(True),
    ChannelCommand(0, JoinChannel()),
    ChannelCommand(0, LeaveChannel()),
    ChannelReply(0, BytesSent(0)),
]


def test_two_different_messages_are_never_equal():
    assert all(one != other for one, other in combinations(MESSAGES, 2))


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_any_message_is_true_and_arrives_as_what_it_was(message):
    arrived = pickle.loads(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    assert message
    assert type(arrived) is type(message)
    assert arrived == message


def test_the_messages_tried_are_all_there_are():
    kinds = {*get_args(Command), *get_args(Reply), WorkerConfig, ChannelCommand, ChannelReply}

    assert {type(message) for message in MESSAGES} == kinds


@pytest.mark.parametrize("modified_ns", [-(2**80), -1, 0, 10**18, 2**80])
def test_any_time_of_a_file_is_a_date_that_a_host_understands(modified_ns):
    member = Member(b"/data/a", 3, modified_ns, 1, 2, b"sets/a")
    assert 1970 <= (EPOCH + timedelta(seconds=member.modified)).year <= 9999
