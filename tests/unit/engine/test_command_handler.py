"""Commands: every one is answered once, whenever it comes."""

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from random import Random

import pytest

from mydata_like.core.errors import ServerUnavailableError
from mydata_like.core.events import (
    CommandDone,
    CommandRefused,
    NextListed,
    Notice,
    RunPaused,
    RunResumed,
)
from mydata_like.engine.channels import HELD
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.scheduler import RunRequests
from mydata_like.engine.source_store import ExtraSources
from mydata_like.settings.schema import Settings
from tests.fakes.clock import FakeClock
from tests.fakes.context import make_context
from tests.fakes.roll import MemoryRoll
from tests.unit.engine.files import a_wanted


class Bench:
    def __init__(self):
        self.events = []
        self.cancel = CancelFlag()
        emit, clock = self.events.append, FakeClock()
        gate = Gate(clock, self.cancel, emit, Random(1))
        self.context = make_context(gate, emit, cancel=self.cancel.part())
        self.sources = self.context.sources
        self.controller = CommandHandler(self.cancel, emit)

    def ask(self, *texts):
        for text in texts:
            self.controller.handle(f'{{"command": {text}}}'.encode())

    @property
    def answers(self):
        return [
            (event.command, event.problem.code if isinstance(event, CommandRefused) else "done")
            for event in self.events
            if isinstance(event, CommandDone | CommandRefused)
        ]


@pytest.fixture
def bench():
    return Bench()


def test_commands_act_and_are_answered(bench):
    with bench.controller.over(bench.context):
        bench.ask('"pause"', '"set_channels", "channels": 2', '"set_bandwidth", "bandwidth": 5')
        assert bench.context.gate.held
        bench.ask('"resume"')

    channels = bench.context.channels
    assert (channels.limit, channels.bandwidth.total) == (2, 5)
    assert bench.answers == [
        ("pause", "done"),
        ("set_channels", "done"),
        ("set_bandwidth", "done"),
        ("resume", "done"),
    ]
    assert [type(it) for it in bench.events if isinstance(it, RunPaused | RunResumed)] == [
        RunPaused,
        RunResumed,
    ]


def test_a_pause_has_stopped_the_channels_when_it_is_answered(bench):
    rates = []

    class Line:
        number = 1
        limit = rates.append

    bandwidth = bench.context.channels.bandwidth
    with bench.controller.over(bench.context), bandwidth.used_by(Line()):
        bench.ask('"pause"')
        assert rates == [0, HELD]
        bench.ask('"resume"')
        assert rates == [0, HELD, 0]


def test_the_files_that_are_sent_next_are_listed(bench):
    bench.ask('"list_next"')
    with bench.controller.over(bench.context):
        bench.context.choices.order.add(a_wanted(name, size=5) for name in "abc")
        bench.ask('"send_next", "paths": ["alice/Set 1/c", "alice/Set 1/b"]')
        bench.ask('"list_next", "most": 2')
        bench.ask('"cancel", "path": "alice/Set 1/c"')
        bench.ask('"list_next", "most": 1')

    listed = [event for event in bench.events if isinstance(event, NextListed)]
    paths = b"alice/Set 1/c", b"alice/Set 1/b"
    assert listed == [
        NextListed(paths=(), sizes=()),
        NextListed(paths=paths, sizes=(5, 5)),
        NextListed(paths=(paths[1], paths[0]), sizes=(5, 5), held=1),
    ]
    commands = ("list_next", "send_next", "list_next", "cancel", "list_next")
    assert bench.answers == [(command, "done") for command in commands]


def test_resuming_releases_only_the_users_pause(bench):
    bench.context.gate.hold("quiet", bench.context.choices.retry("x"))
    with bench.controller.over(bench.context):
        bench.ask('"pause"', '"resume"')

    assert bench.context.gate.held


def test_what_comes_before_a_run_is_answered_at_once_and_done_when_it_begins(bench):
    bench.ask('"pause"', '"nonsense"', '"set_bandwidth", "bandwidth": 5', '"retry", "path": "x"')
    answers = [
        ("pause", "done"),
        ("nonsense", "command.unknown"),
        ("set_bandwidth", "done"),
        ("retry", "command.nothing-to-retry"),
    ]
    assert bench.answers == answers

    with bench.controller.over(bench.context):
        assert bench.context.gate.held
        assert bench.context.channels.bandwidth.total == 5
    assert bench.answers == answers


