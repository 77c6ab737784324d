"""Checking: yes, no or some of a group are there already; what differs is never skipped."""

from itertools import pairwise
from random import Random

import pytest

from mydata_like.catalogues.mytardis.dataset_index import Audit, AuditPolicy
from mydata_like.core.errors import HELD, Problem, RejectedError, TransientError
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesKnown,
    FileVerified,
    FileWaiting,
    FileWanted,
    FolderFailed,
    FolderSkipped,
    Notice,
)
from mydata_like.core.model import (
    Comparison,
    Dataset,
    DatasetStats,
    EntryState,
    FileRecord,
    NewestDatafile,
    VerifiedCopy,
)
from mydata_like.engine.changed_files import ChangedFiles
from mydata_like.engine.check import Check
from mydata_like.engine.gate import Gate
from mydata_like.settings.schema import Advanced, Data, Settings
from tests.fakes.catalogue import make_catalogue
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer
from tests.fakes.source import ListSource
from tests.unit.engine.files import (
    CHECKSUM,
    MODIFIED_NS,
    a_file,
    a_folder,
    a_group,
    a_record,
    entry_of,
    with_copy,
)


class Bench:
    """A check stage over a scripted server and an empty ledger."""

    def __init__(self, *, dry_run=False, full_check_days=7, **data):
        self.clock = clock = FakeClock()
        self.events = []
        self.server = ScriptedServer()
        self.ledger = MemoryLedger()
        self.ledger.clock = clock
        gate = Gate(clock, clock.cancel(), self.events.append, Random(1))
        settings = Settings(data=Data(**data), advanced=Advanced(full_check_days=full_check_days))
        catalogue = make_catalogue(
            self.server, self.ledger, gate, self.events.append, settings, dry_run=dry_run
        )
        self.changed = ChangedFiles(
            self.ledger, self.events.append, clock, Data(**data), dry_run=dry_run
        )
        self.unfinished = {}
        self.renamed = {}
        self.asked = []
        self.check = Check(
            catalogue,
            self.ledger,
            self.events.append,
            self.events.extend,
            gate,
            self.changed,
            self._find_unfinished,
            lambda files: {it.key: self.renamed[it.key] for it in files if it.key in self.renamed},
            box="staging",
        )

    def _find_unfinished(self, files):
        self.asked += [file.name for file in files]
        return {it.key: self.unfinished[it.name] for it in files if it.name in self.unfinished}

    def __call__(self, *groups):
        """Return what is open after the check, and what has to be read.

        A file that has grown, of which only the beginning is read, counts as to be sent.
        """
        checked = list(self.check(ListSource([*groups], self.clock)))
        found = [item for each in checked for item in (*each.open, *each.unread)]
        return [it.differs if isinstance(it, Comparison) and not it.matches else it for it in found]

    def make_dataset(self) -> Dataset:
        """Let the server have the dataset of `a_folder()`, with a file that we never look at."""
        self(a_group())
        (dataset,) = [dataset for _, dataset in self.server.datasets.values()]
        self.server.calls.clear()
        self.events.clear()
        return dataset

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def entry(dataset, state=EntryState.VERIFIED, *, name="a.txt", checksum=CHECKSUM, size=3, id=None):
    file = a_file(name, size=size)
    wanted = FileRecord(file, dataset, f"Set%201-7/{name}")
    return entry_of(wanted, state, checksum, id)


def known(bench, dataset, record, **changes):
    """Let the server have a record, and the ledger a row of it; return the record."""
    made = bench.server.add(dataset.id, record)
    bench.ledger.record([entry(dataset, name=made.name, id=made.id)._replace(**changes)])
    return made


def test_a_file_below_a_renamed_folder_has_arrived_and_one_that_was_renamed_is_read():
    bench = Bench()
    files = [a_file("a"), a_file("b"), a_file("c"), a_file("d")]
    dataset = bench.make_dataset()
    former = [entry(dataset, name=name)._replace(key=b"old/" + name.encode()) for name in "abc"]
    former[1] = former[1]._replace(ctime_ns=5)
    former[2] = former[2]._replace(key=b"old/x")
    bench.renamed = {it.key: row for it, row in zip(files, former, strict=False)}

    arrived, new, *unread = bench(a_group(*files))

    assert (arrived.file, arrived.renamed) == (files[0], former[0])
    assert (arrived.state, arrived.checksum) == (EntryState.STAGED, CHECKSUM)
    assert (new.file, new.state) == (files[3], EntryState.FOUND)
    assert [it.file for it in unread] == files[1:3]
    assert [it.matches[0].known.renamed for it in unread] == former[1:]
    assert [it.differs.state for it in unread] == [EntryState.FOUND] * 2


