"""A bucket as a destination without a server."""

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Self

from mydata_like.app.transports.connection_steps import UNMEASURED
from mydata_like.core.copy_arguments import BucketTarget
from mydata_like.core.destination_files import DestinationFiles
from mydata_like.core.frozen import frozen
from mydata_like.core.ports import Transport
from mydata_like.transfer.s3.bucket_files import AT_ONCE, BucketFiles, probe_bucket
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_configured_client
from mydata_like.transfer.s3.s3_transport import NewObjects, S3Transport
from mydata_like.transfer.temporary_files import owner_mark

if TYPE_CHECKING:
    from mydata_like.app.plain_destination import TransportParts

CHANNELS: Final = 16
PARTS_AT_ONCE: Final = 4  # of one channel
NOT_KEPT: Final = (
    "A bucket cannot hold symbolic links, empty folders or permissions: these are not copied."
)
NOT_CONDITIONAL: Final = (
    "This service does not obey If-None-Match: each key is looked up before an object is made, "
    "and an object that another program makes at the same moment would be replaced."
)
READ_BACK: Final = (
    "The service's ETags are no checksums, as with encryption by a key management service: each "
    "object is read back, so each byte travels twice. The service may charge for this."
)


@frozen()
class BucketPlace:
    """A bucket, or the objects below a prefix in it; `reads` means that proving reads them.

    `notes` are sentences on what is not possible there.
    """

    client: Any
    bucket: Bucket
    new: NewObjects = field(default_factory=lambda: NewObjects({}))
    reads: bool = False
    notes: tuple[str, ...] = (NOT_KEPT,)

    @classmethod
    def find(cls, target: BucketTarget) -> Self:
        """Return the place that a command line names, by the user's configuration for AWS' tools.

        Nothing is requested yet. Raises `SettingsError`.
        """
        connections = CHANNELS * PARTS_AT_ONCE + AT_ONCE
        options = S3Options(connections=connections)
        return cls(*open_configured_client(target.bucket, target.prefix, options))

    def probe(self) -> Self:
        """Return the place with what the service can do; an object is made there and removed."""
        conditional, attests = probe_bucket(self.client, self.bucket)
        notes = self.notes
        notes += () if conditional else (NOT_CONDITIONAL,)
        notes += () if attests else (READ_BACK,)
        return replace(self, new=NewObjects({}, conditional), reads=not attests, notes=notes)

    @property
    def reads_back(self) -> bool:
        return False  # what is to be said about this is a note

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"s3://{self.bucket.name}/{self.bucket.prefix}".rstrip("/")

    @property
    def path(self) -> bytes:
        """The prefix, as the path of a folder."""
        return self.bucket.prefix.encode()

    @property
    def identity(self) -> str:
        """Its identity for the ledger, with the service."""
        return f"{self.name} {self.bucket.endpoint}"

    @property
    def readers(self) -> int:
        """How many objects are read at once."""
        return AT_ONCE

    def open_above(self, files: DestinationFiles) -> tuple[Self, DestinationFiles] | None:
        """Return the place of the prefix above, and its objects; None for the whole bucket."""
        above = self.bucket.prefix.rpartition("/")[0]
        place = replace(self, bucket=replace(self.bucket, prefix=above))
        return (place, place.open_files()) if self.bucket.prefix else None

    def find_measured(self, access: "TransportParts", folder: str) -> tuple[None, str]:
        """Return why a speed test does not measure it."""
        return None, f"{UNMEASURED}: files are sent to object storage."

    def open_files(self) -> BucketFiles:
        """Return the access to its objects."""
        return BucketFiles(self.client, self.bucket, self.new, reads=self.reads)

    def open_transport(self, access: "TransportParts") -> Transport:
        """Return the transport to it; no channel is open yet."""
        return S3Transport(
            self.client,
            self.bucket,
            channels=max(access.settings.transfer.channels, CHANNELS),
            mark=owner_mark(access.owner),
            emit=access.emit,
            new=self.new,
        )
