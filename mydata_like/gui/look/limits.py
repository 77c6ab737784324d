"""What keeps a run from going faster, in words."""

from PySide6.QtCore import QCoreApplication

translate = QCoreApplication.translate


def limit_name(name: str) -> str:
    """Return in words what the engine calls a limit; empty for none."""
    return {
        "source": translate("limits", "the disk of this computer"),
        "processor": translate("limits", "the processors of this computer"),
        "line": translate("limits", "the network, or a server too busy to read"),
        "channels": translate("limits", "the long way to the server"),
        "server": translate("limits", "the server that stores the files"),
        "bandwidth": translate("limits", "the bandwidth that is set"),
        "API": translate("limits", "the server's answers to requests"),
        "verification": translate("limits", "the server's verification"),
    }.get(name, "")


def limit_word(name: str) -> str:
    """Return the same in so few words that a column of a table has room for them."""
    return {
        "source": translate("limits", "disk here"),
        "processor": translate("limits", "processors here"),
        "line": translate("limits", "network or server"),
        "channels": translate("limits", "long way"),
        "server": translate("limits", "server's storage"),
        "bandwidth": translate("limits", "set bandwidth"),
        "API": translate("limits", "server's answers"),
        "verification": translate("limits", "verification"),
    }.get(name, "")
