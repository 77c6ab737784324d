"""Only bytes that the destination has hashed as ours get their names and are listed."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Barrier

import pytest

from mydata_like.catalogues.manifest.prove import DIFFERS, Prove
from mydata_like.catalogues.manifest.segments import Manifest
from mydata_like.catalogues.manifest.stored_view import Losses, ManifestContext
from mydata_like.core.events import FileFailed, FileRenamed
from mydata_like.core.model import Entry, EntryState
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import CancelFlag, WorkQueue, begin
from mydata_like.transfer.folder.mounted_files import LocalFiles
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.unit.engine.files import a_wanted, as_staged

TEMPORARY = b".mydata-like/tmp/ours/"
OURS = hashlib.md5(b"abc").hexdigest()
PATIENCE = 30.0  # seconds


@pytest.fixture
def stage(tmp_path):
    clock, events = FakeClock(), []
    files = LocalFiles(bytes(tmp_path / "there"))
    files.open(create=True)
    gate = Gate(clock, clock.cancel(), events.append, Random(1))
    manifest = Manifest(files, "us", report=events.append)
    context = ManifestContext(
        files, manifest, MemoryLedger(), gate, events.append, TEMPORARY, Losses()
    )

    def prove(content, *, sent=1):
        (tmp_path / "there" / ".mydata-like/tmp/ours").mkdir(parents=True, exist_ok=True)
        (tmp_path / "there" / ".mydata-like/tmp/ours/a.txt").write_bytes(content)
        record = as_staged(a_wanted(size=3), OURS)
        record.remote, record.round = (TEMPORARY + b"a.txt").decode(), sent - 1
        queue = WorkQueue(CancelFlag())
        queue.put([record])
        queue.close()
        return [it for batch in Prove(context)(queue) for it in batch], events, manifest

    yield prove, tmp_path / "there" / "a.txt"
    files.close()


def test_right_bytes_get_their_name_and_are_listed(stage):
    prove, final = stage
    (record,), _, manifest = prove(b"abc")
    assert record.state is EntryState.VERIFIED
    assert final.read_bytes() == b"abc"
    assert [(it.path, it.proven.checksum) for it in manifest.read()] == [(b"a.txt", OURS)]


@pytest.mark.parametrize("content", [b"abd", b"ab", b""])
def test_wrong_bytes_are_sent_again_without_a_name(stage, content):
    prove, final = stage
    (record,), _, manifest = prove(content)
    assert (record.state, record.round) == (EntryState.FOUND, 1)
    assert not final.exists()
    assert list(manifest.read()) == []


def test_bytes_that_are_wrong_twice_fail(stage):
    prove, final = stage
    again, events, manifest = prove(b"abd", sent=2)
    assert again == []
    assert [it.problem for it in events if isinstance(it, FileFailed)] == [DIFFERS]
    assert not final.exists()
    assert list(manifest.read()) == []


def test_a_round_is_proven_while_another_worker_has_the_next_one_proven(tmp_path):
    both = Barrier(2)

    class Meeting(LocalFiles):
        def prove_and_place(self, placements):
            both.wait(PATIENCE)
            return super().prove_and_place(placements)

    clock, ours = FakeClock(), tmp_path / "there" / ".mydata-like/tmp/ours"
    files = Meeting(bytes(tmp_path / "there"))
    files.open(create=True)
    ours.mkdir(parents=True)
    gate = Gate(clock, clock.cancel(), id, Random(1))
    manifest = Manifest(files, "us", report=id)
    context = ManifestContext(files, manifest, MemoryLedger(), gate, id, TEMPORARY, Losses())
    prove, verified = Prove(context), []
    for name in (b"a.txt", b"b.txt"):
        (ours / name.decode()).write_bytes(b"abc")
        record = as_staged(a_wanted(size=3), OURS)
        record.remote = (TEMPORARY + name).decode()
        queue = WorkQueue(CancelFlag())
        queue.put([record])
        queue.close()
        verified.append(begin(lambda queue=queue: list(prove(queue))))

    assert [len(batch) for ended in verified for batch in ended()] == [1, 1]
    assert {it.path for it in manifest.read()} == {b"a.txt", b"b.txt"}
    files.close()


@pytest.fixture
def renaming(tmp_path):
    """Prove a file that was `old.txt`, whose copy is listed and has some content there now."""

    def prove(content, files_type=LocalFiles, listed_by="us"):
        clock, events, ledger = FakeClock(), [], MemoryLedger()
        files = files_type(bytes(tmp_path / "there"))
        files.open(create=True)
        (tmp_path / "there" / "old.txt").write_bytes(b"abc")
        (listed,) = files.prove([b"old.txt"])
        Manifest(files, listed_by, report=events.append).add([listed], 1)
        if content is None:
            (tmp_path / "there" / "old.txt").unlink()
        else:
            (tmp_path / "there" / "old.txt").write_bytes(content)
        record = as_staged(a_wanted(size=3), OURS)
        mark = listed.file.mark
        row = Entry.of(record)._replace(
            key=b"old.txt", remote="old.txt", state=EntryState.VERIFIED, datafile=mark
        )
        ledger.record([row])
        record.remote, record.renamed = (TEMPORARY + b"new.txt").decode(), row
        gate = Gate(clock, clock.cancel(), events.append, Random(1))
        manifest = Manifest(files, "us", report=events.append)
        context = ManifestContext(files, manifest, ledger, gate, events.append, TEMPORARY, Losses())
        queue = WorkQueue(CancelFlag())
        queue.put([record])
        queue.close()
        proven = []
        with suppress(KilledError):
            proven = [it for batch in Prove(context)(queue) for it in batch]
        listed = {it.path: it.proven.checksum for it in manifest.read()}
        return proven, events, listed, ledger.entries

    return prove, tmp_path / "there" / "old.txt", tmp_path / "there" / "new.txt"


class KilledError(Exception):
    """Stands for the end of the process."""


class KilledWhenListing(LocalFiles):
    """Files that are renamed, after which nothing is listed any more."""

    def place(self, placements):
        placed = super().place(placements)
        self.write = self.die
        return placed

    def die(self, *_, **__):
        raise KilledError


class KilledWhenPlacing(LocalFiles):
    def place(self, placements):
        raise KilledError


class FilledMeanwhile(LocalFiles):
    """Files among which somebody puts another one under the new name."""

    def place(self, placements):
        for it in placements:
            Path(os.fsdecode(self._full(it.final))).write_bytes(b"theirs")
        return super().place(placements)


class OneName(LocalFiles):
    """Files with one name where two seem to be, so that removing the earlier removes both."""

    def place(self, placements):
        placed = super().place(placements)
        for it in placements:
            Path(os.fsdecode(self._full(it.final))).unlink()
        return placed


def test_a_copy_that_is_gone_after_it_was_renamed_is_not_claimed(renaming):
    prove, _, _ = renaming
    (record,), events, listed, rows = prove(b"abc", OneName)
    assert (record.state, listed, rows, events) == (EntryState.FOUND, {}, {}, [])


def test_the_copy_of_a_renamed_file_is_renamed_after_it_was_hashed(renaming):
    prove, old, new = renaming
    (record,), events, listed, rows = prove(b"abc")
    assert record.state is EntryState.VERIFIED
    assert (record.remote, new.read_bytes(), old.exists()) == ("new.txt", b"abc", False)
    assert listed == {b"new.txt": OURS}
    assert rows == {}
    assert events == [FileRenamed(path=record.file.key, size=3, before=b"old.txt")]


@pytest.mark.parametrize("content", [b"abd", b"ab", None])
def test_a_copy_that_has_changed_since_the_listing_is_not_renamed(renaming, content):
    prove, old, new = renaming
    (record,), events, listed, rows = prove(content)
    assert (record.state, record.round, record.renamed) == (EntryState.FOUND, 0, None)
    assert not new.exists()
    assert (old.read_bytes() if old.exists() else None) == content
    assert (listed, rows, events) == ({}, {}, [])


def test_a_file_that_appears_under_the_new_name_is_not_replaced(renaming):
    prove, old, new = renaming
    (record,), _, listed, _ = prove(b"abc", FilledMeanwhile)
    assert record.state is EntryState.FOUND
    assert (old.read_bytes(), new.read_bytes(), listed) == (b"abc", b"theirs", {})


def test_what_another_uploader_lists_is_not_renamed(renaming):
    prove, old, new = renaming
    (record,), _, listed, rows = prove(b"abc", listed_by="others")
    assert record.state is EntryState.FOUND
    assert (old.read_bytes(), new.exists(), listed) == (b"abc", False, {b"old.txt": OURS})
    assert rows[b"old.txt"].state is EntryState.VERIFIED


@pytest.mark.parametrize("killed", [KilledWhenPlacing, KilledWhenListing])
def test_after_a_kill_nothing_is_listed_falsely_and_nothing_is_missed(renaming, killed):
    prove, old, new = renaming
    proven, _, listed, rows = prove(b"abc", killed)
    assert (proven, listed) == ([], {})
    assert old.exists() != new.exists()
    assert rows[b"old.txt"].state is EntryState.REGISTERED, "a verified one would be missed"
