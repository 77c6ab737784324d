"""What an object storage may answer, or fail to: each has its own code, and nothing is claimed."""

import os
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mydata_like.core.errors import (
    AccessDeniedError,
    FileChangedError,
    ItemError,
    RejectedError,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.ports import SentFile
from mydata_like.transfer.s3.s3_client import ATTEMPTS, Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import S3Transport
from mydata_like.transfer.s3.s3_upload import LARGEST, PART
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, Answer, ObjectServer, refusal
from tests.fakes.place import checksum
from tests.faults.tcpproxy import TcpProxy
from tests.s3_service import REAL, open_service
from tests.staging import single

QUICK = S3Options(connect_timeout=2, stall_timeout=2)
RETRIED = ("InternalError", 500), ("SlowDown", 503)


@pytest.fixture(scope="module")
def memory():
    with ObjectServer() as server:
        yield server


@pytest.fixture
def server(memory):
    memory.requests.clear()
    memory.objects.clear()
    memory.interfere = lambda _: None
    return memory


def send(member, url, *, secret=SECRET, account=ACCOUNT, name=BUCKET, delays=()):
    """Send a file to the bucket; return its result."""
    bucket = Bucket(name=name, endpoint=url, prefix="pre", access_key=account)
    with closing(open_client(bucket, secret, QUICK)) as client:
        transport = S3Transport(client, bucket, channels=1)
        transport.delays = delays
        channel = transport.open_channel()
        (fate,) = channel.send(single(member), lambda *_: None)
        return fate


def told(member, url: str, **options) -> tuple[type, str]:
    """Return the kind and code of what went wrong."""
    try:
        fate = send(member, url, **options)
    except UploaderError as error:
        return type(error), error.problem_code
    assert not isinstance(fate, SentFile)
    return (TransientError if fate.again else RejectedError), fate.problem.code


@pytest.fixture
def member(place):
    member = place.write("set-1/file", 1000)
    place.settle(member)
    return member


@pytest.fixture
def large(place):
    member = place.write("set-1/large", 3 * PART)
    place.settle(member)
    return member


ANSWERS = [
    ("InvalidAccessKeyId", 403, (AccessDeniedError, "s3.key")),
    ("SignatureDoesNotMatch", 403, (AccessDeniedError, "s3.key")),
    ("RequestTimeTooSkewed", 403, (StagingError, "s3.clock")),
    ("AccessDenied", 403, (StagingError, "s3.denied")),
    ("Whatever", 403, (StagingError, "s3.denied")),
    ("NoSuchBucket", 404, (StagingError, "s3.no-bucket")),
    ("SlowDown", 503, (ServerUnavailableError, "s3.busy")),
    ("TooManyRequests", 429, (ServerUnavailableError, "s3.busy")),
    ("QuotaExceeded", 403, (TransientError, "staging.full")),
    ("XMinioStorageFull", 507, (TransientError, "staging.full")),
    ("Whatever", 507, (TransientError, "staging.full")),
    ("InternalError", 500, (TransientError, "s3.failed")),
    ("BadDigest", 400, (TransientError, "s3.damaged")),
    ("PermanentRedirect", 301, (StagingError, "s3.elsewhere")),
    ("Whatever", 307, (StagingError, "s3.elsewhere")),
    ("AuthorizationHeaderMalformed", 400, (StagingError, "s3.elsewhere")),
    ("KeyTooLongError", 400, (RejectedError, "staging.name")),
    ("Whatever", 400, (RejectedError, "s3.refused")),
]


@pytest.mark.parametrize(("code", "status", "expected"), ANSWERS)
def test_each_refusal_has_its_code(server, member, code, status, expected):
    server.interfere = lambda _: refusal(code, status)

    assert told(member, server.url) == expected


def test_a_long_text_of_the_service_is_shortened(server, member):
    server.interfere = lambda _: refusal("AccessDenied", 403, "No entry. " * 100)

    with pytest.raises(StagingError, match=r"AccessDenied: (No entry. )+.* \[\.\.\.\]\.$"):
        send(member, server.url)


@pytest.mark.parametrize("kind", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])
def test_a_large_file_that_is_refused_leaves_no_parts(server, large, kind):
    server.interfere = lambda it: refusal("QuotaExceeded", 403) if it.kind == kind else None

    assert told(large, server.url) == (TransientError, "staging.full")
    assert server.uploads == {}
    assert "pre/set-1/large" not in server.objects