def test_files_of_a_new_dataset_are_wanted_without_a_listing():
    bench = Bench()

    wanted = bench(a_group(a_file("a"), a_file("b")))

    assert [item.file.name for item in wanted] == [b"a", b"b"]
    assert wanted[0].remote == f"Set%201-{wanted[0].dataset.id}/a"
    assert bench.server.calls["list_datafiles"] == 0
    assert len(bench.of_kind(FileWanted)) == 2


def test_what_is_in_cloud_storage_only_is_not_read_and_what_was_verified_stays_so():
    bench = Bench()
    dataset = bench.make_dataset()
    known(bench, dataset, a_record("verified"))
    bench.server.add(dataset.id, a_record("unread"))
    files = [a_file(name) for name in ("verified", "unread", "new", "here")]

    open_items = bench(a_group(*files)._replace(remote=frozenset(it.key for it in files[:3])))

    assert [item.file.name for item in open_items] == [b"here"]
    assert [event.files for event in bench.of_kind(FilesKnown)] == [1]
    skipped = [(event.path, event.problem.code) for event in bench.of_kind(FileSkipped)]
    assert skipped == [(it.key, "skipped.remote") for it in files[1:3]]


def test_only_what_would_be_read_may_be_unfinished_and_then_its_earlier_state_is_not_verified():
    bench = Bench()
    dataset = bench.make_dataset()
    for name in ("same", "grown"):
        known(bench, dataset, a_record(name))
    bench.server.add(dataset.id, a_record("unread"))
    bench.unfinished = dict.fromkeys(
        (b"same", b"grown", b"unread"), Problem("waiting.open", "", "")
    )
    grown = a_file("grown", size=4)

    (new,) = bench(a_group(a_file("same"), grown, a_file("unread"), a_file("new")))

    assert new.file.name == b"new"
    assert sorted(bench.asked) == [b"grown", b"new", b"unread"]
    waiting = [(event.path, event.modified_ns) for event in bench.of_kind(FileWaiting)]
    assert waiting == [(it.key, MODIFIED_NS) for it in (grown, a_file("unread"))]
    assert bench.ledger.find_entries([grown.key])[grown.key].state is EntryState.CHANGED


def test_one_listing_answers_for_a_whole_group():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record("a"))

    *wanted, unread = bench(a_group(a_file("a"), a_file("b"), a_file("c")))

    assert [item.file.name for item in wanted] == [b"b", b"c"]
    assert isinstance(unread, Comparison)
    assert unread.file.name == b"a"
    assert bench.server.calls["list_datafiles"] == 1


def test_a_file_that_the_ledger_does_not_know_is_compared_whatever_its_time_is():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record())

    (unread,) = bench(a_group(a_file("a.txt")))

    (match,) = unread.matches
    assert (match.checksum, match.known) == (CHECKSUM, entry(dataset, id=record.id))
    assert unread.differs.earlier == record
    assert bench.of_kind(FilesKnown) == bench.of_kind(FileVerified) == []


def test_known_files_are_proven_by_one_question():
    bench = Bench()
    dataset = bench.make_dataset()
    known(bench, dataset, a_record())
    known(bench, dataset, a_record("b.txt"))

    assert bench(a_group(a_file("a.txt"), a_file("b.txt"))) == []
    compared = bench.clock.now()
    assert bench.of_kind(FilesKnown) == [
        FilesKnown(folder=b"alice/Set 1", files=2, bytes=6, compared=compared)
    ]
    asked = {name for name, calls in bench.server.calls.items() if calls}
    assert bench.server.calls["fetch_newest"] == bench.server.calls["fetch_stats"] == 1
    assert not asked & {"list_datafiles", "find_datafiles"}


def test_of_a_known_group_only_open_files_are_looked_at_unless_the_server_differs():
    bench = Bench()
    dataset = bench.make_dataset()
    record = known(bench, dataset, a_record())
    known(bench, dataset, a_record("b.txt"))
    first, second = a_file("a.txt"), a_file("b.txt")
    group = a_group(first, second)._replace(known=dataset.id, open=[first])

    assert bench(group) == []
    assert [event.files for event in bench.of_kind(FilesKnown)] == [1]
    assert [event.path for event in bench.of_kind(FileVerified)] == [first.key]

    unverify(bench, record)
    (item,) = bench(group._replace(open=()))
    assert item.datafile == record.id


