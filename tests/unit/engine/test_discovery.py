"""Files are kept as found before anything is done about them, and ahead of a run held up."""

from array import array
from itertools import chain
from threading import Thread

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    CheckedGroup,
    DatafileId,
    Dataset,
    DatasetFolder,
    DatasetId,
    Entry,
    EntryState,
    FileGroup,
    FileRecord,
)
from mydata_like.core.scanned_files import FolderPart, ScannedFiles
from mydata_like.engine.discovery import HELD_UP, Discovery, Lookahead
from mydata_like.engine.pipeline import CancelFlag
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.unit.engine.files import as_registered, as_staged

SET = Dataset(DatasetId(3), "set")
FOLDER = DatasetFolder(path=b"ada/set", name="set", title=None, owner="ada")


class Inventory(MemoryLedger):
    def __init__(self, entries=()):
        super().__init__(entries)
        self.folders = []

    def add_folders(self, folders):
        self.folders += [sums.path for sums in folders]


@pytest.fixture
def clock():
    return FakeClock()


def local(name):
    return LocalFile(b"/data/ada/set/" + name, b"ada/set/" + name, b"", name, 3, 7, 1, 1)


def group(*names, last=False, number=0):
    return FileGroup(FOLDER, tuple(map(local, names)), last, number)


def verified(name, dataset=SET):
    entry = Entry(local(name).key, 3, 7, EntryState.VERIFIED, dataset.id, "c")
    return entry._replace(datafile=DatafileId(1), ctime_ns=0, inode=1)


def at_risk(inventory):
    return sorted(key.rpartition(b"/")[2] for key in inventory.found)


def test_files_are_kept_before_they_are_passed_on(clock):
    inventory = Inventory([verified(b"safe")])
    passing = Discovery(lambda: inventory, clock).pass_on([group(b"safe", b"new")])

    assert at_risk(inventory) == []
    known = group(b"safe", b"new")._replace(known=SET.id, open=[local(b"new")])
    assert next(passing) == known
    assert at_risk(inventory) == [b"new"]
    assert inventory.folders == [b"ada/set"]


def test_what_is_known_of_a_whole_group_goes_with_it(clock):
    inventory = Inventory([verified(b"a"), verified(b"b")])
    (passed,) = Discovery(lambda: inventory, clock).pass_on([group(b"a", b"b")])

    assert passed.known == SET.id
    assert (inventory.found, inventory.folders) == ({}, [])


def test_only_the_part_of_a_group_that_has_a_change_is_compared(clock):
    inodes = range(1, 301)
    names = [b"%d" % inode for inode in inodes]
    facts = array("q", chain.from_iterable((3, 7, 0, inode) for inode in inodes))
    rows = [verified(name)._replace(inode=int(name)) for name in names]
    scanned = FolderPart(
        b"/data/ada/set/", b"ada/set/", b"", 1, names, facts, [1] * 300, [0o644] * 300, 900
    )
    inventory = Inventory(rows)
    compared = []

    def record(folder):
        compared.clear()
        found = FileGroup(FOLDER, ScannedFiles([folder]), last=True)
        (passed,) = Discovery(lambda: inventory, clock).pass_on([found])
        return passed.known, [file.name for file in passed.open]

    find_open = inventory.find_open
    inventory.find_open = lambda files: (compared.extend(files), find_open(files))[1]
    assert (record(scanned), len(compared)) == ((SET.id, []), 300)
    assert (record(scanned), len(compared)) == ((SET.id, []), 0)
    facts[4 * 150 + 1] += 1  # the time of one file
    assert (record(scanned), len(compared)) == ((SET.id, [b"151"]), 100)
    facts[4 * 150 + 1] -= 1
    inventory.record([rows[250]._replace(state=EntryState.CHANGED)])
    assert (record(scanned), len(compared)) == ((SET.id, [b"251"]), 100)


def test_what_the_server_lacks_is_kept_whatever_was_known(clock):
    inventory = Inventory([verified(name) for name in (b"a", b"b", b"c", b"d")])
    discovery = Discovery(lambda: inventory, clock)
    (passed,) = discovery.pass_on([group(b"a", b"b", b"c", b"d")])
    wanted = [FileRecord(local(name), SET, "r") for name in (b"a", b"b", b"c")]

    items = [wanted[0], as_staged(wanted[1], "c"), as_registered(wanted[2], "c")]
    checked = CheckedGroup(passed, items)
    assert list(discovery.pass_open([checked])) == [checked]

    assert at_risk(inventory) == [b"a", b"b", b"c"]


def test_a_dry_run_keeps_nothing(clock):
    inventory = Inventory()
    discovery = Discovery(lambda: inventory, clock, dry_run=True)
    (passed,) = discovery.pass_on([group(b"a")])
    assert list(discovery.pass_open([CheckedGroup(passed, [FileRecord(local(b"a"), SET, "r")])]))

    assert (inventory.found, inventory.folders) == ({}, [])


def test_a_run_is_held_up_before_it_begins_and_while_nothing_is_taken(clock):
    discovery = Discovery(Inventory, clock)
    assert not discovery.is_held_up()
    clock.move(HELD_UP + 1)
    assert discovery.is_held_up()

    passing = discovery.pass_on([group(b"a"), group(b"b", last=True)])
    next(passing)
    assert not discovery.is_held_up()
    clock.move(HELD_UP + 1)
    assert discovery.is_held_up()
    next(passing)
    assert not discovery.is_held_up()
    assert not discovery.has_passed(FOLDER.path)
    assert next(passing, None) is None
    assert discovery.has_passed(FOLDER.path)
    clock.move(HELD_UP + 1)
    assert not discovery.is_held_up()


def test_a_run_that_is_held_up_is_looked_ahead_of(clock):
    inventory = Inventory()
    discovery = Discovery(lambda: inventory, clock)
    clock.move(HELD_UP + 1)

    Lookahead(discovery, clock, CancelFlag()).work(lambda: [group(b"a"), group(b"b")])

    assert at_risk(inventory) == [b"a", b"b"]


def test_a_run_that_goes_on_is_not_looked_ahead_of(clock):
    inventory, cancel = Inventory(), CancelFlag()
    ahead = Lookahead(Discovery(lambda: inventory, clock), clock, cancel)
    thread = Thread(target=ahead.work, args=(lambda: [group(b"a")],))
    thread.start()
    cancel.set("the run has ended")
    thread.join()

    assert inventory.found == {}


def test_there_is_only_so_much_time_to_look_at_what_a_run_cannot_begin_with(clock):
    inventory = Inventory()
    ahead = Lookahead(Discovery(lambda: inventory, clock), clock, CancelFlag())

    def find():
        yield group(b"a")
        clock.move(31)
        yield group(b"b")
        yield group(b"c")

    ahead.finish(30, CancelFlag())
    ahead.work(find)

    assert at_risk(inventory) == [b"a", b"b"]


def test_the_search_ends_when_a_stop_is_requested(clock):
    inventory, stop = Inventory(), CancelFlag()
    stop.set("asked to stop")
    ahead = Lookahead(Discovery(lambda: inventory, clock), clock, CancelFlag())
    ahead.finish(30, stop)
    ahead.work(lambda: [group(b"a"), group(b"b")])

    assert at_risk(inventory) == [b"a"]
