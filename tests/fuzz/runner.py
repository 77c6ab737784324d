"""The execution of one fuzz target, with limits of time and memory."""

import logging
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.fuzz.mutate import change_bytes, change_json, make_bomb
from tests.fuzz.target import Target

LIMIT_MB = 300  # of memory for a parser, in addition to that of the process at its start
BACKSTOP = 4 << 30  # bytes of address space
BOMBS = 0.005  # the share of inputs of the largest size of a reply
TIME_LIMIT = 10.0  # seconds for one input


class TooSlowError(Exception):
    """One input has taken longer than `TIME_LIMIT`."""


def make_input(random: Random, target: Target, *, bombs: bool = False) -> bytes:
    """Return the next input, a changed sample."""
    sample = random.choice(target.samples + target.others)
    if bombs and random.random() < BOMBS:
        return make_bomb(random, sample)
    if target.has_json and random.random() < 0.7:
        return change_json(random, sample)
    return change_bytes(random, sample)


def run_target(target: Target, seconds: float, seed: int, keep: Path) -> Mapping[str, Any]:
    """Run a target for some seconds; return the result."""
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_AS, (BACKSTOP, BACKSTOP))
    signal.signal(signal.SIGALRM, _stop)
    random, end, before = Random(f"{target.name} {seed}"), time.monotonic() + seconds, _peak()
    keep.mkdir(parents=True, exist_ok=True)
    kept = keep / f"{target.name}.input"
    with tempfile.TemporaryDirectory() as folder:
        parse = target.open(Path(folder))
        for inputs in count(1):  # noqa: B007 - it is reported below
            data = make_input(random, target, bombs=True)
            why = _try(target, parse, data)
            if not why and _peak() - before > LIMIT_MB:
                why = f"it needed {_peak() - before:.0f} MB"
            if why:
                kept.write_bytes(data)
                why = f"{why}; {kept}"
                break
            if time.monotonic() > end:
                break
    peak = _peak() - before
    return {"target": target.name, "inputs": inputs, "peak": peak, "result": why or "ok"}


def _try(target: Target, parse: Any, data: bytes) -> str:
    """Return what was wrong with one input; empty if nothing was."""
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
    try:
        parse(data)
    except target.declared:
        return ""
    except BaseException as error:  # noqa: BLE001 - any undeclared error is a failure
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:100]!r} at {last.filename}:{last.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return ""


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooSlowError(f"more than {TIME_LIMIT:.0f} seconds")


def _peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
