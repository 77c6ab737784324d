"""What this account and this system may do."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def _links_lead_somewhere() -> bool:
    with TemporaryDirectory() as folder:
        link = Path(folder, "link")
        try:
            link.symlink_to(folder)
        except OSError:  # Windows without the privilege
            return False
        return link.exists()


needs_links = pytest.mark.skipif(
    not _links_lead_somewhere(), reason="links need a privilege on Windows, and Wine has none"
)
