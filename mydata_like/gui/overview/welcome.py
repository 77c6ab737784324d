"""What the first page shows before anything is set up."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from mydata_like.gui.demonstration import is_installed
from mydata_like.gui.look.icons import app_icon
from mydata_like.gui.look.labels import LARGE, PlainLabel


class Welcome(QWidget):
    """One sentence, and two ways to begin."""

    set_up = Signal()
    demo = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._begin = QPushButton(self.tr("Set &up…"), self)
        self._met = False
        picture = QLabel(self)
        side = self.fontMetrics().height() * 6
        picture.setPixmap(app_icon().pixmap(side, side))
        layout = QVBoxLayout(self)
        layout.addStretch(2)
        layout.addWidget(picture, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self._make_title(), 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addLayout(self._make_text())
        layout.addSpacing(self.fontMetrics().height())
        layout.addLayout(self._make_buttons())
        layout.addStretch(3)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._met:  # later it would take the keys from whoever turns pages with them
            self._met = True
            self._begin.setFocus()

    def _make_title(self) -> PlainLabel:
        title = PlainLabel(self.tr("Your data, safe on the server"), self)
        title.scale(LARGE, bold=True)
        return title

    def _make_text(self) -> QHBoxLayout:
        text = PlainLabel(
            self.tr(
                "This program carries the files of an instrument to a MyTardis server, and proves "
                "that every byte arrived. Setting it up takes five short steps."
            ),
            self,
        )
        text.setWordWrap(True)
        text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(text, 2)
        row.addStretch(1)
        return row

    def _make_buttons(self) -> QHBoxLayout:
        self._begin.setDefault(True)
        demo = QPushButton(self.tr("Try the de&mo"), self)
        demo.setToolTip(self.tr("Upload sample data to a server inside this program"))
        self._begin.clicked.connect(self.set_up)
        demo.setVisible(is_installed())
        demo.clicked.connect(self.demo)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._begin)
        row.addWidget(demo)
        row.addStretch(1)
        return row
