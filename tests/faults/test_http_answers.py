"""What the server or the way to it does wrong, and what is made of it (real sockets)."""

import gzip
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.serializers import parse_facility
from mydata_like.core.errors import (
    AccessDeniedError,
    Cancelled,
    ItemError,
    RejectedError,
    ServerUnavailableError,
    SettingsError,
    TransientError,
    WaitRequestedError,
    describe_wait,
)
from mydata_like.core.model import DatasetId, Facility, Group, Registration
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.web import ACCOUNT, page, raw, reply, reset, web_server

GROUP = {"id": 9, "name": "lab"}
HTML = reply(200, b"<html><title>Please log in</title></html>", "text/html; charset=utf-8")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def cancel(clock):
    return clock.cancel()


@pytest.fixture
def server(web, clock, cancel):
    with http_server(web.url, clock, cancel) as server:
        yield server


@contextmanager
def http_server(url, clock, cancel, **settings):
    settings = Server(url=url, username="facility", **settings)
    server = HttpServer(ApiClient(settings, "secret-key", clock, cancel))
    try:
        yield server
    finally:
        server.close()


class RealClock:
    def now(self):
        return datetime.now(UTC)

    def monotonic(self):
        return time.monotonic()


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_a_question_is_asked_again_after_a_passing_failure(web, server, cancel, status):
    web.on("GET", "group/", reply(status), page(GROUP))

    assert server.find_group("lab").id == 9

    assert len(cancel.waits) == 1


def test_a_failure_that_stays_is_a_transient_error(web, server):
    web.on("GET", "group/", reply(503))

    with pytest.raises(TransientError):
        server.find_group("lab")

    assert web.count("GET", "group/") == 4


@pytest.mark.parametrize(("asked", "given"), [("5", 5), ("-5", 0), ("soon", 0)])
def test_a_short_pause_that_a_server_asks_for_is_kept(web, server, clock, asked, given):
    web.on("GET", "group/", reply(429, Retry_After=asked), page(GROUP))

    server.find_group("lab")

    assert given <= clock.monotonic() <= given + 3


@pytest.mark.parametrize(("asked", "kept"), [("120", 120), ("1000000000", 3600), ("date", 90)])
def test_a_long_pause_that_a_server_asks_for_is_an_error_at_once(web, server, clock, asked, kept):
    date = format_datetime(clock.now() + timedelta(seconds=90), usegmt=True)
    text = date if asked == "date" else asked
    web.on("GET", "group/", reply(503, Retry_After=text), page(GROUP))

    with pytest.raises(WaitRequestedError) as caught:
        server.find_group("lab")

    assert kept - 3 <= caught.value.rest <= kept
    assert clock.monotonic() < 3
    until = (clock.now() + timedelta(seconds=caught.value.rest)).astimezone()
    assert f"asks us to wait until {until:%H:%M}" in caught.value.message


def test_during_a_pause_a_request_now_and_then_shows_that_the_server_is_back(web, server, clock):
    web.on("GET", "group/", reply(503, Retry_After="600"), page(GROUP))
    web.on("PATCH", "mydata_dataset_file/", reply(202))
    web.account = reply(503, Retry_After="600")
    for _ in range(3):
        with pytest.raises(WaitRequestedError):
            server.find_group("lab")
    clock.move(60)
    with pytest.raises(WaitRequestedError):
        server.register([])
    assert (web.count("GET", "group/"), web.count("GET", "user/"), web.count("PATCH")) == (1, 1, 0)
    web.account = page(ACCOUNT)
    clock.move(60)

    server.register([])

    assert server.find_group("lab").id == 9
    assert clock.monotonic() < 130


def test_a_request_that_is_answered_while_others_are_refused_does_not_end_the_pause(web, server):
    web.on("GET", "group/", reply(429, Retry_After="600"))
    web.on("GET", "instrument/", page({"id": 3, "name": "Scope"}))

    def ask_for_another(asked):
        if asked.path == "instrument/":
            with pytest.raises(WaitRequestedError):
                server.find_group("lab")

    web.rules.insert(0, ask_for_another)

    assert server.list_instruments(Facility(1, "F", Group(4, "managers")))

    with pytest.raises(WaitRequestedError):
        server.find_group("lab")
    assert web.count("GET", "group/") == 1


