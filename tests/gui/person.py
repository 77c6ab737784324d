"""A simulated user of a private display, who reads the windows and uses keys and mouse."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from tests.gui.test_screen import TITLE
from tests.gui.xvfb import DEADLINE, LOOKS


@dataclass(frozen=True)
class Thing:
    """A visible text, or a field or button with its name."""

    kind: str
    text: str
    name: str
    place: tuple[int, int]  # its middle, in pixels of the screen
    enabled: bool
    focus: bool
    checked: bool

    @property
    def said(self):
        """The text without mnemonics."""
        return self.text.replace("&", "")


class Person:
    """A simulated user of one program on a display."""

    def __init__(self, screen, process):
        self.screen = screen
        self.process = process

    def windows(self):
        """Return the visible things of each window by its title."""
        return {title: things for title, _, things in self._look()}

    def active(self):
        """Return the title of the active window."""
        return next((title for title, active, _ in self._look() if active), None)

    def things(self):
        return [thing for things in self.windows().values() for thing in things]

    def find(self, words):
        """Return the first thing with this text or name."""
        found = (one for one in self.things() if words in one.said or words == one.name)
        return next(found, None)

    def sees(self, words):
        return self.find(words) is not None

    def waits_for(self, words):
        """Wait for an enabled thing with this text or name; return it."""
        return self.until(lambda: (thing := self.find(words)) and thing.enabled and thing)

    def waits_for_cursor(self, name):
        """Wait until the cursor is in the field with this name."""
        self.until(lambda: any(one.focus and one.name == name for one in self.things()))

    def starts_again(self, config, *paths):
        """Start the program a second time, as a click on a file does."""
        words = [sys.executable, "-m", "mydata_like", "gui", "--config", config, *paths]
        done = subprocess.run(words, env=os.environ | self.screen.environment, timeout=DEADLINE)
        assert done.returncode == 0

    def until(self, question):
        try:
            return self.screen.until(question)
        except AssertionError as error:
            raise AssertionError(f"{error}; visible: {self._summarize()}") from None

    def turns_to(self, title):
        """Wait until a window is active."""
        self.until(lambda: self.active() == title)

    def opens_tray_popup(self):
        """Click on the tray icon; again if a change of focus closes the popup immediately."""
        comes = lambda: any(self.active() == "Upload status" for _ in range(LOOKS))  # noqa: E731
        self.until(lambda: self.screen.click_tray() or comes())

    def presses(self, *keys):
        for one in keys:
            self.screen.press(one)

    def types(self, text):
        """Replace the text of the focused field, key by key."""
        self.screen.press("ctrl+a")
        self.screen.ask("xdotool", "type", "--delay", "4", text)
        self.until(lambda: any(one.focus and one.text for one in self.things()))

    def clicks(self, words, times=1):
        """Click on a thing as soon as it stays where it is: a window may still grow."""
        self.until(lambda: self.waits_for(words).place == self.waits_for(words).place)
        x, y = map(str, self.waits_for(words).place)
        self.screen.ask("xdotool", "mousemove", x, y, "click", "--repeat", str(times), "1")

    def _look(self):
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        return [
            (one["title"], one["active"], [Thing(**thing) for thing in one["things"]])
            for one in json.loads(self.process.stdout.readline())
        ]

    def _summarize(self):
        return {
            title: [_summarize_thing(one) for one in things]
            for title, things in self.windows().items()
        }


def _summarize_thing(thing):
    marks = {"disabled": not thing.enabled, "focus": thing.focus, "checked": thing.checked}
    return " ".join(
        [f"{thing.kind}: {thing.text or thing.name}", *(it for it in marks if marks[it])]
    )


@contextmanager
def open_person(screen, *words, environment=None):
    """Start the program on a display; yield its user, and end the program."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.gui.eyes", "gui", *words],
        env=os.environ | screen.environment | (environment or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        person = Person(screen, process)
        screen.until(lambda: screen.windows(TITLE))
        person.turns_to("mydata-like")
        yield person
        process.terminate()
        assert process.wait(DEADLINE) == 0
    finally:
        process.kill()
        process.communicate()
