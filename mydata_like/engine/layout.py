"""Maps folders of the disk to the server's owners, experiments and datasets."""

from enum import Enum, auto

from mydata_like.core.extra_sources import ExtraSource
from mydata_like.core.model import DatasetFolder, Layout, OwnerKind

# MyData's name for the dataset of the files that lie directly in an experiment's folder.
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
    """Return what the levels below the data directory stand for, the dataset's last."""
    return _LEVELS[layout]


def dataset_folder(
    layout: Layout, names: tuple[str, ...], instrument: str, path: bytes
) -> DatasetFolder:
    """Return what a dataset folder becomes; `names` are those of its levels, from the top.

    With the dataset's name missing it is the experiment's own folder, whose files (without
    those of its sub-folders) are a dataset of their own.
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
    """Return what a source becomes; its owner is looked up as those of the layout are."""
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
    """Return the experiment's title as MyData forms it; None where the server must be asked."""
    experiment, group = names.get(Level.EXPERIMENT), names.get(Level.GROUP)
    if Level.FULL_NAME in names:
        return f"{instrument} - {names[Level.FULL_NAME]}"
    if experiment is not None and group is not None:
        return f"{group} - {experiment}"
    return experiment if experiment is not None else group
