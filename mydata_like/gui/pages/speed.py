"""The speed test's page, until there is one."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.pages.page import Desk, Page


class SpeedPage(Page):
    """Says that the speed test is still to come, and what helps meanwhile."""

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        del desk
        text = self.tr(
            "The speed test is not part of this version. "
            "The Overview shows how fast each stage of a run is."
        )
        label = PlainLabel(text, self)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.addWidget(label)
