"""Archives through the stages: members are what counts, the server's records what is believed."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mydata_like.core.archives import ArchiveRecord, ArchiveState, judge_archive
from mydata_like.core.errors import Problem, RejectedError, TransientError
from mydata_like.core.events import (
    FileFailed,
    FileRegistered,
    FilesKnown,
    FileStaged,
    FileVerified,
    FileWaiting,
    FolderFailed,
    Notice,
    TransferFinished,
    TransferStarted,
)
from mydata_like.core.local_files import ArchiveMember, LocalFile, Reading
from mydata_like.core.model import EntryState, FileRecord, Payload, Replica
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.transfer import tar
from mydata_like.transfer.archive_reader import TarArchives
from tests.archives import MODIFIED_NS as ARCHIVED_NS
from tests.archives import members_of, write
from tests.unit.catalogues.mytardis import test_register, test_verify
from tests.unit.engine import test_check, test_send
from tests.unit.engine.files import (
    CHECKSUM,
    DATASET,
    MODIFIED_NS,
    a_file,
    a_group,
    a_record,
    as_registered,
    as_staged,
)
from tests.unit.engine.test_pack import pack

NAME = "Set 1-0123abcd-0001.tar"
REMOTE = f"Set%201-7/{NAME}"
CHANGED = Problem("file.changed", "The file changed while it was read.")


def an_archive(*names: str, checksums: str = "", size: int = 4096) -> FileRecord:
    """A wanted archive; each letter of `checksums` makes a member's checksum."""
    sums = checksums.ljust(len(names))
    members = tuple(
        ArchiveMember(a_file(name), b"Set 1/" + name.encode(), letter.strip() * 32)
        for name, letter in zip(names, sums, strict=True)
    )
    file = LocalFile(b"", b"alice/Set 1/" + NAME.encode(), b"", NAME.encode(), size, 5, 0, 0)
    return FileRecord(file, DATASET, REMOTE, members=members)


def row(state=EntryState.VERIFIED, checksum=CHECKSUM, size=4096, **changes) -> ArchiveRecord:
    dataset = changes.pop("dataset", DATASET)
    return ArchiveRecord(dataset.id, NAME, size, 5, state, checksum, REMOTE, **changes)


def record(verified=True, checksum=CHECKSUM, size=4096):
    return a_record(NAME, size=size, checksum=checksum, verified=verified)


# The verdict on an archive of the ledger, by the server's record.

NO_REPLICA = record()._replace(replicas=())


@pytest.mark.parametrize(
    ("state", "found", "verdict"),
    [
        ("staged", None, "staged"),
        ("staged", NO_REPLICA, "staged"),
        ("staged", record(), "verified"),
        ("staged", record(verified=False), "registered"),
        ("staged", record(checksum="1" * 32), "gone"),
        ("registered", None, "gone"),
        ("registered", NO_REPLICA, "gone"),
        ("registered", record(), "verified"),
        ("registered", record(verified=False), "registered"),
        ("repaired", record(), "registered"),
        ("repaired", record(checksum="1" * 32), "staged"),
        ("verified", record(), "verified"),
        ("verified", None, "gone"),
        ("verified", record(verified=False), "registered"),
        ("verified", record(size=1), "gone"),
        ("failed", None, "gone"),
        ("failed", record(), "gone"),
    ],
)
def test_the_servers_record_says_how_far_an_archive_has_come(state, found, verdict):
    assert judge_archive(row(EntryState(state)), found) is ArchiveState(verdict)


# Check.


class Checking(test_check.Bench):
    """The dataset of `a_folder` on the server, with an archive that the ledger knows."""

    def __init__(self, state=EntryState.VERIFIED, **archive):
        super().__init__()
        self.dataset = self.make_dataset()
        self.row = row(state, dataset=self.dataset, **archive)
        self.keep()

    def keep(self):
        members = [self.row.entry(a_file(name), CHECKSUM) for name in ("a", "b")]
        self.ledger.record_archive(self.row, members)

    def add(self, found):
        """Let the server have a record of the archive; the ledger knows that of a verified one."""
        made = self.server.add(self.dataset.id, found)
        self.server.contents[made.name] = b"no archive"
        if self.row.state is EntryState.VERIFIED:
            self.row = self.row._replace(datafile=made.id)
            self.keep()
        return made

    @property
    def known(self):
        return sum(event.files for event in self.of_kind(FilesKnown))


