import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.model import DatasetFolder, Layout, OwnerKind
from mydata_like.engine.layout import EXPERIMENT_FILES, Level, dataset_folder, levels_of

USER, EMAIL, ACCOUNT = OwnerKind.USERNAME, OwnerKind.EMAIL, OwnerKind.ACCOUNT
FULL = Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET
NAMES = st.lists(st.text(min_size=1), min_size=4, max_size=4)


@pytest.mark.parametrize(
    ("layout", "names", "expected"),
    [
        (Layout.USERNAME_DATASET, "jo/ds", (None, USER, "jo", "")),
        (Layout.EMAIL_DATASET, "j@x.org/ds", (None, EMAIL, "j@x.org", "")),
        (Layout.USERNAME_EXPERIMENT_DATASET, "jo/ex/ds", ("ex", USER, "jo", "")),
        (Layout.EMAIL_EXPERIMENT_DATASET, "j@x.org/ex/ds", ("ex", EMAIL, "j@x.org", "")),
        (Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET, "jo/MyTardis/ex/ds", ("ex", USER, "jo", "")),
        (FULL, "lab/Scope/Jo Doe/ds", ("Scope - Jo Doe", ACCOUNT, "", "lab")),
        (Layout.GROUP_DATASET, "lab/ds", ("lab", ACCOUNT, "", "lab")),
        (Layout.GROUP_EXPERIMENT_DATASET, "lab/ex/ds", ("lab - ex", ACCOUNT, "", "lab")),
        (Layout.EXPERIMENT_DATASET, "ex/ds", ("ex", ACCOUNT, "", "")),
        (Layout.DATASET, "ds", (None, ACCOUNT, "", "")),
    ],
    ids=lambda value: value.name if isinstance(value, Layout) else "",
)
def test_a_dataset_folder_becomes_what_its_layout_says(layout, names, expected):
    title, kind, owner, group = expected

    assert dataset_folder(layout, tuple(names.split("/")), "Scope", b"p") == DatasetFolder(
        path=b"p", name="ds", title=title, owner_kind=kind, owner=owner, group_folder=group
    )


def test_files_of_an_experiments_own_folder_are_a_dataset_without_sub_folders():
    folder = dataset_folder(Layout.USERNAME_EXPERIMENT_DATASET, ("jo", "ex"), "Scope", b"p")

    assert (folder.name, folder.title, folder.recursive) == (EXPERIMENT_FILES, "ex", False)


def test_an_owners_name_is_stripped_of_the_spaces_around_it():
    assert dataset_folder(Layout.USERNAME_DATASET, (" jo ", "ds "), "Scope", b"").owner == "jo"


@given(st.sampled_from(Layout), NAMES)
def test_every_layout_names_a_dataset_after_its_folder(layout, names):
    names = tuple(names[: len(levels_of(layout))])

    folder = dataset_folder(layout, names, "Scope", b"p")

    assert folder.name == names[-1]
    assert folder.recursive
    assert (folder.owner_kind is ACCOUNT) == (Level.OWNER not in levels_of(layout))
    assert bool(folder.group_folder) == (Level.GROUP in levels_of(layout))
