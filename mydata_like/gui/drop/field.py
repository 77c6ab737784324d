"""A field of the main window."""

from PySide6.QtGui import QDragEnterEvent
from PySide6.QtWidgets import QLineEdit

from mydata_like.gui.drop.zone import local_paths


class Field(QLineEdit):
    """Leaves dragged files to what it lies on; other fields take their paths as text."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_paths(event.mimeData()):
            event.ignore()
        else:
            super().dragEnterEvent(event)
