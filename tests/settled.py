"""Files that nothing has touched lately: those just written count as changing while read."""

import os
import time
from pathlib import Path

LAG_NS = 30_000_000  # a little more than what `transfer.reading` distrusts


def settle(*paths: Path) -> None:
    """Return once the files' time stamps are old enough for reading to trust them."""
    for path in paths:
        status = path.lstat()
        if time.time_ns() - status.st_mtime_ns < 10**10:
            os.utime(path, ns=(0, status.st_mtime_ns - 10**10), follow_symlinks=False)
        while time.time_ns() - path.lstat().st_ctime_ns < LAG_NS:
            pass
