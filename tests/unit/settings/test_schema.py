from datetime import date
from pathlib import Path

import pytest

from mydata_like.settings.schema import (
    Settings,
    Transfer,
    check_values,
    find_missing,
    iter_settings,
    settings_by_key,
)

FINGERPRINT = "SHA256:" + "A" * 43


def problems_of(values):
    return {problem.key: problem.message for problem in check_values(values)[1]}


@pytest.mark.parametrize("setting", tuple(iter_settings()), ids=lambda setting: setting.key)
def test_every_setting_is_described(setting):
    help_text = setting.about.help

    assert setting.about.label
    assert help_text.endswith(".")
    assert help_text[0].isupper()


@pytest.mark.parametrize("setting", tuple(iter_settings()), ids=lambda setting: setting.key)
def test_every_number_has_limits_that_hold_its_default(setting):
    lowest, highest = setting.limits

    if setting.kind in (int, float):
        assert lowest <= setting.default <= highest


def test_defaults_are_right_and_lack_what_only_the_user_knows():
    settings, problems = check_values({})

    assert settings == Settings()
    assert not problems
    assert [setting.key for setting in find_missing(settings)] == [
        "server.url",
        "server.username",
        "instrument.name",
        "instrument.facility",
        "instrument.contact_name",
        "instrument.contact_email",
        "data.directory",
    ]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("server.url", "ftp://data.example.org", "must begin with https://"),
        ("server.url", "data.example.org", "must begin with https://"),
        ("server.url", "https://", "names no server"),
        ("server.url", "https://me:pw@data.example.org", "must not contain a user name"),
        ("server.url", "https://me@data.example.org", "must not contain a user name"),
        ("server.url", "https://data.example.org/?a=1", "no ?"),
        ("server.url", "https://data.example.org:99999", "is not a web address"),
        ("server.url", "http://data.example.org", "must begin with https:// (or set"),
        ("server.url", 3, "must be text"),
        ("server.allow_http", "yes", "must be true or false"),
        ("server.requests", 99, "must be at most 16"),
        ("schedule.date", "2026-02-30", "must be a date"),
        ("schedule.time", "25:00:00", "must be a time"),
        ("data.directory", "~no-such-account/data", "does not name a known home folder"),
        ("data.directory", "/data\0/more", "must not contain a NUL character"),
        ("server.requests", True, "must be a whole number"),
        ("server.requests", 2.5, "must be a whole number"),
        pytest.param("server.requests", 16**9999, "is not plain text or a number", id="huge"),
        ("server.read_timeout", float("nan"), "must be a finite number"),
        ("server.read_timeout", float("inf"), "must be a finite number"),
        ("server.read_timeout", 0, "must be at least 0.1"),
        ("instrument.name", "two\nlines", "one line"),
        ("instrument.name", "half a \ud800", "is not plain text or a number"),
        ("instrument.contact_email", "nobody", "must be an e-mail address"),
        ("data.directory", "data/here", "must be an absolute path"),
        ("data.directory", "/data\0", "NUL"),
        ("data.layout", "Dataset / Dataset", "must be one of: 'Username / Dataset'"),
        ("data.unknown_owners", "maybe", "must be one of: 'upload' or 'skip'"),
        ("filters.ignore_older_than", "6 moons", "such as"),
        ("filters.includes", "*.tif", "must be a list"),
        ("filters.includes", ["*.tif", 3], "(entry 2) must be text"),
        ("transfer.ciphers", ["3des-cbc"], "'3des-cbc' is not allowed"),
        ("transfer.ciphers", ["arcfour"], "'arcfour' is not allowed"),
        ("transfer.ciphers", ["aes128-cbc"], "'aes128-cbc' is not allowed"),
        ("transfer.ciphers", [], "at least one"),
        ("transfer.ciphers", ["aes128-ctr", "aes128-ctr"], "twice"),
        ("transfer.host_keys", ["MD5:00:11"], "must be a fingerprint"),
        ("schedule.time", "noon", "must be a time"),
        ("schedule.time", "18:30:00Z", "without a zone"),
        ("schedule.date", "tomorrow", "must be a date"),
        ("schedule.days", ["someday"], "(entry 1) must be one of: 'monday'"),
        ("monitor.notice_day", "someday", "'sunday' or 'never'"),
        ("monitor.silent_hours", 10**400, "must be at most 8760"),
        ("server.deadline", 10**400, "must be a finite number"),
        ("schedule.date", "2026-W01-1", "must be a date"),
        ("schedule.time", "1830", "must be a time"),
        ("server.nothing", 1, "is not a setting"),
        ("nothing.at_all", 1, "is not a setting"),
    ],
)
def test_a_wrong_value_is_named_in_words(key, value, message):
    problems = problems_of({key: value})

    assert list(problems) == [key]
    assert message in problems[key]


@pytest.mark.parametrize(
    ("key", "value", "checked"),
    [
        ("server.url", "https://data.example.org/mytardis/", "https://data.example.org/mytardis"),
        ("server.url", "http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("server.connect_timeout", 5, 5.0),
        ("data.directory", "", None),
        ("transfer.host_keys", [f"{FINGERPRINT}="], (FINGERPRINT,)),
        ("schedule.date", date(2026, 12, 31), date(2026, 12, 31)),
        ("schedule.days", ["monday", "friday"], ("monday", "friday")),
    ],
)
def test_a_right_value_has_one_spelling(key, value, checked):
    settings, problems = check_values({key: value})

    assert not problems
    assert settings.value(key) == checked


def test_a_path_may_begin_with_the_home_folder():
    settings, problems = check_values({"data.directory": "~/data"})

    assert not problems
    assert settings.data.directory == Path.home() / "data"


def test_http_to_another_machine_must_be_allowed():
    values = {"server.url": "http://data.example.org", "server.allow_http": True}

    assert not problems_of(values)


@pytest.mark.parametrize(("kind", "key"), [("once", "schedule.date"), ("weekly", "schedule.days")])
def test_a_schedule_that_could_never_start_is_refused(kind, key):
    assert list(problems_of({"schedule.kind": kind})) == [key]


def test_a_rule_for_a_section_is_checked_with_its_other_faults():
    problems = problems_of({"server.url": "http://data.example.org", "server.requests": 0})

    assert set(problems) == {"server.url", "server.requests"}


@pytest.mark.parametrize(("method", "limit"), [("ssh", 1000), ("folder", 100), ("s3", 25)])
def test_channels_share_tiny_files_where_each_sends_one_after_the_other(method, limit):
    assert Transfer(method=method, folder="/mnt/staging").batch_limit == limit
    assert Transfer(method=method, folder="/mnt/staging", batch_files=7).batch_limit == 7


def test_all_defaults_can_be_given_back():
    values = {key: setting.default for key, setting in settings_by_key().items()}

    assert check_values({k: v for k, v in values.items() if v is not None})[0] == Settings()
