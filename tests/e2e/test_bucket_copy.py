"""The commands `copy` and `verify` with a bucket, on services of S3."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from contextlib import closing

import pytest

from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_upload import PART
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET
from tests.s3_service import SERVICES, open_service
from tests.site import NEW_GROUP, close_streams, finish, kill_group, wait_for

pytestmark = [pytest.mark.e2e]

PREFIX = "lab 1/raw"
BY_ETAG = "compared with the service's ETags now (read back where they are no checksums)"


class Copying:
    """A user with data, and a prefix of a bucket as the destination."""

    def __init__(self, folder, service, client):
        self.data = folder / "data"
        self.data.mkdir()
        self.client = client
        self._started = []
        kept = {name: value for name, value in os.environ.items() if "MYDATA_" not in name}
        self.environment = kept | {
            "HOME": str(folder / "home"),
            "MYDATA_LIKE_HOME": str(folder / "own files"),
            "AWS_ENDPOINT_URL": service.url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
            "COLUMNS": "110",
        }

    def start(self, *words):
        process = subprocess.Popen(
            [sys.executable, "-m", "mydata_like", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env=self.environment,
            creationflags=NEW_GROUP,
        )
        self._started.append(process)
        return process

    def start_copy(self, *words, to=f"s3://{BUCKET}/{PREFIX}"):
        return self.start("copy", str(self.data), to, *words)

    def copy(self, *words, **where):
        return finish(self.start_copy(*words, **where))

    def verify(self, *words):
        return finish(self.start("verify", f"s3://{BUCKET}/{PREFIX}", *words))

    def make(self, name, content):
        path = self.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def read(self, path):
        answer = self.client.get_object(Bucket=BUCKET, Key=f"{PREFIX}/{path}")
        with closing(answer["Body"]) as body:
            return body.read()

    def put(self, path, content):
        self.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{path}", Body=content)

    def list(self, below=""):
        """Return the paths of all objects."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=f"{PREFIX}/{below}"
        )
        keys = (it["Key"] for page in pages for it in page.get("Contents", ()))
        return [key.removeprefix(f"{PREFIX}/") for key in keys]

    def check(self):
        """Compare what is listed, here and there; return the number of files."""
        listed = {}
        for path in self.list(".mydata-like/manifest/"):
            if path.endswith(".md5"):
                for line in self.read(path).decode().splitlines():
                    assert line[34:] not in listed
                    listed[line[34:].removeprefix("./")] = line[:32]
        here = {
            f"data/{path.relative_to(self.data)}": hashlib.md5(path.read_bytes()).hexdigest()
            for path in self.data.rglob("*")
            if path.is_file() and not path.is_symlink()
        }
        assert listed == here
        assert {path: hashlib.md5(self.read(path)).hexdigest() for path in listed} == here
        return len(listed)

    def close(self):
        for process in self._started:
            if process.poll() is None:
                kill_group(process)
                close_streams(process)


@pytest.fixture(params=SERVICES)
def service(request, tmp_path):
    with open_service(request.param, tmp_path / "s3") as service:
        yield service


@pytest.fixture
def site(service, tmp_path):
    bucket = Bucket(name=BUCKET, endpoint=service.url, access_key=ACCOUNT)
    with closing(open_client(bucket, SECRET, S3Options())) as client:
        site = Copying(tmp_path, service, client)
        yield site
        site.close()


def test_a_copy_is_proven_and_the_next_one_sends_nothing(site):
    for name, size in (
        ("a", 0),
        ("sub/b c", 3_000),
        ("sub/zwölf 日本", 70_000),
        ("d", 2 * PART + 9),
    ):
        site.make(name, os.urandom(size))
    (site.data / "link").symlink_to("a")

    preview = site.copy("--dry-run")
    assert site.list() == []
    first, second = site.copy(), site.copy()

    assert (preview.code, first.code, second.code) == (0, 0, 0), first
    assert "symbolic links, empty folders or permissions" in first.output
    assert first.output.endswith(f"4 files: 4 {BY_ETAG}\n")
    assert second.output.endswith("4 files: 4 proven earlier and unchanged there\n")
    assert " sent in" not in second.output
    assert site.check() == 4
    assert len(site.list("data/")) == 4


