"""An installation that was copied to another computer, and what becomes of it."""

import tomllib

import pytest

from mydata_like.catalogues.mytardis.uploader import LAST_RUN_KEY, MACHINE_KEY, MachineIdentity
from mydata_like.core.events import Notice
from mydata_like.hostos.clock import SystemClock
from mydata_like.ssh.keys import load_key
from tests.invariants import check_carried, check_complete
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.fixture
def site(tmp_path):
    make_data(tmp_path / "site", tiny_files=5, large=1000)
    with open_site(tmp_path / "site") as site:
        site.carry()
        yield site


def settings_on_server(site):
    rows = site.server.site.store.rows("SELECT key, value FROM uploader_setting ORDER BY id")
    return {row["key"]: row["value"] for row in rows}


def move_to_another_computer(site):
    """Let the server remember another computer, as a copy that runs there would find it."""
    elsewhere = MachineIdentity.of(site.uuid, "SCOPE-PC", "another id", ["aa:bb"]).format(
        SystemClock().now()
    )
    site.server.site.store.change(
        "UPDATE uploader_setting SET value = ? WHERE key = ?", elsewhere, MACHINE_KEY
    )


def copied(carried):
    told = [event.problem for event in carried.of_kind(Notice)]
    return [problem for problem in told if problem.code == "uploader.copied"]


def test_the_computer_is_stored_once_next_to_the_administrators_settings(site):
    site.server.site.store.insert("uploader_setting", uploader=1, key="locked", value="True")
    before = len(site.server.requests)

    carried = site.carry()

    assert not copied(carried)
    assert set(settings_on_server(site)) == {MACHINE_KEY, LAST_RUN_KEY, "locked"}
    assert not [change for change in site.changes(before) if "mydata_uploader" in change]


def test_a_copy_is_reported_and_uploads_all_the_same(site):
    move_to_another_computer(site)

    carried = site.carry()

    check_carried(site, carried)
    (problem,) = copied(carried)
    assert "SCOPE-PC" in problem.message
    assert "--new-identity" in problem.hint


def test_a_computer_that_takes_the_place_of_another_says_so_once(site):
    move_to_another_computer(site)

    said = site.command("register", "--keep-identity")

    assert said.code == 0, said
    assert "SCOPE-PC" not in settings_on_server(site)[MACHINE_KEY]
    assert not copied(site.carry())


def test_a_copy_gets_an_identity_of_its_own(site):
    before, key = site.uuid, load_key(site.place.key_file)
    move_to_another_computer(site)

    asked = site.command("register", "--new-identity")
    renewed = site.command("register", "--new-identity", "--yes")
    settings = tomllib.loads(site.config.read_text())
    site.sshd.forbid_all()
    made = load_key(site.place.folder / "home" / "ssh" / "id_ed25519")
    site.sshd.authorize(made.public)
    ended = site.run_events("transfer.method=ssh")

    assert (asked.code, renewed.code) == (2, 0), renewed
    assert site.uuid != before
    assert "key_file" not in settings["transfer"]
    assert load_key(site.place.key_file) == key
    check_complete(site, ended)
    assert ended.events("notice") == []
