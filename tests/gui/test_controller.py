"""The window's controller with the real engine, server and staging host."""

import os
import signal
import subprocess
from datetime import timedelta

import pytest

from mydata_like.app.ledger_status import PastRunRow, StatusReport
from mydata_like.app.settings_service import find_places, ledger_file, save_settings
from mydata_like.gui.engine_process import Engine
from mydata_like.gui.run_state import Phase
from mydata_like.gui.status_text import overview_sentence
from mydata_like.gui.theme import texts
from tests.gui.conftest import DEADLINE
from tests.site import finish, finish_reading
from tests.site import wait_for as wait_for_event


def describe(controller):
    return controller.state, controller.engine and controller.engine.error_output


def wait_for(qtbot, controller, *phases):
    def check():
        assert controller.state.phase in phases, describe(controller)

    qtbot.waitUntil(check, timeout=DEADLINE)


def wait_for_result(qtbot, controller):
    def check():
        assert controller.state.last is not None, describe(controller)
        assert not controller.state.at_work, describe(controller)

    qtbot.waitUntil(check, timeout=DEADLINE)


def wait_until_safe(qtbot, controller):
    wait_for(qtbot, controller, Phase.STARTING, Phase.RUNNING)
    wait_for_result(qtbot, controller)
    assert controller.state.last.safe


def test_a_run_from_the_click_to_all_is_safe(context, site, qtbot):
    context.controller.start()
    wait_for_result(qtbot, context.controller)

    last = context.controller.state.last
    assert last.safe
    assert last.verified == len(site.place.expected_files())
    safe = f"All {last.verified} file(s) are safe on the server as of {texts.moment(last.started)}"
    qtbot.waitUntil(lambda: overview_sentence(context.controller.state) == safe, timeout=DEADLINE)
    assert site.find_wrongs() == []


def test_a_window_without_settings_asks_for_them(open_context, qtbot):
    controller = open_context().controller
    wait_for(qtbot, controller, Phase.UNSET)

    assert "server.url" in controller.state.missing
    controller.start()
    assert controller.state.phase is Phase.UNSET


def test_a_run_is_paused_and_goes_on(context, site, qtbot):
    controller = context.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    assert controller.state.problem.code == "run.paused"

    controller.resume()
    wait_for_result(qtbot, controller)
    assert site.find_wrongs() == []


def test_pausing_is_shown_until_the_engine_has_answered(context, site, qtbot):
    controller, phases = context.controller, []
    save_settings(site.config, {"limits.bandwidth": 0.1})
    controller.start()
    wait_for(qtbot, controller, Phase.RUNNING)
    controller.run_changed.connect(lambda state: phases.append(state.phase))

    controller.pause()
    assert overview_sentence(controller.state) == "Pausing"
    wait_for(qtbot, controller, Phase.PAUSED)
    controller.stop()

    assert [*dict.fromkeys(phases)] == [Phase.PAUSING, Phase.PAUSED, Phase.STOPPING]


def test_a_stopped_run_is_no_problem_and_the_next_one_continues(context, site, qtbot):
    controller = context.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    controller.stop()
    wait_for(qtbot, controller, Phase.IDLE)
    assert not controller.state.last.safe

    controller.start()
    wait_until_safe(qtbot, controller)
    assert site.find_wrongs() == []


def test_a_run_is_stopped_as_soon_as_it_was_started(context, site, qtbot):
    controller = context.controller
    controller.start()
    controller.stop()
    wait_for(qtbot, controller, Phase.IDLE)
    assert site.server.datafiles() == []

    controller.start()
    wait_until_safe(qtbot, controller)
    assert site.find_wrongs() == []


def test_a_run_that_waits_for_a_server_is_stopped(context, site, qtbot):
    controller = context.controller
    site.server.stop()
    controller.start()
    wait_for(qtbot, controller, Phase.PAUSED)
    assert controller.state.problem.code == "server.unreachable"
    with qtbot.assertNotEmitted(controller.command_refused):
        controller.stop()
        wait_for(qtbot, controller, Phase.IDLE)

    assert controller.state.problem is None
    assert controller.engine is not None


def test_the_window_survives_its_engine(context, site, qtbot):
    controller = context.controller
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


def wait_for_other(qtbot, controller):
    qtbot.waitUntil(lambda: controller.state.elsewhere, timeout=DEADLINE)
    assert not controller.state.ours


