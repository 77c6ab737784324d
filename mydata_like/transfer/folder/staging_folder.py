"""A mounted folder that is the location of a storage box, and the marker that identifies it."""

from typing import Final, NamedTuple

from mydata_like.core.formatting import format_path

MARKER: Final = b".mydata-staging"  # the name of the file that identifies the folder


class StagingFolder(NamedTuple):
    """A folder that takes the place of a staging host.

    It counts only while its marker names this storage box and `location`, the path of the box on
    the server. An unmounted folder has no marker.
    """

    path: bytes
    box: str
    location: str

    @property
    def host(self) -> str:
        """The folder in messages, in the place of a host's name."""
        return format_path(self.path)

    @property
    def marker(self) -> bytes:
        """The content of the marker."""
        return f"storage box: {self.box}\nlocation: {self.location}\n".encode()

    def below(self, name: bytes) -> bytes:
        """Return the path of a file below the folder."""
        return self.path.rstrip(b"/") + b"/" + name
