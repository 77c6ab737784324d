"""Reading and verifying the archives that a run has uploaded."""

from mydata_like.transfer.archive_reader import ArchiveFile, extract_member, verify_member

__all__ = ["ArchiveFile", "extract_member", "verify_member"]
