"""Asks the server now and then whether the key is approved, for as long as that is awaited."""

import logging
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Slot

from mydata_like.core.errors import NotApprovedError, UploaderError
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.state import RunState
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)

ASK_AFTER = 60_000  # milliseconds after which it is asked again


class Approval(QObject):
    """Asks where no run does, and the wizard may be closed; the controller sees the answer."""

    def __init__(self, desk: Desk, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = desk.controller
        self._background = desk.background
        self._asking = False
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
        if not self._asking:
            self._asking = True
            ask = partial(_ask_server, self._controller.settings, self._controller.config)
            self._background.run(ask, self._take_answer, self._miss_answer)

    @Slot(object)
    def _take_answer(self, _: None) -> None:
        self._asking = False

    @Slot(object)
    def _miss_answer(self, error: UploaderError) -> None:
        self._asking = False
        logger.info("No approval yet: %s", error.problem)


def _ask_server(settings: Settings, config: Path | None) -> None:
    """Return once the key is approved, of which the standing tells from then on."""
    from mydata_like import bootstrap
    from mydata_like.engine.progress import RunProgress
    from mydata_like.engine.workers import CancelFlag

    tally = RunProgress(bootstrap.SystemClock())
    # The log of the window says nothing of requests but their paths, so no secret is to be hidden.
    audience = bootstrap.Audience(tally.add, tally, CancelFlag(), lambda _: None)
    bootstrap.register(settings, bootstrap.Order(config=config), audience)
