"""A process that is killed while it deletes files leaves none of them under another name."""

import json
import os

import pytest

from tests.builders import a_file
from tests.settled import settle
from tests.site import DEADLINE, kill_group, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="Windows deletes without renaming"),
]

FOLDER = "alice/Scan 1"
MANY = 200
OLD = 1_600_000_000


@pytest.fixture
def site(tmp_path):
    data = tmp_path / "site" / "data"
    for number in range(MANY):
        settle(a_file(data / FOLDER / f"{number}.dat", 100, OLD))
    with open_site(tmp_path / "site") as site:
        assert site.carry().code == 0
        yield site


def kill_between(site):
    """Kill a process between the renaming and the deletion of a file."""
    folder = site.data / FOLDER
    process = site.start("free", str(folder), "--yes", "--json")
    while process.poll() is None:
        if list(folder.glob(".mydata-like-*")):
            kill_group(process)
            break
    process.communicate(timeout=DEADLINE)
    return [path.name for path in folder.glob(".mydata-like-*")]


@pytest.mark.parametrize("words", [("run", "--json"), ("free", "--yes", "--json")])
def test_the_next_run_and_the_next_deletion_restore_the_name_of_the_file(site, words):
    while not (left := kill_between(site)):  # it was killed a moment too late
        assert any((site.data / FOLDER).iterdir())
    assert len(left) == 1
    other = a_file(site.data / "bob/Other/file.dat", 5, OLD)
    target = [str(other)] if words[0] == "free" else []

    site.command(words[0], *target, *words[1:])

    names = [path.name for path in (site.data / FOLDER).iterdir()]
    assert [name for name in names if name.startswith(".")] == []
    assert 0 < len(names) <= MANY
    again = site.carry()
    assert again.code == 0
    assert again.sums.found == again.sums.verified == len(names) + 1
    (deleted,) = site.commands([("free", str(site.data / FOLDER), "--yes", "--json")])
    assert (deleted.sums["kept"], list((site.data / FOLDER).iterdir())) == (0, [])


def test_a_file_that_has_the_name_by_now_is_not_replaced(site):
    while not (left := kill_between(site)):
        assert any((site.data / FOLDER).iterdir())
    numbers = {path.name for path in (site.data / FOLDER).iterdir()}
    last = json.loads((site.state / "freed.jsonl").read_text().splitlines()[-1])
    missing = last["path"].rpartition("/")[2]
    assert missing not in numbers
    new = a_file(site.data / FOLDER / missing, 7, OLD)

    assert site.carry().code == 0

    assert new.stat().st_size == 7
    assert (site.data / FOLDER / left[0]).stat().st_size == 100


def test_the_name_of_another_file_is_never_taken_from_the_log(site):
    log = site.state / "freed.jsonl"
    line = '{"path": "x", "deleted": true, "aside": "../../file", "key": "616c6963652f78"}\n'
    log.write_text(line)

    assert site.carry().code == 0
