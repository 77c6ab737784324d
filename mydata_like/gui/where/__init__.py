"""Where local files are, what became of them, and whether they may be deleted."""
