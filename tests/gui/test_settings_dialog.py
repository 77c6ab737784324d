"""The settings dialog with real files, from the key press to the saved file."""

import datetime
import tomllib

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from mydata_like.app.registration import register
from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.settings_service import load_settings
from mydata_like.gui.application import Program
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.settings_editor.connection_test_view import ConnectionTestDialog
from mydata_like.gui.settings_editor.dialog_opener import SettingsDialogOpener
from mydata_like.gui.settings_editor.secret_row import FormerKeyQuestion
from mydata_like.gui.settings_editor.settings_dialog import (
    SettingsDialog,
    describe_starts,
    find_starts,
)
from mydata_like.gui.theme.widgets import FoldButton
from mydata_like.gui.window import MainWindow
from mydata_like.settings.layers import LayerSources, read_layers
from mydata_like.settings.pending_changes import PendingChanges
from mydata_like.settings.schema import Schedule, Settings
from mydata_like.state.secrets import FileSecrets, Owner
from tests.fakes.objects import ACCOUNT, SECRET, ObjectServer
from tests.gui.conftest import DEADLINE
from tests.object_site import use_storage
from tests.unit.app.test_update_check import publishing

FILE = """\
# The file of the microscope.
[server]
url = "https://data.example.org"  # ours
username = "facility"
"""
KEY = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def config(home):
    home.mkdir()
    file = home / "settings.toml"
    file.write_text(FILE)
    return file


@pytest.fixture
def open_dialog(qtbot, config, open_context):
    """Return what opens the dialog over the settings file."""

    def open_it():
        dialog = SettingsDialog(open_context(config))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
        qtbot.addWidget(dialog)
        dialog.show()
        qtbot.waitUntil(lambda: dialog.ready, timeout=DEADLINE)
        return dialog

    return open_it


@pytest.fixture
def dialog(open_dialog):
    return open_dialog()


def type_into(qtbot, dialog, key, text):
    field = dialog.panes.find_row(key).editor.field
    dialog.panes.reveal(key)
    field.selectAll()
    qtbot.keyClicks(field, text)


def choose_store(row, store):
    row.store.setCurrentIndex(row.store.findData(store))
    row.store.activated.emit(row.store.currentIndex())


def save(qtbot, dialog):
    dialog.accept()
    qtbot.waitUntil(lambda: dialog.isHidden(), timeout=DEADLINE)


def test_what_was_typed_is_saved_and_comments_stay(qtbot, dialog, config):
    type_into(qtbot, dialog, "instrument.name", "Scope 3")
    with qtbot.waitSignal(dialog._context.controller.settings_changed, timeout=DEADLINE):
        save(qtbot, dialog)

    assert config.read_text() == f'{FILE}\n[instrument]\nname = "Scope 3"\n'
    assert dialog._context.controller.settings.instrument.name == "Scope 3"


def test_the_dialog_opens_with_search_and_enter_goes_to_the_match(qtbot, dialog):
    assert dialog.focusWidget().accessibleName() == "Search all settings"

    qtbot.keyClicks(dialog.focusWidget(), "signal_url")
    qtbot.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)

    assert dialog.focusWidget() is dialog.panes.find_row("monitor.signal_url").editor.field
    assert dialog.isVisible()


def test_ok_without_a_change_writes_nothing(qtbot, dialog, config):
    before = config.stat().st_mtime_ns

    save(qtbot, dialog)

    assert config.stat().st_mtime_ns == before


def test_a_changed_value_is_marked_and_its_source_is_reported(qtbot, dialog):
    row = dialog.panes.find_row("server.username")
    assert row.source.text == "From your file"
    assert dialog.panes.find_row("server.proxy").source.text == "Default"

    type_into(qtbot, dialog, "server.username", "other")
    assert row.source.text == "● Changed"
    type_into(qtbot, dialog, "server.username", "facility")
    assert row.source.text == "From your file"


def test_a_bad_value_is_reported_at_the_field_and_at_ok(qtbot, dialog, config):
    type_into(qtbot, dialog, "monitor.signal_url", "ftp://x")
    row = dialog.panes.find_row("monitor.signal_url")
    assert "must begin with https://" in row.problem.text

    dialog.panes.reveal("server.url")
    dialog.accept()

    assert dialog.notice.text == "1 setting(s) must be corrected first"
    assert dialog.panes.title == "Advanced"
    assert dialog.focusWidget() is row.editor.field
    assert config.read_text() == FILE


