"""The wizard step for the data directory and its layout."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QObject, Slot
from PySide6.QtWidgets import QComboBox, QHeaderView, QLineEdit, QPushButton, QTableView, QWidget

from mydata_like.app import onboarding
from mydata_like.app.onboarding import LayoutPreview, LayoutSample, SetupState
from mydata_like.core.errors import UploaderError
from mydata_like.core.model import Layout
from mydata_like.gui.base import AppContext
from mydata_like.gui.table_model import Column, RowsModel, style_table
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.style import CELL_MARGIN
from mydata_like.gui.theme.widgets import PlainLabel, choose_folder, push_button
from mydata_like.gui.wizard.step_base import CheckLabel, WizardStep

OWNER, EXPERIMENT, DATASET, FOLDER, FILES, SIZE = range(6)  # the columns


class PreviewModel(RowsModel[LayoutSample]):
    """Dataset folders, in the order in which they were found; `instrument` is its name."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.instrument = ""
        self.columns = (
            Column("owner", self.tr("Owner"), lambda it: texts.plain(it.owner), tip=_path),
            Column("experiment", self.tr("Experiment"), self._experiment, tip=_path),
            Column("dataset", self.tr("Dataset"), lambda it: texts.plain(it.dataset), tip=_path),
            Column("folder", self.tr("Folder"), self._folder, tip=_path),
            Column("files", self.tr("Files"), _files, number=True, tip=_path),
            Column("size", self.tr("Size"), _size, number=True, tip=_path),
        )

    def _experiment(self, sample: LayoutSample) -> str:
        return texts.plain(sample.experiment or f"{self.instrument} - …")

    def _folder(self, sample: LayoutSample) -> str:
        return texts.plain(sample.path) or self.tr("(files in no folder)")


def _files(sample: LayoutSample) -> str:
    return texts.count(sample.files) + ("+" if sample.more else "")


def _size(sample: LayoutSample) -> str:
    return texts.size(sample.size) + ("+" if sample.more else "")


def _path(sample: LayoutSample) -> str:
    return texts.plain(sample.path)


translate = QCoreApplication.translate


def layout_name(layout: Layout) -> str:
    """Return a layout's name in the user's language."""
    return {
        Layout.USERNAME_DATASET: translate("layouts", "User name / Dataset"),
        Layout.EMAIL_DATASET: translate("layouts", "E-mail address / Dataset"),
        Layout.USERNAME_EXPERIMENT_DATASET: translate(
            "layouts", "User name / Experiment / Dataset"
        ),
        Layout.EMAIL_EXPERIMENT_DATASET: translate(
            "layouts", "E-mail address / Experiment / Dataset"
        ),
        Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET: translate(
            "layouts", "User name / “MyTardis” / Experiment / Dataset"
        ),
        Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET: translate(
            "layouts", "User group / Instrument / Full name / Dataset"
        ),
        Layout.GROUP_DATASET: translate("layouts", "User group / Dataset"),
        Layout.GROUP_EXPERIMENT_DATASET: translate("layouts", "User group / Experiment / Dataset"),
        Layout.EXPERIMENT_DATASET: translate("layouts", "Experiment / Dataset"),
        Layout.DATASET: translate("layouts", "Dataset"),
    }[layout]


def layout_example(layout: Layout, instrument: str) -> str:
    """Return the path of an example file in this layout."""
    return {
        Layout.USERNAME_DATASET: "ada/2026-05-01 liver/image.tif",
        Layout.EMAIL_DATASET: "ada@example.org/2026-05-01 liver/image.tif",
        Layout.USERNAME_EXPERIMENT_DATASET: "ada/Mice 7/2026-05-01 liver/image.tif",
        Layout.EMAIL_EXPERIMENT_DATASET: "ada@example.org/Mice 7/2026-05-01 liver/image.tif",
        Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET: (
            "ada/MyTardis/Mice 7/2026-05-01 liver/image.tif"
        ),
        Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET: (
            f"Lab A/{instrument or 'Microscope'}/Ada Lovelace/2026-05-01 liver/image.tif"
        ),
        Layout.GROUP_DATASET: "Lab A/2026-05-01 liver/image.tif",
        Layout.GROUP_EXPERIMENT_DATASET: "Lab A/Mice 7/2026-05-01 liver/image.tif",
        Layout.EXPERIMENT_DATASET: "Mice 7/2026-05-01 liver/image.tif",
        Layout.DATASET: "2026-05-01 liver/image.tif",
    }[layout]


