"""The first start with a destination that has no server, up to the first proven files."""

import os
from contextlib import contextmanager

import pytest

from mydata_like.app.settings_service import find_places, load_settings, save_settings
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.gui.wizard import SetupWizard
from mydata_like.gui.wizard.destination_steps import join_host_address, split_host_address
from mydata_like.gui.wizard.step_base import Readiness
from mydata_like.settings.schema import DataDestination
from mydata_like.ssh.keys import create_key
from tests.copy_site import check_with_md5sum, find_false_claims, look
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, ObjectServer
from tests.gui.conftest import QUICK
from tests.gui.setting_up import Person
from tests.site import make_data
from tests.sshd_fixture import needs_sshd


@pytest.fixture
def data(tmp_path):
    data = make_data(tmp_path, tiny_files=4, large=1000)
    (data / "notes.txt").write_text("in no folder")
    return data


@pytest.fixture
def there(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    return there


@pytest.fixture
def config(tmp_path):
    config = tmp_path / "config" / "settings.toml"
    save_settings(config, QUICK)
    return config


@pytest.fixture
def open_wizard(open_context, config, qtbot):
    def open_it():
        context = open_context(config)
        wizard = SetupWizard(context)
        qtbot.addWidget(wizard)
        wizard.start_wanted.connect(context.controller.start_when_set_up)
        wizard.show()
        person = Person(wizard, qtbot)
        person.wait(lambda: not wizard.verdict.text)
        return person

    return open_it


def list_files(top):
    """Return the MD5 of each file by path, without what the program keeps there."""
    found = {path: seen.content for path, seen in look(top).items() if seen.kind == "file"}
    return {path: it for path, it in found.items() if not path.startswith(b".mydata-like")}


def finish_setup(person, data):
    """Enter the data folder and start the first run; return its state."""
    wizard = person.wizard
    controller = wizard._context.controller
    person.wait_for(wizard.folders)
    person.type(wizard.folders.directory, str(data))
    person.press_enter()
    person.wait_for(wizard.schedule)
    assert not wizard.folders.layout_box.isVisibleTo(wizard.folders)
    wizard.start_now.click()
    person.wait(lambda: controller.state.last is not None)
    assert not wizard.isVisible()
    return controller.state


def test_from_the_first_start_to_proven_files_in_a_folder(open_wizard, config, data, there):
    person = open_wizard()
    wizard = person.wizard
    assert wizard.step is wizard.kind
    person.choose("folder")
    page = wizard.targets["folder"]

    person.type(page.folder, str(there))
    person.press_enter()
    state = finish_setup(person, data)

    assert state.last.safe
    assert list_files(there) == list_files(data)
    assert find_false_claims(there) == []
    assert check_with_md5sum(there) == []
    destination = load_settings(config).settings.destination
    assert (destination.kind, destination.address) == ("folder", str(there))


def test_a_folder_that_cannot_be_used_blocks_the_next_step(open_wizard, data, there):
    person = open_wizard()
    person.choose("folder")
    page = person.wizard.targets["folder"]
    person.type(page.folder, "not absolute")
    assert "must be an absolute path" in page.verdict.text
    assert not person.wizard.next.isEnabled()

    file = there / "file"
    file.touch()
    person.type(page.folder, str(file))
    person.press_enter()
    person.wait(lambda: page.test_verdict.text == "The test failed.")
    assert "is not a folder" in page.test.notes[-1].text
    assert not person.wizard.next.isEnabled()

    person.type(page.folder, str(data))
    person.press_enter()
    person.wait_for(person.wizard.folders)
    person.type(person.wizard.folders.directory, str(data))
    person.wait(lambda: "is in the data directory" in person.wizard.folders._directory_verdict.text)
    assert person.wizard.step.readiness is Readiness.LACKING


@contextmanager
def open_host(folder):
    """Start a host that knows no key yet; yield it and the address to enter."""
    with PrivateSshd(folder / "sshd") as sshd:
        yield sshd, f"{sshd.username}@{sshd.host}:{sshd.port}"


@needs_sshd
def test_from_the_first_start_to_proven_files_on_a_host(
    open_wizard, config, data, there, tmp_path, qapp
):
    key = create_key(tmp_path / "key" / "id_ed25519")
    with open_host(tmp_path) as (sshd, address):
        person = open_wizard()
        person.choose("host")
        page = person.wizard.targets["host"]
        person.type(page.account, address)
        person.type(page.folder, str(there))
        person.type(page.key_file, str(key.path))
        page.test_button.click()

        person.wait(page.remedy.trust.isVisible)
        assert page.remedy.text.text() == sshd.fingerprint
        assert not find_places(config).known_hosts.exists()
        page.remedy.trust.click()
        person.wait(page.remedy.copy.isVisible)
        line = page.remedy.text.text()
        page.remedy.copy.click()
        assert (line.split()[0], qapp.clipboard().text()) == ("ssh-ed25519", line)
        person.wait(lambda: page.test_verdict.text == "One more step is needed to log in:")
        assert not person.wizard.next.isEnabled()

        sshd.authorize(key.public)
        page.test_button.click()
        person.wait(lambda: page.test_verdict.text == "Files can be sent there.")
        assert [note.status for note in page.test.notes] == ["good"] * 4
        assert list(there.iterdir()) == []
        person.press_enter()
        state = finish_setup(person, data)

    assert state.last.safe
    assert list_files(there) == list_files(data)


def test_a_complete_set_up_opens_at_the_page_with_the_test(open_wizard, config, data, there):
    values = {"destination.kind": "folder", "destination.address": str(there)}
    save_settings(config, values | {"data.directory": str(data)})

    wizard = open_wizard().wizard

    assert wizard.step is wizard.targets["folder"]


def test_the_kind_decides_which_pages_follow(open_wizard, config, there):
    save_settings(config, {"destination.kind": "folder", "destination.address": str(there)})
    person = open_wizard()
    wizard = person.wizard
    assert wizard.step is wizard.folders

    wizard.back.click()
    assert wizard.step.folder.text() == str(there)
    wizard.back.click()
    wizard.kind.kinds["s3"].click()
    person.press_enter()
    person.wait_for(wizard.targets["s3"])
    assert wizard.step.bucket.text() == ""
    wizard.back.click()
    person.choose("folder")
    assert wizard.step.folder.text() == ""
    wizard.back.click()
    person.choose("mytardis")

    assert wizard.step is wizard.address
    assert load_settings(config).settings.destination == DataDestination()


@pytest.mark.parametrize(
    ("account", "folder", "address"),
    [
        ("ada@store", "/data/a b", "ada@store:/data/a b"),
        ("store", "data", "store:data"),
        ("ada@store:2222", "/a b/%c", "ssh://ada@store:2222/a%20b/%25c"),
        ("store:2222", "data", "ssh://store:2222/~/data"),
        ("ada@[::1]:2222", "/data", "ssh://ada@[::1]:2222/data"),
        ("[::1]", ".", "[::1]:."),
    ],
)
def test_the_address_of_a_host_is_entered_in_two_fields(account, folder, address):
    assert join_host_address(account, folder) == address
    stored = DataDestination(kind="host", address=address)
    assert split_host_address(stored) == (account, folder)


def test_from_the_first_start_to_proven_files_in_a_bucket(open_wizard, data, monkeypatch):
    with ObjectServer() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL", service.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCOUNT)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        person = open_wizard()
        person.choose("s3")
        page = person.wizard.targets["s3"]
        person.type(page.bucket, f"s3://{BUCKET}/confocal")
        person.press_enter()
        person.wait_for(person.wizard.folders)
        assert service.objects == {}
        state = finish_setup(person, data)

        assert state.last.safe
        sent = {key for key in service.objects if "/.mydata-like/" not in key}
        assert sent == {f"confocal/{os.fsdecode(path)}" for path in list_files(data)}
