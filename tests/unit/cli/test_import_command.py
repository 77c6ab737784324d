"""`mydata-like settings import`, and how people who come from MyData hear of it."""

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydata_like.app.mydata_import import CurrentSettings
from mydata_like.app.settings_service import HOME
from mydata_like.cli.main import build_app
from mydata_like.settings.layers import LayerSources, load_settings
from mydata_like.settings.mydata_cfg import usual_places
from mydata_like.state.paths import StatePaths
from tests.legacy import WINDOWS_PAIRS, write_legacy, write_old_key
from tests.umasks import posix_modes

app = build_app()

DATA = str(Path("C:/data" if os.name == "nt" else "/data") / "Größe 100%")
NOWHERE = Path("/nowhere/MyData.cfg")
KEY = WINDOWS_PAIRS["api_key"]
PAIRS = {**WINDOWS_PAIRS, "data_directory": DATA, "use_excludes_file": "False"}
INTO_FILE = ("--key-store", "file")
COMMANDS = [("settings", "check"), ("status",), ("run",), ("scan",), ("register",)]


KEPT = {"MYDATA_LIKE_LIMITS_LOW_PRIORITY": "false"}  # the priority of this process, for good


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def old():
    """MyData's file in its usual place."""
    return write_legacy(usual_places(os.environ, sys.platform, Path.home())[0], PAIRS)


@pytest.fixture
def call(home):
    def call(*words, **variables):
        result = CliRunner().invoke(app, words, env={HOME: str(home), **variables})
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert KEY not in result.output
        return result

    return call


@pytest.fixture
def take_over(call):
    return lambda *words: call("settings", "import", *INTO_FILE, *words)


@pytest.fixture
def value_of(call):
    return lambda key: call("settings", "get", key).stdout.removesuffix("\n")


def test_all_of_mydata_is_taken_over_from_its_usual_place(home, old, take_over, call, value_of):
    key = write_old_key(Path.home() / ".ssh" / "MyData")

    result = take_over()

    assert result.exit_code == 0, result.stderr
    assert call("settings", "check").exit_code == 0
    assert value_of("data.directory") == DATA
    assert value_of("instrument.name") == "Röntgen 3"
    assert value_of("instrument.uuid") == PAIRS["uuid"]
    assert value_of("transfer.key_file") == str(key.path)
    assert key.public.fingerprint in result.stdout
    assert KEY in (home / "secrets.toml").read_text()
    assert KEY not in (home / "settings.toml").read_text()
    assert KEY in old.read_text("cp1252")


def test_a_preview_shows_everything_and_changes_nothing(home, old, take_over):
    before = old.read_bytes()

    result = take_over("--preview", "--blank-old-key")

    assert result.exit_code == 0
    assert f"data.directory = {DATA}" in result.stdout
    assert "nothing has been changed" in result.stdout
    assert not home.exists()
    assert old.read_bytes() == before


def test_every_old_key_is_reported_to_programs(old, take_over):
    record = json.loads(take_over("--json").stdout)

    assert sorted(entry["key"] for entry in record["keys"]) == sorted(PAIRS)
    assert record["changes"]["data.directory"] == DATA
    assert record["api_key"] == "stored"
    assert record["encoding"] == "cp1252"
    assert record["missing"] == []


def test_a_second_time_changes_nothing(home, old, take_over):
    take_over()
    before = (home / "settings.toml").read_bytes()

    record = json.loads(take_over("--json").stdout)

    assert (record["changes"], record["kept"], record["api_key"]) == ({}, [], "known")
    assert (home / "settings.toml").read_bytes() == before


def test_settings_of_ones_own_stay_unless_forced(old, take_over, call, value_of):
    call("settings", "set", "instrument.name", "Mine")

    first = take_over()
    assert "instrument.name = Mine; MyData has Röntgen 3" in first.stdout
    assert value_of("instrument.name") == "Mine"
    assert value_of("instrument.facility") == "Bildgebung"
    take_over("--force")

    assert value_of("instrument.name") == "Röntgen 3"


def test_an_identity_and_a_key_of_ones_own_stay_unless_forced(home, old, take_over, value_of):
    write_old_key(Path.home() / ".ssh" / "MyData")
    for path, text in ((home / "state" / "uploader-uuid", "own"), (home / "ssh/id_ed25519", "")):
        path.parent.mkdir(parents=True)
        path.write_text(text)

    result = take_over()

    assert "instrument.uuid = own; MyData has" in result.stdout
    assert "is not used: another one is set here" in result.stdout
    assert value_of("instrument.uuid") == value_of("transfer.key_file") == ""
    take_over("--force")
    assert value_of("instrument.uuid") == PAIRS["uuid"]
    assert value_of("transfer.key_file")


