"""The wizard's page of folders and layouts, and what comes over from MyData."""

import os
from pathlib import Path

import pytest
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QFileDialog, QPushButton

from mydata_like.app.settings_service import (
    load_settings,
    open_secrets,
    save_settings,
    store_api_key,
)
from mydata_like.core.model import Layout
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.gui.wizard import SetupWizard
from mydata_like.gui.wizard.mydata_import_dialog import MyDataImportDialog
from mydata_like.gui.wizard.step_base import Readiness
from tests.gui.setting_up import Person
from tests.legacy import WINDOWS_PAIRS, write_legacy


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path / "server", auto_approve=False) as server:
        yield server


@pytest.fixture
def config(tmp_path):
    return tmp_path / "settings.toml"


@pytest.fixture
def data(tmp_path):
    for path in ("alice/mice/day 1/a.tif", "alice/mice/day 2/b.tif", "guest/x/day 1/c.tif"):
        file = tmp_path / "data" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"bytes")
    return tmp_path / "data"


@pytest.fixture
def open_wizard(open_context, config, qtbot):
    def open_it():
        wizard = SetupWizard(open_context(config))
        qtbot.addWidget(wizard)
        wizard.show()
        person = Person(wizard, qtbot)
        person.wait(lambda: not wizard.verdict.text)
        person.choose("mytardis")
        return person

    return open_it


@pytest.fixture
def person(open_wizard, config, server, data):
    """A user at the page of the folders."""
    changes = {
        "server.url": server.url,
        "server.username": "demo",
        "instrument.facility": "Demo Facility",
        "instrument.name": "Scope 1",
        "instrument.contact_name": "Ada",
        "instrument.contact_email": "ada@example.org",
    }
    save_settings(config, changes)
    settings = load_settings(config).settings
    store_api_key(settings, open_secrets(config), server.api_key, "file")
    person = open_wizard()
    assert person.wizard.step is person.wizard.folders
    return person


def choose(person, layout):
    box = person.wizard.folders.layout_box
    box.setCurrentIndex(box.findData(layout))


def table(model):
    return [
        tuple(model.index(row, column).data() for column in range(model.columnCount()))
        for row in range(model.rowCount())
    ]


def test_the_first_folders_are_shown_as_what_they_become(person, data):
    page = person.wizard.folders
    QAbstractItemModelTester(
        page.model, QAbstractItemModelTester.FailureReportingMode.Fatal, page.model
    )
    choose(person, Layout.USERNAME_EXPERIMENT_DATASET)
    person.type(page.directory, str(data))
    person.wait_checked()

    assert table(page.model) == [
        ("alice", "mice", "day 1", "alice/mice/day 1", "1", "5 bytes"),
        ("alice", "mice", "day 2", "alice/mice/day 2", "1", "5 bytes"),
        ("guest", "x", "day 1", "guest/x/day 1", "1", "5 bytes"),
    ]
    assert page.verdict.text == "3 dataset(s) found."
    assert page.owners.text.endswith("guest")
    assert not page.suggestion.isVisible()


def test_all_messages_about_the_folders_are_shown_without_scrolling(person, data):
    page = person.wizard.folders
    (data / "notes about the sections of a long day.txt").write_text("belongs to no dataset")
    choose(person, Layout.USERNAME_DATASET)
    person.type(page.directory, str(data))
    person.wait_checked()

    messages = [page.verdict, page.names, page.left_out, page.owners]
    assert all(message.isVisible() for message in messages)
    assert all(message.visibleRegion().boundingRect() == message.rect() for message in messages)


def test_the_data_folder_is_chosen_while_the_program_goes_on(person, data):
    page = person.wizard.folders
    page.browse.click()
    dialog = page.findChild(QFileDialog)
    assert dialog.isVisible()
    dialog.fileSelected.emit(str(data))
    person.wait_checked()

    assert page.directory.text() == str(data)
    assert "dataset(s) found" in page.verdict.text


def test_the_layout_that_fits_is_suggested_and_taken_with_one_click(person, data):
    page = person.wizard.folders
    person.type(page.directory, str(data))
    person.wait(page.suggestion.isVisible)
    assert "User name / Experiment / Dataset" in page.suggestion.text()

    page.suggestion.click()
    person.wait(lambda: page.readiness is Readiness.READY)

    assert page.chosen is Layout.USERNAME_EXPERIMENT_DATASET
    assert not page.suggestion.isVisible()


def test_names_that_only_the_server_knows_are_not_invented(person, data):
    page = person.wizard.folders
    choose(person, Layout.USERNAME_DATASET)
    person.type(page.directory, str(data))
    person.wait_checked()

    assert {row[1] for row in table(page.model)} == {"Scope 1 - …"}
    assert "full name of the owner" in page.names.text


