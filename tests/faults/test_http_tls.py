"""Servers that cannot prove who they are, or want to talk as in the old days."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.core.errors import ServerUnavailableError, SettingsError
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import web_server


class Authority:
    """A certificate authority of our own, and servers with its certificates."""

    def __init__(self, folder):
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.file = folder / "ca.pem"
        builder = _builder(self.name, self.name, self.key, days=30)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = builder.add_extension(identifier, False)
        certificate = builder.sign(self.key, hashes.SHA256())
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def context(self, *, address="127.0.0.1", days=30):
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
        alternatives = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        builder = _builder(name, self.name, key, days).add_extension(alternatives, False)
        certificate = builder.sign(self.key, hashes.SHA256())
        pem = self.folder / "server.pem"
        pem.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        return context


def _builder(subject, issuer, key, days):
    end = datetime.now(UTC) + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=60))
        .not_valid_after(end)
    )


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def ask(url, ca_file):
    clock = FakeClock()
    settings = Server(url=url, username="facility", ca_file=ca_file)
    client = ApiClient(settings, "key", clock, clock.cancel())
    try:
        return client.prove().user.username
    finally:
        client.close()


def test_an_authority_of_our_own_is_trusted_where_the_settings_name_it(authority):
    with web_server(authority.context()) as web:
        assert ask(web.url, authority.file) == "facility"


@pytest.mark.parametrize(
    "fault",
    [{"days": -1}, {"address": "127.0.0.2"}],
    ids=["expired", "other host"],
)
def test_a_certificate_that_proves_nothing_is_refused(authority, fault):
    with web_server(authority.context(**fault)) as web:
        with pytest.raises(ServerUnavailableError) as caught:
            ask(web.url, authority.file)

        assert web.asked == []
    assert caught.value.problem_code == "server.certificate"


def test_an_unknown_authority_is_refused(authority):
    with web_server(authority.context()) as web:
        with pytest.raises(ServerUnavailableError) as caught:
            ask(web.url, None)

        assert web.asked == []
    assert caught.value.problem_code == "server.certificate"


def test_an_environment_variable_does_not_replace_our_trust(authority, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority.file))

    with web_server(authority.context()) as web, pytest.raises(ServerUnavailableError):
        ask(web.url, None)


def test_encryption_of_the_old_days_is_refused(authority):
    context = authority.context()
    with pytest.warns(DeprecationWarning, match="TLSVersion"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSVersion"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")

    with web_server(context) as web, pytest.raises(ServerUnavailableError) as caught:
        ask(web.url, authority.file)

    assert caught.value.problem_code == "server.tls"


def test_a_server_without_encryption_behind_an_https_address_is_reported_as_such():
    with web_server() as web, pytest.raises(ServerUnavailableError) as caught:
        ask(web.url.replace("http:", "https:"), None)

    assert caught.value.problem_code == "server.tls"


def test_a_file_that_is_not_a_ca_bundle_is_reported_as_such(tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text("nothing")

    with pytest.raises(SettingsError) as caught:
        ask("https://127.0.0.1:1", path)

    assert caught.value.problem_code == "server.ca-file"
