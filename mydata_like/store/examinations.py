"""The speed tests of this installation, one line of JSON each, the latest last."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mydata_like.settings.writing import read_plain, write_private

logger = logging.getLogger(__name__)

KEPT: Final = 50


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
        lines = read_plain(file).decode("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("%s cannot be read: %s", file, error)
        return []
    found: list[Mapping[str, Any]] = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue  # it was cut off, or somebody has edited the file
        if isinstance(record, dict):
            found.append(record)
    return found
