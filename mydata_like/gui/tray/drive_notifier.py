"""Notifies the user when all that was added from a removable drive is verified, and ejects it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Signal, Slot

from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.run_state import RunState
from mydata_like.gui.theme import texts
from mydata_like.gui.tray.notifications import Notification
from mydata_like.hostos.removable_drives import MEDIA
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.receipt_service import DriveReceipt

translate = QCoreApplication.translate


def keep_receipts(
    settings: Settings, config: Path | None, since: datetime, media: Sequence[Path]
) -> list[DriveReceipt]:
    """Keep a receipt for each removable drive that was finished since a time."""
    # Imported here, in the background, since few runs need it.
    from mydata_like.app.receipt_service import keep_drive_receipts

    return keep_drive_receipts(settings, config, since, media)


def eject(settings: Settings, config: Path | None, top: Path, media: Sequence[Path]) -> None:
    """Eject a drive, as `eject_drive` does."""
    # As above.
    from mydata_like.app.receipt_service import eject_drive

    eject_drive(settings, config, top, media)


class DriveNotifier(QObject):
    """Looks for finished removable drives after each run; `media` are the folders they are in."""

    notified = Signal(object)  # a Notification

    def __init__(self, context: AppContext, parent: QObject, media: Sequence[Path] = MEDIA) -> None:
        super().__init__(parent)
        self._controller, self._tasks = context.controller, context.tasks
        self._media = media
        self._before = self._controller.state
        self._controller.run_changed.connect(self._follow)

    @Slot(object)
    def _follow(self, state: RunState) -> None:
        before, self._before = self._before, state
        ended = before.at_work and not state.at_work and state.last != before.last
        if ended and state.last and self._controller.settings.window.notify_finished:
            keep = partial(keep_receipts, *self._controller.place, state.last.started, self._media)
            self._tasks.run(keep, self._notify, writes=True)

    @Slot(object)
    def _notify(self, receipts: Sequence[DriveReceipt]) -> None:
        for receipt in receipts:
            self.notified.emit(describe_receipt(receipt))

    @Slot(object)
    def eject(self, receipt: DriveReceipt) -> None:
        """Eject the drive of a receipt in the background, and notify whether it was."""
        function = partial(eject, *self._controller.place, receipt.top, self._media)
        report = partial(self._report, receipt)
        self._tasks.run(function, report, report, writes=True)

    def _report(self, receipt: DriveReceipt, error: UploaderError | None) -> None:
        name = texts.plain(receipt.drive)
        if error:
            title = translate("notifications", "“%1” was not ejected").replace("%1", name)
            text = texts.problem_text(error)
        else:
            title = translate("notifications", "“%1” is ejected").replace("%1", name)
            text = translate("notifications", "You can unplug it.")
        self.notified.emit(Notification(None, title, text, "", receipt=receipt, ejects=bool(error)))


def describe_receipt(receipt: DriveReceipt) -> Notification:
    """Return the notification that a drive is finished, with its receipt."""
    name, left = texts.plain(receipt.drive), receipt.total - receipt.verified
    if left:
        title = translate("notifications", "Look at the receipt before you eject “%1”")
        text = translate(
            "notifications", "%Ln file(s) of what was added from it are not verified.", None, left
        )
    else:
        title = translate("notifications", "You can eject “%1”")
        text = translate(
            "notifications",
            "All %Ln file(s) that were added from it are safe on the server.",
            None,
            receipt.verified,
        )
    title = title.replace("%1", name)
    return Notification(None, title, text, "", receipt=receipt, ejects=not left)
