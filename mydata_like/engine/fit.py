"""How well folders of a disk fit a layout, and which layout may have been meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mydata_like.core.model import Layout
from mydata_like.engine.layout import Level, levels_of

DEEPEST = max(len(levels_of(layout)) for layout in Layout)


class Branch(NamedTuple):
    """A folder below the data directory: its names from the top, the files in it itself."""

    names: tuple[str, ...]
    files: int


@dataclass(frozen=True, slots=True)
class Known:
    """Which names of uppermost folders the server was asked about, and as what it knows them."""

    asked: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Fit:
    """What a layout makes of folders.

    `misfits` are those that it cannot place. Dataset folders that hold files are `settled`;
    `hollow` are those that hold only more folders, as where the layout stops too early.
    """

    misfits: tuple[tuple[str, ...], ...]
    settled: int
    hollow: int


def judge(layout: Layout, branches: Sequence[Branch], instrument: str) -> Fit:
    """Return how folders fit a layout; `branches` are all down to the deepest layout's level."""
    levels = levels_of(layout)
    misfits = [
        branch.names for branch in branches if _is_misfit(levels, layout, branch, instrument)
    ]
    fitting = [
        branch
        for branch in branches
        if len(branch.names) == len(levels) and branch.names not in set(misfits)
    ]
    settled = sum(branch.files > 0 for branch in fitting)
    parents = {branch.names[:-1] for branch in branches}
    hollow = sum(branch.files == 0 and branch.names in parents for branch in fitting)
    return Fit(tuple(misfits), settled, hollow)


def suggest_layout(
    layout: Layout, branches: Sequence[Branch], instrument: str, known: Known
) -> Layout | None:
    """Return the layout that was meant, if another one clearly fits these folders better."""
    if not branches:
        return None

    def cost(candidate: Layout) -> int:
        fit = judge(candidate, branches, instrument)
        if not fit.settled:
            return _NOTHING + len(fit.misfits)
        return 2 * len(fit.misfits) + fit.hollow + _count_strangers(candidate, branches, known)

    best = min(Layout, key=lambda candidate: (cost(candidate), _distance(layout, candidate)))
    return best if cost(best) < cost(layout) and cost(best) < _NOTHING else None


_NOTHING = 1_000_000  # the cost of a layout with which nothing would be uploaded
_LOST = 10  # the cost of one owner who would be passed over


def _is_misfit(levels: Sequence[Level], layout: Layout, branch: Branch, instrument: str) -> bool:
    """Return whether a layout cannot place a folder, or files that lie in it."""
    pairs = list(zip(levels, branch.names, strict=False))
    level, name = pairs[-1]
    if len(branch.names) > len(levels):
        return False  # a folder within a dataset
    if branch.files and len(branch.names) < len(levels) and level is not Level.EXPERIMENT:
        return True
    return not _suits(level, layout, name, instrument)


def _suits(level: Level, layout: Layout, name: str, instrument: str) -> bool:
    """Return whether a folder of this name may be one of a level."""
    if level is Level.MYTARDIS:
        return name.lower() == "mytardis"
    if level is Level.INSTRUMENT:
        return name == instrument
    if level is Level.OWNER:
        return ("@" in name) == layout.value.startswith("Email")
    return level is not Level.EXPERIMENT or name.lower() != "mytardis"


def _count_strangers(layout: Layout, branches: Sequence[Branch], known: Known) -> int:
    """Return how many owners' folders bear no name that the server knows."""
    top = levels_of(layout)[0]
    names = known.asked & {branch.names[0] for branch in branches}
    if top is Level.OWNER:
        return len(names - known.users)
    if top is Level.GROUP:
        return len(names - known.groups)
    # Without owners nobody is a stranger; but folders with the names of users are theirs.
    return _LOST * len(names & (known.users | known.groups))


def _distance(one: Layout, other: Layout) -> tuple[bool, int]:
    """Return how unlike two layouts are: whose folders are uppermost, and the order of all."""
    upper = levels_of(one)[0] is not levels_of(other)[0]
    return upper, list(Layout).index(other)