def unverify(bench, record):
    replicas = tuple(it._replace(verified=False) for it in record.replicas)
    bench.server.records[record.id] = record._replace(replicas=replicas)


def test_a_dataset_with_fewer_verified_replicas_than_before_is_listed_once():
    bench = Bench()
    dataset = bench.make_dataset()
    first = known(bench, dataset, a_record())
    known(bench, dataset, a_record("b.txt"))
    files = a_file("a.txt"), a_file("b.txt")
    bench(a_group(*files))
    unverify(bench, first)

    (item,) = bench(a_group(*files))

    assert item.state is EntryState.REGISTERED
    assert item.datafile == first.id
    assert bench.server.calls["list_datafiles"] == 1


@pytest.mark.parametrize("change", [{"checksum": "f" * 32}, {"size": 4}, None])
def test_a_record_that_differs_from_its_row_makes_a_full_listing_due(change):
    bench = Bench()
    dataset = bench.make_dataset()
    records = [known(bench, dataset, a_record(f"{number}.txt")) for number in range(200)]
    files = [a_file(f"{number}.txt") for number in range(200)]
    bench(a_group(*files))
    if change:
        bench.server.records[records[5].id] = records[5]._replace(**change)
    else:  # another record has its number's place in the count
        del bench.server.records[records[5].id]
        bench.server.add(dataset.id, a_record("other"))
        bench.server.fetch_newest = lambda dataset, total: NewestDatafile(200, records[-1].id)
    edited = files[5]._replace(modified_ns=MODIFIED_NS + 10**9, ctime_ns=7)

    (wanted,) = bench(a_group(*files[:5], edited, *files[6:]))

    assert wanted.file == edited
    listed = bench.server.calls["list_datafiles"]
    assert bench.ledger.listed[dataset.id].at.timestamp() == 0
    bench(a_group(*files))
    assert bench.server.calls["list_datafiles"] == listed + 1


def test_a_server_that_counts_fewer_replicas_than_there_are_is_listed_once_only():
    bench = Bench()
    dataset = bench.make_dataset()
    known(bench, dataset, a_record())
    bench.server.fetch_stats = lambda dataset: DatasetStats(0, 0)
    for _ in range(3):
        assert bench(a_group(a_file("a.txt"))) == []
    assert bench.server.calls["list_datafiles"] == 1


def test_what_others_added_to_a_dataset_is_listed_once():
    bench = Bench()
    dataset = bench.make_dataset()
    known(bench, dataset, a_record())
    bench.server.add(dataset.id, a_record("of others"))

    assert bench(a_group(a_file("a.txt"))) == bench(a_group(a_file("a.txt"))) == []
    assert bench.server.calls["list_datafiles"] == 1
    (wanted,) = bench(a_group(a_file("a.txt"), a_file("of others", size=4)))
    assert wanted.earlier.name == "of others"  # which the ledger does not know


def test_rows_of_older_versions_get_the_numbers_of_their_records_in_one_listing():
    bench = Bench()
    dataset = bench.make_dataset()
    record = known(bench, dataset, a_record(), datafile=None, ctime_ns=None, inode=None)

    assert bench(a_group(a_file("a.txt"))) == bench(a_group(a_file("a.txt"))) == []
    assert bench.ledger.entries[a_file("a.txt").key] == entry(dataset, id=record.id)
    assert bench.server.calls["list_datafiles"] == 1
    assert [len(bench.of_kind(kind)) for kind in (FileVerified, FilesKnown)] == [1, 1]


def test_a_lost_record_in_whose_stead_another_one_came_is_noticed():
    bench = Bench()
    dataset = bench.make_dataset()
    lost = known(bench, dataset, a_record())
    del bench.server.records[lost.id]
    bench.server.add(dataset.id, a_record("another"))

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.datafile is None
    assert [event.problem.code for event in bench.of_kind(Notice)] == ["server.lost"]
    row = bench.ledger.entries[a_file("a.txt").key]
    assert (row.state, row.problem, row.datafile) == (EntryState.FAILED, "server.lost", None)


