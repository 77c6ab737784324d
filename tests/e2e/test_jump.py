"""A whole run to a staging host that lies behind another, from first contact to verified files."""

import getpass

import pytest

from mydata_like.ssh.keys import load_key
from tests.invariants import check_complete
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd, sshd_with

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.fixture
def site(tmp_path):
    make_data(tmp_path / "site", tiny_files=20, large=1_000_000)
    with open_site(tmp_path / "site") as site:
        yield site


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
