"""The first start, from nothing to a test file on the server."""

import sys
from datetime import time

import pytest
from PySide6.QtCore import QTime

from mydata_like.app.settings_service import find_places, save_settings
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.gui.theme.widgets import PlainLabel
from mydata_like.gui.wizard import SetupWizard
from mydata_like.gui.wizard.step_base import Readiness
from mydata_like.ssh.keys import accept_host_key, create_key
from tests.gui.setting_up import Person, open_town
from tests.sshd_fixture import needs_sshd

pytestmark = needs_sshd


@pytest.fixture
def town(tmp_path):
    with open_town(tmp_path / "town") as town:
        yield town


@pytest.fixture
def open_wizard(open_context, town, qtbot):
    """Return a user before the wizard, at its first incomplete page."""

    def open_it():
        wizard = SetupWizard(open_context(town.config))
        qtbot.addWidget(wizard)
        wizard.show()
        person = Person(wizard, qtbot)
        person.wait(lambda: not wizard.verdict.text)
        return person

    return open_it


def test_the_first_start_from_nothing_to_a_test_file(open_wizard, town):
    person = open_wizard()
    wizard = person.wizard

    person.choose("mytardis")
    person.type(wizard.address.address, town.address.removeprefix("http://"))
    person.press_enter()
    person.wait_for(wizard.account)
    assert town.saved.server.url == town.address

    person.type(wizard.account.username, "demo")
    person.type(wizard.account.key, town.server.api_key)
    person.press_enter()
    person.wait(wizard.account.into_file.isVisible)  # there is no keyring here
    assert "signed in" not in wizard.account.verdict.text
    wizard.account.into_file.click()
    person.press_enter()
    person.wait_for(wizard.place)
    assert town.server.api_key not in town.config.read_text()

    person.wait_checked()
    assert wizard.place.facility.currentText() == "Demo Facility"
    person.type(wizard.place.instrument.lineEdit(), "Scope 1")
    assert "will be made" in wizard.place.verdict.text
    person.type(wizard.place.contact, "Ada Lovelace")
    person.type(wizard.place.email, "ada@example.org")
    person.press_enter()
    person.wait_for(wizard.folders)
    assert town.saved.instrument.name == "Scope 1"

    person.type(wizard.folders.directory, str(town.data))
    person.press_enter()
    person.wait_for(wizard.schedule)
    assert wizard.folders.model.rowCount() == 4
    wizard.schedule.kinds["watch"].setChecked(True)
    person.press_enter()
    person.wait_for(wizard.key)
    assert town.saved.schedule.kind == "watch"

    person.wait(wizard.key.waiting.isVisible)
    assert "awaits approval" in wizard.key.verdict.text
    assert wizard.key.fingerprint.text() in wizard.key.verdict.text
    town.approve()
    wizard.key.ask_now.click()

    person.wait(wizard.key.host_key.isVisible)
    assert wizard.key.host_key.fingerprint.text() == town.sshd.fingerprint
    assert not wizard.key.test.isVisible()
    wizard.key.host_key.trust.click()

    person.wait(wizard.key.test.isVisible)
    person.press_enter()
    person.wait(lambda: wizard.key.proved)
    assert wizard.key.test.steps.count() >= 7
    person.press_enter()
    person.wait(lambda: not wizard.isVisible())
    assert town.server.datafiles() == []


def test_an_approval_that_comes_while_the_wizard_waits_is_noticed(open_wizard, town):
    town.fill()
    person = open_wizard()
    key = person.wizard.key
    key.again.setInterval(50)
    person.wait(key.waiting.isVisible)
    assert person.wizard.next.text() == "Cl&ose and wait"

    town.approve()

    person.wait(lambda: key.approved)
    assert person.wizard.next.text() == "&Finish"


def test_a_key_that_the_host_does_not_know_yet_is_not_a_success(open_wizard, town):
    town.fill()
    person = open_wizard()
    key = person.wizard.key
    person.wait(key.waiting.isVisible)
    town.approve()
    town.sshd.forbid_all()
    key.ask_now.click()
    person.wait(key.host_key.isVisible)
    key.host_key.trust.click()
    person.wait(key.test.isVisible)

    key.test.send.click()
    person.wait(key.test.send.isEnabled)

    assert not key.proved
    assert "did not arrive" in key.test.verdict.text
    assert "until the staging host accepts a newly approved key" in key.test.steps.item(5).text()


def test_a_mounted_folder_is_confirmed_and_a_test_file_written_to_it(open_wizard, town):
    town.fill()
    folder = town.server.box_location
    folder.mkdir(exist_ok=True)
    save_settings(town.config, {"transfer.method": "folder", "transfer.folder": str(folder)})
    person = open_wizard()
    key = person.wizard.key
    person.wait(key.waiting.isVisible)
    town.approve()
    key.ask_now.click()

    person.wait(key.host_key.isVisible)
    assert key.host_key.fingerprint.text() == str(folder)
    assert key.host_key.trust.text() == "&Write to this folder"
    assert list(folder.iterdir()) == []

    key.host_key.trust.click()
    person.wait(key.test.isVisible)
    key.test.send.click()
    person.wait(key.test.send.isEnabled)
    assert key.proved
    assert [path.name for path in folder.iterdir()] == [".mydata-staging"]


