"""How the program shows itself: colours and language, as the settings say.

The settings are read beside the GUI thread and come after the first window. So what they said is
remembered, and the next start looks right from its first moment on.
"""

from typing import cast, get_args

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication

from mydata_like.gui.controller import Controller
from mydata_like.gui.look.icons import app_icon
from mydata_like.gui.look.language import Language, speak
from mydata_like.gui.look.palette import Theme, apply
from mydata_like.gui.memory import Memory

THEME = "look/theme"
LANGUAGE = "look/language"


def dress(app: QApplication, memory: Memory) -> None:
    """Give the program the colours and the language it had last; call it before any window."""
    speak(app, cast(Language, _recall(memory, LANGUAGE, get_args(Language))))
    apply(app, cast(Theme, _recall(memory, THEME, get_args(Theme))))
    app.setWindowIcon(app_icon())


class Appearance(QObject):
    """Keeps the program's looks in step with the settings."""

    def __init__(self, controller: Controller, memory: Memory, parent: QObject) -> None:
        super().__init__(parent)
        self._controller = controller
        self._memory = memory
        controller.settings_changed.connect(self.follow_settings)

    @Slot()
    def follow_settings(self) -> None:
        """Change the colours now, and the language from the next start on."""
        window = self._controller.settings.window
        self._memory.setValue(THEME, window.theme)
        self._memory.setValue(LANGUAGE, window.language)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            apply(app, window.theme)


def _recall(memory: Memory, name: str, choices: tuple[str, ...]) -> str:
    """Return what is remembered, if it still is a choice, else the first choice."""
    found = memory.value(name)
    return found if found in choices else choices[0]
