"""The transport to object storage: what the service holds afterwards is what we have here."""

import hashlib
import os
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.core.model import Datafile, DatafileId, Payload, Replacement, Replica
from mydata_like.core.ports import SentFile
from mydata_like.core.staging_path import aside_path, kept_path
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import (
    COPY,
    S3Transport,
    find_object,
    remove_old_uploads,
)
from mydata_like.transfer.s3.s3_upload import PART, part_size
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET
from tests.fakes.place import checksum
from tests.s3_service import SERVICES, open_service
from tests.staging import DATASET, single, wanted

PREFIX = "raw/scope 1"
MARK = b"abc123"
EARLIER = "e" * 32


@pytest.fixture(scope="module", params=SERVICES)
def service(request, tmp_path_factory):
    with open_service(request.param, tmp_path_factory.mktemp("s3")) as service:
        yield service


@pytest.fixture
def bucket(service):
    return Bucket(name=BUCKET, endpoint=service.url, prefix=PREFIX, access_key=ACCOUNT)


@pytest.fixture
def client(bucket):
    with closing(open_client(bucket, SECRET, S3Options())) as client:
        yield client


@pytest.fixture
def transport(client, bucket):
    return S3Transport(client, bucket, channels=4, mark=MARK)


def ignore(*_: int) -> None: ...


def read(client, path: str) -> bytes | None:
    key = f"{PREFIX}/{path}"
    if find_object(client, Bucket(name=BUCKET), key) is None:
        return None
    with closing(client.get_object(Bucket=BUCKET, Key=key)["Body"]) as body:
        return body.read()


def arrived(client, member) -> bool:
    here = Path(os.fsdecode(member.path)).read_bytes()
    return read(client, os.fsdecode(member.remote)) == here


def list_uploads(client):
    """Return the uploads below the prefix, by which MinIO cannot list them."""
    found = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return [upload for upload in found if upload["Key"].startswith(f"{PREFIX}/")]


@pytest.mark.parametrize("size", [0, 65536, 65537, PART, PART + 1, 5 * PART + 4711])
def test_whole_objects_and_those_of_parts_arrive(place, client, transport, size):
    member = place.write(f"set-1/file {size}", size)
    place.settle(member)
    seen = []

    sent = transport.open_channel().send(single(member), lambda size, *_: seen.append(size))

    assert sent == [SentFile(0, checksum(member))]
    assert arrived(client, member)
    assert seen == sorted(seen)
    assert not seen or seen[0] <= 131072  # not what was only read for the signature
    assert seen[-1:] == ([size] if size else [])
    assert list_uploads(client) == []


@pytest.mark.parametrize("size", [1000, 3 * PART])
def test_a_file_that_changes_while_it_is_read_leaves_no_object(place, client, transport, size):
    member = place.write(f"set-1/changing {size}", size)
    place.settle(member)
    path = Path(os.fsdecode(member.path))
    os.utime(path, ns=(member.modified_ns, member.modified_ns))  # changes its change time now

    def change(*_: int) -> None:
        with path.open("r+b") as file:
            file.write(b"other")

    (fate,) = transport.open_channel().send(single(member), change)

    assert (fate.problem.code, fate.again) == ("file.changed", False)
    assert read(client, f"set-1/changing {size}") is None
    assert list_uploads(client) == []


