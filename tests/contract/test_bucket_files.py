"""The objects of a bucket as a destination: listed, proven, sent and never replaced."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import SettingsError, StagingError
from mydata_like.core.ports import SentFile
from mydata_like.transfer.s3.bucket_files import BucketFiles, probe_bucket
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import NewObjects, S3Transport, find_object
from mydata_like.transfer.s3.s3_upload import PART
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, Answer, ObjectServer, refusal, tag
from tests.fakes.place import checksum
from tests.s3_service import SERVICES, open_service
from tests.staging import single

ODD = [
    *("a b", "new\nline", "back\\slash", "-rf", "it's", 'say "x"', "*", "zwölf 日本", "x" * 250),
    *("$(id)", "tab\t", " before", "after ", "%s%n", "%20", "a+b", "!x", "~", ".hidden", "#", "?"),
    *("...", ";", "&", "[a]", "{a,b}", "<x>", "e\u0301"),
]


@pytest.fixture(scope="module", params=SERVICES)
def service(request, tmp_path_factory):
    with open_service(request.param, tmp_path_factory.mktemp("s3")) as service:
        yield service


@pytest.fixture
def memory():
    """Return a service that gives the answers of the test."""
    with ObjectServer() as server:
        yield server


class There:
    """A prefix of a bucket, its files and the transport to it."""

    def __init__(self, client, bucket, conditional=True):
        self.client = client
        self.bucket = bucket
        new = NewObjects({}, conditional)
        self.files = BucketFiles(client, bucket, new)
        self.transport = S3Transport(client, bucket, channels=4, new=new)

    def put(self, path, content=b"content"):
        self.client.put_object(Bucket=BUCKET, Key=self.bucket.key(path), Body=content)
        return path.encode()

    def send(self, member):
        return self.transport.open_channel().send(single(member), lambda *_: None)[0]

    def content(self, path):
        answer = self.client.get_object(Bucket=BUCKET, Key=self.bucket.key(path))
        with closing(answer["Body"]) as body:
            return body.read()

    def make_in_parts(self, path, *parts):
        """Make an object as other programs do, of which nothing is known here."""
        where = {"Bucket": BUCKET, "Key": self.bucket.key(path)}
        upload = {**where, "UploadId": self.client.create_multipart_upload(**where)["UploadId"]}
        sent = [
            {
                "PartNumber": n,
                "ETag": self.client.upload_part(**upload, PartNumber=n, Body=part)["ETag"],
            }
            for n, part in enumerate(parts, 1)
        ]
        self.client.complete_multipart_upload(**upload, MultipartUpload={"Parts": sent})
        return path.encode()


def open_there(url, prefix, **options):
    bucket = Bucket(name=BUCKET, endpoint=url, prefix=prefix, access_key=ACCOUNT)
    return There(open_client(bucket, SECRET, S3Options(connections=64)), bucket, **options)


@pytest.fixture
def there(request, service):
    there = open_there(service.url, f"raw/{request.node.originalname}")
    with closing(there.client):
        yield there


def find_marks(files):
    return {file.path: file.mark for file in files}


def test_objects_with_odd_names_are_listed_looked_at_and_proven_alike(there):
    paths = [there.put(f"odd {name}/{name}", name.encode()) for name in ODD]
    there.put("folder of a console/", b"")
    there.put(".mydata-like/own")

    listed = sorted(there.files.list_files(b""))
    proven = there.files.prove(paths)

    assert [it.checksum for it in proven] == [hashlib.md5(it.encode()).hexdigest() for it in ODD]
    assert sorted(it.file for it in proven) == listed == sorted(there.files.look(paths))
    assert list(there.files.list_files(b"odd a b")) == there.files.look([paths[0]])


def test_more_objects_than_one_answer_lists_are_listed(there):
    names = [b"%04d" % number for number in range(1002)]
    with ThreadPoolExecutor(32) as threads:
        list(threads.map(lambda it: there.files.write(b".mydata-like/many/" + it, b""), names))

    assert there.files.list_own(b".mydata-like/many") == names


def test_what_is_no_object_is_not_proven(there):
    there.put("folder/file")
    paths = [b"missing", b"folder", b"\xff", b"folder/\xff"]

    assert there.files.prove(paths) == there.files.look(paths) == [None] * 4
    assert list(there.files.list_files(b"\xff")) == []


def test_an_object_of_parts_that_others_made_is_read(there):
    parts = [b"x" * PART, b"y"]
    path = there.make_in_parts("parts", *parts)

    (proven,) = there.files.prove([path])

    assert proven.checksum == hashlib.md5(b"".join(parts)).hexdigest()
    assert proven.file.tag.endswith("-2")


def test_an_object_that_was_replaced_within_a_second_has_another_mark(there):
    path = there.put("a", b"one")
    before = find_marks(there.files.look([path]))
    there.put("a", b"two")

    assert find_marks(there.files.look([path])) != before


def test_own_objects_are_written_read_and_removed(there):
    path = b".mydata-like/m/a"

    assert there.files.read(path) is None
    assert there.files.write(path, b"one")
    assert not there.files.write(path, b"two")
    assert there.files.read(path) == b"one"
    assert there.files.write(path, b"two", replace=True)
    assert there.files.read(path) == b"two"
    there.files.remove([path, b".mydata-like/missing"])
    assert there.files.list_own(b".mydata-like") == []
    with pytest.raises(ValueError, match="not below"):
        there.files.remove([b"data/a"])


def test_what_the_service_can_do_is_tried_without_a_trace(there):
    assert probe_bucket(there.client, there.bucket) == (True, True)
    assert there.files.list_own(b".mydata-like") == []


@pytest.mark.parametrize("size", [1000, 2 * PART])
def test_a_key_that_is_taken_stays_as_it_is(place, there, size):
    member = place.write(f"data/{size}", size)
    place.settle(member)
    there.put(f"data/{size}", b"mine")

    fate = there.send(member)

    assert (fate.problem.code, fate.again) == ("destination.occupied", False)
    assert there.content(f"data/{size}") == b"mine"


@pytest.mark.parametrize("size", [0, 1000, 2 * PART + 5])
def test_what_was_sent_is_proven_and_has_its_time(place, there, size):
    member = place.write(f"data/{size}", size)
    place.settle(member)

    assert there.send(member) == SentFile(0, checksum(member))

    (proven,) = there.files.prove([member.remote])
    assert (proven.checksum, proven.file.size) == (checksum(member), size)
    found = find_object(there.client, there.bucket, there.bucket.key(f"data/{size}"))
    assert found["Metadata"]["mtime"] == "1600000000.000000000"


def test_an_object_that_was_sent_is_own_and_copies_of_it_are_not(place, there):
    member = place.write("data/a", 1000)
    place.settle(member)
    there.send(member)
    there.put("data/other")
    there.transport.copy(there.bucket.key("data/a"), there.bucket.key("data/copy"))

    own = there.files.find_own([b"data/a", b"data/other", b"data/copy", b"data/none", b"\xff"])

    assert own == [True, False, False, False, False]


def test_a_copy_by_the_service_has_the_same_tag_and_metadata(place, there):
    member = place.write("data/a", 2 * PART + 5)
    place.settle(member)
    there.send(member)
    there.transport.copy(there.bucket.key("data/a"), there.bucket.key("data/copy"))

    one, two = (
        find_object(there.client, there.bucket, there.bucket.key(f"data/{name}"))
        for name in ("a", "copy")
    )

    assert (one["ETag"], one["Metadata"]) == (two["ETag"], two["Metadata"])


def test_a_name_that_is_not_valid_utf_8_is_refused(place, there):
    member = place.write("data/a", 10)
    place.settle(member)

    assert there.send(member._replace(remote=b"data/\xff")).problem.code == "destination.name"


def test_what_the_manifest_lists_of_an_object_of_parts_saves_reading_it(memory):
    there = open_there(memory.url, "")
    path = there.make_in_parts("parts", b"x" * PART, b"y")
    proven = there.files.prove([path])
    assert "GetObject" in memory.kinds()
    memory.requests.clear()
    other = open_there(memory.url, "")

    other.files.recall(proven, "service")

    assert other.files.prove([path]) == proven
    assert memory.kinds() == ["HeadObject"]


def test_a_tag_of_which_the_manifest_knows_that_it_is_no_checksum_is_not_believed(memory):
    there = open_there(memory.url, "")
    path = there.put("a", b"content")
    memory.tags["a"] = tag(b"something else")
    (wrong,) = there.files.prove([path])
    right = wrong._replace(checksum=hashlib.md5(b"content").hexdigest())
    assert wrong != right

    there.files.recall([right], "read-back-cached")

    assert there.files.prove([path]) == [right]


def use_kms(request):
    if request.kind == "PutObject":
        headers = ("ETag", '"' + "0" * 32 + '"'), ("x-amz-server-side-encryption", "aws:kms")
        return Answer(headers=headers)
    return None


def ignore_conditions(request):
    request.headers.pop("if-none-match", None)


def know_no_conditions(request):
    return refusal("NotImplemented", 501) if "if-none-match" in request.headers else None


@pytest.mark.parametrize(
    ("interfere", "found"),
    [
        (use_kms, (False, False)),
        (ignore_conditions, (False, True)),
        (know_no_conditions, (False, True)),
    ],
)
def test_what_a_service_cannot_do_is_noticed(memory, interfere, found):
    there = open_there(memory.url, "")
    memory.interfere = interfere

    assert probe_bucket(there.client, there.bucket) == found
    assert memory.kinds()[-1] == "DeleteObject"


def test_a_service_that_refuses_the_probe_is_named(memory):
    there = open_there(memory.url, "")
    memory.interfere = lambda _: refusal("AccessDenied", 403)

    with pytest.raises(StagingError) as raised:
        probe_bucket(there.client, there.bucket)
    assert raised.value.problem_code == "s3.denied"


def test_an_encrypted_object_is_read(memory):
    there = open_there(memory.url, "")
    path = there.put("a", b"content")
    encrypted = ("ETag", '"' + "0" * 32 + '"'), ("x-amz-server-side-encryption", "aws:kms")
    memory.interfere = lambda request: Answer(
        body=b"content", headers=(*encrypted, ("Last-Modified", "Sun, 01 Nov 2026 00:00:00 GMT"))
    )

    assert there.files.prove([path])[0].checksum == hashlib.md5(b"content").hexdigest()


def test_without_conditions_a_key_is_looked_up_before(place, memory):
    there = open_there(memory.url, "", conditional=False)
    memory.interfere = know_no_conditions
    taken, free = place.write("data/taken", 10), place.write("data/free", 10)
    place.settle(taken, free)
    there.put("data/taken", b"mine")

    assert there.send(taken).problem.code == "destination.occupied"
    assert there.send(free) == SentFile(0, checksum(free))
    assert there.files.write(b".mydata-like/a", b"one")
    assert not there.files.write(b".mydata-like/a", b"two")


@pytest.mark.parametrize("size", [1000, 2 * PART])
def test_an_object_whose_answer_was_lost_counts_as_sent(place, memory, size):
    there = open_there(memory.url, "")
    member = place.write("data/a", size)
    place.settle(member)
    lost = []

    def lose(request):
        if request.kind in ("PutObject", "CompleteMultipartUpload") and not lost:
            lost.append(memory.answer(request))
            return refusal("InternalError", 500)
        return None

    memory.interfere = lose

    assert there.send(member) == SentFile(0, checksum(member))
    assert lost


@pytest.mark.parametrize("size", [1000, 2 * PART])
def test_an_object_that_the_service_has_damaged_is_removed(place, memory, size):
    there = open_there(memory.url, "")
    member = place.write("data/a", size)
    place.settle(member)

    def damage(request):
        if request.kind not in ("PutObject", "CompleteMultipartUpload"):
            return None
        answer = memory.answer(request)
        wrong = tag(b"other").strip('"') + ("-2" if size > PART else "")
        text = (
            f"<CompleteMultipartUploadResult><ETag>{wrong}</ETag></CompleteMultipartUploadResult>"
        )
        return answer._replace(body=text.encode(), headers=(("ETag", f'"{wrong}"'),))

    memory.interfere = damage

    assert there.send(member).problem.code == "s3.damaged"
    assert memory.objects == {}


def test_objects_have_no_other_checksums_than_md5(memory):
    there = open_there(memory.url, "a")

    there.files.use(Algorithm.MD5)
    with pytest.raises(SettingsError, match="their ETags are MD5s") as raised:
        there.files.use(Algorithm.SHA256)

    assert raised.value.problem_code == "destination.checksum"
