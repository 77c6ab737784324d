"""Every setting has a field that shows its value and gives it back."""

import datetime

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication

from mydata_like.gui import setting_labels
from mydata_like.gui.settings_editor.editors import make_editor
from mydata_like.gui.settings_editor.form import SettingRow
from mydata_like.settings.fields import plain_value
from mydata_like.settings.pending_changes import PendingChanges
from mydata_like.settings.schema import check_values, iter_settings, settings_by_key

SETTINGS = list(iter_settings())
UNTRANSLATED = ("data.layout", "advanced.log_level")  # settings and choices without labels
NAMES = {"libssh", "paramiko"}
OTHERS = {  # values that are not the default, where they cannot be made from the schema
    "server.url": "https://data.example.org",
    "server.proxy": "none",
    "transfer.s3_endpoint": "https://s3.example.org",
    "instrument.contact_email": "ada@example.org",
    "filters.ignore_older_than": "6 months",
    "filters.ignore_newer_than": "2 days",
    "transfer.ciphers": ["aes256-ctr"],
    "transfer.host_keys": ["SHA256:" + "a" * 43],
    "transfer.ssh_jump": ["me@gateway:22"],
    "limits.timetable": ["monday-friday 09:00-17:00 5", "22:00-06:00 0"],
    "limits.quiet_hours": ["22:00-06:00"],
    "archive.rules": ["*.dcm below 1 MB from 500 files by dataset"],
    "monitor.signal_url": "https://ping.example.org",
    "window.update_url": "https://www.example.org/version",
}


def other_value(setting):
    """Return a right value that is not the default, as a file has it."""
    if setting.key in OTHERS:
        return OTHERS[setting.key]
    if setting.choices:
        other = next(choice for choice in setting.choices if choice != setting.default)
        return [other] if setting.many else other
    if setting.many:
        return ["one", "two"]
    kinds = {
        bool: not setting.default,
        int: (setting.limits[1] or 2) - 1,
        float: (setting.limits[1] or 2) - 0.5,
        datetime.date: "2031-05-17",
        datetime.time: "13:37:00",
    }
    return kinds.get(setting.kind, "/data/there" if setting.default is None else "some text")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_a_value_comes_back_as_it_was_shown(qtbot, setting):
    editor = make_editor(setting)
    qtbot.addWidget(editor)

    for value in (other_value(setting), plain_value(setting.default)):
        editor.show_value(value)
        shown = PendingChanges()
        shown.set(setting.key, editor.value() or None)
        expected = PendingChanges()
        expected.set(setting.key, value or None)
        assert shown.value(setting.key) == expected.value(setting.key)
    problems = check_values({setting.key: other_value(setting)})[1]
    assert problems == ()


def test_every_choice_of_words_is_said_in_words(qtbot):
    for setting in SETTINGS:
        names = [setting_labels.name_choice(setting, choice) for choice in setting.choices]
        assert len(set(names)) == len(names), setting.key
        if setting.key not in UNTRANSLATED:
            assert set(names) & set(setting.choices) <= NAMES, setting.key


def test_a_zero_that_is_no_amount_is_said_in_words():
    for key in ("data.brake", "data.keep_replaced"):
        assert setting_labels.name_zero(settings_by_key()[key])


def test_what_happens_to_changed_files_comes_before_how_long_replaced_content_is_kept():
    keys = [setting.key for setting in SETTINGS]
    ours = [f"data.{name}" for name in ("changed", "keep_replaced", "replace_freely", "brake")]

    assert [key for key in keys if key in ours] == ours
    assert "keep-both" not in setting_labels.help_of(settings_by_key()["data.changed"])


def test_every_section_is_in_one_tab_and_has_a_heading():
    sections = [name for tab in setting_labels.list_tabs() for name in tab.sections]

    assert sorted(sections) == sorted({setting.section for setting in SETTINGS})
    assert all(setting_labels.name_section(name) for name in sections)


def test_showing_a_value_is_not_an_edit(qtbot):
    for setting in SETTINGS:
        editor = make_editor(setting)
        qtbot.addWidget(editor)
        edits = []
        editor.edited.connect(lambda edits=edits: edits.append(1))
        editor.show_value(other_value(setting))
        assert edits == [], setting.key


def test_a_fixed_field_is_read_only(qtbot):
    for setting in SETTINGS:
        editor = make_editor(setting)
        qtbot.addWidget(editor)
        editor.show_value(other_value(setting))
        before = editor.value()
        editor.set_fixed(fixed=True)
        editor.show()
        for key in (Qt.Key.Key_5, Qt.Key.Key_Space, Qt.Key.Key_Down):
            qtbot.keyClick(editor.field, key)
        assert editor.value() == before, setting.key


def test_the_wheel_scrolls_the_page_and_changes_no_value(qtbot):
    for key in ("transfer.channels", "schedule.kind", "schedule.time", "schedule.date"):
        editor = make_editor(settings_by_key()[key])
        qtbot.addWidget(editor)
        editor.show()
        before = editor.value()
        turn = QWheelEvent(
            QPointF(5, 5),
            QPointF(5, 5),
            QPoint(0, -120),
            QPoint(0, -120),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(editor.field, turn)
        assert editor.value() == before


def test_a_number_has_its_unit_and_no_needless_zeros(qtbot):
    editor = make_editor(settings_by_key()["filters.settle_seconds"])
    qtbot.addWidget(editor)

    editor.show_value(60.0)
    assert editor.field.text() == "60 s"
    editor.show_value(0.25)
    assert editor.field.text() == "0.25 s"


def test_a_zero_that_is_not_an_amount_is_shown_in_words(qtbot):
    editor = make_editor(settings_by_key()["limits.bandwidth"])
    qtbot.addWidget(editor)

    editor.show_value(0.0)

    assert editor.field.text() == "no limit"


def test_keys_of_other_settings_are_called_by_their_labels(qtbot):
    row = SettingRow(settings_by_key()["server.url"])
    qtbot.addWidget(row)
    draft = PendingChanges()
    draft.set("server.url", "http://data.example.org")

    row.show_draft(draft)

    assert "Allow unencrypted http" in row.problem.text
    assert "server.allow_http" not in row.problem.text
