"""Events are read again as they were written, also those of another version."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import datetime
from functools import reduce
from operator import or_
from pathlib import Path
from types import NoneType
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, FileWanted, event_name, event_record, parse_event
from mydata_like.core.formatting import format_json
from mydata_like.core.parsing import moment_of, parse_json

PROGRAM = Path(__file__).parents[3] / "mydata_like"
EVENTS = pytest.mark.parametrize("kind", get_args(Event), ids=event_name)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PATH = st.text(st.characters(exclude_categories=["C", "Z"])).map(str.encode)
WHOLE = st.integers(-(10**18), 10**18)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
VALUES = {
    bytes: PATH,
    str: TEXT,
    int: WHOLE,
    float: NUMBER,
    bool: st.booleans(),
    datetime: st.integers(0, 2 * 10**17).map(lambda number: moment_of(number / 1e6)),
    Problem: st.builds(Problem, TEXT, TEXT, TEXT),
    Mapping[str, float]: st.dictionaries(TEXT, NUMBER),
    tuple[bytes, ...]: st.lists(PATH).map(tuple),
    tuple[int, ...]: st.lists(WHOLE).map(tuple),
    NoneType: st.none(),
}
EMPTY = {Mapping[str, float]: {}, tuple[bytes, ...]: [], tuple[int, ...]: []}
WRONG = [[], {}, {"code": 1, "message": ""}, {"a": "b"}, object(), float("nan"), float("inf")]


def values_of(kind):
    return VALUES[kind] if kind in VALUES else reduce(or_, map(values_of, get_args(kind)))


def events_of(kind):
    return st.builds(kind, **{field.name: values_of(field.type) for field in fields(kind)})


@EVENTS
@settings(max_examples=10)
@given(data=st.data())
def test_an_event_is_read_as_it_was_written(kind, data):
    event = data.draw(events_of(kind))

    assert parse_event(parse_json(format_json(event_record(event)))) == event


@given(st.binary())
def test_a_path_of_any_bytes_is_printed_again_as_it_was(path):
    record = event_record(FileWanted(path=path, size=1))

    assert event_record(parse_event(record)) == record


def values(event):
    return {field.name: getattr(event, field.name) for field in fields(event)}


@EVENTS
@settings(max_examples=10)
@given(data=st.data())
def test_fields_of_another_version_do_no_harm(kind, data):
    event = data.draw(events_of(kind))
    record = event_record(event) | {"colour": "red"}
    optional = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    for name in optional:
        del record[name]

    assert parse_event(record) == kind(**values(event) | optional)


@EVENTS
@settings(max_examples=10)
@given(data=st.data())
def test_values_of_another_type_are_refused(kind, data):
    record = event_record(data.draw(events_of(kind)))
    for field in fields(kind):
        wrong = [each for each in WRONG if each != EMPTY.get(field.type)]
        with pytest.raises(ValueError, match="instead of"):
            parse_event(record | {field.name: data.draw(st.sampled_from(wrong))})
        if field.default is MISSING:
            with pytest.raises(ValueError, match=f"without {field.name}"):
                parse_event({name: record[name] for name in record if name != field.name})


@pytest.fixture(scope="module")
def given_fields():
    """Return the names of the fields that the program gives to events, by what is called."""
    names = defaultdict(set)
    for file in PROGRAM.rglob("*.py"):
        text = file.read_text("utf-8")
        if file.name == "events.py" or "mydata_like.core.events import" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    names[node.func.id].update(keyword.arg for keyword in node.keywords)
    return names


@EVENTS
def test_every_field_with_a_default_is_given_somewhere(kind, given_fields):
    optional = {field.name for field in fields(kind) if field.default is not MISSING}

    given = given_fields[kind.__name__] | given_fields["cls"] | given_fields["replace"]
    assert optional - given == set()


@pytest.mark.parametrize("name", ["run_begun", "", None, 7, [], {}])
def test_an_event_of_another_name_is_none(name):
    assert parse_event({"event": name}) is None
    assert parse_event({}) is None
