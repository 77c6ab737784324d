"""Reading settings for a dialog, and writing what was changed there."""

import sys

import pytest

from mydata_like.app.settings_edit import (
    CHANGED_ELSEWHERE,
    SettingsEdit,
    export_settings,
    open_draft,
    read_proposal,
    save_edit,
)
from mydata_like.app.settings_service import Secret, find_api_key, load_settings, open_secrets
from mydata_like.core.errors import SettingsError
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.pending_changes import SecretChange
from tests.umasks import has_mode

FILE = """\
# The file of the microscope.
[server]
url = "https://data.example.org"  # ours
username = "facility"

[monitor]
signal_url = "https://ping.example.org/4711"
"""


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(FILE)
    return file


def edition(config, changes, *secrets):
    draft = open_draft(config)
    draft.take(changes)
    return SettingsEdit(
        changes=draft.changes, seen=draft.seen, settings=draft.settings, secrets=secrets
    )


def test_only_what_was_changed_is_written_and_comments_stay(config):
    save_edit(config, edition(config, {"transfer.channels": 4}))

    assert config.read_text() == f"{FILE}\n[transfer]\nchannels = 4\n"


def test_a_file_that_is_not_there_is_made(tmp_path):
    config = tmp_path / "new" / "settings.toml"

    save_edit(config, edition(config, {"server.url": "https://a.example.org"}))

    assert load_settings(config).settings.server.url == "https://a.example.org"
    assert has_mode(config, 0o600)


def test_a_file_changed_by_another_program_is_left_as_it_is(config):
    mine = edition(config, {"transfer.channels": 4})
    config.write_text(FILE.replace("facility", "other"))

    with pytest.raises(SettingsError) as caught:
        save_edit(config, mine)

    assert caught.value.problem_code == CHANGED_ELSEWHERE
    assert config.read_text() == FILE.replace("facility", "other")


def test_what_would_be_wrong_is_not_written(config):
    with pytest.raises(InvalidSettingsError):
        save_edit(config, edition(config, {"server.url": "ftp://x"}))

    assert config.read_text() == FILE


@pytest.mark.process
def test_the_api_key_goes_to_its_store_and_not_into_the_file(config):
    change = SecretChange("a" * 40, "file")
    save_edit(config, edition(config, {}, change))

    settings = load_settings(config).settings
    assert find_api_key(settings, open_secrets(config))[1] == "the secrets file"
    assert config.read_text() == FILE

    save_edit(config, edition(config, {}, SecretChange(None)))
    assert "a" * 40 not in config.with_name("secrets.toml").read_text()


def test_a_key_of_a_new_account_is_kept_for_that_account(config):
    change = SecretChange("b" * 40, "file")
    save_edit(config, edition(config, {"server.username": "other"}, change))

    assert 'other = "bbb' in config.with_name("secrets.toml").read_text()


def test_a_key_without_a_server_and_an_account_is_not_kept(tmp_path):
    config = tmp_path / "settings.toml"
    change = SecretChange("b" * 40, "file")

    with pytest.raises(SettingsError, match="belongs to a server and an account"):
        save_edit(config, SettingsEdit(changes={}, seen=b"", secrets=(change,)))


def test_an_empty_key_is_refused_and_deletes_nothing(config):
    save_edit(config, edition(config, {}, SecretChange("a" * 40, "file")))

    with pytest.raises(SettingsError, match="not a valid key"):
        save_edit(config, edition(config, {}, SecretChange("", "file")))

    settings = load_settings(config).settings
    assert find_api_key(settings, open_secrets(config))[1] == "the secrets file"


def test_a_key_to_be_stored_does_not_show_itself():
    assert "secret" not in repr(SecretChange("secret", "file"))


@pytest.mark.skipif(sys.platform != "linux", reason="where the entry lies differs")
def test_the_start_at_a_login_follows_when_it_is_saved(config, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))

    save_edit(config, edition(config, {"window.start_at_login": True}))
    assert len(list((tmp_path / "xdg" / "autostart").iterdir())) == 1

    save_edit(config, edition(config, {"window.start_at_login": None}))
    assert list((tmp_path / "xdg" / "autostart").iterdir()) == []


def test_an_export_holds_no_secret_and_nothing_of_this_computer_alone(config, tmp_path):
    draft = open_draft(config)
    draft.set("instrument.uuid", "4711")
    export_settings(draft.own_values(), tmp_path / "out.toml")

    text = (tmp_path / "out.toml").read_text()
    assert "4711" not in text
    assert read_proposal(tmp_path / "out.toml", config).changes == {
        "server.url": "https://data.example.org",
        "server.username": "facility",
    }


def test_a_file_of_another_computer_keeps_this_ones_identity(config, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text('[instrument]\nuuid = "1"\nname = "Scope"\n[server]\nbogus = 1\n')

    proposal = read_proposal(other, config)

    assert proposal.changes == {"instrument.name": "Scope"}
    assert "server.bogus" in proposal.remarks[0]


def test_a_file_that_holds_no_settings_is_refused(config, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text("= nonsense")

    with pytest.raises(SettingsError, match="is not TOML"):
        read_proposal(other, config)


def test_a_mydata_cfg_proposes_settings_and_key_and_lists_what_stays(config, tmp_path):
    old = tmp_path / "MyData.cfg"
    old.write_text(
        "[MyData]\nmytardis_url = https://data.example.org\nusername = facility\n"
        "instrument_name = Scope\napi_key = 0123456789\nfoo = 1\n"
    )

    proposal = read_proposal(old, config)

    assert proposal.changes["instrument.name"] == "Scope"
    assert proposal.secret == Secret("0123456789")
    assert any("foo" in remark for remark in proposal.remarks)
    assert config.read_text() == FILE