def test_several_channels_send_at_once(place, client, transport):
    members = [place.write(f"set-1/at once {n}", PART + 1000 * n) for n in range(4)]
    place.settle(*members)
    fates = {}

    def send(channel, member):
        fates[member.remote] = channel.send(single(member), ignore)

    threads = [
        threading.Thread(target=send, args=(transport.open_channel(), member)) for member in members
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fates == {it.remote: [SentFile(0, checksum(it))] for it in members}
    assert all(arrived(client, member) for member in members)


def test_a_cut_transfer_ends_without_an_object_or_parts(place, client, transport):
    member = place.write("set-1/cut", 6 * PART)
    place.settle(member)
    channel = transport.open_channel()

    with pytest.raises(TransientError) as caught:
        channel.send(single(member), lambda size, *_: channel.cut() if size > PART else None)

    assert caught.value.problem_code == "file.cancelled"
    assert read(client, "set-1/cut") is None
    assert list_uploads(client) == []
    assert channel.send(single(member), ignore) == [SentFile(0, checksum(member))]


def test_the_bandwidth_is_limited_for_all_parts_together(place, transport):
    member = place.write("set-1/slow", 2 * PART)
    place.settle(member)
    channel = transport.open_channel()
    channel.limit(1.0)
    steps = []

    def follow(size: int, *_: int) -> None:
        steps.append(size)
        channel.limit(0 if len(steps) > 4 else 40_000)

    assert channel.send(single(member), follow) == [SentFile(0, checksum(member))]
    assert steps[0] == 512  # as few bytes as a token bucket passes at once
    assert steps[4] <= 4 * 4_000


def replacing(member):
    """Return a payload that replaces the verified bytes at the member's path."""
    remote = os.fsdecode(member.remote)
    replica = Replica(remote, "box", verified=True, verified_at="yesterday")
    record = Datafile(DatafileId(7), DATASET.id, None, "x", 100, EARLIER, "", (replica,))
    return Payload(1, (replace(wanted(member), earlier=record),), batched=False)


def replacement(member, size=None) -> Replacement:
    remote = os.fsdecode(member.remote)
    staged = aside_path(remote, member.size, member.modified_ns, MARK)
    size = member.size if size is None else size
    kept = kept_path(remote, EARLIER)
    return Replacement(
        member.path,
        DATASET.id,
        DatafileId(7),
        remote,
        staged,
        size,
        checksum(member),
        0,
        1,
        kept,
        100,
    )


@pytest.mark.parametrize("piece", [COPY, PART])
def test_verified_bytes_stay_until_they_are_replaced(place, client, transport, piece):
    transport.copied_at_once = piece
    old, new = place.write("set-1/it", 100), place.write("set-1/it again", 2 * PART + 5)
    new = new._replace(remote=old.remote)
    place.settle(old, new)
    channel = transport.open_channel()
    channel.send(single(old), ignore)

    assert channel.send(replacing(new), ignore) == [SentFile(0, checksum(new))]
    assert arrived(client, old)

    assert channel.replace([replacement(new)], {}) == [SentFile(0, checksum(new))]
    assert arrived(client, new)
    assert read(client, replacement(new).staged) is None
    kept = f".mydata-old/{replacement(new).kept}"
    assert hashlib.md5(read(client, kept)).hexdigest() == checksum(old)

    assert channel.replace([replacement(new)], {}) == [SentFile(0, checksum(new))]
    channel.discard([replacement(new).kept])

    assert read(client, kept) is None
    assert arrived(client, new)


def test_only_old_uploads_below_the_prefix_are_removed(request, client, bucket):
    if request.node.callspec.params["service"] == "minio":
        pytest.skip("MinIO lists the unfinished uploads of a single object only")
    ours = client.create_multipart_upload(Bucket=BUCKET, Key=f"{PREFIX}/left")["UploadId"]
    theirs = client.create_multipart_upload(Bucket=BUCKET, Key="raw/other")["UploadId"]

    young = remove_old_uploads(client, bucket, lambda: datetime.now(UTC) + timedelta(days=6.9))
    old = remove_old_uploads(client, bucket, lambda: datetime.now(UTC) + timedelta(days=7.1))
    all_of_it = Bucket(name=BUCKET, endpoint=bucket.endpoint, access_key=ACCOUNT)
    none = remove_old_uploads(client, all_of_it, lambda: datetime.now(UTC) + timedelta(days=99))

    assert (young, old, none) == (0, 1, 0)
    assert ours not in {it["UploadId"] for it in list_uploads(client)}
    left = client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert theirs in {it["UploadId"] for it in left}
    client.abort_multipart_upload(Bucket=BUCKET, Key="raw/other", UploadId=theirs)


@pytest.mark.parametrize("size", [0, PART, 10_000 * PART, 10_000 * PART + 1, 5 * 1024**4])
def test_parts_are_few_enough_for_any_size(size):
    assert -(-size // part_size(size)) <= 10_000
    assert part_size(size) % 2**20 == 0


def test_the_tag_of_an_object_is_that_of_its_parts(place, client, transport):
    member = place.write("set-1/tag", 2 * PART)
    place.settle(member)
    transport.open_channel().send(single(member), ignore)
    data = Path(os.fsdecode(member.path)).read_bytes()
    parts = b"".join(hashlib.md5(data[at : at + PART]).digest() for at in (0, PART))

    found = find_object(client, Bucket(name=BUCKET), f"{PREFIX}/set-1/tag")

    assert found["ETag"].strip('"') == f"{hashlib.md5(parts).hexdigest()}-2"


def test_the_round_trip_is_the_time_of_the_fastest_tiny_file(place, transport):
    members = [place.write(f"set-1/tiny {n}", 10) for n in range(3)]
    place.settle(*members)
    assert transport.round_trip == 0
    channel = transport.open_channel()
    times = []
    for member in members:
        begun = time.monotonic()
        channel.send(single(member), ignore)
        times.append(time.monotonic() - begun)

    assert 0 < transport.round_trip <= min(times)
