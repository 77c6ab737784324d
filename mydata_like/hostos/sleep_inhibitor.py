"""Keeps this computer from going to sleep, with a system program or function."""

import logging
import subprocess
import sys
from typing import Final

logger = logging.getLogger(__name__)

# Both run `cat`, which ends when its input closes, so a killed process does not keep the computer
# awake.
_KEEPER: Final = (
    ("caffeinate", "-i", "cat")
    if sys.platform == "darwin"
    else (
        *("systemd-inhibit", "--what=sleep", "--mode=block", "--who=mydata-like"),
        *("--why=Files are being sent", "cat"),
    )
)
_TIMEOUT: Final = 5.0  # seconds for such a program to end


class SleepInhibitor:
    """Keeps the computer awake on Linux (systemd-inhibit) and macOS (caffeinate)."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._given_up = False

    def keep(self) -> bool:
        works = self._process is not None and self._process.poll() is None
        if self._process is not None and not works:
            logger.info("The system refuses to stay awake")
            self.end()
            self._given_up = True
        if self._process is None and not self._given_up:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - a fixed program
                    _KEEPER,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                logger.info("The system cannot be kept awake: %s", error)
                self._given_up = True
        return works  # a program that has just started may still be refused

    def end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if sys.platform == "win32":
    import ctypes

    _CONTINUOUS: Final = 0x80000000
    _SYSTEM_REQUIRED: Final = 0x00000001

    class ThreadWakefulness:
        """Keeps Windows awake; the request ends with the thread that made it."""

        def keep(self) -> bool:
            wanted = _CONTINUOUS | _SYSTEM_REQUIRED
            return bool(ctypes.windll.kernel32.SetThreadExecutionState(wanted))

        def end(self) -> None:
            ctypes.windll.kernel32.SetThreadExecutionState(_CONTINUOUS)

    SystemWakefulness = ThreadWakefulness
else:
    SystemWakefulness = SleepInhibitor