def test_between_the_runs_of_a_watch_commands_are_for_the_next_one(bench):
    controller = CommandHandler(bench.cancel, bench.events.append, RunRequests(bench.cancel))
    with controller.over(bench.context):
        pass
    controller.handle(b'{"command": "pause"}')
    assert bench.answers == [("pause", "done")]

    with controller.over(bench.context):
        assert bench.context.gate.held
    assert bench.answers == [("pause", "done")]


def test_stopping_later_stops_at_once_where_nothing_is_under_way(bench):
    bench.ask('"stop", "now": false')

    assert bench.cancel.is_set()
    assert bench.answers == [("stop", "done")]


def test_stopping_waits_for_no_run(bench):
    bench.ask('"stop"')

    assert bench.cancel.is_set()
    with bench.controller.over(bench.context):
        bench.ask('"pause"')
    assert bench.answers == [("stop", "done"), ("pause", "command.too-late")]


def test_after_a_run_nothing_is_answered(bench):
    with bench.controller.over(bench.context):
        pass

    bench.ask('"pause"', '"stop"')

    assert bench.events == []


def test_stopping_later_lets_no_hold_delay_the_end(bench):
    with bench.controller.over(bench.context):
        bench.ask('"pause"', '"stop", "now": false')
        bench.context.gate.hold("quiet", bench.context.choices.retry("x"))

    assert bench.context.choices.finishing
    assert not bench.context.gate.held
    assert not bench.cancel.is_set()


def test_a_run_can_be_stopped_without_the_watch(bench):
    with bench.controller.over(bench.context):
        bench.ask('"stop_run"')

    assert bench.context.cancel.is_set()
    assert not bench.cancel.is_set()
    assert bench.answers == [("stop_run", "done")]


def test_a_run_can_be_ended_after_what_is_under_way(bench):
    with bench.controller.over(bench.context):
        bench.ask('"stop_run", "now": false')

    assert bench.context.choices.finishing
    assert not bench.context.cancel.is_set()


def a_watch(bench):
    wishes = RunRequests(bench.cancel)
    return CommandHandler(bench.cancel, bench.events.append, wishes), wishes


def test_no_run_cannot_be_stopped(bench):
    bench.controller, _ = a_watch(bench)
    bench.ask('"stop_run"')

    assert bench.answers == [("stop_run", "command.no-run")]


def test_a_run_that_waits_to_begin_is_stopped_without_the_watch(bench):
    bench.controller, _ = a_watch(bench)
    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        bench.ask('"set_channels", "channels": 2', '"stop_run", "now": false', '"pause"')

    assert bench.context.cancel.is_set()
    assert not bench.cancel.is_set()
    assert bench.answers[1:] == [("stop_run", "done"), ("pause", "command.too-late")]

    later = replace(bench.context, cancel=bench.cancel.part())
    with bench.controller.opening(later.gate, later.cancel), bench.controller.over(later):
        assert later.channels.limit != 2  # that was for the run which was stopped
    assert not later.cancel.is_set()


@pytest.mark.parametrize("watched", [True, False], ids=["a watch", "a run"])
def test_a_run_that_was_asked_for_is_stopped_before_it_begins(bench, watched):
    if watched:
        bench.controller, _ = a_watch(bench)
        bench.ask('"start"')
    bench.ask('"stop_run"')
    assert bench.answers[-1] == ("stop_run", "done")

    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        assert bench.context.cancel.is_set()


def test_a_start_after_a_stop_starts_a_run(bench):
    bench.controller, _ = a_watch(bench)
    bench.ask('"start"', '"stop_run"', '"start"')

    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        assert not bench.context.cancel.is_set()


def test_a_run_that_waits_to_begin_retries_at_once_when_the_user_resumes(bench):
    clock, attempts = FakeClock(), []
    gate = Gate(clock, clock.cancel(), bench.events.append, Random(1))

    def ask():
        attempts.append(clock.monotonic())
        if len(attempts) == 2:
            bench.ask('"resume"')
        if len(attempts) < 3:
            raise ServerUnavailableError("The server is away.")

    with bench.controller.opening(gate, bench.context.cancel):
        gate.call(ask)

    assert attempts[2] == attempts[1] > attempts[0]


def test_a_pause_that_was_taken_back_while_a_run_waits_to_begin_does_not_hold_it(bench):
    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        bench.ask('"pause"', '"resume"')
        with bench.controller.over(bench.context):
            assert not bench.context.gate.held
    assert bench.answers == [("pause", "done"), ("resume", "done")]


