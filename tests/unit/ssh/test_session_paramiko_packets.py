"""Packets that a host sends to paramiko."""

import socket
from contextlib import closing

import paramiko
import pytest

from mydata_like.ssh.session_paramiko import TimeoutSocket, _Packets


class Cipher:
    """AES-GCM of which nothing is to be decrypted."""

    def decrypt(self, *_):
        raise AssertionError


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 2**32 - 1])
def test_a_packet_that_no_host_may_send_is_not_received(size):
    theirs, ours = socket.socketpair()
    with closing(theirs), closing(TimeoutSocket.adopt(ours, 5.0)) as wire:
        packets = _Packets(wire)
        packets.set_inbound_cipher(Cipher(), 16, None, 16, b"", aead=True, iv_in=bytes(12))
        theirs.sendall(size.to_bytes(4, "big"))
        theirs.close()

        with pytest.raises(paramiko.SSHException, match=str(size)):
            packets.read_message()