@pytest.mark.parametrize(
    ("change", "state", "at_once"),
    [
        ({"checksum": "f" * 32}, EntryState.FOUND, False),
        ({"size": 4}, EntryState.FOUND, False),
        ({"replicas": ()}, EntryState.FOUND, True),
        ({"replicas": a_record(verified=False).replicas}, EntryState.REGISTERED, True),
    ],
    ids=["other bytes", "other size", "no copy", "not verified"],
)
def test_a_full_check_finds_what_the_proof_cannot_show(change, state, at_once):
    bench = Bench()
    dataset = bench.make_dataset()
    record = known(bench, dataset, a_record())
    known(bench, dataset, with_copy(a_record("other")))
    assert bench(a_group(a_file("a.txt"))) == []
    bench.server.records[record.id] = record._replace(**change)

    if not at_once:
        assert bench(a_group(a_file("a.txt"))) == []
        bench.clock.move(7 * 86_400)
    (item,) = bench(a_group(a_file("a.txt")))

    assert item.state is state
    assert [event.problem.code for event in bench.of_kind(Notice)] == ["server.lost"]
    assert bench(a_group(a_file("a.txt"))) == [item]  # no more told, and still to be done
    assert len(bench.of_kind(Notice)) == 1


def test_full_checks_of_many_datasets_are_spread_over_the_days():
    bench = Bench()
    policy = AuditPolicy(box="staging", full_check_days=7)
    audit = Audit(bench.ledger, bench.events.append, bench.clock, policy)
    listed_at = bench.clock.now()
    due = []
    for _ in range(7):
        bench.clock.move(86_400)
        due.append(sum(audit.is_due(number, listed_at) for number in range(1, 71)))

    assert due[-1] == 70
    assert all(6 <= later - earlier <= 14 for earlier, later in pairwise([0, *due]))


def test_a_full_check_in_every_run_lists_each_time():
    bench = Bench(full_check_days=0)
    dataset = bench.make_dataset()
    known(bench, dataset, a_record())

    for _ in range(3):
        assert bench(a_group(a_file("a.txt"))) == []
    assert bench.server.calls["list_datafiles"] == 3


@pytest.mark.parametrize(
    "change", [{"ctime_ns": 5}, {"inode": 5}, {"modified_ns": MODIFIED_NS + 1}]
)
def test_a_file_that_was_touched_is_read_again(change):
    bench = Bench()
    dataset = bench.make_dataset()
    record = known(bench, dataset, a_record())
    touched = a_file("a.txt")._replace(**change)

    (unread,) = bench(a_group(touched))

    (match,) = unread.matches
    assert match.known == entry(dataset, id=record.id)._replace(**change)


def test_the_ledger_alone_is_not_believed_when_the_server_lost_a_record():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.ledger.record([entry(dataset)])

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.state is EntryState.FOUND


def test_a_file_that_differs_from_its_record_is_sent_and_repairs_it():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record(size=4))

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.earlier == record
    assert wanted.remote == record.replicas[0].uri
    assert bench.of_kind(FileWanted)[0].changed


def test_a_file_that_grew_is_read_to_see_whether_it_was_appended_to():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record(size=2))

    (checked,) = bench.check(ListSource([a_group(a_file("a.txt"))], bench.clock))

    (unread,) = checked.unread
    assert (unread.matches, unread.differs.earlier) == ((), record)
    assert unread.copy == VerifiedCopy(2, record.checksum, record.replicas[0].verified_at)
    assert bench.of_kind(FileWanted) == []


def test_a_file_that_shrank_below_half_waits_for_the_user():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(size=7))

    assert bench(a_group(a_file("a.txt"))) == []

    (waiting,) = bench.of_kind(FileWaiting)
    assert (waiting.problem.code, waiting.modified_ns) == (HELD, a_file("a.txt").modified_ns)


def test_a_held_file_that_was_read_is_not_read_in_every_run():
    bench = Bench(changed="hold")
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record(checksum="0" * 31 + "1"))
    (unread,) = bench(a_group(a_file("a.txt")))
    bench.changed.judge(unread.differs, unread.copy)

    assert bench(a_group(a_file("a.txt"))) == []

    assert bench.ledger.changed[a_file("a.txt").key].copy_checksum == record.checksum
    assert [event.problem.code for event in bench.of_kind(FileWaiting)] == [HELD]


def test_a_record_with_another_checksum_than_we_sent_is_repaired():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(checksum="f" * 32))
    bench.ledger.record([entry(dataset)])
    bench.ledger.record([entry(dataset, name="gone.txt")])

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.earlier is not None


