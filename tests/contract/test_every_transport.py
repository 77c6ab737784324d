"""What every kind of transport promises: all kinds run all of it."""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http_upload import HttpTransport
from mydata_like.core.errors import TransientError
from mydata_like.core.events import ChannelChanged
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    FileRecord,
    Payload,
    Replacement,
    Replica,
)
from mydata_like.core.ports import SentFile, Transport, UnsentFile
from mydata_like.core.staging_path import aside_path, kept_path
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Server
from mydata_like.transfer.archive_writer import open_content
from mydata_like.transfer.channel import describe_member
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import S3Transport, find_object
from tests.embedded import Api
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, ObjectServer
from tests.fakes.place import Place, checksum
from tests.sshd_fixture import noisy
from tests.staging import Staging

EARLIER = "e" * 32  # the checksum of replaced bytes
LARGE = 9 << 20  # bytes: several parts, and more than is sent in a batch
NAMES = [
    "plain",
    "it's",
    'a "quoted" one',
    "$(touch /tmp/never) `id` ; rm -rf *",
    "Ünï çödé 日本語",
    "-rf",
    "back\\slash",
    "tab\there",
    "a+b%20c?d#e",
    "trailing ",
    "~root",
]


class Kind(ABC):
    """One kind of transport, and what arrived over it."""

    can_replace = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.events: list[object] = []
        self.dataset = Dataset(DatasetId(1), "set")

    @abstractmethod
    def open(self, place: Place) -> Transport: ...

    @abstractmethod
    def read(self, remote: str) -> bytes | None: ...

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close what the transport did not open itself."""


class StagingArea(Kind):
    def __init__(self, name: str, staging: Staging) -> None:
        super().__init__(name)
        self._staging = staging
        self.events = staging.events
        self.can_replace = name != "scp"  # which knows no quotes either

    def open(self, place: Place) -> Transport:
        if self.name == "scp":
            place.location = place.location.with_name("staging")
        place.location.mkdir()
        self._location = place.location
        return self._staging.build(place.location)

    def read(self, remote: str) -> bytes | None:
        path = self._location / remote
        return path.read_bytes() if path.exists() else None


class ObjectStorage(Kind):
    def __init__(self, service: ObjectServer) -> None:
        super().__init__("s3")
        self._service = service

    def open(self, place: Place) -> Transport:
        prefix = place.source.parent.name
        self._bucket = Bucket(
            name=BUCKET, endpoint=self._service.url, prefix=prefix, access_key=ACCOUNT
        )
        self._client = open_client(self._bucket, SECRET, S3Options())
        return S3Transport(self._client, self._bucket, channels=4, emit=self.events.append)

    def read(self, remote: str) -> bytes | None:
        key = self._bucket.key(remote)
        if find_object(self._client, self._bucket, key) is None:
            return None
        with closing(self._client.get_object(Bucket=BUCKET, Key=key)["Body"]) as body:
            return body.read()


class Http(Kind):
    can_replace = False

    def __init__(self, server: EmbeddedServer, api: Api) -> None:
        super().__init__("http")
        self._server = server
        self._api = api

    def open(self, place: Place) -> Transport:
        number = self._api.make_dataset(place.source.parent.name)
        self.dataset = Dataset(DatasetId(number), "set")
        settings = Server(url=self._server.url, username=self._server.username)
        self._client = ApiClient(settings, self._server.api_key, SystemClock(), CancelFlag())
        return HttpTransport(
            self._client,
            lambda wanted: open_content(describe_member(wanted)),
            emit=self.events.append,
        )

    def read(self, remote: str) -> bytes | None:
        assert self._server.wait_verified()  # only then it returns the bytes
        records = self._api.get(f"mydata_dataset_file/?dataset__id={self.dataset.id}&limit=0")
        for record in records.json()["objects"]:
            if "/".join(filter(None, (record["directory"], record["filename"]))) == remote:
                return self._api.get(f"dataset_file/{record['id']}/download/").content
        return None

    def close(self) -> None:
        self._client.close()


@contextmanager
def open_kind(name: str, folder: Path) -> Iterator[Kind]:
    with ExitStack() as stack:
        if name == "s3":
            yield ObjectStorage(stack.enter_context(ObjectServer()))
        elif name == "http":
            server = stack.enter_context(EmbeddedServer(folder, verify_delay=0.01))
            api = stack.enter_context(Api(server))
            api.prepare()
            yield Http(server, api)
        else:
            options = noisy(folder) if name == "shell" else ()
            yield StagingArea(name, stack.enter_context(Staging(folder, name, options)))


@pytest.fixture(scope="module", params=["shell", "scp", "sftp", "folder", "s3", "http"])
def kind(request, tmp_path_factory):
    with open_kind(request.param, tmp_path_factory.mktemp(request.param)) as kind:
        yield kind


@pytest.fixture
def transport(kind, place):
    kind.events.clear()
    transport = kind.open(place)
    yield transport
    transport.close()
    kind.close()


def ignore(*_: int) -> None: ...


def want(kind, member) -> FileRecord:
    directory, _, name = member.remote.rpartition(b"/")
    file = LocalFile(member.path, member.remote, directory, name, *member[1:5])
    return FileRecord(file, kind.dataset, os.fsdecode(member.remote))


def load(kind, *members, batched=False) -> Payload:
    return Payload(1, tuple(want(kind, member) for member in members), batched=batched)


def arrived(kind, member) -> bool:
    here = Path(os.fsdecode(member.path)).read_bytes()
    return kind.read(os.fsdecode(member.remote)) == here


@pytest.mark.parametrize("batched", [True, False])
def test_files_of_any_size_arrive_whole(kind, place, transport, batched):
    sizes = [0, 1, 32_704, 32_705, 65_536, 262_144, 262_145, *([] if batched else [LARGE])]
    members = [place.write(f"set/deep/er/{size}", size) for size in sizes]
    place.settle(*members)

    sent = transport.open_channel().send(load(kind, *members, batched=batched), ignore)

    assert [(fate.index, fate.checksum) for fate in sent] == [
        (index, checksum(member)) for index, member in enumerate(members)
    ]
    assert all(arrived(kind, member) for member in members)


@pytest.mark.parametrize("batched", [True, False])
def test_hostile_names_arrive_as_they_are(kind, place, transport, batched):
    members = [place.write(f"set '1'/{name}/{name}", 100) for name in NAMES]
    place.settle(*members)

    sent = transport.open_channel().send(load(kind, *members, batched=batched), ignore)

    assert [fate.checksum for fate in sent] == [checksum(member) for member in members]
    assert all(arrived(kind, member) for member in members)


def test_a_file_that_has_vanished_or_changed_fails_alone(kind, place, transport):
    members = [place.write(f"set/{n}", 1000) for n in range(5)]
    place.settle(*members)
    Path(os.fsdecode(members[1].path)).unlink()
    Path(os.fsdecode(members[3].path)).write_bytes(b"other")

    fates = transport.open_channel().send(load(kind, *members), ignore)

    failed = {fate.index: fate for fate in fates if isinstance(fate, UnsentFile)}
    assert {index: fate.problem.code for index, fate in failed.items()} == {
        1: "file.vanished",
        3: "file.changed",
    }
    assert not any(fate.again for fate in failed.values())
    assert all(arrived(kind, members[index]) for index in (0, 2, 4))


def test_progress_grows_up_to_the_size_of_the_payload(kind, place, transport):
    members = [place.write("set/one", LARGE), place.write("set/two", 1000)]
    place.settle(*members)
    seen = []

    transport.open_channel().send(load(kind, *members), lambda size, *_: seen.append(size))

    assert seen == sorted(seen)
    assert all(0 <= size <= LARGE + 1000 for size in seen)


def test_channels_send_side_by_side(kind, place, transport):
    members = [place.write(f"set/{n}", 1_000_000 + n) for n in range(3)]
    place.settle(*members)
    fates = {}

    def send(channel, member):
        fates[member.remote] = channel.send(load(kind, member), ignore)[0].checksum

    first = transport.open_channel()
    channels = [first, *(transport.open_channel() for _ in range(min(2, transport.capacity - 1)))]
    threads = [
        threading.Thread(target=send, args=pair) for pair in zip(channels, members, strict=False)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    sent = members[: len(channels)]
    assert fates == {member.remote: checksum(member) for member in sent}
    assert all(arrived(kind, member) for member in sent)


def test_a_limit_is_obeyed_and_can_be_lifted(kind, place, transport):
    member = place.write("set/slow", 2_000_000)
    place.settle(member)
    channel = transport.open_channel()
    channel.limit(400_000)
    seen = []

    def follow(size: int, *_: int) -> None:
        seen.append(size)
        if len(seen) == 3:
            channel.limit(0)

    assert channel.send(load(kind, member), follow)[0].checksum == checksum(member)
    assert seen[0] <= 400_000
    assert arrived(kind, member)


def test_a_cut_payload_ends_and_the_channel_goes_on(kind, place, transport):
    slow, next_one = place.write("set/slow", LARGE), place.write("set/next", 1000)
    place.settle(slow, next_one)
    channel = transport.open_channel()
    channel.limit(1_000_000)

    with pytest.raises(TransientError):
        channel.send(load(kind, slow), lambda *_: channel.cut())

    channel.limit(0)
    assert channel.send(load(kind, next_one), ignore)[0].checksum == checksum(next_one)
    assert arrived(kind, next_one)


def test_a_closed_transport_sends_nothing_more(kind, place, transport):
    member = place.write("set/closed", 10)
    place.settle(member)
    channel = transport.open_channel()
    transport.close()

    with pytest.raises(TransientError):
        channel.send(load(kind, member), ignore)
    with pytest.raises(TransientError):
        transport.open_channel()
    assert kind.read("set/closed") is None


def test_channels_are_reported(kind, transport):
    transport.open_channel().close()

    changes = [event for event in kind.events if isinstance(event, ChannelChanged)]
    assert [(event.channel, event.state, event.rung) for event in changes] == [
        (1, "open", kind.name),
        (1, "closed", "" if isinstance(kind, StagingArea) else kind.name),
    ]
    assert changes[0].host


def test_verified_bytes_are_kept_and_replaced_or_stay(kind, place, transport):
    old, new = place.write("set/it", 100), place.write("set/it again", 70_000)
    new = new._replace(remote=old.remote)
    place.settle(old, new)
    channel = transport.open_channel()
    channel.send(load(kind, old), ignore)
    found = want(kind, new)
    replica = Replica(found.remote, "box", verified=True, verified_at="then")
    record = Datafile(DatafileId(1), kind.dataset.id, "", "", 100, EARLIER, "", (replica,))
    changed = replace(found, earlier=record)
    staged = aside_path(found.remote, new.size, new.modified_ns, transport.mark)
    move = Replacement(
        new.path,
        kind.dataset.id,
        record.id,
        found.remote,
        staged,
        new.size,
        checksum(new),
        0,
        new.modified_ns,
        kept_path(found.remote, EARLIER),
        100,
    )
    (aside,) = channel.send(Payload(1, (changed,), batched=False), ignore)
    assert arrived(kind, old)

    (placed,) = channel.replace([move], {})

    if not kind.can_replace:
        assert isinstance(placed, UnsentFile)
        assert placed.problem.code == "waiting.changed"
        assert arrived(kind, old)
        return
    assert (aside.checksum, placed) == (checksum(new), SentFile(0, placed.checksum))
    assert arrived(kind, new)
    (again,) = channel.replace([move], {})
    assert isinstance(again, SentFile), "an interrupted call may be repeated"
    (missing,) = channel.replace([move._replace(size=99)], {})
    assert missing.problem.code == "staging.missing"
    assert arrived(kind, new)