def test_without_records_here_a_copy_sends_nothing(site):
    site.make("a", b"content")
    site.make("d", os.urandom(2 * PART))
    assert site.copy().code == 0
    site.environment["MYDATA_LIKE_HOME"] += " 2"

    ended = site.copy()

    assert (ended.code, " sent in" in ended.output) == (0, False), ended
    assert site.verify().code == 0


def test_a_copy_that_was_killed_goes_on(site):
    for number in range(30):
        site.make(f"{number}/file", os.urandom(300_000))
    site.make("large", os.urandom(2 * PART))
    process = site.start_copy("--bandwidth", "4", "--channels", "2", "--events")
    wait_for(process, "file_verified")
    kill_group(process)
    close_streams(process)
    before = len(site.list("data/"))

    ended = site.copy("--json")

    assert 0 < before < 31
    assert ended.code == 0, ended
    assert 0 < ended.sums["sent"] < 31
    assert site.check() == 31


def test_a_file_that_changed_after_a_kill_replaces_what_was_sent_before(site):
    for number in range(30):
        site.make(f"{number}", os.urandom(300_000))
    process = site.start_copy("--bandwidth", "4", "--channels", "2", "--events")
    wait_for(process, "file_staged")
    kill_group(process)
    close_streams(process)
    sent = site.list("data/")
    for path in sent:
        site.make(path.removeprefix("data/"), os.urandom(300_001))

    ended = site.copy()

    assert sent
    assert ended.code == 0, ended
    assert site.check() == 30


def test_an_object_of_others_is_not_replaced(site):
    site.make("same", b"same")
    site.make("taken", b"ours")
    site.put("data/same", b"same")
    site.put("data/taken", b"mine")

    ended = site.copy()

    assert ended.code == 1
    assert "which this program has not put there" in ended.output
    assert site.read("data/taken") == b"mine"
    assert "1 file failed\n2 files: 1 " in ended.output


def test_the_earlier_content_of_a_changed_file_is_kept(site):
    before = {"small": b"one", "large": os.urandom(2 * PART)}
    for name, content in before.items():
        site.make(name, content)
    assert site.copy().code == 0
    site.make("small", b"two!")
    site.make("large", os.urandom(2 * PART + 5))

    ended = site.copy()

    assert ended.code == 0, ended
    assert site.check() == 2
    for name, content in before.items():
        kept = f"data/.mydata-old-{hashlib.md5(content).hexdigest()}-{name}"
        assert site.read(kept) == content
    assert len(site.list("data/")) == 4
    assert site.verify().code == 0


def test_a_restore_test_downloads_objects_and_finds_what_is_wrong(site):
    for number in range(4):
        site.make(f"{number}.raw", b"%d" % number * 1000)
    assert site.copy().code == 0
    right = site.verify("--restore-test", "3")
    site.put("data/1.raw", b"x" * 1000)
    site.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/data/2.raw")

    ended = site.verify("--restore-test", "4")

    assert right.code == 0, right.output
    assert "Note: 3 objects are downloaded. The service may charge for this." in right.output
    assert "3 of 3 files came back as listed (fetched and hashed now: MD5), 3.0 kB" in right.output
    assert ended.code == 1
    assert "Changed: data/1.raw\n" in ended.output
    assert "Missing: data/2.raw\n" in ended.output


def test_verify_finds_objects_that_are_missing_or_were_swapped(site):
    for number in range(4):
        site.make(f"{number}", os.urandom(1000))
    assert site.copy().code == 0
    assert site.verify().code == site.verify("--read").code == 0
    site.put("data/1", os.urandom(1000))
    site.put("data/other", b"x")
    site.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/data/2")

    for words in ((), ("--read",)):
        ended = site.verify(*words)

        assert ended.code == 1
        assert "Missing: data/2\n" in ended.output
        assert "Changed: data/1 " in ended.output
        assert "Not listed: data/other" in ended.output
        assert "2 of 4 files are as listed" in ended.output


