"""Artificial bottlenecks, and the correct results of a speed test for each.

The correct results were fixed before anything was measured.
"""

from collections.abc import Callable, Mapping, Set
from random import Random
from typing import NamedTuple

from benchmarks.ours import Settings
from benchmarks.wire import Wire
from mydata_like.speedtest.results import StageResult

# Encryption is measured on the connection.
_PROCESSORS = frozenset({StageResult.HASH, StageResult.NETWORK})
_SLOW_FIRST = (
    "chacha20-poly1305@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes128-gcm@openssh.com",
)


class Injection(NamedTuple):
    """The bottleneck of one round, and its description.

    `here` and `there` limit the number of processors of the uploader and of the staging host; 0 is
    no limit. `source` and `staging` are the speeds of these disks in bytes a second. `latency` is
    the additional time of each answer of the API in seconds.
    """

    text: str
    wire: Wire | None = None
    here: float = 0.0
    there: float = 0.0
    source: float = 0.0
    staging: float = 0.0
    latency: float = 0.0
    settings: Settings = ()


class Bottleneck(NamedTuple):
    """A kind of injection; `right` has the limits that a correct speed test may name.

    `tiny` sends tiny files instead of large ones. `advised` says that a setting helps. `held_back`
    requires control groups.
    """

    right: Set[StageResult]
    draw: Callable[[Random], Injection]
    tiny: bool = False
    advised: bool = False
    held_back: bool = False


def _slow_network(chance: Random) -> Injection:
    rate = chance.choice((10, 20, 40, 60))
    return Injection(f"a network of {rate} MB/s", Wire(0.002, rate * 1e6))


def _distance(chance: Random) -> Injection:
    round_trip = chance.choice((40, 60, 80))
    text = f"a round trip of {round_trip} ms, one channel set"
    return Injection(text, Wire(round_trip / 1e3), settings=(("channels", 1),))


def _slow_uploader(chance: Random) -> Injection:
    share = chance.choice((0.4, 0.6, 0.8))
    return Injection(f"{share} processors for the uploader", here=share)


def _slow_host(chance: Random) -> Injection:
    share = chance.choice((0.2, 0.3, 0.4))
    return Injection(f"{share} processors for the staging host", there=share)


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
    "network": Bottleneck({StageResult.NETWORK}, _slow_network),
    "distance": Bottleneck({StageResult.NETWORK}, _distance, advised=True),
    "uploader": Bottleneck(_PROCESSORS, _slow_uploader, held_back=True),
    "host": Bottleneck({StageResult.NETWORK}, _slow_host, held_back=True),
    "staging": Bottleneck({StageResult.SERVER_DISK}, _slow_staging, held_back=True),
    "source": Bottleneck({StageResult.SOURCE}, _slow_source, held_back=True),
    "api": Bottleneck({StageResult.API}, _slow_api, tiny=True),
    "nothing": Bottleneck(_PROCESSORS, _nothing),
    "cipher": Bottleneck(_PROCESSORS, _slow_cipher, advised=True),
}
