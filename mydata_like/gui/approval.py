"""Asks the server now and then whether the key is approved, for as long as that is awaited."""

import logging
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Slot

from mydata_like.core.errors import NotApprovedError, UploaderError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.state import RunState
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

ASK_AFTER = 60_000  # milliseconds after which it is asked again


class Approval(QObject):
    """Asks where no run does, and the wizard may be closed; the controller sees the answer."""

    def __init__(self, desk: Desk, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._tasks = desk.tasks
        self._task = BackgroundTask()
        self.timer = QTimer(self, interval=ASK_AFTER)
        self.timer.timeout.connect(self._ask)
        self._controller.run_changed.connect(self._follow)

    @Slot(object)
    def _follow(self, state: RunState) -> None:
        # Of a key that is approved, and yet refused by the staging host, the server knows nothing.
        awaited = state.awaited is not None and state.awaited.code == NotApprovedError.code
        if not awaited or state.at_work:
            self.timer.stop()
        elif not self.timer.isActive():
            self.timer.start()

    @Slot()
    def _ask(self) -> None:
        if not self._task.running:
            ask = partial(_ask_server, self._controller.settings, self._controller.config)
            self._task = self._tasks.run(ask, failed=self._log_failure, cancel=True)

    @Slot(object)
    def _log_failure(self, error: UploaderError) -> None:
        logger.info("No approval yet: %s", error.problem)


def _ask_server(settings: Settings, config: Path | None, cancel: CancelFlag) -> None:
    """Return once the key is approved, of which the standing tells from then on."""
    from mydata_like.app.registration import register
    from mydata_like.app.run_request import RunObserver, RunRequest

    request = RunRequest(settings=settings, config=config)
    register(request, RunObserver(cancel=cancel))
