"""Starts the window."""

import logging
import sys
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication

from mydata_like.gui.background import Background
from mydata_like.gui.controller import Controller
from mydata_like.gui.look.appearance import Appearance, dress
from mydata_like.gui.memory import Memory
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.window import Window

logger = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0005  # seconds a thread may keep the GUI thread waiting


class Program(QObject):
    """The window with all that belongs to it."""

    def __init__(self, config: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.background = Background(self)
        self.controller = Controller(config, self.background, self)
        self.desk = Desk(self.controller, self.background, Memory(self))
        self.appearance = Appearance(self.controller, self.desk.memory, self)
        self.window = Window(self.desk)
        self._connect()

    def _connect(self) -> None:
        self.window.closing.connect(self._close)

    def open(self) -> None:
        """Show the window, and begin to work."""
        self.window.show()
        self.controller.open()

    def close(self) -> None:
        """End what goes on beside the GUI thread."""
        self.controller.close()
        self.background.close()

    @Slot(object)
    def _close(self, event: QCloseEvent) -> None:
        event.accept()


def run_window(config: Path | None) -> int:
    """Show the window until it is closed; return the exit code."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    app = QApplication(sys.argv[:1])
    app.setApplicationName("mydata-like")
    dress(app, Memory())
    program = Program(config)
    program.open()
    code = app.exec()
    program.close()
    return code
