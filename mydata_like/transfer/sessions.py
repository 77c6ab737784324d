"""How many sessions the channels share: near by as processors encrypt, far away as lines carry."""

import os
from collections.abc import Collection
from typing import Final

FAR: Final = 0.005  # seconds of a round trip from which on a processor is not the limit
FURTHER: Final = 4  # sessions over a long way; more are more logins than hosts like at once


def count_sessions(cpus: Collection[int], round_trip: float) -> int:
    """Return how many sessions there should be: encryption takes a processor on either side.

    `cpus` are the processors of both sides, as far as they are known, and `round_trip` is in
    seconds, 0 while unknown. A long way wants more: on a TCP connection some 4 MiB are under way
    at most (Linux: tcp_wmem and tcp_rmem), which is less than the streams of a session may have.
    """
    near = max(1, min(cpus))
    return max(near, FURTHER) if round_trip >= FAR else near


def count_cpus() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
