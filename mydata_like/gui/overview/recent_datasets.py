"""The datasets whose files changed their state last, with what the server has verified of each."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QSizePolicy, QWidget

from mydata_like.core.queries import FolderGroup, RecentDataset
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui.base import AppContext
from mydata_like.gui.ledger_query import LedgerQuery, open_summary
from mydata_like.gui.overview.bars import ShareBar
from mydata_like.gui.run_state import PastRunState, RunState
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.metrics import LARGE_SPACE, SPACE
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, PlainLabel, icon
from mydata_like.settings.schema import Settings

translate = QCoreApplication.translate

MIN_ROWS, MAX_ROWS = 3, 8


def add_transfers(
    folders: Sequence[bytes | None], transfers: Sequence[ActiveTransfer]
) -> dict[bytes | None, int]:
    """Return the bytes that are under way to the datasets of these folders."""
    sums = dict.fromkeys(folders, 0)
    for transfer in transfers:
        above = [path for path in sums if path and transfer.name.startswith(path + b"/")]
        if above:
            sums[max(above, key=len)] += transfer.done
    return sums


class RecentDatasets(QFrame):
    """The datasets that are being sent, then those that changed last; hidden without any.

    It reads the ledger while `parent` is visible, so it also shows runs of other programs.
    """

    def __init__(self, context: AppContext, parent: QWidget, most: int = MIN_ROWS) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._controller = context.controller
        self._most = most
        self._shown: Sequence[RecentDataset] = ()
        self._transfers: Sequence[ActiveTransfer] = ()
        self._at_work = False
        self._seen: tuple[bool, PastRunState | None] = (False, None)
        self.query = LedgerQuery(context, parent, _find_recent, self._list_sent)
        self.query.answered.connect(self._show_datasets)
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(LARGE_SPACE)
        self._layout.setVerticalSpacing(SPACE)
        self._layout.setColumnStretch(1, 3)
        self._layout.setColumnStretch(2, 2)
        self._title = PlainLabel(self.tr("Recent datasets"), self, heading=1)
        self._layout.addWidget(self._title, 0, 0, 1, 5)
        self.rows = [_Row(self) for _ in range(MAX_ROWS)]
        for number, row in enumerate(self.rows, 1):
            for column, widget in enumerate(row.widgets):
                self._layout.addWidget(widget, number, column)
        self.hide()

    def show_state(self, state: RunState) -> None:
        """Read the ledger again if a run has begun or ended."""
        if (state.at_work, state.last) == self._seen:
            return
        self._seen = (state.at_work, state.last)
        self._at_work = state.at_work
        if not state.at_work:
            self._transfers = ()
        self.query.refresh()

    def show_transfers(self, transfers: Sequence[ActiveTransfer]) -> None:
        """Show the bytes of these transfers, and their datasets when the ledger is read next."""
        self._transfers = transfers
        self._show_rows()

    def allow_rows_for(self, spare: int) -> None:
        """Show more or fewer datasets, for a height in pixels that is left or, below 0, missing."""
        tallest = max(widget.sizeHint().height() for widget in self.rows[0].widgets)
        height = tallest + self._layout.verticalSpacing()
        shown = min(len(self._shown), self._most)
        most = max(MIN_ROWS, min(shown + spare // height, MAX_ROWS))
        if most != self._most:
            self._most = most
            self._show_rows()

    def _list_sent(self) -> tuple[list[bytes]]:
        """Return the names of the active transfers, whose datasets come first."""
        return ([transfer.name for transfer in self._transfers],)

    @Slot(object)
    def _show_datasets(self, datasets: Sequence[RecentDataset]) -> None:
        self._shown = datasets
        self._show_rows()

    def _show_rows(self) -> None:
        """Show the datasets; while they change often, in the order of their names."""
        shown = list(self._shown[: self._most])
        takes_tree = self._controller.settings.destination.takes_tree
        self._title.setText(self.tr("Recent folders") if takes_tree else self.tr("Recent datasets"))
        if self._at_work:
            shown.sort(key=lambda dataset: dataset.group.path or b"")
        sent = add_transfers([dataset.group.path for dataset in shown], self._transfers)
        for number, row in enumerate(self.rows):
            for widget in row.widgets:
                widget.setVisible(number < len(shown))
        for row, dataset in zip(self.rows, shown, strict=False):
            at = None if self._at_work else dataset.at
            under_way = sent[dataset.group.path]
            row.show_dataset(dataset.group, under_way, at, takes_tree=takes_tree)
        self.setVisible(bool(shown))


def _find_recent(
    settings: Settings, config: Path | None, files: Sequence[bytes]
) -> list[RecentDataset]:
    summary = open_summary(settings, config)
    return summary.find_recent_datasets(files, MAX_ROWS) if summary else []


class _Row:
    """The widgets of one dataset in the grid."""

    def __init__(self, parent: QWidget) -> None:
        shape = IconLabel(1.0, parent)
        shape.show_icon(icon("dataset"))
        self._name = ElidedLabel("", parent)
        self._bar = ShareBar("", parent)
        self._text, self._when = PlainLabel("", parent), PlainLabel("", parent, quiet=True)
        self.widgets = (shape, self._name, self._bar, self._text, self._when)

    def show_dataset(
        self, group: FolderGroup, under_way: int, at: int | None, *, takes_tree: bool
    ) -> None:
        """Show a dataset, with the bytes of its transfers under way; if it has one, its owner."""
        names = [name for name in (group.dataset, group.title, group.owner) if name]
        if takes_tree:
            names = names[:1]
        self._name.set_full_text(" · ".join(map(texts.plain, names)))
        share = group.verified_share if group.wanted else 0.0
        sent = (group.sent_bytes + under_way) / max(1, group.found_bytes)
        self._bar.show_shares((share, "good"), (max(0.0, min(sent, 1 - share)), "working"))
        text = translate("datasets", "%1 of %Ln file(s) verified", None, group.wanted)
        text = text.replace("%1", texts.count(group.verified))
        self._text.setText(text)
        self._when.setText("" if at is None else texts.moment(datetime.fromtimestamp(at, UTC)))
        self._when.setVisible(at is not None)
        self._bar.setAccessibleName(f"{self._name.full_text}: {text}")
