"""TLS as the program uses it: whom the system trusts, and that nobody else is trusted."""

import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mydata_like.server.http import build_trust
from mydata_like.settings.schema import Server

_HOST: Final = "localhost"
_TURNS: Final = 4  # of a handshake, more than any needs


def try_trust(folder: Path) -> str:
    """Meet a server that proves who it is by a certificate of its own making.

    It must be trusted where the settings name that certificate, and refused otherwise.
    """
    certificate = _make_certificate(folder)
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    stranger.load_cert_chain(certificate)
    version = _meet(build_trust(Server(ca_file=certificate)), stranger)
    with suppress(ssl.SSLCertVerificationError):
        _meet(build_trust(Server()), stranger)
        raise RuntimeError("A certificate that nobody vouches for is trusted.")
    return f"{ssl.OPENSSL_VERSION}, {version}"


def _meet(trust: ssl.SSLContext, server: ssl.SSLContext) -> str | None:
    """Shake hands in memory; return the protocol that both sides agreed on."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = trust.wrap_bio(back, there, server_hostname=_HOST)
    theirs = server.wrap_bio(there, back, server_side=True)
    for _ in range(_TURNS):
        for side in (ours, theirs):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return ours.version()


def _make_certificate(folder: Path) -> Path:
    """Write a key and its certificate, which vouches for itself, into one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(_HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    file.touch(mode=0o600)
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return file
