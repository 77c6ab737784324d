"""Lets a widget accept dropped files and folders; file dialogs."""

import os
from collections.abc import Callable, Sequence
from typing import cast

from PySide6.QtCore import QEvent, QMimeData, QObject, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFileDialog, QLineEdit, QWidget

from mydata_like.gui.theme import colours
from mydata_like.gui.theme.widgets import LARGE


def local_paths(mime: QMimeData) -> list[bytes]:
    """Return the paths of the dragged files and folders that are on this computer."""
    return [os.fsencode(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]


class DropZone(QObject):
    """Accepts drops on a widget; `dropped` reports the paths as bytes."""

    dropped = Signal(object)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._frame = DropFrame(widget)
        self._paths: Sequence[bytes] = ()
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.DragEnter | QEvent.Type.DragMove:
                return self._weigh(cast("QDropEvent", event))
            case QEvent.Type.DragLeave:
                self._frame.hide()
            case QEvent.Type.Drop:
                return self._take(cast("QDropEvent", event))
            case QEvent.Type.Resize:
                self._frame.fit()
            case _:
                pass
        return super().eventFilter(watched, event)

    def _weigh(self, event: QDropEvent) -> bool:
        if not local_paths(event.mimeData()):
            return False
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self._frame.fit()
        self._frame.show()
        self._frame.raise_()
        return True

    def _take(self, event: QDropEvent) -> bool:
        self._frame.hide()
        paths = local_paths(event.mimeData())
        if not paths:
            return False
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        self._paths = paths
        QTimer.singleShot(0, self._tell)  # the source program waits until this returns
        return True

    @Slot()
    def _tell(self) -> None:
        self.dropped.emit(self._paths)


class DropFrame(QWidget):
    """The frame and the text that mark a drop target."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._below = parent
        self.hide()

    def fit(self) -> None:
        """Cover the whole widget."""
        self.setGeometry(self._below.rect())

    def paintEvent(self, event: QPaintEvent) -> None:
        step = self.fontMetrics().height() / 2
        veil = QColor(self.palette().window().color())
        veil.setAlphaF(0.85)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), veil)
        painter.setPen(QPen(colours.accent(), step / 3, Qt.PenStyle.DashLine))
        inner = QRectF(self.rect()).adjusted(step, step, -step, -step)
        painter.drawRoundedRect(inner, step, step)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * LARGE)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(self.palette().windowText().color())
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.tr("Drop to upload"))


class PathLineEdit(QLineEdit):
    """A text field that passes drops to its parent, where others insert the path as text."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_paths(event.mimeData()):
            event.ignore()
        else:
            super().dragEnterEvent(event)


Told = Callable[[str], object]


def choose_file(
    parent: QWidget, title: str, told: Told, *, start: str = "", kinds: Sequence[str] = ()
) -> None:
    """Open a dialog for an existing file, and report its path if one is chosen."""
    dialog = _make(parent, title, told, start)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    if kinds:
        dialog.setNameFilters(kinds)
    dialog.open()


def choose_folder(parent: QWidget, title: str, told: Told, *, start: str = "") -> None:
    """Open a dialog for an existing folder, and report its path if one is chosen."""
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
