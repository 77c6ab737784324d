"""Lines in, commands or their problems out; nothing that is written there does any harm."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.commands import (
    LONGEST,
    Cancel,
    CancelTransfer,
    CommandLine,
    ListNext,
    Pause,
    Resume,
    Retry,
    RetryTransfer,
    SendNext,
    SetBandwidth,
    SetChannels,
    Stop,
    parse_command,
)
from mydata_like.core.errors import Problem
from mydata_like.core.extra_sources import Destination, SourceRequest
from tests.privileges import needs_bytes


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('{"command": "pause"}', Pause()),
        ('{"command": "resume"}', Resume()),
        ('{"command": "stop"}', Stop(now=True)),
        ('{"command": "stop", "now": false}', Stop(now=False)),
        ('{"command": "cancel", "path": "a/b c.raw"}', Cancel("a/b c.raw")),
        ('{"command": "cancel_transfer", "transfer": 7}', CancelTransfer(7)),
        ('{"command": "retry", "path": "a/"}', Retry("a/")),
        ('{"command": "retry_transfer", "transfer": 7}', RetryTransfer(7)),
        ('{"command": "set_channels", "channels": 3}', SetChannels(3)),
        ('{"command": "set_bandwidth", "bandwidth": 2.5e6}', SetBandwidth(2.5e6)),
        ('{"command": "set_bandwidth", "bandwidth": 0}', SetBandwidth(0)),
        ('{"command": "send_next", "path": "a/b"}', SendNext(["a/b"])),
        ('{"command": "send_next", "paths": ["a/b", "c"]}', SendNext(["a/b", "c"])),
        ('{"command": "list_next"}', ListNext()),
        ('{"command": "list_next", "most": 3}', ListNext(3)),
        ('\ufeff {"command": "pause"}\r\n', Pause()),
    ],
)
def test_commands_are_understood(text, command):
    assert parse_command(text.encode()).command == command


@pytest.mark.parametrize("number", [None, 7, -1, "seven", ""])
def test_an_id_is_sent_back(number):
    line = json.dumps({"command": "pause", "id": number}).encode()

    assert parse_command(line) == CommandLine(number, "pause", Pause())


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("", "unreadable", "not JSON"),
        ('{"command": "pause"', "unreadable", "not JSON"),
        ('["pause"]', "unreadable", "not a JSON object"),
        ("[" * 50_000, "unreadable", "not JSON"),
        ("9" * 50_000, "unreadable", "not JSON"),
        ('"' + "x" * LONGEST + '"', "unreadable", "longer than"),
        ("{}", "unknown", 'no command ""'),
        ('{"command": 5}', "unknown", 'no command ""'),
        ('{"command": "Pause"}', "unknown", '"Pause"'),
        ('{"command": "pause", "soon": 1}', "invalid", 'has no field "soon"'),
        ('{"command": "stop", "now": 1}', "invalid", "true or false"),
        ('{"command": "cancel"}', "invalid", 'needs the field "path"'),
        ('{"command": "cancel_transfer"}', "invalid", 'needs the field "transfer"'),
        ('{"command": "cancel_transfer", "transfer": 0}', "invalid", '"transfer" must be'),
        ('{"command": "cancel_transfer", "transfer": 1.5}', "invalid", '"transfer" must be'),
        ('{"command": "cancel_transfer", "transfer": true}', "invalid", '"transfer" must be'),
        ('{"command": "cancel", "path": 1}', "invalid", '"path" must be'),
        ('{"command": "cancel", "path": ""}', "invalid", '"path" must be'),
        ('{"command": "cancel", "path": "/"}', "invalid", '"path" must be'),
        ('{"command": "cancel", "path": "/etc/../x"}', "invalid", '"path" must be'),
        (r'{"command": "add_source", "path": "/a\u0000"}', "invalid", '"path" must be'),
        pytest.param(
            r'{"command": "add_source", "path": "/\ud800"}',
            "invalid",
            '"path" must be',
            marks=needs_bytes,
        ),
        ('{"command": "add_source", "path": "/a", "as": ["b"]}', "invalid", '"as" must be'),
        ('{"command": "add_source", "path": "/a", "as": ["b", 1]}', "invalid", '"as" must be'),
        ('{"command": "add_source", "path": "/a", "as_": []}', "invalid", 'has no field "as_"'),
        ('{"command": "cancel", "path": "a/../b"}', "invalid", '"path" must be'),
        ('{"command": "set_channels", "channels": -1}', "invalid", "from 0 to"),
        ('{"command": "set_channels", "channels": true}', "invalid", "from 0 to"),
        ('{"command": "set_channels", "channels": 1.5}', "invalid", "from 0 to"),
        ('{"command": "set_bandwidth", "bandwidth": -1}', "invalid", "bytes per second"),
        ('{"command": "list_next", "most": 0}', "invalid", "from 1 to 1000"),
        ('{"command": "send_next"}', "invalid", 'needs the field "paths"'),
        ('{"command": "send_next", "path": ""}', "invalid", '"paths" must be'),
        ('{"command": "send_next", "paths": "a"}', "invalid", '"paths" must be'),
        ('{"command": "send_next", "paths": []}', "invalid", "1 to 100 paths"),
        ('{"command": "send_next", "paths": ["a", ".."]}', "invalid", '"paths" must be'),
        ('{"command": "send_next", "path": "a", "paths": ["b"]}', "invalid", 'no field "path"'),
        ('{"command": "set_bandwidth", "bandwidth": NaN}', "unreadable", "not JSON"),
        ('{"command": "set_bandwidth", "bandwidth": Infinity}', "unreadable", "not JSON"),
        ('{"command": "pause", "id": [1]}', "invalid", '"id" must be'),
        ('{"command": "pause", "id": 1e400}', "unreadable", "not JSON"),
    ],
)
def test_the_problem_is_reported(text, code, said):
    problem = parse_command(text.encode()).command

    assert isinstance(problem, Problem)
    assert problem.code == f"command.{code}"
    assert said in problem.message


def test_a_source_is_offered_with_or_without_what_it_becomes():
    line = rb'{"command": "add_source", "path": "/a\udcff", "as": ["Mice", "Day 1"]}'

    assert parse_command(line).command.offer == SourceRequest(
        os.fsencode("/a\udcff"), Destination("", "Mice", "Day 1")
    )
    assert parse_command(b'{"command": "add_source", "path": "/a"}').command.offer == SourceRequest(
        b"/a"
    )


def test_the_nearest_name_is_suggested():
    assert '"set_channels"' in parse_command(b'{"command": "set_chanels"}').command.hint


def test_bytes_that_are_no_text_are_refused():
    assert parse_command(b'{"command": "pause\xff"}').command.code == "command.unreadable"


@pytest.mark.parametrize("word", [r"\ud800", r"\u001b[31m", r"\u202e", "x" * 300])
def test_what_is_sent_back_can_be_shown(word):
    asked = parse_command(f'{{"command": "{word}", "id": "{word}"}}'.encode())

    assert asked.id is None
    assert len(asked.name) <= 200
    assert asked.name.isprintable()


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["command", "id", "path", "now", "x"]), inner, max_size=4
            )
        ),
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_line_breaks_the_parser(line):
    asked = parse_command(line)

    json.dumps([asked.id, asked.name], ensure_ascii=False).encode()
