"""Datafiles that come back: all of their bytes, or an error."""

import hashlib

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.core.errors import (
    ArchiveError,
    RejectedError,
    ServerUnavailableError,
    TransientError,
)
from mydata_like.core.model import Datafile, DatafileId, DatasetId
from tests.fakes.web import raw, reply

CONTENT = bytes(range(256)) * 80_000  # 20 MB: more than any other answer may have
PATH = "dataset_file/5/download/"
RECORD = Datafile(
    DatafileId(5), DatasetId(1), "", "a.tar", len(CONTENT), hashlib.md5(CONTENT).hexdigest(), "", ()
)


@pytest.fixture
def server(api_client):
    return HttpServer(api_client)


def test_a_large_file_comes_in_pieces(web, server):
    web.on("GET", PATH, reply(body=CONTENT, kind="application/x-tar"))

    size, most = server.read_datafile(RECORD, lambda pieces: _sum_and_most(pieces))

    assert size == len(CONTENT)
    assert most <= 64 * 1024


def _sum_and_most(pieces):
    sizes = [len(piece) for piece in pieces]
    return sum(sizes), max(sizes)


@pytest.mark.parametrize(
    "answer",
    [
        reply(body=CONTENT[:-1], kind="application/x-tar"),
        reply(body=CONTENT[:-1] + b"x", kind="application/x-tar"),
        raw(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort"),
        reply(503),
    ],
    ids=["fewer bytes", "other bytes", "cut", "busy"],
)
def test_other_bytes_than_those_of_the_record_are_never_taken(web, server, answer):
    web.on("GET", PATH, answer)

    with pytest.raises(TransientError):
        server.read_datafile(RECORD, lambda pieces: b"".join(pieces))


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT[:-1] + b"x"], ids=["fewer", "other"])
def test_other_bytes_that_came_whole_are_not_fetched_again(web, server, content):
    web.on("GET", PATH, reply(body=content, kind="application/x-tar"))

    with pytest.raises(TransientError):
        server.read_datafile(RECORD, lambda pieces: b"".join(pieces))
    assert web.count("GET", PATH) == 1


def test_what_came_cut_is_asked_for_again(web, server):
    good = reply(body=CONTENT, kind="application/x-tar")
    web.on("GET", PATH, raw(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort"), good)

    assert server.read_datafile(RECORD, lambda pieces: b"".join(pieces)) == CONTENT


@pytest.mark.parametrize("status", [302, 403, 404])
def test_a_refused_or_moved_file_does_not_concern_the_whole_run(web, server, status):
    web.on("GET", PATH, reply(status, Location="https://elsewhere.example.org/", kind="text/html"))

    with pytest.raises(RejectedError):
        server.read_datafile(RECORD, list)


def test_a_web_page_is_not_a_file(web, server):
    web.on("GET", PATH, reply(body=b"<html>Log in</html>", kind="text/html"))

    with pytest.raises(ServerUnavailableError):
        server.read_datafile(RECORD, list)


def test_a_reader_may_stop_early(web, server):
    web.on("GET", PATH, reply(body=CONTENT, kind="application/x-tar"))

    def refuse(pieces):
        next(iter(pieces))
        raise ArchiveError("This is none.")

    with pytest.raises(ArchiveError):
        server.read_datafile(RECORD, refuse)
    assert web.count("GET", PATH) == 1
