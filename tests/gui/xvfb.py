"""A private X display with a window manager and a tray, controlled with keys and mouse.

Qt chooses its platform once per process, and the tests' own is offscreen. Visible programs
therefore run in separate processes, with `screen.environment` in their environment.
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
LOOKS = 20  # checks of the display before the next click
ICON = 22  # pixels of an icon in the tray; the first one has a border in addition
SHOOT = """
import sys
from PySide6.QtGui import QGuiApplication
app = QGuiApplication([])
assert app.primaryScreen().grabWindow(0).save(sys.argv[1])
"""


class Screen:
    """A display and the windows on it."""

    def __init__(self, display):
        # Desktops differ, also in keys: under GNOME, Return presses the button with the focus.
        desktop = {"XDG_CURRENT_DESKTOP": "openbox"}
        self.environment = {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb", **desktop}

    def ask(self, *words):
        """Return the output of a program that inspects or controls this display."""
        environment = os.environ | self.environment
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30)
        return done.stdout

    def until(self, question):
        """Call a function until its result is true; return the result."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            if answer := question():
                return answer
            self.ask("xprop", "-root", "_NET_ACTIVE_WINDOW")  # takes a moment
        raise AssertionError(f"it did not happen: {question}; visible: {self._summarize()}")

    def windows(self, title):
        """Return the visible windows whose title matches a regular expression."""
        return self.ask("xdotool", "search", "--onlyvisible", "--name", title).split()

    def shapes(self, program):
        """Return all windows of a program, including menus and icons."""
        return self.ask("xdotool", "search", "--onlyvisible", "--class", program).split()

    def active_title(self):
        """Return the title of the active window."""
        return self.ask("xdotool", "getactivewindow", "getwindowname").strip()

    def press(self, keys):
        """Press keys, such as alt+F4, in the active window."""
        self.ask("xdotool", "key", "--clearmodifiers", keys)

    def try_keys(self):
        """Switch to another desktop and back, until the window manager reacts.

        At the first key, the X server replaces the keyboard, and the window manager grabs all of
        its keys again. Keys pressed in the meantime are lost.
        """
        for keys, desktop in (("super+F2", "= 1"), ("super+F1", "= 0")):
            self.until(lambda keys=keys, desktop=desktop: self._turn(keys, desktop))

    def click(self, window, x, y, button=1):
        """Click in a window, at pixels from its upper left corner."""
        self.ask(
            "xdotool",
            *("mousemove", "--window", window, str(x), str(y)),
            *("click", str(button)),
        )

    def tray_icons(self):
        """Return the number of icons in the tray."""
        panel = self.ask("xwininfo", "-name", "panel")
        width = re.search(r"Width: (\d+)", panel)
        return int(width[1]) // ICON if width else 0

    def click_tray(self, button=1):
        """Click on the only icon in the tray."""
        # A tray hides for a moment when it adds an icon.
        self.until(lambda: self.tray_icons() == 1)
        panel, *_ = self.until(lambda: self.windows("^panel$"))
        self.click(panel, ICON // 2, ICON // 2, button)

    def open_tray_menu(self, program):
        """Open the menu of the only icon in the tray; click again if it does not appear.

        A change of focus, for example from a closing window, can close a menu immediately.
        """
        self.until(lambda: self.click_tray(3) or self._menu_comes(program))

    def shoot(self, file):
        """Write a screenshot of the whole display."""
        subprocess.run(
            [sys.executable, "-c", SHOOT, str(file)], env=os.environ | self.environment, check=True
        )

    def _menu_comes(self, program):
        """Return whether the program soon shows more than its icon."""
        return any(len(self.shapes(program)) > 1 for _ in range(LOOKS))

    def _turn(self, keys, desktop):
        self.press(keys)
        return desktop in self.ask("xprop", "-root", "_NET_CURRENT_DESKTOP")

    def _summarize(self):
        """Return the titles of all windows, and of the active one."""
        titles = [self.ask("xdotool", "getwindowname", one).strip() for one in self.windows(".")]
        return f"{titles}, active: {self.active_title()!r}"


@contextmanager
def open_screen(*, tray=True):
    """Run the X server, the window manager and, optionally, the tray."""
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
    """Run a tray on a display."""
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
        with os.fdopen(reading) as output:
            yield f":{output.readline().strip()}"
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