NEW = Registration(DatasetId(2), "", "a", 1, "9" * 32, "", "", "a", "staging")


@pytest.mark.parametrize(
    ("status", "named"), [(504, "proxy_read_timeout"), (413, "client_max_body_size")]
)
def test_the_limit_of_a_gateway_is_named(web, server, status, named):
    web.on("PATCH", "mydata_dataset_file/", reply(status, b"<html>nginx</html>", "text/html"))

    with pytest.raises(ItemError) as caught:
        server.register([NEW])

    assert named in caught.value.hint
    if status == 504:
        assert named in describe_wait(300.0, caught.value).hint


BLOCKED = reply(403, b"<html><title>403\n Forbidden</title></html>", "text/html")


def test_a_web_page_that_refuses_one_request_is_not_taken_for_the_server(web, server):
    web.on("PATCH", "mydata_dataset_file/", BLOCKED)

    with pytest.raises(RejectedError) as caught:
        server.register([NEW])

    assert caught.value.problem_code == "server.gateway"
    assert "A web page answered instead of" in caught.value.message
    assert caught.value.message.endswith("(status 403): 403 Forbidden.")
    assert "permission" not in caught.value.message


def test_a_web_page_that_refuses_everything_does_not_blame_the_account(web, server):
    web.on("GET", "group/", BLOCKED)
    web.account = BLOCKED

    with pytest.raises(ServerUnavailableError) as caught:
        server.find_group("lab")

    assert caught.value.problem_code == "server.web-page"


def test_a_permission_that_is_missing_is_the_server_s_answer(web, server):
    web.on("GET", "group/", reply(403, b"", "text/html"))

    with pytest.raises(RejectedError) as caught:
        server.find_group("lab")

    assert caught.value.problem_code == "server.forbidden"


def test_an_unreachable_address_makes_the_server_unavailable(clock, cancel):
    with (
        http_server("http://127.0.0.1:1", clock, cancel) as server,
        pytest.raises(ServerUnavailableError),
    ):
        server.fetch_account()


def test_a_name_that_does_not_exist_makes_the_server_unavailable(clock, cancel):
    address = "https://mytardis.invalid"
    with http_server(address, clock, cancel) as server, pytest.raises(ServerUnavailableError):
        server.fetch_account()


def drip(head, web):
    def answer(sock):
        sock.sendall(head)
        while not web.stopped.wait(0.05):
            sock.sendall(b"a")

    return answer


