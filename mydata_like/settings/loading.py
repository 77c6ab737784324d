"""Small files read whole, but never more of them than a limit."""

from pathlib import Path
from typing import Any

from mydata_like.core.parsing import LONGEST_FILE, parse_json
from mydata_like.settings.writing import require_plain


def load_limited(path: Path, limit: int = LONGEST_FILE) -> bytes:
    """Return what a file holds, at most `limit` bytes.

    Raises as `require_plain` does, OSError where it cannot be read, ValueError where it is larger.
    """
    require_plain(path)
    with path.open("rb") as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it is larger than {limit} bytes")
    return content


def load_json(path: Path) -> Any:
    """Return the value of a small JSON file; raises as `load_limited` does."""
    return parse_json(load_limited(path))
