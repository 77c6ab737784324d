"""The row for the API key, which is stored in the keyring or a file and never shown."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QToolButton, QWidget

from mydata_like.gui import services
from mydata_like.gui.services import KeyPlace
from mydata_like.gui.settings_editor.editors import Choice
from mydata_like.gui.settings_editor.form import CHANGED_MARK, SideNote, StatusIcon
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme import texts
from mydata_like.settings.pending_changes import ApiKeyChange
from mydata_like.settings.schema import Settings

ASK_AFTER = 400  # milliseconds after the last change of server or account


class ApiKeyRow(SideNote):
    """Accepts a new API key, or a request to remove the stored one."""

    edited = Signal()

    def __init__(self, config: Path | None, tasks: Tasks, parent: QWidget | None = None) -> None:
        super().__init__(
            self.tr("API key"),
            self.tr(
                "The key of the account, from its page on the server. It is stored in the "
                "system's keyring, or in a file that only you can read, and never in the "
                "settings."
            ),
            parent,
        )
        self._config = config
        self._tasks = tasks
        self._settings: Settings | None = None
        self._place = KeyPlace("", "")
        self._forgets = False
        self._line = QLineEdit(self)
        self._store = Choice(self)
        self._forget = QPushButton(self.tr("Forget"), self)
        self._reset = QToolButton(self)
        self._state = StatusIcon(self)
        self._problem = StatusIcon(self)
        self._timer = QTimer(self, interval=ASK_AFTER, singleShot=True)
        self.setFocusProxy(self._line)
        self._name_parts()
        self._lay_out()
        self._connect()
        self._show_state()

    @property
    def state(self) -> str:
        """The text about the storage of the key."""
        return self._state.text

    @property
    def change(self) -> ApiKeyChange | None:
        """The change of the key when the settings are saved; None for no change."""
        text = self._line.text().strip()
        if not text and not self._forgets:
            return None
        return ApiKeyChange(
            text or None, "file" if self._store.currentData() == "file" else "keyring"
        )

    def propose(self, text: str) -> None:
        """Accept a key from an imported file."""
        self._line.setText(text)
        self._show_state()

    def complain(self, text: str) -> None:
        """Show why the key was not stored."""
        self._problem.show_text(texts.plain(text), "problems", "problem")

    def look_at(self, settings: Settings | None) -> None:
        """Look up soon where the key of this account is stored."""
        if settings is None or (settings.server.url, settings.server.username) == self._owner:
            return
        self._settings = settings
        self._show_state()
        self._timer.start()

    @property
    def _owner(self) -> tuple[str, str]:
        known = self._settings.server if self._settings else None
        return (known.url, known.username) if known else ("", "")

    def _name_parts(self) -> None:
        self.label.setBuddy(self._line)
        self._line.setEchoMode(QLineEdit.EchoMode.Password)
        self._line.setAccessibleName(self.label.text())
        self._line.setAccessibleDescription(self.help.text())
        self._store.addItem(self.tr("In the system's keyring"), "keyring")
        self._store.addItem(self.tr("In a file, not encrypted"), "file")
        self._store.setAccessibleName(self.tr("Storage of the API key"))
        self._forget.setAccessibleName(self.tr("Remove the API key"))
        self._reset.setText(self.tr("Reset"))
        self._reset.setAutoRaise(True)
        self._reset.setAccessibleName(self.tr("Reset: %1").replace("%1", self.label.text()))

    def _lay_out(self) -> None:
        first, second, facts = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        first.addWidget(self._line, 1)
        second.addWidget(self._store, 1)
        second.addWidget(self._forget)
        facts.addWidget(self._state, 1)
        facts.addWidget(self._reset)
        for line in (first, second, facts):
            self.column.addLayout(line)
        self.column.addWidget(self._problem)
        self.column.addStretch(1)

    def _connect(self) -> None:
        self._line.textEdited.connect(self._take_text)
        self._store.activated.connect(self._take_text)
        self._forget.clicked.connect(self.forget)
        self._reset.clicked.connect(self._take_back)
        self._timer.timeout.connect(self._ask)

    @Slot()
    def _take_text(self) -> None:
        self._forgets = False
        self._show_change()

    def choose_store(self, store: str) -> None:
        """Choose the storage of a new key: `keyring` or `file`."""
        self._store.setCurrentIndex(self._store.findData(store))
        self._take_text()

    @Slot()
    def forget(self) -> None:
        """Request the removal of the key."""
        self._line.clear()
        self._forgets = True
        self._show_change()

    @Slot()
    def _take_back(self) -> None:
        self._line.clear()
        self._forgets = False
        self._show_change()

    def _show_change(self) -> None:
        self._problem.show_text("")
        self._show_state()
        self.edited.emit()

    @Slot()
    def _ask(self) -> None:
        if self._settings is not None:
            ask = partial(services.locate_api_key, self._settings, self._config)
            self._tasks.run(ask, self._take_place, latest=True)

    @Slot(object)
    def _take_place(self, place: KeyPlace) -> None:
        if (place.url, place.account) == self._owner:
            self._place = place
            self._show_state()

    def _show_state(self) -> None:
        change, place = self.change, self._place
        known = (place.url, place.account) == self._owner
        stored = known and bool(place.place)
        self._line.setPlaceholderText(
            self.tr("Stored; type a new one to replace it") if stored else ""
        )
        self._forget.setEnabled(stored and not self._forgets)
        self._reset.setVisible(change is not None)
        if change is not None:
            said = self.tr("New: stored with OK") if change.text else self.tr("Removed with OK")
            self._state.show_text(f"{CHANGED_MARK} {said}", "", "working")
        elif stored:
            said = self.tr("Stored in %1").replace("%1", self._name_place(place.place))
            self._state.show_text(said, "key")
        elif place.problem:
            self._state.show_text(texts.plain(place.problem), "waiting", "waiting")
        elif not known:
            self._state.show_text(self.tr("Looking up where it is stored"))
        elif place.url:
            self._state.show_text(self.tr("Needed before a run can start"), "waiting", "waiting")
        else:
            self._state.show_text("")

    def _name_place(self, place: str) -> str:
        return {
            "the keyring": self.tr("the keyring"),
            "the secrets file": self.tr("the secrets file"),
        }.get(place, texts.plain(place))
