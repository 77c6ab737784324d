"""First contact with a staging host: only the user can confirm its key."""

import os
import subprocess
import sys

import pytest
import tomlkit

from mydata_like.demo.uploaders import ScpAddress
from tests.invariants import check_complete
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


def remove_pins(site):
    """Remove the host keys from the settings."""
    settings = tomlkit.parse(site.config.read_text())
    del settings["transfer"]["host_keys"]
    site.config.write_text(tomlkit.dumps(settings))


@pytest.fixture
def stranger(tmp_path):
    """A site whose staging host neither the settings nor the server vouch for."""
    make_data(tmp_path / "data", tiny_files=5, large=1000)
    with open_site(tmp_path) as site:
        sshd = site.sshd
        site.server.site.store.change("DELETE FROM box_attribute WHERE key = 'host_keys'")
        site.server.set_address(ScpAddress(sshd.username, sshd.host, sshd.port))
        remove_pins(site)
        yield site


@pytest.fixture(params=["settings", "server"])
def pinned(request, tmp_path):
    """A site whose staging host has replaced the key that the settings or the server name."""
    make_data(tmp_path / "data", tiny_files=5, large=1000)
    with open_site(tmp_path) as site:
        if request.param == "settings":
            site.server.site.store.change("DELETE FROM box_attribute WHERE key = 'host_keys'")
        else:
            remove_pins(site)
        site.pinned_by = request.param
        site.old = site.sshd.fingerprint
        site.sshd.restart(new_host_key=True)
        yield site


@pytest.fixture
def vouched(tmp_path):
    """A site whose staging host the server vouches for."""
    make_data(tmp_path / "data", tiny_files=5, large=1000)
    with open_site(tmp_path) as site:
        yield site


def test_a_host_whose_key_is_not_the_pinned_one_gets_nothing_whatever_the_server_says(vouched):
    ended = vouched.run(f'transfer.host_keys=["SHA256:{"A" * 43}"]')

    assert (ended.code, ended.problem) == (3, "host-key.changed")
    assert vouched.sshd.fingerprint in ended.output
    assert vouched.server.datafiles() == []


def test_a_demonstration_trusts_its_own_host_where_others_are_pinned(tmp_path):
    pinned = {"MYDATA_LIKE_TRANSFER_HOST_KEYS": f"SHA256:{'A' * 43}"}
    words = [sys.executable, "-m", "mydata_like", "demo", "--json"]
    ended = subprocess.run(words, env=os.environ | pinned, capture_output=True, timeout=60)

    assert ended.returncode == 0


def test_an_unknown_host_gets_nothing_and_its_fingerprint_is_reported(stranger):
    ended = stranger.run()

    assert (ended.code, ended.problem) == (3, "host-key.unknown")
    assert stranger.sshd.fingerprint in ended.output
    assert stranger.server.datafiles() == []


def test_a_fingerprint_that_a_script_gives_is_trusted_for_one_run(stranger):
    accepted = stranger.command("run", "--json", "--accept-host-key", stranger.sshd.fingerprint)

    check_complete(stranger, accepted)


def test_a_host_that_was_accepted_at_registration_is_known_from_then_on(stranger):
    asked = stranger.command("register")
    registered = stranger.command("register", "--accept-host-key", stranger.sshd.fingerprint)

    assert (asked.code, registered.code) == (3, 0)
    assert stranger.sshd.fingerprint in asked.complaints
    check_complete(stranger, stranger.run())


def test_a_host_that_has_replaced_its_key_is_trusted_again_only_when_the_user_says_so(stranger):
    old = stranger.sshd.fingerprint
    stranger.command("register", "--accept-host-key", old)
    stranger.sshd.restart(new_host_key=True)
    new = stranger.sshd.fingerprint

    ended = stranger.run()
    asked = stranger.command("register")
    stale = stranger.command("register", "--accept-host-key", old)

    assert (ended.code, ended.problem) == (3, "host-key.changed")
    assert f"register --accept-host-key {new}" in ended.output
    for refused in (asked, stale):
        assert refused.code == 3
        assert old in refused.complaints
        assert f"--accept-host-key {new}" in refused.complaints
    assert stranger.server.datafiles() == []

    assert stranger.command("register", "--accept-host-key", new).code == 0
    check_complete(stranger, stranger.run())


