"""Deleting local files where the system has no safe way to do so."""

import json
import os

import pytest
from typer.testing import CliRunner

from mydata_like.cli.main import build_app

app = build_app()


@pytest.mark.skipif(os.name != "nt", reason="POSIX systems can delete files safely")
@pytest.mark.parametrize("words", [("--dry-run",), ("--yes",)])
def test_windows_refuses_to_free_anything_before_the_server_is_asked(tmp_path, monkeypatch, words):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path))

    refused = CliRunner().invoke(app, ["free", str(tmp_path), *words, "--json"])

    assert refused.exit_code == 3
    problem = json.loads(refused.stdout)["problem"]
    assert problem["code"] == "free.unsupported"
    assert "mydata-like where" in problem["hint"]
