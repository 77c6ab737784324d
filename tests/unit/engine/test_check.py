"""Checking: yes, no or some of a group are there already; what differs is never skipped."""

from random import Random

import pytest

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.core.events import (
    FileFailed,
    FileSkipped,
    FilesKnown,
    FileWanted,
    FolderFailed,
    FolderSkipped,
    Notice,
)
from mydata_like.core.model import (
    Dataset,
    Entry,
    EntryState,
    Instrument,
    Registered,
    Staged,
    Wanted,
)
from mydata_like.engine.archives import Recall
from mydata_like.engine.check import Check, times_agree
from mydata_like.engine.datasets import Datasets, Identity
from mydata_like.engine.knowledge import Knowledge
from mydata_like.engine.retry import Gate
from mydata_like.settings.schema import Data
from mydata_like.transfer.unarchive import TarArchives
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ACCOUNT, FACILITY, ScriptedServer
from tests.unit.engine.files import (
    CHECKSUM,
    MODIFIED_NS,
    a_file,
    a_folder,
    a_group,
    a_record,
    with_copy,
)

IDENTITY = Identity(
    account=ACCOUNT,
    facility=FACILITY,
    instrument=Instrument(1, "Scope"),
    uploader="0b6",
    origin="pc:/data",
)


class Bench:
    """A check stage over a scripted server and an empty ledger."""

    def __init__(self, *, dry_run=False, **data):
        clock = FakeClock()
        self.events = []
        self.server = ScriptedServer()
        self.ledger = MemoryLedger()
        gate = Gate(clock, clock.cancel(), self.events.append, Random(1))
        datasets = Datasets(
            self.server, IDENTITY, Data(**data), self.events.append, dry_run=dry_run
        )
        recall = Recall(self.server, self.ledger, gate, self.events.append, TarArchives())
        knowledge = Knowledge(self.server, self.ledger, gate, recall)
        self.check = Check(knowledge, datasets, self.events.append, box="staging")

    def __call__(self, *groups):
        return [item for checked in self.check(iter(groups)) for item in checked.open]

    def make_dataset(self) -> Dataset:
        """Let the server have the dataset of `a_folder()`, with a file that we never look at."""
        self(a_group())
        (dataset,) = [dataset for _, dataset in self.server.datasets.values()]
        self.server.calls.clear()
        self.events.clear()
        return dataset

    def of_kind(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


def entry(dataset, state=EntryState.VERIFIED, *, name="a.txt", checksum=CHECKSUM, size=3):
    return Entry(
        a_file(name).key, size, MODIFIED_NS, state, dataset.id, checksum, f"Set%201-7/{name}"
    )


def test_files_of_a_new_dataset_are_wanted_without_a_listing():
    bench = Bench()

    wanted = bench(a_group(a_file("a"), a_file("b")))

    assert [item.file.name for item in wanted] == [b"a", b"b"]
    assert wanted[0].remote == f"Set%201-{wanted[0].dataset.id}/a"
    assert bench.server.calls["list_datafiles"] == 0
    assert len(bench.of_kind(FileWanted)) == 2


def test_one_listing_answers_for_a_whole_group():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record("a"))

    wanted = bench(a_group(a_file("a"), a_file("b"), a_file("c")))

    assert [item.file.name for item in wanted] == [b"b", b"c"]
    assert bench.server.calls["list_datafiles"] == 1
    assert bench.of_kind(FilesKnown) == [FilesKnown(folder=b"alice/Set 1", files=1, bytes=3)]


def test_what_the_listing_told_is_kept_in_the_ledger():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record("a.txt"))
    bench(a_group(a_file("a.txt")))
    bench.server.calls.clear()

    assert bench(a_group(a_file("a.txt"))) == []
    assert bench.server.calls["list_datafiles"] == 0
    assert bench.server.calls["fetch_stats"] == 1


def test_the_ledger_alone_is_not_believed_when_the_server_lost_a_record():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.ledger.record([entry(dataset)])

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert isinstance(wanted, Wanted)


@pytest.mark.parametrize(
    "record",
    [
        a_record(size=4),
        a_record()._replace(modified="2023-11-14T22:13:21.123456"),
    ],
    ids=["other size", "other time"],
)
def test_a_file_that_differs_from_its_record_is_sent_and_repairs_it(record):
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, record)

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.datafile == record
    assert wanted.remote == record.replicas[0].uri
    assert bench.of_kind(FileWanted)[0].changed


def test_a_record_with_another_checksum_than_we_sent_is_repaired():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(checksum="f" * 32))
    bench.ledger.record([entry(dataset)])
    bench.ledger.record([entry(dataset, name="gone.txt")])

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.datafile is not None


