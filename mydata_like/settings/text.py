"""Single settings as text: from an environment variable or an option, and back for a person."""

import datetime
import tomllib
from enum import Enum
from pathlib import Path

from mydata_like.settings.about import Setting

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def parse_value(setting: Setting, text: str) -> object:
    """Return what a settings file would hold for this text.

    Lists are parted by commas or written as in TOML. What cannot be read as the setting's kind
    is returned as it is: the check of the value says what is wrong with it.
    """
    text = text.strip()
    if setting.many:
        return _parse_list(text)
    if setting.kind is bool:
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(
            text.lower(), text
        )
    if setting.kind in (int, float):
        return _parse_number(setting.kind, text)
    return text


def _parse_list(text: str) -> object:
    if text.startswith("["):
        try:
            return tomllib.loads(f"list = {text}")["list"]
        except (ValueError, RecursionError):
            return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _parse_number(kind: type, text: str) -> object:
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def format_value(setting: Setting, value: object) -> str:
    """Return a value as `parse_value` reads it; a secret one as three stars."""
    if setting.about.secret and value:
        return "***"
    if isinstance(value, tuple | list):
        return ", ".join(format_value(setting, member) for member in value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value)
    return "" if value is None else str(value)


def plain_value(value: object) -> object:
    """Return a checked value as TOML and JSON hold it: plain text, numbers and lists."""
    if isinstance(value, tuple):
        return [plain_value(member) for member in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path | datetime.date | datetime.time):
        return str(value)
    return value
