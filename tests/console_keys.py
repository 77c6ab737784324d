"""Starts a program in the console of this process; for a line of input, presses Ctrl+C there.

For Windows, where only a process with the same console can do that. The exit code is that of the
program; if the input ends before, the program is killed.
"""

import ctypes
import signal
import subprocess
import sys
from collections.abc import Sequence


def main(words: Sequence[str]) -> int:
    assert sys.platform == "win32"
    windows = ctypes.WinDLL("kernel32", use_last_error=True)
    windows.SetConsoleCtrlHandler(None, False)  # programs inherit whether Ctrl+C is ignored
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    windows.SetConsoleCtrlHandler(None, True)
    if not sys.stdin.readline():
        process.kill()
    # Ctrl+Break could be sent to one group of processes, but Wine 8 has only Ctrl+C for all.
    elif not windows.GenerateConsoleCtrlEvent(signal.CTRL_C_EVENT, 0):
        raise ctypes.WinError(ctypes.get_last_error())
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
