"""Logs Qt's own messages, and explains those that end the program."""

import logging
import os
from typing import Final

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

from mydata_like.gui.startup_errors import describe_obstacle, find_missing, print_error

logger = logging.getLogger("qt")
logger.addHandler(logging.NullHandler())  # nothing is written to the terminal before there is a log

_LEVELS: Final = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def explain_ends() -> None:
    """Log the messages of Qt from now on, and explain those with which it ends the program."""
    qInstallMessageHandler(_log_message)


def _log_message(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    logger.log(_LEVELS.get(kind, logging.WARNING), "%s", message)
    if kind is QtMsgType.QtFatalMsg:
        error = describe_obstacle(message.strip(), tuple(find_missing()), os.environ)
        print_error(error)
        # Work-around: PySide6 6.11.3 aborts after a fatal message, as if the program had crashed.
        # No report known; see test_without_a_display_the_program_says_so_and_ends.
        # Remove when Qt raises an error that can be handled.
        os._exit(error.exit_code)
