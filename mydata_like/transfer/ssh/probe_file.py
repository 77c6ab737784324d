"""Inspects a test file in the staging area and removes it."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Final, NamedTuple

from mydata_like.core.errors import AccessDeniedError, RejectedError, UploaderError
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import PREAMBLE, HostCapabilities, probe, quote
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import Endpoint, SshSession
from mydata_like.transfer.ssh.remote_shell import MARK

# After `set`, $5 is the size; it is empty for a missing file.
_INSPECT: Final = b'set -f; set -- $(ls -ldn %b); echo "mydata:$5"; echo "mydata:$(%b < %b)"'


def require_login(endpoints: Iterable[Endpoint]) -> None:
    """Raise `AccessDeniedError` if every host refuses our key; other errors are ignored."""
    refusal = None
    for endpoint in endpoints:
        try:
            connect(endpoint).close()
        except AccessDeniedError as error:
            refusal = error
            continue
        except UploaderError:
            pass
        return
    if refusal is not None:
        raise refusal


class ProbeResult(NamedTuple):
    """The size and checksum of a remote file; None or empty if not available."""

    size: int | None
    checksum: str


class ProbeConnection:
    """A session with a staging host, to inspect files below a location."""

    def __init__(
        self, session: SshSession, location: bytes, capabilities: HostCapabilities
    ) -> None:
        self.session = session
        self.capabilities = capabilities
        self._location = location

    def inspect(self, name: bytes) -> ProbeResult:
        """Return the size and checksum of a file; the size of a missing file is None."""
        path = self._location.rstrip(b"/") + b"/" + name
        if self.capabilities.access == "shell":
            where, checksum = quote(path), self.capabilities.checksum or b":"
            script = PREAMBLE + _INSPECT % (where, checksum, where)
            output = self.session.run(b"exec sh -c " + quote(script)).output
            # Output of login scripts comes before it.
            size, _, rest = output.partition(MARK)[2].partition(MARK)
            word = b"".join(rest.split()[:1])
            return ProbeResult(parse_count(size.strip()), word.decode("ascii", "replace"))
        try:
            return ProbeResult(self.session.open_sftp().find_size(path), "")
        except RejectedError:
            return ProbeResult(None, "")

    def remove(self, name: bytes) -> bool:
        """Remove a file; return whether it is gone, which is unknown for a host with only scp."""
        path = self._location.rstrip(b"/") + b"/" + name
        try:
            if self.capabilities.access == "shell":
                return self.session.run(b"rm -f -- " + quote(path)).status == 0
            self.session.open_sftp().remove(path)
        except RejectedError:
            return False
        return True


@contextmanager
def open_probe(endpoint: Endpoint, location: bytes) -> Iterator[ProbeConnection]:
    """Yield a session with a staging host; raises the errors of connecting and probing."""
    session, capabilities = probe(partial(connect, endpoint), location)
    with closing(session):
        yield ProbeConnection(session, location, capabilities)
