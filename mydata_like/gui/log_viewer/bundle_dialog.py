"""The dialog that shows a support bundle before it is saved."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QCheckBox, QListWidget, QSplitter, QWidget

from mydata_like.app import support_bundle
from mydata_like.app.support_bundle import BundleDocument
from mydata_like.core.errors import UploaderError
from mydata_like.gui.base import AppContext
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import Dialog, hbox, vbox
from mydata_like.gui.theme.widgets import PlainLabel, TextArea, choose_target, push_button

DEFAULT_NAME = "mydata-like-support.zip"


class BundleDialog(Dialog):
    """Lists every file of the bundle with its text, and saves exactly these."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Support bundle"), parent, 150, 36)
        self._context = context
        self._documents: Sequence[BundleDocument] = ()
        self._message = PlainLabel("", self, wrap=True)
        self._list = QListWidget(self)
        self._list.setAccessibleName(self.tr("Files of the bundle"))
        self._text = TextArea(self)
        self._text.setAccessibleName(self.tr("Text of the file"))
        self._text.setReadOnly(True)
        self._text.setLineWrapMode(TextArea.LineWrapMode.NoWrap)
        self._text.setTabChangesFocus(True)
        self._text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._include_names = QCheckBox(self.tr("Include names of files and folders"), self)
        self._include_names.setChecked(True)
        self._save = push_button(self, self.tr("Save…"), self._choose_file, "export")
        self._cancel = push_button(self, self.tr("Cancel"), self.reject)

        width = self.fontMetrics().averageCharWidth()
        splitter = QSplitter(self)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self._list)
        splitter.addWidget(self._text)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([width * 28, width * 110])
        buttons = hbox(self._include_names, 1, self._save, self._cancel)
        vbox(self._message, (splitter, 1), buttons, inside=self)

        self._include_names.toggled.connect(self._collect)
        self._list.currentRowChanged.connect(self._show_document)

        self._collect()

    @Slot()
    def _collect(self) -> None:
        self._save.setEnabled(False)
        self._include_names.setEnabled(False)
        self._message.setText(self.tr("Collecting diagnostic information"))
        config, names = self._context.controller.config, self._include_names.isChecked()
        collect = partial(support_bundle.collect_documents, config, names=names)
        self._context.tasks.run(collect, self._take_documents, self._fail)

    def _take_documents(self, documents: Sequence[BundleDocument]) -> None:
        row = max(0, self._list.currentRow())
        self._documents = documents
        self._list.clear()
        self._list.addItems([document.name for document in documents])
        self._list.setCurrentRow(min(row, len(documents) - 1))
        self._message.setText(
            self.tr(
                "This is the complete content. It contains no API keys or passwords. Review it"
                " before you send it."
            )
        )
        self._save.setEnabled(True)
        self._include_names.setEnabled(True)

    @Slot(int)
    def _show_document(self, row: int) -> None:
        self._text.setPlainText(self._documents[row].text if row >= 0 else "")

    @Slot()
    def _choose_file(self) -> None:
        choose_target(
            self,
            self.tr("Save the support bundle"),
            self._save_to,
            name=DEFAULT_NAME,
            kinds=[self.tr("Zip files (*.zip)")],
            start=str(Path.home()),
        )

    def _save_to(self, path: str) -> None:
        """Save the displayed files."""
        write = partial(support_bundle.write_bundle, Path(path), self._documents)
        self._context.tasks.run(write, self._finish, self._fail, writes=True)

    def _finish(self, _nothing: None) -> None:
        self.accept()

    def _fail(self, error: UploaderError) -> None:
        self._message.setText(texts.problem_text(error))
        self._include_names.setEnabled(True)
