"""Files of hosts that are received in a process of their own, which may be killed at any time."""

import os
from contextlib import ExitStack, closing
from dataclasses import replace
from hashlib import md5
from random import Random

import psutil
import pytest

from mydata_like.app.plain_destination import HostPlace
from mydata_like.app.receiving import ProcessReceiver, ReceivingService
from mydata_like.core.errors import Cancelled, TransientError
from mydata_like.hostos.lock import await_helpers, find_helper_note
from mydata_like.transfer.folder.received_files import ReceivedFiles, WantedFile
from mydata_like.transfer.worker_messages import LOST
from tests.privileges import needs_bytes
from tests.sshd_fixture import endpoint_of, needs_sshd, sftp_only, sshd_with

pytestmark = [needs_bytes, needs_sshd]

CONTENT = {
    **{b"small/%d \xff" % number: b"%d\n" % number * 500 for number in range(200)},
    **{b"large %d" % number: Random(number).randbytes(5_000_000) for number in range(3)},
    b"empty": b"",
}


class Told:
    """What a receiver tells; `happens` is called once bytes have come."""

    def __init__(self, happens=lambda: None):
        self.problems = {}
        self.moved = 0
        self.happens = happens

    def move(self, size, *, waits):
        self.moved += size
        if size:
            self.happens()

    def settle(self, file, problem):
        self.problems[file.path] = problem and problem.code


@pytest.fixture(params=["libssh", "paramiko", "SFTP"])
def place(request, tmp_path):
    for path, content in CONTENT.items():
        there = tmp_path / "there" / os.fsdecode(path)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(content)
    is_sftp = request.param == "SFTP"
    library = "paramiko" if request.param == "paramiko" else "libssh"
    with sshd_with(tmp_path, *(sftp_only() if is_sftp else ())) as sshd:
        (tmp_path / "keys").mkdir()
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=library)
        evidence = "read-back-cached" if is_sftp else "host"
        yield HostPlace(endpoint, os.fsencode(tmp_path / "there"), evidence)


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here"


@pytest.fixture
def receiver(place, here):
    target = ReceivedFiles(os.fsencode(here))
    target.open(create=True)
    with ExitStack() as stack:
        lock = find_helper_note(here.parent, os.fsencode(here), 1)
        service = ReceivingService(place.opener, target, False, False, lock)
        receiver = ProcessReceiver(service, ())
        stack.callback(receiver.close)
        yield receiver


def want(*paths):
    return [
        WantedFile(path, path, len(CONTENT[path]), md5(CONTENT[path]).hexdigest(), 10**18)
        for path in paths or CONTENT
    ]


def found_in(folder):
    return {
        os.fsencode(it.relative_to(folder)): it.read_bytes()
        for it in folder.rglob("*")
        if it.is_file()
    }


def is_part(path):
    return path.startswith(b".mydata-get-") or b"/.mydata-get-" in path


def find_processes():
    children = psutil.Process().children()
    return [it for it in children if "mydata_like.transfer.worker" in str(it.cmdline())]


def test_a_process_receives_files_and_tells_their_problems(receiver, here):
    arrivals = Told()
    other = want(b"large 1")[0]._replace(place=b"other", checksum="0" * 32)
    missing = other._replace(path=b"missing", place=b"missing")

    receiver.receive([it for it in want() if it.path != b"large 1"], arrivals, again=False)
    receiver.receive([other, missing], arrivals, again=False)

    expected = {path: it for path, it in CONTENT.items() if path != b"large 1"}
    assert found_in(here) == expected
    assert {path: it for path, it in arrivals.problems.items() if it} == {
        b"large 1": "destination.differs",
        b"missing": "server.lost",
    }
    assert arrivals.problems.keys() == CONTENT.keys() | {b"missing"}
    assert arrivals.moved >= sum(map(len, CONTENT.values()))
    assert len(find_processes()) == 1


def test_large_files_wait_for_the_channels_that_the_host_allows(tmp_path, place, here):
    if place.reads_back:
        pytest.skip("SFTP needs one channel for all of them.")
    with sshd_with(tmp_path / "narrow", "MaxSessions 2") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "narrow", stack=place.endpoint.stack)
        narrow = replace(place, endpoint=endpoint).for_much()
        target = ReceivedFiles(os.fsencode(here))
        target.open(create=True)
        receiver, told = (
            ProcessReceiver(ReceivingService(narrow.opener, target, False, False), ()),
            Told(),
        )
        with closing(receiver):
            receiver.receive(want(*(it for it in CONTENT if b"large" in it)), told, again=False)

    assert told.problems == {b"large %d" % number: None for number in range(3)}


def test_what_a_killed_process_has_left_is_received_by_another(receiver, here):
    def kill():
        for process in find_processes():
            process.kill()

    arrivals, files = Told(kill), want()
    with pytest.raises(TransientError) as caught:
        receiver.receive(files, arrivals, again=False)
    left = [it for it in files if it.path not in arrivals.problems]
    found = found_in(here)
    arrivals.happens = lambda: None

    receiver.receive(left, arrivals, again=True)

    assert caught.value.problem_code == LOST
    assert b"large 2" in {it.path for it in left}
    assert {path: it for path, it in found.items() if not is_part(path)}.items() <= CONTENT.items()
    assert found_in(here) == CONTENT
    assert not any(arrivals.problems.values())


def test_what_a_killed_process_could_not_tell_is_found(receiver, here):
    arrivals = Told()
    receiver.receive(want(), arrivals, again=False)
    (here / "empty").write_bytes(b"other")
    arrivals.problems.clear()

    receiver.receive(want(), arrivals, again=True)

    assert arrivals.problems.keys() == CONTENT.keys()
    assert {path for path, it in arrivals.problems.items() if it} == {b"empty"}
    assert arrivals.problems[b"empty"] == "destination.occupied"


def test_a_process_that_is_to_end_names_what_is_complete(receiver, here):
    def cancel():
        raise Cancelled

    with pytest.raises(Cancelled):
        receiver.receive(want(), Told(cancel), again=False)

    found = found_in(here)
    parts = [it for path, it in found.items() if is_part(path)]
    named = {path: it for path, it in found.items() if not is_part(path)}
    assert named.items() < CONTENT.items()
    assert all(any(it.startswith(part) for it in CONTENT.values()) for part in parts)
    assert find_processes() == []


def test_a_process_holds_its_lock_until_it_has_ended(receiver, here):
    folder = os.fsencode(here)
    before = await_helpers(here.parent, folder)

    receiver.receive(want(b"empty"), Told(), again=False)
    meanwhile = await_helpers(here.parent, folder, 0.0)
    for process in find_processes():
        process.kill()
    after = await_helpers(here.parent, folder)

    assert (before, meanwhile, after) == (True, False, True)
