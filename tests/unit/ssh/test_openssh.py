"""What the system's ssh means by what it says."""

from pathlib import Path

import pytest

from mydata_like.ssh.openssh import explain
from mydata_like.ssh.session import Endpoint

ENDPOINT = Endpoint(
    host="staging", port=22, username="mydata", key_file=Path("key"), known_hosts=Path("known")
)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("mydata@staging: Permission denied (publickey).", "ssh.key-refused"),
        ("Received disconnect: Too many authentication failures", "ssh.key-refused"),
        (
            "sign_and_send_pubkey: signing failed for ED25519-SK: device not found",
            "ssh.key-refused",
        ),
        ("Host key verification failed.", "host-key.changed"),
        (
            "Unable to negotiate with UNKNOWN port 65535: no matching cipher found.",
            "ssh.no-agreement",
        ),
        ("kex_exchange_identification: Connection closed by remote host", "link.refused"),
        ("", "link.refused"),
    ],
)
def test_a_login_that_failed_is_told_in_our_words(said, code):
    assert explain(ENDPOINT, ["debug1: Connecting", said, "debug1: done"]).problem_code == code


def test_what_a_host_makes_ssh_say_is_plain_and_short():
    message = explain(ENDPOINT, ["banner \x1b[31mred\x07" + "x" * 5000]).message
    assert message.isprintable()
    assert len(message) < 400


def test_what_both_sides_lack_is_named():
    said = ["Unable to negotiate with UNKNOWN port 65535: no matching cipher found. Their offer: x"]
    assert "no matching cipher found. Their offer: x" in explain(ENDPOINT, said).message
    assert "UNKNOWN" not in explain(ENDPOINT, said).message
