"""The uploader's key pair."""

import base64
import re
import shutil
import struct
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa

from mydata_like.core.errors import SettingsError
from mydata_like.ssh.keys import PublicKey, create_key, ensure_key, load_key
from tests.umasks import has_mode, posix_modes


def write_private(path, key, encoding=form.PrivateFormat.TraditionalOpenSSL, secret=None):
    lock = form.BestAvailableEncryption(secret) if secret else form.NoEncryption()
    path.write_bytes(key.private_bytes(form.Encoding.PEM, encoding, lock))
    path.chmod(0o600)
    return path


def test_a_new_key_is_ed25519_and_its_owners_alone(tmp_path):
    key = create_key(tmp_path / "ssh" / "id")
    assert key.public.type == "ssh-ed25519"
    assert has_mode(key.path, 0o600)
    assert has_mode(key.path.parent, 0o700)


def test_a_key_is_loaded_as_it_was_made(tmp_path):
    made = create_key(tmp_path / "id")
    assert load_key(tmp_path / "id") == made
    assert ensure_key(tmp_path / "id") == made


def test_an_existing_file_is_never_overwritten(tmp_path):
    (tmp_path / "id").write_text("precious")
    with pytest.raises(FileExistsError):
        create_key(tmp_path / "id")
    assert (tmp_path / "id").read_text() == "precious"


def test_a_missing_key_is_made_at_first_need(tmp_path):
    assert ensure_key(tmp_path / "id") == load_key(tmp_path / "id")


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_openssh_agrees_on_key_and_fingerprints(tmp_path):
    key = create_key(tmp_path / "id")

    def ask(*options):
        return subprocess.run(
            ["ssh-keygen", *options, "-f", key.path], capture_output=True, text=True, check=True
        ).stdout

    assert ask("-y").split()[:2] == key.public.line().split()
    (tmp_path / "id.pub").write_text(key.public.line("a comment") + "\n")
    assert ask("-l").split()[1] == key.public.fingerprint
    assert ask("-l", "-E", "md5").split()[1] == "MD5:" + key.public.md5_fingerprint


def test_both_forms_of_the_fingerprint_look_as_known():
    key = PublicKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519" + bytes(36))
    assert re.fullmatch("SHA256:[A-Za-z0-9+/]{43}", key.fingerprint)
    assert re.fullmatch("([0-9a-f]{2}:){15}[0-9a-f]{2}", key.md5_fingerprint)


def test_the_public_line_carries_its_comment(tmp_path):
    key = create_key(tmp_path / "id").public
    assert key.line("mydata on LAB-7").endswith(" mydata on LAB-7")
    assert PublicKey.parse(key.line("any words here")) == key


@pytest.mark.parametrize("line", ["", "ssh-rsa", "ssh-rsa ????", "ssh-rsa AAAAC3NzaC1lZDI1NTE5"])
def test_an_invalid_public_key_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        PublicKey.parse(line)


def test_an_rsa_key_of_an_older_program_is_used_in_place(tmp_path):
    path = write_private(tmp_path / "MyData", rsa.generate_private_key(65537, 2048))
    assert load_key(path).public.type == "ssh-rsa"


def test_an_ecdsa_key_is_understood(tmp_path):
    path = write_private(tmp_path / "id", ec.generate_private_key(ec.SECP256R1()))
    assert load_key(path).public.type == "ecdsa-sha2-nistp256"


@posix_modes
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_can_read_is_refused_with_the_remedy(tmp_path, mode):
    path = create_key(tmp_path / "id").path
    path.chmod(mode)
    with pytest.raises(SettingsError) as raised:
        load_key(path)
    assert raised.value.problem_code == "key.exposed"
    assert f"chmod 600 {path}" in raised.value.hint


