"""A separate program that opens the window once and prints the seconds until it is painted.

    python -m benchmarks.painted HOME

It starts the real program offscreen with a new home folder, and ends it when Qt reports in the
window's log that it has painted the first frame.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

_PAINTED = "Flushing top level"  # a message of Qt's category qt.widgets.painting
_POLL = 0.005  # seconds between two checks of the log
_LONGEST = 60.0  # seconds


def main(home: Path) -> float:
    """Return the seconds from the start of the process to the first frame."""
    shutil.rmtree(home, ignore_errors=True)
    environment = os.environ | {
        "MYDATA_LIKE_HOME": str(home),
        "QT_QPA_PLATFORM": "offscreen",
        "QT_LOGGING_RULES": "qt.widgets.painting=true",
    }
    log = home / "logs" / "mydata-like-window.log"
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "mydata_like", "gui"], env=environment)
    try:
        while not (log.exists() and _PAINTED in log.read_text()):
            if process.poll() is not None or time.perf_counter() > began + _LONGEST:
                raise SystemExit("the window was not painted")
            time.sleep(_POLL)
        return time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
