"""The status of local files, and which of them may be deleted."""