def test_a_run_of_another_program_is_shown_and_left_alone(context, site, qtbot):
    controller = context.controller
    process = site.start("run", "--json", settings=["limits.bandwidth=0.5"])
    wait_for_other(qtbot, controller)
    qtbot.waitUntil(lambda: controller.state.sums.found > 0, timeout=DEADLINE)

    assert finish(process).code == 0
    wait_for_result(qtbot, controller)
    assert controller.state.last.safe


def test_a_run_of_another_program_is_paused_resumed_and_stopped(context, site, qtbot):
    controller = context.controller
    process = site.start("run", "--json", settings=["limits.bandwidth=0.1"])
    wait_for_other(qtbot, controller)
    wait_for(qtbot, controller, Phase.RUNNING)
    qtbot.waitUntil(lambda: controller.state.sums.byte_rate > 0, timeout=DEADLINE)

    controller.pause()
    assert controller.state.phase is Phase.PAUSING
    wait_for(qtbot, controller, Phase.PAUSED)
    assert controller.state.problem.code == "run.paused"
    controller.resume()
    wait_for(qtbot, controller, Phase.RUNNING)
    assert controller.state.problem is None
    with qtbot.assertNotEmitted(controller.command_refused):
        controller.stop()
        wait_for(qtbot, controller, Phase.IDLE)

    assert finish(process).problem == "run.interrupted"
    wait_for_result(qtbot, controller)
    assert not controller.state.last.safe


def test_a_run_that_accepts_no_commands_is_left_alone(context, site, qtbot):
    controller = context.controller
    process = site.start("run", "--json", settings=["limits.bandwidth=0.1"])
    wait_for(qtbot, controller, Phase.RUNNING)
    (status,) = site.state.glob("run-*-status.json")
    status.unlink()  # a run of an earlier version writes none

    wait_for(qtbot, controller, Phase.ELSEWHERE)
    assert not controller.state.ours
    process.kill()
    finish(process)


def test_the_engine_survives_the_window(context, site, qtbot):
    controller = context.controller
    controller.start()
    wait_for(qtbot, controller, Phase.RUNNING)
    controller.close()

    qtbot.waitUntil(lambda: controller.engine is None, timeout=DEADLINE)
    assert site.find_wrongs() == []


def test_a_look_at_the_ledger_never_brings_an_older_run_back(context, site, qtbot):
    controller = context.controller
    controller.start()
    wait_for_result(qtbot, controller)
    told = controller.state.last
    ended = told.finished - timedelta(hours=1)
    older = PastRunRow("older", ended, ended, {"found": 1})

    controller._take_standing(StatusReport(missing=(), runs=(older,), whole=older))
    assert controller.state.last == told
    assert controller.state.whole == told
    controller._take_standing(StatusReport(missing=()))
    assert controller.state.last == told


def test_an_engine_that_cannot_be_started_is_reported_and_started_again(context, site, full, qtbot):
    controller = context.controller
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


def test_a_dead_engine_is_followed_by_another_and_the_schedule_is_kept(context, site, qtbot):
    controller = context.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    os.kill(controller.engine.number, signal.SIGKILL)
    wait_for(qtbot, controller, Phase.BROKEN)
    assert controller.engine is None
    save_settings(site.config, {"schedule.kind": "startup"})

    qtbot.waitUntil(lambda: controller.engine is not None, timeout=DEADLINE)
    assert controller.state.phase is Phase.BROKEN
    assert controller.state.problem.code == "window.engine-ended"
    wait_until_safe(qtbot, controller)
    assert site.find_wrongs() == []
    assert len(controller.findChildren(Engine)) == 1


def test_fixed_settings_activate_the_window(site, open_context, qtbot):
    right = site.config.read_text()
    site.config.write_text("[schedule]\nkind = 7\n")
    controller = open_context(site.config).controller
    wait_for(qtbot, controller, Phase.BROKEN)

    site.config.write_text(right)
    controller.reload_settings()
    wait_for(qtbot, controller, Phase.IDLE)

    assert controller.state.problem is None
    qtbot.waitUntil(lambda: controller.engine is not None, timeout=DEADLINE)


def test_settings_that_another_program_changes_are_taken_up(context, site, qtbot):
    controller = context.controller
    wait_for(qtbot, controller, Phase.IDLE)
    assert controller.state.schedule == "manual"

    save_settings(site.config, {"schedule.kind": "timer", "schedule.minutes": 30})

    qtbot.waitUntil(lambda: controller.state.schedule == "timer", timeout=DEADLINE)
    qtbot.waitUntil(lambda: controller.state.next_start is not None, timeout=DEADLINE)


def look(qtbot, context):
    context.controller._look()
    started = len(context.tasks._calls)
    qtbot.waitUntil(lambda: not context.tasks.busy, timeout=DEADLINE)
    return started


