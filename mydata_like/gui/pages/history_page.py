"""The page History: all runs, and the files of one."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QTimer, Slot
from PySide6.QtWidgets import QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.core.queries import RunRow, Table, View
from mydata_like.gui.base import AppContext, Page, PageTitle, page_layout
from mydata_like.gui.tables import table_panel
from mydata_like.gui.tables.columns import file_columns, run_columns
from mydata_like.gui.tables.table_panel import FilesPanel, TablePanel, action_button, export_rows
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.layouts import vbox
from mydata_like.gui.theme.metrics import SPACE
from mydata_like.gui.theme.widgets import PlainLabel, action, choose_target
from mydata_like.gui.window_state import KeptSplitter

translate = QCoreApplication.translate

MESSAGE_DURATION = 15_000  # milliseconds


class HistoryPage(Page):
    """A list of runs, the latest first, and below it the files that the selected run changed."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._context = context
        self._controller = context.controller
        self._runs = TablePanel(context, "history", run_columns(self._is_under_way), self)
        self._file_area = QWidget(self)
        self._files = FilesPanel(context, "history-files", file_columns(), self._file_area)
        self._title, self._message = PlainLabel("", self._file_area), PlainLabel("", self)
        self._export = action(self, "export", self.tr("Export…"), self._choose_file)
        self._timer = QTimer(self, singleShot=True, interval=MESSAGE_DURATION)
        self._runs.table.setAccessibleName(self.tr("Runs"))
        self._runs.empty_text = self.tr("There are no runs yet.")
        self._runs.offer_start()
        self._runs.field.hide()  # runs have no names
        self._runs.show_view(View(table=Table.RUNS))
        self._files.table.setAccessibleName(self.tr("Files of the run"))
        self._files.empty_text = self.tr("This run did not change the status of any file.")

        export = action_button(self._export, self)
        self._runs.add_title(PageTitle(translate("pages", "History"), self._runs))
        self._runs.add_top_widgets(self._message, export)
        vbox(self._title, (self._files, 1), inside=self._file_area, margins=(0, SPACE, 0, 0))
        self._file_area.setVisible(False)
        parts = (self._runs, self._file_area)
        page_layout(self, KeptSplitter("history", context.memory, parts, self))

        self._runs.selected.connect(self._open_run)
        self._timer.timeout.connect(self._message.clear)

    def export(self, path: Path) -> None:
        """Write all runs to a file, in the displayed order."""
        write = partial(
            export_rows,
            path,
            self.tr("Runs of mydata-like"),
            run_columns(self._is_under_way),
            table_panel.opener(self._controller),
            self._runs.model.view,
        )
        self._context.tasks.run(write, self._on_written, self._on_failed, writes=True)

    def _is_under_way(self, run: str) -> bool:
        return self._controller.state.is_under_way(run)

    @Slot()
    def _open_run(self) -> None:
        """Show the files that changed during the selected run."""
        runs = [row for row in self._runs.table.rows() if isinstance(row, RunRow)]
        run = runs[0] if len(runs) == 1 else None
        if run is not None and run.started is not None:
            until = int(run.finished.timestamp()) + 1 if run.finished else None
            title = self.tr("Files of the run of %1")
            self._title.setText(title.replace("%1", texts.moment(run.started)))
            self._files.switch_view(View(since=int(run.started.timestamp()), until=until))
        self._file_area.setVisible(run is not None)

    @Slot()
    def _choose_file(self) -> None:
        kinds = [self.tr("Table (*.csv)"), self.tr("Web page (*.html)"), self.tr("JSON (*.json)")]
        choose_target(self, self.tr("Export runs"), self._export_to, name="runs.csv", kinds=kinds)

    @Slot(str)
    def _export_to(self, name: str) -> None:
        self.export(Path(name))

    @Slot(object)
    def _on_written(self, path: Path) -> None:
        self._show_message(self.tr("Written to %1").replace("%1", texts.plain(str(path))))

    @Slot(object)
    def _on_failed(self, error: UploaderError) -> None:
        self._show_message(texts.problem_text(error))

    def _show_message(self, text: str) -> None:
        self._message.setText(text)
        self._timer.start()
