"""Notification of changes below a folder, as far as the system provides it."""

import logging
import os
from pathlib import Path
from typing import Final

from watchdog.events import (
    EVENT_TYPE_CLOSED,
    EVENT_TYPE_CREATED,
    EVENT_TYPE_MODIFIED,
    EVENT_TYPE_MOVED,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from mydata_like.core.data_directory import is_lock_name

logger = logging.getLogger(__name__)

# Reading does not count as a change: our own runs read.
_CHANGES: Final = frozenset(
    {EVENT_TYPE_CLOSED, EVENT_TYPE_CREATED, EVENT_TYPE_MODIFIED, EVENT_TYPE_MOVED}
)
_TIMEOUT: Final = 2.0  # seconds for the system's observer to stop


class FolderWatcher(FileSystemEventHandler):
    """Records that there was a change; network shares and full system tables report none."""

    def __init__(self, folder: Path) -> None:
        self._seen = False
        self._observer: BaseObserver | None = None
        self.problem = ""
        try:
            folder.stat()  # without a folder, the library leaks a thread
            observer = Observer()
            observer.daemon = True
            observer.schedule(self, str(folder), recursive=True)
            observer.start()
            self._observer = observer
        except (OSError, RuntimeError) as error:
            self.problem = f"The system does not report changes in {folder}: {error}"
            logger.warning("%s", self.problem)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Record a change."""
        if event.event_type in _CHANGES and not _is_ours(event):
            self._seen = True

    def take(self) -> bool:
        """Return whether something has changed since the last call."""
        seen, self._seen = self._seen, False
        return seen

    def close(self) -> None:
        """Stop watching."""
        if self._observer:
            self._observer.stop()
            self._observer.join(_TIMEOUT)


def _is_ours(event: FileSystemEvent) -> bool:
    """Return whether only one of our lock files has changed, or the folder that contains it.

    A new file in a folder has an event of its own.
    """
    if event.is_directory:
        return event.event_type == EVENT_TYPE_MODIFIED
    return all(
        is_lock_name(os.path.basename(os.fsencode(path)))  # noqa: PTH119 - bytes
        for path in (event.src_path, event.dest_path)
        if path
    )
