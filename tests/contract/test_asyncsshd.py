"""The demo's own SSH server is one that uploads can go to."""

import os
from functools import partial

import pytest

from mydata_like.core.errors import AccessDeniedError
from mydata_like.demo.ssh_servers import AsyncSshd
from mydata_like.ssh.capabilities import probe
from mydata_like.ssh.connect import connect, fetch_host_key
from tests.sshd_fixture import STACKS, endpoint_of, open_session

pytestmark = pytest.mark.parametrize("stack", STACKS)


@pytest.fixture
def sshd(tmp_path):
    with AsyncSshd(tmp_path / "server") as sshd:
        yield sshd


@pytest.fixture
def endpoint(sshd, stack, tmp_path):
    (tmp_path / "keys").mkdir()
    return endpoint_of(sshd, tmp_path / "keys", stack=stack)


def test_its_rung_is_found(endpoint, tmp_path):
    (tmp_path / "staging").mkdir()
    session, found = probe(partial(connect, endpoint), os.fsencode(tmp_path / "staging"))
    session.close()
    assert found.access == "sftp"
    assert list((tmp_path / "staging").iterdir()) == []


def test_files_arrive_by_sftp(endpoint, tmp_path):
    content = os.urandom(3_000_000)
    with open_session(endpoint) as session:
        file = session.open_sftp().open_file(os.fsencode(tmp_path / "file"))
        file.write(content)
        file.close()
    assert (tmp_path / "file").read_bytes() == content


def test_it_lets_in_the_configured_account(sshd, endpoint):
    assert fetch_host_key(endpoint) == sshd.host_key
    sshd.forbid_all()
    with pytest.raises(AccessDeniedError):
        connect(endpoint)


def test_it_starts_again_on_its_port(sshd, endpoint):
    connect(endpoint).close()
    sshd.stop()
    sshd.start()
    connect(endpoint).close()
