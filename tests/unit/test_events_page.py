"""The page of events lists the events and codes of the program."""

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from mydata_like.core.events import Event, event_name
from tests.events_page import build_reference

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")
COMMON = PAGE.partition("Common fields")[2].partition("\n\n")[0]


def test_the_page_has_been_made_since_events_and_codes_changed():
    assert build_reference(PAGE) == PAGE, "make pages"


def test_what_is_written_around_events_and_codes_stays():
    old = PAGE.replace("### run_started", "### run_begun").replace(
        "| `file.changed` |", "| `old` |"
    )

    assert build_reference(old) == PAGE


@pytest.mark.parametrize("event", get_args(Event), ids=event_name)
def test_every_field_is_explained(event):
    explained = re.findall(r"`(\w+)`", COMMON + event.__doc__)

    assert [field.name for field in fields(event) if field.name not in explained] == []
