"""A private screen with a window manager and a tray, used as a user would use it.

Qt chooses its platform once a process, and the tests' own is invisible: what is to be seen here
runs in a process of its own, with `screen.environment` added to its own.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

PROGRAMS = ("Xvfb", "openbox", "trayer", "xdotool", "xwininfo", "xprop")
needs_screen = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="needs an X server, a window manager and a tray"
)
DEADLINE = 90.0  # seconds after which something counts as hanging, on a busy machine too
patient = pytest.mark.timeout(300)  # for a test that waits for several things
LOOKS = 20  # at the screen, after which a user clicks again
ICON = 22  # pixels of an icon in the tray, which has a border next to the first one
SHOOT = """
import sys
from PySide6.QtGui import QGuiApplication
app = QGuiApplication([])
assert app.primaryScreen().grabWindow(0).save(sys.argv[1])
"""


class Screen:
    """A display, and what is to be seen on it."""

    def __init__(self, display):
        self.environment = {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}

    def ask(self, *words):
        """Return what a program says that looks at this display; nothing where it finds nothing."""
        environment = os.environ | self.environment
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30)
        return done.stdout

    def until(self, question):
        """Ask until the answer is true; return it."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if answer := question():
                return answer
            self.ask("xprop", "-root", "_NET_ACTIVE_WINDOW")  # gives the others time
        raise AssertionError(f"it did not come about: {question}; to be seen: {self._tell()}")

    def windows(self, title):
        """Return the visible windows whose title matches a regular expression."""
        return self.ask("xdotool", "search", "--onlyvisible", "--name", title).split()

    def shapes(self, program):
        """Return all that a program shows: windows, menus, icons."""
        return self.ask("xdotool", "search", "--onlyvisible", "--class", program).split()

    def active_title(self):
        """Return the title of the window that has the keyboard."""
        return self.ask("xdotool", "getactivewindow", "getwindowname").strip()

    def press(self, keys):
        """Press keys, such as alt+F4, in the active window."""
        self.ask("xdotool", "key", "--clearmodifiers", keys)

    def try_keys(self):
        """Turn to another desktop and back, until the window manager does it.

        At the first key of all the X server puts another keyboard in place, and the window manager
        lets go of all its keys and takes them again: what is pressed in the meantime is lost.
        """
        for keys, desktop in (("super+F2", "= 1"), ("super+F1", "= 0")):
            self.until(lambda keys=keys, desktop=desktop: self._turn(keys, desktop))

    def click(self, window, x, y, button=1):
        """Click into a window, at pixels from its upper left corner."""
        self.ask(
            "xdotool",
            *("mousemove", "--window", window, str(x), str(y)),
            *("click", str(button)),
        )

    def tray_icons(self):
        """Return how many icons the tray shows."""
        panel = self.ask("xwininfo", "-name", "panel")
        width = re.search(r"Width: (\d+)", panel)
        return int(width[1]) // ICON if width else 0

    def click_tray(self, button=1):
        """Click on the only icon in the tray."""
        # A tray hides for a moment when it takes an icon in.
        self.until(lambda: self.tray_icons() == 1)
        panel, *_ = self.until(lambda: self.windows("^panel$"))
        self.click(panel, ICON // 2, ICON // 2, button)

    def open_tray_menu(self, program):
        """Open the menu of the only icon in the tray, as a user does: click again if none comes.

        Focus that moves just then, as from a window that is closing, may close a menu at once.
        """
        self.until(lambda: self.click_tray(3) or self._menu_comes(program))

    def shoot(self, file):
        """Write a picture of the whole screen."""
        subprocess.run(
            [sys.executable, "-c", SHOOT, str(file)], env=os.environ | self.environment, check=True
        )

    def _menu_comes(self, program):
        """Look for a while whether the program shows more than its icon."""
        return any(len(self.shapes(program)) > 1 for _ in range(LOOKS))

    def _turn(self, keys, desktop):
        self.press(keys)
        return desktop in self.ask("xprop", "-root", "_NET_CURRENT_DESKTOP")

    def _tell(self):
        """Return the titles of all windows, and which one has the keyboard."""
        titles = [self.ask("xdotool", "getwindowname", one).strip() for one in self.windows(".")]
        return f"{titles}, active: {self.active_title()!r}"


@contextmanager
def open_screen(*, tray=True):
    """Start the X server, the window manager and, if wanted, the tray; end them."""
    with ExitStack() as stack:
        screen = Screen(stack.enter_context(_open_server()))
        stack.enter_context(_running(screen, "openbox", "--sm-disable"))
        screen.until(
            lambda: "window id" in screen.ask("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
        )
        screen.try_keys()
        if tray:
            stack.enter_context(open_tray(screen))
        yield screen


@contextmanager
def open_tray(screen):
    """Run a tray on the screen."""
    words = ("--edge", "bottom", "--align", "right", "--widthtype", "request", "--height", "24")
    with _running(screen, "trayer", *words):
        # An empty tray need not be visible.
        screen.until(lambda: screen.ask("xdotool", "search", "--name", "^panel$"))
        yield


@contextmanager
def _open_server():
    reading, writing = os.pipe()
    words = ("-displayfd", str(writing), "-screen", "0", "1366x768x24")
    process = subprocess.Popen(
        ["Xvfb", *words, "-nolisten", "tcp", "-noreset"],
        pass_fds=[writing],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    try:
        with os.fdopen(reading) as told:
            yield f":{told.readline().strip()}"
    finally:
        _end(process)


@contextmanager
def _running(screen, *words):
    process = subprocess.Popen(
        words,
        env=os.environ | screen.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        _end(process)


def _end(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
