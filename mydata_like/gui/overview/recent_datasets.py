"""The datasets whose files changed their state last, with what the server has verified of each."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Slot
from PySide6.QtGui import QPalette
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


def group_transfers(
    folders: Sequence[bytes | None], transfers: Sequence[ActiveTransfer]
) -> dict[bytes | None, list[ActiveTransfer]]:
    """Return the transfers under way to the datasets of these folders."""
    found: dict[bytes | None, list[ActiveTransfer]] = {path: [] for path in folders}
    for transfer in transfers:
        above = [path for path in found if path and transfer.name.startswith(path + b"/")]
        if above:
            found[max(above, key=len)].append(transfer)
    return found


class RecentDatasets(QFrame):
    """The datasets that are being sent, then those that changed last; hidden without any.

    It reads the ledger while `parent` is visible, so it also shows runs of other programs.
    """

    def __init__(
        self,
        context: AppContext,
        parent: QWidget,
        most: int = MIN_ROWS,
        *,
        names_files: bool = True,
    ) -> None:
        """`names_files` is whether there is room for the names of the files under way."""
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._controller = context.controller
        self._most, self._names_files = most, names_files
        self._shown: Sequence[RecentDataset] = ()
        self._transfers: Sequence[ActiveTransfer] = ()
        self._begun: dict[bytes | None, int] = {}  # the rank of a folder, by its first transfer
        self._at_work = False
        self._seen: tuple[bool, PastRunState | None] = (False, None)
        self.query = LedgerQuery(context, parent, _find_recent, self._list_sent)
        self.query.answered.connect(self._show_datasets)
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(LARGE_SPACE if names_files else SPACE)
        self._layout.setVerticalSpacing(SPACE)
        self._layout.setColumnStretch(1, 3)
        self._layout.setColumnStretch(2, 2)
        self._title = PlainLabel(self.tr("Recent datasets"), self, heading=1)
        self._layout.addWidget(self._title, 0, 0, 1, 6)
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
        self._begun.clear()
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
        """Show the datasets; during a run first those that it is sending.

        The one that was begun last is on top. So each changes its place twice: when it is begun,
        and when all of it is sent.
        """
        shown = list(self._shown)
        under_way = group_transfers([dataset.group.path for dataset in shown], self._transfers)
        takes_tree = self._controller.settings.destination.takes_tree
        self._title.setText(self.tr("Recent folders") if takes_tree else self.tr("Recent datasets"))
        if self._at_work:
            for path, transfers in under_way.items():
                if transfers:
                    self._begun.setdefault(path, len(self._begun))

            def rank(group: FolderGroup) -> tuple[int, bytes]:
                done = group.verified_bytes + group.sent_bytes >= group.found_bytes
                sending = under_way[group.path] or not done
                return -self._begun.get(group.path, -1) - 1 if sending else 0, group.path or b""

            shown.sort(key=lambda dataset: rank(dataset.group))
        shown = shown[: self._most]
        names_files = self._at_work and self._names_files
        self._layout.setColumnStretch(5, 2 if names_files else 0)
        for number, row in enumerate(self.rows):
            for widget in row.widgets:
                widget.setVisible(number < len(shown))
        for row, dataset in zip(self.rows, shown, strict=False):
            at = None if self._at_work else dataset.at
            transfers = under_way[dataset.group.path]
            row.show_dataset(dataset.group, transfers, at, takes_tree=takes_tree)
            row.show_file(transfers if names_files else None)
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
        self._file = ElidedLabel("", parent)
        self._file.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        self.widgets = (shape, self._name, self._bar, self._text, self._when, self._file)

    def show_dataset(
        self,
        group: FolderGroup,
        transfers: Sequence[ActiveTransfer],
        at: int | None,
        *,
        takes_tree: bool,
    ) -> None:
        """Show a dataset, with its transfers under way or when it changed; with an owner or not."""
        names = [name for name in (group.dataset, group.title, group.owner) if name]
        if takes_tree:
            names = names[:1]
        self._name.set_full_text(" · ".join(map(texts.plain, names)))
        share = group.verified_share if group.wanted else 0.0
        under_way = group.sent_bytes + sum(transfer.done for transfer in transfers)
        sent = under_way / max(1, group.found_bytes)
        self._bar.show_shares((share, "good"), (max(0.0, min(sent, 1 - share)), "working"))
        text = translate("datasets", "%1 of %Ln file(s) verified", None, group.wanted)
        text = text.replace("%1", texts.count(group.verified))
        self._text.setText(text)
        self._when.setText("" if at is None else texts.moment(datetime.fromtimestamp(at, UTC)))
        self._when.setVisible(at is not None)
        self._bar.setAccessibleName(f"{self._name.full_text}: {text}")

    def show_file(self, transfers: Sequence[ActiveTransfer] | None) -> None:
        """Show the name of the first file of these transfers; None hides it."""
        file = transfers[0].name.rpartition(b"/")[2] if transfers else b""
        self._file.set_full_text(texts.plain(file))
        self._file.setHidden(transfers is None)
