"""Programs in a console of their own, where a test presses Ctrl+C as a user does."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Any, Self

import psutil

from tests.site import DEADLINE, Ended

HELPER = (sys.executable, "-m", "tests.console_keys")


class InConsole:
    """A program that has a console, or on POSIX a process group, of its own."""

    def __init__(self, *words: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [*(HELPER if os.name == "nt" else ()), sys.executable, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
            **_new_console(),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what a failed test has left running."""
        if self._process.poll() is None:
            for process in (*self._find_family(), self._process):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.communicate()

    def wait_for(self, text: str) -> None:
        """Read its output up to a line with this text."""
        assert self._process.stdout is not None
        seen = []
        for line in self._process.stdout:
            seen.append(line)
            if text in line:
                return
        raise AssertionError(f"ended without {text}: {seen[-3:]}, {self._process.communicate()}")

    def press_ctrl_c(self) -> Ended:
        """Interrupt the program and all that it started; wait for the end of all of them."""
        family = self._find_family()
        asked = None
        if os.name == "nt":
            asked = "interrupt\n"
        else:
            os.killpg(self._process.pid, signal.SIGINT)
        output, complaints = self._process.communicate(asked, timeout=DEADLINE)
        _, alive = psutil.wait_procs(family, DEADLINE)
        assert not alive, f"processes outlive the program: {alive}"
        return Ended(self._process.returncode, output, complaints)

    def _find_family(self) -> list[psutil.Process]:
        """Return the processes that it has started."""
        return psutil.Process(self._process.pid).children(recursive=True)


def _new_console() -> dict[str, Any]:
    if sys.platform != "win32":
        return {"start_new_session": True}
    hidden = subprocess.STARTUPINFO()
    hidden.dwFlags, hidden.wShowWindow = subprocess.STARTF_USESHOWWINDOW, subprocess.SW_HIDE
    return {"creationflags": subprocess.CREATE_NEW_CONSOLE, "startupinfo": hidden}
