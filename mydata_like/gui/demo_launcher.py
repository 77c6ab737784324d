"""Starts the demonstration: a second window with sample data and its own server."""

from importlib.util import find_spec

from PySide6.QtCore import QObject, QProcess, Qt, Slot
from PySide6.QtWidgets import QApplication, QMessageBox

from mydata_like.core.errors import UploaderError
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme import texts

_NEEDED = "flask"  # used by the embedded server; only the extra `demo` installs it


def is_installed() -> bool:
    """Return whether this installation can show a demonstration."""
    return find_spec(_NEEDED) is not None


class DemoLauncher(QObject):
    """Opens the second window."""

    def __init__(self, tasks: Tasks, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = tasks

    @Slot()
    def open(self) -> None:
        """Start a separate process, which removes all its data when it ends."""
        self._tasks.run(_find_command, self._start, self._fail)

    @Slot(object)
    def _start(self, command: tuple[str, ...]) -> None:
        started, _ = QProcess.startDetached(command[0], list(command[1:]))
        if not started:
            self._tell(self.tr("This computer could not start another program."))

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        self._tell(texts.error_text(error))

    def _tell(self, why: str) -> None:
        """Report above the active window or dialog that the demonstration cannot start."""
        box = QMessageBox(QApplication.activeWindow())
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setIcon(QMessageBox.Icon.Warning)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"{self.tr('The demo could not be started.')}\n\n{why}")
        box.open()
        self._box = box  # no window holds a reference to it if none is active


def _find_command() -> tuple[str, ...]:
    """Return the command line that starts the demonstration."""
    from mydata_like.hostos.process import find_program

    return (*find_program(), "demo", "--window")
