"""The private sshd for all contestants of a case."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.arena import Link
from benchmarks.measure import find_children
from benchmarks.wire import Wire, open_wire
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.ssh.keys import create_key


class Ground(NamedTuple):
    """The private sshd and the network emulation in front of it: address and process ids."""

    link: Link
    servers: tuple[int, ...]
    wire: Wire | None
    carriers: tuple[int, ...]


@contextmanager
def open_sshd(directory: Path, wire: Wire | None = None) -> Iterator[Ground]:
    """Run a private sshd, optionally behind a network emulation."""
    with ExitStack() as stack:
        sshd = stack.enter_context(PrivateSshd(directory))
        key = create_key(directory / "user_key")
        sshd.authorize(key.public)
        port, carriers = sshd.port, []
        if wire:
            port, carrier = stack.enter_context(open_wire(wire, sshd.port))
            carriers.append(carrier)
        known_hosts = directory / "known_hosts"
        known_hosts.write_text(f"[{sshd.host}]:{port} {sshd.host_key.line()}\n")
        link = Link(
            host=sshd.host,
            port=port,
            username=sshd.username,
            key_file=key.path,
            known_hosts=known_hosts,
            host_key=sshd.fingerprint,
        )
        servers = find_children(str(directory / "sshd_config"))
        yield Ground(link, tuple(servers), wire, tuple(carriers))
