"""A whole run to a staging host that lies behind another, from first contact to verified files."""

import getpass

import pytest
import tomlkit

from mydata_like.ssh.keys import load_key
from tests.invariants import check_complete
from tests.site import a_site
from tests.ssh_agent import move_into_agent, running_agent
from tests.sshd_fixture import needs_sshd, sshd_with

pytestmark = [pytest.mark.e2e, needs_sshd]


site = a_site(tiny_files=20, large=1_000_000)


@pytest.fixture
def jump(site, tmp_path):
    with sshd_with(tmp_path) as sshd:
        sshd.authorize(load_key(site.place.key_file).public)
        yield sshd


@pytest.mark.parametrize("stack", ["auto", "paramiko"])
def test_files_arrive_behind_a_host_that_was_met_first(site, jump, stack):
    way = f'["{getpass.getuser()}@127.0.0.1:{jump.port}"]'
    settings = (f"transfer.ssh_jump={way}", f"transfer.ssh={stack}")

    stranger = site.command("register", settings=settings)
    met = site.command("register", "--accept-host-key", jump.fingerprint, settings=settings)

    assert (stranger.code, met.code) == (3, 0)
    assert jump.fingerprint in stranger.complaints
    check_complete(site, site.run(*settings))
    assert "Accepted publickey" in jump.log


def test_settings_for_the_systems_ssh_carry_on_with_agent_and_jump_host(
    site, jump, tmp_path, monkeypatch
):
    text = tomlkit.parse(site.config.read_text())
    with running_agent(tmp_path) as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", agent)
        text["transfer"].update(
            ssh="system",
            ssh_agent=True,
            ssh_jump=[f"{getpass.getuser()}@127.0.0.1:{jump.port}"],
            key_file=str(move_into_agent(site.place.key_file, agent)),
        )
        site.config.write_text(tomlkit.dumps(text))
        site.command("register", "--accept-host-key", jump.fingerprint)
        ended = site.run_events()

    notices = {line["problem"]["code"]: line["problem"] for line in ended.events("notice")}
    assert ended.code == 0
    assert f'transfer.ssh = "system" in {site.config}' in notices["settings.former"]["message"]
    assert '"paramiko" is used instead' in notices["settings.former"]["message"]
    assert site.place.find_losses() == []
    assert "Accepted publickey" in jump.log
