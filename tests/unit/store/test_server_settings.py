"""When the server's settings were changed, whatever its clock shows."""

from datetime import UTC, datetime, timedelta

import pytest

from mydata_like.store.server_settings import (
    ServerSettings,
    first_seen,
    load_server_settings,
    save_server_settings,
)

NOON = datetime(2026, 6, 3, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
TEXTS = {"contact_name": "Ann Lee"}


def in_melbourne(moment, *, summer=False):
    """What a server in Melbourne writes for a moment."""
    return (moment + (11 if summer else 10) * HOUR).replace(tzinfo=None).isoformat()


def known(changed_at=NOON - 5 * HOUR, seen_at=NOON):
    """What is known of a server whose clock was learnt in winter."""
    first = first_seen(TEXTS, in_melbourne(changed_at), seen_at)
    return first.learn(in_melbourne(seen_at), seen_at)


def test_at_first_nobody_knows_when_settings_were_changed():
    assert first_seen(TEXTS, in_melbourne(NOON), NOON).changed_at is None


def test_the_clock_that_is_learnt_tells_when_they_were_changed():
    kept = known()

    assert kept.offset == 10 * 3600
    assert kept.changed_at == NOON - 5 * HOUR


def test_what_we_made_the_server_write_is_no_change():
    kept = known()
    later = kept.renew(TEXTS, in_melbourne(NOON), NOON + HOUR)

    assert later.changed_at == NOON - 5 * HOUR


def test_a_later_change_has_its_time():
    changed = NOON + HOUR
    kept = known().renew({}, in_melbourne(changed), NOON + 3 * HOUR)

    assert (kept.texts, kept.changed_at) == ({}, changed)


@pytest.mark.parametrize("summer", [True, False])
def test_a_change_was_never_before_we_asked_nor_after_we_ask(summer):
    changed = NOON + HOUR / 2
    text = in_melbourne(changed + (0 if summer else -9) * HOUR, summer=summer)
    kept = known().renew({}, text, NOON + HOUR)

    assert NOON <= kept.changed_at <= NOON + HOUR


def test_a_change_is_noticed_even_where_the_clock_is_unknown():
    kept = first_seen(TEXTS, "2026-06-03T10:00:00", NOON).renew({}, "garbage", NOON + HOUR)

    assert kept.changed_at == NOON + HOUR


@pytest.mark.parametrize("updated", ["0001-01-01T00:00:00", "9999-12-31T23:59:59"])
@pytest.mark.parametrize("offset", [-86_400.0, 86_400.0, 1e300, float("nan")])
def test_a_time_beyond_every_calendar_is_not_known(updated, offset):
    kept = known()._replace(offset=offset)

    later = kept.renew(TEXTS, updated, NOON + HOUR)

    assert NOON <= later.changed_at <= NOON + HOUR
    assert (later.texts, later.updated) == (TEXTS, updated)


def test_it_is_there_again_next_time(tmp_path):
    file = tmp_path / "state" / "server-settings.json"
    save_server_settings(file, known())

    assert load_server_settings(file) == known()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"texts": 1}', "\0"])
def test_a_damaged_file_keeps_nothing(tmp_path, content):
    file = tmp_path / "server-settings.json"
    file.write_text(content)

    assert load_server_settings(file) is None


def test_never_changed_settings_have_no_time():
    assert ServerSettings({}, "", None, NOON).learn("", NOON).changed_at is None
