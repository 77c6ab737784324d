"""The wizard step for the SSH key: register, approve, and test the connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton, QWidget

from mydata_like.app import onboarding
from mydata_like.app.onboarding import PublicKeyInfo
from mydata_like.core.errors import NotApprovedError, UploaderError
from mydata_like.core.events import Event, Notice
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor.connection_test_view import ConnectionTest
from mydata_like.gui.tasks import BackgroundTask
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.widgets import PlainLabel, icon, push_button
from mydata_like.gui.wizard.step_base import CheckLabel, Readiness, WizardStep
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.registration import HostKey, NewFolder, RegistrationResult


class RegisteredInstrument(NamedTuple):
    """The approval, and the first staging host whose key is not trusted yet."""

    admission: RegistrationResult
    host_key: HostKey | None


class HostKeyPanel(QWidget):
    """Shows the key of a host, or the folder, that the user has not confirmed yet."""

    trusted = Signal(object)  # a Registered, with the next host's key

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self._registered: RegisteredInstrument | None = None
        self._tasks = context.tasks
        self._check = BackgroundTask()
        self._sentence = PlainLabel("", self, wrap=True)
        self.fingerprint = make_fingerprint(self)
        self.trust = push_button(self, self.tr("&Trust this host"), self._trust, "padlock")
        self.verdict = CheckLabel(self)
        self.show_earlier = QCheckBox(self.tr("Show the &earlier key"), self)
        self.earlier = PlainLabel("", self, wrap=True, selectable=True)
        line = hbox((self.fingerprint, 1), self.trust)
        parts = (self._sentence, line, self.show_earlier, self.earlier, self.verdict)
        frameless(vbox(*parts, inside=self))
        for part in (self.show_earlier, self.earlier, self):
            part.hide()

        self.show_earlier.toggled.connect(self.earlier.setVisible)

    def ask(self, registered: RegisteredInstrument) -> None:
        """Ask about the key of the next host, or about the folder."""
        self._registered = registered
        self.show_earlier.setChecked(False)
        if registered.admission.new_folder is not None:
            self._ask_folder(registered.admission.new_folder)
        elif registered.host_key is not None:
            self._ask_host(registered.host_key)
        self.fingerprint.setCursorPosition(0)
        self.verdict.clear()
        self.trust.setEnabled(True)
        self.show()

    def _ask_folder(self, new: NewFolder) -> None:
        self._sentence.setText(texts.engine_text(new.question))
        self.show_earlier.hide()
        self.fingerprint.setText(texts.plain(new.folder.host))
        self.fingerprint.setAccessibleName(self.tr("Folder of the staging area"))
        self.trust.setText(self.tr("&Write to this folder"))

    def _ask_host(self, key: HostKey) -> None:
        text = self.tr(
            "This is the first connection to the staging host %1, port %2. Compare the "
            "fingerprint of its key with the one from your administrator:"
        )
        if key.known:
            text = self.tr(
                "The staging host %1 identifies itself with another key than before: trust it only "
                "if your administrator confirms this fingerprint."
            )
        if key.endpoint.host_keys:
            text = self.tr(
                "The staging host %1 identifies itself with another key than those in the setting "
                "“Trusted host keys”: trust it only if your administrator confirms this "
                "fingerprint."
            )
        if key.endpoint.host_keys and key.endpoint.pinned_by_server:
            text = self.tr(
                "The staging host %1 identifies itself with another key than those that the "
                "server names: trust it only if your administrator confirms this fingerprint."
            )
        host = texts.plain(key.host)
        self._sentence.setText(text.replace("%1", host).replace("%2", str(key.port)))
        self.fingerprint.setText(key.fingerprint)
        self.fingerprint.setAccessibleName(self.tr("Fingerprint of the host's key"))
        self.earlier.setText(
            self.tr("Earlier key of port %1: %2")
            .replace("%1", str(key.port))
            .replace("%2", texts.plain(", ".join(key.known)))
        )
        self.show_earlier.setVisible(bool(key.known))

    def stop(self) -> None:
        """Cancel the request."""
        self._check.cancel()

    @Slot()
    def _trust(self) -> None:
        assert self._registered is not None
        self.trust.setEnabled(False)
        trust = partial(trust_host, self._registered)
        self._check = self._tasks.run(trust, self._finish, self._show_failure, writes=True)
        self.verdict.show_checking(self.tr("Looking for the next host…"))

    def _finish(self, registered: RegisteredInstrument) -> None:
        self.trusted.emit(registered)

    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)


def make_fingerprint(parent: QWidget) -> QLineEdit:
    """Return a field for a fingerprint, which can be copied."""
    field = QLineEdit(parent)
    field.setReadOnly(True)
    field.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
    return field


ASK_AFTER = 15_000  # milliseconds between two checks for the approval


class KeyStep(WizardStep):
    """Shows the key, waits for its approval, and then continues automatically."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.title = self.tr("Register this computer")
        self.explanation = self.tr(
            "Files are uploaded with a key that was created on this computer. An administrator "
            "of the server approves it once."
        )
        self.approved = False
        self._key: PublicKeyInfo | None = None
        self.again = QTimer(self, singleShot=True, interval=ASK_AFTER)
        self.fingerprint = make_fingerprint(self)
        copy = push_button(self, self.tr("&Copy"), self._copy_fingerprint, "copy")
        self.verdict = self.add_field(self.tr("&Key fingerprint"), self.fingerprint, copy)
        self.notice = CheckLabel(self, keeps_place=False)
        self.waiting = self._make_waiting()
        self.host_key = HostKeyPanel(context, self)
        self.test = TestFilePanel(context, self)
        self.add(self.notice, self.waiting, self.host_key, self.test, 1)

        self.copy_message.clicked.connect(self._copy_message)
        self.again.timeout.connect(self._ask)
        self.host_key.trusted.connect(self._take_approval)
        self.test.ended.connect(self.changed)

    @property
    def ready(self) -> bool:
        """Whether uploads can begin: the key is approved, and every host is trusted."""
        return self.approved and not self.test.isHidden()

    @property
    def proved(self) -> bool:
        """Whether a test file was uploaded and verified."""
        return self.approved and self.test.proved

    @property
    def readiness(self) -> Readiness:
        return Readiness.READY  # one need not wait for the approval

    def begin(self) -> None:
        self.approved = False
        show = partial(onboarding.show_key, self.settings, self.config)
        self.check.cancel()
        self.check = self._context.tasks.run(show, self._show_key, self._show_failure, writes=True)
        self.verdict.show_checking(self.tr("Reading the key…"))
        for part in (self.waiting, self.host_key, self.test):
            part.hide()

    def end(self) -> None:
        super().end()
        self.again.stop()
        self.host_key.stop()
        self.test.stop()

    def _make_waiting(self) -> QWidget:
        waiting = QWidget(self)
        text = PlainLabel(
            self.tr(
                "The administrator compares the fingerprint in the server's administration "
                "(MyData, uploader registration requests), chooses the storage box and ticks "
                "“approved”. You can close this window: the program keeps checking, and "
                "notifies you when the key is approved."
            ),
            waiting,
            wrap=True,
        )
        copy = self.tr("Copy a &message for the administrator")
        self.copy_message = QPushButton(icon("copy"), copy, waiting)
        self.ask_now = push_button(waiting, self.tr("Check &again now"), self._ask, "refresh")
        frameless(hbox((text, 1), vbox(self.copy_message, self.ask_now, 1), inside=waiting))
        return waiting

    def _show_key(self, key: PublicKeyInfo) -> None:
        self._key = key
        self.fingerprint.setText(key.fingerprint)
        self.fingerprint.setCursorPosition(0)
        self._ask()

    @Slot()
    def _ask(self) -> None:
        """Check whether the key is approved; the first check registers it."""
        self.again.stop()
        self.ask_now.setEnabled(False)
        self.run_check(
            self.verdict,
            self.tr("Checking whether the key is approved…"),
            partial(register, self.config, self.settings),
            self._take_approval,
            failed=self._show_failure,
            progress=self._show_notice,
        )

    def _show_notice(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notice.show_caution(texts.problem_text(event.problem))

    def _show_failure(self, error: UploaderError) -> None:
        if isinstance(error, NotApprovedError):
            self.verdict.show_waiting(texts.problem_text(error))
        else:
            self.verdict.show_problem(error.problem)
        self.waiting.setVisible(self._key is not None)
        self.ask_now.setEnabled(True)
        if self._key is not None:
            self.again.start()
        self.changed.emit()

    @Slot(object)
    def _take_approval(self, registered: RegisteredInstrument) -> bool:
        """Continue: confirm the keys of the staging hosts, then offer a test upload."""
        self.waiting.hide()
        self.approved = True
        box = registered.admission.area.box
        self.verdict.show_good(
            self.tr("The key is approved for the storage box “%1”.").replace("%1", box)
        )
        if registered.host_key is not None or registered.admission.new_folder is not None:
            self.host_key.ask(registered)
        else:
            self.host_key.hide()
            self.test.offer(self.settings)
        self.changed.emit()
        return True

    @Slot()
    def _copy_fingerprint(self) -> None:
        QGuiApplication.clipboard().setText(self.fingerprint.text())

    @Slot()
    def _copy_message(self) -> None:
        """Copy the message to send to the administrator."""
        assert self._key is not None
        instrument = self.settings.instrument
        text = self.tr(
            "Please let the uploader “%1” of %2 send data to %3.\n\n"
            "Its key has the fingerprint %4 (MD5 %5).\n\n"
            "In the server's administration, under MyData, uploader registration requests: "
            "compare the fingerprint, choose the storage box and tick “approved”. Then let the "
            "key into the staging host's account.\n"
        )
        for mark, value in (
            ("%1", instrument.name),
            ("%2", instrument.facility),
            ("%3", self.settings.server.url),
            ("%4", self._key.fingerprint),
            ("%5", self._key.md5_fingerprint),
        ):
            text = text.replace(mark, value)
        QGuiApplication.clipboard().setText(text)


class TestFilePanel(QWidget):
    """A button that sends a test file, and the results of each step below it."""

    ended = Signal()

    def __init__(self, context: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self.proved = False
        self._config = context.controller.config
        self._settings = Settings()
        self.send = push_button(self, self.tr("&Send a test file"), self._send, "start")
        self.steps = ConnectionTest(self.tr("Steps of the test upload"), context.tasks, self)
        self.steps.setMinimumHeight(self.fontMetrics().height() * 14)
        self.verdict = CheckLabel(self)
        frameless(vbox(hbox(self.send, 1), self.verdict, self.steps, inside=self))
        self.hide()
        self.steps.ended.connect(self._conclude)

    def offer(self, settings: Settings) -> None:
        """Offer a test upload to the server of these settings."""
        self._settings = settings
        self.proved = False
        self.steps.hide()
        self.verdict.show_note(
            self.tr("A small file is uploaded, verified on the server and deleted again.")
        )
        self.show()
        self.send.setEnabled(True)
        self.send.setFocus()

    def stop(self) -> None:
        """Cancel a running test."""
        self.steps.stop()

    @Slot()
    def _send(self) -> None:
        self.send.setEnabled(False)
        self.steps.show()
        self.verdict.show_checking(self.tr("Uploading a small file…"))
        self.steps.start(self._config, self._settings)

    @Slot(str)
    def _conclude(self, worst: str) -> None:
        self.proved = worst != "failed"
        if not self.proved:
            self.verdict.show_wrong(self.tr("The test file did not arrive; see the last line."))
        elif worst == "unproven":
            self.verdict.show_good(self.tr("Nothing failed, but not every step could be verified."))
        else:
            self.verdict.show_good(self.tr("The test upload succeeded. You can finish now."))
        self.send.setText(self.tr("&Send it again"))
        self.send.setEnabled(True)
        self.ended.emit()


def register(
    config: Path | None, settings: Settings, report: Callable[[Event], None], cancel: CancelFlag
) -> RegisteredInstrument:
    """Request approval; raises `NotApprovedError` until it is given."""
    # Imported here, in the background, since this takes a fifth of a second.
    from mydata_like.app import registration
    from mydata_like.app.run_request import RunObserver, RunRequest

    request = RunRequest(settings=settings, config=config)
    admission = registration.register(request, RunObserver(emit=report, cancel=cancel))
    return RegisteredInstrument(admission, next(admission.unknown_host_keys, None))


def trust_host(registered: RegisteredInstrument) -> RegisteredInstrument:
    """Trust the key of the staging host, and contact the next host; or confirm the folder."""
    # Imported here, as `register` has imported it.
    from mydata_like.app import registration

    admission, host_key = registered
    if admission.new_folder is not None:
        registration.confirm_folder(admission.new_folder)
        return RegisteredInstrument(replace(admission, new_folder=None), None)
    assert host_key is not None
    registration.trust_host(host_key)
    return RegisteredInstrument(admission, next(admission.unknown_host_keys, None))
