"""What `ServerAPI` promises, kept by the scripted server and by HTTP against the embedded one."""

import hashlib
import os
from datetime import UTC, datetime

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.chunked_upload import ChunkedUpload
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http_upload import HttpTransport
from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.catalogues.mytardis.uploader import (
    Installation,
    RegisteredKey,
    Uploaders,
)
from mydata_like.core.errors import (
    AccessDeniedError,
    NotApprovedError,
    RejectedError,
    TransientError,
)
from mydata_like.core.local_files import LocalFile
from mydata_like.core.machine import MachineRecord
from mydata_like.core.model import Dataset, DatasetId, FileRecord, Payload, Registration
from mydata_like.core.ports import SentFile
from mydata_like.core.token_bucket import TokenBucket
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import EMPTY_LIST, Fault, Reset
from mydata_like.demo.uploaders import STAGING_BOX
from mydata_like.settings.schema import Server
from mydata_like.transfer.file_source import open_source
from tests.fakes.clock import FakeClock
from tests.fakes.server import ScriptedServer
from tests.settled import settle

DRAFT = ExperimentDraft("Cells", "Instrument: Scope", "Username / Dataset", "alice", "", "uuid-1")
NOW = datetime(2026, 1, 5, 9, 0, 0, 250000, UTC).isoformat()


@pytest.fixture
def embedded(tmp_path):
    with EmbeddedServer(tmp_path / "server", verify_delay=0.01) as server:
        yield server


@pytest.fixture
def client(embedded):
    clock = FakeClock()
    settings = Server(url=embedded.url, username=embedded.username)
    client = ApiClient(settings, embedded.api_key, clock, clock.cancel())
    yield client
    client.close()


class Scripted:
    """The scripted server; bytes need no place there."""

    def __init__(self):
        self.api = ScriptedServer()

    def put(self, uri, content):
        pass

    def verify(self):
        self.api.verify()


class Embedded:
    """The HTTP client and the embedded server that it talks to."""

    def __init__(self, embedded, client):
        self.api = HttpServer(client)
        self._embedded = embedded

    def put(self, uri, content):
        path = self._embedded.box_location / uri
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def verify(self):
        assert self._embedded.wait_verified()


@pytest.fixture(params=["scripted", "http"])
def site(request):
    if request.param == "scripted":
        return Scripted()
    return Embedded(request.getfixturevalue("embedded"), request.getfixturevalue("client"))


@pytest.fixture
def api(site):
    return site.api


def make_dataset(api, name="Day 1"):
    facility = api.fetch_facilities()[0]
    instrument = api.ensure_instrument(facility, "Scope")
    experiment = api.find_experiment(DRAFT) or api.create_experiment(DRAFT)
    return api.create_dataset(experiment, name, instrument)


def registration(dataset, name="a.tif", content=b"abc", **more):
    record = Registration(
        dataset=dataset.id,
        directory="",
        name=name,
        size=len(content),
        checksum=hashlib.md5(content).hexdigest(),
        created=NOW,
        modified=NOW,
        uri=f"x-{dataset.id}/{name}",
        box=STAGING_BOX,
    )
    return record._replace(**more)


def test_the_resources_show_what_the_server_can_do(api):
    assert {"mydata_uploader", "mydata_dataset_stats"} <= api.fetch_resources()


def test_people_are_found_by_name_and_by_address(api):
    by_name = api.find_user("alice")

    assert by_name.email == "alice@example.org"
    assert api.find_user_by_email("alice@example.org") == by_name


def test_a_missing_user_is_not_found(api):
    assert api.find_user("nobody") is None
    assert api.find_user_by_email("nobody@example.org") is None
    assert api.find_group("no group") is None


def test_a_group_is_found_by_its_exact_name(api):
    assert api.find_group("lab-a").name == "lab-a"
    assert api.find_group("lab") is None


def test_an_instrument_is_made_once(api):
    facility = api.fetch_facilities()[0]

    assert api.ensure_instrument(facility, "Scope") == api.ensure_instrument(facility, "Scope")


def test_an_experiment_is_found_again(api):
    assert api.find_experiment(DRAFT) is None

    made = api.create_experiment(DRAFT)

    assert api.find_experiment(DRAFT) == made


def test_a_user_and_a_group_are_made_owners(api):
    experiment = api.create_experiment(DRAFT)

    api.grant(experiment, api.find_user("alice"))
    api.grant(experiment, api.find_group("lab-a"))


def test_datasets_of_an_experiment_are_listed(api):
    made = make_dataset(api)
    experiment = api.find_experiment(DRAFT)
    instrument = api.ensure_instrument(api.fetch_facilities()[0], "Scope")

    assert [it.id for it in api.fetch_datasets(experiment, instrument)] == [made.id]


def test_a_new_experiment_has_no_datasets(api):
    instrument = api.ensure_instrument(api.fetch_facilities()[0], "Scope")

    assert api.fetch_datasets(api.create_experiment(DRAFT), instrument) == []


