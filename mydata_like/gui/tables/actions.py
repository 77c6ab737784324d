"""What can be done with a file or folder of a table, by menu and by button."""

import os
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu, QStyle, QToolBar, QToolButton, QWidget

from mydata_like.core.queries import FileRow, Row
from mydata_like.gui.controller import Controller
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.pages.page import Wish

AGAIN = ("failed", "waiting", "folder-failed")  # states in which a person may want another try
FOLDER_STATES = ("folder-failed", "folder-skipped")


class RowActions(QObject):
    """Actions on the rows that are selected; only what makes sense for them is enabled."""

    wanted = Signal(object)  # a Wish: another page

    def __init__(self, controller: Controller, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._rows: Sequence[FileRow] = ()
        self._retry = QAction(icon("retry"), self.tr("Try again"), self)
        self._open = QAction(icon("folder"), self.tr("Open folder"), self)
        self._web = QAction(icon("server"), self.tr("Open on server"), self)
        self._where = QAction(icon("where"), self.tr("Where is it?"), self)
        self._copy = QAction(icon("copy"), self.tr("Copy path"), self)
        self._actions = (self._retry, self._open, self._web, self._where, self._copy)
        self._connect()
        self.show_rows(())

    def show_rows(self, selected: Sequence[Row]) -> None:
        """Act on these rows from now on."""
        self._rows = rows = [row for row in selected if isinstance(row, FileRow)]
        one = len(rows) == 1
        self._enable_retry()
        self._open.setEnabled(one)
        self._web.setEnabled(one and rows[0].dataset is not None)
        self._where.setEnabled(one)
        self._copy.setEnabled(bool(rows))

    @Slot()
    def _enable_retry(self) -> None:
        left = any(row.state in AGAIN for row in self._rows)
        self._retry.setEnabled(left and self._controller.can_retry)

    @Slot(object)
    def choose(self, row: Row) -> None:
        """Show the journey of a row that was double-clicked, or entered."""
        if isinstance(row, FileRow):
            self.wanted.emit(Wish("where", os.fsdecode(row.key)))

    def fill(self, menu: QMenu) -> None:
        """Add the actions to a menu."""
        menu.addActions(self._actions)

    def make_buttons(self, parent: QWidget) -> QToolBar:
        """Return a row of buttons with the actions."""
        return action_bar(self._actions, parent)

    def _connect(self) -> None:
        self._controller.run_changed.connect(self._enable_retry)
        self._retry.triggered.connect(self._try_again)
        self._open.triggered.connect(self._open_folder)
        self._web.triggered.connect(self._open_on_server)
        self._where.triggered.connect(self._ask_where)
        self._copy.triggered.connect(self._copy_paths)

    @Slot()
    def _try_again(self) -> None:
        for row in self._rows:
            if row.state in AGAIN:
                self._controller.retry(row.key)

    @Slot()
    def _open_folder(self) -> None:
        row = self._rows[0]
        path = path_of(self._controller, row.key)
        self._controller.open_path(path if row.state in FOLDER_STATES else path.parent)

    @Slot()
    def _open_on_server(self) -> None:
        self._controller.open_address(dataset_address(self._controller, self._rows[0].dataset))

    @Slot()
    def _ask_where(self) -> None:
        self.choose(self._rows[0])

    @Slot()
    def _copy_paths(self) -> None:
        paths = [words.plain(bytes(path_of(self._controller, row.key))) for row in self._rows]
        QGuiApplication.clipboard().setText("\n".join(paths))


def action_bar(actions: Sequence[QAction], parent: QWidget) -> QToolBar:
    """Return a row of buttons for actions; those that do not fit are in its menu."""
    bar = QToolBar(parent)
    side = bar.style().pixelMetric(QStyle.PixelMetric.PM_SmallIconSize)
    bar.setIconSize(QSize(side, side))
    bar.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    bar.addActions(actions)
    for button in bar.findChildren(QToolButton):  # else no key would lead to them
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return bar


def action_button(action: QAction, parent: QWidget) -> QToolButton:
    """Return a flat button for an action, as such buttons are everywhere in the window."""
    button = QToolButton(parent)
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    button.setAutoRaise(True)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    button.setDefaultAction(action)
    return button


def path_of(controller: Controller, key: bytes) -> Path:
    """Return where a file or folder of the ledger is on this computer."""
    return (controller.settings.data.directory or Path()) / os.fsdecode(key)


def dataset_address(controller: Controller, dataset: int | None) -> str:
    """Return the page of a dataset on the server."""
    return f"{controller.settings.server.url}/dataset/{dataset}"