def test_a_local_file_that_changed_after_its_upload_is_sent_again():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record(size=2))
    bench.ledger.record([entry(dataset, size=2)])

    (wanted,) = bench(a_group(a_file("a.txt", size=3)))

    assert wanted.datafile is not None
    assert bench.of_kind(FilesKnown) == []


def change(bench, names, changed):
    """Let a dataset of so many known files have changed ones; return what is wanted of them."""
    dataset = bench.make_dataset()
    bench.server.records.clear()
    for name in names:
        bench.server.add(dataset.id, a_record(name))
    bench.ledger.record([entry(dataset, name=name) for name in names])
    return bench(a_group(*(a_file(name, size=4 if name in changed else 3) for name in names)))


def test_of_a_large_dataset_only_what_changed_is_asked_for():
    bench = Bench()
    names = [f"{number}.txt" for number in range(500)]

    (wanted,) = change(bench, names, {"7.txt"})

    assert wanted.datafile is not None
    assert wanted.datafile.name == "7.txt"
    assert (bench.server.calls["find_datafiles"], bench.server.calls["list_datafiles"]) == (1, 0)
    assert [event.files for event in bench.of_kind(FilesKnown)] == [499]


def test_where_much_has_changed_the_listing_is_cheaper():
    bench = Bench()
    names = [f"{number}.txt" for number in range(500)]

    wanted = change(bench, names, set(names[:50]))

    assert [item.datafile.name for item in wanted] == names[:50]
    assert (bench.server.calls["find_datafiles"], bench.server.calls["list_datafiles"]) == (4, 1)


def test_a_rewritten_file_is_not_taken_for_the_old_one_in_another_zone():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record())
    an_hour_before = entry(dataset)._replace(modified_ns=MODIFIED_NS - 3600 * 10**9)
    bench.ledger.record([an_hour_before])

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert isinstance(wanted, Wanted)


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

    assert isinstance(staged, Staged)
    assert (staged.checksum, staged.wanted.remote) == (CHECKSUM, "Set%201-7/a.txt")


def test_a_record_that_is_not_verified_yet_only_waits():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record(verified=False))

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert isinstance(waiting, Registered)
    assert waiting.datafile == record.id


def test_a_repaired_record_is_not_believed_before_the_server_looked_again():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, a_record())
    bench.ledger.record([entry(dataset, EntryState.REPAIRED)])

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert isinstance(waiting, Registered)
    assert waiting.before == ("look 0",)


def test_a_repaired_record_is_not_believed_before_the_server_looked_at_our_replica_again():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, with_copy(a_record()))
    bench.ledger.record([entry(dataset, EntryState.REPAIRED)])

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert set(waiting.before) == {"look 0", "look at the cache"} == set(record.looks)


def test_a_file_that_differs_replaces_the_replica_that_is_in_the_staging_area():
    bench = Bench()
    dataset = bench.make_dataset()
    bench.server.add(dataset.id, with_copy(a_record(size=9)))

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.remote == "Set%201-7/a.txt"


def test_a_copy_of_earlier_bytes_does_not_stand_in_the_way_of_ours():
    bench = Bench()
    dataset = bench.make_dataset()
    copied = with_copy(a_record(), "Set%201-7/a.txt")
    stale = copied.replicas[0]._replace(verified=False)
    bench.server.add(dataset.id, copied._replace(replicas=(stale, *copied.replicas[1:])))

    assert bench(a_group(a_file("a.txt"))) == []


def test_a_copy_that_was_verified_does_not_stand_for_ours_that_was_refused():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, with_copy(a_record(verified=False)))

    (waiting,) = bench(a_group(a_file("a.txt")))

    assert isinstance(waiting, Registered)
    assert waiting.datafile == record.id


def test_a_record_without_a_replica_is_repaired():
    bench = Bench()
    dataset = bench.make_dataset()
    record = bench.server.add(dataset.id, a_record()._replace(replicas=()))

    (wanted,) = bench(a_group(a_file("a.txt")))

    assert wanted.datafile == record
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


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("2023-11-14T22:13:20.123456", True),
        ("2023-11-15T09:13:20.123456", True),
        ("2023-11-14T22:13:20", True),
        ("2023-11-14T22:13:20.123456+00:00", True),
        ("2023-11-14T22:13:21.123456", False),
        ("2023-11-14T22:13:20.423456", False),
        ("2023-11-16T22:13:20.123456", False),
        ("yesterday", False),
    ],
    ids=["UTC", "Melbourne", "whole seconds", "zone", "a second", "part", "days", "no time"],
)
def test_times_agree_up_to_the_servers_zone(text, agrees):
    assert times_agree(text, MODIFIED_NS) is agrees
