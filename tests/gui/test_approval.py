"""The approval is reported also if the wizard was closed while waiting for it."""

from dataclasses import replace

import pytest

from mydata_like.app.settings_service import save_settings
from mydata_like.core.errors import NotApprovedError
from mydata_like.gui import application
from mydata_like.gui.application import ApprovalWatcher
from mydata_like.gui.run_state import Phase
from tests.gui.conftest import DEADLINE
from tests.gui.setting_up import open_town
from tests.sshd_fixture import needs_sshd

pytestmark = needs_sshd


@pytest.fixture
def town(tmp_path):
    with open_town(tmp_path / "town") as town:
        town.fill()
        save_settings(town.config, {"schedule.kind": "manual"})
        yield town


@pytest.fixture
def asked(town, open_context, qtbot):
    """Return a controller that waits for approval, and what asks for it."""
    context = open_context(town.config)
    one = ApprovalWatcher(context)
    qtbot.waitUntil(lambda: context.controller.state.can_start, timeout=DEADLINE)
    context.controller.start()
    qtbot.waitUntil(
        lambda: (
            context.controller.state.awaited is not None and not context.controller.state.at_work
        ),
        timeout=DEADLINE,
    )
    return context.controller, one


def test_an_approval_is_noticed_without_any_run(asked, town, qtbot):
    controller, one = asked
    runs = controller.state.last
    assert controller.state.awaited.code == NotApprovedError.code
    assert one.timer.isActive()
    assert one.timer.interval() == application.ASK_AFTER
    one.timer.setInterval(50)
    town.approve()

    qtbot.waitUntil(lambda: controller.state.awaited is None, timeout=DEADLINE)

    assert not one.timer.isActive()
    # The ledger has a more exact start than the report that was read while the run ended.
    assert replace(controller.state.last, started=runs.started) == runs
    assert controller.state.can_start


def test_nothing_is_asked_while_a_run_asks(asked):
    controller, one = asked

    controller.start()

    assert controller.state.phase is Phase.STARTING
    assert not one.timer.isActive()
