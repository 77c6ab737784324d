"""What goes through the pipe comes out as it went in."""

import pickle
import time
from itertools import combinations
from pathlib import Path
from typing import get_args

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.local_files import ArchiveMember, LocalFile, Reading
from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.protocol import (
    Allowance,
    Answer,
    Cut,
    Done,
    Failed,
    Fate,
    Join,
    Leave,
    Member,
    Moved,
    Moves,
    Opened,
    Order,
    Plan,
    Said,
    Task,
    Told,
)

FILE = LocalFile(b"/p", b"k", b"d", b"n", 3, 10**18, 1, 2)


def test_a_task_arrives_with_its_members_by_name():
    inside = (ArchiveMember(FILE, b"n"),)
    task = Task(
        (Member(b"/p", 3, 10**18, 1, 2, b"r"), Member(b"", 9, 0, 0, 0, b"a", True, inside)), True
    )

    arrived = pickle.loads(pickle.dumps(task))

    assert arrived == task
    assert [member.inside for member in arrived.members] == [(), inside]
    assert arrived.members[0].modified == 10**9


def test_fates_arrive_with_their_problems_and_readings():
    problem = Problem("file.changed", "It changed.")
    fates = (Fate(0, "0" * 32), Fate(1, "", problem, again=True, inside=(Reading("", problem),)))

    arrived = pickle.loads(pickle.dumps(Done(fates, broken=True)))

    assert arrived == Done(fates, broken=True)
    assert [fate.again for fate in arrived.fates] == [False, True]
    assert arrived.fates[1].problem.code == arrived.fates[1].inside[0].problem.code


MESSAGES = [
    Plan(Endpoint("host", 22, "user", Path("key"), Path("known_hosts")), b"/area"),
    Join(),
    Leave(),
    Cut(),
    Task((), False),
    Moves(()),
    Allowance(0),
    Opened(HostCapabilities("sftp"), "", ""),
    Moved(0),
    Done(()),
    Done((), broken=True),
    Failed("", Problem("", "")),
    Told(0, Join()),
    Told(0, Leave()),
    Said(0, Moved(0)),
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
    kinds = {*get_args(Order), *get_args(Answer), Plan, Told, Said}

    assert {type(message) for message in MESSAGES} == kinds


@pytest.mark.parametrize("modified_ns", [-(2**80), -1, 0, 10**18, 2**80])
def test_any_time_of_a_file_is_a_date_that_a_host_understands(modified_ns):
    member = Member(b"/data/a", 3, modified_ns, 1, 2, b"sets/a")
    assert 1970 <= time.gmtime(member.modified).tm_year <= 9999