def test_files_that_are_left_out_are_named_with_the_reason(person, data):
    (data / "notes.txt").write_text("note")
    for name in (".DS_Store", "Thumbs.db"):
        (data / "alice" / "mice" / "day 1" / name).write_text("x")
    page = person.wizard.folders
    choose(person, Layout.USERNAME_EXPERIMENT_DATASET)
    person.type(page.directory, str(data))
    person.wait_checked()

    assert page.left_out.text == (
        "3 file(s) or folder(s) are left out, such as notes.txt: "
        "The file is not in a dataset folder. A dry run lists all of them."
    )
    assert not page.names.text


def test_folders_that_do_not_fit_are_counted_and_named(person, data):
    (data / "alice" / "notes.txt").write_text("note")
    page = person.wizard.folders
    choose(person, Layout.USERNAME_EXPERIMENT_DATASET)
    person.type(page.directory, str(data))
    person.wait_checked()

    assert "1 folder(s) do not fit this layout: alice" in page.verdict.text
    assert page.readiness is Readiness.READY


def test_names_with_hidden_characters_are_shown_plainly(person, data):
    (data / "guest").rename(data / "gu\u202eest")
    page = person.wizard.folders
    choose(person, Layout.USERNAME_EXPERIMENT_DATASET)
    person.type(page.directory, str(data))
    person.wait_checked()

    assert table(page.model)[-1][0] == "gu\\u202eest"


def test_a_folder_that_is_not_there_is_reported(person, tmp_path):
    page = person.wizard.folders
    person.type(page.directory, str(tmp_path / "nothing"))
    person.wait_checked()

    assert page.readiness is Readiness.LACKING
    assert not person.wizard.next.isEnabled()


@pytest.fixture
def legacy(tmp_path, server, data):
    """A MyData.cfg for this server and these data."""
    pairs = {
        **WINDOWS_PAIRS,
        "mytardis_url": server.url,
        "username": "demo",
        "api_key": server.api_key,
        "facility_name": "Demo Facility",
        "data_directory": str(data),
        "use_excludes_file": "False",
        "excludes_file": "",
    }
    return write_legacy(tmp_path / "MyData.cfg", pairs)


def test_settings_of_mydata_are_shown_before_they_are_taken_over(open_wizard, legacy, config):
    person = open_wizard()
    sheet = person.wizard.address.open_takeover(legacy)
    person.wait(sheet.take_over.isEnabled)
    assert "“Instrument” = Röntgen 3" in sheet.report.toPlainText()
    assert not config.exists()

    sheet.take_over.click()
    person.wait(sheet.into_file.isVisible)  # there is no keyring here
    assert not config.exists()
    sheet.into_file.click()
    sheet.take_over.click()
    person.wait_for(person.wizard.key)

    settings = load_settings(config).settings
    assert settings.instrument.name == "Röntgen 3"
    person.wizard.back.click()
    assert person.wizard.folders.chosen is Layout.GROUP_EXPERIMENT_DATASET


def test_settings_of_mydata_are_chosen_while_the_program_goes_on(open_wizard, legacy):
    person = open_wizard()
    page = person.wizard.address
    (button,) = [one for one in page.findChildren(QPushButton) if "Choose a" in one.text()]
    button.click()
    dialog = page.findChild(QFileDialog)
    assert dialog.isVisible()
    dialog.fileSelected.emit(str(legacy))

    assert page.findChild(MyDataImportDialog).isVisible()


def test_what_mydata_left_is_found_automatically(open_wizard, legacy):
    usual = Path(os.environ["XDG_DATA_HOME"]) / "MyData" / "MyData.cfg"
    usual.parent.mkdir(parents=True)
    legacy.rename(usual)

    person = open_wizard()

    assert person.wizard.address.import_button.isVisible()


def test_a_file_that_is_none_of_mydata_is_refused(open_wizard, tmp_path):
    person = open_wizard()
    sheet = person.wizard.address.open_takeover(tmp_path / "missing.cfg")
    person.wait(lambda: "missing.cfg" in sheet.verdict.text)

    assert not sheet.take_over.isEnabled()


def test_a_scroll_bar_keeps_away_from_the_fields(person, qtbot):
    step = person.wizard.folders
    bar = step.parentWidget().parentWidget().verticalScrollBar()
    person.wizard.resize(person.wizard.width(), person.wizard.minimumSizeHint().height())
    qtbot.waitUntil(bar.isVisible)
    assert step.rect().right() - step.layout_box.geometry().right() > 0
    person.wizard.resize(person.wizard.width(), 2 * step.sizeHint().height())
    qtbot.waitUntil(lambda: step.layout_box.geometry().right() == step.rect().right())
