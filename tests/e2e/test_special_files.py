"""Something else than a file in the place of a file of ours: one error, at once."""

import os
import socket
import time
from contextlib import closing

import pytest

from mydata_like.app.identity import uuid_file
from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

AT_ONCE = 60.0  # seconds; a command that waits for a pipe does so for ever


def make_socket(path):
    with closing(socket.socket(socket.AF_UNIX)) as one:
        os.chdir(path.parent)  # the address of a socket is short
        one.bind(path.name)


KINDS = {
    "named pipe": os.mkfifo,
    "socket": make_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
}


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # and back afterwards
    make_data(tmp_path / "site", tiny_files=1, large=10_000)
    with open_site(tmp_path / "site") as site:
        yield site


def place_of(site, what):
    loaded, places = load_settings(site.config).settings, find_places(site.config)
    match what:
        case "ledger":
            return ledger_file(loaded, places, os.fsencode(site.data))
        case "uuid":
            return uuid_file(loaded, places)
        case "lock":
            ledger = ledger_file(loaded, places, os.fsencode(site.data))
            (note,) = ledger.parent.glob("run-*.lock")
            return note
        case "log":
            return site.place.folder / "home" / "logs" / "mydata-like.log"
        case _:
            return site.config


def put(site, kind, what):
    path = place_of(site, what)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    KINDS[kind](path)
    return path


def run(site, *words):
    began = time.monotonic()
    ended = site.command(*words)
    assert time.monotonic() - began < AT_ONCE
    return ended


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [("run",), ("status",)], ids=["run", "status"])
def test_in_the_ledgers_place(site, kind, words):
    path = put(site, kind, "ledger")

    ended = run(site, *words)

    assert ended.code == 2, ended.output + ended.complaints
    assert f"{path} is a {kind}, but the program needs a regular file." in ended.complaints
    assert "Move it away" in ended.complaints
    assert path.lstat()  # it is still there
    assert "Traceback" not in ended.complaints


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_settings_place(site, kind):
    path = put(site, kind, "settings")

    ended = run(site, "run")

    assert ended.code == 2
    assert f"is a {kind}" in ended.complaints
    assert str(path) in ended.complaints


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_locks_place(site, kind):
    site.run()
    path = put(site, kind, "lock")

    ended = run(site, "run")

    assert ended.code == 2
    assert f"is a {kind}" in ended.complaints
    assert str(path) in ended.complaints


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_uuids_place(site, kind):
    settings = site.config.read_text().replace(f'uuid = "{site.uuid}"', "")
    site.config.write_text(settings)
    path = put(site, kind, "uuid")

    ended = run(site, "run")

    assert ended.code == 2
    assert f"is a {kind}" in ended.complaints
    assert str(path) in ended.complaints


@pytest.mark.parametrize("kind", KINDS)
def test_in_the_logs_place_the_run_goes_on_and_says_so(site, kind):
    path = put(site, kind, "log")

    ended = run(site, "run")

    assert ended.code == 0
    assert ended.complaints.count(f"{path} is a {kind}") == 1
    assert "All" in ended.output
