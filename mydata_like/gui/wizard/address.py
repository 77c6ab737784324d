"""The first page: where the server is, or what MyData knows of all this already."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.gui.choosing import choose_file
from mydata_like.gui.demonstration import is_installed
from mydata_like.gui.look import words
from mydata_like.gui.look.icons import icon
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.pages.page import Desk
from mydata_like.gui.wizard import asking
from mydata_like.gui.wizard.step import Readiness, Step
from mydata_like.gui.wizard.takeover import TakeoverSheet

if TYPE_CHECKING:
    from mydata_like.app.onboarding import ServerCheckResult, SetupState

URL = "server.url"


class AddressStep(Step):
    """Asks for the server's address; another one that was found is offered as a button."""

    demo_wanted = Signal()

    def __init__(self, desk: Desk, parent: QWidget | None = None) -> None:
        super().__init__(desk, parent)
        self.title = self.tr("Which server?")
        self.explanation = self.tr(
            "The web address of your MyTardis server, as you open it in a browser."
        )
        self._found = ""
        self._legacy: Path | None = None
        self.address = QLineEdit(self)
        self.address.setPlaceholderText("mytardis.example.org")
        self.verdict = self.add_field(self.tr("Server &address"), self.address, key=URL)
        self.better = QPushButton(self)
        self.better.hide()
        self.add(self.better)
        self._old = PlainLabel("", self)
        self._old.setWordWrap(True)
        self.import_button = QPushButton(icon("import"), self.tr("&Import from MyData…"), self)
        self._choose_button = QPushButton(self.tr("&Choose a MyData.cfg…"), self)
        self.demo = QPushButton(icon("start"), self.tr("&Try the demo"), self)
        self.demo.setVisible(is_installed())
        self._lay_out()
        self._connect()

    @property
    def readiness(self) -> Readiness:
        if self.check.running:
            return Readiness.CHECKING
        return Readiness.READY if self._found else Readiness.LACKING

    def fill(self, beginning: SetupState) -> None:
        self.address.setText(self.settings.server.url)
        self.guard(self.address, self.verdict)
        self._legacy = beginning.legacy
        self.import_button.setVisible(self._legacy is not None)
        self._old.setText(self._tell_legacy())

    def begin(self) -> None:
        self.address.setFocus()
        if self.address.text():
            self._check()

    def changes(self) -> dict[str, object]:
        return {URL: self._found}

    def is_done(self, beginning: SetupState) -> bool:
        return bool(beginning.loaded.settings.server.url)

    def open_takeover(self, source: Path | None) -> TakeoverSheet:
        """Show what MyData's settings would change, and take them over if that is wanted."""
        sheet = TakeoverSheet(self._desk, source, self)
        sheet.carried_over.connect(self.taken_over)
        sheet.open()
        return sheet

    def _lay_out(self) -> None:
        self.add_space()
        line = QHBoxLayout()
        line.addWidget(self.import_button)
        line.addWidget(self._choose_button)
        line.addStretch(1)
        line.addWidget(self.demo)
        self.add(self._old)
        self.add(line)

    def _connect(self) -> None:
        self.address.textEdited.connect(self._type)
        self.better.clicked.connect(self._take_better)
        self.import_button.clicked.connect(self._import_found)
        self._choose_button.clicked.connect(self._choose_file)
        self.demo.clicked.connect(self.demo_wanted)

    def _tell_legacy(self) -> str:
        if self._legacy is None:
            return self.tr("Has MyData been used before? Its settings can be taken over.")
        text = self.tr("MyData has been used on this computer: %1")
        return text.replace("%1", words.plain(str(self._legacy)))

    @Slot()
    def _type(self) -> None:
        self._check(typed=True)

    def _check(self, *, typed: bool = False) -> None:
        self._found = ""
        self.better.hide()
        text = self.address.text().strip()
        if text:
            server = self.settings.server
            find = partial(asking.check_address, server, text)
            self.run_check(find, self._show_found, self._show_failure, typed=typed)
            self.verdict.show_checking(self.tr("Looking for the server…"))
        else:
            self.check.cancel()
            self.verdict.clear()
        self.changed.emit()

    @Slot(object)
    def _show_found(self, reached: ServerCheckResult) -> None:
        if reached.problem is not None:
            self._offer(reached)
        else:
            self._found = reached.url
            self.verdict.show_good(
                self.tr("This is a MyTardis server: %1").replace("%1", reached.url)
            )
        self.changed.emit()

    def _offer(self, reached: ServerCheckResult) -> None:
        assert reached.problem is not None
        self.verdict.show_wrong(reached.problem.message)
        self._better = reached.url
        self.better.setText(self.tr("&Use %1").replace("%1", words.plain(reached.url)))
        self.better.show()

    @Slot(object)
    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.show_problem(error.problem)
        self.changed.emit()

    @Slot()
    def _take_better(self) -> None:
        self.address.setText(self._better)
        self.address.setFocus()
        self._check()

    @Slot()
    def _import_found(self) -> None:
        self.open_takeover(None)

    @Slot()
    def _choose_file(self) -> None:
        kinds = self.tr("MyData's settings (*.cfg);;All files (*)").split(";;")
        choose_file(self, self.tr("Settings of MyData"), self._take_over, kinds=kinds)

    @Slot(str)
    def _take_over(self, path: str) -> None:
        self.open_takeover(Path(path))
