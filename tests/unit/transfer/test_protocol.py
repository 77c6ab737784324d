"""What goes through the pipe comes out as it went in."""

import pickle
import time

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.files import ArchiveMember, LocalFile, Reading
from mydata_like.transfer.protocol import Done, Fate, Member, Task

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


@pytest.mark.parametrize("modified_ns", [-(2**80), -1, 0, 10**18, 2**80])
def test_any_time_of_a_file_is_a_date_that_a_host_understands(modified_ns):
    member = Member(b"/data/a", 3, modified_ns, 1, 2, b"sets/a")
    assert 1970 <= time.gmtime(member.modified).tm_year <= 9999