def test_settings_that_do_not_go_together_are_reported_at_the_field(qtbot, dialog):
    kind = dialog.panes.find_row("schedule.kind").editor.field
    dialog.panes.reveal("schedule.kind")
    kind.setCurrentIndex(kind.findData("weekly"))
    kind.activated.emit(kind.currentIndex())

    assert "must name a day" in dialog.panes.find_row("schedule.days").problem.text


def test_a_reset_takes_the_setting_out_of_the_file(qtbot, dialog, config):
    row = dialog.panes.find_row("server.username")
    row.reset_wanted.emit(row)

    assert row.editor.value() == ""
    assert row.source.text == "● Changed: reset to the default"
    save(qtbot, dialog)
    assert "username" not in config.read_text()


def test_a_locked_setting_is_read_only_and_names_its_source(qtbot, dialog, tmp_path):
    managed = tmp_path / "managed.toml"
    managed.write_text('[transfer]\nchannels = 3\n[locked]\nkeys = ["transfer.*"]\nby = "IT"\n')
    sources = LayerSources(user=tmp_path / "none.toml", managed=managed, environment={})
    dialog.panes.show_draft(PendingChanges(read_layers(sources)))

    row = dialog.panes.find_row("transfer.channels")
    assert row.source.text.startswith("Locked by IT (")
    assert not row.editor.field.isEnabled()
    assert row.editor.value() == 3


def test_the_search_shows_what_fits_from_all_tabs(qtbot, dialog):
    dialog.panes.search("timeout")
    assert dialog.panes.found == (
        "server.connect_timeout",
        "server.read_timeout",
        "server.write_timeout",
        "transfer.connect_timeout",
        "transfer.stall_timeout",
        "advanced.verify_patience",
        "advanced.pause_patience",
    )
    dialog.panes.search("max_upload_threads")  # as MyData called it
    assert dialog.panes.found == ("transfer.channels",)
    dialog.panes.search("xyzzy")
    assert dialog.panes.found == ()

    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible()
    assert "server.url" in dialog.panes.found


def test_only_the_fields_of_the_chosen_kind_are_enabled(qtbot, dialog):
    kind = dialog.panes.find_row("schedule.kind").editor.field
    kind.setCurrentIndex(kind.findData("once"))
    kind.activated.emit(kind.currentIndex())

    names = ("date", "time", "days", "minutes", "from_time", "to_time")
    rows = {name: dialog.panes.find_row(f"schedule.{name}") for name in names}
    assert [name for name, row in rows.items() if row.isEnabled()] == ["date", "time"]
    tomorrow = datetime.datetime.now().astimezone().date() + datetime.timedelta(days=1)
    assert rows["date"].editor.value() == str(tomorrow)
    assert dialog.starts.message.text().startswith("tomorrow")


def test_the_next_five_starts_are_reported():
    schedule = Schedule(kind="weekly", days=("monday", "friday"), time=datetime.time(18, 30))
    now = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)

    starts = list(find_starts(Settings(schedule=schedule), now, datetime.UTC))

    assert [start.isoformat(timespec="minutes")[:16] for start in starts] == [
        "2026-11-23T18:30",
        "2026-11-27T18:30",
        "2026-11-30T18:30",
        "2026-12-04T18:30",
        "2026-12-07T18:30",
    ]


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (Schedule(), "Only when you press Start."),
        (Schedule(kind="startup"), "Each time the program starts."),
        (Schedule(kind="watch"), "When new files have not changed for 1 min, and at the latest:"),
        (
            Schedule(kind="once", date=datetime.date(2020, 1, 1)),
            "Never: that moment has passed.",
        ),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_schedule_without_times_is_reported_in_words(qapp, schedule, said):
    now = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)

    assert describe_starts(Settings(schedule=schedule), now, None).splitlines()[0] == said


def test_the_api_key_goes_to_its_store_and_never_into_the_file(qtbot, dialog, config):
    field = dialog.key_row.focusProxy()
    qtbot.keyClicks(field, KEY)
    assert field.displayText() != KEY
    choose_store(dialog.key_row, "file")
    save(qtbot, dialog)

    assert config.read_text() == FILE
    assert KEY in config.with_name("secrets.toml").read_text()


