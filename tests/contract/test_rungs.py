"""What the probe finds on hosts that allow more or less, against a real sshd."""

import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat

import pytest

from mydata_like.core.errors import StagingError, TransientError
from mydata_like.ssh.capabilities import probe
from mydata_like.ssh.connect import connect
from mydata_like.transfer.pool import count_cpus
from tests.openssh import on_host, which
from tests.sshd_fixture import (
    STACKS,
    endpoint_of,
    needs_sshd,
    no_login,
    noisy,
    scp_only,
    script,
    sftp_only,
    sshd_with,
    with_programs,
)

pytestmark = [needs_sshd, pytest.mark.parametrize("stack", STACKS)]


def find(endpoint, location):
    """Return the capabilities of a host."""
    session, found = probe(partial(connect, endpoint), bytes(location))
    session.close()
    return found


def probe_with(tmp_path, stack, *options, location=None):
    """Probe a host with these options; return what was found. Nothing may be left behind."""
    location = location or on_host(tmp_path / "staging")
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, *options) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        found = find(endpoint, location)
    assert list(location.iterdir()) == []
    return found


def test_a_plain_host_has_a_shell_and_its_tools(tmp_path, stack):
    found = probe_with(tmp_path, stack)
    assert found[0] == "shell"
    assert (found.tar, found.checksum, found.cpus) == ("gnu", b"md5sum", count_cpus())
    assert found.sha256 == b"sha256sum"


def test_a_missing_location_is_made_for_its_group(tmp_path, stack):
    location = on_host(tmp_path) / "a" / 'b\'s "odd" $(touch x) place%20'
    probe_with(tmp_path, stack, location=location)
    assert stat.S_IMODE(location.stat().st_mode) == 0o2770


def test_noise_of_login_scripts_does_not_matter(tmp_path, stack):
    found = probe_with(tmp_path, stack, *noisy(tmp_path))
    assert (found.access, found.tar) == ("shell", "gnu")


def test_a_host_without_tar_still_has_a_shell(tmp_path, stack):
    found = probe_with(tmp_path, stack, *with_programs(tmp_path))
    assert (found.access, found.tar, found.checksum, found.cpus) == ("shell", "", b"", None)
    assert "no tar extracts" in found.why


@pytest.mark.skipif(not which("zstd"), reason="needs zstd")
@pytest.mark.parametrize("zstd", [which("zstd"), "echo zstd", "cat #"])
def test_a_zstd_counts_where_it_unpacks(tmp_path, stack, zstd):
    found = probe_with(tmp_path, stack, *with_programs(tmp_path, zstd=zstd))
    assert found.zstd == (zstd == which("zstd"))


def test_a_tar_that_does_nothing_does_not_count(tmp_path, stack):
    found = probe_with(tmp_path, stack, *with_programs(tmp_path, tar="echo tar (GNU tar)"))
    assert (found.access, found.tar) == ("shell", "")


@pytest.mark.skipif(not which("busybox"), reason="needs busybox")
def test_busybox_is_known(tmp_path, stack):
    options = with_programs(tmp_path, tar="/bin/busybox tar", md5sum="/bin/busybox md5sum")
    found = probe_with(tmp_path, stack, *options)
    assert (found.access, found.tar, found.checksum) == ("shell", "busybox", b"md5sum")


@pytest.mark.skipif(not which("bsdtar"), reason="needs bsdtar")
def test_bsdtar_is_known(tmp_path, stack):
    options = with_programs(tmp_path, tar="/usr/bin/bsdtar", openssl="/usr/bin/openssl")
    found = probe_with(tmp_path, stack, *options)
    assert (found.access, found.tar, found.checksum) == ("shell", "bsd", b"openssl md5 -r")
    assert found.sha256 == b"openssl sha256 -r"


PRINTED = "echo 1e6a3c0d92a7 #"
# Debian's is in the package of Perl, which a small system lacks.
SHASUM = f"""sh -c 'shift; exec {which("sha256sum")} "$@"'"""


