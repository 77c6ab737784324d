"""The checks of the self-test, one for each part of an installation, and their report.

Each function returns a description of what it found, or raises an error. It imports the libraries
that it checks, because a library that cannot be loaded is one of the possible failures.
"""

import json
import os
import platform
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mydata_like import __version__
from mydata_like.catalogues.mytardis.http import build_trust
from mydata_like.core.hashing import LOADED
from mydata_like.core.local_files import LocalFile
from mydata_like.hostos.open_files import FileWriters
from mydata_like.hostos.process import find_program
from mydata_like.settings.schema import Server
from mydata_like.state.paths import HOME

if TYPE_CHECKING:
    from mydata_like.ssh.session import Endpoint


_EMPTY: Final = 8  # colours; a window with text in it has hundreds
_GRID: Final = 4  # pixels between two samples
_ASK: Final = "ask"  # the word for the process of `_open_file`
_PART: Final = "part"  # the word for the process of one part
_MOST_OUTPUT: Final = 600  # characters of a failed upload's output that are shown


class LeftOut(Exception):  # noqa: N818 - not an error: the part is optional
    """A part that cannot be checked in this installation."""


def _program() -> str:
    kind = "bundle" if getattr(sys, "frozen", False) else "installation"
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    hashed = "C library" if LOADED else "hashlib"
    python = f"Python {platform.python_version()}, MD5 by {hashed}"
    return f"mydata-like {__version__}, {kind}, {python}, {system}"


def _resources() -> str:
    from mydata_like.core.resources import find_resources
    from mydata_like.gui.theme_settings import LANGUAGES

    icons = len(list((find_resources() / "icons").glob("*.svg")))
    texts = [find_resources() / "translations" / f"mydata_like_{name}.qm" for name in LANGUAGES]
    texts.append(find_resources() / "translations" / "engine.json")
    missing = [str(file) for file in texts if not file.is_file()]
    if not icons or missing:
        raise FileNotFoundError(f"{icons} icons, {missing} missing: {find_resources()}")
    return f"{icons} icons, languages {', '.join(LANGUAGES)}"


def _window() -> str:
    """Create the whole window without a screen, and check that something is drawn."""
    from PySide6.QtCore import qVersion
    from PySide6.QtWidgets import QApplication

    from mydata_like.gui.application import Program
    from mydata_like.gui.launch_options import LaunchOptions
    from mydata_like.gui.theme_settings import apply_first_appearance
    from mydata_like.gui.window_state import WindowState

    application = QApplication(sys.argv[:1])
    application.setApplicationName("mydata-like")
    home = Path(os.environ[HOME])
    apply_first_appearance(application, WindowState(), home / "settings.toml")
    program = Program(LaunchOptions(home / "settings.toml", home / "settings.toml", home, home))
    program.window.show()
    application.processEvents()
    picture = program.window.grab().toImage()
    program.close()
    across, down = range(0, picture.width(), _GRID), range(0, picture.height(), _GRID)
    colours = len({picture.pixel(x, y) for x in across for y in down})
    if colours < _EMPTY:
        raise RuntimeError(f"The window has only {colours} colours: nothing was drawn.")
    return f"Qt {qVersion()}, {picture.width()} x {picture.height()} pixels"


def _tls() -> str:
    return try_trust(Path(os.environ[HOME]))


def _keyring() -> str:
    from keyring import get_keyring
    from keyring.backends.fail import Keyring as Nowhere

    chosen = get_keyring()
    if isinstance(chosen, Nowhere):
        return "no keyring is available: API keys would be stored in a file"
    return str(chosen.name)


def _ssh() -> str:
    """Log in to a local test host with each SSH library of this installation."""
    from mydata_like.ssh.connect import connect

    found = []
    with _staging_host() as endpoint:
        for stack in ("libssh", "paramiko") if find_spec("ssh") else ("paramiko",):
            session = connect(endpoint._replace(stack=stack))
            found.append(f"{session.stack} with {session.cipher}")
            session.close()
    return ", ".join(found)


def _tampering() -> str:
    """Change packets of local test hosts; each SSH library must refuse every one."""
    from mydata_like.selftest.tampering import try_changes

    return try_changes(Path(os.environ[HOME]))


def _open_file() -> str:
    """Ask in another process which program has a file open: this one, until it closes the file."""
    if sys.platform not in ("linux", "win32"):
        raise LeftOut("this system does not tell which files are open")
    path = Path(os.environ[HOME]) / "acquired"
    with path.open("ab"):
        name = _ask_for_program(path)
    if not name:
        raise RuntimeError("The system does not tell that this program has a file open.")
    if _ask_for_program(path) == name:  # a virus scanner may have it open now
        raise RuntimeError(f"The system says that {name} has a file open that is closed.")
    return f"the system tells that {name} has a file open, and when it has closed it"


def _ask_for_program(path: Path) -> str:
    command = [*find_program(), "--self-test", _ASK, str(path)]
    ended = subprocess.run(  # noqa: S603 - our own program
        command, capture_output=True, encoding="utf-8", check=True
    )
    return ended.stdout.strip()


def _find_program_of(path: Path) -> str:
    """Return the name of the program that has a file open; empty if there is none."""
    status, key = path.stat(), os.fsencode(path.name)
    size, modified_ns = status.st_size, status.st_mtime_ns
    file = LocalFile(
        os.fsencode(path), key, b"", key, size, modified_ns, status.st_dev, status.st_ino
    )
    return FileWriters()([file]).get(key, "")


