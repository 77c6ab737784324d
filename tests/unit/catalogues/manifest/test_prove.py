"""Only bytes that the destination has hashed as ours get their names and are listed."""

import hashlib
from random import Random

import pytest

from mydata_like.catalogues.manifest.prove import DIFFERS, Prove
from mydata_like.catalogues.manifest.segments import Manifest
from mydata_like.catalogues.manifest.stored_view import Losses, ManifestContext
from mydata_like.core.events import FileFailed
from mydata_like.core.model import EntryState
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import CancelFlag, WorkQueue
from mydata_like.transfer.folder.mounted_files import LocalFiles
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.unit.engine.files import a_wanted, as_staged

TEMPORARY = b".mydata-like/tmp/ours/"
OURS = hashlib.md5(b"abc").hexdigest()


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