def test_a_local_file_that_changed_after_its_upload_is_sent_again():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(size=2))
    bench.ledger.record([entry(dataset, size=2)])

    (wanted,) = bench(a_group(a_file("a.txt", size=3)))

    assert wanted.earlier is not None
    assert bench.of_kind(FilesKnown) == []


def change(bench, names, changed, groups=1):
    """Let a dataset of so many known files have changed ones; return what is wanted of them."""
    dataset = bench.make_dataset()
    bench.server.records.clear()
    for name in names:
        known(bench, dataset, a_record(name))
    files = [a_file(name, size=4 if name in changed else 3) for name in names]
    return bench(*(a_group(*files[number::groups]) for number in range(groups)))


def lookups(bench):
    """Return how many requests of each kind were made for records."""
    kinds = ("find_datafiles", "fetch_datafiles", "list_datafiles")
    return {kind: bench.server.calls[kind] for kind in kinds if bench.server.calls[kind]}


def test_of_a_large_dataset_only_what_changed_is_asked_for():
    bench = Bench()
    names = [f"{number}.txt" for number in range(500)]

    (wanted,) = change(bench, names, {"7.txt"})

    assert wanted.earlier is not None
    assert wanted.earlier.name == "7.txt"
    assert lookups(bench) == {"fetch_datafiles": 1}
    assert [event.files for event in bench.of_kind(FilesKnown)] == [499]


def test_changed_files_of_a_large_dataset_are_asked_for_together():
    bench = Bench()
    names = [f"{number}.txt" for number in range(500)]

    wanted = change(bench, names, set(names[:50]))

    assert [item.earlier.name for item in wanted] == names[:50]
    assert lookups(bench) == {"fetch_datafiles": 1}


def test_changed_files_of_several_groups_are_asked_for_together():
    bench = Bench()
    names = [f"{number}.txt" for number in range(500)]

    wanted = change(bench, names, set(names[:5]), groups=5)

    assert [item.earlier.name for item in wanted] == names[:5]
    assert lookups(bench) == {"fetch_datafiles": 1}


def test_an_invalid_record_fails_only_the_files_of_its_own_group():
    bench = Bench()
    names = [f"{number}.txt" for number in range(500)]
    bench.server.faults["fetch_datafiles"] = [RejectedError("It is invalid.")] * 2

    wanted = change(bench, names, set(names[:5]), groups=5)

    assert [item.earlier.name for item in wanted] == names[1:5]
    assert len(bench.of_kind(FileFailed)) == 100
    assert lookups(bench) == {"fetch_datafiles": 6}


def test_where_the_listing_is_cheaper_than_a_request_changed_files_are_found_in_it():
    bench = Bench()
    names = [f"{number}.txt" for number in range(90)]

    wanted = change(bench, names, set(names[:50]))

    assert [item.earlier.name for item in wanted] == names[:50]
    assert lookups(bench) == {"list_datafiles": 1}


def test_a_changed_file_whose_copy_left_the_staging_area_fails_with_advice():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(size=4, box="archive"))

    assert bench(a_group(a_file("a.txt"))) == []
    assert bench.of_kind(FileFailed)[0].problem.code == "server.elsewhere"


def test_bytes_that_were_staged_before_a_kill_are_only_registered():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.ledger.record([entry(dataset, EntryState.STAGED)])

    (staged,) = bench(a_group(a_file("a.txt")))

    assert staged.state is EntryState.STAGED
    assert (staged.checksum, staged.remote) == (CHECKSUM, "Set%201-7/a.txt")


def test_a_record_that_is_not_verified_yet_only_waits():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record(verified=False))
    bench.ledger.record([entry(dataset, EntryState.REGISTERED)])

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert waiting.state is EntryState.REGISTERED
    assert waiting.datafile == record.id


def test_a_repaired_record_is_not_believed_before_the_server_looked_again():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record())
    bench.ledger.record([entry(dataset, EntryState.REPAIRED)])

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert waiting.state is EntryState.REGISTERED
    assert waiting.looks == ("look 0",)


def test_a_repaired_record_is_not_believed_before_the_server_looked_at_our_replica_again():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, with_copy(a_record()))
    bench.ledger.record([entry(dataset, EntryState.REPAIRED)])

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert set(waiting.looks) == {"look 0", "look at the cache"} == set(record.looks)


