"""Bottlenecks that are put in the way of an upload on purpose, and what is right to say of each.

Which words are right was fixed before anything was measured.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from benchmarks.ours import Settings
from benchmarks.wire import Wire
from mydata_like.doctor.findings import Stage

_PROCESSORS = frozenset({Stage.HASH, Stage.CIPHER, Stage.SERVER_CPU})
_SLOW_FIRST = (
    "chacha20-poly1305@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes128-gcm@openssh.com",
)
_FIRST, _LAST = (0,), ((os.cpu_count() or 1) - 1,)
_SPIN = "while True: pass"


class Injection(NamedTuple):
    """What is in the way in one round, and in words.

    `here` and `there` are the processors that the uploader and the staging host may use, all
    without any; `hogs` are those that another program keeps busy. `source` and `staging` are
    what these disks carry, in bytes a second; `latency` are the seconds that each answer of the
    API takes longer.
    """

    text: str
    wire: Wire | None = None
    here: tuple[int, ...] = ()
    there: tuple[int, ...] = ()
    hogs: tuple[int, ...] = ()
    source: float = 0.0
    staging: float = 0.0
    latency: float = 0.0
    settings: Settings = ()


class Bottleneck(NamedTuple):
    """A kind of injection; `right` are the limits that a speed test may name in its presence.

    `tiny` says that tiny files are carried, and not large ones; `advised` that a setting helps.
    """

    right: Set[Stage]
    draw: Callable[[Random], Injection]
    tiny: bool = False
    advised: bool = False


def _slow_network(chance: Random) -> Injection:
    rate = chance.choice((10, 20, 40, 60))
    return Injection(f"a network of {rate} MB/s", Wire(0.002, rate * 1e6))


def _distance(chance: Random) -> Injection:
    round_trip = chance.choice((40, 60, 80))
    text = f"a round trip of {round_trip} ms, one channel set"
    return Injection(text, Wire(round_trip / 1e3), settings=(("channels", 1),))


def _one_core_here(chance: Random) -> Injection:
    text = "one core for the uploader, which another program needs, too"
    return Injection(text, here=_FIRST, hogs=_FIRST)


def _busy_host(chance: Random) -> Injection:
    text = "a core for either side, and the host's is one that four other programs need, too"
    return Injection(text, here=_FIRST, there=_LAST, hogs=4 * _LAST)


def _slow_staging(chance: Random) -> Injection:
    rate = chance.choice((15, 25, 40))
    return Injection(f"a staging directory of {rate} MB/s", staging=rate * 1e6)


def _slow_source(chance: Random) -> Injection:
    rate = chance.choice((15, 25, 40))
    return Injection(f"a source of {rate} MB/s", source=rate * 1e6)


def _slow_api(chance: Random) -> Injection:
    latency = chance.choice((0.1, 0.2, 0.3))
    return Injection(f"{latency:g} s more for each answer of the API", latency=latency)


def _nothing(chance: Random) -> Injection:
    return Injection("nothing: the processors are full")


def _slow_cipher(chance: Random) -> Injection:
    return Injection("the slowest cipher first", settings=(("ciphers", _SLOW_FIRST),))


BOTTLENECKS: Mapping[str, Bottleneck] = {
    "network": Bottleneck({Stage.NETWORK}, _slow_network),
    "distance": Bottleneck({Stage.CHANNELS}, _distance, advised=True),
    "uploader": Bottleneck({Stage.HASH, Stage.CIPHER}, _one_core_here),
    "host": Bottleneck({Stage.SERVER_CPU}, _busy_host),
    "staging": Bottleneck({Stage.SERVER_DISK}, _slow_staging),
    "source": Bottleneck({Stage.SOURCE}, _slow_source),
    "api": Bottleneck({Stage.API}, _slow_api, tiny=True),
    "nothing": Bottleneck(_PROCESSORS, _nothing),
    "cipher": Bottleneck(_PROCESSORS, _slow_cipher, advised=True),
}


@contextmanager
def hogged(processors: Sequence[int]) -> Iterator[None]:
    """Keep processors busy while this lasts, as other programs would."""
    hogs = [_start_hog(processor) for processor in processors]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def pin(pids: Sequence[int], processors: Sequence[int]) -> None:
    """Let processes, and all that they start from now on, use these processors only."""
    for pid in pids:
        os.sched_setaffinity(pid, processors)


def prefix(processors: Sequence[int]) -> list[str]:
    """Return what stands before a command that may use these processors only."""
    return ["taskset", "-c", ",".join(map(str, processors))] if processors else []


def _start_hog(processor: int) -> "subprocess.Popen[bytes]":
    # Its own session: Linux shares processors out by these.
    hog = subprocess.Popen([sys.executable, "-c", _SPIN], start_new_session=True)
    pin([hog.pid], [processor])
    return hog