def test_a_host_that_has_replaced_its_key_is_shown_with_both_fingerprints(open_wizard, town):
    town.fill()
    known_hosts = find_places(town.config).known_hosts
    old = create_key(known_hosts.parent / "old").public
    accept_host_key(known_hosts, town.sshd.host, town.sshd.port, old)
    person = open_wizard()
    key = person.wizard.key
    person.wait(key.waiting.isVisible)
    town.approve()
    key.ask_now.click()

    person.wait(key.host_key.isVisible)
    sentence, earlier = key.host_key.findChildren(PlainLabel)[0], key.host_key.earlier
    assert "identifies itself with another key than before" in sentence.text()
    assert not earlier.isVisible()
    key.host_key.show_earlier.click()
    assert earlier.isVisible()
    assert old.fingerprint in earlier.text()
    assert key.host_key.fingerprint.text() == town.sshd.fingerprint

    key.host_key.trust.click()
    person.wait(key.test.isVisible)
    assert old.line() not in known_hosts.read_text()
    assert town.sshd.host_key.line() in known_hosts.read_text()


@pytest.mark.parametrize(
    ("pinned_by", "sentence"),
    [("settings", "those in the setting “Trusted host keys”"), ("server", "those that the server")],
)
def test_a_replaced_key_is_shown_with_the_pinned_one(open_wizard, town, pinned_by, sentence):
    sshd, old = town.sshd, "SHA256:" + "A" * 43
    town.fill()
    if pinned_by == "settings":
        save_settings(town.config, {"transfer.host_keys": [old]})
    else:
        town.server.set_address(ScpAddress(sshd.username, sshd.host, sshd.port, (old,)))
    person = open_wizard()
    key = person.wizard.key
    person.wait(key.waiting.isVisible)
    town.approve()
    key.ask_now.click()

    person.wait(key.host_key.isVisible)
    assert sentence in key.host_key.findChildren(PlainLabel)[0].text()
    assert old in key.host_key.earlier.text()
    assert key.host_key.fingerprint.text() == sshd.fingerprint
    assert not key.test.isVisible()

    key.host_key.trust.click()
    person.wait(key.test.isVisible)
    key.test.send.click()
    person.wait(lambda: key.proved)


def test_a_closed_wizard_opens_again_where_it_was_left(open_wizard, town):
    person = open_wizard()
    person.choose("mytardis")
    person.type(person.wizard.address.address, town.address)
    person.press_enter()
    person.wait_for(person.wizard.account)
    person.wizard.later.click()

    again = open_wizard()

    assert again.wizard.step is again.wizard.account
    again.wizard.back.click()
    assert again.wizard.address.address.text() == town.address
    again.wait(lambda: again.wizard.address.readiness is Readiness.READY)


def test_waiting_for_approval_returns_to_the_last_page(open_wizard, town):
    town.fill()

    person = open_wizard()

    assert person.wizard.step is person.wizard.key


def test_the_message_for_the_administrator_has_all_that_is_needed(open_wizard, town, qapp):
    town.fill()
    person = open_wizard()
    person.wait(person.wizard.key.waiting.isVisible)

    person.wizard.key.copy_message.click()

    message = qapp.clipboard().text()
    for fact in ("Scope 1", "Demo Facility", town.address, person.wizard.key.fingerprint.text()):
        assert fact in message


@pytest.fixture
def autostart(tmp_path, monkeypatch):
    """The folder of the entries that start programs at login, on Linux."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    return tmp_path / "configuration" / "autostart"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems keep the entry elsewhere")
def test_the_schedule_and_the_start_at_login_are_chosen(open_wizard, town, autostart):
    town.fill()
    person = open_wizard()
    person.wizard.back.click()
    page = person.wizard.schedule
    person.wait_for(page)
    assert page.chosen == "manual"
    assert not page.time.isEnabled()

    page.kinds["daily"].click()
    page.time.setTime(QTime(18, 30))
    assert "only while the program is running" in page.note.text
    page.at_login.click()
    assert not page.note.text
    person.press_enter()
    person.wait_for(person.wizard.key)

    saved = town.saved
    assert (saved.schedule.kind, saved.schedule.time) == ("daily", time(18, 30))
    assert saved.window.start_at_login
    assert list(autostart.iterdir())


def test_another_schedule_stays_as_it_is(open_wizard, town):
    town.fill()
    save_settings(town.config, {"schedule.kind": "timer", "schedule.minutes": 30})
    person = open_wizard()
    person.wizard.back.click()
    page = person.wizard.schedule
    person.wait_for(page)
    assert page.kinds["other"].text() == "At a fixed interval"
    person.press_enter()
    person.wait_for(person.wizard.key)

    assert town.saved.schedule.kind == "timer"


def test_the_first_upload_starts_when_the_set_up_is_complete(open_wizard, town):
    town.fill(**{"data.directory": ""})
    person = open_wizard()
    wizard, key = person.wizard, person.wizard.key
    controller = wizard._context.controller
    wizard.start_wanted.connect(controller.start_when_set_up)
    person.type(wizard.folders.directory, str(town.data))
    person.press_enter()
    person.wait_for(wizard.schedule)
    person.press_enter()
    person.wait(key.waiting.isVisible)
    assert not wizard.start_now.isVisible()
    town.approve()
    key.ask_now.click()
    person.wait(key.host_key.isVisible)
    assert not wizard.start_now.isVisible()
    key.host_key.trust.click()
    person.wait(wizard.start_now.isVisible)

    wizard.start_now.click()

    assert not wizard.isVisible()
    person.wait(lambda: controller.state.last is not None)
    assert controller.state.last.safe
    assert town.server.check_invariants(town.expected_files()) == []
