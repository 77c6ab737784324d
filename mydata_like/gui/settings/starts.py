"""When the next runs would start by themselves, told while the schedule is being changed."""

import datetime
from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication, QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from mydata_like.engine.schedule import Rule, next_start
from mydata_like.gui.look import words
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.settings.signs import Aside
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

SHOWN = 5
TOLD_AGAIN = 20_000  # milliseconds after which the clock has moved on


class Starts(Aside):
    """Shows the next start times of a schedule, or says in words when runs start."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            self.tr("Next starts"),
            self.tr("When runs would start by themselves, in this computer's time."),
            parent,
        )
        self._settings: Settings | None = None
        self._said = PlainLabel("", self)
        self._said.setWordWrap(True)
        self.column.addWidget(self._said)
        self._timer = QTimer(self, interval=TOLD_AGAIN)
        self._timer.timeout.connect(self._tell)
        self._tell()

    @property
    def said(self) -> str:
        """What is shown."""
        return self._said.text()

    def show_settings(self, settings: Settings | None) -> None:
        """Show the next starts of these settings; None where they are wrong."""
        self._settings = settings
        self._tell()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def _tell(self) -> None:
        if self._settings is None:
            self._said.setText(self.tr("They are told once the schedule is complete."))
            return
        now = datetime.datetime.now(datetime.UTC)
        self._said.setText(describe_starts(self._settings, now, None))


def describe_starts(
    settings: Settings, now: datetime.datetime, zone: datetime.tzinfo | None
) -> str:
    """Return when runs start by themselves: the next times, a line each, or a sentence."""
    schedule = settings.schedule
    said = {
        "manual": translate("starts", "Only when somebody presses Start."),
        "startup": translate("starts", "Each time the program starts."),
        "saved": translate("starts", "Each time settings are saved."),
    }
    if schedule.kind in said:
        return said[schedule.kind]
    times = "\n".join(words.moment(start, now) for start in find_starts(settings, now, zone))
    if schedule.kind == "watch":
        text = translate("starts", "When new files have not changed for %1, and at the latest:")
        settled = words.span(settings.filters.settle_seconds)
        return f"{text.replace('%1', settled)}\n{times}"
    return times or translate("starts", "Never: that moment has passed.")


def find_starts(
    settings: Settings, now: datetime.datetime, zone: datetime.tzinfo | None
) -> Iterator[datetime.datetime]:
    """Yield the next few start times, in UTC."""
    rule = Rule.of(settings.schedule)
    moment: datetime.datetime | None = now
    for _ in range(SHOWN):
        moment = next_start(rule, moment, zone) if moment else None
        if moment is None:
            return
        yield moment
