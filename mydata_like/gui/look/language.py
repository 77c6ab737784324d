"""The window's language: the system's or the one that was chosen, if there is a translation.

English needs one too: it says how counts read ("1 file", "2 files").
"""

from typing import Literal

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from mydata_like.gui.look.resources import find_resources

Language = Literal["system", "en", "de"]

LANGUAGES = ("en", "de")


def speak(app: QCoreApplication, language: Language) -> str:
    """Let the program speak a language from now on and return which; call it before any window.

    Texts that are on the screen already stay as they are.
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
    """Return the first of the languages a person prefers (as in `de-AT`) that we speak."""
    languages = (name.replace("_", "-").split("-")[0] for name in wanted)
    return next((name for name in languages if name in LANGUAGES), "en")


def _choose_locale(spoken: str) -> QLocale:
    """Return the system's ways with numbers and dates, if they go with the language."""
    system = QLocale.system()
    language = QLocale(spoken)
    return system if system.language() == language.language() else language
