"""Files carried by HTTP: one request each, and never twice under one name."""

import email
import hashlib
import json
import os
import time
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.get_or_create import number_of
from mydata_like.catalogues.mytardis.http_upload import HttpTransport
from mydata_like.catalogues.mytardis.serializers import parse_datafile
from mydata_like.core.errors import TransientError
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileRecord, Payload
from mydata_like.core.ports import SentFile
from mydata_like.transfer.file_source import open_source
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.web import page, reply, reset
from tests.privileges import needs_undecodable_names
from tests.settled import settle

PATH = "mydata_dataset_file/"
DATASET = Dataset(DatasetId(21), "Day 1")


class Shelf:
    """What a server keeps of multipart uploads."""

    def __init__(self, web):
        self.rows = []
        self.contents = []
        self.answers = []
        self._ids = count(1)
        web.rules.append(self.answer)

    def answer(self, asked):
        if asked.path != PATH:
            return None
        if asked.method == "GET":
            wanted = (asked.query.get("directory", ""), asked.query["filename"])
            return page(*(it for it in self.rows if (it["directory"], it["filename"]) == wanted))
        self.keep(asked)
        return self.answers.pop(0) if self.answers else reply(201, b"/path", "text/html")

    def keep(self, asked):
        head = f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode()
        file, record = email.message_from_bytes(head + asked.body).get_payload()
        self.contents.append(file.get_payload(decode=True))
        self.add(**json.loads(record.get_payload()))

    def add(self, **record):
        replica = {"uri": "u", "location": "default", "verified": False}
        self.rows.append({"id": next(self._ids), "replicas": [replica], **record})


@pytest.fixture
def shelf(web):
    return Shelf(web)


def open_file(file):
    return open_source(file)


@pytest.fixture
def transport(api_client):
    return HttpTransport(api_client, lambda wanted: open_file(wanted.file))


@pytest.fixture
def make(tmp_path):
    def make(name=b"a b.txt", content=b"hello", directory=b"sub"):
        path = tmp_path / os.fsdecode(name)
        path.write_bytes(content)
        settle(path)
        status = path.stat()
        file = LocalFile(
            os.fsencode(path),
            name,
            directory,
            name,
            status.st_size,
            status.st_mtime_ns,
            status.st_dev,
            status.st_ino,
        )
        return FileRecord(file, DATASET, "remote")

    return make


def send(transport, *members, progress=lambda *_: None):
    return transport.open_channel().send(Payload(1, members, False), progress)


def md5(content):
    return hashlib.md5(content).hexdigest()


def test_a_file_travels_with_its_record(web, shelf, transport, make):
    seen = []

    fates = send(transport, make(), progress=lambda size, *_: seen.append(size))

    assert fates == [SentFile(0, md5(b"hello"), registered=True)]
    assert shelf.contents == [b"hello"]
    row = shelf.rows[0]
    assert (row["filename"], row["directory"], row["size"]) == ("a b.txt", "sub", 5)
    assert row["md5sum"] == md5(b"hello")
    assert row["dataset"] == "/api/v1/dataset/21/"
    assert row["modification_time"].endswith("+00:00")
    assert seen == [5]


@pytest.mark.parametrize("size", [0, 1, 262144, 1_000_003])
def test_files_of_any_size_arrive_whole(shelf, transport, make, size):
    content = os.urandom(size)

    fates = send(transport, make(content=content))

    assert fates == [SentFile(0, md5(content), registered=True)]
    assert shelf.contents == [content]


def test_progress_is_a_running_total_over_the_payload(shelf, transport, make):
    seen = []

    send(
        transport,
        make(b"a", b"12"),
        make(b"b", b"345"),
        progress=lambda size, *_: seen.append(size),
    )

    assert seen == [2, 5]


def test_a_file_that_changed_since_it_was_seen_fails_alone(web, shelf, transport, make):
    changed, sound = make(b"changed"), make(b"sound")
    changed = replace(changed, file=changed.file._replace(size=4))

    first, second = send(transport, changed, sound)

    assert (first.index, first.problem.code, first.again) == (0, "file.changed", False)
    assert second == SentFile(1, md5(b"hello"), registered=True)


def test_a_file_that_grows_while_it_is_sent_leaves_nothing_behind(
    web, shelf, transport, make, tmp_path
):
    wanted = make(content=b"x" * 1_000_000)

    def grow(*_):
        with (tmp_path / "a b.txt").open("ab") as file:
            file.write(b"y")

    fates = send(transport, wanted, progress=grow)

    assert fates[0].problem.code == "file.changed"
    assert shelf.rows == []


def test_a_lost_reply_is_settled_by_looking(web, shelf, transport, make):
    shelf.answers = [reset]

    assert send(transport, make()) == [SentFile(0, md5(b"hello"), registered=True)]
    assert len(shelf.rows) == 1


def test_a_duplicate_with_our_bytes_is_adopted(web, shelf, transport, make):
    shelf.answers = [reply(409, b"", "text/html")]

    assert send(transport, make()) == [SentFile(0, md5(b"hello"), registered=True)]