def test_a_new_dataset_is_empty(api):
    dataset = make_dataset(api)

    assert list(api.list_datafiles(dataset.id)) == []
    assert api.fetch_stats(dataset.id) == (0, 0)


def test_a_registered_file_is_listed_and_verified(site, api):
    dataset = make_dataset(api)
    site.put(f"x-{dataset.id}/a.tif", b"abc")

    api.register([registration(dataset)])
    site.verify()

    (record,) = api.list_datafiles(dataset.id)
    assert (record.directory, record.name, record.size) == ("", "a.tif", 3)
    assert record.checksum == hashlib.md5(b"abc").hexdigest()
    assert record.replicas[0].location == STAGING_BOX
    assert record.replicas[0].uri == f"x-{dataset.id}/a.tif"
    assert record.verified
    assert api.fetch_stats(dataset.id) == (1, 1)


def test_what_is_registered_later_is_listed_from_an_offset_on(api):
    dataset = make_dataset(api)
    api.register([registration(dataset, "a"), registration(dataset, "b")])
    api.register([registration(dataset, "c")])

    assert [record.name for record in api.list_datafiles(dataset.id, 2)] == ["c"]


def test_the_number_of_records_and_the_last_of_so_many_take_one_question(api):
    dataset, other = make_dataset(api), make_dataset(api, "Day 2")
    assert api.fetch_newest(dataset.id, 0) == (0, 0)
    api.register([registration(dataset, name) for name in ("c", "b", "a")])
    api.register([registration(other, "d")])
    first, second, third = (record.id for record in api.list_datafiles(dataset.id))

    assert first < second < third
    assert api.fetch_newest(dataset.id, 3) == (3, third)
    assert api.fetch_newest(dataset.id, 2) == (3, second)
    assert api.fetch_newest(dataset.id, 4) == (3, 0)
    assert api.fetch_newest(dataset.id, 0) == (3, first)


def test_records_are_fetched_by_their_ids(api):
    dataset = make_dataset(api)
    api.register([registration(dataset, name) for name in ("a", "b", "c")])
    first, _, third = api.list_datafiles(dataset.id)

    found = api.fetch_datafiles([first.id, third.id, 999_999])

    assert {record.name for record in found} == {"a", "c"}


def test_a_registration_happens_wholly_or_not_at_all(api):
    dataset = make_dataset(api)
    api.register([registration(dataset, "a")])

    with pytest.raises(RejectedError):
        api.register([registration(dataset, "b"), registration(dataset, "a")])

    assert [record.name for record in api.list_datafiles(dataset.id)] == ["a"]


def test_a_changed_file_is_repaired_and_verified_again(site, api):
    dataset = make_dataset(api)
    uri = f"x-{dataset.id}/a.tif"
    site.put(uri, b"abc")
    api.register([registration(dataset)])
    site.verify()
    (before,) = api.list_datafiles(dataset.id)
    site.put(uri, b"other")

    api.register([registration(dataset, content=b"other", uri=None, datafile=before.id)])
    api.request_verification(before.id)
    site.verify()

    (after,) = api.list_datafiles(dataset.id)
    assert (after.id, after.size, after.verified) == (before.id, 5, True)
    assert after.replicas[0].verified_at != before.replicas[0].verified_at


# What only a real server can do, or fail to do.


def test_a_migrated_account_is_looked_for(client, embedded):
    HttpServer(client).find_user("old-name")

    assert any("mydata_user" in request.path for request in embedded.requests)


def test_a_revoked_key_is_noticed_at_once(client, embedded):
    embedded.revoke_key()

    with pytest.raises(AccessDeniedError):
        HttpServer(client).find_user("alice")


def test_empty_lists_for_strangers_lead_to_no_creation(client, embedded):
    api = HttpServer(client)
    facility = api.fetch_facilities()[0]
    embedded.faults.add(Fault(action=EMPTY_LIST, method="GET", count=None))

    with pytest.raises(AccessDeniedError):
        api.ensure_instrument(facility, "Scope")

    assert all(request.method == "GET" for request in embedded.requests)


def test_what_was_made_before_a_lost_reply_is_adopted(client, embedded):
    embedded.faults.add(Fault(action=Reset(), method="POST", path="/instrument/"))
    embedded.faults.add(Fault(action=Reset(), method="POST", path="mydata_experiment"))
    embedded.faults.add(Fault(action=Reset(), method="POST", path="/dataset/"))

    dataset = make_dataset(HttpServer(client))

    assert dataset.name == "Day 1"
    assert embedded.check_invariants() == []


def test_a_locked_dataset_refuses_alone(client, embedded):
    api = HttpServer(client)
    dataset = make_dataset(api)
    embedded.set_immutable(dataset.id)

    with pytest.raises(RejectedError) as caught:
        api.register([registration(dataset)])

    assert caught.value.problem_code == "server.forbidden"


