"""Which changes are worth a message, and which are not."""

import pytest

from mydata_like.core.errors import Problem
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.gui.tray.notifications import MIN_INTERVAL as SILENT
from mydata_like.gui.tray.notifications import NotificationKind, NotificationPolicy
from tests.gui.scripted import AWAY, FULL, NOT_APPROVED, QUIET, run_that

RUNNING = RunState(phase=Phase.RUNNING)
IDLE = RunState(phase=Phase.IDLE)
SILENCE = Problem("monitor.silence", "For 24 hours no run has ended well.")


def herald(*unwanted):
    return NotificationPolicy(lambda kind: kind not in unwanted)


def ended(**sums):
    return RunState(phase=Phase.IDLE, last=run_that(**sums))


def paused(problem):
    return RunState(phase=Phase.PAUSED, problem=problem)


def test_files_whose_copies_the_user_keeps_are_never_reported_as_safe():
    one = herald()
    one.on_state(RUNNING, 0)
    message = one.on_state(ended(sent=3, found=4, verified=3, skipped=1, kept=1), SILENT)

    assert message.text.endswith("They are safe on the server.")


@pytest.mark.parametrize(
    ("before", "after", "kind", "page"),
    [
        (RUNNING, ended(sent=3), NotificationKind.FINISHED, "overview"),
        (RUNNING, ended(sent=0), None, ""),
        (RUNNING, ended(sent=3, failed=1), NotificationKind.PROBLEM, "problems"),
        (RUNNING, ended(sent=3, problem=FULL), None, ""),  # told when it is raised
        (RunState(phase=Phase.ELSEWHERE), ended(sent=3), NotificationKind.FINISHED, "overview"),
        (RunState(), ended(sent=3), None, ""),  # a run of the time before we began
        (RUNNING, paused(FULL), NotificationKind.PROBLEM, "problems"),
        (RUNNING, paused(AWAY), None, ""),  # passes on its own
        (RUNNING, paused(QUIET), None, ""),  # was wished for
        (RUNNING, paused(None), None, ""),
        (
            IDLE,
            RunState(phase=Phase.IDLE, awaited=NOT_APPROVED),
            NotificationKind.APPROVAL,
            "overview",
        ),
        (
            RunState(phase=Phase.IDLE, awaited=NOT_APPROVED),
            IDLE,
            NotificationKind.APPROVAL,
            "overview",
        ),
    ],
)
def test_a_change_is_reported_only_where_there_is_one(before, after, kind, page):
    one = herald()
    one.on_state(before, 0)
    message = one.on_state(after, SILENT)

    assert (message.kind, message.page) == (kind, page) if kind else message is None


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (FULL, NotificationKind.PROBLEM),
        (SILENCE, NotificationKind.SILENCE),
        (AWAY, None),
        (Problem("server.unanswered", "The response was lost."), None),  # passes on its own
        (Problem("monitor.all-well", "All is well."), None),
        (Problem("schedule.manual", "No run starts by itself."), None),
    ],
)
def test_a_problem_is_reported_if_the_user_can_do_something(problem, kind):
    message = herald().on_problem(problem, 0)

    assert message.kind is kind if kind else message is None


def test_a_message_says_what_happened_and_what_to_do():
    message = herald().on_problem(FULL, 0)

    assert message.title == "Action required"
    assert message.text == ("The server is full. Tell the administrator.")


def test_of_one_kind_there_is_one_message_in_ten_minutes():
    one = herald()
    problems = [Problem("staging.full", f"Host {number} is full.") for number in range(3)]

    assert one.on_problem(problems[0], 0)
    assert not one.on_problem(problems[1], SILENT - 1)
    assert one.on_problem(SILENCE, SILENT - 1)  # another kind
    assert one.on_problem(problems[1], SILENT)


def test_a_problem_that_stays_is_reported_once_until_all_was_well():
    one = herald()
    one.on_problem(FULL, 0)

    assert not one.on_problem(FULL, 5 * SILENT)
    one.on_state(RUNNING, 6 * SILENT)
    one.on_state(ended(sent=1), 6 * SILENT)
    assert one.on_problem(FULL, 7 * SILENT)


def test_an_approval_is_reported_however_short_the_wait_was():
    one = herald()
    one.on_state(RunState(phase=Phase.IDLE, awaited=NOT_APPROVED), 0)

    assert one.on_state(IDLE, 1).title == "Approved"


@pytest.mark.parametrize("kind", NotificationKind)
def test_every_kind_can_be_switched_off(kind):
    one = herald(kind)
    one.on_state(RUNNING, 0)
    told = [
        one.on_state(ended(sent=1), 0),
        one.on_problem(FULL, 0),
        one.on_problem(SILENCE, 0),
        one.on_state(RunState(phase=Phase.IDLE, awaited=NOT_APPROVED), 0),
    ]

    assert {message.kind for message in told if message} == set(NotificationKind) - {kind}


def test_characters_that_would_deceive_are_shown():
    message = herald().on_problem(Problem("file.failed", "report\u202excod.exe"), 0)

    assert message.text == r"report\u202excod.exe"
