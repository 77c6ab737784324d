"""What the program does not import: a start is as cheap as what it loads."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "PySide6", "asyncio", "botocore", "keyring", "paramiko", "pathspec", "pydantic", "requests",
    "rich", "tomlkit", "typer", "watchdog",
}  # fmt: skip
LIBRARIES = HEAVY | {
    "cryptography", "filelock", "platformdirs", "psutil", "sqlite3", "urllib3", "zstandard",
}  # fmt: skip

# What carries data, and what it is carried by.
CARRYING = tuple(
    f"mydata_like.{name}." for name in ("ssh", "server", "transfer", "engine.run", "engine.send")
)


def imported(code, *words):
    """Return the modules that a new process has imported when it ends."""
    ending = (
        "import atexit, json, sys\natexit.register(lambda: print(json.dumps([*sys.modules])))\n"
    )
    command = [sys.executable, "-c", ending + code, *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return set(json.loads(said.splitlines()[-1]))


@pytest.mark.process
def test_the_version_is_printed_without_loading_a_library():
    modules = imported("from mydata_like.__main__ import main; main()", "--version")

    assert not modules & LIBRARIES
    assert {name for name in modules if name.startswith("mydata_like.")} == {"mydata_like.__main__"}


@pytest.mark.process
def test_a_run_imports_no_window_and_nothing_that_few_runs_need(tmp_path):
    words = ("run", "--json", "--config", str(tmp_path / "settings.toml"))
    (tmp_path / "settings.toml").write_text("")
    modules = imported(
        "from mydata_like.__main__ import main\ntry: main()\nexcept SystemExit: 0", *words
    )

    assert "mydata_like.app.run_service" in modules
    assert not modules & (HEAVY - {"typer"})
    assert not modules & {"mydata_like.cli.watch_command", "mydata_like.app.onboarding"}


@pytest.mark.process
def test_a_copy_imports_nothing_that_only_a_server_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path / "own files"))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_text("content")
    words = ("copy", "--json", str(tmp_path / "source"), str(tmp_path / "there"))
    modules = imported(
        "from mydata_like.__main__ import main\ntry: main()\nexcept SystemExit: 0", *words
    )

    assert (tmp_path / "there" / "source" / "file").read_text() == "content"
    assert "mydata_like.app.copy_service" in modules
    assert not modules & ((HEAVY | {"cryptography", "urllib3", "http.client"}) - {"typer"})
    assert not [name for name in modules if name.startswith("mydata_like.catalogues.mytardis.")]


@pytest.mark.process
def test_a_copy_logs_in_before_its_run_is_imported():
    modules = imported("import mydata_like.cli.main, mydata_like.cli.copy_command")

    assert "mydata_like.app.host_login" in modules
    assert not modules & (LIBRARIES - {"typer", "platformdirs"})
    assert not modules & {"mydata_like.app.run_request", "mydata_like.app.copy_service"}


@pytest.mark.process
def test_a_channel_worker_imports_no_library_before_its_plan():
    modules = imported("import mydata_like.transfer.worker_process, mydata_like.transfer.worker")

    assert not modules & (LIBRARIES | {"tarfile", "tempfile"})


@pytest.mark.process
@pytest.mark.parametrize(
    "code",
    [
        "import mydata_like.gui.application",
        "import mydata_like.app.ledger_status",
        "import mydata_like.gui.application; from mydata_like.settings.schema import Settings; "
        "from mydata_like.gui.speed_test.speedtest_process import load_reports; "
        "load_reports(Settings(), None)",
    ],
    ids=["what the window shows", "what it is filled with", "what its page of speed tests shows"],
)
def test_the_window_opens_without_engine_and_ssh(code):
    modules = imported(code)

    assert not [name for name in modules if f"{name}.".startswith(CARRYING)]


@pytest.mark.process
def test_the_window_opens_without_the_dialogs_that_few_starts_need():
    modules = imported("import mydata_like.gui.application")

    assert "mydata_like.gui.window" in modules
    assert "mydata_like.app.ledger_status" not in modules
    assert "mydata_like.gui.wizard.setup_wizard" not in modules
    assert "mydata_like.gui.settings_editor.settings_dialog" not in modules
    assert "mydata_like.gui.drop.drop_dialog" not in modules


@pytest.mark.process
@pytest.mark.parametrize(
    "words", [("status",), ("settings", "get", "data.layout")], ids=["status", "settings"]
)
def test_a_command_imports_nothing_that_only_others_need(words, tmp_path):
    code = "from mydata_like.__main__ import main\ntry: main()\nexcept SystemExit: 0"
    modules = imported(code, *words, "--config", str(tmp_path / "settings.toml"))

    assert "mydata_like.cli.main" in modules
    assert "mydata_like.cli.support_command" not in modules
    assert not [name for name in modules if f"{name}.".startswith(CARRYING)]