def test_a_failed_upload_may_be_tried_again(web, transport, make):
    web.on("GET", PATH, page())
    web.on("POST", PATH, reply(503))

    fates = send(transport, make())

    assert fates[0].again
    assert web.count("POST") == 1


def test_a_refused_upload_is_not_tried_again(web, transport, make):
    web.on("GET", PATH, page())
    web.on("POST", PATH, reply(413))

    assert not send(transport, make())[0].again


def existing(shelf, content, **more):
    record = {"dataset": "/api/v1/dataset/21/", "filename": "a b.txt", "directory": "sub"}
    shelf.add(**record, size=len(content), md5sum=md5(content), **more)


def test_a_record_that_exists_with_our_bytes_is_taken_for_ours(web, shelf, transport, make):
    existing(shelf, b"hello")

    assert send(transport, make()) == [SentFile(0, md5(b"hello"), registered=True)]
    assert web.count("POST") == 0


@pytest.mark.parametrize(
    "record",
    [{"content": b"other"}, {"content": b"hello", "replicas": []}],
    ids=["other bytes", "no replica"],
)
def test_a_record_that_exists_otherwise_is_never_made_again(web, shelf, transport, make, record):
    existing(shelf, **record)

    fates = send(transport, make())

    assert (fates[0].problem.code, fates[0].again) == ("http.cannot-repair", False)
    assert web.count("POST") == 0


def test_a_record_whose_bytes_are_still_being_written_is_awaited(web, shelf, transport, make):
    existing(shelf, b"hello")
    shelf.rows[0]["replicas"][0]["uri"] = None

    fates = send(transport, make())

    assert (fates[0].problem.code, fates[0].again) == ("server.strange-record", True)
    assert web.count("POST") == 0


def test_a_changed_file_cannot_be_repaired(web, shelf, transport, make):
    existing(shelf, b"other")
    record = parse_datafile(shelf.rows[0])

    fates = send(transport, replace(make(), earlier=record))

    assert fates[0].problem.code == "http.cannot-repair"
    assert web.count("POST") == 0


@needs_undecodable_names
def test_a_name_that_cannot_be_decoded_is_not_sent(web, shelf, transport, make):
    fates = send(transport, make(name=os.fsencode("a\udcff")))

    assert (fates[0].problem.code, fates[0].again) == ("name.unfit", False)
    assert web.asked == []


def test_a_closed_transport_breaks_off_what_is_under_way(web, shelf, transport, make):
    wanted = make(content=b"x" * 1_000_000)

    with pytest.raises(TransientError):
        send(transport, wanted, progress=lambda *_: transport.close())

    assert shelf.rows == []


def test_nothing_is_sent_over_a_closed_transport(shelf, transport, make):
    transport.close()

    with pytest.raises(TransientError):
        transport.open_channel()


def test_a_limited_channel_is_not_faster(web, shelf, transport, make):
    channel = transport.open_channel()
    channel.limit(1_000_000)
    begun = time.monotonic()

    fates = channel.send(Payload(1, (make(content=bytes(400_000)),), False), lambda *_: None)

    assert time.monotonic() - begun >= 0.4 - 0.16
    assert isinstance(fates[0], SentFile)
    assert shelf.contents == [bytes(400_000)]


def test_a_cut_payload_ends_at_once_and_the_channel_goes_on(web, shelf, transport, make):
    channel = transport.open_channel()
    channel.limit(1000)
    members = (make(content=bytes(400_000)), make(name=b"other"))

    with pytest.raises(TransientError, match="cancelled"):
        channel.send(Payload(1, members, False), lambda *_: channel.cut())

    channel.limit(0)
    assert channel.send(Payload(1, members, False), lambda *_: None)[1].registered


def test_a_file_whose_answer_was_lost_may_be_sent_again_only_when_that_must_be_over(
    web, transport, make
):
    web.on("GET", PATH, page())
    web.on("POST", PATH, reset)
    ledger, _ = keep_notes(transport)

    (fate,) = send(transport, make())

    assert fate.again
    assert transport.client.now() >= transport.client.write_timeout
    assert web.count("POST", PATH) == 1
    assert ledger.find_writes() == {}


def test_a_file_that_a_killed_run_was_sending_is_looked_for_first(web, shelf, transport, make):
    ledger, clock = keep_notes(transport)
    wanted = make()
    WriteTracker(ledger, clock, 300.0).begin(number_of(("datafile", DATASET.id, "sub", "a b.txt")))
    transport.client.writes = WriteTracker(ledger, clock, 300.0)
    row = {"dataset": "/api/v1/dataset/21/", "directory": "sub", "filename": "a b.txt"}

    def finish(asked):
        if clock.now() > FakeClock().now() + timedelta(seconds=9) and not shelf.rows:
            shelf.add(**row, size=5, md5sum=md5(b"hello"), modification_time="")

    web.rules.insert(0, finish)

    (fate,) = send(transport, wanted)

    assert fate == SentFile(0, md5(b"hello"), registered=True)
    assert shelf.contents == []


def keep_notes(transport):
    """Let a transport note what it writes in a ledger; return this and its clock."""
    ledger, clock = MemoryLedger(), transport.client._clock
    transport.client.writes = WriteTracker(ledger, clock, 300.0)
    return ledger, clock