@pytest.mark.parametrize(("code", "status"), RETRIED)
def test_a_part_that_fails_once_is_sent_again(server, large, code, status):
    failed = []

    def interfere(request):
        if request.kind == "UploadPart" and request.query["partNumber"] == "2" and not failed:
            failed.append(request)
            return refusal(code, status)
        return None

    server.interfere = interfere

    assert send(large, server.url) == SentFile(0, checksum(large))
    assert server.objects["pre/set-1/large"] == Path(os.fsdecode(large.path)).read_bytes()
    assert failed


@pytest.mark.parametrize("answer", [refusal("BadDigest"), refusal("SlowDown", 503)])
def test_a_part_that_fails_for_longer_does_not_begin_the_file_anew(server, large, answer):
    failed = []

    def interfere(request):
        if request.query.get("partNumber") == "2" and len(failed) < ATTEMPTS:
            failed.append(request)
            return answer
        return None

    server.interfere = interfere

    assert send(large, server.url, delays=[0.01] * ATTEMPTS) == SentFile(0, checksum(large))
    assert server.kinds().count("CreateMultipartUpload") == 1
    assert len(failed) == ATTEMPTS


def test_parts_that_are_damaged_on_the_way_are_refused(server, large):
    def damage(request):
        if request.kind != "UploadPart":
            return None
        return server.answer(request._replace(body=b"?" + request.body[1:]))

    server.interfere = damage

    assert told(large, server.url) == (TransientError, "s3.damaged")
    assert "pre/set-1/large" not in server.objects


@pytest.mark.parametrize("name", ["member", "large"])
def test_another_tag_in_the_answer_is_no_success(server, request, name):
    def lie(it):
        if it.kind in ("PutObject", "UploadPart"):
            return Answer(headers=(("ETag", f'"{"0" * 32}"'),))
        return None

    server.interfere = lie

    assert told(request.getfixturevalue(name), server.url) == (TransientError, "s3.damaged")


@pytest.mark.parametrize("name", ["member", "large"])
def test_tags_of_encrypted_objects_are_not_compared(server, request, name):
    secret = (("ETag", f'"{"a" * 32}"'), ("x-amz-server-side-encryption", "aws:kms"))
    whole = b"<R><ETag>&quot;whatever&quot;</ETag></R>"

    def encrypt(it):
        if it.kind in ("PutObject", "UploadPart"):
            return Answer(headers=secret)
        return Answer(body=whole, headers=secret[1:]) if it.kind.startswith("Complete") else None

    server.interfere = encrypt
    member = request.getfixturevalue(name)

    assert send(member, server.url) == SentFile(0, checksum(member))


@pytest.mark.parametrize("there", [True, False])
def test_after_a_lost_answer_the_object_is_looked_for(server, large, there):
    def lose(request):
        if request.kind != "CompleteMultipartUpload":
            return None
        if there:
            server.answer(request)
        return refusal("InternalError", 500)

    server.interfere = lose

    if there:
        assert send(large, server.url) == SentFile(0, checksum(large))
    else:
        assert told(large, server.url) == (TransientError, "s3.failed")
    assert ("pre/set-1/large" in server.objects) == there


STRANGE = [
    (b"<html>welcome</html>", (StagingError, "s3.strange-answer")),
    (b"\0\xff" * 1000, (TransientError, "s3.failed")),  # as if the answer was cut off
    (b"", (StagingError, "s3.strange-answer")),
    (b"<InitiateMultipartUploadResult/>", (StagingError, "s3.strange-answer")),
]


