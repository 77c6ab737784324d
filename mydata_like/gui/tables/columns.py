"""What the columns of a table say."""

from collections.abc import Callable
from typing import Any, NamedTuple

from PySide6.QtCore import Qt

from mydata_like.gui.look import words
from mydata_like.gui.tables.marks import Mark

# What a model is asked of a column; all else has no answer.
ROLES = frozenset(
    {
        Qt.ItemDataRole.DisplayRole,
        Qt.ItemDataRole.DecorationRole,
        Qt.ItemDataRole.ToolTipRole,
        Qt.ItemDataRole.TextAlignmentRole,
    }
)


class Column(NamedTuple):
    """One column: its name in the program, its title, and what it says of a row.

    `order` is how a view names the order by this column, empty for none. `width` is in
    characters. `tip` says more than fits; what says nothing is empty.
    """

    name: str
    title: str
    text: Callable[[Any], str]
    order: str = ""
    width: int = 12
    number: bool = False  # aligned to the right
    mark: Callable[[Any], Mark | None] | None = None
    tip: Callable[[Any], str] | None = None
    hidden: bool = False  # until a person wants it

    @property
    def alignment(self) -> Qt.AlignmentFlag:
        side = Qt.AlignmentFlag.AlignRight if self.number else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter

    def tell(self, row: object, role: int) -> Any:
        """Return what a cell shows in this role."""
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(row)
        if role == Qt.ItemDataRole.DecorationRole and self.mark:
            mark = self.mark(row)
            return mark.icon if mark else None
        if role == Qt.ItemDataRole.ToolTipRole and self.tip:
            return words.tip(self.tip(row)) or None
        return None