def test_members_of_a_verified_archive_are_known_without_a_listing():
    bench = Checking()
    bench.add(record())

    assert bench(a_group(a_file("a"), a_file("b"))) == []
    assert bench.known == 2
    assert bench.server.calls["list_datafiles"] == 0


def test_a_changed_member_is_requested_alone():
    bench = Checking()
    bench.add(record())

    (item,) = bench(a_group(a_file("a", size=4), a_file("b")))

    assert (item.file.name, item.earlier, item.members) == (b"a", None, ())
    assert bench.known == 1


@pytest.mark.parametrize(
    ("state", "found", "now"),
    [
        (EntryState.STAGED, None, EntryState.STAGED),
        (EntryState.REGISTERED, record(verified=False), EntryState.REGISTERED),
        (EntryState.REPAIRED, record(), EntryState.REGISTERED),
        (EntryState.REPAIRED, record(checksum="1" * 32), EntryState.STAGED),
    ],
)
def test_what_is_not_verified_goes_on_as_the_archive_with_each_member(state, found, now):
    bench = Checking(state)
    found = found and bench.add(found)

    items = bench(a_group(a_file("a"), a_file("b")))

    assert [item.state for item in items] == [now, now]
    wanted = items[0]
    assert (wanted.remote, wanted.file.name, wanted.earlier) == (REMOTE, NAME.encode(), found)
    assert wanted.members == (ArchiveMember(a_file("a"), b"Set 1/a", CHECKSUM),)


def test_an_archive_that_was_verified_in_the_meantime_is_known_with_all_members():
    bench = Checking(EntryState.REGISTERED)
    found = bench.add(record())

    assert bench(a_group(a_file("a"))) == []
    rows = bench.ledger.find_entries([a_file("a").key, a_file("b").key]).values()
    assert {entry.state for entry in rows} == {EntryState.VERIFIED}
    assert bench.ledger.find_archives(bench.dataset.id)[NAME].datafile == found.id


def test_what_a_lost_archive_held_is_wanted_and_the_archive_is_forgotten():
    bench = Checking()

    items = bench(a_group(a_file("a"), a_file("b")))

    assert [item.file.name for item in items] == [b"a", b"b"]
    assert bench.ledger.archives == {}


def test_an_archive_with_other_bytes_than_ours_holds_nothing():
    bench = Checking()
    bench.add(record(checksum="1" * 32))
    bench.add(a_record("unverified", verified=False))

    assert [item.file.name for item in bench(a_group(a_file("a")))] == [b"a"]


def test_a_local_file_never_takes_an_archives_name():
    bench = Checking()
    bench.add(record())

    assert bench(a_group(a_file(NAME))) == []
    assert bench.of_kind(FileFailed)[0].problem.code == "archive.name"


@pytest.fixture
def content(tmp_path):
    """An archive of `a` and `b`, of which `b` could not be read."""
    members = members_of(tmp_path, {b"Set 1/a": b"aaa", b"Set 1/b": b"bbb"})
    Path(os.fsdecode(members[1].file.path)).unlink()
    return write(members)[0]


def forgetful(content, *, verified=True, looked=True):
    """A bench whose ledger has lost all, while the server has an archive."""
    bench = test_check.Bench()
    bench.dataset = bench.make_dataset()
    replica = Replica(REMOTE, "staging", verified, "look 0" if looked else None)
    found = record(size=len(content), checksum="2" * 32)._replace(replicas=(replica,))
    bench.record = bench.server.add(bench.dataset.id, found)
    bench.server.contents[NAME] = content
    return bench


def local(name, modified_ns=ARCHIVED_NS):
    return a_file(name)._replace(modified_ns=modified_ns)


