"""The program on a real screen: an icon in the tray, closing, and a second start."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

from tests.gui.xvfb import DEADLINE, needs_screen, open_screen, patient

pytestmark = [needs_screen, patient]
TITLE = "^mydata-like$"


@contextmanager
def running(screen, *words):
    """Run the program; a test that fails ends it."""
    command = [sys.executable, "-m", "mydata_like", "gui", *words]
    environment = os.environ | screen.environment
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def program(screen, *words):
    """Run the program until the test is over; then the system asks it to end."""
    with running(screen, *words) as process:
        yield process
        process.terminate()
        assert process.wait(DEADLINE) == 0


def ring(screen):
    """Start the program a second time; return how that ended, and what it said."""
    with running(screen) as second:
        _, said = second.communicate(timeout=DEADLINE)
        return second.returncode, said


def test_the_program_lives_in_the_tray_and_comes_when_it_is_called(screen):
    with program(screen):
        screen.until(lambda: screen.windows(TITLE))
        screen.until(lambda: screen.tray_icons() == 1)
        screen.until(lambda: screen.active_title() == "mydata-like")

        screen.press("alt+F4")
        screen.until(lambda: not screen.windows(TITLE))

        screen.click_tray()
        screen.until(lambda: screen.windows(TITLE))
        screen.until(lambda: screen.active_title() == "mydata-like")
        screen.press("alt+F4")
        screen.until(lambda: not screen.windows(TITLE))

        assert ring(screen) == (0, "")
        screen.until(lambda: screen.windows(TITLE))


def test_a_start_at_login_waits_for_the_tray_out_of_sight(screen):
    with program(screen, "--hidden"):
        screen.until(lambda: screen.tray_icons() == 1)

        assert not screen.windows(TITLE)


def test_without_a_tray_closing_leaves_the_program_within_reach():
    with open_screen(tray=False) as screen, program(screen) as process:
        screen.until(lambda: screen.active_title() == "mydata-like")
        screen.press("alt+F4")
        screen.until(lambda: not screen.windows(TITLE))
        assert process.poll() is None

        assert ring(screen) == (0, "")
        screen.until(lambda: screen.windows(TITLE))


def test_a_program_that_hangs_is_reported_when_it_is_started_again(screen):
    with running(screen) as hangs:
        screen.until(lambda: screen.active_title() == "mydata-like")
        hangs.send_signal(signal.SIGSTOP)
        with running(screen) as second:
            screen.until(lambda: len(screen.windows(TITLE)) == 2)
            screen.until(lambda: screen.press("Return") or second.poll() is not None)

            assert second.returncode == 3
            assert "does not respond" in second.stderr.read()
