"""Logs Qt's own messages, and explains those that end the program."""

import logging
import os
from typing import Final

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from mydata_like.gui.startup_errors import describe_obstacle, find_missing, tell

logger = logging.getLogger("qt")
logger.addHandler(logging.NullHandler())  # before there is a log, nothing goes to the terminal

_LEVELS: Final = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def explain_ends() -> None:
    """From now on log what Qt says, and say plainly why it ends the program where it does."""
    qInstallMessageHandler(_hear)


def _hear(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    logger.log(_LEVELS.get(kind, logging.WARNING), "%s", message)
    if kind is QtMsgType.QtFatalMsg:
        error = describe_obstacle(message.strip(), tuple(find_missing()), os.environ)
        tell(error)
        os._exit(error.exit_code)  # else Qt ends the process as if it had crashed
