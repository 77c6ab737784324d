"""A ledger that is damaged inside, as a run finds out long after it was opened."""

import os

import pytest

from mydata_like.core.events import RunStarted
from mydata_like.core.model import DatasetId, Entry, EntryState
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.invariants import check_carried
from tests.site import a_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

PAGE = 4096
MANY = 40_000  # rows: more than SQLite keeps in memory


site = a_site(tiny_files=5, large=100_000)


def find_ledger(site):
    return next(site.state.glob("ledger-*.db"))


def fill(site) -> None:
    """Let the ledger know more files than its pages in memory can."""
    rows = [
        Entry(b"gone/%08d" % number, 1, 1, EntryState.VERIFIED, DatasetId(9), "0" * 32, "x" * 60)
        for number in range(MANY)
    ]
    with SqliteLedger.open(find_ledger(site), os.fsencode(site.data), SystemClock()) as ledger:
        ledger.record(rows)


def damage(site) -> None:
    """Write over all pages but the first, as a failing disk may."""
    file = find_ledger(site)
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(PAGE)
        opened.write(b"\xa5" * (size - PAGE))


def test_damage_that_shows_while_a_run_goes_is_reported_and_the_next_run_starts_afresh(site):
    check_carried(site, site.carry())
    fill(site)

    def strike(event) -> None:
        if isinstance(event, RunStarted):
            damage(site)

    hit = site.carry(watch=strike)
    requests = len(site.server.requests)
    after = site.carry()

    assert (hit.code, hit.sums.problem.code) == (3, "ledger.damaged")
    assert "moved aside" in hit.sums.problem.hint
    assert "disk is not full" not in hit.sums.problem.hint
    assert len(list(site.state.glob("ledger-*.corrupt-*.db"))) == 1
    assert (after.code, after.sums.problem, after.sums.sent) == (0, None, 0)
    assert [it for it in site.changes(requests) if "dataset_file" in it] == []
    check_carried(site, after)