def test_at_rest_a_look_is_one_task_that_reads_nothing_again(context, qtbot):
    context.controller._look_timer.stop()
    qtbot.waitUntil(lambda: not context.tasks.busy, timeout=DEADLINE)
    for _ in range(3):
        look(qtbot, context)
    known = context.controller._status._known

    assert look(qtbot, context) == 1
    assert context.controller._status._known is known


def test_changed_settings_are_taken_up_even_if_the_ledger_cannot_be_read(context, site, qtbot):
    controller = context.controller
    qtbot.waitUntil(lambda: not context.tasks.busy, timeout=DEADLINE)
    file = ledger_file(controller.settings, find_places(site.config), os.fsencode(site.data))
    file.mkdir(parents=True)

    save_settings(site.config, {"instrument.contact_name": "Ann"})

    qtbot.waitUntil(lambda: controller.settings.instrument.contact_name == "Ann", timeout=DEADLINE)


def test_settings_that_are_wrong_now_do_not_hide_the_run_at_work(context, site, qtbot):
    controller = context.controller
    controller.start()
    controller.pause()
    wait_for(qtbot, controller, Phase.PAUSED)
    right = site.config.read_text()
    site.config.write_text(right + "\n[schedule]\nkind = 7\n")
    with qtbot.waitSignal(controller.problem_raised):
        controller.reload_settings()
    assert controller.state.phase is Phase.PAUSED

    site.config.write_text(right)
    controller.resume()
    wait_until_safe(qtbot, controller)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "usb" / "day 1"
    folder.mkdir(parents=True)
    (folder / "a.tif").write_text("12345")
    os.utime(folder / "a.tif", (1_600_000_000, 1_600_000_000))
    return folder


def wait_until_carried(qtbot, site, folder):
    expected = {(folder.name, "", "a.tif"): folder / "a.tif"}
    qtbot.waitUntil(lambda: site.server.check_invariants(expected) == [], timeout=DEADLINE)


@pytest.fixture
def served(site, open_context, qtbot):
    """A controller next to an idle service."""
    wait_for_event(site.start("watch", "--events"), "run_scheduled")
    controller = open_context(site.config).controller
    wait_for(qtbot, controller, Phase.IDLE)
    assert controller.engine is None
    return controller


def test_next_to_a_service_only_an_added_folder_is_uploaded(served, site, folder, qtbot):
    served.add_source(os.fsencode(folder), "", "Mice", folder.name)

    wait_until_carried(qtbot, site, folder)
    qtbot.waitUntil(lambda: served.engine is None, timeout=DEADLINE)
    assert served.state.last.partial


class Other:
    """A run of another program, which goes on until it is let go."""

    def __init__(self, site):
        self.process = site.start(
            "run", "--events", settings=["limits.bandwidth=0.1"], stdin=subprocess.PIPE
        )
        wait_for_event(self.process, "transfer_started")

    def let_go(self):
        self.process.stdin.write('{"command": "set_bandwidth", "bandwidth": 0}\n')
        self.process.stdin.close()
        assert finish_reading(self.process).code == 0


def wait_until_both_are_carried(qtbot, site, folder):
    expected = {(folder.name, "", "a.tif"): folder / "a.tif"} | site.place.expected_files()
    qtbot.waitUntil(lambda: site.server.check_invariants(expected) == [], timeout=DEADLINE)


def test_a_folder_that_meets_a_run_of_another_program_is_carried_later(served, site, folder, qtbot):
    served._look_timer.stop()  # so that the other run is not seen before
    other = Other(site)
    with qtbot.waitSignal(served.command_refused) as refused:
        served.add_source(os.fsencode(folder), "", "Mice", folder.name)
    assert refused.args[0].code == "run.already-running"
    qtbot.waitUntil(lambda: served.engine is None, timeout=DEADLINE)

    served._look_timer.start()
    other.let_go()
    wait_until_both_are_carried(qtbot, site, folder)


def test_a_folder_waits_for_the_end_of_another_programs_run(served, site, folder, qtbot):
    other = Other(site)
    wait_for_other(qtbot, served)
    served.add_source(os.fsencode(folder), "", "Mice", folder.name)
    assert served.engine is None

    other.let_go()
    wait_until_both_are_carried(qtbot, site, folder)


def test_during_a_run_of_another_program_nothing_can_be_retried(served, site, qtbot):
    assert served.can_retry
    other = Other(site)
    wait_for_other(qtbot, served)
    assert not served.can_retry

    other.let_go()
    qtbot.waitUntil(lambda: served.can_retry, timeout=DEADLINE)
