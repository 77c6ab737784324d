"""An S3 service in memory, and answers on request; proven by `contract/test_object_storage`."""

import base64
import hashlib
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from threading import Lock, Thread
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ACCOUNT, SECRET = "AKIATESTER", "a+secret/of=tests"
BUCKET = "raw-data"


class Answer(NamedTuple):
    """An answer to one request."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


def refusal(code: str, status: int = 400, message: str = "no", **headers: str) -> Answer:
    """Return an error in the form of S3."""
    text = f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message></Error>"
    return Answer(status, text.encode(), tuple(headers.items()))


Headers = tuple[tuple[str, str], ...]


class Upload(NamedTuple):
    key: str
    begun: datetime
    parts: dict[int, bytes]
    metadata: Headers


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def key(self) -> str:
        return self.path.lstrip("/").partition("/")[2]

    @property
    def kind(self) -> str:
        """The operation, as S3 names it."""
        if "partNumber" in self.query:
            return "UploadPartCopy" if "x-amz-copy-source" in self.headers else "UploadPart"
        if "uploads" in self.query:
            return "CreateMultipartUpload" if self.method == "POST" else "ListMultipartUploads"
        if "uploadId" in self.query:
            return {"POST": "CompleteMultipartUpload"}.get(self.method, "AbortMultipartUpload")
        if "list-type" in self.query:
            return "ListObjectsV2"
        if self.method == "PUT":
            return "CopyObject" if "x-amz-copy-source" in self.headers else "PutObject"
        return {"GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}[self.method]


class ObjectServer(ThreadingHTTPServer):
    """A context manager; `interfere` may answer a request in place of the service."""

    daemon_threads = False

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.objects: dict[str, bytes] = {}
        self.tags: dict[str, str] = {}
        self.times: dict[str, datetime] = {}
        self.metadata: dict[str, Headers] = {}
        self.uploads: dict[str, Upload] = {}
        self.requests: list[Request] = []
        self.interfere: Callable[[Request], Answer | None] = lambda _: None
        self.lock = Lock()
        self._open: set[socket] = set()
        self._thread = Thread(target=self.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        return self.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kinds(self) -> list[str]:
        return [request.kind for request in self.requests]

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        for connection in list(self._open):
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)
        self.server_close()

    def process_request(self, request, client_address):
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, *_):
        """Lost connections are part of the tests."""

    def answer(self, request: Request) -> Answer:
        with self.lock:
            self.requests.append(request)
        if f"Credential={ACCOUNT}/" not in request.headers.get("authorization", ""):
            return refusal("InvalidAccessKeyId", 403)
        if request.path.lstrip("/").partition("/")[0] != BUCKET:
            return refusal("NoSuchBucket", 404)
        told = request.headers.get("content-md5")
        if told and base64.b64decode(told) != hashlib.md5(request.body).digest():
            return refusal("BadDigest")
        with self.lock:
            return _OPERATIONS[request.kind](self, request)


def tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


def _xml(name: str, *fields: str) -> Answer:
    return Answer(body=f"<{name}>{''.join(fields)}</{name}>".encode())


def _keep(server, key, data, told, metadata):
    server.objects[key], server.tags[key], server.metadata[key] = data, told, metadata
    server.times[key] = datetime.now(UTC)


def _find_metadata(request):
    return tuple(it for it in request.headers.items() if it[0].startswith("x-amz-meta-"))


def _is_refused(server, request):
    return request.headers.get("if-none-match") == "*" and request.key in server.objects


def _put(server, request):
    if _is_refused(server, request):
        return refusal("PreconditionFailed", 412)
    _keep(server, request.key, request.body, tag(request.body), _find_metadata(request))
    return Answer(headers=(("ETag", tag(request.body)),))


def _head(server, request):
    data, key = server.objects.get(request.key), request.key
    if data is None:
        return refusal("NoSuchKey", 404)
    if request.headers.get("if-match", server.tags[key]) != server.tags[key]:
        return refusal("PreconditionFailed", 412)
    headers = [
        ("ETag", server.tags[key]),
        ("Last-Modified", format_datetime(server.times[key], True)),
    ]
    return Answer(body=data, headers=(*headers, *server.metadata[key]))


def _get(server, request):
    answer = _head(server, request)
    wanted = re.match(r"bytes=(\d+)-", request.headers.get("range", ""))
    if answer.status != 200 or not wanted:
        return answer
    return answer._replace(status=206, body=answer.body[int(wanted[1]) :])


def _list_objects(server, request):
    prefix, first = request.query.get("prefix", ""), request.query.get("continuation-token", "")
    keys = sorted(key for key in server.objects if key.startswith(prefix) and key >= first)
    most = min(int(request.query.get("max-keys", 1000)), 1000)
    rows = (
        f"<Contents><Key>{quote(key)}</Key><Size>{len(server.objects[key])}</Size>"
        f"<ETag>{escape(server.tags[key])}</ETag>"
        f"<LastModified>{server.times[key]:%Y-%m-%dT%H:%M:%S.%fZ}</LastModified></Contents>"
        for key in keys[:most]
    )
    more = "".join(
        f"<NextContinuationToken>{escape(key)}</NextContinuationToken>"
        for key in keys[most : most + 1]
    )
    cut = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}"
    return _xml("ListBucketResult", "<EncodingType>url</EncodingType>", cut, *rows)


def _delete(server, request):
    server.objects.pop(request.key, None)
    return Answer(204)


def _origin(server, request):
    name = unquote(request.headers["x-amz-copy-source"]).lstrip("/").partition("/")[2]
    return server.objects.get(name)


def _copy(server, request):
    data = _origin(server, request)
    if data is None:
        return refusal("NoSuchKey", 404)
    origin = unquote(request.headers["x-amz-copy-source"]).lstrip("/").partition("/")[2]
    _keep(server, request.key, data, tag(data), server.metadata[origin])
    return _xml("CopyObjectResult", f"<ETag>{escape(tag(data))}</ETag>")


def _create(server, request):
    number = uuid.uuid4().hex
    server.uploads[number] = Upload(request.key, datetime.now(UTC), {}, _find_metadata(request))
    return _xml("InitiateMultipartUploadResult", f"<UploadId>{number}</UploadId>")


def _part(server, request):
    upload = server.uploads.get(request.query["uploadId"])
    if upload is None:
        return refusal("NoSuchUpload", 404)
    upload.parts[int(request.query["partNumber"])] = request.body
    return Answer(headers=(("ETag", tag(request.body)),))


def _part_copy(server, request):
    upload, data = server.uploads[request.query["uploadId"]], _origin(server, request)
    first, last = re.findall(r"\d+", request.headers["x-amz-copy-source-range"])
    piece = data[int(first) : int(last) + 1]
    upload.parts[int(request.query["partNumber"])] = piece
    return _xml("CopyPartResult", f"<ETag>{escape(tag(piece))}</ETag>")


def _complete(server, request):
    upload = server.uploads.get(request.query["uploadId"])
    if upload is None:
        return refusal("NoSuchUpload", 404)
    named = [
        node.text for node in ElementTree.fromstring(request.body).iter() if "}ETag" in node.tag
    ]
    parts = [upload.parts[number] for number in sorted(upload.parts)]
    if named != [tag(part) for part in parts]:
        return refusal("InvalidPart")
    if _is_refused(server, request):
        return refusal("PreconditionFailed", 412)
    del server.uploads[request.query["uploadId"]]
    digests = b"".join(hashlib.md5(part).digest() for part in parts)
    whole = f'"{hashlib.md5(digests).hexdigest()}-{len(parts)}"'
    _keep(server, request.key, b"".join(parts), whole, upload.metadata)
    return _xml("CompleteMultipartUploadResult", f"<ETag>{escape(whole)}</ETag>")


def _abort(server, request):
    server.uploads.pop(request.query["uploadId"], None)
    return Answer(204)


def _list(server, request):
    rows = (
        f"<Upload><Key>{escape(it.key)}</Key><UploadId>{number}</UploadId>"
        f"<Initiated>{it.begun:%Y-%m-%dT%H:%M:%S.000Z}</Initiated></Upload>"
        for number, it in server.uploads.items()
        if it.key.startswith(request.query.get("prefix", ""))
    )
    return _xml("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>", *rows)


_OPERATIONS = {
    "PutObject": _put,
    "HeadObject": _head,
    "GetObject": _get,
    "DeleteObject": _delete,
    "CopyObject": _copy,
    "CreateMultipartUpload": _create,
    "UploadPart": _part,
    "UploadPartCopy": _part_copy,
    "CompleteMultipartUpload": _complete,
    "AbortMultipartUpload": _abort,
    "ListMultipartUploads": _list,
    "ListObjectsV2": _list_objects,
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, True).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        request = Request(self.command, unquote(parts.path), query, headers, body)
        answer = self.server.interfere(request)
        self._send(self.server.answer(request) if answer is None else answer)

    do_GET = do_HEAD = do_POST = do_DELETE = do_PUT  # noqa: N815 - names of the base class

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, *_):
        """Print nothing."""
