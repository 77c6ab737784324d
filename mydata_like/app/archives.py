"""Archives that a run has made, read again."""

from mydata_like.transfer.extraction import extract_member, verify_member
from mydata_like.transfer.unarchive import ArchiveFile

__all__ = ["ArchiveFile", "extract_member", "verify_member"]
