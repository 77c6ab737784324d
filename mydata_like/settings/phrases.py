"""The texts of the one list of settings, for whoever translates the window."""

from collections.abc import Iterator
from typing import Final

from mydata_like.settings.about import About
from mydata_like.settings.schema import iter_settings

CONTEXT: Final = "settings"  # under which the window looks its texts up


def short_unit(about: About) -> str:
    """Return the unit of a number as a field shows it, without what explains it."""
    return about.unit.partition(" (")[0]


def list_phrases() -> Iterator[str]:
    """Yield each label, explanation and unit once."""
    abouts = [setting.about for setting in iter_settings()]
    texts = (text for about in abouts for text in (about.label, about.help, short_unit(about)))
    return iter(dict.fromkeys(filter(None, texts)))