def test_a_record_that_changed_on_the_server_is_no_change_of_the_local_file():
    bench = Bench(changed="hold")
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(checksum="b" * 32))
    bench.ledger.record([entry(dataset, EntryState.REPAIRED)])

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.state is EntryState.FOUND
    assert bench.ledger.list_held() == []


def test_a_file_that_differs_replaces_the_replica_that_is_in_the_staging_area():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, with_copy(a_record(size=5)))

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.remote == "Set%201-7/a.txt"


def test_a_copy_of_earlier_bytes_does_not_stand_in_the_way_of_ours():
    bench = Bench()
    dataset = bench.make_dataset()
    copied = with_copy(a_record(), "Set%201-7/a.txt")
    stale = copied.replicas[0]._replace(verified=False)
    bench.server.add(dataset.id, copied._replace(replicas=(stale, *copied.replicas[1:])))

    (unread,) = bench(a_group(a_file("a.txt")))

    assert unread.matches[0].known.state is EntryState.VERIFIED


def test_a_copy_that_was_verified_does_not_stand_for_ours_that_was_refused():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, with_copy(a_record(verified=False)))
    bench.ledger.record([entry(dataset, EntryState.REGISTERED)])

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert waiting.state is EntryState.REGISTERED
    assert waiting.datafile == record.id


def test_a_record_without_a_replica_is_repaired():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record()._replace(replicas=()))

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.earlier == record
    assert not bench.of_kind(FileWanted)[0].changed


def test_two_folders_that_become_one_dataset_do_not_mix():
    bench = Bench()
    again = a_folder()
    again = type(again)(**{n: getattr(again, n) for n in again.__slots__} | {"path": b"/data/x"})

    wanted = bench(a_group(a_file("a")), a_group(a_file("b"), folder=again))

    assert [item.file.name for item in wanted] == [b"a"]
    assert bench.of_kind(FolderFailed)[0].problem.code == "folder.same-dataset"
    assert len(bench.of_kind(FileFailed)) == 1


def test_an_unknown_owner_is_uploaded_under_the_account():
    bench = Bench()

    bench(a_group(a_file("a"), folder=a_folder(owner="nobody")))

    (draft,) = bench.server.experiments
    assert draft.title == "Scope - nobody (USER NOT FOUND IN MYTARDIS)"
    assert [holder.name for _, holder in bench.server.grants] == ["managers"]


def test_an_unknown_owner_is_left_out_when_the_settings_say_so():
    bench = Bench(unknown_owners="skip")

    assert bench(a_group(a_file("a"), folder=a_folder(owner="nobody"))) == []
    assert bench.of_kind(FolderSkipped)[0].problem.code == "skipped.owner"
    assert len(bench.of_kind(FileSkipped)) == 1
    assert bench.server.experiments == {}


def test_a_new_experiment_belongs_to_managers_and_owner():
    bench = Bench()

    bench(a_group(a_file("a")))

    (draft,) = bench.server.experiments
    assert draft.title == "Scope - Alice Ang"
    assert [holder.id for _, holder in bench.server.grants] == [1, 2]


def test_an_experiment_that_cannot_be_shared_is_used_all_the_same():
    bench = Bench()
    bench.server.faults["grant"] = [RejectedError("There is no such list.", code="server.no-acl")]

    assert len(bench(a_group(a_file("a")))) == 1
    assert [event.problem.code for event in bench.of_kind(Notice)] == ["server.no-acl"]


def test_a_dry_run_makes_nothing():
    bench = Bench(dry_run=True)

    wanted = bench(a_group(a_file("a")))

    assert len(wanted) == 1
    assert bench.server.experiments == {}
    assert bench.server.datasets == {}


def test_a_dataset_that_cannot_be_asked_for_fails_alone():
    bench = Bench()
    bench.server.faults["fetch_datasets"] = [TransientError("The server was busy.")]

    wanted = bench(
        a_group(a_file("a")), a_group(a_file("b"), folder=a_folder("Set 2", owner="bob"))
    )

    assert [item.file.name for item in wanted] == [b"b"]
    assert len(bench.of_kind(FolderFailed)) == 1


def test_a_listing_that_fails_concerns_its_dataset_alone():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record("a"))
    bench.server.faults["list_datafiles"] = [TransientError("No list.")] * 9

    wanted = bench(
        a_group(a_file("a"), a_file("b")),
        a_group(a_file("c"), folder=a_folder("Set 2", owner="bob")),
    )

    assert [item.file.name for item in wanted] == [b"c"]
    assert len(bench.of_kind(FileFailed)) == 2
