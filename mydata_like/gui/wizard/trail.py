"""Where in the wizard one is: the pages behind, this one, and those still to come."""

from collections.abc import Sequence

from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.wizard.verdict import Sign


class Trail(QFrame):
    """The names of the pages; signs and weights tell which are done."""

    def __init__(self, names: Sequence[str], parent: QWidget) -> None:
        super().__init__(parent)
        self.setAutoFillBackground(True)
        self.setBackgroundRole(QPalette.ColorRole.Base)
        column = QVBoxLayout(self)
        column.setSpacing(self.fontMetrics().height() // 2)
        self._rows: list[tuple[Sign, PlainLabel]] = []
        for number, name in enumerate(names, start=1):
            sign, label = Sign(self), PlainLabel(f"{number}  {name}", self)
            line = QHBoxLayout()
            line.addWidget(sign)
            line.addWidget(label, 1)
            column.addLayout(line)
            self._rows.append((sign, label))
        column.addStretch(1)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * 22)

    def show_place(self, place: int) -> None:
        """Mark the page of this index as the one that is shown."""
        for index, (sign, label) in enumerate(self._rows):
            if index < place:
                sign.show_icon("check", "good")
            else:
                sign.show_icon("right" if index == place else "")
            font = QFont(label.font())
            font.setBold(index == place)
            label.setFont(font)
