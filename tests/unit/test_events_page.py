"""The page of events lists the events and codes of the program."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from mydata_like.core.events import Event, event_name
from mydata_like.core.problems import PROBLEMS
from tests.events_page import list_codes, list_events

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")
COMMON = PAGE.partition("Common fields")[2].partition("\n\n")[0]


def test_each_event_and_each_code_is_listed_once():
    events = re.findall(r"^### (\w+)$", "".join(list_events()), re.MULTILINE)
    codes = re.findall(r"^- `([^`]+)`", "".join(list_codes()), re.MULTILINE)

    assert events == [event_name(event) for event in get_args(Event)]
    assert sorted(codes) == sorted(PROBLEMS)


@pytest.mark.parametrize("event", get_args(Event), ids=event_name)
def test_every_field_is_explained(event):
    explained = re.findall(r"`(\w+)`", COMMON + event.__doc__)

    assert [field.name for field in fields(event) if field.name not in explained] == []