def test_locked_settings_stay_even_when_forced(tmp_path):
    managed = tmp_path / "managed.toml"
    managed.write_text('[locked]\nkeys = ["transfer.*"]\nby = "IT"\n')
    sources = LayerSources(user=tmp_path / "settings.toml", managed=managed, environment={})
    present = CurrentSettings(load_settings(sources), StatePaths.below(tmp_path))

    changes, (kept,) = present.compare({"transfer.channels": 8, "server.requests": 2}, force=True)

    assert changes == {"server.requests": 2}
    assert (kept.key, kept.value, kept.offered) == ("transfer.channels", 0, 8)
    assert kept.locked_by == f"IT ({managed})"


@pytest.mark.process  # to look for the keyring's library
def test_without_a_keyring_nothing_is_changed_at_all(home, old, call):
    result = call("settings", "import", "--blank-old-key")

    assert result.exit_code == 2
    assert "--key-store file" in result.stderr
    assert not (home / "settings.toml").exists()
    assert KEY in old.read_text("cp1252")


def test_the_old_key_is_blanked_only_when_asked(old, take_over):
    before = old.read_bytes()

    result = take_over("--blank-old-key")

    assert "no longer in" in result.stdout
    assert old.read_bytes() == before.replace(f" {KEY}".encode(), b"")


def test_another_key_that_is_stored_already_stays_unless_forced(home, old, take_over):
    take_over()
    secrets = home / "secrets.toml"
    secrets.write_text(secrets.read_text().replace(KEY, "newer"))

    assert "Another API key" in take_over("--blank-old-key").stdout
    assert "newer" in secrets.read_text()
    assert KEY in old.read_text("cp1252")
    take_over("--force")

    assert KEY in secrets.read_text()


def test_a_server_without_encryption_has_to_be_allowed_first(old, take_over, call, value_of):
    write_legacy(old, PAIRS | {"mytardis_url": "http://mytardis.example.org/"})

    first = take_over("--blank-old-key")
    assert "mytardis_url: must begin with https:// (or set server.allow_http" in first.stdout
    assert "server.url is still missing" in first.stdout
    assert KEY in old.read_text("cp1252")
    call("settings", "set", "server.allow_http", "true")
    take_over()

    assert value_of("server.url") == "http://mytardis.example.org"


@pytest.mark.usefixtures("old")
@pytest.mark.parametrize(
    ("spoil", "told", "used"),
    [
        pytest.param(lambda path: path.chmod(0o644), "chmod 600", True, marks=posix_modes),
        (lambda path: path.write_bytes(b"no key"), "No SSH key", False),
        (lambda path: path.unlink(), "No SSH key", False),
    ],
    ids=["exposed", "broken", "missing"],
)
def test_an_old_ssh_key_with_a_fault_is_reported(take_over, value_of, spoil, told, used):
    path = write_old_key(Path.home() / ".ssh" / "MyData").path
    spoil(path)

    result = take_over()

    assert result.exit_code == 0
    assert told in result.stdout
    assert value_of("transfer.key_file") == (str(path) if used else "")


def test_unknown_lines_are_reported_and_the_rest_is_accepted(old, take_over, value_of):
    write_legacy(old, PAIRS | {"timer_minutes": "often", "Locked ": "True", "colour": "red"})

    result = take_over()

    assert result.exit_code == 0
    assert "timer_minutes: must be a whole number" in result.stdout
    assert "colour: MyData has no such key" in result.stdout
    assert "locked occurs several times" in result.stdout
    assert value_of("instrument.name") == "Röntgen 3"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "No MyData.cfg was found in"),
        ((str(NOWHERE),), f"There is no file {NOWHERE}"),
        ((__file__,), "is not a MyData.cfg"),
    ],
)
def test_without_such_a_file_there_is_nothing_to_take_over(home, take_over, words, message):
    result = take_over(*words)

    assert result.exit_code == 2
    assert message in result.stderr
    assert not home.exists()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_without_settings_the_import_from_mydata_is_suggested(home, old, call, command):
    result = call(*command, **KEPT)

    assert f"MyData's settings are in {old}. Import them: mydata-like" in result.output

    config = home / "other settings.toml"
    config.parent.mkdir(exist_ok=True)
    config.touch()
    assert (
        f'settings import --config "{config}"\n'
        in call(*command, "--config", config, **KEPT).output
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_with_settings_the_import_from_mydata_is_not_suggested(old, call, command):
    call("settings", "set", "server.username", "me")

    assert "MyData" not in call(*command, **KEPT).output