def test_a_replaced_key_is_refused_whoever_pinned_the_old_one_until_the_user_names_it(pinned):
    new = pinned.sshd.fingerprint
    ended = pinned.run()
    asked = pinned.command("register")
    stale = pinned.command("register", "--accept-host-key", pinned.old)

    assert (ended.code, ended.problem) == (3, "host-key.changed")
    hint = ended.sums["problem"]["hint"]
    assert f"register --accept-host-key {new}" in hint
    assert ("transfer.host_keys" in hint) == (pinned.pinned_by == "settings")
    assert ("administrator of the server" in hint) == (pinned.pinned_by == "server")
    for refused in (asked, stale):
        assert refused.code == 3
        assert pinned.old in refused.complaints
        assert hint in " ".join(refused.complaints.split())
    assert pinned.server.datafiles() == []


def test_a_replaced_key_that_register_accepts_is_trusted_whoever_pinned_the_old_one(pinned):
    new = pinned.sshd.fingerprint

    registered = pinned.command("register", "--accept-host-key", new + "=")

    assert registered.code == 0, registered.complaints
    assert pinned.command("register").code == 0
    check_complete(pinned, pinned.run())


def test_run_and_check_accept_a_replaced_key_once(pinned):
    accept = "--accept-host-key", pinned.sshd.fingerprint
    checked = pinned.command("register", "--check", *accept)
    accepted = pinned.command("run", "--json", *accept)

    assert checked.code == 0
    check_complete(pinned, accepted)
    make_data(pinned.data / "more", tiny_files=1, large=1)
    assert pinned.run().problem == "host-key.changed"


def test_a_key_accepted_instead_of_a_pinned_one_counts_no_more_where_others_are_pinned(pinned):
    pinned.command("register", "--accept-host-key", pinned.sshd.fingerprint)

    assert pinned.run(f'transfer.host_keys=["SHA256:{"A" * 43}"]').problem == "host-key.changed"
    assert pinned.run(f'transfer.host_keys=["{pinned.old}"]').problem == (
        None if pinned.pinned_by == "settings" else "host-key.changed"
    )


def test_forgetting_a_host_explains_which_keys_are_still_trusted(pinned):
    by_settings = pinned.pinned_by == "settings"
    words = "settings", "forget-host", pinned.sshd.host, "--config", str(pinned.config)
    command = [sys.executable, "-m", "mydata_like", *words]

    def forget():
        ended = subprocess.run(command, env=pinned.environment, capture_output=True, timeout=60)
        return ended.returncode, ended.stdout.decode(), ended.stderr.decode()

    pinned.command("register", "--accept-host-key", pinned.sshd.fingerprint)
    (code, forgotten, pins), (again, _, unknown) = forget(), forget()

    assert (code, again) == (0, 2)
    assert forgotten.splitlines() == ["1 key of 127.0.0.1 forgotten."]
    told = "The keys in transfer.host_keys", "Keys that the server names"
    for stated in (pins, unknown):
        assert [part in stated for part in told] == [by_settings, not by_settings]
    assert "No key of 127.0.0.1 is known." in unknown
    assert pinned.run().problem == "host-key.changed"


def test_only_the_named_port_of_a_host_is_forgotten(stranger):
    stranger.command("register", "--accept-host-key", stranger.sshd.fingerprint)
    host, port = stranger.sshd.host, stranger.sshd.port

    def forget(text):
        words = "settings", "forget-host", text, "--config", str(stranger.config)
        ended = subprocess.run(
            [sys.executable, "-m", "mydata_like", *words],
            env=stranger.environment,
            capture_output=True,
            timeout=60,
            text=True,
        )
        return ended.returncode, (ended.stdout + ended.stderr).splitlines()[0]

    assert forget(f"{host}:{port + 1}") == (2, f"No key of {host} port {port + 1} is known.")
    assert forget(f"[{host}]:{port}") == (0, f"1 key of {host} port {port} forgotten.")
    assert stranger.run().problem == "host-key.unknown"


def test_a_forgotten_host_is_met_again_as_if_for_the_first_time(stranger):
    stranger.command("register", "--accept-host-key", stranger.sshd.fingerprint)

    words = "settings", "forget-host", stranger.sshd.host, "--config", str(stranger.config)
    command = [sys.executable, "-m", "mydata_like", *words]
    told = [
        subprocess.run(command, env=stranger.environment, capture_output=True, timeout=60)
        for _ in range(2)
    ]

    assert [ended.returncode for ended in told] == [0, 2]
    assert told[0].stdout.decode().splitlines() == ["1 key of 127.0.0.1 forgotten."]
    assert told[1].stderr.decode().splitlines()[0] == "No key of 127.0.0.1 is known."
    assert stranger.run().problem == "host-key.unknown"
