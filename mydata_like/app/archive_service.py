"""Archives that a run has made, read again."""

from mydata_like.transfer.archive_reader import ArchiveFile, extract_member, verify_member

__all__ = ["ArchiveFile", "extract_member", "verify_member"]
