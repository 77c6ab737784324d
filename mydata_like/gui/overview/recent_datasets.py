"""The datasets that are being sent, with what the server has verified of each."""

from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication, Slot
from PySide6.QtWidgets import QFrame, QGridLayout, QSizePolicy, QWidget

from mydata_like.core.errors import UploaderError
from mydata_like.core.queries import FolderGroup
from mydata_like.engine.progress import ActiveTransfer
from mydata_like.gui import services
from mydata_like.gui.base import AppContext
from mydata_like.gui.overview.bars import ShareBar
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import ElidedLabel, IconLabel, PlainLabel, icon

translate = QCoreApplication.translate

MAX_ROWS = 4
MIN_INTERVAL = 1.0  # seconds between two looks into the ledger,
INTERVAL_FACTOR = 10.0  # and this many times the duration of the last one


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
    """The datasets that were sent to most recently; hidden while there are none."""

    def __init__(self, desk: AppContext, parent: QWidget) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._desk = desk
        self._run = ""
        self._recent: list[bytes] = []  # folders, the latest last
        self._transfers: Sequence[ActiveTransfer] = ()
        self._asking = False
        self._asked_at = self._pause = 0.0
        self._layout = QGridLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setHorizontalSpacing(self.fontMetrics().height())
        self._layout.setVerticalSpacing(self.fontMetrics().height() // 2)
        self._layout.setColumnStretch(1, 3)
        self._layout.setColumnStretch(2, 2)
        self._title = PlainLabel(self.tr("Datasets sent to most recently"), self)
        self._title.scale(1.0, bold=True)
        self._layout.addWidget(self._title, 0, 0, 1, 4)
        self.rows = [_Row(self, number) for number in range(1, MAX_ROWS + 1)]
        for row in self.rows:
            row.add_to(self._layout)
        self.hide()

    def show_run(self, run: str) -> None:
        """Forget the datasets of another run; an empty `run` is none."""
        if run != self._run:
            self._run, self._recent = run, []
            self.hide()

    def show_transfers(self, transfers: Sequence[ActiveTransfer]) -> None:
        """Show the datasets of these transfers, and those of the transfers before them."""
        self._transfers = transfers
        now = monotonic()
        if self._asking or not self._run or now - self._asked_at < self._pause:
            return
        files = [*(folder + b"/" for folder in self._recent), *(each.name for each in transfers)]
        if files:
            self._asking, self._asked_at = True, now
            controller = self._desk.controller
            find = services.find_dataset_folders
            ask = partial(find, controller.settings, controller.config, files)
            self._desk.tasks.run(ask, partial(self._show_groups, self._run), self._fail)

    def _show_groups(self, run: str, groups: Sequence[FolderGroup]) -> None:
        self._end_question()
        if run != self._run:  # it has ended
            return
        self._remember([group.path for group in groups if group.path is not None])
        shown = [group for group in groups if group.path in self._recent]
        for number, row in enumerate(self.rows):
            row.show(visible=number < len(shown))
        for row, dataset in zip(self.rows, add_transfers(shown, self._transfers), strict=False):
            row.show_dataset(dataset)
        self.setVisible(bool(shown))

    def _remember(self, folders: Sequence[bytes]) -> None:
        """Keep the folders of active transfers, and before them the ones that were shown."""
        names = [transfer.name for transfer in self._transfers]
        active = [path for path in folders if any(name.startswith(path + b"/") for name in names)]
        before = [path for path in self._recent if path in folders and path not in active]
        self._recent = [*before, *active][-MAX_ROWS:]

    @Slot(object)
    def _fail(self, error: UploaderError) -> None:
        """Keep what is shown; other parts of the window tell of a damaged ledger."""
        self._end_question()

    def _end_question(self) -> None:
        self._asking = False
        self._pause = max(MIN_INTERVAL, INTERVAL_FACTOR * (monotonic() - self._asked_at))


class _Row:
    """The widgets of one dataset in the grid."""

    def __init__(self, parent: QWidget, number: int) -> None:
        self._number = number
        self._icon = IconLabel(1.0, parent)
        self._icon.show_icon(icon("dataset"))
        self._name = ElidedLabel("", parent)
        self._bar = ShareBar("", parent)
        self._text = PlainLabel("", parent)
        self._widgets = (self._icon, self._name, self._bar, self._text)

    def add_to(self, layout: QGridLayout) -> None:
        for column, widget in enumerate(self._widgets):
            layout.addWidget(widget, self._number, column)

    def show(self, *, visible: bool) -> None:
        for widget in self._widgets:
            widget.setVisible(visible)

    def show_dataset(self, dataset: DatasetProgress) -> None:
        group = dataset.group
        names = filter(None, (group.dataset, group.title, group.owner))
        self._name.set_full_text(" · ".join(map(texts.plain, names)))
        size = max(1, group.found_bytes)
        unverified = group.found_bytes - group.verified_bytes
        under_way = min(group.sent_bytes + dataset.under_way, unverified)
        self._bar.show_shares(
            (group.verified_bytes / size, "good"), (max(0, under_way) / size, "working")
        )
        text = translate("datasets", "%1 of %Ln file(s) verified", None, group.found)
        text = text.replace("%1", texts.count(group.verified))
        self._text.setText(text)
        self._bar.setAccessibleName(f"{self._name.full_text}: {text}")
