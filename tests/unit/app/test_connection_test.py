"""The connection test of destinations without a server."""

import pytest

from mydata_like.app.connection_test import run_connection_test
from mydata_like.app.plain_destination import KNOWN_ID
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import (
    find_places,
    ledger_file,
    load_settings,
    save_settings,
)
from mydata_like.catalogues.manifest.segments import DestinationMarker, format_marker
from mydata_like.core.destination_files import DESTINATION_MARKER, OWN_FOLDER
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.ssh.keys import create_key
from tests.sshd_fixture import needs_sshd, sftp_only, sshd_with


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


class Site:
    """A data directory, a folder for the copies, and settings."""

    def __init__(self, top):
        self.data, self.there, self.key = top / "data", top / "there", top / "key" / "id_ed25519"
        self.config = top / "config" / "settings.toml"
        self.config.parent.mkdir()
        self.data.mkdir()
        self.there.mkdir()

    def test(self, kind, address, confirm=None, **values):
        """Return the result, name and message of each step."""
        settings = {"destination.kind": kind, "destination.address": str(address)}
        settings["data.directory"] = str(self.data)
        save_settings(self.config, settings | values)
        request = RunRequest(settings=self.load(), config=self.config, dry_run=True)
        steps = run_connection_test(request, RunObserver(), confirm)
        return [(it.result.value, it.name, it.message) for it in steps]

    def test_host(self, sshd, confirm=None):
        url = f"ssh://{sshd.username}@{sshd.host}:{sshd.port}{self.there}"
        return self.test("host", url, confirm, **{"transfer.key_file": str(self.key)})

    def load(self):
        return load_settings(self.config).settings


def test_a_folder_is_tested_and_left_as_it_was(site):
    steps = site.test("folder", site.there)

    assert [step[:2] for step in steps] == [("ok", "folder"), ("ok", "evidence"), ("ok", "space")]
    assert list(site.there.iterdir()) == []


def test_a_folder_that_does_not_exist_is_not_made(site):
    ((result, _, message),) = site.test("folder", site.there / "new")

    assert (result, "the first run makes it" in message) == ("unproven", True)
    assert list(site.there.iterdir()) == []


def test_a_folder_in_the_data_directory_is_refused(site):
    ((result, name, message),) = site.test("folder", site.data / "copies")

    assert (result, name) == ("failed", "destination")
    assert "is in the data directory" in message


def test_a_folder_that_is_not_that_of_earlier_runs_is_refused(site):
    own = site.there / OWN_FOLDER.decode()
    own.mkdir()
    (own / DESTINATION_MARKER.decode()).write_bytes(format_marker(DestinationMarker("another")))
    assert site.test("folder", site.there)[1][:2] == ("ok", "marker")
    root = str(site.data).encode()
    file = ledger_file(site.load(), find_places(site.config), root)
    with SqliteLedger.open(file, root, SystemClock()) as ledger:
        ledger.record_meta(KNOWN_ID, "ours")

    result, _, message = site.test("folder", site.there)[-1]

    assert (result, "another destination than in earlier runs" in message) == ("failed", True)


@needs_sshd
def test_a_host_is_tested_once_its_key_was_confirmed(site, tmp_path):
    asked = []
    with PrivateSshd(tmp_path / "sshd") as sshd:
        sshd.authorize(create_key(site.key).public)
        ((result, _, message),) = site.test_host(sshd)
        assert (result, "is not known yet" in message) == ("failed", True)

        steps = site.test_host(sshd, lambda *key: asked.append(key) or True)
        assert [step[:2] for step in steps] == [
            *(("ok", "login"), ("ok", "folder"), ("ok", "evidence"), ("ok", "space"))
        ]
        assert [fingerprint for _, fingerprint, _ in asked] == [sshd.fingerprint]
        assert "The host computes the checksum" in steps[2][2]
        assert site.test_host(sshd)[:3] == steps[:3]  # the free space may differ
    assert list(site.there.iterdir()) == []


@needs_sshd
def test_a_host_without_a_shell_reads_back(site, tmp_path):
    with sshd_with(tmp_path, *sftp_only()) as sshd:
        sshd.authorize(create_key(site.key).public)

        steps = site.test_host(sshd, lambda *_: True)

    assert "each byte travels twice" in dict(step[1:] for step in steps)["evidence"]
