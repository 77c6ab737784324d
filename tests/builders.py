"""Files and folders for tests."""

import os
from pathlib import Path
from textwrap import dedent

from mydata_like.core.file_access import system_path


def a_file(path: Path, size: int = 3, modified: float | None = None) -> Path:
    """Write a file of `size` bytes, and create the folders above it; `modified` is its mtime."""
    place = Path(os.fsdecode(system_path(os.fsencode(path))))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes((b"abcdefgh" * (size // 8 + 1))[:size])
    if modified is not None:
        os.utime(place, (modified, modified))
    return path


def a_tree(root: Path, picture: str) -> Path:
    """Create the tree of an indented text: `name/` is a folder, `name | 12` a file of 12 bytes."""
    above = [(-1, root)]
    for line in dedent(picture).splitlines():
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        while above[-1][0] >= depth:
            above.pop()
        name, _, size = line.strip().partition(" | ")
        path = above[-1][1] / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            above.append((depth, path))
        else:
            a_file(path, int(size or 3))
    return root
