"""A line that says what was done, and takes it back for a while."""

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel

SHOWN = 10_000  # milliseconds


class Toast(QFrame):
    """Hidden until there is something to take back; `undone` is told when a person does."""

    undone = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._said = PlainLabel("", self)
        self._undo = QPushButton(icon("undo"), self.tr("Undo"), self)
        self._timer = QTimer(self, singleShot=True, interval=SHOWN)
        self.setFrameShape(QFrame.Shape.StyledPanel)
        layout = QHBoxLayout(self)
        layout.addWidget(self._said, 1, Qt.AlignmentFlag.AlignVCenter)
        layout.addWidget(self._undo)
        self._undo.clicked.connect(self._take_back)
        self._timer.timeout.connect(self.hide)
        self.hide()

    def say(self, text: str) -> None:
        """Say what was done; the time to take it back begins."""
        self._said.setText(text)
        self.show()
        self._timer.start()

    @Slot()
    def _take_back(self) -> None:
        self._timer.stop()
        self.hide()
        self.undone.emit()
