"""Try the real window on a real screen: `python -m tests.trials.window PICTURES [PART...]`.

The program runs as users start it, with its engine and an embedded server, and is operated by
`tests.gui.hands`. What it shows is compared with the local files, and pictures of every page in
light and dark are saved in the folder PICTURES. The program is closed, started again, and ended in
each way; no process may remain. It is made for Windows, and runs wherever there is a screen.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import psutil

from mydata_like.app.settings_service import save_settings
from tests.site import Site, kill_group, make_data, open_site

Answer = TypeVar("Answer")
DEADLINE = 300.0  # seconds after which something counts as hanging
INTERVAL = 0.3  # seconds between two looks at the window
PAGES = ("overview", "folders", "transfers", "problems", "where", "speed", "history", "log")
THEMES = ("light", "dark")
SETTINGS = {
    "limits.bandwidth": 0.5,  # MB/s, so that there is time to look at a run
    "schedule.kind": "manual",
    "filters.settle_seconds": 0,
    "advanced.verify_interval": 0.2,
    "instrument.name": "Confocal 2",
}
NAMES = ("\u6f22\u5b57.txt", "emoji \N{MICROSCOPE} \N{DNA DOUBLE HELIX}.txt", "deep.txt")
LEAVE, STOP = "Quit and leave the upload running", "Stop the upload and quit"


class Window:
    """The program in a process of its own, and commands to it."""

    def __init__(self, site: Site, config: Path, pictures: Path) -> None:
        self._pictures = pictures
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.gui.hands", "gui", "--config", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env=site.environment,
        )
        until(self.windows)

    def command(self, *words: str) -> Any:
        """Send a command of `tests.gui.hands` and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the program has ended with {self.process.wait()}"
        return json.loads(answer)

    def windows(self) -> list[dict[str, Any]]:
        return list(self.command("look"))

    def texts(self) -> list[str]:
        """Return the visible texts and names."""
        things = (thing for window in self.windows() for thing in window["things"])
        said = (thing["text"] or thing["name"] for thing in things)
        return [text.replace("&", "") for text in said]

    def find(self, words: str) -> str:
        """Return the first visible text that contains these words, or nothing."""
        return next((text for text in self.texts() if words in text), "")

    def wait_for(self, words: str) -> str:
        return until(lambda: self.find(words), lambda: f"{words!r} in {self.texts()}")

    def click(self, words: str) -> None:
        until(lambda: self.command("click", words), lambda: f"{words!r} in {self.texts()}")

    def take(self, name: str) -> None:
        """Save pictures of the window, in light and dark."""
        for theme in THEMES:
            self.command("theme", theme)
            self.texts()  # is answered after the window was drawn
            assert self.command("grab", str(self._pictures / f"{name}-{theme}.png"))

    def take_screen(self, name: str) -> None:
        assert self.command("grab screen", str(self._pictures / f"{name}.png"))

    def engines(self) -> list[psutil.Process]:
        """Return the processes that the program has started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self) -> float:
        """Wait for the end of the program, and return how long it took in seconds."""
        began = time.monotonic()
        self.process.wait(DEADLINE)
        assert self.process.returncode == 0, self.process.returncode
        # Its engine, which may go on, has inherited the pipes on Windows.
        return time.monotonic() - began


def until(question: Callable[[], Answer], describe: Callable[[], str] = str) -> Answer:
    """Ask until the answer is true, and return it."""
    deadline = time.monotonic() + DEADLINE
    while True:
        if answer := question():
            return answer
        assert time.monotonic() < deadline, f"it did not happen: {describe()}"
        time.sleep(INTERVAL)


@contextmanager
def opened(site: Site, config: Path, pictures: Path) -> Iterator[Window]:
    """Start the program; it is killed if the trial fails."""
    window = Window(site, config, pictures)
    try:
        yield window
    finally:
        kill_group(window.process)


class Trial:
    """The parts of the trial, in order."""

    def __init__(self, site: Site, pictures: Path) -> None:
        self._site = site
        self._pictures = pictures
        save_settings(site.config, SETTINGS)

    def run(self, names: list[str]) -> None:
        """Carry out the parts with these names, or all."""
        parts = {
            "first-start": self._start_for_the_first_time,
            "upload": self._upload,
            "close": self._close_and_open,
            "leave": self._leave_the_upload,
            "stop": self._stop_the_upload,
            "kill": self._kill_the_window,
        }
        for name in names or parts:
            began = time.monotonic()
            said = parts[name]()
            _say(f"{name}: {said}; {time.monotonic() - began:.1f} s")

    def _open(self, config: Path | None = None) -> Any:
        return opened(self._site, config or self._site.config, self._pictures)

    def _start_for_the_first_time(self) -> str:
        with self._open(self._site.place.folder / "nowhere" / "settings.toml") as window:
            window.wait_for("Your data, safe and verified")
            window.take("first-start")
            window.click("Set up…")
            window.wait_for("Server address")
            window.take("wizard")
            window.click("Later")
            window.click("Quit")
            return f"the wizard opened, the program ended in {window.end():.1f} s"

    def _upload(self) -> str:
        files = len(self._site.place.expected_files())
        with self._open() as window:
            window.wait_for("Ready to start")
            window.click("Start")
            window.wait_for("Sending")
            window.take("overview-running")
            window.take_screen("screen-running")
            tray = window.command("tray")
            window.command("page", "transfers")
            window.take("transfers-running")
            window.command("page", "overview")
            safe = window.wait_for(f"All {files} files are safe on the server")
            self._look_at_all_pages(window)
            window.take_screen("screen-after")
            window.click("Quit")
            ended = window.end()
        self._check(files)
        return f"{safe}; tray: {tray}; the program ended in {ended:.1f} s"

    def _look_at_all_pages(self, window: Window) -> None:
        for page in PAGES:
            window.command("page", page)
            if page == "folders":
                window.wait_for("bob")
            window.take(page)
        for name in NAMES:
            window.command("page", "where", name)
            # In the search field and as the title; until then, the file before is shown.
            until(lambda name=name: window.texts().count(name) > 1, lambda: str(window.texts()))
            window.wait_for("It was safe when the server was last checked")
        window.click("Check now")
        window.wait_for("Yes, you may delete it")
        window.take("where-file")
        window.command("page", "overview")

    def _close_and_open(self) -> str:
        """Close the window during a run: the run goes on, and a second start shows the window."""
        files = self._add("closed")
        with self._open() as window:
            window.click("Start")
            window.wait_for("Sending")
            assert not window.command("close")
            words = [sys.executable, "-m", "mydata_like", "gui", "--config", str(self._site.config)]
            subprocess.run(words, env=self._site.environment, timeout=DEADLINE, check=True)
            until(window.windows)
            window.wait_for(f"All {files} files are safe on the server")
            window.click("Quit")
            window.end()
        self._check(files)
        return f"the run went on, and the second start showed the window; {files} files are safe"

    def _leave_the_upload(self) -> str:
        files = self._add("left")
        with self._open() as window:
            engines = self._quit_during_a_run(window, LEAVE)
            ended = window.end()
            left = [it for it in engines if it.is_running()]
            assert left, f"the upload did not go on: {len(self._site.find_wrongs())} are missing"
            _, alive = psutil.wait_procs(left, DEADLINE)
        assert not alive, alive
        self._check(files)
        return f"the program ended in {ended:.1f} s, its engine after {files} files were safe"

    def _stop_the_upload(self) -> str:
        self._add("stopped")
        with self._open() as window:
            engines = self._quit_during_a_run(window, STOP)
            ended = window.end()
            _, alive = psutil.wait_procs(engines, DEADLINE)
        assert not alive, alive
        assert ended < 10, ended
        missing = len(self._site.find_wrongs())
        assert missing, "the run was over before it was stopped"
        return f"the program ended in {ended:.1f} s; {missing} files are left for the next run"

    def _kill_the_window(self) -> str:
        """Kill the window alone: its engine finishes the run and ends."""
        files = self._add("killed")
        with self._open() as window:
            window.click("Start")
            window.wait_for("Sending")
            engines = window.engines()
            window.process.kill()
            window.process.wait()
            left = [it for it in engines if it.is_running()]
            assert left, "the upload did not go on"
            _, alive = psutil.wait_procs(engines, DEADLINE)
        assert not alive, alive
        self._check(files)
        return f"{len(engines)} processes ended after {files} files were safe"

    def _quit_during_a_run(self, window: Window, answer: str) -> list[psutil.Process]:
        window.click("Start")
        window.wait_for("Sending")
        engines = window.engines()
        assert engines
        window.click("Quit")
        window.wait_for("An upload is active.")
        window.take("quitting")
        window.click(answer)
        return engines

    def _add(self, name: str) -> int:
        """Add files with names of several scripts; return the number of all files.

        All others are sent before; these are sent slowly, which takes more than half a minute.
        """
        self._site.run("limits.bandwidth=0")
        save_settings(self._site.config, {"limits.bandwidth": 0.08})
        folder = self._site.data / "alice" / f"{name} \N{GREEK SMALL LETTER MU}m \u6f22\u5b57"
        folder.mkdir()
        for number in range(20):
            (folder / f"M\u00fcnster {number:02d}.tif").write_bytes(os.urandom(150_000))
        return len(self._site.place.expected_files())

    def _check(self, files: int) -> None:
        wrongs = self._site.find_wrongs()
        assert not wrongs, wrongs[:5]
        verified = sum(file.verified for file in self._site.server.datafiles())
        assert verified == files, (verified, files)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Carry out the trial; it raises what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pictures", type=Path)
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8")
    options.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "confocal"
        make_data(home, tiny_files=60, large=1_500_000)
        with open_site(home) as site:
            Trial(site, options.pictures.absolute()).run(options.parts)


if __name__ == "__main__":
    main()
