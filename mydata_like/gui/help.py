"""Help: what the keys do, and what the program is made of."""

import html
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QTabWidget,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from mydata_like import __version__
from mydata_like.gui.look.icons import app_icon
from mydata_like.gui.look.labels import LARGE, PlainLabel
from mydata_like.system.components import PROGRAM, list_components


class HelpDialog(QDialog):
    """Two pages: the keys of the window's actions; the program, its version and its licences."""

    def __init__(self, actions: list[QAction], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Help"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        tabs = QTabWidget(self)
        tabs.addTab(self._show(_list_keys(actions), self.tr("Keys")), self.tr("&Keys"))
        tabs.addTab(self._make_about(), self.tr("&About"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(tabs)
        layout.addWidget(buttons)
        width = self.fontMetrics().averageCharWidth()
        self.resize(width * 80, width * 70)

    def _make_about(self) -> QWidget:
        page = QWidget(self)
        picture = QLabel(page)
        side = self.fontMetrics().height() * 3
        picture.setPixmap(app_icon().pixmap(side, side))
        name = PlainLabel(f"{PROGRAM} {__version__}", page)
        name.scale(LARGE, bold=True)
        top = QHBoxLayout()
        top.addWidget(picture)
        top.addWidget(name, 1)
        said = PlainLabel(
            self.tr("Carries research data from instruments to a MyTardis server."),
            page,
        )
        said.setWordWrap(True)
        layout = QVBoxLayout(page)
        layout.addLayout(top)
        layout.addWidget(said)
        layout.addWidget(PlainLabel(self.tr("It is built on:"), page))
        layout.addWidget(self._show(_list_licences(), self.tr("Licences")), 1)
        return page

    def _show(self, rows: Iterator[tuple[str, str]], name: str) -> QTextBrowser:
        """Return a table of two columns that can be read and copied."""
        text = QTextBrowser(self)
        text.setAccessibleName(name)
        text.setTabChangesFocus(True)
        cells = "".join(
            f"<tr><td style='padding-right: 2em'>{html.escape(left)}</td>"
            f"<td>{html.escape(right)}</td></tr>"
            for left, right in rows
        )
        text.setHtml(f"<table cellpadding='3'>{cells}</table>")
        return text


def _list_keys(actions: list[QAction]) -> Iterator[tuple[str, str]]:
    for action in actions:
        keys = action.shortcut().toString(action.shortcut().SequenceFormat.NativeText)
        if keys:
            yield action.text().replace("&", "").rstrip("…"), keys


def _list_licences() -> Iterator[tuple[str, str]]:
    """Yield what the program is built on, with version and licence as installed."""
    for component in list_components():
        yield f"{component.name} {component.version}", component.licence
