"""Actions on files that wait or are being sent, and the notice that undoes holding them back."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QWidget

from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import RunState
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import Toast, action


class HoldBackToast(Toast):
    """Holds files back, and offers to send them after all, in this run or in a new one."""

    def __init__(self, controller: WindowController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._paths: Sequence[bytes] = ()
        self._transfers: Sequence[ActiveTransfer] = ()
        self._run = ""
        controller.run_changed.connect(self._show_state)
        controller.command_refused.connect(self.hide)  # perhaps a transfer had already ended
        self.undone.connect(self._send_after_all)

    def hold_back(self, paths: Sequence[bytes], transfers: Sequence[ActiveTransfer] = ()) -> None:
        """Hold back these files, all files of these folders, and the rest of these transfers."""
        self._paths, self._transfers = paths, transfers
        self._run = self._controller.state.run
        for transfer in transfers:
            self._controller.cancel_transfer(transfer.number)
        for path in paths:
            self._controller.cancel(path)
        self._controller.list_next()
        count = len(paths) + sum(transfer.files for transfer in transfers)
        text = self.tr("%Ln file(s) are held back.", "", count)
        if count == 1:
            (path,) = (*paths, *(transfer.name for transfer in transfers))
            name = texts.plain(path.rpartition(b"/")[2])
            text = self.tr("%1 is held back.").replace("%1", name)
        self.show_message(text)

    @Slot(object)
    def _show_state(self, state: RunState) -> None:
        if state.run != self._run or not self._controller.can_retry:
            self.hide()

    @Slot()
    def _send_after_all(self) -> None:
        for transfer in self._transfers:
            if self._controller.state.is_steerable:
                self._controller.retry_transfer(transfer.number)
            else:
                self._controller.retry(transfer.name)
        for path in self._paths:
            self._controller.retry(path)
        self._controller.list_next()


class QueueActions(QObject):
    """The actions on files that wait or are being sent; their keys work in one widget.

    `toast` is what holds files back; any other action on them hides it.
    """

    def __init__(self, where: QWidget, toast: HoldBackToast) -> None:
        super().__init__(where)
        self.toast = toast
        keys = Qt.Modifier.CTRL | Qt.Modifier.SHIFT
        self.send_next = action(self, "up", self.tr("Send next"), toast.hide)
        self.send_next.setShortcut(QKeySequence(keys | Qt.Key.Key_Up))
        self.hold = action(self, "pause", self.tr("Hold back"), keys=keys | Qt.Key.Key_Down)
        self.send_next.setToolTip(self.tr("Send this before everything else that waits"))
        self.hold.setToolTip(
            self.tr(
                "Send the others first. What has arrived of this is kept: the next run continues "
                "it, or this one if you choose Send next."
            )
        )
        self.all = (self.send_next, self.hold)
        for one in self.all:
            one.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        where.addActions(self.all)
