"""The deletion of a local file that a killed process has left unfinished."""

import logging
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from mydata_like.core.errors import SettingsError
from mydata_like.core.ports import Clock
from mydata_like.hostos.safe_delete import SafeDirectories, SafeDirectory
from mydata_like.state.state_files import (
    DeletionLogFile,
    find_unfinished_deletion,
)

logger = logging.getLogger(__name__)


def restore_unfinished(log: Path, root: bytes, sources: Iterable[bytes], clock: Clock) -> None:
    """Restore the name of a file that a killed process was about to delete.

    The data directory must be locked.
    """
    last = find_unfinished_deletion(log)
    if last is None:
        return
    with ExitStack() as stack:
        grounds = open_grounds(root, sources, stack)
        if grounds.restore(bytes.fromhex(last.key), last.aside):
            logger.info("%s was restored: its deletion had been interrupted", last.path)
            stack.enter_context(DeletionLogFile(log, clock)).restored(last)


def open_grounds(root: bytes, sources: Iterable[bytes], stack: ExitStack) -> SafeDirectories:
    """Open the data directory and the extra sources that still exist."""
    premises = [stack.enter_context(SafeDirectory(root))]
    for source in sources:
        # The folder of a source that is a single file contains other, unknown files.
        folder = source if Path(os.fsdecode(source)).is_dir() else source.rpartition(b"/")[0]
        with suppress(SettingsError):
            premises.append(stack.enter_context(SafeDirectory(folder, folder + b"/")))
    return SafeDirectories(premises)
