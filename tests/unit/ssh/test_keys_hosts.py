"""Which host keys are trusted."""

import multiprocessing
from pathlib import Path

import pytest

from mydata_like.core.errors import HostKeyError
from mydata_like.ssh.keys import (
    PublicKey,
    accept_host_key,
    check_host_key,
    forget_host_keys,
    is_trusted,
    known_keys,
    pin_mark,
    preferred_types,
)
from mydata_like.ssh.session import Endpoint


def key_of(number, kind="ssh-ed25519"):
    name = kind.encode()
    return PublicKey(kind, len(name).to_bytes(4, "big") + name + number.to_bytes(32, "big"))


@pytest.fixture
def endpoint(tmp_path):
    return Endpoint(
        host="Staging.Example",
        port=2222,
        username="mydata",
        key_file=tmp_path / "id",
        known_hosts=tmp_path / "deep" / "known_hosts",
    )


def accept(endpoint, key):
    accept_host_key(endpoint.known_hosts, endpoint.host, endpoint.port, key)


def test_an_unknown_key_is_refused_with_all_one_needs_to_know(endpoint):
    with pytest.raises(HostKeyError) as raised:
        check_host_key(endpoint, key_of(1))
    error = raised.value
    assert error.problem_code == "host-key.unknown"
    for part in ("Staging.Example", "2222", key_of(1).fingerprint):
        assert part in error.message
    assert f"--accept-host-key {key_of(1).fingerprint}" in error.hint
    assert not endpoint.known_hosts.exists()


def test_an_accepted_key_is_trusted(endpoint):
    accept(endpoint, key_of(1))
    check_host_key(endpoint, key_of(1))
    assert endpoint.known_hosts.read_text() == f"[staging.example]:2222 {key_of(1).line()}\n"


def test_a_changed_key_is_reported_with_both_fingerprints(endpoint):
    accept(endpoint, key_of(1))
    with pytest.raises(HostKeyError) as raised:
        check_host_key(endpoint, key_of(2))
    assert raised.value.problem_code == "host-key.changed"
    assert key_of(1).fingerprint in raised.value.message
    assert key_of(2).fingerprint in raised.value.message


def test_another_port_is_another_host(endpoint):
    accept(endpoint, key_of(1))
    with pytest.raises(HostKeyError) as raised:
        check_host_key(endpoint._replace(port=22), key_of(1))
    assert raised.value.problem_code == "host-key.unknown"


def test_all_types_of_keys_of_a_host_are_kept_and_preferred(endpoint):
    accept(endpoint, key_of(1, "ssh-rsa"))
    accept(endpoint, key_of(2))
    accept(endpoint, key_of(2))
    assert known_keys(endpoint) == [key_of(1, "ssh-rsa"), key_of(2)]
    assert preferred_types(endpoint) == ("ssh-rsa", "ssh-ed25519")


def test_a_pinned_fingerprint_is_trusted_and_nothing_else(endpoint):
    accept(endpoint, key_of(2))
    pinned = endpoint._replace(host_keys=(key_of(1).fingerprint,))
    check_host_key(pinned, key_of(1))
    with pytest.raises(HostKeyError) as raised:
        check_host_key(pinned, key_of(2))
    assert raised.value.problem_code == "host-key.changed"


def test_a_key_accepted_instead_of_pinned_ones_is_trusted_while_exactly_these_are(endpoint):
    pins = (key_of(1).fingerprint, key_of(2).fingerprint)
    pinned = endpoint._replace(host_keys=pins)
    accept_host_key(
        endpoint.known_hosts, endpoint.host, endpoint.port, key_of(3), mark=pin_mark(pinned)
    )

    assert is_trusted(pinned, key_of(3))
    assert is_trusted(pinned, key_of(1))
    assert is_trusted(pinned._replace(host_keys=(key_of(2).line(), *pins)), key_of(3))
    assert is_trusted(endpoint, key_of(3))
    assert not is_trusted(pinned._replace(port=22), key_of(3))
    assert not is_trusted(pinned._replace(pinned_by_server=True), key_of(3))
    assert not is_trusted(pinned._replace(host_keys=pins[:1]), key_of(3))
    assert not is_trusted(pinned._replace(host_keys=(*pins, "nonsense")), key_of(3))