def test_a_stored_api_key_is_reported_and_can_be_forgotten(qtbot, config, open_dialog):
    keep(config, "https://data.example.org", "facility", KEY)
    dialog = open_dialog()
    qtbot.waitUntil(
        lambda: dialog.key_row.source.text == "Stored in the secrets file", timeout=DEADLINE
    )

    assert dialog.key_row.store.currentText() == "In a file, not encrypted"

    dialog.key_row.forget()
    assert dialog.key_row.source.text == "● Removed with OK"
    save(qtbot, dialog)

    assert KEY not in config.with_name("secrets.toml").read_text()


def test_the_key_of_another_address_is_used_after_a_question(qtbot, config, open_dialog):
    keep(config, "https://data.example.org", "facility", KEY)
    dialog = open_dialog()
    row = dialog.key_row
    qtbot.waitUntil(lambda: row.source.text == "Stored in the secrets file", timeout=DEADLINE)
    assert not row.former.isVisibleTo(dialog)

    type_into(qtbot, dialog, "server.url", "https://new.example.org")
    qtbot.waitUntil(lambda: row.former.isVisibleTo(dialog), timeout=DEADLINE)
    assert row.former.text() == "Use the key stored for https://data.example.org…"
    file = config.with_name("secrets.toml")
    for answer, addresses in (("&Cancel", 1), ("&Use the key", 2)):
        row.former.click()
        question = row.findChildren(FormerKeyQuestion)[-1]
        assert "https://new.example.org" in question.text()
        assert question.defaultButton().text() == "&Cancel"
        next(one for one in question.buttons() if one.text() == answer).click()
        qtbot.waitUntil(lambda: not dialog._context.tasks.busy)
        assert len(tomllib.loads(file.read_text())) == addresses
    qtbot.waitUntil(lambda: row.source.text == "Stored in the secrets file", timeout=DEADLINE)
    assert not row.former.isVisibleTo(dialog)
    assert tomllib.loads(file.read_text())["https://new.example.org"] == {"facility": KEY}
    assert config.read_text() == FILE


def test_an_invalid_api_key_is_refused_with_a_message(qtbot, dialog, config):
    qtbot.keyClicks(dialog.key_row.focusProxy(), "k" * 2000)
    dialog.accept()
    qtbot.waitUntil(lambda: "This is not a valid key" in dialog.notice.text, timeout=DEADLINE)

    assert dialog.isVisible()


S3_FILE = f"""\
{FILE}
[transfer]
method = "s3"
s3_endpoint = "https://s3.example.org"
s3_access_key = "AKIA7"
"""


def keep(config, owner, account, secret):
    file = config.with_name("secrets.toml")
    file.touch(mode=0o600)
    file.write_text(f'["{owner}"]\n{account} = "{secret}"\n')
    return file


@pytest.fixture
def s3_dialog(config, open_dialog):
    config.write_text(S3_FILE)
    return open_dialog()


def test_the_s3_secret_goes_to_its_store_and_never_into_the_file(qtbot, s3_dialog, config):
    s3_dialog.panes.reveal("transfer.s3_access_key")
    field = s3_dialog.s3_row.focusProxy()
    qtbot.keyClicks(field, "a+b/c=")
    assert "a+b/c=" not in field.displayText()
    choose_store(s3_dialog.s3_row, "file")
    save(qtbot, s3_dialog)

    assert config.read_text() == S3_FILE
    assert tomllib.loads(config.with_name("secrets.toml").read_text()) == {
        "https://s3.example.org": {"AKIA7": "a+b/c="}
    }


def test_a_stored_s3_secret_is_reported_for_its_address_only(qtbot, config, open_dialog):
    config.write_text(S3_FILE)
    file = keep(config, "https://s3.example.org", "AKIA7", "a+b/c=")
    dialog = open_dialog()
    row = dialog.s3_row
    qtbot.waitUntil(lambda: row.source.text == "Stored in the secrets file")
    assert "a+b/c=" not in row.focusProxy().text()

    type_into(qtbot, dialog, "transfer.s3_endpoint", "https://other.example.org")
    said = "Without a keyring, it can be stored in a file."
    qtbot.waitUntil(lambda: row.source.text == said)
    type_into(qtbot, dialog, "transfer.s3_endpoint", "https://s3.example.org")
    qtbot.waitUntil(lambda: row.source.text == "Stored in the secrets file")
    row.forget()
    assert row.source.text == "● Removed with OK"
    save(qtbot, dialog)

    assert "a+b/c=" not in file.read_text()


