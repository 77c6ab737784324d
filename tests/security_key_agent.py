"""An SSH agent with keys of simulated FIDO devices: `python -m tests.security_key_agent`.

It signs as defined in OpenSSH's PROTOCOL.u2f. Arguments: SOCKET, and the behaviour of the user:
`touched`, `untouched` (it signs without the user's presence, which sshd refuses) or `ignored` (it
waits forever). It prints its public keys, one per line, and an empty line once it listens.
"""

import base64
import hashlib
import socketserver
import struct
import sys
import threading

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

APPLICATION = b"ssh:"
PRESENT = 1  # the flag of a touch


def string(value):
    return struct.pack(">I", len(value)) + value


def number(value):
    return string(value.to_bytes(value.bit_length() // 8 + 1, "big"))


class Ed25519Device:
    kind = b"sk-ssh-ed25519@openssh.com"

    def __init__(self):
        self._key = ed25519.Ed25519PrivateKey.generate()
        point = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.blob = string(self.kind) + string(point) + string(APPLICATION)

    def sign(self, data):
        return self._key.sign(data)


class EcdsaDevice:
    kind = b"sk-ecdsa-sha2-nistp256@openssh.com"

    def __init__(self):
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        words = (self.kind, b"nistp256", point, APPLICATION)
        self.blob = b"".join(map(string, words))

    def sign(self, data):
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return number(r) + number(s)


DEVICES = {device.blob: device for device in (Ed25519Device(), EcdsaDevice())}


def answer(message, treated):
    """Return the answer to a request: identities, or a signature of one."""
    if message[0] == 11:
        keys = b"".join(string(blob) + string(b"caf\xe9") for blob in DEVICES)
        return b"\x0c" + struct.pack(">I", len(DEVICES)) + keys
    if treated == "ignored":
        threading.Event().wait()
    length = struct.unpack_from(">I", message, 1)[0]
    device, rest = DEVICES[message[5 : 5 + length]], message[5 + length :]
    data = rest[4 : 4 + struct.unpack_from(">I", rest)[0]]
    seen = struct.pack(">BI", PRESENT if treated == "touched" else 0, 7)  # and a counter
    digests = [hashlib.sha256(part).digest() for part in (APPLICATION, data)]
    signature = device.sign(digests[0] + seen + digests[1])
    return b"\x0e" + string(string(device.kind) + string(signature) + seen)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(4):
            message = self.rfile.read(int.from_bytes(head, "big"))
            self.wfile.write(string(answer(message, sys.argv[2])))


class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


if __name__ == "__main__":
    with Server(sys.argv[1], Handler) as server:
        for device in DEVICES.values():
            text = base64.b64encode(device.blob).decode()
            sys.stdout.write(f"{device.kind.decode()} {text}\n")
        sys.stdout.write("\n")
        sys.stdout.flush()
        server.serve_forever()
