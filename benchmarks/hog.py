"""A thread or process that keeps a processor busy in pure Python while `mydata-like` runs.

    python -m benchmarks.hog inside|outside COMMAND...

runs `mydata-like` in this process. With `inside`, a thread holds the interpreter's lock as much as
it can, as careless code in the engine would. With `outside`, a separate process uses the same
processor time. The difference between the two is the cost of the lock.
"""

# Spawned workers import this module again, so it imports the standard library only.
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SPIN = "while True: pass"


@contextmanager
def hog(place: str) -> Iterator[None]:
    """Keep a processor busy during the context: `inside`, `outside`, or not at all (`""`)."""
    match place:
        case "inside":
            over = threading.Event()
            threading.Thread(target=_spin, args=(over,), daemon=True).start()
            try:
                yield
            finally:
                over.set()
        case "outside":
            process = subprocess.Popen([sys.executable, "-c", _SPIN])
            try:
                yield
            finally:
                process.kill()
                process.wait()
        case _:
            yield


def _spin(over: threading.Event) -> None:
    while not over.is_set():
        pass


def main() -> None:
    """Run the real command together with the hog."""
    place = sys.argv.pop(1)
    from mydata_like.__main__ import main as run

    with hog(place):
        run()


if __name__ == "__main__":
    main()
