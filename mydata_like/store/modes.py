"""Takes the rights of other accounts from what an earlier version or another hand left open."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mydata_like.core.errors import Problem
from mydata_like.settings.atomic_write import PRIVATE_FILE, PRIVATE_FOLDER
from mydata_like.store.paths import Places
from mydata_like.store.state_files import NAMES

logger = logging.getLogger(__name__)

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
# The names of our files: a folder that the settings choose may hold others. The signal file is
# meant for others, and a private key that was exposed is refused rather than covered up.
_STATE: Final = (
    *("ledger-*.db*", "ledger-*.corrupt-*", "shard-*-of-*/ledger-*.db*", "uploader-uuid"),
    *("run-*.json", "run-*.lock", "shard-*-of-*/run-*.json", "shard-*-of-*/run-*.lock"),
    *("watch.json", "watch.lock", "window.ini", *NAMES),
)
_LOGS: Final = ("mydata-like*.log*",)
_SHOWN: Final = 3  # paths in the notice


def correct_modes(places: Places, state: Path) -> Problem | None:
    """Make our folders 0700 and our files 0600 where others have rights; tell what was changed.

    Left as they are: a folder that a user chose (by the settings, `--config` or the environment),
    files in a folder that others can write, and what belongs to another account. `state` is the
    folder of the state that the settings lead to.
    """
    if os.name != "posix":
        return None
    corrected = [path for path, mode in _find(places, state) if _correct(path, mode)]
    if not corrected:
        return None
    for path in corrected:
        logger.warning("Others had rights to %s; they have none any more", path)
    shown = ", ".join(map(str, corrected[:_SHOWN]))
    more = f" and {len(corrected) - _SHOWN:,} more" if len(corrected) > _SHOWN else ""
    return Problem(
        "files.exposed",
        f"Other accounts of this computer could read or change {shown}{more}; now they cannot.",
        "If that was not meant, find out who had access: the ledger and the logs name files.",
    )


def _find(places: Places, state: Path) -> Iterator[tuple[Path, int]]:
    """Yield what is ours with the mode that it should have, folders before what is in them."""
    usual = Places.standard()
    yield from ((folder, PRIVATE_FOLDER) for folder in (places.state, places.logs))
    yield from ((shard, PRIVATE_FOLDER) for shard in state.glob("shard-*-of-*"))
    if places.key_file == usual.key_file:
        yield places.key_file.parent.parent, PRIVATE_FOLDER
    yield places.key_file.parent, PRIVATE_FOLDER
    if places.config_file == usual.config_file:
        yield places.config_file.parent, PRIVATE_FOLDER
        yield places.config_file, PRIVATE_FILE
    hosts = places.known_hosts
    yield from ((path, PRIVATE_FILE) for path in hosts.parent.glob(f"{hosts.name}*"))
    for folder, names in ((state, _STATE), (places.logs, _LOGS)):
        for name in names:
            yield from ((path, PRIVATE_FILE) for path in folder.glob(name))


def _correct(path: Path, mode: int) -> bool:
    """Return whether a file or folder had to be given this mode, and has it now."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) or not _is_exposed(status):
            return False
        if not stat.S_ISDIR(status.st_mode) and _is_open(path.parent):
            return False
        path.chmod(mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        logger.warning("The rights to %s cannot be taken from others: %s", path, error)
        return False
    return True


def _is_exposed(status: os.stat_result) -> bool:
    usual = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
    return usual and status.st_uid == os.geteuid() and bool(status.st_mode & _OTHERS)


def _is_open(folder: Path) -> bool:
    """Return whether others could put another file in the place of one that is looked at."""
    return bool(folder.stat().st_mode & _WRITABLE)
