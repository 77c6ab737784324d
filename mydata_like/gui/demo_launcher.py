"""Start the demonstration: a second window with sample data and its own server."""

from functools import partial

from PySide6.QtCore import QObject, QProcess, Qt, Slot
from PySide6.QtWidgets import QApplication

from mydata_like.core.errors import UploaderError
from mydata_like.gui.engine_process import program_command
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import Prompt


class DemoLauncher(QObject):
    """Opens the window of the demonstration."""

    def __init__(self, tasks: Tasks, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = tasks

    @Slot()
    def open(self) -> None:
        """Start the demonstration as a separate process, which deletes its data when it ends."""
        find = partial(program_command, "demo", None, "--window")
        self._tasks.run(find, self._start, self._fail)

    def _start(self, command: tuple[str, ...]) -> None:
        started, _ = QProcess.startDetached(command[0], list(command[1:]))
        if not started:
            self._show_problem(self.tr("This computer could not start another program."))

    def _fail(self, error: UploaderError) -> None:
        self._show_problem(texts.error_text(error))

    def _show_problem(self, why: str) -> None:
        """Show above the active window or dialog why the demonstration cannot start."""
        box = Prompt(QApplication.activeWindow())
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setIcon(Prompt.Icon.Warning)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(f"{self.tr('The demo could not be started.')}\n\n{why}")
        box.open()
        self._box = box  # if no window is active, nothing else holds a reference
