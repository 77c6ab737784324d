"""How the hosts before the staging area are reached, by what server and settings say."""

import os
from pathlib import Path

import pytest

from mydata_like.core.model import StagingArea
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.schema import Transfer
from mydata_like.settings.transfer_sections import find_unsupported
from mydata_like.transfer.ssh.endpoints import build_endpoints

OURS, THEIRS = "SHA256:" + "A" * 43, "SHA256:" + "B" * 43
AREA = StagingArea(
    box="box",
    location="/there",
    username="mydata",
    hosts=("a.example.org", "b.example.org"),
    port=2222,
    host_keys=(THEIRS,),
)


def build(**settings):
    return build_endpoints(
        AREA, Transfer(**settings), key_file=Path("key"), known_hosts=Path("known")
    )


def test_every_host_is_reached_directly_by_default():
    reached = [(it.username, it.host, it.port, it.host_keys, it.via) for it in build()]
    assert reached == [("mydata", host, 2222, (THEIRS,), None) for host in AREA.hosts]


def test_the_way_leads_through_the_hosts_between_in_their_order():
    (way, _) = (it.way for it in build(ssh_jump=("me@gate.example.org:22022", "[fd00::1]")))
    assert [(it.username, it.host, it.port) for it in way] == [
        ("me", "gate.example.org", 22022),
        ("mydata", "fd00::1", 22),
        ("mydata", "a.example.org", 2222),
    ]


def test_where_keys_are_pinned_here_the_servers_do_not_count():
    (first, second) = build(ssh_jump=("gate",), host_keys=(OURS,))
    assert first.host_keys == second.host_keys == (OURS,)
    assert not first.pinned_by_server
    assert (first.via.host_keys, first.via.also_trusted) == ((), (OURS,))


def test_the_servers_keys_count_at_the_end_of_the_way_only():
    (first, _) = build(ssh_jump=("gate",))
    assert first.host_keys == (THEIRS,)
    assert first.pinned_by_server
    assert (first.via.host_keys, first.via.also_trusted) == ((), ())


@pytest.mark.parametrize(
    "jump", ["", "-oProxyCommand=x", "a b", "me@", "host:0", "host:65536", "fd00::1", "$(x)", "a,b"]
)
def test_an_invalid_host_is_refused(jump):
    with pytest.raises(InvalidSettingsError, match="is not a host"):
        Transfer(ssh_jump=(jump,))


@pytest.mark.skipif(os.name == "nt", reason="Windows' agents have no socket")
def test_an_agent_cannot_be_used_with_libssh():
    with pytest.raises(InvalidSettingsError, match="has no effect"):
        Transfer(ssh_agent=True, ssh="libssh")
    assert Transfer(ssh_agent=True, ssh="libssh", ssh_jump=("gate",)).ssh_agent
    assert Transfer(ssh_agent=True).ssh_agent


def test_an_agent_cannot_be_used_on_windows():
    transfer = Transfer().with_values(ssh_agent=True)

    assert [name for name, _ in find_unsupported(transfer, "win32")] == ["ssh_agent"]
    assert list(find_unsupported(transfer, "linux")) == []
    assert list(find_unsupported(Transfer(), "win32")) == []


@pytest.mark.skipif(os.name != "nt", reason="agents can be used elsewhere")
def test_settings_with_an_agent_are_refused_on_windows():
    with pytest.raises(InvalidSettingsError, match="cannot be used on Windows"):
        Transfer(ssh_agent=True)
