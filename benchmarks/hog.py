"""Something that keeps a processor busy in pure Python, within this process or beside it.

    python -m benchmarks.hog inside|beside COMMAND...

runs `mydata-like` in this process with it. A thread within holds the interpreter's lock whenever
it can, as a careless part of the engine would; a process beside only takes the same processor
time. The difference of the two is what the lock costs.
"""

# The workers import this module again when they are spawned: nothing but the standard library.
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SPIN = "while True: pass"


@contextmanager
def hog(place: str) -> Iterator[None]:
    """Keep a processor busy while this lasts: `inside`, `beside`, or not at all (`""`)."""
    match place:
        case "inside":
            over = threading.Event()
            threading.Thread(target=_spin, args=(over,), daemon=True).start()
            try:
                yield
            finally:
                over.set()
        case "beside":
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
    """Run the real command beside the hog."""
    place = sys.argv.pop(1)
    from mydata_like.__main__ import main as run

    with hog(place):
        run()


if __name__ == "__main__":
    main()
