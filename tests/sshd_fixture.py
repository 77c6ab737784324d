"""A private sshd for tests, endpoints on it, and hosts that allow less than a shell."""

import shutil
import stat
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.ssh.connect import connect
from mydata_like.ssh.keys import create_key
from mydata_like.ssh.session import Endpoint

needs_sshd = pytest.mark.sshd  # skipped where there is none; see tests/conftest.py
needs_limits = pytest.mark.skipif(
    not hasattr(psutil.Process, "rlimit") or not Path("/proc/self/fd").exists(),
    reason="needs limits that are set from outside",
)
STACKS = ("libssh", "paramiko")
STALL = 1.0  # seconds; what tests of stalled links wait for


def endpoint_of(sshd, directory, **changes):
    """Return an endpoint that reaches this server, its key pinned, ours let in."""
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
    """Connect, and close whatever happens."""
    session = connect(endpoint)
    try:
        yield session
    finally:
        session.close()


@contextmanager
def sshd_with(directory, *options, host="127.0.0.1"):
    """Run a server with these lines in its configuration."""
    with PrivateSshd(directory / "sshd", options=options, host=host) as sshd:
        yield sshd


def kill_commands(sshd):
    """Kill what all sessions run, each of which runs something; the sessions stay."""
    for pid in sshd.session_pids:
        with suppress(psutil.NoSuchProcess):  # a session of a test before that is just ending
            for process in psutil.Process(pid).children(recursive=True):
                if not process.children():
                    process.kill()


def let_start_no_more(sshd):
    """Leave the sessions of this moment with too few descriptors for one more command.

    A command that is just ending gives some back: then it has to be done once more.
    """
    for pid in sshd.session_pids:
        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            taken = {int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()}
            free = [number for number in range(len(taken) + 4) if number not in taken]
            session = psutil.Process(pid)
            _, most = session.rlimit(psutil.RLIMIT_NOFILE)
            session.rlimit(psutil.RLIMIT_NOFILE, (free[3], most))


def script(path, text):
    """Write an executable shell script; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def scp_only(directory):
    """Return options of a host whose shell permits `scp -t` and nothing else."""
    gate = script(
        directory / "scp_only",
        'case "$SSH_ORIGINAL_COMMAND" in\n'
        '  "scp "*" -t "* | "scp -t "*) exec $SSH_ORIGINAL_COMMAND ;;\n'
        '  *) echo "only scp is allowed here" >&2; exit 1 ;;\n'
        "esac\n",
    )
    return (f"ForceCommand {gate}",)


def sftp_only():
    """Return options of a host that permits SFTP and nothing else."""
    return ("ForceCommand internal-sftp",)


def no_login(directory):
    """Return options of a host whose accounts are not for logging in."""
    gate = script(directory / "nologin", "echo This account is not available.; exit 1\n")
    return (f"ForceCommand {gate}", "Subsystem none /bin/false")


def noisy(directory):
    """Return options of a host whose login scripts print something first."""
    gate = script(
        directory / "noisy",
        "echo Welcome to the cluster; printf 'no newline at the end: '\n"
        'echo loud >&2\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n',
    )
    return (f"ForceCommand {gate}",)


def with_programs(directory, **programs):
    """Return options of a host that has only these programs besides a few basic ones.

    A program's value is the path of what it runs, or of what comes with more words.
    """
    path = directory / "bin"
    path.mkdir()
    basic = "sh cat mkdir rm mv ls chmod touch test printf echo head wc rmdir dd cut tr sed awk env"
    for name in basic.split():
        if found := shutil.which(name):
            (path / name).symlink_to(found)
    for name, target in programs.items():
        script(path / name, f'exec {target} "$@"\n')
    gate = script(
        directory / "few_programs",
        f'PATH={path}; export PATH\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n',
    )
    return (f"ForceCommand {gate}",)
