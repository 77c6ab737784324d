"""The settings of one tab: a heading for each section, a row for each setting."""

from collections.abc import Iterable, Iterator, Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.settings import terms
from mydata_like.gui.settings.row import Row
from mydata_like.gui.settings.signs import Aside
from mydata_like.gui.settings.terms import Tab
from mydata_like.settings.pending_changes import PendingChanges
from mydata_like.settings.schema import iter_settings

HEADING = 1.2  # times the usual size of text


class Section(QWidget):
    """One section: its heading, its rows, and what else belongs there."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        heading = PlainLabel(terms.name_section(name), self)
        heading.scale(HEADING, bold=True)
        self.rows: list[Row] = []
        self._asides: list[Aside] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, self.fontMetrics().lineSpacing())
        self._layout.setSpacing(self.fontMetrics().averageCharWidth())
        self._layout.addWidget(heading)

    def add_row(self, row: Row) -> None:
        """Add a setting."""
        self.rows.append(row)
        self._layout.addWidget(row)

    def add_aside(self, aside: Aside) -> None:
        """Add what is no setting."""
        self._asides.append(aside)
        self._layout.addWidget(aside)

    def seek(self, sought: str) -> bool:
        """Show only what a search finds; return whether that is anything."""
        parts: list[Row | Aside] = [*self.rows, *self._asides]
        found = [part for part in parts if part.matches(sought)]
        for part in parts:
            part.setVisible(part in found)
        self.setVisible(bool(found))
        return bool(found)


class Form(QWidget):
    """All settings of one tab."""

    edited = Signal(object)  # the Row
    reset_wanted = Signal(object)  # the Row

    def __init__(
        self, tab: Tab, asides: Mapping[str, Aside], parent: QWidget | None = None
    ) -> None:
        """`asides` stand after the setting whose key they have."""
        super().__init__(parent)
        self._sections = [Section(name, self) for name in tab.sections]
        layout = QVBoxLayout(self)
        gap = self.fontMetrics().lineSpacing()
        layout.setContentsMargins(gap, gap // 2, gap, 0)
        for name, section in zip(tab.sections, self._sections, strict=True):
            for setting in (entry for entry in iter_settings() if entry.section == name):
                section.add_row(self._make_row(Row(setting, section)))
                if setting.key in asides:
                    section.add_aside(asides[setting.key])
            layout.addWidget(section)
        layout.addStretch(1)

    @property
    def rows(self) -> Iterator[Row]:
        """The rows, in their order."""
        return (row for section in self._sections for row in section.rows)

    def show_draft(self, draft: PendingChanges) -> None:
        """Show the values of a draft."""
        for row in self.rows:
            row.show_draft(draft)
        self._show_relevance(draft)

    def show_facts(self, draft: PendingChanges) -> None:
        """Show what is said about the values, while they are being edited."""
        for row in self.rows:
            row.show_facts(draft)
        self._show_relevance(draft)

    def seek(self, sought: str) -> bool:
        """Show only what a search finds; return whether that is anything."""
        found = [section.seek(sought) for section in self._sections]
        return any(found)

    def _make_row(self, row: Row) -> Row:
        row.edited.connect(self.edited)
        row.reset_wanted.connect(self.reset_wanted)
        return row

    def _show_relevance(self, draft: PendingChanges) -> None:
        for row in self.rows:
            row.setEnabled(is_used(row.key, draft))


_TIMED = ("timer", "watch")
_KINDS: Mapping[str, Iterable[object]] = {
    "schedule.date": ("once",),
    "schedule.time": ("once", "daily", "weekly"),
    "schedule.days": ("weekly",),
    "schedule.minutes": _TIMED,
    "schedule.from_time": _TIMED,
    "schedule.to_time": _TIMED,
}


def is_used(key: str, draft: PendingChanges) -> bool:
    """Return whether a setting has any effect with the others as they are."""
    if key in _KINDS:
        return draft.value("schedule.kind") in _KINDS[key]
    if key == "data.group_prefix":
        return str(draft.value("data.layout")).startswith("User Group")
    return True