def test_what_the_ledger_forgot_is_read_from_the_archive(content):
    bench = forgetful(content)

    item, unread = bench(a_group(local("a"), local("b")))

    assert item.file.name == b"b"  # which changed while it was archived
    (match,) = unread.matches
    found = match.known
    assert (found.state, found.archive, found.remote) == (EntryState.VERIFIED, NAME, REMOTE)
    assert match.checksum == "47bce5c74f589f4867dbd57e9ca9f808"
    row = bench.ledger.find_entries([local("a").key])[local("a").key]
    assert row.state is EntryState.REGISTERED  # until someone has read the local file
    assert bench.ledger.find_archives(bench.dataset.id)[NAME].state is EntryState.VERIFIED
    assert bench(a_group(local("a"))) == [unread]
    bench.ledger.record([found])
    assert bench(a_group(local("a"))) == []
    assert bench.server.calls["read_datafile"] == 1


def test_a_file_with_another_time_than_in_the_archive_is_wanted(content):
    bench = forgetful(content)

    assert len(bench(a_group(local("a", MODIFIED_NS)))) == 1


def test_an_archive_that_is_not_verified_yet_is_waited_for(content):
    bench = forgetful(content, verified=False, looked=False)

    assert bench(a_group(local("a"), local("new"))) == []
    assert {event.problem.code for event in bench.of_kind(FileWaiting)} == {"waiting.archive"}
    assert bench.ledger.archives == {}


# An index with a name that is no text: anybody who may write into one dataset can put it there.
_LINE = b'{"name": 17, "size": 0, "modified_ns": 0, "offset": 512, "md5": ""}'
_INDEX = b'{"format": "mydata-like archive 1", "members": [\n%b\n]}\n' % _LINE
MALFORMED = b"".join(
    (
        tar.header(b"d/a", 0, 0),
        tar.header(b"x.index.json", len(_INDEX), 0),
        _INDEX + tar.padding(len(_INDEX)),
        tar.END,
    )
)


@pytest.mark.parametrize(
    "spoilt", [b"no archive at all", b"", MALFORMED], ids=["text", "nothing", "malformed"]
)
def test_what_only_has_the_name_of_an_archive_is_not_read_twice(content, spoilt):
    bench = forgetful(content)
    bench.server.contents[NAME] = spoilt

    assert len(bench(a_group(local("a")))) == 1
    assert len(bench(a_group(local("a")))) == 1
    assert bench.server.calls["read_datafile"] == 1
    assert bench.ledger.find_archives(bench.dataset.id)[NAME].state is EntryState.FAILED


def test_an_archive_that_the_server_found_wrong_is_not_believed(content):
    bench = forgetful(content, verified=False)

    assert len(bench(a_group(local("a")))) == 1
    assert bench.server.calls["read_datafile"] == 0


def test_an_archive_that_we_may_not_read_is_reported(content):
    bench = forgetful(content)
    bench.server.faults["read_datafile"] = [RejectedError("No permission.")]

    assert len(bench(a_group(local("a")))) == 1
    assert [event.problem.code for event in bench.of_kind(Notice)] == ["archive.unreadable"]


def test_an_archive_that_cannot_be_read_now_keeps_its_files_from_being_sent(content):
    bench = forgetful(content)
    bench.server.faults["read_datafile"] = [TransientError("The line broke.")]

    assert bench(a_group(local("a"))) == []
    assert len(bench.of_kind(FileFailed)) == 1
    assert bench.of_kind(FolderFailed) == []


def test_a_record_whose_chunks_are_missing_is_not_an_archive_yet(content):
    bench = forgetful(content, verified=False, looked=False)
    bench.server.records[bench.record.id] = bench.record._replace(checksum="0" * 32)

    assert len(bench(a_group(local("a")))) == 1


# Pack.


def test_an_archive_is_a_payload_of_its_own_and_as_large_as_it_will_be():
    wanted = an_archive("a", "b", size=6)

    (payload,) = pack([[wanted]])

    assert not payload.batched
    assert payload.size == TarArchives().measure(NAME.encode(), wanted.members)


# Send.


def carrying(*fates):
    """A send stage whose channel reports these fates, one an archive."""
    return test_send.Bench(*([fate] for fate in fates))


def alone(wanted) -> Payload:
    return Payload(1, (wanted,), batched=False)