INSTALLATION = Installation(
    uuid="0b6e4e5a-0000-0000-0000-000000000000",
    name="Scope",
    contact_name="Ann",
    contact_email="ann@example.org",
    data_path="/data",
    account="demo",
    machine=MachineRecord(processor="p" * 500),
)
KEY = RegisteredKey("ssh-ed25519 AAAA scope", ("SHA256:abc", "MD5:aa:bb"))


def test_an_uploader_asks_and_is_approved(client, embedded):
    uploaders = Uploaders(client)
    instrument = HttpServer(client).ensure_instrument(
        HttpServer(client).fetch_facilities()[0], "Scope"
    )
    assert uploaders.fetch_approval(INSTALLATION.uuid, KEY.fingerprints) is None

    record = uploaders.ensure_uploader(INSTALLATION, instrument)
    uploaders.request_approval(INSTALLATION, record, KEY)
    with pytest.raises(NotApprovedError):
        uploaders.fetch_approval(INSTALLATION.uuid, KEY.fingerprints)
    embedded.approve(INSTALLATION.uuid)
    area, _ = uploaders.fetch_approval(INSTALLATION.uuid, KEY.fingerprints)

    assert area.box == embedded.box_name
    # On Windows it is the path on the SSH server, as in /C:/folder.
    assert area.location.endswith(embedded.box_location.as_posix())
    assert uploaders.ensure_uploader(INSTALLATION, instrument).id == record.id


def open_file(file):
    return open_source(file)


def local_file(path, content):
    path.write_bytes(content)
    settle(path)
    status = path.stat()
    return LocalFile(
        os.fsencode(path),
        path.name.encode(),
        b"",
        path.name.encode(),
        status.st_size,
        status.st_mtime_ns,
        status.st_dev,
        status.st_ino,
    )


def test_a_file_sent_by_http_is_verified(client, embedded, tmp_path):
    dataset = make_dataset(HttpServer(client))
    file = local_file(tmp_path / "a b.txt", b"hello")
    channel = HttpTransport(client, lambda wanted: open_file(wanted.file)).open_channel()

    fates = channel.send(Payload(1, (FileRecord(file, dataset, "r"),), False), lambda *_: None)

    assert fates == [SentFile(0, hashlib.md5(b"hello").hexdigest(), registered=True)]
    assert embedded.wait_verified()
    assert embedded.check_invariants({("Day 1", "", "a b.txt"): tmp_path / "a b.txt"}) == []


@pytest.fixture
def big_file(tmp_path):
    return local_file(tmp_path / "big.bin", os.urandom(25_000_000))


def send_in_chunks(client, embedded, dataset, file, bucket=None):
    wanted, seen = FileRecord(file, dataset, f"x-{dataset.id}/big.bin"), []

    def follow(size, omitted=0):
        seen.append((size, omitted))

    with open_file(file) as source:
        ChunkedUpload(client, embedded.box_name)(wanted, source, bucket or TokenBucket(), follow)
    return seen


def test_a_large_file_travels_in_chunks(client, embedded, tmp_path, big_file):
    dataset = make_dataset(HttpServer(client))

    send_in_chunks(client, embedded, dataset, big_file)

    assert embedded.wait_verified()
    assert embedded.check_invariants({("Day 1", "", "big.bin"): tmp_path / "big.bin"}) == []


def test_chunks_travel_no_faster_than_allowed(client, embedded, big_file):
    clock = FakeClock()
    bucket = TokenBucket(monotonic=clock.monotonic, sleep=clock.move)
    bucket.limit(1_000_000)

    send_in_chunks(client, embedded, make_dataset(HttpServer(client)), big_file, bucket)

    assert clock.monotonic() == pytest.approx(25, abs=0.2)


def test_a_broken_chunked_upload_goes_on_where_it_ended(client, embedded, tmp_path, big_file):
    dataset = make_dataset(HttpServer(client))
    embedded.faults.add(
        Fault(action=Reset(handled=False), method="POST", path="/upload/", skip=1, count=4)
    )
    with pytest.raises(TransientError):
        send_in_chunks(client, embedded, dataset, big_file)

    seen = send_in_chunks(client, embedded, dataset, big_file)

    there = 10_000_000
    assert seen == [(there, there), (20_000_000, there), (25_000_000, there)]
    assert embedded.wait_verified()
    assert embedded.check_invariants({("Day 1", "", "big.bin"): tmp_path / "big.bin"}) == []


def test_a_dataset_of_others_is_not_an_empty_dataset(client, embedded):
    dataset = make_dataset(HttpServer(client))
    settings = Server(url=embedded.url, username="visitor")
    clock = FakeClock()
    stranger = ApiClient(settings, embedded.key_of("visitor"), clock, clock.cancel())

    with pytest.raises(RejectedError):
        list(HttpServer(stranger).list_datafiles(DatasetId(dataset.id)))

    stranger.close()


def test_a_missing_dataset_is_not_an_empty_dataset(client):
    with pytest.raises(RejectedError):
        list(HttpServer(client).list_datafiles(Dataset(DatasetId(999), "x").id))
