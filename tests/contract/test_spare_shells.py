"""Shells that wait for the next script never take the room of another channel's script."""

import pytest

from mydata_like.transfer.ssh.remote_shell import Shells, SpareShells
from tests.fakes.session import LocalSession
from tests.privileges import needs_shell
from tests.sshd_fixture import STACKS, endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd


@pytest.fixture(params=STACKS)
def session(request, tmp_path):
    """A session that has room for two commands."""
    (tmp_path / "keys").mkdir()
    with (
        sshd_with(tmp_path, "MaxSessions 2") as sshd,
        open_session(endpoint_of(sshd, tmp_path / "keys", stack=request.param)) as session,
    ):
        yield session


def test_a_channel_gets_the_room_of_a_shell_that_waits_for_another_one(session):
    spares = SpareShells()
    busy, needy = Shells(session, spares=spares), Shells(session, spares=spares)
    long = busy.start(b"cat")
    busy.prepare()
    busy._next_shell.join()  # both rooms are taken

    assert needy.run(b"echo here") == b"here\n"

    long.write(b"still here")
    assert long.finish().output == b"still here"
    for shells in (busy, needy, busy):
        shells.prepare()  # which has no effect any more
        assert shells.run(b"echo and here") == b"and here\n"


@needs_shell
def test_no_more_shells_wait_than_sshd_grants_besides_the_channels():
    session, spares = LocalSession(), SpareShells()
    channels = [Shells(session, spares=spares) for _ in range(8)]
    for shells in channels:
        shells.open()
        shells.run(b"true")  # its first shell waits no more
        shells.prepare()
    waiting = [shells._next_shell for shells in channels if shells._next_shell]
    for shell in waiting:
        shell.join()
    assert len(waiting) == 5  # two at the end, and three while there were fewer channels
    for shells in channels:
        shells.close()


def test_a_channel_gets_the_room_of_its_own_shell_that_waits(session):
    shells = Shells(session)
    long = shells.start(b"cat")
    shells.prepare()
    shells._next_shell.join()

    assert shells.start(b"echo several\necho lines").finish().output == b"several\nlines\n"

    assert long.finish().output == b""