@pytest.mark.parametrize(
    "head",
    [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n"],
    ids=["status", "header", "body"],
)
def test_a_dripping_reply_ends_at_the_deadline(web, cancel, head):
    web.on("GET", "group/", drip(head, web))
    started = time.monotonic()

    with http_server(web.url, RealClock(), cancel) as server:
        server._client.wire._settings = short_of_patience(web.url, deadline=0.3, read_timeout=5)
        with pytest.raises(TransientError, match="too long"):
            server.find_group("lab")

    assert time.monotonic() - started < 5


def test_a_reply_that_never_comes_ends_at_the_read_timeout(web, cancel):
    web.on("GET", "group/", lambda sock: web.stopped.wait(30))
    started = time.monotonic()

    with http_server(web.url, RealClock(), cancel) as server:
        server._client.wire._settings = short_of_patience(web.url, deadline=5, read_timeout=0.2)
        with pytest.raises(TransientError, match="too long"):
            server.find_group("lab")

    assert time.monotonic() - started < 5


def short_of_patience(url, **seconds):
    """Return settings with times shorter than a user may choose."""
    return Server().with_values(url=url, username="facility", connect_timeout=2.0, **seconds)


def test_a_request_to_stop_ends_a_wait_for_a_reply(web, clock, cancel):
    def answer(sock):
        cancel.set()
        web.stopped.wait(30)

    web.on("GET", "group/", answer)

    with http_server(web.url, RealClock(), cancel) as server, pytest.raises(Cancelled):
        server.find_group("lab")


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CUT = {
    "too short": raw(
        HEAD + b'Content-Length: 500\r\n\r\n{"meta": {"total_count": 0}, "objects": []}'
    ),
    "chunk missing": raw(HEAD + b'Transfer-Encoding: chunked\r\n\r\n2b\r\n{"meta": {"total_count"'),
    "no last chunk": raw(
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
        b'2c\r\n{"meta": {"total_count": 0}, "objects": [] }\r\n'
    ),
    "reset": reset,
    "half a header": raw(b"HTTP/1.1 200"),
}


@pytest.mark.parametrize("fault", CUT.values(), ids=CUT)
def test_a_truncated_reply_is_asked_for_again_and_never_an_empty_list(web, server, fault):
    web.on("GET", "group/", fault, page(GROUP))

    assert server.find_group("lab").id == 9


@pytest.mark.parametrize("fault", CUT.values(), ids=CUT)
def test_a_reply_that_is_always_truncated_is_a_transient_error(web, server, fault):
    web.on("GET", "group/", fault)

    with pytest.raises(TransientError):
        server.find_group("lab")


def test_a_web_page_with_status_200_is_reported_as_such(web, server):
    web.on("GET", "group/", HTML)

    with pytest.raises(ServerUnavailableError) as caught:
        server.find_group("lab")

    assert caught.value.problem_code == "server.web-page"
    assert web.count("GET", "group/") == 1


def test_a_web_page_instead_of_a_created_record_is_reported_as_such(web, server):
    web.on("GET", "instrument/", page())
    web.on("POST", "instrument/", HTML)

    with pytest.raises(ServerUnavailableError) as caught:
        server.ensure_instrument(facility(), "Scope")

    assert caught.value.problem_code == "server.web-page"


@pytest.mark.parametrize(
    "body",
    [b"{", b"null", b"[]", b'{"objects": []}', b"[" * 100_000, b"\xff", b"1" * 5000],
    ids=["cut", "null", "list", "no meta", "deep", "no text", "long number"],
)
def test_a_strange_answer_is_asked_for_once_more_and_then_shown(web, server, body):
    web.on("GET", "group/", reply(200, body))

    with pytest.raises(ServerUnavailableError) as caught:
        server.find_group("lab")

    assert caught.value.problem_code == "server.strange-answer"
    assert len(caught.value.message) < 400
    assert web.count("GET", "group/") == 2


def test_a_strange_answer_is_shown_as_plain_text_without_the_key(web, server):
    web.on("GET", "group/", reply(200, b'{"\x1b[31m": "ApiKey facility:secret-key"}'))

    with pytest.raises(ServerUnavailableError) as caught:
        server.find_group("lab")

    assert "secret-key" not in caught.value.message
    assert "\x1b" not in caught.value.message


def test_an_answer_that_unpacks_to_too_much_is_refused(web, server):
    bomb = gzip.compress(b" " * 50_000_000)
    web.on("GET", "group/", reply(200, bomb, Content_Encoding="gzip"))

    with pytest.raises(ServerUnavailableError, match="too large"):
        server.find_group("lab")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_and_never_followed(web, server, status):
    with web_server() as other:
        web.on("GET", "group/", reply(status, Location=f"{other.url}/api/v1/group/"))

        with pytest.raises(SettingsError, match=other.url) as caught:
            server.find_group("lab")

        assert other.asked == []
    assert caught.value.problem_code == "server.moved"


def test_a_redirected_creation_is_never_asked_again_as_a_question(web, server):
    web.on("GET", "instrument/", page())
    web.on("POST", "instrument/", reply(301, Location="/api/v1/instrument/"))

    with pytest.raises(SettingsError):
        server.ensure_instrument(facility(), "Scope")

    assert (web.count("GET", "instrument/"), web.count("POST")) == (1, 1)


def test_links_of_a_listing_are_not_followed(web, server):
    with web_server() as other:
        rows = {"meta": {"total_count": 1, "next": f"{other.url}/api/v1/facility/?offset=1"}}
        web.on("GET", "facility/", reply(body={**rows, "objects": [facility_row()]}))

        assert len(server.fetch_facilities()) == 1
        assert other.asked == []


def test_a_revoked_key_stops_the_run(web, server):
    web.on("GET", "group/", reply(401, kind="text/html"))
    web.account = reply(401, kind="text/html")

    with pytest.raises(AccessDeniedError):
        server.find_group("lab")

    assert len(web.asked) == 2


def test_a_refusal_of_one_thing_is_about_that_thing_only(web, server):
    web.on("GET", "dataset_file/3/verify/", reply(401, kind="text/html"))

    with pytest.raises(RejectedError) as caught:
        server.request_verification(3)

    assert caught.value.problem_code == "server.forbidden"


def test_an_empty_list_without_access_proves_nothing(web, server):
    web.on("GET", "group/", page())
    web.account = page()

    with pytest.raises(AccessDeniedError):
        server.find_group("lab")


@pytest.mark.parametrize(
    "account", [page(), page({**ACCOUNT, "groups": []})], ids=["login", "group"]
)
def test_nothing_is_made_once_rights_are_lost(web, server, account):
    web.on("GET", "instrument/", page())
    server.fetch_account()
    web.account = account

    with pytest.raises(AccessDeniedError):
        server.ensure_instrument(facility(), "Scope")

    assert web.count("POST") == 0


def test_an_empty_dataset_that_we_may_not_see_is_not_empty(web, server):
    web.on("GET", "mydata_dataset_file/", page())
    web.on("GET", "dataset/21/", reply(401, kind="text/html"))

    with pytest.raises(RejectedError) as caught:
        list(server.list_datafiles(DatasetId(21)))

    assert caught.value.problem_code == "server.forbidden"


def test_the_key_is_sent_in_its_header_whatever_netrc_says(web, server):
    web.on("GET", "group/", page(GROUP))

    server.find_group("lab")

    assert web.asked[0].headers["Authorization"] == "ApiKey facility:secret-key"
    assert web.asked[0].headers["User-Agent"].startswith("mydata-like/")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_is_reported_as_such(web, clock, cancel, monkeypatch, scheme):
    monkeypatch.setenv(f"{scheme}_proxy", web.url)
    web.rules.append(lambda asked: reply(407, b"", "text/html"))
    address = f"{scheme}://mytardis.example.org"

    with (
        http_server(address, clock, cancel, allow_http=True) as server,
        pytest.raises(ServerUnavailableError) as caught,
    ):
        server.fetch_account()

    assert caught.value.problem_code == "server.proxy"
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], None),
        ([ACCOUNT], None),
        ([{**ACCOUNT, "email": ""}], 7),
        ([{**ACCOUNT, "id": 8, "email": "Bob@Example.org"}], 8),
        ([{**ACCOUNT, "email": ""}, {**ACCOUNT, "id": 9, "email": ""}], None),
    ],
    ids=["nobody", "another", "hidden", "other case", "ambiguous"],
)
def test_a_user_found_by_an_address_has_it(web, server, rows, found):
    def rule(asked):
        return page(*rows) if "email__iexact" in asked.query else None

    web.rules.append(rule)

    user = server.find_user_by_email("bob@example.org")

    assert (user and user.id) == found


def test_cookies_are_not_kept(web, server):
    web.on("GET", "group/", reply(500, Set_Cookie="sessionid=1"), page(GROUP))

    server.find_group("lab")

    assert all("Cookie" not in it.headers for it in web.asked)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "ftp://example.org",
        "example.org",
        "https://a:b@example.org",
        "https://",
    ],
)
def test_an_address_that_would_give_the_key_away_is_refused(clock, cancel, url):
    settings = Server().with_values(url=url, username="u")

    with pytest.raises(SettingsError):
        ApiClient(settings, "k", clock, cancel)


def facility_row():
    return {"id": 1, "name": "F", "manager_group": {"id": 4, "name": "managers"}}


def facility():
    return parse_facility(facility_row())
