"""What is remembered of copies: how they were proven."""

import pytest

from mydata_like.app.known_copies import KNOWN_ID, WEAKEST, note_evidence
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger


@pytest.fixture
def ledger(tmp_path):
    with SqliteLedger.open(tmp_path / "ledger.db", b"/data", SystemClock()) as opened:
        yield opened


def run(ledger, evidence):
    note_evidence(ledger, evidence)
    ledger.record_meta(KNOWN_ID, "id")


def test_the_weakest_evidence_of_all_runs_counts(ledger):
    for evidence, weakest in (
        ("host", "host"),
        ("read-back", "read-back"),
        ("read-back-cached", "read-back-cached"),
        ("host", "read-back-cached"),
    ):
        run(ledger, evidence)
        assert ledger.find_meta(WEAKEST) == weakest


def test_evidence_that_an_earlier_version_has_not_noted_stays_unknown(ledger):
    ledger.record_meta(KNOWN_ID, "id")
    run(ledger, "host")

    assert ledger.find_meta(WEAKEST) is None