only_in_memory = pytest.mark.parametrize("service", ["memory"], indirect=True)


@only_in_memory
@pytest.mark.parametrize(
    ("changes", "to", "message"),
    [
        ({"AWS_ACCESS_KEY_ID": "other"}, BUCKET, "does not accept the access key other: "),
        ({}, "not-there", "has no bucket not-there."),
        ({}, "b/c", "has no bucket b."),
        ({"AWS_ACCESS_KEY_ID": ""}, BUCKET, "There are no credentials for object storage."),
        ({"AWS_ENDPOINT_URL": "http://192.0.2.1"}, BUCKET, "must begin with https://."),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, BUCKET, "127.0.0.1:1 cannot be reached: "),
    ],
)
def test_what_prevents_a_copy_is_said_in_a_sentence(site, changes, to, message):
    site.make("a", b"content")
    site.environment |= changes

    ended = site.copy(to=f"s3://{to}")

    assert ended.code in (2, 3, 4)
    assert message in ended.complaints
    assert "transfer.s3" not in ended.complaints


@only_in_memory
def test_where_etags_are_no_checksums_all_is_read_back(site, service):
    def encrypt(request):
        if request.kind == "UploadPart":
            return None
        request.headers.pop("if-match", None)
        answer = service.answer(request)
        others = [(name, value) for name, value in answer.headers if name != "ETag"]
        encrypted = ("ETag", '"' + "0" * 32 + '"'), ("x-amz-server-side-encryption", "aws:kms")
        return answer._replace(headers=(*others, *encrypted))

    service.interfere = encrypt
    site.make("a", b"content")
    site.make("large", os.urandom(2 * PART))

    ended, verified = site.copy(), site.verify()

    assert "each object is read back, so each byte travels twice" in ended.output
    how = "read back (possibly from memory) and compared now (MD5)"
    assert ended.output.endswith(f"2 files: 2 {how}\n")
    assert (ended.code, verified.code) == (0, 0), (ended, verified)
    assert site.check() == 2


@only_in_memory
def test_older_counts_only_what_was_read(site):
    site.make("a", b"content")
    assert site.copy().code == 0
    segment = next(it for it in site.list(".mydata-like/manifest/") if it.endswith(".jsonl"))
    head, line = site.read(segment).splitlines()
    site.put(segment, json.dumps(json.loads(head) | {"at": 1_700_000_000}).encode() + b"\n" + line)

    results = [site.verify("--older", "30d", *it).output for it in ((), ("--read",), ())]

    assert ["1 of 1 file is as listed" in it for it in results] == [True, True, False]
    assert "1 file checked by ETags that were due: all as listed" in results[1]


@only_in_memory
@pytest.mark.skipif(os.name == "nt", reason="names of bytes")
def test_a_name_that_is_not_valid_utf_8_fails_alone(site):
    site.make("a", b"content")
    site.make(os.fsdecode(b"caf\xe9"), b"content")

    ended = site.copy()

    assert ended.code == 1
    assert "The destination cannot store the name data/caf\\xe9." in ended.output
    assert ended.output.endswith(f"2 files: 1 {BY_ETAG}\n")


def test_runs_of_the_settings_send_to_a_bucket_and_free_what_it_has(site):
    for name in ("run 1/a", "run 1/b", "loose"):
        site.make(name, os.urandom(3000))
        os.utime(site.data / name, (1_700_000_000, 1_700_000_000))
    own = site.data.parent / "own files"
    own.mkdir(exist_ok=True)
    (own / "settings.toml").write_text(
        f'destination.kind = "s3"\ndestination.address = "s3://{BUCKET}/{PREFIX}"\n'
        f"data.directory = {json.dumps(str(site.data))}\n"
    )
    first, second = (finish(site.start("run", "--json")) for _ in range(2))
    here = {name: (site.data / name).read_bytes() for name in ("run 1/a", "run 1/b", "loose")}
    site.put("run 1/b", b"x" * 3000)
    freed = finish(site.start("free", "--yes", "--json", str(site.data / "run 1")))

    assert (first.code, first.sums["verified"], first.sums["sent"]) == (0, 3, 3)
    assert (second.code, second.sums["verified"], second.sums["sent"]) == (0, 3, 0)
    assert {name: site.read(name) for name in ("run 1/a", "loose")} == {
        name: here[name] for name in ("run 1/a", "loose")
    }
    assert (freed.sums["freed"], freed.sums["kept"]) == (1, 1)
    assert not (site.data / "run 1" / "a").exists()
    assert (site.data / "run 1" / "b").exists()


