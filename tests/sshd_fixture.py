"""A private sshd for tests, its endpoints, and options of hosts with restrictions."""

import os
import stat
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import create_key
from mydata_like.ssh.session import Endpoint
from tests.openssh import on_host, open_ssh, run_on_host

needs_sshd = pytest.mark.sshd  # skipped if sshd is missing; see tests/conftest.py
needs_limits = pytest.mark.skipif(
    os.name != "nt"
    and (not hasattr(psutil.Process, "rlimit") or not Path("/proc/self/fd").exists()),
    reason="needs resource limits set by another process",
)
STACKS = ("libssh", "paramiko")
STALL = 1.0  # seconds that tests of stalled connections wait


def endpoint_of(sshd, directory, **changes):
    """Return an endpoint of this server with its host key and a new authorized key."""
    key = create_key(directory / f"key_{len(list(directory.iterdir()))}" / "id_ed25519")
    sshd.authorize(key.public)
    fields = {
        "host": sshd.host,
        "port": sshd.port,
        "username": sshd.username,
        "key_file": key.path,
        "known_hosts": directory / "known_hosts",
        "host_keys": (sshd.fingerprint,),
        "connect_timeout": 5.0,
        "stall_timeout": 20.0,
    }
    return Endpoint(**(fields | changes))


@contextmanager
def open_session(endpoint):
    """Yield a session, and close it at the end."""
    session = connect(endpoint)
    try:
        yield session
    finally:
        session.close()


@contextmanager
def sshd_with(directory, *options, host="127.0.0.1"):
    """Run a server with these configuration lines."""
    with open_ssh(directory / "sshd", options=options, host=host) as sshd:
        yield sshd


NO_PYTHON = {"python3": "exit 127\n"}  # of a host that proves files by other programs


def script(path, text):
    """Write an executable shell script on the computer of the sshd; return its path there."""
    there = on_host(path)
    there.parent.mkdir(parents=True, exist_ok=True)
    there.unlink(missing_ok=True)  # it may be a link to a program of this computer
    there.write_text("#!/bin/sh\n" + text)
    there.chmod(there.stat().st_mode | stat.S_IXUSR)
    return there


def first_in_path(folder, **programs):
    """Return options of a host that finds these programs first."""
    (folder / "bin").mkdir()
    for name, text in programs.items():
        script(folder / "bin" / name, text)
    return with_path(folder, f"{folder / 'bin'}:$PATH")


def with_path(folder, path):
    """Return options of a host whose programs are there."""
    text = f'PATH={path}; export PATH\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    return (f"ForceCommand {script(folder / 'gate', text)}",)


def scp_only(directory):
    """Return options of a host that permits only `scp -t`."""
    gate = script(
        directory / "scp_only",
        'case "$SSH_ORIGINAL_COMMAND" in\n'
        '  "scp "*" -t "* | "scp -t "*) exec $SSH_ORIGINAL_COMMAND ;;\n'
        '  *) echo "only scp is allowed here" >&2; exit 1 ;;\n'
        "esac\n",
    )
    return (f"ForceCommand {gate}",)


def sftp_only():
    """Return options of a host that permits only SFTP."""
    return ("ForceCommand internal-sftp",)


def no_login(directory):
    """Return options of a host that permits no logins."""
    gate = script(directory / "nologin", "echo This account is not available.; exit 1\n")
    return (f"ForceCommand {gate}", "Subsystem none /bin/false")


def noisy(directory):
    """Return options of a host whose login scripts print something and set what tools read.

    Each program that starts there prints a warning.
    """
    gate = script(
        directory / "noisy",
        "echo Welcome to the cluster; printf 'no newline at the end: '\n"
        'echo "bash: warning: setlocale: LC_ALL: cannot change locale (xx_XX.UTF-8)" >&2\n'
        "export LC_ALL=xx_XX.UTF-8 LD_PRELOAD=/nonexistent.so CDPATH=/tmp:/\n"
        "export BLOCK_SIZE=K LS_BLOCK_SIZE=K POSIXLY_CORRECT=1 TIME_STYLE=full-iso\n"
        'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n',
    )
    return (f"ForceCommand {gate}",)


def with_programs(directory, **programs):
    """Return options of a host that has only a few basic programs and these.

    The value of a program is the command that it runs.
    """
    path = on_host(directory / "bin")
    path.mkdir()
    basic = "sh cat mkdir rm mv ls chmod touch test printf echo head rmdir dd cut tr sed awk env"
    link = f'found=$(env which "$name") && ln -s "$found" "{path}"'
    run_on_host("sh", "-c", f"for name in {basic}; do {link}; done")
    for name, target in programs.items():
        script(directory / "bin" / name, f'exec {target} "$@"\n')
    gate = script(
        directory / "few_programs",
        f'PATH={path}; export PATH\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n',
    )
    return (f"ForceCommand {gate}",)