def test_the_s3_secret_is_shown_with_its_access_key(s3_dialog):
    s3_dialog.panes.reveal("transfer.s3_access_key")

    row = s3_dialog.s3_row
    assert row.visibleRegion().boundingRect() == row.rect()


def test_an_s3_secret_needs_an_access_key(qtbot, s3_dialog):
    row = s3_dialog.panes.find_row("transfer.s3_access_key")
    row.editor.field.selectAll()
    qtbot.keyClick(row.editor.field, Qt.Key.Key_Delete)
    said = "Set “S3 access key” to its id first."
    qtbot.waitUntil(lambda: said in s3_dialog.s3_row.source.text)
    qtbot.keyClicks(s3_dialog.s3_row.focusProxy(), "a+b/c=")

    s3_dialog.accept()

    qtbot.waitUntil(lambda: said in s3_dialog.notice.text)


def test_without_a_keyring_each_new_secret_can_go_to_a_file(qtbot, s3_dialog, config):
    qtbot.keyClicks(s3_dialog.key_row.focusProxy(), KEY)
    choose_store(s3_dialog.key_row, "file")
    qtbot.keyClicks(s3_dialog.s3_row.focusProxy(), "a+b/c=")
    s3_dialog.accept()
    qtbot.waitUntil(lambda: "The keyring cannot be used" in s3_dialog.notice.text)

    assert "no keyring that stores secrets safely" in s3_dialog.s3_row.problem.text
    assert s3_dialog.key_row.problem.text == ""
    assert s3_dialog.panes.title == "Transfer"
    assert s3_dialog.focusWidget() is s3_dialog.s3_row.focusProxy()
    assert not config.with_name("secrets.toml").exists()

    choose_store(s3_dialog.s3_row, "file")
    save(qtbot, s3_dialog)
    assert "a+b/c=" in config.with_name("secrets.toml").read_text()


