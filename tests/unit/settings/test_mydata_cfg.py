"""What MyData's keys become, one by one and all together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.model import Layout
from mydata_like.settings.mydata_cfg import WITHOUT_SETTING, Conversion, translate
from mydata_like.settings.schema import check_values, iter_settings
from tests.legacy import OF_MYDATA, WINDOWS_PAIRS
from tests.privileges import ROOT

OLD_KEYS = [*OF_MYDATA, "upload_invalid_user_or_group_folders"]
CARRIED, CHANGED, LEFT, UNUSABLE = list(Conversion)[:4]


def only(pairs, key):
    """Return the value that some pairs give to one setting, with what became of the first."""
    translation = translate(pairs)
    first = next(iter(pairs)).lower()
    old = next(entry for entry in translation.keys if entry.name == first)
    assert translation.values.keys() <= {key}
    return translation.values.get(key), old.becoming


def test_each_key_of_mydata_has_a_setting_or_a_reason_why_not():
    legacy = [key for setting in iter_settings() for key in setting.about.legacy]

    assert sorted([*legacy, *WITHOUT_SETTING]) == sorted(OLD_KEYS)


def test_a_whole_file_is_imported_and_each_of_its_keys_is_reported():
    translation = translate(WINDOWS_PAIRS)

    assert sorted(old.name for old in translation.keys) == sorted(WINDOWS_PAIRS)
    settings, problems = check_values(
        translation.values | {"data.directory": f"{ROOT}data", "filters.excludes_file": f"{ROOT}x"}
    )
    assert not problems
    assert settings is not None
    assert settings.server.url == "https://mytardis.example.org"
    assert settings.data.layout is Layout.GROUP_EXPERIMENT_DATASET
    assert settings.filters.ignore_older_than == "6 months"
    assert settings.filters.settle_seconds == 300
    assert settings.schedule.kind == "weekly"
    assert settings.schedule.days == ("monday", "thursday")
    assert settings.transfer.method == "auto"
    assert settings.transfer.channels == 8
    assert settings.window.start_at_login


def test_no_word_about_the_api_key_but_that_it_is_none_of_the_settings():
    translation = translate({"API_Key": "canary"})

    assert "canary" not in repr(translation)
    assert translation.values == {}
    assert [old.name for old in translation.keys] == ["api_key"]


@pytest.mark.parametrize("layout", list(Layout))
def test_every_layout_has_its_text(layout):
    assert only({"folder_structure": layout.value}, "data.layout") == (layout.value, CARRIED)


@pytest.mark.parametrize(
    ("pairs", "key", "value", "becoming"),
    [
        ({"MyTardis_URL": " https://a.org/ "}, "server.url", "https://a.org/", CARRIED),
        ({"mytardis_url": "http://a.org"}, "server.url", "http://a.org", CARRIED),
        ({"mytardis_url": "a.org"}, "server.url", None, UNUSABLE),
        ({"mytardis_url": ""}, "server.url", None, LEFT),
        ({"contact_email": "Ann"}, "instrument.contact_email", None, UNUSABLE),
        ({"instrument_name": "two\nlines"}, "instrument.name", None, UNUSABLE),
        ({"data_directory": f"{ROOT}100 % sure"}, "data.directory", f"{ROOT}100 % sure", CARRIED),
        ({"data_directory": "data"}, "data.directory", None, UNUSABLE),
        ({"folder_structure": "Nobody / Dataset"}, "data.layout", None, UNUSABLE),
        ({"group_prefix": ""}, "data.group_prefix", "", CARRIED),
        ({"upload_invalid_user_folders": "False"}, "data.unknown_owners", "skip", CARRIED),
        ({"upload_invalid_user_folders": "perhaps"}, "data.unknown_owners", None, UNUSABLE),
        ({"user_filter": "2024"}, "filters.owner", "2024", CARRIED),
        ({"user_filter": "Ann"}, "filters.owner", "Ann", CHANGED),
        ({"dataset_filter": "a[1]"}, "filters.dataset", "a[1]", CHANGED),
        ({"ignore_interval_number": "3"}, "filters.ignore_older_than", None, LEFT),
        ({"ignore_old_datasets": "False"}, "filters.ignore_older_than", "", CARRIED),
        ({"ignore_old_datasets": "yes!"}, "filters.ignore_older_than", None, UNUSABLE),
        ({"ignore_new_files": "False"}, "filters.settle_seconds", 0.0, CARRIED),
        ({"ignore_new_files": "True"}, "filters.settle_seconds", 60.0, CARRIED),
        ({"ignore_new_files_minutes": "soon"}, "filters.settle_seconds", None, UNUSABLE),
        ({"ignore_new_files_minutes": "9" * 999}, "filters.settle_seconds", None, UNUSABLE),
        ({"ignore_new_files_minutes": "90000"}, "filters.settle_seconds", 2592000.0, CHANGED),
        ({"includes_file": "/in.txt"}, "filters.includes_file", None, LEFT),
        ({"use_includes_file": "True"}, "filters.includes_file", None, UNUSABLE),
        ({"upload_method": "ParallelSSH"}, "transfer.method", "auto", CARRIED),
        ({"upload_method": "OpenSSH 7.9"}, "transfer.method", "auto", CARRIED),
        ({"upload_method": "Chunked"}, "transfer.method", "http", CARRIED),
        ({"upload_method": "Carrier pigeon"}, "transfer.method", None, UNUSABLE),
        ({"max_upload_threads": "5"}, "transfer.channels", None, LEFT),
        ({"max_upload_threads": "10"}, "transfer.channels", 10, CARRIED),
        ({"max_upload_threads": "99"}, "transfer.channels", 32, CHANGED),
        ({"max_upload_threads": "many"}, "transfer.channels", None, UNUSABLE),
        ({"max_upload_retries": "3"}, "transfer.attempts", 4, CARRIED),
        ({"max_upload_retries": "-9"}, "transfer.attempts", 1, CHANGED),
        ({"cipher": "aes128-gcm@openssh.com,aes128-ctr"}, "transfer.ciphers", None, LEFT),
        ({"cipher": "aes256-ctr, arcfour"}, "transfer.ciphers", ["aes256-ctr"], CHANGED),
        ({"cipher": "arcfour"}, "transfer.ciphers", None, LEFT),
        ({"connection_timeout": "nan"}, "server.connect_timeout", None, UNUSABLE),
        ({"connection_timeout": "2.5"}, "server.connect_timeout", 2.5, CARRIED),
        ({"max_verification_threads": "20"}, "server.requests", 16, CHANGED),
        ({"schedule_type": "On Startup"}, "schedule.kind", "startup", CARRIED),
        ({"schedule_type": "Weekly"}, "schedule.kind", "manual", CHANGED),
        ({"schedule_type": "Once"}, "schedule.kind", None, UNUSABLE),
        ({"schedule_type": "Hourly"}, "schedule.kind", None, UNUSABLE),
        ({"schedule_type": "Once", "scheduled_date": "soon"}, "schedule.kind", None, UNUSABLE),
        ({"scheduled_date": "2026-12-31"}, "schedule.date", None, LEFT),
        ({"scheduled_time": "18:30:00"}, "schedule.time", "18:30:00", CARRIED),
        ({"sunday_checked": "Truth"}, "schedule.days", None, UNUSABLE),
        ({"timer_minutes": "2000"}, "schedule.minutes", 1440, CHANGED),
        ({"timer_from_time": "00:00:00"}, "schedule.from_time", "00:00:00", CARRIED),
        ({"timer_to_time": "18:00:00"}, "schedule.to_time", "18:00:00", CHANGED),
        ({"on_start_run": "Minimized"}, "window.opens", "minimized", CARRIED),
        ({"start_automatically_on_login": "True"}, "window.start_at_login", True, CARRIED),
    ],
)
def test_a_value_is_converted_or_reported(pairs, key, value, becoming):
    assert only(pairs, key) == (value, becoming)


def test_the_newer_of_two_names_counts():
    pairs = {"upload_invalid_user_or_group_folders": "False", "upload_invalid_user_folders": "True"}

    assert only(pairs, "data.unknown_owners") == ("skip", CHANGED)


def test_a_weekly_schedule_with_an_unknown_day_is_left_alone():
    translation = translate({"schedule_type": "Weekly", "monday_checked": "oui"})

    assert translation.values == {}
    assert {old.becoming for old in translation.keys} == {UNUSABLE}


@pytest.mark.parametrize("key", [key for key in OLD_KEYS if key != "api_key"])
def test_everything_but_what_is_carried_to_the_letter_has_its_reason(key):
    for text in ("", "True", "x", "7", "/path"):
        for old in translate({key: text}).keys:
            assert old.reason or old.becoming is CARRIED, old


def test_a_key_mydata_does_not_have_is_reported_with_the_one_that_was_meant():
    (old,) = translate({"instrument_nmae": "x"}).keys

    assert old.becoming is Conversion.UNKNOWN
    assert "did you mean instrument_name?" in old.reason


def test_a_run_that_starts_once_has_its_date():
    translation = translate({"schedule_type": "Once", "scheduled_date": "2026-12-31"})

    assert translation.values == {"schedule.kind": "once", "schedule.date": "2026-12-31"}


TEXTS = ["True", "False", "Weekly", "Once", "Daily", "2026-12-31", "18:00:00", "4", "months", ""]


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(OLD_KEYS) | st.text(), st.sampled_from(TEXTS) | st.text(), max_size=57
    )
)
def test_whatever_a_file_says_its_values_are_right_together(pairs):
    translation = translate(pairs)

    assert {old.name for old in translation.keys} == {key.strip().lower() for key in pairs}
    assert not check_values({"server.allow_http": True, **translation.values})[1]
