"""Rows for secrets, which are stored in the keyring or a file and never shown."""

from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication, QTimer, Signal, Slot
from PySide6.QtWidgets import QLineEdit, QPushButton, QWidget

from mydata_like.app import settings_service
from mydata_like.core.errors import SettingsError, UploaderError
from mydata_like.gui.settings_editor.editors import Choice
from mydata_like.gui.settings_editor.form import CHANGED_MARK, FormRow
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import hbox
from mydata_like.gui.theme.widgets import Question, push_button
from mydata_like.settings.pending_changes import KeyStore, SecretChange, SecretKind
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

NO_KEYRING: Final = "settings.no-keyring"  # a problem code
OWN_PLACES = ("the keyring", "the secrets file")  # as the service names them
ASK_AFTER = 400  # milliseconds after the last change of what the secret belongs to


class SecretPlace(NamedTuple):
    """Where a secret is stored, empty if it is not; `problem` is why that is unknown.

    `owner` is what the secret belongs to; see `find_secret_owner`. `former` is another address for
    which the account's API key is stored, if this one has none.
    """

    owner: tuple[str, str] = ("", "")
    place: str = ""
    problem: SettingsError | None = None
    former: str = ""


def describe_secret(kind: SecretKind) -> tuple[str, str]:
    """Return the label of a secret and its explanation."""
    stored = translate(
        "SecretRow",
        "It is stored in the system's keyring, or in a file that only you can read, and never in "
        "the settings.",
    )
    if kind is SecretKind.API_KEY:
        label = translate("SecretRow", "API key")
        meaning = translate("SecretRow", "The key of the account, from its page on the server.")
    else:
        label = translate("SecretRow", "S3 secret access key")
        meaning = translate(
            "SecretRow",
            "The secret of the S3 access key, from the administrator of the object storage. Each "
            "access key and S3 address has its own.",
        )
    return label, f"{meaning} {stored}"


