"""Archives over real SSH servers: on every rung one file arrives, and tar reads it there."""

import hashlib
import os
from pathlib import Path

import pytest

from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import FileRecord, Payload
from mydata_like.core.ports import SentFile
from mydata_like.transfer.archive_writer import measure_archive
from tests.archives import NAME, members_of
from tests.openssh import on_host, run_on_host
from tests.sshd_fixture import needs_sshd
from tests.staging import DATASET, Staging

KINDS = ["shell", "scp", "sftp", "folder"]
CONTENTS = {b"Set 1/%d/file %d.txt" % (n % 7, n): b"%d" % n * (n * 7 % 999) for n in range(300)}
CONTENTS[b"Set 1/larger"] = os.urandom(3_000_000)

pytestmark = needs_sshd


@pytest.fixture(scope="module", params=KINDS)
def staging(request, tmp_path_factory):
    with Staging(tmp_path_factory.mktemp(request.param), request.param) as staging:
        yield staging


@pytest.fixture
def channel(staging, tmp_path):
    (tmp_path / "staging").mkdir()
    transport = staging.build(on_host(tmp_path / "staging"))
    yield transport.open_channel()
    transport.close()


@pytest.fixture
def wanted(tmp_path):
    members = members_of(tmp_path / "source", CONTENTS)
    size = measure_archive(NAME, members)
    file = LocalFile(b"", b"Set 1/" + NAME, b"", NAME, size, members[0].file.modified_ns, 0, 0)
    return FileRecord(file, DATASET, "Set%201-1/" + os.fsdecode(NAME), members=tuple(members))


def path_of(member) -> Path:
    return Path(os.fsdecode(member.file.path))


def send(channel, wanted) -> SentFile:
    (sent,) = channel.send(Payload(1, (wanted,), batched=False), lambda *_: None)
    assert isinstance(sent, SentFile), sent
    return sent


def test_an_archive_arrives_as_one_file(tmp_path, channel, wanted):
    sent = send(channel, wanted)

    there = tmp_path / "staging" / wanted.remote
    assert list((tmp_path / "staging").rglob("*.tar")) == [there]
    assert hashlib.md5(there.read_bytes()).hexdigest() == sent.checksum
    assert there.stat().st_size == wanted.file.size
    assert [reading.checksum for reading in sent.inside] == [
        hashlib.md5(content).hexdigest() for _, content in sorted(CONTENTS.items())
    ]
    (tmp_path / "out").mkdir()
    run_on_host("tar", "-C", on_host(tmp_path / "out"), "-xf", on_host(there)).check_returncode()
    for name, content in CONTENTS.items():
        assert (tmp_path / "out" / os.fsdecode(name)).read_bytes() == content


def test_a_member_that_vanished_fails_alone(tmp_path, channel, wanted):
    path_of(wanted.members[5]).unlink()

    sent = send(channel, wanted)

    bad = [place for place, reading in enumerate(sent.inside) if reading.problem]
    assert bad == [5]
    assert (tmp_path / "staging" / wanted.remote).stat().st_size == wanted.file.size


def test_an_archive_of_nothing_good_never_gets_its_name(tmp_path, staging, channel, wanted):
    for member in wanted.members:
        path_of(member).unlink()

    (unsent,) = channel.send(Payload(1, (wanted,), batched=False), lambda *_: None)

    assert (unsent.problem.code, unsent.again) == ("file.vanished", False)
    if staging.kind != "scp":  # where files grow in their place
        assert not (tmp_path / "staging" / wanted.remote).exists()
