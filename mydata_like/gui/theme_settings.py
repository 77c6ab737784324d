"""Applies the colour scheme and the language of the settings.

They are needed before the first window, and are read then. In case that fails or takes long, they
are also stored in the window state.
"""

from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Literal, cast, get_args

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QObject, QTranslator, Slot
from PySide6.QtWidgets import QApplication

from mydata_like.app.settings_service import load_settings
from mydata_like.core.errors import SettingsError
from mydata_like.core.resources import find_resources
from mydata_like.gui.controller import WindowController
from mydata_like.gui.theme.colours import Theme
from mydata_like.gui.theme.destination_translator import name_destination
from mydata_like.gui.theme.engine_translator import EngineTranslator
from mydata_like.gui.theme.style import apply
from mydata_like.gui.theme.widgets import app_icon
from mydata_like.gui.window_state import WindowState
from mydata_like.settings.schema import Settings, Window

Language = Literal["system", "en", "de"]

LANGUAGES = ("en", "de")


def set_language(app: QCoreApplication, language: Language) -> str:
    """Set the language of the program and return it; call this before any window.

    Texts that are already displayed do not change.
    """
    chosen = _find_language(QLocale.system().uiLanguages()) if language == "system" else language
    QLocale.setDefault(_choose_locale(chosen))
    sentences = find_resources() / "translations" / "engine.json"
    if chosen != "en" and sentences.is_file():
        app.installTranslator(EngineTranslator(sentences, app))
    for name, folder in (
        (f"qtbase_{chosen}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)),
        (f"mydata_like_{chosen}", str(find_resources() / "translations")),
    ):
        translator = QTranslator(app)
        if translator.load(name, folder):
            app.installTranslator(translator)
    return chosen


def _find_language(wanted: list[str]) -> str:
    """Return the first of the preferred languages (such as `de-AT`) that has a translation."""
    languages = (name.replace("_", "-").split("-")[0] for name in wanted)
    return next((name for name in languages if name in LANGUAGES), "en")


def _choose_locale(chosen: str) -> QLocale:
    """Return the locale of numbers and dates: the system's if it has the same language."""
    system = QLocale.system()
    language = QLocale(chosen)
    return system if system.language() == language.language() else language


THEME = "look/theme"
LANGUAGE = "look/language"
PATIENCE = 1.0  # seconds to wait for the settings file


def apply_first_appearance(app: QApplication, memory: WindowState, config: Path | None) -> None:
    """Apply the colours and the language of the settings; call this before any window."""
    settings = _read_settings(config)
    if settings is not None:
        _remember(memory, settings.window)
    set_language(app, cast(Language, _read_choice(memory, LANGUAGE, get_args(Language))))
    if settings is not None:
        name_destination(app, settings.destination)
    apply(app, cast(Theme, _read_choice(memory, THEME, get_args(Theme))))
    app.setWindowIcon(app_icon())


def _read_settings(config: Path | None) -> Settings | None:
    """Return the settings; None if they cannot be read, or not soon."""
    found: list[Settings] = []

    def read() -> None:
        with suppress(SettingsError):  # the window tells of it
            found.append(load_settings(config, must_exist=False).settings)

    reader = Thread(target=read, daemon=True)  # the file may be on a drive that hangs
    reader.start()
    reader.join(PATIENCE)
    return found[0] if found else None


def _remember(memory: WindowState, window: Window) -> None:
    memory.setValue(THEME, window.theme)
    memory.setValue(LANGUAGE, window.language)


class ThemeSettings(QObject):
    """Applies colours, language and the name of the destination whenever the settings change."""

    def __init__(self, controller: WindowController, memory: WindowState, parent: QObject) -> None:
        super().__init__(parent)
        self._controller = controller
        self._memory = memory
        controller.settings_changed.connect(self.apply_settings)

    @Slot()
    def apply_settings(self) -> None:
        """Change the colours and the destination now, and the language at the next start."""
        window = self._controller.settings.window
        _remember(self._memory, window)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            apply(app, window.theme)
            name_destination(app, self._controller.settings.destination)


def _read_choice(memory: WindowState, name: str, choices: tuple[str, ...]) -> str:
    """Return the stored choice if it is still valid, else the first choice."""
    found = memory.value(name)
    return found if found in choices else choices[0]
