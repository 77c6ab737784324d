"""Lets a person choose a file or a folder; the program goes on meanwhile."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

Told = Callable[[str], object]


def choose_file(
    parent: QWidget, title: str, told: Told, *, start: str = "", kinds: Sequence[str] = ()
) -> None:
    """Open a dialog for a file that there is; who chooses one has its path told."""
    dialog = _make(parent, title, told, start)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    if kinds:
        dialog.setNameFilters(kinds)
    dialog.open()


def choose_folder(parent: QWidget, title: str, told: Told, *, start: str = "") -> None:
    """Open a dialog for a folder that there is; who chooses one has its path told."""
    dialog = _make(parent, title, told, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.open()


def _make(parent: QWidget, title: str, told: Told, start: str) -> QFileDialog:
    dialog = QFileDialog(parent, title)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    if start:
        dialog.setDirectory(start)
    dialog.fileSelected.connect(told)
    return dialog
