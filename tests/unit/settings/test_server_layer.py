"""What the server sets: in MyData's words or ours, and what it may not decide on."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from mydata_like.settings.layers import Layer, LayerSources, load_settings
from mydata_like.settings.schema import Settings, check_values, settings_by_key
from mydata_like.settings.server_layer import (
    FORBIDDEN,
    QUIET,
    SHOWN,
    matches,
    read_server_layer,
)
from tests.privileges import ROOT

NOON = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def layer(texts, here=None, changed_at=NOON):
    return read_server_layer(texts, here or Settings(), "data.example.org", changed_at)


def load(tmp_path, texts, user="", *, changed=HOUR, managed=None, **environment):
    """Load settings whose user file was written `changed` before the server's were changed."""
    file = tmp_path / "settings.toml"
    file.write_text(user)
    moment = (NOON - changed).timestamp()
    os.utime(file, (moment, moment))
    rules = tmp_path / "managed.toml"
    rules.write_text(managed or "")
    sources = LayerSources(user=file, managed=rules, server=layer(texts), environment=environment)
    return load_settings(sources)


def test_keys_of_mydata_and_our_own_are_understood():
    found = layer({"ignore_new_files_minutes": "3", "transfer.channels": "2"})

    assert found.values == {"filters.settle_seconds": 180.0, "transfer.channels": 2}
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("no_such_key", "1", "MyData has no such key"),
        ("no.such_key", "1", "it is not a setting"),
        ("transfer.channels", "many", "must be a whole number"),
        ("timer_minutes", "often", ""),
        ("k" * 500, "1", "MyData has no such key"),
    ],
)
def test_what_cannot_be_used_is_reported(key, text, why):
    found = layer({key: text})

    assert not found.values
    (warning,) = found.warnings
    assert why in warning
    assert len(warning) < 200


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("mytardis_url", "https://evil.example.org"),
        ("data_directory", ROOT),
        ("transfer.host_keys", "SHA256:" + "A" * 43),
        ("transfer.key_file", f"{ROOT}etc/ssh/key"),
        ("server.allow_http", "true"),
        ("server.proxy", "http://evil.example.org:3128"),
        ("monitor.signal_url", "https://evil.example.org"),
        ("advanced.state_directory", f"{ROOT}tmp/elsewhere"),
    ],
)
def test_the_server_cannot_send_us_elsewhere(key, text):
    found = layer({key: text})

    assert not found.values
    assert "only this computer may set it" in found.warnings[0]


def test_what_the_server_repeats_of_ours_is_not_worth_a_word():
    here, _ = check_values({"server.url": "https://data.example.org", "server.username": "ann"})
    texts = {"mytardis_url": "https://data.example.org/", "username": "ann", "uuid": "1-2-3"}

    assert layer(texts, here).warnings == ()


def test_the_api_key_of_the_server_is_neither_taken_nor_repeated():
    found = layer({"api_key": "canary-7f3a"})

    assert not found.values
    assert "canary" not in "".join(found.warnings)


def test_the_newer_one_of_server_and_user_counts(tmp_path):
    user = "[transfer]\nchannels = 3\n"

    newer = load(tmp_path, {"transfer.channels": "7"}, user)
    older = load(tmp_path, {"transfer.channels": "7"}, user, changed=-HOUR)

    assert newer.settings.transfer.channels == 7
    assert newer.explain("transfer.channels").winner.source is Layer.SERVER
    assert older.settings.transfer.channels == 3
    assert [given.source for given in older.explain("transfer.channels").given] == [
        Layer.DEFAULT,
        Layer.SERVER,
        Layer.USER,
    ]


def test_the_server_counts_where_the_user_says_nothing(tmp_path):
    loaded = load(tmp_path, {"transfer.channels": "7"}, changed=-HOUR)

    assert loaded.settings.transfer.channels == 7


