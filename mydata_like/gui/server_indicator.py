"""The last known state of the server, as the window shows it."""

from PySide6.QtCore import QCoreApplication, Qt, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import RunState, ServerIndicator
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, hbox
from mydata_like.gui.theme.widgets import IconLabel, PlainLabel, RowIcon, set_tip

translate = QCoreApplication.translate


def indicator_mark(state: RunState) -> RowIcon:
    """Return the text, icon and colour of the server's state."""
    unknown = RowIcon("", "server", "skipped")
    match state.server:
        case ServerIndicator.REACHABLE if state.heard:
            return RowIcon(translate("contact", "Server reachable"), "check", "good")
        case ServerIndicator.REACHABLE if state.answered is not None:
            # A time stays true without a timer.
            text = translate("contact", "Server answered %1")
            return RowIcon(text.replace("%1", texts.moment(state.answered)), "server", "skipped")
        case ServerIndicator.UNREACHABLE:
            return RowIcon(translate("contact", "Server not reachable"), "error", "problem")
        case ServerIndicator.SILENT:
            text = translate("contact", "No answer from the server for %1")
            word = text.replace("%1", texts.span(state.silence))
            return RowIcon(word, "waiting", "waiting")
        case ServerIndicator.NOT_APPROVED:
            return RowIcon(translate("contact", "Waiting for approval"), "waiting", "waiting")
        case _:  # also if another program contacted it, no answer to which was seen
            return unknown


class ServerIndicatorLabel(QWidget):
    """The server's state with the server's address as tool tip."""

    def __init__(self, controller: WindowController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._icon = IconLabel(1.0, self)
        self._label = PlainLabel("", self)
        self._icon.setAccessibleName(self.tr("Server"))
        frameless(hbox((self._icon, Qt.AlignmentFlag.AlignVCenter), self._label, inside=self))
        controller.run_changed.connect(self._on_run_changed)
        controller.settings_changed.connect(self._on_settings_changed)
        self._on_run_changed(controller.state)
        self._on_settings_changed()

    @property
    def text(self) -> str:
        """The displayed text."""
        return self._label.text()

    @Slot(object)
    def _on_run_changed(self, state: RunState) -> None:
        mark = indicator_mark(state)
        self._label.setText(mark.word)
        self._icon.show_icon(mark.icon)
        for part in (self._label, self._icon):
            part.setVisible(bool(mark.word and self.toolTip()))

    @Slot()
    def _on_settings_changed(self) -> None:
        settings = self._controller.settings
        takes_tree = settings.destination.takes_tree
        address = texts.plain(settings.destination.address if takes_tree else settings.server.url)
        set_tip(self, address)
        self._on_run_changed(self._controller.state)
