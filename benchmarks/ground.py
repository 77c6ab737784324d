"""The private sshd that serves every contestant of a case."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.arena import Link
from benchmarks.measure import find_children
from mydata_like.demo.sshd import PrivateSshd
from mydata_like.ssh.keys import create_key


@contextmanager
def open_sshd(directory: Path) -> Iterator[tuple[Link, tuple[int, ...]]]:
    """Run a private sshd; yield the way to it and its process id."""
    with PrivateSshd(directory) as sshd:
        key = create_key(directory / "user_key")
        sshd.authorize(key.public)
        known_hosts = directory / "known_hosts"
        known_hosts.write_text(f"[{sshd.host}]:{sshd.port} {sshd.host_key.line()}\n")
        link = Link(
            host=sshd.host,
            port=sshd.port,
            username=sshd.username,
            key_file=key.path,
            known_hosts=known_hosts,
            host_key=sshd.fingerprint,
        )
        yield link, tuple(find_children(str(directory / "sshd_config")))