def test_a_pinned_text_of_any_form_adds_no_line_to_the_known_hosts(endpoint):
    pinned = endpoint._replace(host_keys=(f"\u2028[evil]:1 {key_of(9).line()}\ud800\n",))
    accept_host_key(
        endpoint.known_hosts, endpoint.host, endpoint.port, key_of(3), mark=pin_mark(pinned)
    )

    assert len(endpoint.known_hosts.read_text().splitlines()) == 1
    assert is_trusted(pinned, key_of(3))


def test_a_whole_public_key_can_be_pinned_too(endpoint):
    pinned = endpoint._replace(host_keys=(key_of(1).line("from the administrator"),))
    check_host_key(pinned, key_of(1))
    with pytest.raises(HostKeyError):
        check_host_key(pinned, key_of(2))


def test_an_invalid_pin_trusts_no_key(endpoint):
    with pytest.raises(HostKeyError):
        check_host_key(endpoint._replace(host_keys=("nonsense",)), key_of(1))


def test_truncated_and_foreign_lines_trust_no_key_and_are_kept(endpoint):
    endpoint.known_hosts.parent.mkdir()
    torn = f"# mine\n[staging.example]:2222 ssh-ed25519 AAAA\nother {key_of(3).line()}\n@revoked x"
    endpoint.known_hosts.write_text(torn)
    with pytest.raises(HostKeyError):
        check_host_key(endpoint, key_of(3))
    accept(endpoint, key_of(1))
    check_host_key(endpoint, key_of(1))
    assert endpoint.known_hosts.read_text().startswith(torn + "\n")


def test_the_standard_port_may_be_left_out_as_openssh_does(endpoint):
    endpoint.known_hosts.parent.mkdir()
    endpoint.known_hosts.write_text(f"staging.example,10.0.0.1 {key_of(1).line()}\n")
    check_host_key(endpoint._replace(port=22), key_of(1))


def test_a_forgotten_host_is_unknown_again(endpoint):
    accept(endpoint, key_of(1))
    accept_host_key(endpoint.known_hosts, "other", 22, key_of(2))
    assert forget_host_keys(endpoint.known_hosts, endpoint.host, endpoint.port) == 1
    assert known_keys(endpoint) == []
    assert known_keys(endpoint._replace(host="other", port=22)) == [key_of(2)]


def test_a_host_is_forgotten_on_all_ports_in_each_form_of_its_name(endpoint):
    accept_host_key(endpoint.known_hosts, "host.example", 22, key_of(1))
    accept_host_key(endpoint.known_hosts, "host.example", 2222, key_of(2))
    accept_host_key(endpoint.known_hosts, "host.example.org", 22, key_of(3))
    with endpoint.known_hosts.open("a") as file:
        file.write(f"# host.example is ours\nHost.Example,10.0.0.1 {key_of(4).line()}\n")

    assert forget_host_keys(endpoint.known_hosts, "HOST.example") == 3
    assert forget_host_keys(endpoint.known_hosts, "host.example") == 0
    assert known_keys(endpoint._replace(host="host.example", port=22)) == []
    assert known_keys(endpoint._replace(host="host.example.org", port=22)) == [key_of(3)]
    assert "# host.example is ours" in endpoint.known_hosts.read_text()


def accept_many(path, start):
    for number in range(start, start + 10):
        accept_host_key(Path(path), f"host{number}", 22, key_of(number))


@pytest.mark.process
def test_processes_that_accept_at_once_lose_nothing(endpoint):
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=accept_many, args=(str(endpoint.known_hosts), start))
        for start in (0, 10, 20)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    assert len(endpoint.known_hosts.read_text().splitlines()) == 30