def _s3() -> str:
    """Open a client for object storage, which reads botocore's data files; nothing is sent."""
    from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client

    if not find_spec("botocore"):
        raise LeftOut("the extra s3 is not installed")
    bucket = Bucket(name="bucket", endpoint="https://127.0.0.1", access_key="account")
    client = open_client(bucket, "secret", S3Options())
    client.close()
    return f"botocore, for the API of {client.meta.service_model.api_version}"


@contextmanager
def _staging_host() -> "Iterator[Endpoint]":
    """Start a local SSH server; yield its endpoint."""
    from mydata_like.demo.demo_site import start_site
    from mydata_like.ssh.session import Endpoint

    with TemporaryDirectory(dir=os.environ[HOME]) as name, start_site(Path(name)) as place:
        yield Endpoint(
            host=place.sshd.host,
            port=place.sshd.port,
            username=place.sshd.username,
            key_file=place.key_file,
            known_hosts=place.folder / "known_hosts",
            host_keys=(place.sshd.fingerprint,),
        )


def _upload() -> str:
    """Upload sample data to a local server over channel workers, and compare every byte."""
    import sqlite3

    command = [*find_program(), "demo", "--json"]
    ended = subprocess.run(  # noqa: S603 - our own program
        command, capture_output=True, encoding="utf-8", check=False
    )
    if ended.returncode != 0:
        output = (ended.stderr + ended.stdout).strip().replace("\n", " ")
        raise RuntimeError(
            f"The upload ended with exit code {ended.returncode}: {output[-_MOST_OUTPUT:]}"
        )
    sums = json.loads(ended.stdout.splitlines()[-1])
    return f"{sums['verified']} files verified, byte for byte; SQLite {sqlite3.sqlite_version}"


PARTS: Final = MappingProxyType[str, Callable[[], str]](
    {
        "program": _program,
        "resources": _resources,
        "window": _window,
        "tls": _tls,
        "keyring": _keyring,
        "ssh": _ssh,
        "tampering": _tampering,
        "open file": _open_file,
        "s3": _s3,
        "upload": _upload,
    }
)


_HOST: Final = "localhost"
_TURNS: Final = 4  # of a handshake; more than any handshake needs


def try_trust(folder: Path) -> str:
    """Connect to a server with a self-signed certificate.

    It must be trusted if the settings name that certificate, and refused otherwise.
    """
    certificate = _make_certificate(folder)
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    stranger.load_cert_chain(certificate)
    version = _handshake(build_trust(Server(ca_file=certificate)), stranger)
    with suppress(ssl.SSLCertVerificationError):
        _handshake(build_trust(Server()), stranger)
        raise RuntimeError("An untrusted certificate was accepted.")
    return f"{ssl.OPENSSL_VERSION}, {version}"


def _handshake(trust: ssl.SSLContext, server: ssl.SSLContext) -> str | None:
    """Perform a TLS handshake in memory; return the negotiated protocol."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = trust.wrap_bio(back, there, server_hostname=_HOST)
    theirs = server.wrap_bio(there, back, server_side=True)
    for _ in range(_TURNS):
        for side in (ours, theirs):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return ours.version()


def _make_certificate(folder: Path) -> Path:
    """Write a key and its self-signed certificate into one PEM file."""
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


_TIMEOUT: Final = 180.0  # seconds for one part


def main(words: list[str]) -> int:
    """Check all parts, or the named ones; return exit code 0 if all checks pass.

    Each line of standard output has `ok`, `left out` or `FAILED`, the part, and what was found.
    No user data is read or changed, and nothing is sent over the network.
    """
    if words[:1] in ([_ASK], [_PART]):
        found = _find_program_of(Path(words[1])) if words[0] == _ASK else PARTS[words[1]]()
        sys.stdout.write(found + "\n")
        return 0
    with TemporaryDirectory(prefix="mydata-like-self-test-") as home:
        try:
            return max([_try(name, home) for name in words or PARTS])
        except BrokenPipeError:  # as of `head -1`; Python would flush what is left once more
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1


def _try(name: str, home: str) -> int:
    command = [*find_program(), "--self-test", _PART, name]
    environment = os.environ | {HOME: home, "QT_QPA_PLATFORM": "offscreen"}
    try:
        ended = subprocess.run(  # noqa: S603 - our own program
            command, env=environment, capture_output=True, encoding="utf-8", timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return _report("FAILED", name, f"It did not finish within {_TIMEOUT:.0f} seconds.")
    if ended.returncode == 0:
        return _report("ok", name, _last_line(ended.stdout))
    error = _last_line(ended.stderr)
    if ended.returncode != 1:  # that of an exception; others end without a message
        error = f"It ended with exit code {ended.returncode}. {error}"
    reason = error.partition(f"{LeftOut.__name__}: ")[2]
    return _report("left out", name, reason) if reason else _report("FAILED", name, error)


def _report(how: str, name: str, text: str) -> int:
    sys.stdout.write(f"{how:8}  {name:9}  {text}\n")
    sys.stdout.flush()
    return int(how == "FAILED")


def _last_line(text: str) -> str:
    """Return the last line of a program's output, ignoring its bundle's loader."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("[PYI-")]
    return lines[-1] if lines else ""
