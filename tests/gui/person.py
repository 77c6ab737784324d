"""A user before a private screen: sees what the program shows, and uses keys and mouse."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from tests.gui.test_screen import TITLE
from tests.gui.xvfb import DEADLINE


@dataclass(frozen=True)
class Thing:
    """A text that is to be seen, or a field or button with its name."""

    kind: str
    text: str
    name: str
    place: tuple[int, int]  # its middle, in pixels of the screen
    enabled: bool
    focus: bool
    checked: bool

    @property
    def said(self):
        """What it says, without the marks of keys."""
        return self.text.replace("&", "")


class Person:
    """Uses one program on a screen."""

    def __init__(self, screen, process):
        self.screen = screen
        self.process = process

    def windows(self):
        """Return what is to be seen now: the things of each window by its title."""
        return {title: things for title, _, things in self._look()}

    def active(self):
        """Return the title of the window that takes the keys."""
        return next((title for title, active, _ in self._look() if active), None)

    def things(self):
        return [thing for things in self.windows().values() for thing in things]

    def find(self, words):
        """Return the first thing that says this, or whose name it is."""
        found = (one for one in self.things() if words in one.said or words == one.name)
        return next(found, None)

    def sees(self, words):
        return self.find(words) is not None

    def waits_for(self, words):
        """Wait until something that can be used says this; return it."""
        return self.until(lambda: (thing := self.find(words)) and thing.enabled and thing)

    def waits_for_cursor(self, name):
        """Wait until the cursor is in the field with this name."""
        self.until(lambda: any(one.focus and one.name == name for one in self.things()))

    def starts_again(self, config, *paths):
        """Start the program a second time, as a click on a file may."""
        words = [sys.executable, "-m", "mydata_like", "gui", "--config", config, *paths]
        done = subprocess.run(words, env=os.environ | self.screen.environment, timeout=DEADLINE)
        assert done.returncode == 0

    def until(self, question):
        try:
            return self.screen.until(question)
        except AssertionError as error:
            raise AssertionError(f"{error}; to be seen: {self._tell()}") from None

    def turns_to(self, title):
        """Wait until a window takes the keys."""
        self.until(lambda: self.active() == title)

    def presses(self, *keys):
        for one in keys:
            self.screen.press(one)

    def types(self, text):
        """Replace what is in the field that has the cursor, key by key."""
        self.screen.press("ctrl+a")
        self.screen.ask("xdotool", "type", "--delay", "4", text)
        self.until(lambda: any(one.focus and one.text for one in self.things()))

    def clicks(self, words, times=1):
        x, y = map(str, self.waits_for(words).place)
        self.screen.ask("xdotool", "mousemove", x, y, "click", "--repeat", str(times), "1")

    def _look(self):
        self.process.stdin.write("look\n")
        self.process.stdin.flush()
        return [
            (one["title"], one["active"], [Thing(**thing) for thing in one["things"]])
            for one in json.loads(self.process.stdout.readline())
        ]

    def _tell(self):
        return {
            title: [f"{one.kind}: {one.text or one.name}" for one in things]
            for title, things in self.windows().items()
        }


@contextmanager
def open_person(screen, *words, environment=None):
    """Start the program and yield a user who sees its window; it ends with the test."""
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