DIRECTORY, LAYOUT = "data.directory", "data.layout"
NAMED = 3  # folders or owners that are named; the others are only counted


class FoldersStep(WizardStep):
    """Asks for the data folder, and shows the datasets that its first folders would become."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(context, parent)
        self.title = self.tr("Which data?")
        self.explanation = self.tr(
            "The folder in which the instrument saves its data. Nothing in it is ever changed."
        )
        self._found: LayoutPreview | None = None
        self.directory = QLineEdit(self)
        self.browse = push_button(self, self.tr("C&hoose…"), self._choose_folder, "folder")
        self._directory_verdict = self.add_field(
            self.tr("Data &folder"), self.directory, self.browse, key=DIRECTORY
        )
        self.layout_box = QComboBox(self)
        for layout in Layout:
            self.layout_box.addItem(layout_name(layout), layout)
        self.example = self.add_field(self.tr("Folder &structure"), self.layout_box, key=LAYOUT)
        captions = self.findChildren(PlainLabel)
        self.layout_caption = next(it for it in captions if it.buddy() is self.layout_box)
        self.model = PreviewModel(self)
        self.table = self._make_table()
        self.verdict = CheckLabel(self)
        self.suggestion = QPushButton(self)
        self.suggestion.hide()
        self.owners = CheckLabel(self, keeps_place=False)
        self.names = CheckLabel(self, keeps_place=False)
        self.left_out = CheckLabel(self, keeps_place=False)
        self.add(
            *(self.table, self.verdict, self.suggestion, self.names, self.left_out, self.owners)
        )

        self.directory.textEdited.connect(self.look_typed)
        self.layout_box.currentIndexChanged.connect(self._choose_layout)
        self.suggestion.clicked.connect(self._take_suggestion)

    @property
    def chosen(self) -> Layout:
        """The layout that is selected."""
        return Layout(self.layout_box.currentData())

    @property
    def takes_tree(self) -> bool:
        """Whether the folders arrive as they are, so that no layout is needed."""
        return self.settings.destination.takes_tree

    def fill(self, beginning: SetupState) -> None:
        for part in (self.layout_caption, self.layout_box, self.example):
            part.setVisible(not self.takes_tree)
        for column in (OWNER, EXPERIMENT, DATASET):
            self.table.setColumnHidden(column, self.takes_tree)
        self.table.setColumnHidden(FOLDER, not self.takes_tree)
        self.layout_box.setCurrentIndex(self.layout_box.findData(self.settings.data.layout))
        self._show_example()

    def begin(self) -> None:
        self.directory.setFocus()
        self.look()

    def changes(self) -> dict[str, object]:
        directory: dict[str, object] = {DIRECTORY: self.directory.text().strip()}
        return directory if self.takes_tree else directory | {LAYOUT: self.chosen.value}

    def _make_table(self) -> QTableView:
        table = QTableView(self)
        style_table(table)
        table.setModel(self.model)
        table.setAccessibleName(self.tr("What the folders become"))
        metrics, header = self.fontMetrics(), table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        for column, longest in ((FILES, "20,000+"), (SIZE, "999.9 MB+")):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            table.setColumnWidth(column, metrics.horizontalAdvance(longest) + 2 * CELL_MARGIN)
        table.setMinimumHeight(metrics.height() * 8)
        return table

    @Slot()
    def _choose_layout(self) -> None:
        self._show_example()
        if self.isVisible():
            self.look()

    @Slot()
    def _choose_folder(self) -> None:
        title, start = self.tr("Data folder"), self.directory.text()
        choose_folder(self, title, self._take_folder, start=start)

    def _take_folder(self, path: str) -> None:
        self.directory.setText(str(Path(path)))
        self.look()

    @Slot()
    def _take_suggestion(self) -> None:
        assert self._found is not None
        self.layout_box.setFocus()
        self.layout_box.setCurrentIndex(self.layout_box.findData(self._found.suggestion))

    def _show_example(self) -> None:
        example = layout_example(self.chosen, self.settings.instrument.name)
        self.example.show_note(self.tr("For example: %1").replace("%1", texts.plain(example)))

    def look(self, *, typed: bool = False) -> None:
        """Scan the folders, and show what they would become."""
        self._found = None
        self.model.show(())
        self.model.instrument = self.settings.instrument.name
        self.suggestion.hide()
        labels = (self.owners, self.names, self.left_out, self._directory_verdict, self.verdict)
        for label in labels:
            label.clear()
        text = self.directory.text().strip()
        wrong = self.find_wrong(DIRECTORY, text)
        if wrong:
            self._directory_verdict.show_wrong(self.tr("The folder %1.").replace("%1", wrong))
        if wrong or not text:
            self.stop_check()
            return
        layout = Layout.DATASET if self.takes_tree else self.chosen
        chosen = {"directory": Path(text).expanduser(), "layout": layout}
        settings = self.settings.with_values(data=self.settings.data.with_values(**chosen))
        login = onboarding.Credentials(settings.server, self.config)
        self.run_check(
            self.verdict,
            self.tr("Scanning the folders…"),
            partial(onboarding.preview_layout, settings, login),
            self._show_preview,
            failed=self._show_failure,
            progress=self._add_sample,
            typed=typed,
        )

    def _add_sample(self, sample: LayoutSample) -> None:
        self.model.append([sample])

    def _show_preview(self, found: LayoutPreview) -> bool:
        self._found = found
        self._show_folders(found)
        if found.suggestion is not None:
            text = self.tr("Did you mean “%1”? &Use it")
            self.suggestion.setText(text.replace("%1", layout_name(found.suggestion)))
            self.suggestion.show()
        if any(not sample.experiment for sample in self.model.rows):
            self.names.show_note(
                self.tr("The server completes “…” with the full name of the owner.")
            )
        self._show_left_out(found)
        self._show_owners(found)
        return True

    def _show_folders(self, found: LayoutPreview) -> None:
        number = self.tr("%Ln dataset(s) found.", None, found.folders)
        if not found.complete:
            number = self.tr("More than %Ln dataset(s) found.", None, found.folders)
        if self.takes_tree and not self.model.rows:
            self.verdict.show_caution(self.tr("The folder has no files yet."))
        elif self.takes_tree:
            self.verdict.show_good(self.tr("Folders and files arrive there as they are here."))
        elif not found.folders:
            self.verdict.show_caution(
                self.tr("No folder fits this layout yet, so there is nothing to upload.")
            )
        elif found.misfits:
            text = self.tr("%Ln folder(s) do not fit this layout:", None, len(found.misfits))
            self.verdict.show_caution(f"{number} {text} {_name_some(found.misfits)}")
        else:
            self.verdict.show_good(number)

    def _show_left_out(self, found: LayoutPreview) -> None:
        """Show what is not uploaded, and why."""
        if not found.left_out:
            return
        first, number = found.left_out[0], sum(left.number for left in found.left_out)
        text = self.tr("%Ln file(s) or folder(s) are left out, such as %1: %2", None, number)
        name = texts.plain(first.example.rpartition(b"/")[2])
        text = text.replace("%1", name).replace("%2", texts.engine_text(first.problem.message))
        if number > 1:
            text = f"{text} {self.tr('A dry run lists all of them.')}"
        self.left_out.show_note(text)

    def _show_owners(self, found: LayoutPreview) -> None:
        if found.strangers is None:
            text = self.tr("The owners could not be checked on the server.")
            self.owners.show_caution(text)
        elif found.strangers:
            text = self.tr(
                "%Ln owner(s) are not known to the server; their data go to the facility:",
                None,
                len(found.strangers),
            )
            self.owners.show_caution(f"{text} {_name_some(found.strangers)}")

    def _show_failure(self, error: UploaderError) -> None:
        self.verdict.clear()
        self._directory_verdict.show_problem(error.problem)
        self.changed.emit()


def _name_some(names: tuple[str, ...]) -> str:
    shown = ", ".join(texts.plain(name) for name in names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown}, …"