@pytest.mark.parametrize("openssh", [True, False])
def test_a_key_with_a_passphrase_is_refused(tmp_path, openssh):
    encoding = form.PrivateFormat.OpenSSH if openssh else form.PrivateFormat.PKCS8
    key = ec.generate_private_key(ec.SECP256R1())
    path = write_private(tmp_path / "id", key, encoding, b"secret")
    with pytest.raises(SettingsError) as raised:
        load_key(path)
    assert raised.value.problem_code == "key.passphrase"


def test_an_invalid_key_is_refused(tmp_path):
    path = tmp_path / "id"
    for content in (b"", b"hello", b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(SettingsError) as raised:
            load_key(path)
        assert raised.value.problem_code == "key.unusable"


@pytest.mark.parametrize("place", [0, 8, 20, 60, 98, 102, 140, 160, 200])
def test_a_damaged_key_of_ours_is_refused(tmp_path, place):
    path = create_key(tmp_path / "id").path
    begin, *lines, end = path.read_bytes().splitlines()
    content = bytearray(base64.b64decode(b"".join(lines)))
    content[place] ^= 0x55
    path.write_bytes(b"\n".join((begin, base64.b64encode(content), end)))
    with pytest.raises(SettingsError) as raised:
        load_key(path)
    assert raised.value.problem_code in ("key.unusable", "key.passphrase")


@pytest.mark.process
def test_a_channel_worker_starts_without_what_takes_long_to_import(tmp_path):
    create_key(tmp_path / "id")
    spared = {"cryptography", "filelock", "paramiko", "mydata_like.core.model"}
    script = (
        "import sys, pathlib, mydata_like.transfer.worker; from mydata_like.ssh import connect; "
        f"connect.load_key(pathlib.Path(sys.argv[1])); sys.exit(str({spared} & {{*sys.modules}}))"
    )
    asked = [sys.executable, "-c", script, tmp_path / "id"]
    assert subprocess.run(asked, capture_output=True, text=True).stderr.strip() == "set()"


@pytest.mark.slow
def test_a_dsa_key_is_refused(tmp_path):
    path = write_private(tmp_path / "id", dsa.generate_private_key(2048))
    with pytest.raises(SettingsError, match="usable private key"):
        load_key(path)


def test_a_missing_key_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read") as raised:
        load_key(tmp_path / "nowhere")
    assert raised.value.problem_code == "key.unreadable"


def write_device_key(path):
    """Write what ssh-keygen writes for a key on a FIDO device: its public half and a name."""

    def text(value):
        return struct.pack(">I", len(value)) + value

    blob = text(b"sk-ssh-ed25519@openssh.com") + text(bytes(32)) + text(b"ssh:")
    head = b"openssh-key-v1\0" + text(b"none") + text(b"none") + text(b"") + struct.pack(">I", 1)
    body = base64.encodebytes(head + text(blob) + text(b"what only the device understands"))
    lines = (b"-----BEGIN OPENSSH PRIVATE KEY-----\n", body, b"-----END OPENSSH PRIVATE KEY-----\n")
    path.write_bytes(b"".join(lines))
    path.chmod(0o600)
    return blob


def test_a_key_on_a_device_is_named_by_its_file(tmp_path):
    blob = write_device_key(tmp_path / "key")
    found = load_key(tmp_path / "key")
    assert found.public == ("sk-ssh-ed25519@openssh.com", blob)
    assert not found.whole


def test_a_truncated_file_of_a_key_on_a_device_is_not_a_key(tmp_path):
    write_device_key(tmp_path / "key")
    whole = (tmp_path / "key").read_bytes()
    for length in range(40, 200, 20):
        (tmp_path / "key").write_bytes(whole[:length])
        with pytest.raises(SettingsError):
            load_key(tmp_path / "key")


def test_a_public_half_names_a_key_that_an_agent_keeps(tmp_path):
    public = create_key(tmp_path / "key").public
    (tmp_path / "key.pub").write_text(public.line("somebody") + "\n")
    (tmp_path / "key.pub").chmod(0o644)
    found = load_key(tmp_path / "key.pub")
    assert (found.public, found.whole) == (public, False)
