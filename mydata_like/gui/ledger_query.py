"""Questions to the ledger, asked again after it has changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QTimer, Signal, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.core.queries import View
from mydata_like.gui.base import AppContext
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.ledger_status import LedgerSummary, RowQuery

MIN_INTERVAL = 1.0  # seconds between an answer and the next question,
INTERVAL_FACTOR = 10.0  # and this many times the duration of the last one


def open_listing(settings: Settings, config: Path | None, view: View) -> RowQuery | None:
    """Return the ledger's rows in a view, None without a ledger; raises `UploaderError`."""
    # Imported here, in the background, since the window appears without it.
    from mydata_like.app import ledger_status

    return ledger_status.open_listing(settings, config, view)


def open_summary(settings: Settings, config: Path | None) -> LedgerSummary | None:
    """Return the ledger's totals, None without a data directory; raises `UploaderError`."""
    # Imported here, in the background, since the window appears without it.
    from mydata_like.app import ledger_status

    return ledger_status.open_survey(settings, config)


class LedgerQuery(QObject):
    """Asks a question in the background, while its widget is visible and the settings are known.

    It asks when the widget appears and when the ledger changes, one question at a time. `ask` takes
    the settings, their file, and what `about` returns; if that is None, nothing is asked.
    `answered` reports the result, `failed` an `UploaderError`, after which it asks again.
    """

    answered = Signal(object)
    failed = Signal(object)

    def __init__(
        self,
        context: AppContext,
        widget: QWidget,
        ask: Callable[..., object],
        about: Callable[[], tuple[object, ...] | None] = tuple,
    ) -> None:
        super().__init__(widget)
        self._context, self._widget = context, widget
        self._ask, self._about = ask, about
        self._asking = self._stale = self._outdated = False
        self._asked_at = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._refresh_if_stale)
        context.controller.ledger_changed.connect(self.refresh)
        context.controller.settings_changed.connect(self.refresh)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show:
            self.refresh()
        return super().eventFilter(watched, event)

    @Slot()
    def refresh(self) -> None:
        """Ask now, or once the last question is answered and the interval is over."""
        self._stale = self._asking or self._timer.isActive()
        controller = self._context.controller
        if self._stale or not self._widget.isVisible() or controller.loaded is None:
            return
        arguments = self._about()
        if arguments is not None:
            self._asking, self._asked_at = True, monotonic()
            ask = partial(self._ask, *controller.place, *arguments)
            self._context.tasks.run(ask, self._take, self._fail)

    @Slot()
    def ask_now(self) -> None:
        """Ask another question now, or once the last one is answered, which is not reported.

        So questions that hang on a dead mount do not accumulate.
        """
        self._timer.stop()
        self.drop_answer()
        self.refresh()

    def drop_answer(self) -> None:
        """Report no answer to what is being asked, which is about something else than is shown."""
        self._outdated = self._asking

    @Slot()
    def _refresh_if_stale(self) -> None:
        if self._stale:
            self.refresh()

    @Slot(object)
    def _take(self, answer: object) -> None:
        if self._end():
            self.answered.emit(answer)

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        if self._end():
            self._stale = True
            self.failed.emit(error)

    def _end(self) -> bool:
        """Return whether the answer is to the current question; otherwise ask that one."""
        self._asking = False
        if self._outdated:
            self._outdated = False
            self.refresh()
            return False
        interval = max(MIN_INTERVAL, INTERVAL_FACTOR * (monotonic() - self._asked_at))
        self._timer.start(round(interval * 1000))
        return True