def test_each_file_of_an_archive_is_staged_and_the_ledger_knows_which_archive():
    bench = carrying(SentFile(0, "f" * 32, inside=(Reading("a" * 32), Reading("b" * 32))))

    (staged,) = bench(alone(an_archive("a", "b")))

    assert [m.checksum for m in staged.members] == ["a" * 32, "b" * 32]
    assert bench.of_kind(FileStaged) == [
        FileStaged(path=a_file("a").key, size=3, checksum="a" * 32),
        FileStaged(path=a_file("b").key, size=3, checksum="b" * 32),
    ]
    assert bench.of_kind(TransferStarted)[0].files == 2
    assert bench.of_kind(TransferFinished)[0].files == 2
    assert bench.ledger.archives[DATASET.id, NAME].state is EntryState.STAGED
    assert bench.ledger.entries[a_file("a").key].archive == NAME


def test_a_file_that_moved_while_it_was_archived_is_not_part_of_it():
    bench = carrying(SentFile(0, "f" * 32, inside=(Reading("a" * 32), Reading("", CHANGED))))

    (staged,) = bench(alone(an_archive("a", "b")))

    assert [member.name for member in staged.members] == [b"Set 1/a"]
    assert bench.of_kind(FileWaiting) == [
        FileWaiting(path=a_file("b").key, size=3, problem=CHANGED)
    ]
    assert list(bench.ledger.entries) == [a_file("a").key]


def test_every_file_of_an_archive_that_is_refused_fails():
    denied = Problem("staging.denied", "No.")
    bench = carrying(UnsentFile(0, denied, again=False))

    assert bench(alone(an_archive("a", "b"))) == []
    assert len(bench.of_kind(FileFailed)) == 2


def test_an_archive_that_is_sent_again_forgets_what_it_no_longer_holds():
    bench = carrying(
        SentFile(0, "f" * 32, inside=(Reading("a" * 32), Reading("b" * 32))),
        SentFile(0, "e" * 32, inside=(Reading("a" * 32), Reading("", CHANGED))),
    )
    bench(alone(an_archive("a", "b")))

    bench(alone(replace(an_archive("a", "b"), round=1, earlier=record())))

    ledger = bench.ledger
    assert list(ledger.entries) == [a_file("a").key]
    assert ledger.archives[DATASET.id, NAME].state is EntryState.REPAIRED


# Register and verify.


def test_an_archive_is_one_record_and_each_file_is_reported():
    bench = test_register.Bench()
    bench.ledger.record_archive(row(EntryState.STAGED), [])

    bench([as_staged(an_archive("a", "b", checksums="ab"), "f" * 32)])

    (made,) = bench.server.records.values()
    assert (made.name, made.size, made.checksum) == (NAME, 4096, "f" * 32)
    assert [event.path for event in bench.of_kind(FileRegistered)] == [
        a_file("a").key,
        a_file("b").key,
    ]
    assert bench.ledger.archives[DATASET.id, NAME].state is EntryState.REGISTERED


def test_each_file_is_verified_with_its_archive():
    bench = test_verify.Bench()
    item = as_registered(an_archive("a", "b", checksums="ab"), "f" * 32)
    found = bench.server.add(DATASET.id, record(checksum="f" * 32, verified=False))
    archive = row(EntryState.REGISTERED, "f" * 32)
    bench.ledger.record_archive(archive, [archive.entry(a_file("a"), "a" * 32)])
    bench.server.verify()

    assert bench([replace(item, datafile=found.id)]) == []
    assert [(event.path, event.checksum) for event in bench.of_kind(FileVerified)] == [
        (a_file("a").key, "a" * 32),
        (a_file("b").key, "b" * 32),
    ]
    assert bench.ledger.entries[a_file("a").key].state is EntryState.VERIFIED


def test_an_archive_that_never_verifies_fails_with_all_files():
    bench = test_verify.Bench()
    wanted = an_archive("a", "b", checksums="ab")
    found = bench.server.add(DATASET.id, record(checksum="f" * 32, verified=False))
    bench.server.bad.add(NAME)

    (again,) = bench([as_registered(wanted, "f" * 32, found.id)])
    assert (again.round, again.members, again.earlier.id) == (1, wanted.members, found.id)

    assert bench([as_registered(again, "f" * 32, found.id, ("look 0",))]) == []
    assert {event.problem.code for event in bench.of_kind(FileFailed)} == {"verify.failed"}
    assert len(bench.of_kind(FileFailed)) == 2
