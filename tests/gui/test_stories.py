"""What people do with the program, on a real screen, with a real server and staging host."""

import shutil
import signal
from pathlib import Path

import psutil
import pytest

from mydata_like.app.settings_service import load_settings, save_settings
from mydata_like.demo.middleware import Fault, Reply, Reset
from mydata_like.ssh.keys import create_key
from tests.copy_site import find_false_claims
from tests.gui.conftest import QUICK
from tests.gui.person import open_person
from tests.gui.setting_up import open_town
from tests.gui.test_quitting import know_the_tray
from tests.gui.test_screen import TITLE
from tests.gui.xvfb import DEADLINE, needs_screen, patient
from tests.sshd_fixture import needs_sshd

pytestmark = [needs_screen, needs_sshd, patient]
SLOW = QUICK | {"limits.bandwidth": 0.1}  # MB/s: longer than any story
SAFE = "safe on the server"


@pytest.fixture
def use(screen):
    """Return what opens the program over a settings file."""
    return lambda config, **environment: open_person(
        screen, "--config", str(config), environment=environment
    )


def test_from_the_first_start_to_the_first_upload(use, tmp_path):
    with open_town(tmp_path / "town") as town, use(town.config) as person:
        person.waits_for_cursor("Set up…")
        person.presses("Return")
        person.turns_to("Set up mydata-like")
        person.waits_for("Where should the data go?")
        person.presses("Return")

        person.waits_for_cursor("Server address")
        person.types(town.address)
        person.presses("Return")
        person.waits_for_cursor("Account")
        person.types("demo")
        person.presses("alt+k")
        person.types(town.server.api_key)
        person.presses("Return")
        person.waits_for("Keep the key in a file")  # there is no keyring here
        person.presses("alt+f")
        person.until(lambda: person.find("Keep the key in a file").checked)
        person.presses("Return")

        person.waits_for_cursor("Instrument")
        person.types("Scope 1")
        person.waits_for("will be made")
        person.presses("Tab")
        person.types("Ada Lovelace")
        person.presses("Tab")
        person.types("ada@example.org")
        person.presses("Return")

        person.waits_for_cursor("Data folder")
        person.types(str(town.data))
        person.presses("Return")
        person.waits_for("When to upload?")
        person.presses("Return")
        person.waits_for("awaits approval")
        town.approve()
        person.presses("alt+a")
        person.waits_for("Trust this host")
        assert person.find("Fingerprint of the host's key").text == town.sshd.fingerprint
        person.presses("alt+t")
        person.waits_for_cursor("Send a test file")
        person.presses("Return")
        person.waits_for("The test upload succeeded")
        person.presses("Return")

        person.turns_to("mydata-like")
        save_settings(town.config, QUICK)
        person.waits_for("Ready to start")
        person.presses("F5")
        person.waits_for(SAFE)
        assert town.server.check_invariants(town.expected_files()) == []


def test_from_the_first_start_to_the_first_files_on_a_host(use, tmp_path):
    there = tmp_path / "there"
    with open_town(tmp_path / "town") as town, use(town.config) as person:
        town.sshd.authorize(create_key(Path.home() / ".ssh" / "id_ed25519").public)
        person.waits_for_cursor("Set up…")
        person.presses("Return")
        person.turns_to("Set up mydata-like")
        person.waits_for("Where should the data go?")
        person.presses("alt+c")
        person.until(lambda: person.find("To a computer with SSH").checked)
        person.presses("Return")

        person.waits_for_cursor("Address")
        person.types(f"{town.sshd.username}@{town.sshd.host}:{town.sshd.port}")
        person.presses("Tab")
        person.types(str(there))
        person.presses("Return")
        person.waits_for("Trust this host")
        assert person.sees(town.sshd.fingerprint)
        person.presses("alt+r")
        person.waits_for("Files can be sent there.")
        person.presses("alt+n")

        person.waits_for_cursor("Data folder")
        person.types(str(town.data))
        person.presses("Return")
        person.waits_for("When to upload?")
        save_settings(town.config, QUICK)
        person.presses("alt+n")
        person.waits_for("safe on 127.0.0.1")
        assert town.server.datafiles() == []
        assert find_false_claims(there) == []
        for file in filter(Path.is_file, town.data.rglob("*")):
            assert (there / file.relative_to(town.data)).read_bytes() == file.read_bytes()


def test_a_folder_given_to_a_second_start_is_uploaded_from_the_first(use, site, tmp_path):
    folder = tmp_path / "usb" / "day 1"
    folder.mkdir(parents=True)
    (folder / "a.tif").write_bytes(b"tiff" * 1000)
    with use(site.config) as person:
        person.waits_for("Ready to start")
        person.presses("alt+F4")
        person.until(lambda: "mydata-like" not in person.windows())

        person.starts_again(site.config, folder)
        person.turns_to("Upload")
        person.waits_for("Upload 1 folder")
        assert person.sees("day 1")
        person.waits_for("1 file to send")
        person.presses("alt+u")
        person.waits_for("1 file of the last upload is safe")

    expected = {("day 1", "", "a.tif"): folder / "a.tif"}
    assert site.server.check_invariants(expected) == []


