import re
from pathlib import Path

from mydata_like.settings.schema import Settings, check_values, iter_settings
from mydata_like.settings.settings_file import read_settings_file
from tests.settings_pages import build_sample

FILE = Path(__file__).parents[2] / "docs" / "admin" / "settings.toml"


def test_the_sample_is_up_to_date():
    assert FILE.read_text("utf-8") == build_sample()


def test_the_sample_changes_nothing(tmp_path):
    assert values_of(tmp_path, build_sample()) == {}


def test_every_line_of_the_sample_can_count_and_says_the_default(tmp_path):
    values = values_of(tmp_path, re.sub(r"^#(?=\w+ = .)", "", build_sample(), flags=re.M))

    settings = [setting for setting in iter_settings() if setting.default is not None]
    assert list(values) == [setting.key for setting in settings]
    assert check_values(values) == (Settings(), ())


def values_of(folder, text):
    """Return what a settings file of this text sets, by key."""
    file = folder / "settings.toml"
    file.write_text(text, encoding="utf-8")
    return dict(read_settings_file(file).values)
