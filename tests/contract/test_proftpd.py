"""Uploads to ProFTPD with mod_sftp, which `make staging-hosts` installs."""

import getpass
import os
import shutil
import socket
import subprocess
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from mydata_like.ssh.capabilities import probe
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import create_key
from mydata_like.ssh.session import Endpoint
from mydata_like.transfer.scp_sender import ScpSender
from mydata_like.transfer.worker_messages import MemberResult, SendTask
from tests.fakes.place import checksum
from tests.sshd_fixture import STACKS, open_session

PROFTPD = shutil.which("proftpd") or shutil.which("proftpd", path="/usr/sbin:/usr/local/sbin")
MODULE = Path("/usr/lib/proftpd/mod_sftp.so")

pytestmark = [
    pytest.mark.skipif(
        PROFTPD is None or not MODULE.exists() or os.geteuid() != 0,
        reason="needs ProFTPD with mod_sftp (make staging-hosts), and root",
    ),
    pytest.mark.parametrize("stack", STACKS),
]

CONFIG = """
LoadModule mod_sftp.c
ServerType standalone
DefaultAddress 127.0.0.1
UseIPv6 off
Port {port}
User {user}
Group root
RootLogin on
UseFtpUsers off
RequireValidShell off
AllowOverwrite on
DelayEngine off
WtmpLog off
TransferLog none
PidFile {here}/pid
ScoreboardFile {here}/scoreboard
SystemLog {here}/log
<IfModule mod_sftp.c>
SFTPEngine on
SFTPHostKey {host_key}
SFTPAuthorizedUserKeys file:{here}/keys
SFTPAuthMethods publickey
</IfModule>
"""


@pytest.fixture
def endpoint(tmp_path, stack):
    """A running server and the account on it."""
    here = tmp_path / "server"
    here.mkdir()
    host_key, key = create_key(here / "host" / "key"), create_key(here / "user" / "key")
    _, text, *_ = key.public.line().split()
    (here / "keys").write_text(  # in the format of RFC 4716
        f"---- BEGIN SSH2 PUBLIC KEY ----\n{text}\n---- END SSH2 PUBLIC KEY ----\n"
    )
    user = getpass.getuser()
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    config = here / "proftpd.conf"
    config.write_text(CONFIG.format(here=here, port=port, user=user, host_key=host_key.path))
    with running(config, port):
        yield Endpoint(
            "127.0.0.1",
            port,
            user,
            key.path,
            here / "known_hosts",
            host_keys=(host_key.public.fingerprint,),
            stack=stack,
            stall_timeout=5.0,
        )


@contextmanager
def running(config, port):
    process = subprocess.Popen([PROFTPD, "-n", "-q", "-c", str(config)], stderr=subprocess.DEVNULL)
    try:
        while process.poll() is None and not accepts(port):
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


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
        done = sender.send(SendTask(tuple(members), batched=False), lambda _: None)
    assert done.results == tuple(
        MemberResult(at, checksum(member)) for at, member in enumerate(members)
    )
    assert all(map(place.arrived, members))
