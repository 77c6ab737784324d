"""Records that are new to a ledger are believed only after the server verified a sample again."""

import pytest

from mydata_like.core.events import FileVerified, Notice
from tests.builders import a_file
from tests.settled import settle
from tests.site import open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

OLD = 1_600_000_000
MANY = 130
SMALL, LARGE = "alice/Small", "alice/Large"


@pytest.fixture
def site(tmp_path):
    """A site whose ledger was lost after all files had been verified."""
    data = tmp_path / "site" / "data"
    for number in range(5):
        settle(a_file(data / SMALL / f"{number}.dat", 100 + number, OLD))
    for number in range(MANY):
        settle(a_file(data / LARGE / f"{number:03}.dat", 200 + number, OLD))
    with open_site(tmp_path / "site") as site:
        assert site.carry().code == 0
        for file in site.ledgers:
            file.unlink()
        yield site


def asked(site, since=0):
    """Return how many requests for verification the server got."""
    return sum("/verify/" in request.path for request in site.server.requests[since:])


def test_one_in_fifty_and_at_least_twenty_of_a_dataset_are_verified_again(site):
    before = len(site.server.requests)

    carried = site.carry()

    assert (carried.code, carried.sums.verified, carried.sums.sent) == (0, MANY + 5, 0)
    assert carried.of_kind(Notice) == []
    assert asked(site, before) == 5 + 20 + 2
    before = len(site.server.requests)
    assert site.carry().code == 0
    assert asked(site, before) == 0


def test_a_sample_that_fails_makes_its_whole_dataset_due(site):
    for file in site.server.datafiles():
        if file.dataset_name == "Small":
            file.path.write_bytes(b"-" * file.size)

    told = site.command("run").output

    assert "are safe" not in told
    assert "no longer had" in told
    (status,) = site.commands([("status", "--json")])
    assert (status.sums["safety"], status.sums["recheck"]) == ("at risk", 5)
    before = len(site.server.requests)
    repaired = site.carry()
    assert (repaired.code, repaired.sums.verified, repaired.sums.sent) == (0, MANY + 5, 5)
    assert len(repaired.of_kind(FileVerified)) == 5
    assert asked(site, before) >= 5
    assert site.find_wrongs() == []
    assert "are safe on the server" in site.command("run").output


def test_a_run_does_not_count_what_a_sample_contradicts_as_verified(site):
    for file in site.server.datafiles():
        if file.dataset_name == "Small":
            file.path.write_bytes(b"-" * file.size)

    sums = site.run().sums

    assert (sums["found"], sums["verified"], sums["waiting"]) == (MANY + 5, MANY, 5)


def test_what_a_run_cannot_ask_for_is_asked_for_by_the_next_one(site):
    site.server.hold_verification()
    site.carry()
    site.server.release_verification()
    assert site.server.wait_verified()
    before = len(site.server.requests)

    assert site.carry().code == 0

    assert asked(site, before) > 0
    before = len(site.server.requests)
    assert site.carry().code == 0
    assert asked(site, before) == 0
