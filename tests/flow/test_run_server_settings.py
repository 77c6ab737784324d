"""Whole runs whose settings the server's administrator changes."""

import json
import os
import time

import pytest

from mydata_like.app.settings_service import load_settings
from mydata_like.core.events import RunStarted
from mydata_like.settings.layers import Layer
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

LATER = 10.0  # seconds, more than the clocks of a machine and its files differ


@pytest.fixture
def site(tmp_path):
    make_data(tmp_path / "site", tiny_files=5, large=50_000)
    with open_site(tmp_path / "site") as site:
        age(site, LATER)
        yield site


def age(site, seconds):
    """Let the settings file be so old."""
    moment = time.time() - seconds
    os.utime(site.config, (moment, moment))


def explain(site, key):
    return load_settings(site.config).explain(key)


def notices(ended):
    return {event["problem"]["code"]: event["problem"] for event in ended.events("notice")}


def test_a_change_on_the_server_counts_in_the_next_run(site):
    before = site.run_events()
    site.server.set_settings(site.uuid, {"filters.excludes": "*.dat", "no_such_key": "1"})
    after = site.run_events()
    again = site.run_events()

    assert before.sums["skipped"] == 0
    told = notices(after)
    assert "filters.excludes" in told["settings.from-server"]["message"]
    assert "no_such_key" in told["settings.server-ignored"]["message"]
    assert "settings.from-server" not in notices(again)
    winner = explain(site, "filters.excludes").winner
    assert winner.source is Layer.SERVER
    assert winner.origin.startswith("127.0.0.1:")


def reported(site):
    """Return what the server has about the last run."""
    sql = "SELECT value FROM uploader_setting WHERE key = 'mydata_like_last_run'"
    return json.loads(site.server.site.store.row(sql)["value"])


def test_the_servers_administrator_sees_the_last_run_and_the_space(site):
    site.run()
    files, first = len(site.place.expected_files()), reported(site)
    asked = len(site.server.requests)
    site.run()
    idle = reported(site), site.changes(asked)
    (site.data / "alice" / "new.txt").write_text("new")
    site.run()

    details = json.loads(site.server.site.store.row("SELECT details FROM uploader")["details"])
    assert (first["found"], first["verified"], first["sent"]) == (files, files, files)
    assert first["problem"] is None
    assert idle == (first, [])
    now = reported(site)  # the file is in no dataset
    assert (now["found"], now["skipped"], now["left_behind"]) == (files + 1, 1, 0)
    assert " free of " in details["disk_usage"]
    assert details["user_agent_install_location"].endswith("mydata_like")


def test_a_change_on_the_server_during_a_run_is_not_hidden_by_the_runs_report(site):
    def change(event):
        if isinstance(event, RunStarted):
            site.server.set_settings(site.uuid, {"filters.excludes": "*.dat"})

    site.run()
    (site.data / "alice" / "Day 9").mkdir(parents=True)
    (site.data / "alice" / "Day 9" / "new.txt").write_text("new")
    site.carry(watch=change)
    after = site.run_events()

    assert "filters.excludes" in notices(after)["settings.from-server"]["message"]
    assert explain(site, "filters.excludes").winner.source is Layer.SERVER


def test_a_value_of_an_earlier_version_is_reported_and_another_used(site):
    ended = site.run_events("transfer.ssh=system")

    assert ended.code == 0
    message = notices(ended)["settings.former"]["message"]
    assert 'transfer.ssh = "system"' in message
    assert '"paramiko" is used instead' in message


def test_the_newer_of_server_and_user_counts_though_their_clocks_show_other_zones(site):
    site.run()
    site.server.set_settings(site.uuid, {"transfer.attempts": "9"})
    site.run()
    assert explain(site, "transfer.attempts").value == 9

    text = site.config.read_text()
    site.config.write_text(text.replace("[transfer]", "[transfer]\nattempts = 4"))
    age(site, -LATER)
    site.run()
    assert explain(site, "transfer.attempts").value == 4

    age(site, LATER)
    assert explain(site, "transfer.attempts").value == 9


def test_settings_from_before_our_own_do_not_count(site):
    site.command("register")
    site.server.set_settings(site.uuid, {"transfer.attempts": "9"})
    for kept in site.state.glob("server-settings-*"):
        kept.unlink()  # as if this computer were new
    text = site.config.read_text()
    site.config.write_text(text.replace("[transfer]", "[transfer]\nattempts = 4"))
    age(site, -LATER)
    site.run()
    site.run()

    assert explain(site, "transfer.attempts").value == 4


def test_the_servers_settings_count_while_it_is_away(site):
    site.run()
    site.server.set_settings(site.uuid, {"transfer.attempts": "9"})
    site.run()
    site.server.stop()

    assert explain(site, "transfer.attempts").value == 9


def test_fetch_shows_what_the_server_sets(site):
    site.run()
    site.server.set_settings(site.uuid, {"max_upload_retries": "9", "server.proxy": "http://x:1"})
    fetched = site.command("settings", "fetch")

    assert fetched.code == 0, fetched.complaints
    assert "transfer.attempts = " in fetched.output
    assert "server.proxy from the server is ignored" in fetched.complaints


def test_what_the_server_decides_is_shown_for_as_long_as_it_does(site):
    site.run()
    texts = {"filters.excludes": "*.dat", "transfer.attempts": "9", "data.layout": "Dataset"}
    site.server.set_settings(site.uuid, texts)
    site.run()
    site.run()

    status, shown = site.command("status"), site.command("settings", "show")
    record = json.loads(site.command("status", "--json").output)
    for text in (status.output, shown.complaints):
        assert "The server sets filters.excludes to *.dat instead of (empty)" in text
        assert "transfer.attempts" not in text
    assert "data.layout from the server is ignored" in shown.complaints
    assert "server (127.0.0.1:" in shown.output
    (decision,) = record["set_by_server"]
    assert decision["setting"] == "filters.excludes"

    site.server.set_settings(site.uuid, {"filters.excludes": ""})
    site.run()
    assert "The server sets" not in site.command("status").output