def test_a_secret_in_the_environment_cannot_be_forgotten(qtbot, config, open_dialog, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_API_KEY", KEY)
    dialog = open_dialog()
    row = dialog.key_row

    qtbot.waitUntil(
        lambda: row.source.text == "Stored in the environment variable MYDATA_LIKE_API_KEY"
    )

    assert not row.removal.isEnabled()


def choose_method(dialog, method):
    field = dialog.panes.find_row("transfer.method").editor.field
    field.setCurrentIndex(field.findData(method))
    field.activated.emit(field.currentIndex())


def test_settings_of_another_upload_method_are_disabled_with_the_reason(qtbot, dialog):
    reason = "Not used: see “Upload method”"
    bucket, jump = map(dialog.panes.find_row, ("transfer.s3_bucket", "transfer.ssh_jump"))
    assert (bucket.source.text, bucket.isEnabled(), jump.isEnabled()) == (reason, False, True)
    assert (dialog.s3_row.source.text, dialog.s3_row.isEnabled()) == (reason, False)

    choose_method(dialog, "s3")

    assert (jump.source.text, jump.isEnabled(), bucket.isEnabled()) == (reason, False, True)
    assert dialog.s3_row.isEnabled()


def test_settings_without_effect_are_shown_only_by_a_search_or_a_request(qtbot, dialog):
    dialog.panes.reveal("transfer.method")
    assert "transfer.s3_bucket" not in dialog.panes.found

    dialog.panes.search("bucket")
    assert "transfer.s3_bucket" in dialog.panes.found

    dialog.panes.reveal("transfer.s3_bucket")
    assert "transfer.s3_bucket" in dialog.panes.found
    choose_method(dialog, "s3")
    assert "transfer.s3_bucket" in dialog.panes.found
    assert "transfer.ssh_jump" not in dialog.panes.found


def test_a_request_to_forget_is_for_the_secret_that_was_shown(qtbot, config, open_dialog):
    config.write_text(S3_FILE)
    keep(config, "https://s3.example.org", "AKIA7", "a+b/c=")
    dialog = open_dialog()
    qtbot.waitUntil(lambda: dialog.s3_row.source.text == "Stored in the secrets file")
    dialog.s3_row.forget()
    assert dialog.s3_row.change
    type_into(qtbot, dialog, "transfer.s3_access_key", "AKIA8")
    assert dialog.s3_row.change is None


def test_a_secret_that_is_no_longer_used_can_be_removed(qtbot, config, open_dialog):
    config.write_text(S3_FILE.replace('"s3"', '"auto"'))
    file = keep(config, "https://s3.example.org", "AKIA7", "a+b/c=")
    dialog = open_dialog()
    qtbot.waitUntil(lambda: dialog.s3_row.source.text == "Stored in the secrets file")
    assert dialog.s3_row.isEnabled()

    dialog.s3_row.forget()
    save(qtbot, dialog)

    assert "a+b/c=" not in file.read_text()


def test_an_invalid_value_that_is_not_used_can_be_corrected(qtbot, dialog):
    choose_method(dialog, "s3")
    type_into(qtbot, dialog, "transfer.s3_endpoint", "ftp://x")
    choose_method(dialog, "auto")

    dialog.accept()

    row = dialog.panes.find_row("transfer.s3_endpoint")
    assert dialog.focusWidget() is row.editor.field
    type_into(qtbot, dialog, "transfer.s3_endpoint", "https://s3.example.org")
    assert not row.isEnabled()


def test_a_file_changed_elsewhere_is_noticed_and_nothing_is_lost(qtbot, dialog, config):
    type_into(qtbot, dialog, "instrument.name", "Scope 3")
    config.write_text(FILE.replace("facility", "other"))
    dialog.accept()
    qtbot.waitUntil(
        lambda: dialog.ready and "another program" in dialog.notice.text, timeout=DEADLINE
    )

    assert dialog.panes.find_row("server.username").editor.value() == "other"
    assert dialog.panes.find_row("instrument.name").editor.value() == "Scope 3"
    save(qtbot, dialog)
    assert 'username = "other"' in config.read_text()
    assert 'name = "Scope 3"' in config.read_text()


def test_an_import_is_shown_as_changes_before_anything_is_saved(qtbot, dialog, config, tmp_path):
    old = tmp_path / "MyData.cfg"
    old.write_text(
        "[MyData]\nmytardis_url = https://data.example.org\nusername = facility\n"
        f"instrument_name = Scope\napi_key = {KEY}\n"
    )
    dialog.read_file(str(old))
    qtbot.waitUntil(lambda: "were taken from the file" in dialog.notice.text, timeout=DEADLINE)

    assert dialog.panes.find_row("instrument.name").source.text == "● Changed"
    assert dialog.key_row.change.text == KEY
    assert config.read_text() == FILE


def test_an_export_holds_no_secret(qtbot, dialog, tmp_path):
    qtbot.keyClicks(dialog.key_row.focusProxy(), KEY)
    dialog.write_file(str(tmp_path / "out.toml"))
    qtbot.waitUntil(lambda: "without secrets" in dialog.notice.text, timeout=DEADLINE)

    text = (tmp_path / "out.toml").read_text()
    assert "data.example.org" in text
    assert KEY not in text


def test_an_invalid_file_opens_and_can_be_fixed(qtbot, config, open_dialog):
    config.write_text('[transfer]\nchannels = "many"\n[server]\nbogus = 1\n')
    dialog = open_dialog()

    row = dialog.panes.find_row("transfer.channels")
    assert "whole number" in row.problem.text
    assert dialog.panes.title == "Transfer"
    assert "server.bogus" in dialog.notice.text
    row.editor.field.setValue(2)
    save(qtbot, dialog)
    assert "channels = 2" in config.read_text()


@pytest.fixture
def drawer(qtbot, config, open_context):
    """The drawer, after someone has typed a name and saved nothing."""
    window = MainWindow(open_context(config))
    qtbot.addWidget(window)
    drawer = SettingsDialogOpener(window._context, window)
    dialog = open_drawer(qtbot, drawer, "instrument.name")
    qtbot.keyClicks(dialog.focusWidget(), "Scope 3")
    with qtbot.waitSignal(drawer.left_unsaved):
        close_drawer(qtbot, drawer)
    return drawer


def open_drawer(qtbot, drawer, key=""):
    drawer.open(key)
    qtbot.waitUntil(lambda: drawer.dialog.ready, timeout=DEADLINE)
    return drawer.dialog


def close_drawer(qtbot, drawer):
    qtbot.keyClick(drawer.dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: drawer.dialog is None)


def test_what_was_left_unsaved_can_be_brought_back(qtbot, config, drawer):
    again = open_drawer(qtbot, drawer)
    assert again.draft.changes == {}
    again.notice.act()
    assert again.draft.changes == {"instrument.name": "Scope 3"}
    assert config.read_text() == FILE


def test_what_was_left_unsaved_outlives_settings_that_others_save(qtbot, drawer):
    controller = drawer._context.controller
    with qtbot.waitSignal(controller.settings_changed):
        controller.reload_settings()  # as after a speed test

    again = open_drawer(qtbot, drawer)
    again.notice.act()
    assert again.draft.changes == {"instrument.name": "Scope 3"}


def test_what_was_brought_back_is_not_offered_again(qtbot, drawer):
    dialog = open_drawer(qtbot, drawer)
    dialog.notice.act()
    dialog.draft.reset("instrument.name")
    assert dialog.draft.changes == {}
    close_drawer(qtbot, drawer)

    assert open_drawer(qtbot, drawer).notice.isHidden()


def test_what_was_left_unsaved_is_forgotten_when_something_is_saved(qtbot, drawer, config):
    dialog = open_drawer(qtbot, drawer, "transfer.channels")
    dialog.panes.find_row("transfer.channels").editor.field.setValue(2)
    dialog.accept()
    qtbot.waitUntil(lambda: drawer.dialog is None, timeout=DEADLINE)
    assert "channels = 2" in config.read_text()

    assert open_drawer(qtbot, drawer).notice.isHidden()


@pytest.fixture
def program(qtbot, config, home):
    program = Program(LaunchOptions(config, config, home / "state", home / "logs"))
    yield program
    program.close()
    program.window.deleteLater()


def test_the_window_opens_the_settings_and_reports_that_they_were_not_saved(qtbot, program):
    program.controller.open_page("settings", "instrument.name")
    dialog = program.drawer.dialog
    qtbot.waitUntil(lambda: dialog.ready, timeout=DEADLINE)
    assert dialog.focusWidget() is dialog.panes.find_row("instrument.name").editor.field
    qtbot.keyClicks(dialog.focusWidget(), "Scope 3")
    dialog.reject()

    assert program.presence.banner.isVisibleTo(program.window)


def says(widget, text):
    return text in {label.text() for label in widget.findChildren(QLabel)}


def test_the_window_tells_of_a_newer_version_and_only_tells(qtbot, home, config, monkeypatch):
    with publishing() as page:
        page.text = b"99.0\n"
        monkeypatch.setenv("MYDATA_LIKE_WINDOW_UPDATE_URL", page.url)
        program = Program(LaunchOptions(config, config, home / "state", home / "logs"))
        program.open()
        banner = program.presence.banner
        qtbot.waitUntil(lambda: says(banner, "Version 99.0 is available"), timeout=DEADLINE)
        program.close()
        program.window.deleteLater()

    assert len(page.calls) == 1


def test_the_connection_is_tried_step_by_step_before_anything_is_saved(qtbot, context, site):
    before = site.config.read_text()
    dialog = SettingsDialog(context)
    qtbot.addWidget(dialog)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    dialog.show()
    qtbot.waitUntil(lambda: dialog.ready, timeout=DEADLINE)
    settings = load_settings(site.config).settings
    request = RunRequest(settings=settings, config=site.config)
    register(request, RunObserver())

    qtbot.mouseClick(dialog.trying, Qt.MouseButton.LeftButton)
    tester = dialog.findChild(ConnectionTestDialog)
    qtbot.waitUntil(lambda: tester.head.text() == "The connection works", timeout=DEADLINE)

    assert set(tester.test.results) == {"ok"}
    assert len(tester.test.results) >= 6
    assert site.config.read_text() == before


def test_a_wrong_key_fails_the_trial_before_it_is_stored(qtbot, context, site):
    secrets = site.config.with_name("secrets.toml")
    before = secrets.read_text()
    dialog = SettingsDialog(context)
    qtbot.addWidget(dialog)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    dialog.show()
    qtbot.waitUntil(lambda: dialog.ready, timeout=DEADLINE)
    qtbot.keyClicks(dialog.key_row.focusProxy(), KEY)

    qtbot.mouseClick(dialog.trying, Qt.MouseButton.LeftButton)
    tester = dialog.findChild(ConnectionTestDialog)
    qtbot.waitUntil(lambda: tester.head.text() == "The test failed", timeout=DEADLINE)

    assert tester.test.results == ["failed"]
    assert secrets.read_text() == before


def test_the_entered_s3_secret_is_tried_before_it_is_stored(qtbot, context, site):
    with ObjectServer() as service:
        use_storage(site, service.url)
        secrets = site.config.with_name("secrets.toml")
        FileSecrets(secrets).forget(Owner(service.url, ACCOUNT))
        before = secrets.read_text()
        register(
            RunRequest(settings=load_settings(site.config).settings, config=site.config),
            RunObserver(),
        )
        dialog = SettingsDialog(context)
        qtbot.addWidget(dialog)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
        dialog.show()
        qtbot.waitUntil(lambda: dialog.ready)

        assert try_connection(qtbot, dialog) == "The test failed"
        qtbot.keyClicks(dialog.s3_row.focusProxy(), SECRET)
        assert try_connection(qtbot, dialog) == "The connection works"

        assert "PutObject" in service.kinds()
        assert service.objects == {}
        assert secrets.read_text() == before


def try_connection(qtbot, dialog):
    """Test the connection with the button of the dialog; return the conclusion."""
    qtbot.mouseClick(dialog.trying, Qt.MouseButton.LeftButton)
    tester = dialog.findChildren(ConnectionTestDialog)[-1]
    qtbot.waitUntil(lambda: not tester.head.text().startswith("Testing"))
    tester.close()
    return tester.head.text()


def test_only_what_concerns_the_kind_of_destination_is_shown(qtbot, dialog, config, tmp_path):
    there, data = tmp_path / "there", tmp_path / "data"
    for folder in (there, data):
        folder.mkdir()
    kind = dialog.panes.find_row("destination.kind").editor.field
    address = dialog.panes.find_row("destination.address")
    assert dialog.panes.found[:2] == ("destination.kind", "server.url")
    assert "Not used" in address.source.text

    kind.setCurrentIndex(kind.findData("folder"))
    kind.activated.emit(kind.currentIndex())
    assert dialog.panes.found[:3] == (
        *("destination.kind", "destination.address", "window.start_at_login"),
    )
    assert not dialog.key_row.isVisible()
    assert address.problem.text == "Needed before a run can start"
    type_into(qtbot, dialog, "destination.address", str(there))
    type_into(qtbot, dialog, "data.directory", str(data))
    assert "data.layout" not in dialog.panes.found
    assert try_connection(qtbot, dialog) == "The connection works"
    save(qtbot, dialog)

    settings = load_settings(config).settings
    assert (settings.destination.kind, settings.destination.address) == ("folder", str(there))
    assert list(there.iterdir()) == []


def find_fold(dialog):
    """Return the button that shows the rare settings of the server."""
    section = dialog.panes.find_row("server.proxy").parentWidget()
    return section.findChild(FoldButton)


def test_rare_settings_are_folded(dialog):
    assert "server.url" in dialog.panes.found
    assert "server.proxy" not in dialog.panes.found

    find_fold(dialog).click()
    assert "server.proxy" in dialog.panes.found

    find_fold(dialog).click()
    assert "server.proxy" not in dialog.panes.found


def test_a_search_finds_what_is_folded(dialog):
    dialog.panes.search("proxy")
    assert "server.proxy" in dialog.panes.found
    assert not find_fold(dialog).isVisible()

    dialog.panes.search("")
    assert "server.proxy" not in dialog.panes.found


def test_a_setting_that_another_page_asks_for_is_unfolded(dialog):
    dialog.panes.reveal("server.proxy")

    assert find_fold(dialog).isChecked()
    assert dialog.panes.find_row("server.proxy").isVisible()


def test_rare_settings_of_the_user_are_shown(open_dialog, config):
    config.write_text(FILE + 'proxy = "none"\n')
    dialog = open_dialog()

    assert {"server.proxy", "server.deadline"} <= set(dialog.panes.found)