@pytest.mark.parametrize(
    ("programs", "command"),
    [
        ({}, b""),
        ({"sha256sum": PRINTED, "shasum": SHASUM}, b"shasum -a 256"),
        ({"sha256sum": which("md5sum"), "sha256": f"{which('sha256sum')} #"}, b"sha256 -q"),
    ],
    ids=["none", "shasum", "sha256"],
)
def test_a_program_counts_that_prints_the_right_checksum(tmp_path, stack, programs, command):
    found = probe_with(tmp_path, stack, *with_programs(tmp_path, **programs))
    assert (found.access, found.checksum, found.sha256) == ("shell", b"", command)


def test_only_scp_is_found_out_and_reported(tmp_path, stack):
    (tmp_path / "staging").mkdir()
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, *scp_only(tmp_path)) as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        found = find(endpoint, on_host(tmp_path / "staging"))
    assert found.access == "scp"
    assert "only scp is allowed here" in found.why
    assert [entry.name for entry in (tmp_path / "staging").iterdir()] == [".mydata-probe-scp"]


def test_only_sftp_is_found_out(tmp_path, stack):
    found = probe_with(tmp_path, stack, *sftp_only())
    assert found.access == "sftp"
    assert stat.S_IMODE(on_host(tmp_path / "staging").stat().st_mode) == 0o2770


def test_sessions_that_probe_at_once_do_not_disturb_each_other(tmp_path, stack):
    location = on_host(tmp_path / "staging")
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, *sftp_only()) as sshd, ThreadPoolExecutor(3) as threads:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        found = list(threads.map(find, repeat(endpoint, 15), repeat(location)))
    assert {host.access for host in found} == {"sftp"}
    assert list((tmp_path / "staging").iterdir()) == []


def refusing(directory, text):
    """Return options of a host on which every command runs this script instead."""
    return (f"ForceCommand exec {script(directory / 'instead', text)}", "Subsystem none /bin/false")


def test_no_rung_at_all_is_reported_with_the_hosts_own_words(tmp_path, stack):
    with pytest.raises(StagingError) as raised:
        probe_with(tmp_path, stack, *no_login(tmp_path))
    assert "This account is not available" in raised.value.message
    for name in ("a shell", "scp", "SFTP"):
        assert name in raised.value.message


def test_a_text_about_passwords_is_no_expired_password(tmp_path, stack):
    said = "echo 'Please change your password regularly. Maintenance until noon.'; exit 1\n"
    with pytest.raises(StagingError) as raised:
        probe_with(tmp_path, stack, *refusing(tmp_path, said))
    assert "Maintenance" in raised.value.message
    assert raised.value.problem_code != "ssh.expired"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("kill -9 $$", "no output"),
        ("echo 'bash: fork: retry: Resource temporarily unavailable' >&2; exit 254", "bash: fork"),
    ],
    ids=["killed", "no process"],
)
def test_a_host_on_which_nothing_answers_says_what_each_way_did(tmp_path, stack, command, said):
    with pytest.raises(TransientError) as raised:
        probe_with(tmp_path, stack, *refusing(tmp_path, command + "\n"))
    assert f"a shell did not answer ({said}" in raised.value.message
    assert "SFTP was refused" in raised.value.message
    assert "scp was refused" in raised.value.message
    assert "login scripts" in raised.value.hint


@pytest.mark.parametrize("rung", ["shell", "scp", "sftp"])
def test_a_location_that_takes_no_files_is_named(tmp_path, stack, rung):
    blocked = on_host(tmp_path / "blocked")
    blocked.write_text("a file where the folder should be")
    options = {"shell": (), "scp": scp_only(tmp_path), "sftp": sftp_only()}[rung]
    with pytest.raises(StagingError) as raised:
        probe_with(tmp_path, stack, *options, location=blocked)
    assert str(blocked) in raised.value.message


def test_a_location_of_two_lines_is_refused_unasked(tmp_path, stack):
    with pytest.raises(StagingError):
        probe_with(tmp_path, stack, location=on_host(tmp_path) / "two\nlines")
    assert not (on_host(tmp_path) / "two\nlines").exists()
