"""Dataclasses that are made in a third of the time: a start makes a hundred of them.

To the type checker this is `dataclasses.dataclass`, so nothing changes for who writes or reads
code. What Python would generate and compile for each class, to show and compare it, is here once
for all. That nobody changes what is frozen is left to the type checker, which makes values faster
to create as well: a run makes four events a file.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool = False, slots: bool = False, kw_only: bool = False) -> Callable:
        """Make a dataclass, as the decorator of the standard library does with these options."""

        def make(plain: type) -> type:
            made = dataclasses.dataclass(repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
            names = tuple(made.__dataclass_fields__)
            made._values = property(attrgetter(*names) if names else lambda _: ())
            made.__repr__ = _show
            made.__eq__ = _equals
            made.__hash__ = _hash if frozen else None
            return made

        return make

    def _show(self: Any) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
        return f"{type(self).__qualname__}({said})"

    def _equals(self: Any, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values == other._values

    def _hash(self: Any) -> int:
        return hash(self._values)
