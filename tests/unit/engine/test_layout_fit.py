"""Which layout folders fit, and which one was meant."""

import pytest

from mydata_like.core.model import Layout
from mydata_like.engine.layout import Branch, Known, judge, suggest_layout


def branches(*paths):
    """Every folder of these paths; a number at the end is how many files lie in the last one."""
    files = {}
    for path in paths:
        *names, number = path.split("/")
        for depth in range(1, len(names) + 1):
            files.setdefault(tuple(names[:depth]), 0)
        files[tuple(names)] = int(number)
    return [Branch(names, count) for names, count in sorted(files.items())]


def known(users=(), groups=(), others=()):
    return Known(frozenset((*users, *groups, *others)), frozenset(users), frozenset(groups))


CASES = {
    "fits already": (Layout.USERNAME_DATASET, ["alice/scan/3", "bob/scan/1"], None),
    "one level deeper": (
        Layout.USERNAME_DATASET,
        ["alice/mice/day 1/3", "alice/mice/day 2/3", "bob/rats/day 1/1"],
        Layout.USERNAME_EXPERIMENT_DATASET,
    ),
    "one level less": (
        Layout.USERNAME_EXPERIMENT_DATASET,
        ["alice/scan/3", "bob/scan/1"],
        Layout.USERNAME_DATASET,
    ),
    "addresses": (
        Layout.USERNAME_DATASET,
        ["alice@example.org/scan/3", "bob@example.org/scan/1"],
        Layout.EMAIL_DATASET,
    ),
    "a folder MyTardis": (
        Layout.USERNAME_DATASET,
        ["alice/MyTardis/mice/day 1/3", "bob/MyTardis/rats/day 1/1"],
        Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET,
    ),
    "groups and instrument": (
        Layout.GROUP_DATASET,
        ["Lab A/Scope/Alice Liddell/day 1/3"],
        Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET,
    ),
    "only datasets": (Layout.USERNAME_DATASET, ["day 1/3", "day 2/4"], Layout.DATASET),
    "sub-folders of datasets": (
        Layout.USERNAME_DATASET,
        ["alice/scan/1", "alice/scan/raw/400", "bob/scan/raw/10", "bob/scan/2"],
        None,
    ),
}


@pytest.mark.parametrize(("layout", "paths", "meant"), CASES.values(), ids=CASES)
def test_the_layout_that_was_meant_is_found(layout, paths, meant):
    assert suggest_layout(layout, branches(*paths), "Scope", Known()) == meant


def test_folders_that_bear_names_of_groups_belong_to_groups():
    found = branches("lab-a/scan/3", "lab-b/scan/3")
    acquainted = known(groups=("lab-a", "lab-b"))

    assert suggest_layout(Layout.USERNAME_DATASET, found, "Scope", acquainted) == (
        Layout.GROUP_DATASET
    )


def test_one_unknown_owner_among_known_ones_does_not_change_the_layout():
    found = branches("alice/scan/3", "bob/scan/3", "guest/scan/1")
    acquainted = known(users=("alice", "bob"), others=("guest",))

    assert suggest_layout(Layout.USERNAME_DATASET, found, "Scope", acquainted) is None


def test_an_empty_folder_suggests_nothing():
    assert suggest_layout(Layout.DATASET, [], "Scope", Known()) is None


def test_files_above_the_datasets_do_not_fit_but_those_of_experiments_do():
    found = branches("alice/2", "alice/mice/1", "alice/mice/day 1/3")

    assert judge(Layout.USERNAME_EXPERIMENT_DATASET, found, "").misfits == (("alice",),)


def test_folders_without_files_of_their_own_are_hollow():
    fit = judge(Layout.USERNAME_DATASET, branches("alice/mice/day 1/3", "bob/scan/1"), "")

    assert (fit.settled, fit.hollow) == (1, 1)
