"""What the columns of a table say."""

from collections.abc import Callable
from typing import Any, NamedTuple

from mydata_like.gui.tables.marks import Mark


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
