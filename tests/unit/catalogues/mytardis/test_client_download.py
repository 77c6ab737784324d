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


def test_a_file_is_read_on_from_an_offset(web, api_client):
    web.on("GET", PATH, reply(206, CONTENT[1000:], kind="application/x-tar"))

    with api_client.open(PATH, 1000) as (begin, pieces):
        assert (begin, b"".join(pieces)) == (1000, CONTENT[1000:])
    assert web.asked[-1].headers["Range"] == "bytes=1000-"


def test_a_server_that_returns_whole_files_only_is_noticed(web, api_client):
    web.on("GET", PATH, reply(body=CONTENT, kind="application/x-tar"))

    with api_client.open(PATH, 1000) as (begin, pieces):
        assert (begin, b"".join(pieces)) == (0, CONTENT)


def test_what_is_cut_while_it_is_read_is_a_transient_error(web, api_client):
    web.on("GET", PATH, raw(b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort"))

    with api_client.open(PATH) as (_, pieces), pytest.raises(TransientError):
        b"".join(pieces)


def test_a_page_may_be_a_file_unless_the_server_answers_nothing_else(web, api_client):
    page = reply(body=b"<html></html>", kind="text/html")
    web.on("GET", PATH, page)

    with api_client.open(PATH) as (_, pieces):
        assert b"".join(pieces) == b"<html></html>"
    web.account = page
    with pytest.raises(ServerUnavailableError):
        api_client.prove(within=0)
    with pytest.raises(ServerUnavailableError), api_client.open(PATH):
        pass


@pytest.mark.parametrize("status", [301, 302, 307, 403, 404, 416])
def test_a_file_that_is_refused_is_not_opened(web, api_client, status):
    web.on("GET", PATH, reply(status, Location="https://elsewhere.example.org/"))

    with pytest.raises(RejectedError), api_client.open(PATH):
        pass
    assert {it.path for it in web.asked} <= {PATH, "user/"}


@pytest.mark.parametrize("status", [500, 503])
def test_a_file_that_cannot_be_opened_now_is_a_transient_error(web, api_client, status):
    web.on("GET", PATH, reply(status))

    with pytest.raises(TransientError), api_client.open(PATH):
        pass
    assert web.count("GET", PATH) == 1
