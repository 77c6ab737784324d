"""What the program does not import: a start is as cheap as what it loads."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mydata_like import app as bootstrap

HEAVY = {
    "PySide6", "asyncio", "keyring", "paramiko", "pathspec", "requests", "rich", "tomlkit", "typer",
    "watchdog",
}  # fmt: skip
LIBRARIES = HEAVY | {
    "cryptography", "filelock", "platformdirs", "psutil", "sqlite3", "urllib3",
}  # fmt: skip


def imported(code, *words):
    """Return the modules that a new process has imported when it ends."""
    ending = (
        "import atexit, json, sys\natexit.register(lambda: print(json.dumps([*sys.modules])))\n"
    )
    command = [sys.executable, "-c", ending + code, *words]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return set(json.loads(said.splitlines()[-1]))


def test_the_version_is_told_without_any_library():
    modules = imported("from mydata_like.__main__ import main; main()", "--version")

    assert not modules & LIBRARIES
    assert {name for name in modules if name.startswith("mydata_like.")} == {"mydata_like.__main__"}


def test_a_run_imports_no_window_and_nothing_that_few_runs_need(tmp_path):
    words = ("run", "--json", "--config", str(tmp_path / "settings.toml"))
    (tmp_path / "settings.toml").write_text("")
    modules = imported(
        "from mydata_like.__main__ import main\ntry: main()\nexcept SystemExit: 0", *words
    )

    assert "mydata_like.app.run_service" in modules
    assert not modules & HEAVY
    assert not modules & {"mydata_like.cli.main", "mydata_like.app.setup"}


def test_a_channel_worker_imports_no_library_before_its_plan():
    modules = imported("import mydata_like.transfer.process, mydata_like.transfer.worker")

    assert not modules & LIBRARIES


def _told():
    """Return what the type checker is told: each part with its home."""
    tree = ast.parse(Path(bootstrap.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: node.module.removeprefix("mydata_like.")
        for node in block.body
        for alias in node.names
    }


def test_the_parts_of_bootstrap_are_where_the_type_checker_is_told():
    assert _told() == bootstrap._HOME_OF


@pytest.mark.parametrize("part", sorted(_told()))
def test_each_part_of_bootstrap_is_there(part):
    assert getattr(bootstrap, part) is not None


def test_what_is_no_part_of_bootstrap_is_told():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bootstrap.nothing  # noqa: B018
