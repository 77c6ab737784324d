"""Names and texts from outside, as lines of text and as JSON."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.formatting import (
    format_duration,
    format_json,
    format_lines,
    format_path,
    format_size,
    format_text,
)

CONTROL = ("Cc", "Cf", "Cs", "Zl", "Zp")
TEXT = st.text(st.characters(exclude_categories=()) | st.characters(categories=CONTROL))


def is_plain(text):
    return not any(unicodedata.category(character) in CONTROL for character in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("a\x7f\x9b\x85", "a\\x7f\\x9b\\x85"),
        ("\u202egpj.exe\u2066\u200e\u061c", "\\u202egpj.exe\\u2066\\u200e\\u061c"),
        ("a\r\nb\tc\u2028", "a\\r\\nb\\tc\\u2028"),
        ("\udcff", "\\udcff"),
        ("Gr\u00f6\u00dfe \u6f22\u5b57 \N{MICROSCOPE} \u00a0 \\x1b", None),
    ],
)
def test_what_acts_without_being_seen_is_escaped(text, shown):
    assert format_text(text) == (text if shown is None else shown)


@given(TEXT)
def test_every_text_is_shown_plainly(text):
    assert is_plain(format_text(text))
    assert is_plain(format_lines(text).replace("\n", ""))
    assert format_lines(text).count("\n") == text.count("\n")


@given(st.binary())
def test_every_path_is_shown_plainly(path):
    assert is_plain(format_path(path))


@given(st.dictionaries(TEXT, TEXT | st.lists(TEXT)), st.sampled_from([None, 2]))
def test_json_holds_no_control_character_and_means_the_same(value, indent):
    text = format_json(value, indent)

    assert is_plain(text.replace("\n", "") if indent else text)
    again = json.loads(text)
    assert json.dumps(again) == json.dumps(value)


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (12_345_678, "12.3 MB"),
     (999e9, "999.0 GB"), (1e12, "1.0 TB"), (5e15, "5000.0 TB")],
)  # fmt: skip
def test_a_size_has_a_decimal_unit(size, shown):
    assert format_size(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.44, "0.4 s"), (9.94, "9.9 s"), (10, "10 s"), (59.4, "59 s"), (245, "4 min 05 s"),
     (3600, "1 h 00 min"), (90_000, "25 h 00 min")],
)  # fmt: skip
def test_a_duration_has_two_units_at_most(seconds, shown):
    assert format_duration(seconds) == shown
