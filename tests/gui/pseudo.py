"""A pseudo-language: longer by two fifths, accented, in brackets.

A window in it shows at once which texts are clipped, and which are not translated.
"""

import re

from PySide6.QtCore import QObject, QTranslator

_KEPT = re.compile(r"(%L?n|%L?\d|\{\w*\}|&&|&|<[^>]+>|\n)")
_ACCENTS = str.maketrans("aceinouyAEINOUY", "áçéîñöûýÅÉÎÑØÛÝ")


def pseudo(text: str) -> str:
    """Return the text as the language has it; placeholders and keys stay."""
    parts = _KEPT.split(text)
    accented = "".join(
        part if _KEPT.fullmatch(part) else part.translate(_ACCENTS) for part in parts
    )
    return f"[{accented}{'~' * -(-len(text) * 2 // 5)}]"


class PseudoTranslator(QTranslator):
    """Translates everything; install it before the window is made."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def isEmpty(self) -> bool:
        return False

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str:
        return pseudo(source)
