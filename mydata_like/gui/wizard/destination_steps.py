"""The wizard steps for where the data goes: the kind, and a destination without a server."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QButtonGroup, QLineEdit, QRadioButton, QStyle, QWidget

from mydata_like.core.copy_arguments import HostTarget
from mydata_like.core.errors import SettingsError
from mydata_like.gui.base import AppContext
from mydata_like.gui.settings_editor.connection_test_view import ConnectionRemedy, ConnectionTest
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Gap, hbox, vbox
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE
from mydata_like.gui.theme.widgets import (
    IconLabel,
    PlainLabel,
    choose_file,
    choose_folder,
    icon,
    push_button,
)
from mydata_like.gui.wizard.step_base import CheckLabel, Field, Readiness, WizardStep
from mydata_like.settings.schema import check_values

if TYPE_CHECKING:
    from mydata_like.app.onboarding import SetupState
    from mydata_like.settings.schema import DataDestination

KIND, ADDRESS, KEY_FILE = "destination.kind", "destination.address", "transfer.key_file"
MYTARDIS = "mytardis"


class KindStep(WizardStep):
    """Asks for the kind of destination, which decides what the other pages ask."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.title = self.tr("Where should the data go?")
        self.explanation = self.tr(
            "Every file is verified there after it has arrived, whatever you choose."
        )
        choices = (
            (
                *(MYTARDIS, "server", self.tr("To a &MyTardis server")),
                self.tr("The server lists the files of each dataset, for its owner."),
            ),
            (
                *("host", "computer", self.tr("To a &computer with SSH")),
                self.tr(
                    "A storage host, a cluster or a NAS on which you have an account. Nothing "
                    "has to be installed there."
                ),
            ),
            (
                *("folder", "folder", self.tr("To a &folder or network drive")),
                self.tr("Another disk, or a share that is mounted on this computer."),
            ),
            (
                *("s3", "dataset", self.tr("To a &bucket (S3)")),
                self.tr("Object storage of a cloud, or of your own institution."),
            ),
        )
        self.kinds = {kind: QRadioButton(text, self) for kind, _, text, _ in choices}
        self.verdict = CheckLabel(self, keeps_place=False)
        self._group = QButtonGroup(self)
        style, metric = self.style(), QStyle.PixelMetric
        indent = style.pixelMetric(metric.PM_ExclusiveIndicatorWidth)
        indent += style.pixelMetric(metric.PM_RadioButtonLabelSpacing)
        for kind, name, _, explanation in choices:
            button, sign = self.kinds[kind], IconLabel(1.2, self)
            sign.show_icon(icon(name))
            button.setAccessibleDescription(explanation)
            self._group.addButton(button)
            self.fields.append(Field(KIND, button, self.verdict))
            said = PlainLabel(explanation, self, wrap=True, quiet=True)
            lines = vbox(button, hbox(Gap(indent), (said, 1)), spacing=SPACE // 2)
            self.add(
                hbox((sign, Qt.AlignmentFlag.AlignTop), (lines, 1), spacing=2 * SPACE),
                Gap(LARGE_SPACE),
            )
        self.add(self.verdict, 1)
        self._group.buttonToggled.connect(self.changed)

    @property
    def chosen(self) -> str:
        """The chosen kind."""
        return next((kind for kind, it in self.kinds.items() if it.isChecked()), MYTARDIS)

    def fill(self, beginning: SetupState) -> None:
        self.kinds[self.settings.destination.kind].setChecked(True)

    def begin(self) -> None:
        self.kinds[self.chosen].setFocus()

    def changes(self) -> dict[str, object]:
        # The address of another kind is no address of this one.
        if self.chosen == self.settings.destination.kind:
            return {}
        return {KIND: self.chosen, ADDRESS: ""}

    def is_done(self, beginning: SetupState) -> bool:
        settings = beginning.loaded.settings
        return settings.destination.takes_tree or bool(settings.server.url)


class TargetStep(WizardStep):
    """Asks for a destination without a server, and tests it before it is saved."""

    kind = ""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self._tested: bool | None = None  # whether the test of what is entered has succeeded
        self.verdict = self._add_fields()
        self.test_button = push_button(self, self.tr("&Test"), self.run_test, "start")
        self.test_verdict = CheckLabel(self)
        self.test = ConnectionTest(self.tr("Steps of the test"), context.tasks, self)
        self.test.setMinimumHeight(self.fontMetrics().height() * 10)
        self.remedy = ConnectionRemedy(self.test, self)
        self.add(self.test_button, self.test_verdict, self.remedy, self.test, 1)

        self.test.started.connect(self._show_testing)
        self.test.ended.connect(self._conclude)

    @property
    def address(self) -> str:
        """The address as entered; empty if it is not complete."""
        raise NotImplementedError

    def _add_fields(self) -> CheckLabel:
        """Add the fields; return the label for what is wrong with the address."""
        raise NotImplementedError

    @property
    def readiness(self) -> Readiness:
        if self.test.running:
            return Readiness.CHECKING
        lacking = not self.address or not self.checked or self._tested is False
        return Readiness.LACKING if lacking else Readiness.READY

    def fill(self, beginning: SetupState) -> None:
        destination = self.settings.destination
        self.show_address(destination if destination.kind == self.kind else None)

    def show_address(self, stored: DataDestination | None) -> None:
        """Show the stored address, or none."""
        raise NotImplementedError

    def begin(self) -> None:
        self.fields[0].editor.setFocus()
        self.look()

    def end(self) -> None:
        self.test.stop()

    def confirm(self) -> None:
        if self._tested is None:
            self.run_test()

    def changes(self) -> dict[str, object]:
        return {KIND: self.kind, ADDRESS: self.address}

    def is_done(self, beginning: SetupState) -> bool:
        return bool(beginning.loaded.settings.destination.address)

    def look(self, *, typed: bool = False) -> None:
        """Show whether the address is valid; an earlier test no longer counts."""
        del typed
        self.test.stop()
        self._tested = None
        for part in (self.test, self.remedy):
            part.hide()
        self.test_verdict.show_note(self.tr("Nothing is left there by the test."))
        _, problems = check_values(self.changes()) if self.address else (None, ())
        self.checked = not problems
        self.verdict.clear()
        if problems:
            said = self.tr("The address %1.").replace("%1", texts.engine_text(problems[0].message))
            self.verdict.show_wrong(said)
        self.test_button.setEnabled(bool(self.address) and self.checked)
        self.changed.emit()

    @Slot()
    def run_test(self) -> None:
        """Test what is entered."""
        settings, problems = check_values(self.changes())
        if settings is None:
            self.verdict.show_wrong(texts.engine_text(problems[0].message))
            return
        entered = self.settings.with_values(
            destination=settings.destination,
            transfer=self.settings.transfer.with_values(key_file=settings.transfer.key_file),
        )
        self.test.start(self.config, entered)

    @Slot()
    def _show_testing(self) -> None:
        self.test.show()
        self.test_button.setEnabled(False)
        self.test_verdict.show_checking(self.tr("Testing…"))
        self.changed.emit()

    @Slot(str)
    def _conclude(self, worst: str) -> None:
        self._tested = worst != "failed"
        self.test_button.setEnabled(True)
        if self._tested:
            self.test_verdict.show_good(self.tr("Files can be sent there."))
        elif not self.remedy.isHidden():
            self.test_verdict.show_waiting(self.tr("One more step is needed to log in:"))
        else:
            self.test_verdict.show_wrong(self.tr("The test failed."))
        self.changed.emit()


class HostStep(TargetStep):
    """Asks for a computer with SSH: the account, the folder and the key."""

    kind = "host"

    def _add_fields(self) -> CheckLabel:
        self.title = self.tr("Which computer?")
        self.explanation = self.tr(
            "Your SSH configuration, keys and agent are used, as ssh uses them. A name from your "
            "SSH configuration is enough as the address."
        )
        self.account, self.folder, self.key_file = (QLineEdit(self) for _ in range(3))
        self.account.setPlaceholderText("ada@store.example.org")
        self.folder.setPlaceholderText("/data/microscope")
        self.key_file.setPlaceholderText(self.tr("The keys that ssh uses, or a new one"))
        choose = push_button(self, self.tr("C&hoose…"), self._choose_key, "key")
        verdict = self.add_field(self.tr("&Address"), self.account, key=ADDRESS)
        self.add_field(self.tr("&Folder there"), self.folder, key=ADDRESS)
        self.add_field(self.tr("&Key file (optional)"), self.key_file, choose, key=KEY_FILE)
        for field in (self.account, self.folder, self.key_file):
            field.textEdited.connect(self.look_typed)
        return verdict

    @property
    def address(self) -> str:
        account, folder = self.account.text().strip(), self.folder.text().strip()
        return join_host_address(account, folder) if account and folder else ""

    def show_address(self, stored: DataDestination | None) -> None:
        account, folder = split_host_address(stored) if stored else ("", "")
        self.account.setText(account)
        self.folder.setText(folder)

    def changes(self) -> dict[str, object]:
        return super().changes() | {KEY_FILE: self.key_file.text().strip() or None}

    @Slot()
    def _choose_key(self) -> None:
        start = str(Path.home() / ".ssh")
        choose_file(self, self.tr("Private key"), self._take_key, start=start)

    def _take_key(self, path: str) -> None:
        self.key_file.setText(str(Path(path)))
        self.look()


def join_host_address(account: str, folder: str) -> str:
    """Return the address of a folder on `[USER@]HOST[:PORT]`."""
    account = account.removeprefix("ssh://").rstrip("/")
    if not re.search(r":\d+$", account):
        return f"{account}:{folder}"
    path = quote(os.fsencode(folder))
    return f"ssh://{account}{path if path.startswith('/') else '/~/' + path}"


def split_host_address(stored: DataDestination) -> tuple[str, str]:
    """Return `[USER@]HOST[:PORT]` and the folder; both are empty if there is no address."""
    try:
        target = stored.parse()
    except SettingsError:
        return "", ""
    assert isinstance(target, HostTarget)
    user = f"{target.username}@" if target.username else ""
    host = f"[{target.host}]" if ":" in target.host else target.host
    port = f":{target.port}" if target.port else ""
    return f"{user}{host}{port}", os.fsdecode(target.path) or "."


class FolderStep(TargetStep):
    """Asks for a folder that is mounted here."""

    kind = "folder"

    def _add_fields(self) -> CheckLabel:
        self.title = self.tr("Which folder?")
        self.explanation = self.tr("A folder of another disk or of a network drive.")
        self.folder = QLineEdit(self)
        choose = push_button(self, self.tr("C&hoose…"), self._choose, "folder")
        verdict = self.add_field(self.tr("&Folder"), self.folder, choose, key=ADDRESS)
        self.folder.textEdited.connect(self.look_typed)
        return verdict

    @property
    def address(self) -> str:
        return os.path.expanduser(self.folder.text().strip())  # noqa: PTH111 - it never fails

    def show_address(self, stored: DataDestination | None) -> None:
        self.folder.setText(stored.address if stored else "")

    @Slot()
    def _choose(self) -> None:
        choose_folder(self, self.title, self._take_folder, start=self.folder.text())

    def _take_folder(self, path: str) -> None:
        self.folder.setText(str(Path(path)))
        self.look()


class BucketStep(TargetStep):
    """Asks for a bucket of an object storage."""

    kind = "s3"

    def _add_fields(self) -> CheckLabel:
        self.title = self.tr("Which bucket?")
        self.explanation = self.tr("Its access key is found as the AWS tools find it.")
        self.bucket = QLineEdit(self)
        self.bucket.setPlaceholderText("s3://bucket/folder")
        verdict = self.add_field(self.tr("&Address"), self.bucket, key=ADDRESS)
        self.bucket.textEdited.connect(self.look_typed)
        return verdict

    @property
    def address(self) -> str:
        return self.bucket.text().strip()

    def show_address(self, stored: DataDestination | None) -> None:
        self.bucket.setText(stored.address if stored else "")
