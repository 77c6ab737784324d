"""`mydata-like sources`: what was added and is not safe yet."""

import json
import os

import pytest
from typer.testing import CliRunner

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.cli.main import build_app
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.core.local_files import LocalFile
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger

app = build_app()


@pytest.fixture
def config(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "usb").mkdir()
    path = tmp_path / "settings.toml"
    state, data = tmp_path / "state", tmp_path / "data"
    path.write_text(f"[data]\ndirectory = '{data}'\n[advanced]\nstate_directory = '{state}'\n")
    settings, root, clock = load_settings(path).settings, os.fsencode(data), SystemClock()
    with SqliteLedger.open(ledger_file(settings, find_places(path), root), root, clock) as ledger:
        for name in (b"usb", b"away"):
            place = os.fsencode(tmp_path.as_posix()) + b"/" + name
            ledger.record_source(ExtraSource(place, Destination("", "Mice", "Day 1")))
        key = os.fsencode(tmp_path.as_posix()) + b"/away/a.tif"
        found = LocalFile(key, key, b"", b"a.tif", 2000, 7, 1, 2**64 - 1)
        ledger.record_found([found], clock.now())
        assert ledger.find_open([found]).keys == {key}
    return path


def ask(config, *words):
    return CliRunner().invoke(app, ["sources", "--config", str(config), *words])


def test_what_is_unfinished_is_listed_with_what_is_open(config, tmp_path):
    assert ask(config).output.splitlines() == [
        f"{tmp_path.as_posix()}/away  becomes Mice/Day 1",
        "  It cannot be found now: connect its drive, or remove it with --remove.",
        "  Only there: 1 file, 2.0 kB",
        f"{tmp_path.as_posix()}/usb  becomes Mice/Day 1",
        "  What is in it is looked at by the next run.",
    ]


def test_programs_get_the_same_answer(config, tmp_path):
    away, usb = json.loads(ask(config, "--json").output)["sources"]

    assert (away["path"], away["there"]) == (f"{tmp_path.as_posix()}/away", False)
    assert (away["at_risk"]["files"], away["at_risk"]["bytes"]) == (1, 2000)
    assert (usb["there"], usb["destination"]["dataset"]) == (True, "Day 1")


def test_one_that_is_removed_is_listed_no_longer(config, tmp_path):
    told = ask(config, "--remove", f"{tmp_path}/away/", "--json")

    (left,) = json.loads(told.output)["sources"]
    assert left["path"] == f"{tmp_path.as_posix()}/usb"


def test_what_is_unknown_cannot_be_removed(config, tmp_path):
    refused = ask(config, "--remove", str(tmp_path / "other"))

    assert refused.exit_code == 2
    assert "source.unknown" in refused.output
