"""The texts of settings: labels, tabs, headings, choices and origins."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication

from mydata_like.gui.theme import texts
from mydata_like.settings.fields import Setting
from mydata_like.settings.layers import Layer, ResolvedValue
from mydata_like.settings.schema import CONTEXT, short_unit

translate = QCoreApplication.translate
look_up = QCoreApplication.translate  # for the schema's texts: see settings/schema.py


class Tab(NamedTuple):
    """One tab of the dialog, and the sections of the settings that it shows."""

    title: str
    sections: tuple[str, ...]


def list_tabs() -> list[Tab]:
    """Return the tabs in their order; together they show every section once."""
    return [
        Tab(
            translate("settings", "&General"),
            ("destination", "server", "instrument", "window"),
        ),
        Tab(translate("settings", "&Data and layout"), ("data",)),
        Tab(translate("settings", "&Filters"), ("filters",)),
        Tab(translate("settings", "&Schedule"), ("schedule", "limits")),
        Tab(translate("settings", "&Transfer"), ("transfer",)),
        Tab(translate("settings", "&Advanced"), ("advanced", "monitor", "archive")),
    ]


def name_section(section: str) -> str:
    """Return the heading of a section."""
    return {
        "destination": translate("settings", "Where the data goes"),
        "server": translate("settings", "Server"),
        "instrument": translate("settings", "Instrument"),
        "window": translate("settings", "Window"),
        "data": translate("settings", "Data"),
        "filters": translate("settings", "Which files are uploaded"),
        "schedule": translate("settings", "When runs start"),
        "limits": translate("settings", "Limits while the instrument is in use"),
        "transfer": translate("settings", "Transfers"),
        "advanced": translate("settings", "Rarely needed settings"),
        "monitor": translate("settings", "Health signals"),
        "archive": translate("settings", "Archives of tiny files"),
    }[section]


def label_of(setting: Setting) -> str:
    """Return the label of a setting."""
    return look_up(CONTEXT, setting.about.label)


def help_of(setting: Setting) -> str:
    """Return the sentence that explains a setting."""
    text = texts.with_labels(look_up(CONTEXT, setting.about.help))
    example = EXAMPLES.get(setting.key, "")
    if not example or example in text:
        return text
    shown = example.replace("\n", ", ")
    return f"{text} {translate('settings', 'Example: %1').replace('%1', shown)}"


def unit_of(setting: Setting) -> str:
    """Return the unit of a number, short enough for its field."""
    return look_up(CONTEXT, short_unit(setting.about))


def name_choice(setting: Setting, choice: str) -> str:
    """Return the label of a choice; self-explanatory choices stay unchanged."""
    return _name_choices().get(setting.key, {}).get(choice) or _name_days().get(choice, choice)


def name_zero(setting: Setting) -> str:
    """Return what a zero means if it is not an amount; empty if it is one."""
    return {
        "data.keep_replaced": translate("settings", "not kept"),
        "data.brake": translate("settings", "off"),
        "transfer.channels": translate("settings", "automatic"),
        "transfer.batch_below": translate("settings", "each file alone"),
        "limits.bandwidth": translate("settings", "no limit"),
        "limits.pause_under_pressure": translate("settings", "never"),
        "monitor.silent_hours": translate("settings", "never"),
    }.get(setting.key, "")


def name_source(given: ResolvedValue) -> str:
    """Return where a value comes from."""
    return {
        Layer.DEFAULT: translate("settings", "Default"),
        Layer.MANAGED: translate("settings", "From the managed file"),
        Layer.SERVER: translate("settings", "From the server"),
        Layer.USER: translate("settings", "From your file"),
        Layer.ENVIRONMENT: translate("settings", "From the environment"),
        Layer.OPTION: translate("settings", "From the command line"),
    }[given.source]


def name_lock(given: ResolvedValue, fixed_by: str) -> str:
    """Return who locked a value."""
    if given.source in (Layer.ENVIRONMENT, Layer.OPTION):
        said = translate("settings", "Set by the environment variable %1")
    else:
        said = translate("settings", "Locked by %1")
    return said.replace("%1", texts.plain(fixed_by))


EXAMPLES: Final[Mapping[str, str]] = {
    "destination.address": "ada@store.example.org:/data/microscope",
    "server.url": "https://mytardis.example.org",
    "server.proxy": "http://proxy.example.org:3128",
    "instrument.contact_email": "name@example.org",
    "filters.ignore_older_than": "6 months",
    "filters.ignore_newer_than": "2 days",
    "filters.includes": "*.tif",
    "filters.excludes": "*.tmp\ncache/",
    "limits.timetable": "monday-friday 09:00-17:00 5\n22:00-06:00 0",
    "limits.quiet_hours": "monday-friday 09:00-17:00",
    "limits.pause_while_running": "acquire.exe",
    "transfer.ssh_jump": "user@gateway.example.org:22",
    "transfer.host_keys": "SHA256:…",
    "archive.rules": "*.dcm below 1 MB from 500 files by dataset",
}


def _name_days() -> Mapping[str, str]:
    return {
        "monday": translate("settings", "Monday"),
        "tuesday": translate("settings", "Tuesday"),
        "wednesday": translate("settings", "Wednesday"),
        "thursday": translate("settings", "Thursday"),
        "friday": translate("settings", "Friday"),
        "saturday": translate("settings", "Saturday"),
        "sunday": translate("settings", "Sunday"),
        "never": translate("settings", "Never"),
    }


def _name_choices() -> Mapping[str, Mapping[str, str]]:
    return {
        "destination.kind": {
            "mytardis": translate("settings", "MyTardis server"),
            "host": translate("settings", "Computer with SSH"),
            "folder": translate("settings", "Folder or network drive"),
            "s3": translate("settings", "Bucket (S3)"),
        },
        "schedule.kind": {
            "manual": translate("settings", "Manually only"),
            "startup": translate("settings", "When the program starts"),
            "saved": translate("settings", "When settings are saved"),
            "once": translate("settings", "Once"),
            "daily": translate("settings", "Every day"),
            "weekly": translate("settings", "On some days of the week"),
            "timer": translate("settings", "At a fixed interval"),
            "watch": translate("settings", "When new files no longer change"),
        },
        "data.unknown_owners": {
            "upload": translate("settings", "Upload for the facility"),
            "skip": translate("settings", "Skip"),
        },
        "data.changed": {
            "keep-both": translate("settings", "Send, and keep the earlier copy"),
            "hold": translate("settings", "Hold until you choose"),
            "replace": translate("settings", "Send always, hold nothing"),
        },
        "filters.symlinks": {
            "skip": translate("settings", "Skip"),
            "files": translate("settings", "Follow to files"),
            "within": translate("settings", "Follow within the data directory"),
        },
        "transfer.method": {
            "auto": translate("settings", "Automatic: SSH as soon as it is approved"),
            "ssh": translate("settings", "SSH"),
            "http": translate("settings", "HTTP"),
            "folder": translate("settings", "Mounted folder"),
            "s3": translate("settings", "Object storage (S3)"),
        },
        "transfer.ssh": {"auto": translate("settings", "Automatic")},
        "transfer.compression": {"auto": translate("settings", "Automatic")},
        "window.opens": {
            "normal": translate("settings", "Normal"),
            "minimized": translate("settings", "Minimised"),
            "maximized": translate("settings", "Maximised"),
            "tray": translate("settings", "In the tray"),
        },
        "window.theme": {
            "system": translate("settings", "Same as the system"),
            "light": translate("settings", "Light"),
            "dark": translate("settings", "Dark"),
        },
        "window.language": {
            "system": translate("settings", "Same as the system"),
            "en": "English",
            "de": "Deutsch",
        },
    }