@pytest.mark.parametrize(("body", "expected"), STRANGE)
def test_what_is_no_answer_of_an_object_storage_is_no_success(server, large, body, expected):
    server.interfere = lambda _: Answer(200, body)

    assert told(large, server.url) == expected


@pytest.mark.parametrize("status", [400, 403, 404, 500, 503])
@pytest.mark.parametrize("body", [b"", b"<html>proxy</html>", b"<Error><Code>", b"\xff\0"])
def test_refusals_without_sense_are_errors_too(server, member, status, body):
    server.interfere = lambda _: Answer(status, body)

    assert told(member, server.url)[1].startswith("s3.")


def test_texts_of_the_service_are_plain_and_short(server, member):
    hostile = "\x1b[31m\u202e\r\n<script>" + "x" * 10_000
    text = hostile.replace("\x1b", "&#x9b;").replace("<", "&lt;")
    body = f"<Error><Code>AccessDenied</Code><Message>{text}</Message></Error>"
    server.interfere = lambda _: Answer(403, body.encode())

    with pytest.raises(StagingError) as caught:
        send(member, server.url)

    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(server, member, status):
    with ObjectServer() as other:
        there = (("Location", f"{other.url}/{BUCKET}/pre/set-1/file"), ("x-amz-bucket-region", "x"))
        server.interfere = lambda _: Answer(status, b"", there)

        assert told(member, server.url) == (StagingError, "s3.elsewhere")
        assert other.requests == []


def test_an_address_without_a_service_is_waited_for(member):
    with TcpProxy(9) as proxy:
        port = proxy.port

    with pytest.raises(ServerUnavailableError) as raised:
        send(member, f"http://127.0.0.1:{port}")

    assert raised.value.problem_code == "s3.unreachable"
    assert raised.value.message == f"127.0.0.1:{port} cannot be reached: Connection refused."


def test_a_silent_service_is_noticed(server, member):
    with TcpProxy(server.port) as proxy:
        proxy.stall.set()

        assert told(member, f"http://127.0.0.1:{proxy.port}") == (TransientError, "s3.lost")


def test_a_service_without_encryption_is_no_service_with_it(server, member):
    url = server.url.replace("http:", "https:")

    assert told(member, url) == (StagingError, "s3.certificate")


def test_an_impossible_name_of_a_bucket_is_refused_here(server, member):
    assert told(member, server.url, name="no such/bucket")[1] == "s3.no-bucket"
    assert server.requests == []


def test_a_file_above_the_limit_of_objects_is_refused_alone(server, place):
    path = place.source / "endless"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    member = place.member(path, "set-1/endless")
    place.settle(member)
    member = place.member(path, "set-1/endless")

    assert told(member, server.url) == (RejectedError, "s3.too-large")
    assert server.requests == []


def test_a_file_that_vanished_fails_alone(server, member):
    Path(os.fsdecode(member.path)).unlink()

    fate = send(member, server.url)

    assert (fate.problem.code, fate.again) == ("file.vanished", False)
    assert issubclass(FileChangedError, ItemError)
    assert server.requests == []


@pytest.fixture(scope="module", params=REAL)
def service(request, tmp_path_factory):
    with open_service(request.param, tmp_path_factory.mktemp("s3")) as service:
        yield service


def test_a_real_service_refuses_a_wrong_secret_and_a_wrong_account(service, member):
    assert told(member, service.url, secret="wrong") == (AccessDeniedError, "s3.key")
    assert told(member, service.url, account="NOBODY") == (AccessDeniedError, "s3.key")


def test_a_real_service_has_no_other_bucket(service, member):
    assert told(member, service.url, name="no-such-bucket") == (StagingError, "s3.no-bucket")


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_real_service_refuses_a_wrong_clock(service, member, monkeypatch, hours):
    moment = datetime.now(UTC) + timedelta(hours=hours)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: moment)

    assert told(member, service.url) == (StagingError, "s3.clock")
