"""Quitting the real program while the real engine uploads."""

from contextlib import contextmanager

import pytest

from mydata_like.app.ledger_status import look_at_state
from mydata_like.app.settings_service import load_settings, save_settings
from mydata_like.gui.tray.app_shell import IN_TRAY
from mydata_like.gui.window_state import WindowState
from tests.gui.conftest import QUICK
from tests.gui.test_screen import TITLE, running
from tests.gui.xvfb import DEADLINE, needs_screen, patient

pytestmark = [needs_screen, patient]
SLOW = QUICK | {"schedule.kind": "startup", "limits.bandwidth": 1.5}  # MB/s: some seconds


def heartbeat(site):
    settings = load_settings(site.config).settings
    return look_at_state(settings, site.config).heartbeat


def is_at_work(site):
    beat = heartbeat(site)
    return beat is not None and beat.state == "running"


def know_the_tray():
    """Make the program show no balloon when it moves to the tray."""
    memory = WindowState()
    memory.setValue(IN_TRAY, "yes")
    memory.sync()


@contextmanager
def at_work(site, screen):
    """Open the window while a run of its engine waits for the server's verification."""
    save_settings(site.config, SLOW)
    site.server.hold_verification()  # so long the upload goes on, however long a user takes
    know_the_tray()  # a balloon looks like a menu from here
    with running(screen, "--config", str(site.config)) as process:
        screen.until(lambda: screen.windows(TITLE))
        screen.until(lambda: is_at_work(site))
        yield process


def quit_and(answer, process, screen):
    """Quit from the menu of the tray, and answer what happens to the upload."""
    screen.press("alt+F4")
    screen.until(lambda: not screen.windows(TITLE))
    screen.open_tray_menu("mydata-like")
    # A menu has the keyboard a moment after it appears: keys may be lost until then.
    screen.until(lambda: screen.press("q") or screen.active_title() == "Quit")
    screen.press(answer)
    _, said = process.communicate(timeout=DEADLINE)
    assert (process.returncode, said) == (0, "")


@pytest.mark.parametrize(("answer", "all_safe"), [("alt+l", True), ("alt+u", False)])
def test_an_upload_continues_or_stops_as_the_user_wants(site, screen, answer, all_safe):
    with at_work(site, screen) as process:
        quit_and(answer, process, screen)
    if all_safe:
        site.server.release_verification()
    screen.until(lambda: heartbeat(site).state == "stopped")

    assert (site.find_wrongs() == []) is all_safe


def test_an_upload_that_continued_obeys_the_window_that_is_opened_again(site, screen):
    with at_work(site, screen) as process:
        quit_and("alt+l", process, screen)
    with running(screen, "--config", str(site.config)) as process:
        screen.until(lambda: screen.active_title() == "mydata-like")
        # The shortcuts have an effect only once the window has found the run.
        screen.until(lambda: screen.press("ctrl+p") or heartbeat(site).state == "paused")
        screen.until(lambda: screen.press("ctrl+r") or heartbeat(site).state == "running")
        screen.until(lambda: screen.press("ctrl+period") or heartbeat(site).state == "stopped")
        process.terminate()
        _, said = process.communicate(timeout=DEADLINE)

    assert (process.returncode, said) == (0, "")
    assert site.find_wrongs() != []
