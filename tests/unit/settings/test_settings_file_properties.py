"""The settings file under random edits and random damage."""

import tempfile
import tomllib
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.settings.fields import InvalidSettingsError, format_value, parse_value, plain_value
from mydata_like.settings.layers import LayerSources, load_settings
from mydata_like.settings.schema import Settings, check_values, iter_settings, settings_by_key
from mydata_like.settings.settings_file import edit_settings_file, edit_text, read_settings_file

LINES = st.text(st.characters(exclude_categories=("C", "Z")), max_size=12)
FULL = """\
# Settings of our microscope

[server]  # the server
url = "https://data.example.org"
username = "facility"  # ask Ada
requests = 2

[data]
directory = "/data"
layout = "Dataset"

[filters]
excludes = [
    "*.tmp",  # rubbish
    "cache/",
]
settle_seconds = 90.5

[schedule]
time = 18:30:00
"""


def right_value(setting):
    """Return a strategy of values that are right for a setting, as TOML has them."""
    numbers = {int: st.integers, float: st.floats}
    if setting.kind in numbers:
        return numbers[setting.kind](*setting.limits)
    if setting.kind is bool:
        return st.booleans()
    if setting.key in ("instrument.name", "filters.owner", "filters.includes"):
        return st.lists(LINES, max_size=6) if setting.many else LINES
    choice = st.sampled_from(setting.choices or [plain_value(setting.default)])
    return st.lists(choice, unique=True) if setting.choices and setting.many else choice


@st.composite
def changes(draw):
    editable = [entry for entry in iter_settings() if entry.default is not None]
    keys = draw(st.lists(st.sampled_from([entry.key for entry in editable]), unique=True))
    return {key: draw(right_value(settings_by_key()[key])) for key in keys}


@given(changes())
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_and_comments_survive(wanted):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.toml"
        path.write_text(FULL, encoding="utf-8")

        edit_settings_file(path, wanted)

        found = read_settings_file(path)
        before = {"server.url": "https://data.example.org", "data.directory": "/data"}
        assert not found.problems
        assert {**found.values, **wanted} == found.values
        assert {**before, **wanted}.items() <= found.values.items()
        assert all(
            comment in path.read_text(encoding="utf-8")
            for comment in ("# Settings of our microscope", "# the server", "# ask Ada")
        )


@given(changes())
@settings(max_examples=60, deadline=None)
def test_setting_and_removing_gives_back_the_values(wanted):
    edited = edit_text(FULL, {key: value for key, value in wanted.items() if key not in FULL})
    back = edit_text(edited, dict.fromkeys(wanted))

    table, original = tomllib.loads(back), tomllib.loads(FULL)
    for section, content in original.items():
        for name, value in content.items():
            if f"{section}.{name}" not in wanted:
                assert table[section][name] == value


@given(changes())
@settings(max_examples=60, deadline=None)
def test_the_text_of_a_value_is_read_back_as_the_value(wanted):
    for key, value in wanted.items():
        setting = settings_by_key()[key]
        right = check_values({key: value})[0]
        # Commas part the members of a list; a rule of its section may refuse a value alone.
        if right is not None and not (key == "filters.includes" and is_awkward(value)):
            text = format_value(setting, right.value(key))
            assert check_values({key: parse_value(setting, text)})[0] == right


def is_awkward(members):
    return any("," in member or not member for member in members) or "".join(members)[:1] == "["


def load_text(content):
    """Return the settings that a file makes, or None and all that is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.toml"
        path.write_bytes(content)
        try:
            return load_settings(LayerSources(user=path, environment={})).settings, ()
        except InvalidSettingsError as error:
            return None, error.problems


@given(
    st.integers(0, len(FULL) - 1),
    st.integers(0, 30),
    st.one_of(st.binary(max_size=6), st.sampled_from([b'"', b"[", b"=", b"\n", b"\0", b"'''"])),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_file_is_reported_or_has_its_own_message(start, length, junk):
    content = FULL.encode()
    content = content[:start] + junk + content[start + length :]

    loaded, problems = load_text(content)

    if loaded is None:
        assert all(problem.message for problem in problems)
    else:
        # Nothing the file still says may have been replaced by a default.
        table = tomllib.loads(content.decode("utf-8-sig"))
        values = {f"{s}.{k}": v for s, content in table.items() for k, v in content.items()}
        assert check_values(values) == (loaded, ())


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_is_never_taken_for_settings(content):
    loaded, problems = load_text(content)

    if loaded is None:
        assert problems
    else:
        assert tomllib.loads(content.decode("utf-8-sig")) == {}
        assert loaded == Settings()
