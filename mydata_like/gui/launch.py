"""Starts the window, or shows the one that is already open.

Most imports are in functions: Qt may be unable to load, which is reported, and a start that only
shows the open window needs none of the others.
"""

import logging
import os
import sys

from mydata_like.core.errors import UploaderError
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.startup_errors import describe_obstacle, find_missing, print_error


def start(wanted: LaunchOptions) -> int:
    """Open the window, or raise the one that is open, and return the exit code."""
    try:
        return _start(wanted)
    except ImportError as error:
        obstacle = describe_obstacle(str(error), tuple(find_missing()), os.environ)
        print_error(obstacle)
        return obstacle.exit_code
    except UploaderError as error:
        print_error(error)
        if not wanted.hidden and not (sys.stderr and sys.stderr.isatty()):
            _show(error)
        return error.exit_code


def _start(wanted: LaunchOptions) -> int:
    from mydata_like.gui.qt_messages import explain_ends
    from mydata_like.gui.tray.single_instance import LaunchRequest, SingleInstance, find_token

    instance = SingleInstance(wanted.config_file, wanted.state)
    paths = tuple(str(path.absolute()) for path in wanted.paths)
    if not instance.claim(LaunchRequest(show=not wanted.hidden, paths=paths, token=find_token())):
        return 0
    explain_ends()
    from mydata_like.hostos.process import gc_disabled_for_imports

    with gc_disabled_for_imports():
        from mydata_like.app import logging_setup
        from mydata_like.gui.application import run_window
        from mydata_like.hostos.logs import LogStyle, Redaction, logging_to

    # The engine has a log of its own: one file can only have one writer.
    with logging_to(wanted.logs, Redaction(), LogStyle(name="mydata-like-window")):
        logging_setup.warn_of_ignored()
        try:
            code = run_window(wanted, instance.address)
        finally:
            instance.release()
    # Skip the shutdown of the interpreter, which would destroy the detached engines, and
    # so kill them; it would also wait for threads that hang.
    logging.shutdown()
    os._exit(code)


def _show(error: UploaderError) -> None:
    """Show the problem to a user who started the program without a terminal."""
    from PySide6.QtCore import Qt
    from PySide6.QtWidgets import QApplication, QMessageBox

    from mydata_like.gui.qt_messages import explain_ends
    from mydata_like.gui.theme import texts

    explain_ends()
    application = QApplication([])
    box = QMessageBox(QMessageBox.Icon.Warning, "mydata-like", texts.engine_text(error.message))
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(texts.tip(texts.engine_text(error.hint)))
    box.finished.connect(application.quit)
    box.show()
    application.exec()