def test_while_one_run_waits_to_begin_another_is_not_started(bench):
    bench.controller, wishes = a_watch(bench)
    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        bench.ask('"start"')

    assert bench.answers == [("start", "run.already-running")]
    assert not wishes.take()


def test_only_a_watch_starts_runs_and_only_where_none_is_under_way(bench):
    wishes = RunRequests(bench.cancel)
    watch = CommandHandler(bench.cancel, bench.events.append, wishes)
    bench.ask('"start"')
    with watch.over(bench.context):
        watch.handle(b'{"command": "start"}')
    assert not wishes.take()
    watch.handle(b'{"command": "start"}')

    assert wishes.take()
    assert [code for _, code in bench.answers] == [
        "command.no-watch",
        "run.already-running",
        "done",
    ]


def add(controller, path):
    controller.handle(json.dumps({"command": "add_source", "path": str(path)}).encode())


def key_of(path):
    return os.fsencode(path.as_posix())


def test_a_source_is_taken_in_by_the_run_under_way(bench, tmp_path):
    with bench.controller.over(bench.context):
        add(bench.controller, tmp_path / "nowhere")
        add(bench.controller, tmp_path)
        taken = [source.path for source in bench.sources.take()]
        add(bench.controller, tmp_path)

    assert taken == [key_of(tmp_path)]
    assert [answer for _, answer in bench.answers] == ["source.gone", "done", "source.later"]


def test_a_watch_carries_what_comes_between_or_too_late_in_a_run_of_its_own(bench, tmp_path):
    wishes = RunRequests(bench.cancel)
    controller = CommandHandler(bench.cancel, bench.events.append, wishes)
    with controller.over(bench.context):
        assert bench.sources.end()
        add(controller, tmp_path)
    assert bench.answers == [("add_source", "done")]
    assert wishes.take() == "source"

    sources = ExtraSources(Settings(), MemoryRoll())
    with controller.over(replace(bench.context, sources=sources)):
        assert len(list(sources.take())) == 1


def test_a_source_that_comes_while_a_run_waits_to_begin_is_carried_by_that_run(bench, tmp_path):
    bench.controller, wishes = a_watch(bench)
    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        add(bench.controller, tmp_path)
        with bench.controller.over(bench.context):
            assert len(list(bench.sources.take())) == 1

    assert not wishes.take()


@pytest.mark.parametrize("begun", [True, False], ids=["at work", "about to begin"])
def test_a_source_that_comes_while_a_run_is_stopped_is_carried_by_the_next(bench, tmp_path, begun):
    bench.controller, wishes = a_watch(bench)
    with (
        bench.controller.opening(bench.context.gate, bench.context.cancel),
        bench.controller.over(bench.context) if begun else nullcontext(),
    ):
        bench.ask('"stop_run"')
        add(bench.controller, tmp_path)

    assert wishes.take() == "source"
    later = replace(bench.context, cancel=bench.cancel.part())
    with bench.controller.over(later):
        assert len(list(bench.sources.take())) == 1


def test_what_was_wrong_with_a_source_that_waited_for_its_run_is_reported(bench, tmp_path):
    add(bench.controller, tmp_path / "nowhere")
    with bench.controller.over(bench.context):
        pass

    assert [it.problem.code for it in bench.events if isinstance(it, Notice)] == ["source.gone"]


def test_a_source_is_remembered_as_soon_as_a_run_that_opens_can(bench, tmp_path):
    bench.controller, _ = a_watch(bench)
    roll, sooner, later = MemoryRoll(), tmp_path / "sooner", tmp_path / "later"
    for folder in (sooner, later):
        folder.mkdir()
    add(bench.controller, sooner)
    with bench.controller.opening(bench.context.gate, bench.context.cancel):
        bench.controller.accept(ExtraSources(Settings(), roll).remember)
        before = list(roll.destinations)
        add(bench.controller, later)
        add(bench.controller, tmp_path / "nowhere")

    assert before == [key_of(sooner)]
    assert list(roll.destinations) == [key_of(sooner), key_of(later)]


def test_a_source_that_comes_while_a_run_is_stopped_is_remembered(bench, tmp_path):
    roll = MemoryRoll()
    context = replace(bench.context, sources=ExtraSources(Settings(), roll))
    bench.controller, _ = a_watch(bench)
    with bench.controller.over(context):
        bench.ask('"stop_run"')
        add(bench.controller, tmp_path)

    assert list(roll.destinations) == [key_of(tmp_path)]