class FormerKeyButton(QPushButton):
    """Uses the account's API key of another address after a question; hidden if there is none."""

    used = Signal()
    failed = Signal(object)  # an UploaderError

    def __init__(self, config: Path | None, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self._config = config
        self._tasks = tasks
        self._settings = Settings()
        self._former = ""
        self.hide()
        self.clicked.connect(self._ask)

    def offer(self, settings: Settings, former: str) -> None:
        """Offer the key of this address for that of the settings; no address hides the button."""
        self._settings, self._former = settings, former
        text = translate("SecretRow", "Use the key stored for %1…")
        self.setText(text.replace("%1", former.replace("&", "&&")))
        self.setVisible(bool(former))

    @Slot()
    def _ask(self) -> None:
        question = FormerKeyQuestion(self._former, self._settings.server.url, self)
        question.confirmed.connect(self._use)
        question.open()

    @Slot()
    def _use(self) -> None:
        use = partial(copy_api_key, self._settings, self._config, self._former)
        self._tasks.run(use, self._finish, self._fail, writes=True)

    def _finish(self, _nothing: object) -> None:
        self.hide()
        self.used.emit()

    def _fail(self, error: UploaderError) -> None:
        self.failed.emit(error)


class SecretRow(FormRow):
    """Accepts a new secret, or a request to remove the stored one.

    While nothing uses the secret, the row is disabled unless there is something to remove.
    """

    def __init__(
        self, kind: SecretKind, config: Path | None, tasks: Tasks, parent: QWidget | None = None
    ) -> None:
        super().__init__(*describe_secret(kind), parent)
        self._kind = kind
        self._config = config
        self._tasks = tasks
        self._settings: Settings | None = None
        self._unused = ""  # why nothing uses the secret
        self._place = SecretPlace()
        self._forgets = False
        self._line = QLineEdit(self)
        self.store = Choice(self)
        self.removal = push_button(self, self.tr("Forget"), self.forget)
        self.former = FormerKeyButton(config, tasks, self)
        self.reset = self.make_reset(self.label.text())
        self._timer = QTimer(self, interval=ASK_AFTER, singleShot=True)
        self.setFocusProxy(self._line)

        label = self.label.text()
        self.label.setBuddy(self._line)
        self._line.setEchoMode(QLineEdit.EchoMode.Password)
        self._line.setAccessibleName(label)
        self._line.setAccessibleDescription(self.help.text())
        self.store.addItem(self.tr("In the system's keyring"), "keyring")
        self.store.addItem(self.tr("In a file, not encrypted"), "file")
        self.store.setAccessibleName(self.tr("Storage: %1").replace("%1", label))
        self.removal.setAccessibleName(self.tr("Forget: %1").replace("%1", label))

        gap = self.fontMetrics().averageCharWidth()
        self.column.addWidget(self._line)
        for main, button, above in (
            (self.store, self.removal, gap),
            (self.source, self.reset, 0),
        ):
            line = hbox((main, 1), button)
            line.setContentsMargins(0, above, 0, 0)
            line.setSpacing(gap)
            self.column.addLayout(line)
        self.column.addWidget(self.former)
        self.column.addWidget(self.problem)
        self.column.addStretch(1)

        self._line.textEdited.connect(self._take_text)
        self.store.activated.connect(self._take_text)
        self.former.used.connect(self._take_former)
        self.former.failed.connect(self._refuse_former)
        self.reset.clicked.connect(self._take_back)
        self._timer.timeout.connect(self._ask)

        self._show_state()

    @property
    def change(self) -> SecretChange | None:
        """The change of the secret when the settings are saved; None for no change."""
        text = self._line.text().strip()
        if not text and not self._forgets:
            return None
        store: KeyStore = "file" if self.store.currentData() == "file" else "keyring"
        return SecretChange(text or None, store, self._kind)

    def propose(self, text: str) -> None:
        """Accept a secret from an imported file."""
        self._line.setText(text)
        self._show_state()

    def complain(self, text: str) -> None:
        """Show why the secret was not stored."""
        self.problem.show_text(text, "problems", "problem")

    def look_at(self, settings: Settings | None, unused: str = "") -> None:
        """Look up soon where the secret of these settings is stored.

        `unused` is the reason why nothing uses it, empty if something does.
        """
        owner = self._owner
        if settings is not None:
            self._settings = settings
        if unused == self._unused and owner == self._owner:
            return
        self._unused = unused
        if owner != self._owner:
            self._forgets = False  # the request was for the secret of another owner
            self._timer.start()
        self._show_state()

    @property
    def _owner(self) -> tuple[str, str] | None:
        return find_secret_owner(self._settings, self._kind) if self._settings else None

    @Slot()
    def _take_text(self) -> None:
        self._show_change(forgets=False)

    @Slot()
    def forget(self) -> None:
        """Request the removal of the secret."""
        self._line.clear()
        self._show_change(forgets=True)

    @Slot()
    def _take_back(self) -> None:
        self._line.clear()
        self._show_change(forgets=False)

    def _show_change(self, *, forgets: bool) -> None:
        self._forgets = forgets
        self.problem.show_text("")
        self._show_state()

    @Slot()
    def _ask(self) -> None:
        if self._settings is not None:
            ask = partial(locate_secret, self._settings, self._kind, self._config)
            self._tasks.run(ask, self._take_place, latest=True)

    def _take_place(self, place: SecretPlace) -> None:
        if place.owner == self._owner:
            self._place = place
            if self.change is None and place.place in OWN_PLACES:
                self.store.setCurrentIndex(OWN_PLACES.index(place.place))
            self._show_state()

    @Slot()
    def _take_former(self) -> None:
        self._place = SecretPlace()
        self._show_state()
        self._ask()

    @Slot(object)
    def _refuse_former(self, error: UploaderError) -> None:
        self.complain(texts.problem_text(error))

    def _show_state(self) -> None:
        change, place = self.change, self._place
        stored = place.owner == self._owner and bool(place.place)
        former = place.former if place.owner == self._owner and change is None else ""
        self.former.offer(self._settings or Settings(), former)
        self._line.setPlaceholderText(
            self.tr("Stored; type a new one to replace it") if stored else ""
        )
        self.removal.setEnabled(stored and place.place in OWN_PLACES and not self._forgets)
        self.reset.setVisible(change is not None)
        self.setEnabled(stored or change is not None or not self._unused)
        if change is not None:
            said = self.tr("New: stored with OK") if change.text else self.tr("Removed with OK")
            self.source.show_text(f"{CHANGED_MARK} {said}", "", "working")
        elif stored:
            said = self.tr("Stored in %1").replace("%1", self._name_place(place.place))
            self.source.show_text(said, "key")
        elif self._unused:
            self.source.show_text(self._unused)
        elif place.owner != self._owner:
            self.source.show_text(self.tr("Looking up where it is stored"))
        else:
            self.source.show_text(self._describe_absence(place), "waiting", "waiting")

    def _describe_absence(self, place: SecretPlace) -> str:
        """Return why no secret is known."""
        if place.problem is None:
            return self.tr("Needed before a run can start")
        said = texts.engine_text(place.problem.message)
        if place.problem.problem_code == NO_KEYRING:
            return self.tr("Without a keyring, it can be stored in a file.")
        return f"{said} {texts.with_labels(texts.engine_text(place.problem.hint))}".strip()

    def _name_place(self, place: str) -> str:
        names = (self.tr("the keyring"), self.tr("the secrets file"))
        return dict(zip(OWN_PLACES, names, strict=True)).get(place, texts.plain(place))


def find_secret_owner(settings: Settings, kind: SecretKind) -> tuple[str, str]:
    """Return the address and the account or access key that a secret belongs to; may be empty."""
    if kind is SecretKind.API_KEY:
        return settings.server.url, settings.server.username
    return settings.transfer.s3_endpoint, settings.transfer.s3_access_key


def locate_secret(settings: Settings, kind: SecretKind, config: Path | None) -> SecretPlace:
    """Return where a secret is stored, or why that is unknown."""
    owner, secrets = find_secret_owner(settings, kind), settings_service.open_secrets(config)
    place, problem, former = "", None, ""
    try:
        place = settings_service.locate_secret(settings, secrets, kind)
        if kind is SecretKind.API_KEY and not place:
            former = _find_former_key(settings, config)
    except SettingsError as error:
        problem = error
        if error.problem_code == NO_KEYRING and kind is SecretKind.API_KEY:
            former = _find_former_key(settings, config)
    return SecretPlace(owner, place, problem, former)


def _find_former_key(settings: Settings, config: Path | None) -> str:
    """Return another address with the account's key, also in the keyring for the saved address."""
    secrets = settings_service.open_secrets(config)
    try:
        saved = settings_service.load_settings(config, must_exist=False).settings.server.url
        return settings_service.find_former_key(settings, secrets, saved)
    except SettingsError:
        return ""


def copy_api_key(settings: Settings, config: Path | None, address: str) -> None:
    """Store the account's API key of another address also for that of these settings.

    Raises `SettingsError` if there is none, or if it cannot be stored.
    """
    secrets = settings_service.open_secrets(config)
    settings_service.copy_api_key(settings, secrets, address)


class FormerKeyQuestion(Question):
    """Asks whether to use the key of another address, `former`."""

    def __init__(self, former: str, address: str, parent: QWidget) -> None:
        super().__init__(former, parent)
        self.setWindowTitle(self.tr("Use the stored key"))
        text = self.tr("Use the API key that is stored for %1 also for %2?")
        self.setText(text.replace("%1", former).replace("%2", address))
        self.setInformativeText(
            self.tr(
                "The key gives access to the account, and is sent to the new address from then "
                "on. Do this only if both are addresses of the same server."
            )
        )
        role = Question.ButtonRole.AcceptRole
        self.offer(self.tr("&Use the key"), self.tr("&Cancel"), role)
