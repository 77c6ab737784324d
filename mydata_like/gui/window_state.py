"""The state that the window remembers: size, last page, columns and splitters."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from platformdirs import PlatformDirs
from PySide6.QtCore import QByteArray, QObject, QSettings, Qt, QTimer, Slot
from PySide6.QtWidgets import QHeaderView, QSplitter, QWidget

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import make_private_file

HOME = "MYDATA_LIKE_HOME"  # as in `app`, which takes too long to import before the window is shown


class WindowState(QSettings):
    """Values by name, in a small file of the program's state."""

    def __init__(self, parent: QObject | None = None) -> None:
        file = _find_file()
        with suppress(OSError, SettingsError):  # then nothing is remembered
            # Work-around: PySide6 6.11.3 makes files of QSettings with the mode that the umask
            # allows, but keeps the mode of an existing file.
            # No report known; see test_all_that_the_window_makes_is_private.
            # Remove when QSettings can be told the mode.
            make_private_file(file)
        super().__init__(str(file), QSettings.Format.IniFormat, parent)


class KeptColumns(QObject):
    """Remembers by name how the columns of a header are arranged.

    The arrangement of a hidden header is not kept, since the user has not chosen its size.
    """

    def __init__(self, name: str, header: QHeaderView, memory: WindowState) -> None:
        super().__init__(header)
        self._name = f"{name}/columns"
        self._header = header
        self._memory = memory
        # A header reports a new size before it has it.
        self._saving = QTimer(self, singleShot=True, interval=0)
        header.sectionMoved.connect(self._saving.start)
        header.sectionResized.connect(self._saving.start)
        self._saving.timeout.connect(self._save_if_seen)

    def restore(self) -> bool:
        """Restore the columns as the user left them; return whether a state was stored."""
        kept, count = self._memory.value(self._name), self._memory.value(f"{self._name}-count")
        if count is not None and str(count) != str(self._header.count()):
            return False  # Qt would show a column that was added since, even a hidden one
        return isinstance(kept, QByteArray) and self._header.restoreState(kept)

    def save(self) -> None:
        """Store how the columns are arranged."""
        self._memory.setValue(self._name, self._header.saveState())
        self._memory.setValue(f"{self._name}-count", self._header.count())

    @Slot()
    def _save_if_seen(self) -> None:
        if self._header.isVisible():
            self.save()


class KeptSplitter(QSplitter):
    """A splitter that remembers by name the sizes of its parts, none of which can be closed.

    `shares` are the stretch factors of the parts.
    """

    def __init__(
        self,
        name: str,
        memory: WindowState,
        parts: Sequence[QWidget],
        parent: QWidget,
        *,
        orientation: Qt.Orientation = Qt.Orientation.Vertical,
        shares: Sequence[int] = (),
        sizes: Sequence[int] = (),
    ) -> None:
        super().__init__(orientation, parent)
        self._name = f"{name}/halves"
        self._memory = memory
        self.setChildrenCollapsible(False)
        for part in parts:
            self.addWidget(part)
        for number, share in enumerate(shares):
            self.setStretchFactor(number, share)
        if sizes:
            self.setSizes(sizes)
        kept = memory.value(self._name)
        if isinstance(kept, QByteArray):
            self.restoreState(kept)
        self.splitterMoved.connect(self._save)

    @Slot()
    def _save(self) -> None:
        self._memory.setValue(self._name, self.saveState())


def _find_file() -> Path:
    home = os.environ.get(HOME)
    usual = PlatformDirs("mydata-like", appauthor=False).user_state_path
    return (Path(home) / "state" if home else usual) / "window.ini"
