"""The speed tests of this installation, one line of JSON each, the latest last."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mydata_like.core.parsing import parse_json
from mydata_like.settings.loading import load_limited
from mydata_like.settings.writing import write_private

logger = logging.getLogger(__name__)

KEPT: Final = 50
_MOST_LINES: Final = 1000  # that are looked at, of a file that somebody has edited
_LARGEST: Final = 4 * 1024 * 1024  # bytes; one speed test has about 10 kB


def keep_examination(file: Path, record: Mapping[str, object]) -> None:
    """Add a speed test, or more about the latest; the oldest go when there are too many.

    Raises SettingsError.
    """
    kept = load_examinations(file)
    if kept and "at" in record and kept[-1].get("at") == record["at"]:
        del kept[-1]
    kept = [*kept[-(KEPT - 1) :], record]
    lines = (json.dumps(each, ensure_ascii=False) + "\n" for each in kept)
    write_private(file, "".join(lines).encode())


def load_examinations(file: Path) -> list[Mapping[str, Any]]:
    """Return all speed tests that can be read, the latest last."""
    try:
        lines = load_limited(file, _LARGEST).splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return []
    found: list[Mapping[str, Any]] = []
    for line in lines[-_MOST_LINES:]:
        try:
            record = parse_json(line)
        except ValueError:
            continue  # it was cut off, or somebody has edited the file
        if isinstance(record, dict):
            found.append(record)
    return found
