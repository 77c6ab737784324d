"""The versions of what security depends on."""

import re
import ssl
from importlib.metadata import version
from pathlib import Path

import pytest
import ssh.session

from mydata_like.hostos.dependencies import MISSING, UNKNOWN, describe_versions, list_libraries


def versions():
    return {(one.name, one.within): one.version for one in list_libraries()}


def test_every_openssl_is_reported_with_the_package_that_brings_it():
    found = {within: told for (name, within), told in versions().items() if name == "OpenSSL"}

    assert found.keys() == {"Python", "cryptography", "ssh-python"}
    assert f"OpenSSL {found['Python']}" == ssl.OPENSSL_VERSION
    assert all(re.match(r"\d+\.\d+\.\d+[a-z]* ", told) for told in found.values())


@pytest.mark.skipif(
    not (Path(ssh.session.__file__).parents[1] / "ssh_python.libs").is_dir(),
    reason="needs the wheel of ssh-python",
)
@pytest.mark.parametrize(
    ("library", "names", "form"),
    [("libssh", "libssh-*", "%s (c) "), ("OpenSSL", "libcrypto-*", "OpenSSL %s\0")],
)
def test_what_a_wheel_brings_is_reported_as_its_file_says(library, names, form):
    folder = Path(ssh.session.__file__).parents[1] / "ssh_python.libs"
    (file,) = folder.glob(names)

    assert (form % versions()[library, "ssh-python"]).encode() in file.read_bytes()


def test_all_that_is_named_is_installed_and_known():
    found = versions()

    assert not {MISSING, UNKNOWN} & set(found.values())
    assert found["paramiko", ""] == version("paramiko")
    assert {"Qt", "libssh", "SQLite", "zstd", "requests", "urllib3"} <= {name for name, _ in found}


def test_the_text_has_a_line_for_each_package_with_what_it_brings():
    lines = describe_versions().splitlines()

    assert len(lines) == len([one for one in list_libraries() if not one.within]) + 1
    form = r"ssh-python \S+ with libssh \d\S+, OpenSSL \d\S+ \d+ \w+ \d+"
    assert any(re.fullmatch(form, line) for line in lines)