def test_a_paused_run_goes_on_and_a_stopped_one_is_carried_on(use, site):
    save_settings(site.config, SLOW)
    with use(site.config) as person:
        person.waits_for("Ready to start")
        person.presses("F5")
        person.waits_for("Sending")
        person.presses("ctrl+p")
        person.waits_for("Paused")
        person.presses("ctrl+r")
        person.waits_for("Sending")
        person.presses("ctrl+period")
        person.until(lambda: person.find("Start").enabled)
        assert site.find_wrongs() != []

        save_settings(site.config, QUICK | {"limits.bandwidth": 0})
        person.presses("F5")
        person.waits_for(SAFE)

    assert site.find_wrongs() == []


def test_a_day_with_the_program(use, site, tmp_path):
    """An upload, a folder from elsewhere, a pause, an outage, the tray, the end, the next start."""
    folder = tmp_path / "usb" / "day 1"
    folder.mkdir(parents=True)
    (folder / "a.tif").write_bytes(b"tiff" * 1000)
    save_settings(site.config, QUICK | {"limits.bandwidth": 0.4})  # MB/s: some seconds
    site.server.hold_verification()  # so long the upload goes on
    know_the_tray()  # a balloon may cover it
    with use(site.config) as person:
        person.waits_for("Ready to start")
        person.clicks("Start now")
        person.waits_for("Recent datasets")
        person.starts_again(site.config, folder)
        person.turns_to("Upload")
        person.waits_for("1 file to send")
        person.presses("alt+u")
        person.turns_to("mydata-like")
        person.waits_for("“day 1” is scanned and then uploaded.")

        person.presses("ctrl+p")
        person.waits_for("Paused")
        person.presses("ctrl+r")
        person.until(lambda: not person.sees("Paused"))
        site.server.faults.add(Fault(action=Reset(handled=False), count=None))
        person.waits_for("Server not reachable")
        site.server.faults.clear()
        person.waits_for("Server reachable")

        person.presses("alt+F4")
        person.until(lambda: not person.screen.windows(TITLE))
        person.opens_tray_popup()
        person.clicks("Pause")
        person.waits_for("Paused")
        person.presses("alt+m")  # Resume
        person.clicks("Open the window")
        person.turns_to("mydata-like")
        person.until(lambda: not person.sees("Paused"))

        person.presses("ctrl+q")
        person.turns_to("Quit")
        person.presses("alt+l")  # the upload goes on
        assert person.process.wait(DEADLINE) == 0
    with use(site.config) as person:
        person.until(lambda: person.sees("Sending") or person.sees("The server is checking"))
        site.server.release_verification()
        person.until(lambda: site.find_wrongs() == [])
        person.waits_for("safe")

    expected = {("day 1", "", "a.tif"): folder / "a.tif"}
    assert site.server.check_invariants(site.place.expected_files() | expected) == []


def test_an_engine_that_dies_is_reported_and_the_run_goes_on(use, site):
    save_settings(site.config, SLOW)
    with use(site.config) as person:
        person.waits_for("Ready to start")
        person.presses("F5")
        person.waits_for("Sending")
        (engine,) = psutil.Process(person.process.pid).children()
        engine.send_signal(signal.SIGKILL)
        person.waits_for("Uploading ended unexpectedly")
        save_settings(site.config, QUICK | {"limits.bandwidth": 0})
        person.presses("alt+n")
        person.waits_for(SAFE)

    assert site.find_wrongs() == []


def test_a_bad_value_is_corrected_and_a_decided_one_stays(use, site):
    with use(site.config, MYDATA_LIKE_TRANSFER_CHANNELS="3") as person:
        person.waits_for("Ready to start")
        person.presses("ctrl+comma")
        person.turns_to("Settings")
        person.waits_for("Search all settings")
        person.presses("ctrl+f")
        person.types("max_upload_threads")  # as MyData called it
        person.waits_for("Set by the environment variable MYDATA_LIKE_TRANSFER_CHANNELS")
        found = [one.enabled for one in person.things() if one.name == "Channels"]
        assert found == [True, False]  # the label and the field

        person.presses("ctrl+f")
        person.types("signal_url")
        person.waits_for("Signal address")
        person.presses("Return")
        person.waits_for_cursor("Signal address")
        person.types("ftp://x")
        person.waits_for("must begin with https://")
        person.presses("Return")
        person.waits_for("1 setting must be corrected first")
        person.types("https://example.org/alive")
        person.until(lambda: not person.sees("must begin with https://"))
        person.presses("Return")
        person.turns_to("mydata-like")

    saved = load_settings(site.config).settings
    assert saved.monitor.signal_url == "https://example.org/alive"


def test_files_that_the_server_refused_are_sent_again_by_the_button(use, site):
    refusal = Fault(action=Reply(400), method="PATCH", path="dataset_file", count=None)
    site.server.faults.add(refusal)
    shutil.rmtree(site.data / "bob")  # each file is sent repeatedly
    shutil.rmtree(site.data / "alice" / "Cell count 2024-05-01")
    with use(site.config) as person:
        person.waits_for("Ready to start")
        person.presses("F5")
        person.waits_for("need your attention")
        assert site.find_wrongs() != []
        person.presses("alt+b")
        person.waits_for("Try again")
        site.server.faults.clear()
        person.clicks("Try again")
        person.waits_for(SAFE)
        person.until(lambda: not person.sees("could not be uploaded"))

    assert site.find_wrongs() == []
