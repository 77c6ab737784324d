"""What a speed test says in English, in the window's language."""

import re
from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication

from mydata_like.gui.speed_test.terms import measurement_title

say = QCoreApplication.translate  # by another name: it is told no literal text

# Sentences of `doctor`, `app.examining`, `app.quiet` and `engine.restraint`; the first
# that fits counts. For %1 and %2 they name what is measured, or quote.
_SAID: Final = (
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host allows no shell: its processors, its disk apart from the network, "
        "the round trip and tiny files cannot be told.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "How fast the server makes records and verifies was not measured, since a test must leave "
        "none: no earlier run had to wait for it.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host allows scp only, which can remove nothing: nothing was sent, and only "
        "this computer and the API were measured.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "What the settings gain was not measured: the staging host allows no shell any more.",
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The data directory has too few large files to tell how fast it reads them."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The data directory has too few tiny files to tell how fast it reads them."
    ),
    QT_TRANSLATE_NOOP("speed", "The way to the server was not measured: ask for approval first."),
    QT_TRANSLATE_NOOP(
        "speed", "The way to the server was not measured: the staging area has no host."
    ),
    QT_TRANSLATE_NOOP("speed", "The way to the server was not measured: files are sent over HTTP."),
    QT_TRANSLATE_NOOP("speed", "The way to the server was not measured: %1"),
    QT_TRANSLATE_NOOP("speed", "%1 could not be measured to the end: %2"),
    QT_TRANSLATE_NOOP("speed", "%1: there was no time left to measure this."),
    QT_TRANSLATE_NOOP("speed", "%1 on the staging host could not be removed; the next test will."),
    QT_TRANSLATE_NOOP("speed", "A speed test would disturb the instrument or its network now. %1"),
    QT_TRANSLATE_NOOP(
        "speed", "All that is sent may take %1 now, and a test sends as fast as it can."
    ),
    QT_TRANSLATE_NOOP("speed", "Quiet hours fill the whole week: nothing is ever sent."),
    QT_TRANSLATE_NOOP("speed", "Quiet hours: nothing new is sent until %1."),
    QT_TRANSLATE_NOOP("speed", "%1 is running: nothing new is sent."),
    QT_TRANSLATE_NOOP("speed", "There is no earlier speed test to go on from."),
    QT_TRANSLATE_NOOP("speed", "Make a new one."),
    QT_TRANSLATE_NOOP("speed", "The speed test ended unexpectedly (%1)."),
    QT_TRANSLATE_NOOP(
        "speed", "Make it once more: that also removes what this one left on the server."
    ),
    QT_TRANSLATE_NOOP("speed", "%1: %2"),
)


def _shape(sentence: str) -> re.Pattern[str]:
    """Return what fits a sentence, whatever stands for its marks."""
    return re.compile(re.sub("%[12]", "(.+?)", re.escape(sentence)), re.DOTALL)


_SHAPES: Final = tuple((sentence, _shape(sentence)) for sentence in map(str, _SAID))


def interpret(said: str) -> str:
    """Return a sentence in the window's language, as far as it is known."""
    said = said.replace(" (register)", "")  # a command, which the window has a button for
    for sentence, shape in _SHAPES:
        if match := shape.fullmatch(said):
            text = say("speed", sentence)
            return _fill(text, [interpret(part) for part in match.groups()])
    return measurement_title(said)


def _fill(text: str, parts: list[str]) -> str:
    return re.sub("%([12])", lambda mark: parts[int(mark[1]) - 1], text)
