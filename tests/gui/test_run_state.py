"""The phases of the window, and what leads from one to another."""

import pytest

from mydata_like.core.errors import Problem
from mydata_like.core.events import CommandRefused, RunFinished, RunPaused, RunResumed, RunStarted
from mydata_like.gui.run_state import TRANSITIONS, Phase, RunState, Trigger
from tests.gui.scripted import AWAY, ENDED, FULL

STARTED = RunStarted(run="r", at=ENDED, data_directory=b"/data", reason="person")


def refused(code):
    return CommandRefused(id=1, command="pause", problem=Problem(code, "Not now."))


def not_started(problem):
    return RunFinished.of_nothing(ENDED, problem)


OTHER = Problem("run.already-running", "Another upload is in progress.")
STOPPED = Problem("run.interrupted", "It was stopped.")


@pytest.mark.parametrize(
    ("before", "event", "after"),
    [
        (Phase.STARTING, STARTED, Phase.RUNNING),
        (Phase.IDLE, STARTED, Phase.RUNNING),  # the schedule started it
        (Phase.RUNNING, RunPaused(problem=AWAY), Phase.PAUSED),
        (Phase.PAUSING, RunPaused(problem=FULL), Phase.PAUSED),
        (Phase.PAUSED, RunResumed(), Phase.RUNNING),
        (Phase.STARTING, not_started(OTHER), Phase.IDLE),
        (Phase.STOPPING, not_started(STOPPED), Phase.IDLE),
        (Phase.STARTING, not_started(FULL), Phase.BROKEN),
        (Phase.TESTING, not_started(FULL), Phase.TESTING),
        (Phase.PAUSING, refused("command.too-late"), Phase.RUNNING),
        (Phase.RUNNING, refused("command.too-late"), Phase.RUNNING),
        (Phase.STOPPING, refused("command.no-run"), Phase.IDLE),
        (Phase.RUNNING, refused("command.no-run"), Phase.RUNNING),
    ],
)
def test_an_event_of_the_engine_leads_to_a_phase(controller, before, event, after):
    controller.turn(phase=before)
    controller._take_events([event])

    assert controller.state.phase is after


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.PAUSED, Phase.ELSEWHERE, Phase.TESTING])
def test_no_run_starts_during_another_or_a_speed_test(controller, phase):
    controller.turn(phase=phase)
    controller.start()

    assert controller.state.phase is phase
    assert controller.orders == []


def test_a_run_of_another_program_hides_no_unreadable_settings():
    here = RunState(phase=Phase.RUNNING)
    elsewhere = RunState(phase=Phase.RUNNING, elsewhere=True)

    assert not here.allows(Trigger.SETTINGS_REFUSED)
    assert elsewhere.allows(Trigger.SETTINGS_REFUSED)


def test_every_trigger_leads_to_a_phase():
    assert set(TRANSITIONS) == set(Trigger)


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.RUNNING, Phase.UNSET])
def test_a_speed_test_is_shown_unless_a_run_is_active(controller, phase):
    controller.turn(phase=phase)
    controller.show_test(under_way=True)
    during = Phase.RUNNING if phase is Phase.RUNNING else Phase.TESTING
    assert controller.state.phase is during

    controller.show_test(under_way=False)
    assert controller.state.phase is (phase if phase is Phase.RUNNING else Phase.IDLE)
