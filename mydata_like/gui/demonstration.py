"""The demonstration: a second window, over sample data and a server of its own."""

from importlib.util import find_spec

from PySide6.QtCore import QObject, QProcess, Slot

from mydata_like.gui.background import Background

_NEEDED = "flask"  # by the embedded server; only the extra `demo` brings it


def is_installed() -> bool:
    """Return whether this installation can show a demonstration."""
    return find_spec(_NEEDED) is not None


class Demonstration(QObject):
    """Opens the second window."""

    def __init__(self, background: Background, parent: QObject) -> None:
        super().__init__(parent)
        self._background = background

    @Slot()
    def open(self) -> None:
        """Start a program of its own, which takes everything away when it is quit."""
        self._background.run(_find_words, self._start)

    @Slot(object)
    def _start(self, words: tuple[str, ...]) -> None:
        QProcess.startDetached(words[0], list(words[1:]))


def _find_words() -> tuple[str, ...]:
    """Return the words that start the demonstration."""
    from mydata_like import bootstrap

    return (*bootstrap.find_program(), "demo", "--window")
