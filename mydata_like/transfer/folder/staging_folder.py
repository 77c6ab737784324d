"""A mounted folder that is the location of a storage box, and the marker that identifies it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from mydata_like.core.errors import ServerUnavailableError, TransientError
from mydata_like.core.formatting import format_path
from mydata_like.transfer.worker_messages import STALLED
from mydata_like.transfer.worker_process import count_left_behind

MARKER: Final = b".mydata-staging"  # the name of the file that identifies the folder
_MOST_LEFT: Final = 16  # processes that are left behind before no more are started


class StagingFolder(NamedTuple):
    """A folder that takes the place of a staging host.

    It counts only while its marker names this storage box and `location`, the path of the box on
    the server. An unmounted folder has no marker. A process that touches a lost folder may wait for
    ever, so only processes do that which can be left behind.
    """

    path: bytes
    box: str
    location: str
    marker_name: bytes = MARKER
    marker_text: bytes = b""  # empty for the usual content

    @property
    def host(self) -> str:
        """The folder in messages, in the place of a host's name."""
        return format_path(self.path)

    @property
    def marker(self) -> bytes:
        """The content of the marker."""
        usual = f"storage box: {self.box}\nlocation: {self.location}\n"
        return self.marker_text or usual.encode()

    def below(self, name: bytes) -> bytes:
        """Return the path of a file below the folder."""
        return self.path.rstrip(b"/") + b"/" + name

    def require_ready(self) -> None:
        """Raise `ServerUnavailableError` if many processes wait for a lost folder."""
        if (count := count_left_behind()) >= _MOST_LEFT:
            raise ServerUnavailableError(
                f"The folder {self.host} does not respond: {count} processes wait for it and "
                "cannot be ended.",
                hint="Mount it again, or restart this computer.",
                code="staging.absent",
            )

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Raise `ServerUnavailableError` if a process gives no reply because of a lost folder."""
        try:
            yield
        except TransientError as error:
            if error.problem_code != STALLED:
                raise
            raise ServerUnavailableError(
                f"The folder {self.host} does not respond.",
                hint="Check its server and the network.",
                code="staging.absent",
            ) from error
