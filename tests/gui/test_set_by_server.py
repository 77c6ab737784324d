"""What the server's settings decide: shown on the Overview for as long as they do."""

from PySide6.QtWidgets import QLabel

from mydata_like.gui.overview.overview_page import OverviewPage, SetByServer
from mydata_like.gui.run_state import Phase, RunState
from mydata_like.settings.layers import ServerDecision, find_setting
from tests.gui.conftest import DEADLINE
from tests.sshd_fixture import needs_sshd

EXCLUDES = find_setting("filters.excludes")


def texts(parent):
    return [label.text() for label in parent.findChildren(QLabel) if label.isVisibleTo(parent)]


@needs_sshd
def test_a_filter_of_the_server_is_shown_until_it_is_taken_back(site, open_context, qtbot):
    site.run()
    site.server.set_settings(site.uuid, {"filters.excludes": "<b>*.csv"})
    site.run()
    context = open_context(site.config)
    page = OverviewPage(context)
    qtbot.addWidget(page)
    page.show()
    shown = page.findChild(SetByServer)

    qtbot.waitUntil(shown.isVisible, timeout=DEADLINE)
    assert "Exclude patterns: <b>*.csv instead of (empty)" in texts(shown)

    site.server.set_settings(site.uuid, {"filters.excludes": ""})
    site.run()
    context.controller._look()
    qtbot.waitUntil(lambda: not shown.isVisible(), timeout=DEADLINE)


def test_values_are_shown_as_they_are_and_not_endless(qtbot):
    shown = SetByServer()
    qtbot.addWidget(shown)
    decision = ServerDecision(EXCLUDES, "%3\x1b\u202e" + "x" * 5_000, "%1", "data.example.org")

    shown.show_state(RunState(phase=Phase.IDLE, set_by_server=(decision,)))

    line = texts(shown)[1]
    assert line.startswith("Exclude patterns: %3\\x1b\\u202exxx")
    assert line.endswith("… instead of %1")
    assert len(line) < 300