def test_what_is_in_a_bucket_comes_back_with_its_times(site, tmp_path):
    for name, size in (("a", 0), ("sub/b c", 3_000), ("sub/zwölf 日本", 70_000), ("d", 2 * PART)):
        site.make(name, os.urandom(size))
        os.utime(site.data / name, ns=(0, 1_600_000_000_123_456_700 + size))
    assert site.copy().code == 0
    site.put("data/other", b"not proven")
    here, what = tmp_path / "here", f"s3://{BUCKET}/{PREFIX}/data"

    ended = finish(site.start("get", what, str(here), "--json"))
    again = finish(site.start("get", f"{what}/sub/", str(here / "data" / "sub"), "--json"))

    found = json.loads(ended.output)
    seen = {it: (here / "data" / it).stat() for it in ("a", "sub/b c", "sub/zwölf 日本", "d")}
    assert (ended.code, found["found"], found["fetched"]) == (0, 4, 4), ended
    assert found["unlisted_files"] == ["data/other"]
    assert {it: seen[it].st_mtime_ns for it in seen} == {
        it: (site.data / it).stat().st_mtime_ns for it in seen
    }
    assert all((here / "data" / it).read_bytes() == (site.data / it).read_bytes() for it in seen)
    assert (again.code, json.loads(again.output)["here"]) == (0, 2)


def test_other_bytes_in_a_bucket_get_no_name_and_a_part_is_continued(site, tmp_path):
    content = os.urandom(2 * PART + 5)
    site.make("large", content)
    site.make("changed", b"as copied")
    assert site.copy().code == 0
    site.put("data/changed", b"tampered!")
    here, what = tmp_path / "here", f"s3://{BUCKET}/{PREFIX}/data/"
    here.mkdir()
    part = here / f".mydata-get-{hashlib.sha256(b'large').hexdigest()[:16]}"
    part.write_bytes(content[: PART + 7])

    ended = finish(site.start("get", what, str(here), "--json"))

    found = json.loads(ended.output)
    assert (ended.code, found["fetched"]) == (1, 1)
    assert [(it["path"], it["code"]) for it in found["problems"]] == [
        ("data/changed", "destination.differs")
    ]
    assert {it.name: it.read_bytes() for it in here.iterdir()} == {"large": content}


def test_a_hostile_manifest_in_a_bucket_writes_nothing_elsewhere(site, tmp_path):
    site.make("file", b"content")
    assert site.copy().code == 0
    (segment,) = [it for it in site.list(".mydata-like/manifest/") if it.endswith(".jsonl")]
    head, line = site.read(segment).decode().splitlines()
    hostile = ("../escaped", "/tmp/escaped", "data/../../escaped", "a//b", ".mydata-like/x")
    names = [base64.b64encode(it.encode()).decode() for it in hostile]
    lines = [json.dumps([name, *json.loads(line)[1:]]) for name in names]
    head = json.dumps(json.loads(head) | {"files": 1 + len(lines)})
    site.put(segment, "\n".join([head, line, *lines, ""]).encode())
    here = tmp_path / "top" / "here"

    ended = finish(site.start("get", f"s3://{BUCKET}/{PREFIX}/", str(here), "--json"))

    found = json.loads(ended.output)
    assert (ended.code, found["fetched"], found["failed"]) == (1, 1, len(hostile))
    assert {it["code"] for it in found["problems"]} == {"destination.manifest"}
    here_now = [it for it in (tmp_path / "top").rglob("*") if it.is_file()]
    assert here_now == [here / "data" / "file"]
