"""What the ledger remembers of folders outside of the data directory."""

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.model import Outcome
from mydata_like.core.sources import Destination, Source
from mydata_like.store.ledger import SqliteLedger
from tests.fakes.clock import FakeClock

PLACE = Destination("ada", "mice", "day 1")
WHY = Problem("file.unreadable", "It cannot be read.")
NOT_KNOWN = Problem("skipped.owner", "The server knows no such user.")
PATTERN = Problem("skipped.pattern", "A pattern leaves it out.")


@pytest.fixture
def ledger(tmp_path):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", FakeClock()) as opened:
        opened.record_source(Source(b"/usb/a", PLACE))
        yield opened


def is_finished(ledger):
    ledger.finish_source(b"/usb/a")
    return [known.finished is not None for known in ledger.find_sources()] == [True]


def test_what_a_source_becomes_is_remembered_until_it_is_added_anew(ledger):
    ledger.finish_source(b"/usb/a")
    assert ledger.find_destination(b"/usb/a") == PLACE
    assert ledger.find_destination(b"/usb") is None

    ledger.record_source(Source(b"/usb/a", PLACE._replace(owner="bob")))
    (known,) = ledger.find_sources()
    assert (known.destination.owner, known.finished) == ("bob", None)


@pytest.mark.parametrize(
    ("path", "kind", "problem", "finished"),
    [
        (b"/usb/a/file", "failed", WHY, False),
        (b"/usb/a/file", "waiting", WHY, False),
        (b"/usb/a", "folder-failed", WHY, False),
        (b"/usb/a/file", "skipped", NOT_KNOWN, False),
        (b"/usb/a/file", "skipped", PATTERN, True),
        (b"/usb/ab/file", "failed", WHY, True),
        (b"a/file", "failed", WHY, True),
    ],
)
def test_a_source_is_finished_when_nothing_of_it_has_to_come(ledger, path, kind, problem, finished):
    ledger.record_outcomes([Outcome(path, 1, 0, kind, problem)])

    assert is_finished(ledger) is finished
