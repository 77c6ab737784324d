"""The support bundle holds what helps, and never a secret; where one wishes, no file's name."""

import json
import logging
import os
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.app.support_bundle import collect_documents, write_bundle
from mydata_like.cli.main import build_app
from mydata_like.core.errors import Problem, RunError
from mydata_like.core.events import FileFailed
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.hostos.logs import LogStyle, Redaction, logging_to
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.fakes.clock import FakeClock
from tests.umasks import has_mode

app = build_app()

KEY, PASSWORD = "c4n4ry0000111122223333444455556666777788", "hunter2hunter2"
NAMES = ("patient", "smith", "Secret study", "raw data", "who.knows")
logger = logging.getLogger("mydata_like.engine.send")


@pytest.fixture
def config(tmp_path, monkeypatch):
    """An installation with secrets and names in its settings, its log and its state."""
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path / "home"))
    data = tmp_path / "raw data"
    data.mkdir()
    config = tmp_path / "home" / "settings.toml"
    config.parent.mkdir()
    config.write_text(
        f'[server]\nurl = "https://data.example.org"\nusername = "demo"\n'
        f"[data]\ndirectory = '{data}'\n[filters]\nexcludes = [\"Secret study/*\"]\n"
        f'[monitor]\nsignal_url = "https://ping.example.org/{KEY}"\n'
    )
    secrets = config.with_name("secrets.toml")
    secrets.touch(mode=0o600)
    secrets.write_text(f'["https://data.example.org"]\ndemo = "{KEY}"\n')
    with logging_to(tmp_path / "home" / "logs", Redaction(), LogStyle()):
        write_log(str(data))
    return config


def write_log(data):
    """Log as the engine does: events, sentences and tracebacks, all with names in them."""
    path = b"smith/Secret study/who.knows"
    problem = Problem("file.changed", "smith/Secret study/who.knows changed.", "Wait.")
    logger.warning("%s", FileFailed(path=path, size=1, problem=problem, modified_ns=0))
    logger.info("Sending %s/patient 7/who.knows: as ApiKey demo:%s", data, KEY)
    logger.info("proxy http://me:%s@proxy.example.org", PASSWORD)
    try:
        Path(data, "patient (Smith)").read_bytes()
    except FileNotFoundError:
        logger.exception("It failed: patient%sError", "\n  smith\npatient")


def text_of(documents):
    return "\n".join(f"{document.name}\n{document.text}" for document in documents)


@pytest.mark.parametrize("names", [True, False])
def test_no_secret_gets_in(config, names):
    text = text_of(collect_documents(config, names=names))
    assert KEY not in text
    assert PASSWORD not in text
    assert "file.changed" in text
    assert "https://data.example.org" in text


def test_no_name_of_a_file_or_folder_gets_in_where_that_is_wished(config):
    text = text_of(collect_documents(config, names=False))
    told = [name for name in NAMES if name.lower() in text.lower()]
    assert told == []
    assert "FileFailed file.changed" in text
    assert "FileNotFoundError" in text
    assert "data.directory = (hidden)" in text


def test_no_name_of_an_unfinished_source_gets_in_where_that_is_wished(config):
    settings = load_settings(config).settings
    root = os.fsencode(str(settings.data.directory))
    file = ledger_file(settings, find_places(config), root)
    source = ExtraSource(b"/usb/patient 7", Destination("smith", "Secret study", "patient 7"))
    with SqliteLedger.open(file, root, FakeClock()) as ledger:
        ledger.record_source(source)

    assert "patient 7" in text_of(collect_documents(config, names=True))
    text = text_of(collect_documents(config, names=False))
    assert "unfinished_sources" in text
    assert [name for name in NAMES if name in text] == []


def test_what_helps_is_in_it(config):
    documents = {document.name: document.text for document in collect_documents(config, names=True)}
    assert set(documents) == {
        "README.txt",
        "versions.txt",
        "machine.txt",
        "settings.txt",
        "state.json",
        "mydata-like.log",
    }
    assert "Secret study/who.knows changed." in documents["mydata-like.log"]
    assert "filters.excludes = Secret study/*\n    from: user file" in documents["settings.txt"]
    assert json.loads(documents["state.json"])["running"] is False


def test_settings_that_are_wrong_are_no_hindrance(config):
    config.write_text('[server]\nurl = "patient"\n')
    documents = {document.name: document.text for document in collect_documents(config, names=True)}
    assert "cannot be read" in documents["settings.txt"]
    assert "patient" not in text_of(collect_documents(config, names=False))


def test_the_bundle_is_a_zip_file_of_ones_own(config, tmp_path):
    file = tmp_path / "help.zip"
    documents = collect_documents(config, names=True)
    write_bundle(file, documents)

    assert has_mode(file, 0o600)
    with zipfile.ZipFile(file) as bundle:
        assert {name: bundle.read(name).decode() for name in bundle.namelist()} == dict(documents)
    with pytest.raises(RunError):
        write_bundle(tmp_path / "none" / "help.zip", documents)


def test_the_command_writes_it(config, tmp_path):
    file = tmp_path / "help.zip"
    words = ["support-bundle", str(file), "--no-names", "--config", str(config)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert "Look into it before you send it" in result.output
    with zipfile.ZipFile(file) as bundle:
        assert "Names of files and folders were left out" in bundle.read("README.txt").decode()
