"""RSA keys of older programs: what approval was once given to still opens the door."""

import pytest

from tests.legacy import write_old_key
from tests.sshd_fixture import STACKS, endpoint_of, needs_sshd, open_session, sshd_with

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    only_new = "PubkeyAcceptedAlgorithms rsa-sha2-512,rsa-sha2-256"
    with sshd_with(tmp_path_factory.mktemp("server"), only_new) as sshd:
        yield sshd


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("stack", STACKS)
def test_a_pem_key_of_mydata_is_let_in_with_todays_signatures(sshd, tmp_path, stack, newline):
    key = write_old_key(tmp_path / "MyData")
    assert key.text.startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")
    key.path.write_bytes(key.text.replace(b"\n", newline))
    sshd.authorize(key.public)

    with open_session(endpoint_of(sshd, tmp_path, stack=stack, key_file=key.path)) as session:
        assert session.run(b"echo hello").output == b"hello\n"

    assert f"RSA {key.public.fingerprint}" in sshd.log
