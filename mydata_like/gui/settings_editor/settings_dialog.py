"""The settings dialog: loads, edits and saves the settings."""

import datetime
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import QDialogButtonBox, QWidget

from mydata_like.app import settings_edit
from mydata_like.app.settings_edit import SettingsProposal
from mydata_like.core.errors import UploaderError
from mydata_like.engine.scheduler import Rule, next_start
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor import secret_row
from mydata_like.gui.settings_editor.connection_test_view import ConnectionTestDialog
from mydata_like.gui.settings_editor.form import FormRow, InlineMessage, describe_unused
from mydata_like.gui.settings_editor.secret_row import SecretRow
from mydata_like.gui.settings_editor.tabs import SettingsTabs
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, hbox, vbox
from mydata_like.gui.theme.widgets import PlainLabel, choose_file, choose_target, push_button
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.pending_changes import PendingChanges, SecretChange, SecretKind
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

SHOWN = 5
TOLD_AGAIN = 20_000  # milliseconds between two updates of the times


class SchedulePreview(FormRow):
    """Shows the next start times of a schedule, or describes when runs start."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(
            self.tr("Next starts"),
            self.tr("When runs would start automatically, in this computer's time."),
            parent,
        )
        self._settings: Settings | None = None
        self.message = PlainLabel("", self, wrap=True)
        self.column.addWidget(self.message)
        self._timer = QTimer(self, interval=TOLD_AGAIN)
        self._timer.timeout.connect(self._show_starts)
        self._show_starts()

    def show_settings(self, settings: Settings | None) -> None:
        """Show the next starts of these settings; None if they are invalid."""
        self._settings = settings
        self._show_starts()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def _show_starts(self) -> None:
        if self._settings is None:
            self.message.setText(self.tr("They are shown once the schedule is complete."))
            return
        now = datetime.datetime.now(datetime.UTC)
        self.message.setText(describe_starts(self._settings, now, None))


def describe_starts(
    settings: Settings, now: datetime.datetime, zone: datetime.tzinfo | None
) -> str:
    """Return when runs start automatically: the next times, one on each line, or a sentence."""
    schedule = settings.schedule
    said = {
        "manual": translate("starts", "Only when you press Start."),
        "startup": translate("starts", "Each time the program starts."),
        "saved": translate("starts", "Each time settings are saved."),
    }
    if schedule.kind in said:
        return said[schedule.kind]
    times = "\n".join(texts.moment(start, now) for start in find_starts(settings, now, zone))
    if schedule.kind == "watch":
        text = translate("starts", "When new files have not changed for %1, and at the latest:")
        settled = texts.span(settings.filters.settle_seconds)
        return f"{text.replace('%1', settled)}\n{times}"
    return times or translate("starts", "Never: that moment has passed.")


def find_starts(
    settings: Settings, now: datetime.datetime, zone: datetime.tzinfo | None
) -> Iterator[datetime.datetime]:
    """Yield the next few start times, in UTC."""
    rule = Rule.of(settings.schedule)
    moment = next_start(rule, now, zone)
    for _ in range(SHOWN):
        if moment is not None:
            yield moment
            moment = next_start(rule, moment, zone)


ACCOUNT, ACCESS_KEY = "server.username", "transfer.s3_access_key"  # each has a secret
REMARKS = 4  # shown of an imported file


class SettingsDialog(Dialog):
    """Shows all settings; OK saves only the changed ones."""

    left_unsaved = Signal(object)  # unsaved changes by dotted key
    settled = Signal()  # the unsaved changes were restored, or others were saved

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Settings"), parent, 140, 48)
        self._context = context
        self._wanted = ""  # the key to show first
        self._unsaved: Mapping[str, object] = {}  # unsaved changes of the last time
        self._busy = True
        self.draft = PendingChanges()
        self.key_row = SecretRow(SecretKind.API_KEY, context.controller.config, context.tasks)
        self.s3_row = SecretRow(SecretKind.S3_SECRET, context.controller.config, context.tasks)
        self._secret_rows = {ACCOUNT: self.key_row, ACCESS_KEY: self.s3_row}
        self.starts = SchedulePreview()
        asides = {**self._secret_rows, "schedule.to_time": self.starts}
        self.panes = SettingsTabs(asides, self)
        self.notice = InlineMessage(self)
        self.importing = push_button(self, self.tr("&Import…"), self._choose_source)
        self.exporting = push_button(self, self.tr("E&xport…"), self._choose_target)
        self.trying = push_button(self, self.tr("Test co&nnection…"), self._try)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel, self
        )
        self._ok = self.buttons.button(QDialogButtonBox.StandardButton.Ok)
        self._ok.setDefault(True)

        test = self.tr("Test the connection with these settings, step by step")
        for button, meaning in (
            (self.importing, self.tr("Take settings from MyData's MyData.cfg, or from a file")),
            (self.exporting, self.tr("Write the settings to a file, without secrets")),
            (self.trying, test),
        ):
            button.setToolTip(meaning)
            button.setAccessibleDescription(meaning)
        foot = hbox(self.importing, self.exporting, self.trying, 1, self.buttons)
        vbox((self.panes, 1), self.notice, foot, inside=self)

        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        self.panes.edited.connect(self._follow)

        self._load()

    @property
    def ready(self) -> bool:
        """Whether the settings are displayed and no file is being read or written."""
        return not self._busy

    def show_key(self, key: str, unsaved: Mapping[str, object]) -> None:
        """Show one setting first, and offer to restore unsaved changes."""
        self._wanted, self._unsaved = key, unsaved
        if self.ready:
            self._open_first()

    @Slot()
    def accept(self) -> None:
        """Save the settings, or show the first invalid one."""
        if self._busy:
            return
        wrong = self.draft.wrong_keys
        if wrong:
            text = self.tr("%Ln setting(s) must be corrected first", "", len(wrong))
            self.notice.show_text(text, "problems", "problem")
            self.panes.reveal(wrong[0])
        elif self.draft.changes or self._secret_changes:
            self._save()
        else:
            super().accept()

    @Slot()
    def reject(self) -> None:
        """Close without saving; the changes can be restored next time."""
        if self._busy and self.draft.changes:
            return  # it is being saved
        if self.draft.changes:
            self.left_unsaved.emit(self.draft.changes)
        super().reject()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        # During a search, Esc ends it and Enter goes to the first match; neither closes the dialog.
        match event.key():
            case Qt.Key.Key_Escape if self.panes.end_search():
                return
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if self.panes.go_to_found():
                return
            case _:
                super().keyPressEvent(event)

    def _load(self) -> None:
        self._set_busy(busy=True)
        read = partial(settings_edit.open_draft, self._context.controller.config)
        self._context.tasks.run(read, self._take_draft, self._fail)

    def _take_draft(self, draft: PendingChanges) -> None:
        """Show the settings that were read, with the earlier changes applied."""
        draft.take(self.draft.changes)
        self.draft = draft
        self.panes.show_draft(draft)
        self._follow()
        self._set_busy(busy=False)
        self._open_first()

    def _open_first(self) -> None:
        self.panes.reveal(self._wanted or next(iter(self.draft.wrong_keys), ""))
        self._wanted = ""
        if self.draft.file_problems:
            found = map(str, self.draft.file_problems[:REMARKS])
            said = "\n".join(map(texts.engine_text, found))
            self.notice.show_text(said, "problems", "problem")
        elif self._unsaved:
            text = self.tr("%Ln change(s) from last time were not saved", "", len(self._unsaved))
            self.notice.offer(text, self.tr("&Restore them"), self._bring_back)

    def _bring_back(self) -> None:
        self._take_changes(self._unsaved)
        self._unsaved = {}
        self.settled.emit()

    def _take_changes(self, changes: Mapping[str, object]) -> tuple[str, ...]:
        refused = self.draft.take(changes)
        self.panes.show_draft(self.draft)
        self._follow()
        return refused

    @Slot()
    def _follow(self) -> None:
        """Update everything that depends on the current values."""
        self.starts.show_settings(self.draft.part("schedule", "filters"))
        self.key_row.look_at(self.draft.part("server"))
        unused = describe_unused(ACCESS_KEY, self.draft)
        self.s3_row.look_at(self.draft.part("transfer"), unused)
        self.trying.setEnabled(not self._busy and self.draft.settings is not None)

    @property
    def _secret_changes(self) -> tuple[SecretChange, ...]:
        return tuple(row.change for row in self._secret_rows.values() if row.change)

    def _save(self) -> None:
        self._set_busy(busy=True)
        self.notice.clear()
        draft = self.draft
        edit = settings_edit.SettingsEdit(
            changes=draft.changes,
            seen=draft.seen,
            settings=draft.part("server", "transfer") or draft.part("server"),
            secrets=self._secret_changes,
        )
        save = partial(settings_edit.save_edit, self._context.controller.config, edit)
        self._context.tasks.run(save, self._finish, self._fail, writes=True)

    def _finish(self, _: object) -> None:
        self._context.controller.reload_settings()
        self.settled.emit()
        super().accept()

    def _fail(self, error: UploaderError) -> None:
        """Show an error next to the widget that it concerns."""
        self._set_busy(busy=False)
        match error.problem_code:
            case settings_edit.CHANGED_ELSEWHERE:  # by another program
                text = self.tr(
                    "The settings file was changed by another program. Your changes are applied on"
                    " top of it: review them and press OK again."
                )
                self.notice.show_text(text, "warning", "waiting")
                self._load()
            case secret_row.NO_KEYRING:
                self._ask_for_another_store(error)
            case _:
                problems = error.problems if isinstance(error, InvalidSettingsError) else ()
                self.panes.reveal(problems[0].key if problems else "")
                self.notice.show_text(texts.problem_text(error), "problems", "problem")

    def _ask_for_another_store(self, error: UploaderError) -> None:
        """Show the error at each secret that was meant for the keyring, and go to the first."""
        refused = {
            key: row
            for key, row in self._secret_rows.items()
            if row.change and row.change.store == "keyring"
        }
        for row in refused.values():
            row.complain(texts.engine_text(error.message))
        if refused:
            key, row = next(iter(refused.items()))
            self.panes.reveal(key)
            row.setFocus()
        text = self.tr(
            "The keyring cannot be used, and nothing was saved. Unlock it, or choose to keep the "
            "key in a file."
        )
        self.notice.show_text(text, "problems", "problem")

    def _set_busy(self, *, busy: bool) -> None:
        self._busy = busy
        self.panes.hold(held=busy)
        for button in (self.importing, self.exporting, self._ok):
            button.setEnabled(not busy)
        self.trying.setEnabled(not busy and self.draft.settings is not None)

    @Slot()
    def _try(self) -> None:
        settings = self.draft.settings
        if settings is not None:
            dialog = ConnectionTestDialog(self._context.tasks, self)
            dialog.test.start(self._context.controller.config, settings, self._secret_changes)
            dialog.show()

    @Slot()
    def _choose_source(self) -> None:
        kinds = [self.tr("Settings (*.cfg *.toml)")]
        choose_file(self, self.tr("Import settings"), self.read_file, kinds=kinds)

    def read_file(self, path: str) -> None:
        """Apply the settings of a file; nothing is saved before OK."""
        read = partial(settings_edit.read_proposal, Path(path), self._context.controller.config)
        self._context.tasks.run(read, self._take_proposal, self._fail)

    def _take_proposal(self, proposal: SettingsProposal) -> None:
        refused = self._take_changes(proposal.changes)
        if proposal.secret is not None:
            self.key_row.propose(proposal.secret.reveal())
        taken = len(proposal.changes) - len(refused)
        said = [self.tr("%Ln setting(s) were taken from the file; OK saves them.", "", taken)]
        said += [self.tr("%1 is locked and was not changed.").replace("%1", key) for key in refused]
        said += proposal.remarks
        more = len(said) - 1 - REMARKS
        if more > 0:
            said = [*said[: REMARKS + 1], self.tr("And %Ln more", "", more)]
        self.notice.show_text("\n".join(map(texts.engine_text, said)))

    @Slot()
    def _choose_target(self) -> None:
        choose_target(
            self,
            self.tr("Export the settings without secrets"),
            self.write_file,
            name="mydata-like-settings.toml",
            kinds=[self.tr("Settings (*.toml)")],
        )

    def write_file(self, path: str) -> None:
        """Write the displayed settings to a file, without secrets."""
        write = partial(settings_edit.export_settings, self.draft.own_values(), Path(path))
        self._context.tasks.run(write, self._show_exported, self._fail, writes=True)

    def _show_exported(self, _: object) -> None:
        self.notice.show_text(
            self.tr("The settings were written, without secrets."), "check", "good"
        )
