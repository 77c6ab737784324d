"""Names the destination in the texts of the window where they speak of the server."""

import re
from typing import Final

from PySide6.QtCore import QCoreApplication, QObject, QTranslator

from mydata_like.settings.schema import CONTEXT as SETTINGS_CONTEXT
from mydata_like.settings.schema import DataDestination

translate = QCoreApplication.translate
look_up = QCoreApplication.translate  # for texts of others

# Texts in which a server is a MyTardis server, whatever the destination is.
_OF_MYTARDIS: Final = frozenset(
    {
        *("KindStep", "AddressStep", "AccountStep", "InstrumentStep", "KeyStep", "HostKeyPanel"),
        *("MyDataImportDialog", "FormerKeyButton", "FormerKeyQuestion", "SecretRow"),
        *("DemoLauncher", "demo", "layouts", "destination", SETTINGS_CONTEXT),
    }
)


class DestinationTranslator(QTranslator):
    """Replaces "the server" in translated texts by a host, a folder or a bucket.

    Install it later than all others: Qt then asks it first, and it asks the others.
    """

    def __init__(self, destination: DataDestination, parent: QObject) -> None:
        super().__init__(parent)
        self.destination = destination
        self._asks = False  # it is asking the others now
        self._words = _list_words(destination)
        words = "|".join(re.escape(word) for word in self._words)
        self._find = re.compile(rf"(?<![\w/])(?:{words})(?![\w/])")  # not in a path

    def isEmpty(self) -> bool:
        return False

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str | None:
        if self._asks or context in _OF_MYTARDIS:
            return None
        self._asks = True
        text = look_up(context, source, disambiguation, n)
        self._asks = False
        worded = self._find.sub(lambda found: self._words[found[0]], text)
        return worded if worded != text else None


def _list_words(destination: DataDestination) -> dict[str, str]:
    """Return the words of the destination by those of the server, the longest first."""
    # Translators: pairs of words and their replacements, as many as the language needs.
    pairs = translate(
        "destination",
        "on the server: in NAME; On the server: In NAME; on server: in NAME; "
        "by the server: in NAME; The server is checking: Checking; The server: The destination; "
        "The server's storage: The destination; the server's storage: the destination; "
        "the server: the destination; Server: Destination; "
        "staging host: host; staging area: destination; "
        "Check key and approval: Check the login; Check key and approva&l: Check the &login",
    )
    if destination.kind == "host":
        pairs = translate(
            "destination",
            "on the server: on NAME; On the server: On NAME; on server: on NAME; "
            "by the server: on NAME; The server is checking: Checking; The server: NAME; "
            "The server's storage: NAME; the server's storage: NAME; "
            "the server: NAME; Server: NAME; "
            "staging host: host; staging area: destination; "
            "Check key and approval: Check the login; Check key and approva&l: Check the &login",
        )
    words = dict(pair.split(": ", 1) for pair in pairs.split("; "))
    # Numbers after "%" would be taken for the place of an argument.
    name = destination.name.replace("%", "%\N{WORD JOINER}")
    longest_first = sorted(words.items(), key=lambda pair: -len(pair[0]))
    return {word: other.replace("NAME", name) for word, other in longest_first}


def name_destination(app: QCoreApplication, destination: DataDestination) -> None:
    """Let all texts that are translated from now on name this destination."""
    former = app.findChild(DestinationTranslator)
    if former is not None and former.destination == destination:
        return
    if former is not None:
        app.removeTranslator(former)
        former.setParent(None)
    if destination.takes_tree:
        app.installTranslator(DestinationTranslator(destination, app))
