"""What writes and was not answered: never repeated before it must be over, and told as such."""

import json

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.core.errors import Cancelled, TransientError, UnansweredError
from mydata_like.core.events import Notice
from mydata_like.core.model import Group
from mydata_like.settings.schema import Server
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.web import page, reply, reset
from tests.faults.test_http_lost_replies import DRAFT, EXPERIMENT, MAKE, NEW, PATH, ROWS

LIMIT = 300.0
LOST = {"reset": reset, "bad gateway": reply(502), "gateway timeout": reply(504)}


class Bench:
    """A client of a web server; `posts` are the moments at which it was asked to write."""

    def __init__(self, web, ledger=None, clock=None):
        self.web = web
        self.clock = clock or FakeClock()
        self.events = []
        self.ledger = ledger or MemoryLedger()
        self.cancel = self.clock.cancel()
        settings = Server(url=web.url, username="facility", write_timeout=LIMIT)
        self.client = ApiClient(settings, "key", self.clock, self.cancel)
        self.client.emit = self.events.append
        self.client.writes = WriteTracker(self.ledger, self.clock, LIMIT)
        self.server = HttpServer(self.client)
        self.posts = web.note_writes(self.clock)


@pytest.fixture
def bench(web):
    bench = Bench(web)
    yield bench
    bench.client.close()


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST)
@pytest.mark.parametrize("path", ROWS)
def test_what_is_made_is_asked_for_again_only_when_that_must_be_over(bench, path, lost):
    bench.web.on("GET", path, page())
    bench.web.on("POST", path, lost, reply(201, ROWS[path]))

    assert MAKE[path](bench.server).id == ROWS[path]["id"]

    first, second = bench.posts
    assert second - first >= LIMIT
    assert {event.problem.code for event in bench.events} == {"server.unanswered"}
    assert bench.ledger.writes == {}


@pytest.mark.parametrize("path", ROWS)
def test_what_appears_while_it_is_waited_for_is_not_made_again(bench, path):
    kept = []

    def rule(asked):
        if (asked.method, asked.path) != ("GET", path):
            return None
        return page(*([ROWS[path]] if bench.clock.monotonic() > 9.0 else kept))

    bench.web.rules.append(rule)
    bench.web.on("POST", path, reset)

    assert MAKE[path](bench.server).id == ROWS[path]["id"]

    assert len(bench.posts) == 1
    assert bench.clock.monotonic() < 60.0


def test_a_grant_is_made_again_only_when_the_former_must_be_over(bench):
    bench.web.on("POST", "objectacl/", reset, reply(201, b"", "text/html"))

    bench.server.grant(EXPERIMENT, Group(4, "managers"))

    first, second = bench.posts
    assert second - first >= LIMIT


def test_a_restarted_run_waits_for_what_the_killed_one_was_making(bench):
    bench.web.on("GET", "mydata_experiment/", page())
    bench.web.on("POST", "mydata_experiment/", reset, reply(201, ROWS["mydata_experiment/"]))
    bench.cancel.set_after(5.0)
    with pytest.raises(Cancelled):
        bench.server.create_experiment(DRAFT)
    again = Bench(bench.web, bench.ledger, bench.clock)

    made = again.server.create_experiment(DRAFT)

    assert made.id == 11
    assert bench.posts[-1] - bench.posts[0] >= LIMIT - 1
    again.client.close()


def test_other_records_are_created_in_the_meantime(bench):
    bench.web.on("GET", "mydata_experiment/", page())
    bench.web.on("POST", "mydata_experiment/", reset, reply(201, ROWS["mydata_experiment/"]))
    bench.cancel.set_after(5.0)
    with pytest.raises(Cancelled):
        bench.server.create_experiment(DRAFT)
    again = Bench(bench.web, bench.ledger, bench.clock)
    begun = again.clock.monotonic()

    again.server.create_experiment(DRAFT._replace(user_folder="bob"))

    assert again.clock.monotonic() - begun < 10
    again.client.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reset, UnansweredError),
        (reply(504), UnansweredError),
        (reply(503), TransientError),
        (reply(500, b"<html>", "text/html"), TransientError),
    ],
    ids=["reset", "gateway timeout", "unavailable", "failed"],
)
def test_an_answer_that_only_says_failure_counts_as_received(bench, answer, kind):
    bench.web.on("PATCH", PATH, answer)

    with pytest.raises(TransientError) as caught:
        bench.server.register([NEW])

    assert type(caught.value) is kind


def test_only_what_is_read_is_asked_for_afresh(bench):
    bench.web.on("GET", "group/", page({"id": 4, "name": "managers"}))
    bench.web.on("PATCH", PATH, reply(202))

    bench.server.find_group("managers")
    bench.server.register([NEW])

    read, written = bench.web.asked
    assert read.headers["Cache-Control"] == "no-cache"
    assert "Cache-Control" not in written.headers
    assert json.loads(written.body)
    assert not [event for event in bench.events if isinstance(event, Notice)]
