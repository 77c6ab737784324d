"""A pseudo-language: texts are two fifths longer, accented and in brackets.

In this language, clipped and untranslated texts of the window are easy to see.
"""

import re

from PySide6.QtCore import QObject, QTranslator

_KEPT = re.compile(r"(%L?n|%L?\d|\{\w*\}|&&|&|<[^>]+>|\n)")
_ACCENTS = str.maketrans("aceinouyAEINOUY", "áçéîñöûýÅÉÎÑØÛÝ")


def pseudo(text: str) -> str:
    """Return a text in the pseudo-language; placeholders and mnemonics are kept."""
    parts = _KEPT.split(text)
    accented = "".join(
        part if _KEPT.fullmatch(part) else part.translate(_ACCENTS) for part in parts
    )
    return f"[{accented}{'~' * -(-len(text) * 2 // 5)}]"


class PseudoTranslator(QTranslator):
    """A translator for all texts; install it before the window is created."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def isEmpty(self) -> bool:
        return False

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str:
        return pseudo(source)
