"""Applies the colour scheme and the language of the settings.

The settings are read in the background, after the first window has opened. Their choices are
therefore remembered, and the next start applies them from its first moment.
"""

from typing import Literal, cast, get_args

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator, Slot
from PySide6.QtWidgets import QApplication

from mydata_like.gui.controller import WindowController
from mydata_like.gui.theme.colours import Theme, apply
from mydata_like.gui.theme.widgets import app_icon, find_resources
from mydata_like.gui.window_state import WindowState

Language = Literal["system", "en", "de"]

LANGUAGES = ("en", "de")


def speak(app: QCoreApplication, language: Language) -> str:
    """Set the language of the program and return it; call this before any window.

    Texts that are already on the screen stay as they are.
    """
    spoken = _find_spoken(QLocale.system().uiLanguages()) if language == "system" else language
    QLocale.setDefault(_choose_locale(spoken))
    for name, folder in (
        (f"qtbase_{spoken}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)),
        (f"mydata_like_{spoken}", str(find_resources() / "translations")),
    ):
        translator = QTranslator(app)
        if translator.load(name, folder):
            app.installTranslator(translator)
    return spoken


def _find_spoken(wanted: list[str]) -> str:
    """Return the first of the preferred languages (such as `de-AT`) that has a translation."""
    languages = (name.replace("_", "-").split("-")[0] for name in wanted)
    return next((name for name in languages if name in LANGUAGES), "en")


def _choose_locale(spoken: str) -> QLocale:
    """Return the system's formats of numbers and dates, if they match the language."""
    system = QLocale.system()
    language = QLocale(spoken)
    return system if system.language() == language.language() else language


THEME = "look/theme"
LANGUAGE = "look/language"


def dress(app: QApplication, memory: WindowState) -> None:
    """Apply the last colours and language; call this before any window."""
    speak(app, cast(Language, _recall(memory, LANGUAGE, get_args(Language))))
    apply(app, cast(Theme, _recall(memory, THEME, get_args(Theme))))
    app.setWindowIcon(app_icon())


class ThemeSettings(QObject):
    """Keeps the colours and the language in step with the settings."""

    def __init__(self, controller: WindowController, memory: WindowState, parent: QObject) -> None:
        super().__init__(parent)
        self._controller = controller
        self._memory = memory
        controller.settings_changed.connect(self.follow_settings)

    @Slot()
    def follow_settings(self) -> None:
        """Change the colours now, and the language at the next start."""
        window = self._controller.settings.window
        self._memory.setValue(THEME, window.theme)
        self._memory.setValue(LANGUAGE, window.language)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            apply(app, window.theme)


def _recall(memory: WindowState, name: str, choices: tuple[str, ...]) -> str:
    """Return the remembered choice if it is still offered, else the first choice."""
    found = memory.value(name)
    return found if found in choices else choices[0]
