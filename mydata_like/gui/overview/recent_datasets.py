"""The datasets whose files changed their state last, with what the server has verified of each."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

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

translate = QCoreApplication.translate

MIN_ROWS, MAX_ROWS = 3, 8


class DatasetProgress(NamedTuple):
    """A dataset, with the bytes of its transfers under way."""

    group: FolderGroup
    under_way: int


def add_transfers(
    groups: Sequence[FolderGroup], transfers: Sequence[ActiveTransfer]
) -> list[DatasetProgress]:
    """Return the datasets with what is under way to each."""
    sums = {group.path: 0 for group in groups}
    for transfer in transfers:
        above = [path for path in sums if path and transfer.name.startswith(path + b"/")]
        if above:
            sums[max(above, key=len)] += transfer.done
    return [DatasetProgress(group, sums[group.path]) for group in groups]


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
        self._query = LedgerQuery(context, parent, self._ask)
        self._query.answered.connect(self._show_datasets)
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(LARGE_SPACE)
        self._layout.setVerticalSpacing(SPACE)
        self._layout.setColumnStretch(1, 3)
        self._layout.setColumnStretch(2, 2)
        self._title = PlainLabel(self.tr("Recent datasets"), self)
        self._title.scale(1.0, bold=True)
        self._layout.addWidget(self._title, 0, 0, 1, 5)
        self.rows = [_Row(self, number) for number in range(1, MAX_ROWS + 1)]
        for row in self.rows:
            row.add_to(self._layout)
        self.hide()

    @Slot()
    def refresh(self) -> None:
        """Read the ledger; for the moment when the widget becomes visible."""
        self._query.refresh()

    def show_state(self, state: RunState) -> None:
        """Read the ledger again if a run has begun or ended."""
        if (state.at_work, state.last) == self._seen:
            return
        self._seen = (state.at_work, state.last)
        self._at_work = state.at_work
        if not state.at_work:
            self._transfers = ()
        self.refresh()

    def show_transfers(self, transfers: Sequence[ActiveTransfer]) -> None:
        """Show the bytes of these transfers, and their datasets when the ledger is read next."""
        self._transfers = transfers
        self._show_rows()

    def allow_rows_for(self, spare: int) -> None:
        """Show more or fewer datasets, for a height in pixels that is left or, below 0, missing."""
        height = self.rows[0].height() + self._layout.verticalSpacing()
        shown = min(len(self._shown), self._most)
        most = max(MIN_ROWS, min(shown + spare // height, MAX_ROWS))
        if most != self._most:
            self._most = most
            self._show_rows()

    def _ask(self) -> Callable[[], list[RecentDataset]]:
        files = [transfer.name for transfer in self._transfers]
        settings, config = self._controller.settings, self._controller.config

        def find() -> list[RecentDataset]:
            summary = open_summary(settings, config)
            return summary.find_recent_datasets(files, MAX_ROWS) if summary else []

        return find

    @Slot(object)
    def _show_datasets(self, datasets: Sequence[RecentDataset]) -> None:
        self._shown = datasets
        self._show_rows()

    def _show_rows(self) -> None:
        """Show the datasets; while they change often, in the order of their names."""
        shown = list(self._shown[: self._most])
        if self._at_work:
            shown.sort(key=lambda dataset: dataset.group.path or b"")
        groups = add_transfers([dataset.group for dataset in shown], self._transfers)
        for number, row in enumerate(self.rows):
            row.show(visible=number < len(shown))
        for row, progress, dataset in zip(self.rows, groups, shown, strict=False):
            row.show_dataset(progress, None if self._at_work else dataset.at)
        self.setVisible(bool(shown))


class _Row:
    """The widgets of one dataset in the grid."""

    def __init__(self, parent: QWidget, number: int) -> None:
        self._number = number
        self._icon = IconLabel(1.0, parent)
        self._icon.show_icon(icon("dataset"))
        self._name = ElidedLabel("", parent)
        self._bar = ShareBar("", parent)
        self._text = PlainLabel("", parent)
        self._when = PlainLabel("", parent)
        self._when.setForegroundRole(parent.palette().ColorRole.PlaceholderText)
        self._widgets = (self._icon, self._name, self._bar, self._text, self._when)

    def add_to(self, layout: QGridLayout) -> None:
        for column, widget in enumerate(self._widgets):
            layout.addWidget(widget, self._number, column)

    def height(self) -> int:
        return max(widget.sizeHint().height() for widget in self._widgets)

    def show(self, *, visible: bool) -> None:
        for widget in self._widgets:
            widget.setVisible(visible)

    def show_dataset(self, dataset: DatasetProgress, at: int | None) -> None:
        group = dataset.group
        names = filter(None, (group.dataset, group.title, group.owner))
        self._name.set_full_text(" · ".join(map(texts.plain, names)))
        share = group.verified_share if group.wanted else 0.0
        under_way = (group.sent_bytes + dataset.under_way) / max(1, group.found_bytes)
        self._bar.show_shares((share, "good"), (max(0.0, min(under_way, 1 - share)), "working"))
        text = translate("datasets", "%1 of %Ln file(s) verified", None, group.wanted)
        text = text.replace("%1", texts.count(group.verified))
        self._text.setText(text)
        self._when.setText("" if at is None else texts.moment(datetime.fromtimestamp(at, UTC)))
        self._when.setVisible(at is not None)
        self._bar.setAccessibleName(f"{self._name.full_text}: {text}")
