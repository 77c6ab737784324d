"""The window's controller with the real engine, server and staging host."""

import os
import signal
from dataclasses import replace
from datetime import timedelta

from mydata_like.gui.look.sentences import overview_sentence
from mydata_like.gui.standing import Standing
from mydata_like.gui.state import Phase
from tests.gui.conftest import DEADLINE
from tests.site import finish


def wait_for(qtbot, controller, *phases):
    qtbot.waitUntil(lambda: controller.state.phase in phases, timeout=DEADLINE)


def wait_for_result(qtbot, controller):
    qtbot.waitUntil(
        lambda: controller.state.last is not None and not controller.state.at_work,
        timeout=DEADLINE,
    )


def wait_until_safe(qtbot, controller):
    wait_for(qtbot, controller, Phase.STARTING, Phase.RUNNING)
    wait_for(qtbot, controller, Phase.IDLE)
    assert controller.state.last.safe


def test_a_run_from_the_click_to_all_is_safe(desk, site, qtbot):
    desk.controller.start()
    wait_for_result(qtbot, desk.controller)

    last = desk.controller.state.last
    assert last.safe
    assert last.verified == len(site.place.expected_files())
    assert (
        overview_sentence(desk.controller.state)
        == f"All {last.verified} file(s) are safe on the server"
    )
    assert site.find_wrongs() == []


def test_a_window_without_settings_asks_for_them(open_desk, qtbot):
    controller = open_desk().controller
    wait_for(qtbot, controller, Phase.UNSET)

    assert "server.url" in controller.state.missing
    controller.start()
    assert controller.state.phase is Phase.UNSET


def test_a_run_is_paused_and_goes_on(desk, site, qtbot):
    controller = desk.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    assert controller.state.problem.code == "run.paused"

    controller.resume()
    wait_for_result(qtbot, controller)
    assert site.find_wrongs() == []


def test_a_stopped_run_is_no_problem_and_the_next_one_carries_on(desk, site, qtbot):
    controller = desk.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    controller.stop()
    wait_for(qtbot, controller, Phase.IDLE)
    assert not controller.state.last.safe

    controller.start()
    wait_until_safe(qtbot, controller)
    assert site.find_wrongs() == []


def test_the_window_survives_its_engine(desk, site, qtbot):
    controller = desk.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    with qtbot.waitSignal(controller.problem_raised, timeout=DEADLINE):
        os.kill(controller.engine.number, signal.SIGKILL)
    assert controller.state.phase is Phase.BROKEN
    assert controller.state.problem.code == "window.engine-ended"

    controller.start()
    wait_until_safe(qtbot, controller)
    assert site.find_wrongs() == []


def test_a_run_of_another_program_is_shown_and_left_alone(desk, site, qtbot):
    controller = desk.controller
    process = site.start("run", "--json", settings=["limits.bandwidth=1.5"])
    wait_for(qtbot, controller, Phase.ELSEWHERE)
    assert not controller.state.ours
    qtbot.waitUntil(lambda: controller.state.sums.found > 0, timeout=DEADLINE)

    assert finish(process).code == 0
    wait_for_result(qtbot, controller)
    assert controller.state.last.safe


def test_the_engine_survives_the_window(desk, site, qtbot):
    controller = desk.controller
    controller.start()
    wait_for(qtbot, controller, Phase.RUNNING)
    controller.close()

    qtbot.waitUntil(lambda: controller.engine is None, timeout=DEADLINE)
    assert site.find_wrongs() == []


def test_a_look_at_the_ledger_never_brings_an_older_run_back(desk, site, qtbot):
    controller = desk.controller
    controller.start()
    wait_for_result(qtbot, controller)
    told = controller.state.last
    older = replace(told, finished=told.finished - timedelta(hours=1))

    controller._take_standing(Standing(missing=(), running=False, watched=False, last=older))
    assert controller.state.last == told
    controller._take_standing(Standing(missing=(), running=False, watched=False))
    assert controller.state.last == told


def test_an_engine_that_cannot_be_started_is_told_of_and_started_again(desk, site, full, qtbot):
    controller = desk.controller
    controller.engine.kill()
    wait_for(qtbot, controller, Phase.BROKEN)
    with qtbot.waitSignal(controller.problem_raised, timeout=DEADLINE) as raised, full():
        controller.start()

    assert raised.args[0].code == "window.engine-ended"
    assert "pipe" in raised.args[0].message
    assert controller.state.phase is Phase.BROKEN
    assert controller.engine is None

    controller.start()
    wait_until_safe(qtbot, controller)
    assert site.find_wrongs() == []