def test_without_a_known_time_the_users_file_counts(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("[transfer]\nchannels = 3\n")
    unknown = layer({"transfer.channels": "7"}, changed_at=None)

    loaded = load_settings(LayerSources(user=file, server=unknown, environment={}))
    assert loaded.settings.transfer.channels == 3


def test_a_locked_key_is_not_the_servers(tmp_path):
    managed = '[locked]\nkeys = ["transfer.channels"]\n[transfer]\nchannels = 2\n'
    loaded = load(tmp_path, {"transfer.channels": "7"}, managed=managed)

    assert loaded.settings.transfer.channels == 2
    assert any("is locked" in warning for warning in loaded.warnings)


def test_the_environment_is_stronger(tmp_path):
    loaded = load(tmp_path, {"transfer.channels": "7"}, MYDATA_LIKE_TRANSFER_CHANNELS="5")

    assert loaded.settings.transfer.channels == 5


def test_what_does_not_go_together_with_ours_stops_nothing(tmp_path):
    loaded = load(tmp_path, {"schedule.kind": "weekly"}, "[schedule]\nminutes = 9\n")

    assert loaded.settings.schedule.kind == "manual"
    assert loaded.settings.schedule.minutes == 9
    assert any("conflict with those" in warning for warning in loaded.warnings)


def test_the_server_may_set_refused_shown_or_quiet_settings_and_each_is_one_of_them():
    for key in settings_by_key():
        kinds = [kind for kind in (FORBIDDEN, SHOWN, QUIET) if matches(key, kind)]
        assert kinds, f"{key}: decide in settings/server_layer.py whether a server may set it"
        assert kinds[0] is FORBIDDEN or len(kinds) == 1, key


@pytest.mark.parametrize("key", ["FORBIDDEN", "SHOWN", "QUIET"])
def test_every_pattern_is_of_a_setting(key):
    for pattern in {"FORBIDDEN": FORBIDDEN, "SHOWN": SHOWN, "QUIET": QUIET}[key]:
        assert any(matches(key, (pattern,)) for key in settings_by_key()), pattern


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("folder_structure", "Email / Dataset"),
        ("data.layout", "Dataset"),
        ("data.group_prefix", "x"),
        ("data.unknown_owners", "skip"),
        ("monitor.notice_day", "never"),
        ("monitor.silent_hours", "0"),
        ("advanced.full_check_days", "365"),
    ],
)
def test_the_server_can_neither_give_folders_a_meaning_nor_silence_what_watches(key, text):
    found = layer({key: text})

    assert not found.values
    assert "only this computer may set it" in found.warnings[0]


@pytest.mark.parametrize("kind", ["manual", "once"])
def test_the_server_cannot_end_the_schedule(kind):
    here, _ = check_values({"schedule.kind": "daily"})
    texts = {"schedule.kind": kind, "schedule.date": "2026-06-04"}

    found = layer(texts, here)

    assert "schedule.kind" not in found.values
    assert f"only this computer may set it to {kind}" in found.warnings[0]
    assert layer({"schedule.kind": "manual"}).warnings == ()
    assert layer({"schedule_type": "Manually"}, here).values == {}
    assert layer({"schedule.kind": "timer"}, here).values == {"schedule.kind": "timer"}


def test_what_the_server_decides_otherwise_is_found_with_what_counts_without_it(tmp_path):
    user = '[filters]\nexcludes = ["*.tmp"]\nsettle_seconds = 5\n'
    texts = {
        "filters.excludes": "*.dat",
        "filters.settle_seconds": "2592000",
        "filters.owner": "",
        "transfer.channels": "2",
        "limits.quiet_hours": "00:00-24:00",
    }

    here = load(tmp_path, {}, user).settings
    server = layer(texts, here)
    file = tmp_path / "settings.toml"
    loaded = load_settings(LayerSources(user=file, server=server, environment={}))

    assert [decision.as_record() for decision in loaded.find_server_decisions()] == [
        {
            "setting": key,
            "value": value,
            "instead_of": instead_of,
            "origin": "data.example.org",
        }
        for key, value, instead_of in (
            ("filters.excludes", "*.dat", "*.tmp"),
            ("filters.settle_seconds", "2592000.0", "5.0"),
            ("limits.quiet_hours", "00:00-24:00", ""),
        )
    ]
