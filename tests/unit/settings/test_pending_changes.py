"""Settings while they are being edited."""

import datetime

import pytest

from mydata_like.settings.layers import Layer, LayerSources, read_layers
from mydata_like.settings.pending_changes import PendingChanges
from mydata_like.settings.server_layer import ServerLayer


@pytest.fixture
def write(tmp_path):
    """Return what writes the files, and opens a draft over them."""

    def write_it(user="", managed="", server=None, environment=None):
        files = {"user.toml": user, "managed.toml": managed}
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        layer = ServerLayer(server, "data.example.org", None) if server else None
        sources = LayerSources(
            user=tmp_path / "user.toml",
            managed=tmp_path / "managed.toml",
            server=layer,
            environment=environment or {},
        )
        return PendingChanges(read_layers(sources))

    return write_it


def test_a_change_takes_effect_at_once_and_is_reported_once(write):
    draft = write("[transfer]\nchannels = 3\n")

    draft.set("transfer.channels", 5)

    assert draft.value("transfer.channels") == 5
    assert draft.settings.transfer.channels == 5
    assert draft.changes == {"transfer.channels": 5}


def test_a_value_of_an_earlier_version_is_shown_as_the_one_in_its_place(write):
    assert write('[transfer]\nssh = "system"\n').value("transfer.ssh") == "paramiko"


def test_an_equal_value_is_not_a_change(write):
    draft = write("[transfer]\nchannels = 3\n")

    draft.set("transfer.channels", 5)
    draft.set("transfer.channels", 3)
    draft.set("schedule.time", "00:00:00")

    assert draft.changes == {}


def test_a_reset_lets_the_other_layers_decide(write):
    draft = write("[transfer]\nchannels = 3\n", "[transfer]\nchannels = 7\n")

    draft.reset("transfer.channels")

    assert draft.value("transfer.channels") == 7
    assert draft.winner("transfer.channels").source is Layer.MANAGED
    assert draft.changes == {"transfer.channels": None}
    assert not draft.is_own("transfer.channels")


def test_a_reset_of_what_is_not_in_the_file_takes_the_change_back(write):
    draft = write()

    draft.set("transfer.channels", 5)
    draft.reset("transfer.channels")

    assert draft.changes == {}


def test_a_setting_of_the_server_is_shown_with_its_source(write):
    draft = write(server={"transfer.channels": 4})

    assert draft.value("transfer.channels") == 4
    assert draft.winner("transfer.channels").source is Layer.SERVER


def test_the_source_of_a_locked_setting_is_named_and_the_lock_holds(write):
    locked = '[transfer]\nchannels = 7\n[locked]\nkeys = ["*.channels"]\nby = "Facility IT"\n'
    draft = write("[transfer]\nchannels = 3\n", locked)

    assert draft.fixed_by("transfer.channels").startswith("Facility IT (")
    assert draft.value("transfer.channels") == 7
    assert draft.take({"transfer.channels": 2, "transfer.attempts": 9}) == ("transfer.channels",)
    assert draft.changes == {"transfer.attempts": 9}


def test_a_variable_of_the_environment_stands_above_the_file(write):
    draft = write("[transfer]\nchannels = 3\n", environment={"MYDATA_LIKE_TRANSFER_CHANNELS": "6"})

    assert draft.value("transfer.channels") == 6
    assert draft.fixed_by("transfer.channels") == "MYDATA_LIKE_TRANSFER_CHANNELS"


def test_an_invalid_file_can_be_inspected_and_fixed(write):
    draft = write('[transfer]\nchannels = "many"\n[server]\nbogus = 1\n')

    assert draft.value("transfer.channels") == "many"
    assert draft.problems == {"transfer.channels": "must be a whole number"}
    assert draft.wrong_keys == ["transfer.channels"]
    assert [problem.key for problem in draft.file_problems] == ["server.bogus"]

    draft.set("transfer.channels", 2)
    assert draft.problems == {}
    assert draft.wrong_keys == []


def test_settings_that_do_not_go_together_are_reported(write):
    draft = write()

    draft.set("schedule.kind", "weekly")

    assert list(draft.problems) == ["schedule.days"]
    assert draft.settings is None


def test_a_part_is_right_although_another_is_wrong(write):
    draft = write()
    draft.set("server.url", "ftp://nowhere")
    draft.set("schedule.kind", "daily")

    part = draft.part("schedule")

    assert part.schedule.kind == "daily"
    assert draft.part("server") is None


def test_days_and_times_of_the_file_are_text_like_all_others(write):
    draft = write("[schedule]\ntime = 18:30:00\ndate = 2026-12-31\n")

    assert draft.value("schedule.time") == "18:30:00"
    assert draft.value("schedule.date") == "2026-12-31"
    assert draft.settings.schedule.date == datetime.date(2026, 12, 31)


def test_own_values_are_those_of_the_file_with_the_changes(write):
    draft = write("[transfer]\nchannels = 3\nattempts = 2\n", "[limits]\nbandwidth = 5\n")

    draft.reset("transfer.attempts")
    draft.set("window.theme", "dark")

    assert draft.own_values() == {"transfer.channels": 3, "window.theme": "dark"}
