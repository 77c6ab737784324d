"""Uploads to ProFTPD with mod_sftp, which `make staging-hosts` installs."""

import os
from functools import partial
from pathlib import Path

import pytest

from mydata_like.ssh.capabilities import probe
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import create_key
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.ssh.scp_sender import ScpSender
from mydata_like.transfer.worker_messages import MemberResult, SendTask
from tests.fakes.place import checksum
from tests.hosts import KINDS, ProFtpd, is_available
from tests.sshd_fixture import STACKS, open_session

MODULE = Path("/usr/lib/proftpd/mod_sftp.so")

pytestmark = [
    pytest.mark.skipif(
        not is_available(KINDS["ProFTPD"]) or not MODULE.exists(),
        reason="needs ProFTPD with mod_sftp (make staging-hosts), and root",
    ),
    pytest.mark.parametrize("stack", STACKS),
]


@pytest.fixture
def endpoint(tmp_path, stack):
    """A running server and the account on it."""
    server, key = ProFtpd(tmp_path / "server"), create_key(tmp_path / "user" / "key")
    server.authorize(key.public)
    with server:
        yield Endpoint(
            server.host,
            server.port,
            server.username,
            key.path,
            tmp_path / "known_hosts",
            host_keys=(server.fingerprint,),
            stack=stack,
            stall_timeout=5.0,
        )


def test_sftp_is_used_and_makes_the_location(endpoint, tmp_path):
    location = tmp_path / "staging"
    session, found = probe(partial(connect, endpoint), os.fsencode(location))
    session.close()
    assert (found.access, found.times, found.renames) == ("sftp", True, True)
    assert list(location.iterdir()) == []


def test_files_arrive_by_scp(endpoint, place):
    place.location = place.location.with_name("staging")  # its command knows no quotes
    place.location.mkdir()
    members = [place.write(f"a/{name}", 70_000) for name in ("x", "y")]
    place.settle(*members)
    with open_session(endpoint) as session:
        sender = ScpSender(session, os.fsencode(place.location))
        done = sender.send(SendTask(tuple(members), batched=False), lambda *_: None)
    assert done.results == tuple(
        MemberResult(at, checksum(member)) for at, member in enumerate(members)
    )
    assert all(map(place.arrived, members))
