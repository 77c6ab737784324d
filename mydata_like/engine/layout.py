"""The mapping of local folders to the server's owners, experiments and datasets."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from mydata_like.core.extra_sources import ExtraSource
from mydata_like.core.frozen import frozen
from mydata_like.core.model import DatasetFolder, Layout, OwnerKind

# MyData's name for the dataset of the files directly in an experiment's folder.
EXPERIMENT_FILES = "__EXPERIMENT_FILES__"


class Level(Enum):
    """What the folders of one level stand for."""

    OWNER = auto()
    GROUP = auto()
    MYTARDIS = auto()
    INSTRUMENT = auto()
    FULL_NAME = auto()
    EXPERIMENT = auto()
    DATASET = auto()


_OWNER, _GROUP, _MYTARDIS, _INSTRUMENT, _FULL_NAME, _EXPERIMENT, _DATASET = Level

_LEVELS: dict[Layout, tuple[Level, ...]] = {
    Layout.USERNAME_DATASET: (_OWNER, _DATASET),
    Layout.EMAIL_DATASET: (_OWNER, _DATASET),
    Layout.USERNAME_EXPERIMENT_DATASET: (_OWNER, _EXPERIMENT, _DATASET),
    Layout.EMAIL_EXPERIMENT_DATASET: (_OWNER, _EXPERIMENT, _DATASET),
    Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET: (_OWNER, _MYTARDIS, _EXPERIMENT, _DATASET),
    Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET: (_GROUP, _INSTRUMENT, _FULL_NAME, _DATASET),
    Layout.GROUP_DATASET: (_GROUP, _DATASET),
    Layout.GROUP_EXPERIMENT_DATASET: (_GROUP, _EXPERIMENT, _DATASET),
    Layout.EXPERIMENT_DATASET: (_EXPERIMENT, _DATASET),
    Layout.DATASET: (_DATASET,),
}


def levels_of(layout: Layout) -> tuple[Level, ...]:
    """Return what the levels below the data directory stand for, ending with the dataset's."""
    return _LEVELS[layout]


def dataset_folder(
    layout: Layout, names: tuple[str, ...], instrument: str, path: bytes
) -> DatasetFolder:
    """Return what a dataset folder becomes; `names` are those of its levels, from the top.

    Without a dataset name it is the experiment's own folder. Its files, without those of its
    sub-folders, are a dataset of their own.
    """
    levels = levels_of(layout)
    recursive = len(names) == len(levels)
    by_level = dict(zip(levels, names, strict=False))
    return DatasetFolder(
        path=path,
        name=by_level.get(Level.DATASET, EXPERIMENT_FILES),
        title=_title(by_level, instrument),
        owner_kind=_owner_kind(layout),
        owner=by_level.get(Level.OWNER, "").strip(),
        group_folder=by_level.get(Level.GROUP, ""),
        recursive=recursive,
    )


def source_folder(layout: Layout, source: ExtraSource) -> DatasetFolder:
    """Return what a source becomes; its owner is looked up in the same way as in the layout."""
    owner, experiment, dataset = source.destination
    grouped = Level.GROUP in levels_of(layout)
    kind = OwnerKind.ACCOUNT
    if owner and not grouped:
        by_layout = _owner_kind(layout)
        kind = OwnerKind.USERNAME if by_layout is OwnerKind.ACCOUNT else by_layout
    return DatasetFolder(
        path=source.folder,
        name=dataset,
        title=experiment,
        owner_kind=kind,
        owner="" if grouped else owner,
        group_folder=owner if grouped else "",
        above=source.folder.rfind(b"/") + 1,
    )


def _owner_kind(layout: Layout) -> OwnerKind:
    if Level.OWNER not in levels_of(layout):
        return OwnerKind.ACCOUNT
    return OwnerKind.EMAIL if layout.value.startswith("Email") else OwnerKind.USERNAME


def _title(names: dict[Level, str], instrument: str) -> str | None:
    """Return the experiment's title in MyData's format; None if the server must be queried."""
    experiment, group = names.get(Level.EXPERIMENT), names.get(Level.GROUP)
    if Level.FULL_NAME in names:
        return f"{instrument} - {names[Level.FULL_NAME]}"
    if experiment is not None and group is not None:
        return f"{group} - {experiment}"
    return experiment if experiment is not None else group


DEEPEST = max(len(levels_of(layout)) for layout in Layout)


class Branch(NamedTuple):
    """A folder below the data directory: its path as names, and its number of own files."""

    names: tuple[str, ...]
    files: int


@frozen()
class Known:
    """The names of top-level folders that were looked up on the server, and what they are there."""

    asked: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()


@frozen()
class LayoutFit:
    """How folders fit a layout.

    `misfits` are those that have no place in it. Dataset folders with files are `settled`; `hollow`
    ones contain only folders, as happens if the layout has too few levels.
    """

    misfits: tuple[tuple[str, ...], ...]
    settled: int
    hollow: int


def judge(layout: Layout, branches: Sequence[Branch], instrument: str) -> LayoutFit:
    """Return how `branches`, all folders down to the deepest layout's level, fit a layout."""
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
    return LayoutFit(tuple(misfits), settled, hollow)


def suggest_layout(
    layout: Layout, branches: Sequence[Branch], instrument: str, known: Known
) -> Layout | None:
    """Return the layout that was probably meant, if it clearly fits these folders better."""
    if not branches:
        return None

    def cost(candidate: Layout) -> int:
        fit = judge(candidate, branches, instrument)
        if not fit.settled:
            return _NOTHING + len(fit.misfits)
        return 2 * len(fit.misfits) + fit.hollow + _count_strangers(candidate, branches, known)

    best = min(Layout, key=lambda candidate: (cost(candidate), _distance(layout, candidate)))
    return best if cost(best) < cost(layout) and cost(best) < _NOTHING else None


_NOTHING = 1_000_000  # the cost of a layout that would upload nothing
_LOST = 10  # the cost of one owner whose folder would be excluded


def _is_misfit(levels: Sequence[Level], layout: Layout, branch: Branch, instrument: str) -> bool:
    """Return whether a layout has no place for a folder or for files in it."""
    pairs = list(zip(levels, branch.names, strict=False))
    level, name = pairs[-1]
    if len(branch.names) > len(levels):
        return False  # a folder within a dataset
    if branch.files and len(branch.names) < len(levels) and level is not Level.EXPERIMENT:
        return True
    return not _suits(level, layout, name, instrument)


def _suits(level: Level, layout: Layout, name: str, instrument: str) -> bool:
    """Return whether a folder of this name can be at a level."""
    if level is Level.MYTARDIS:
        return name.lower() == "mytardis"
    if level is Level.INSTRUMENT:
        return name == instrument
    if level is Level.OWNER:
        return ("@" in name) == layout.value.startswith("Email")
    return level is not Level.EXPERIMENT or name.lower() != "mytardis"


def _count_strangers(layout: Layout, branches: Sequence[Branch], known: Known) -> int:
    """Return how many owners' folders have a name that the server does not know."""
    top = levels_of(layout)[0]
    names = known.asked & {branch.names[0] for branch in branches}
    if top is Level.OWNER:
        return len(names - known.users)
    if top is Level.GROUP:
        return len(names - known.groups)
    # Without owners no name is unknown; but folders with the names of users belong to these users.
    return _LOST * len(names & (known.users | known.groups))


def _distance(one: Layout, other: Layout) -> tuple[bool, int]:
    """Return how different two layouts are: in the kind of the top-level folders and in order."""
    upper = levels_of(one)[0] is not levels_of(other)[0]
    return upper, list(Layout).index(other)
