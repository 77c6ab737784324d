"""Records of speed tests, created without running one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mydata_like.app.settings_service import find_places, find_state
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.recommendations import judge
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    RECORDS,
    RENAME,
    ROUND_TRIP,
    TINY_FILES,
    CpuCost,
    LocalMachine,
    Measurement,
    SpeedTestResult,
    StageResult,
    Unit,
    carried,
    connected,
    flooded,
    local,
)
from mydata_like.state.state_files import add_speed_test

BEGAN = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
AES, CHACHA = "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"
LATE = "Compression: there was no time left to measure this."
UNKNOWN = "Something is unknown."


def of(stage, what, value, unit=Unit.BYTES, cost=(None, None)):
    return Measurement(stage, what, unit, (value * 0.95, value, value * 1.1), CpuCost(*cost))


def findings(network=112e6):
    """Return the result for two computers on a fast network with a slow API."""
    return SpeedTestResult(
        measured=(
            of(StageResult.HASH, MD5, 620e6),
            of(StageResult.HASH, MD5_ALL, 2.3e9),
            of(StageResult.SOURCE, LARGE_FILES, 480e6),
            of(StageResult.SOURCE, TINY_FILES, 2900.0, Unit.FILES),
            of(StageResult.SOURCE, COMPRESSED, 0.62, Unit.SHARE),
            of(StageResult.API, connected(2), 61.0, Unit.REQUESTS),
            of(StageResult.API, RECORDS, 190.0, Unit.FILES),
            of(StageResult.NETWORK, ROUND_TRIP, 0.0004, Unit.SECONDS),
            of(StageResult.CHANNELS, flooded(1), network * 0.9, cost=(1e-9, 1e-9)),
            of(StageResult.CHANNELS, flooded(4), network, cost=(1e-9, 1e-9)),
            of(StageResult.CIPHER, AES, network * 0.9, cost=(1e-9, 1e-9)),
            of(StageResult.CIPHER, CHACHA, network * 0.7, cost=(3e-9, 3e-9)),
            of(StageResult.CIPHER, local(AES), 2.1e9),
            of(StageResult.SERVER_DISK, LARGE_FILES, 310e6),
            of(StageResult.SERVER_DISK, TINY_FILES, 5200.0, Unit.FILES),
            of(StageResult.CHANNELS, carried(LARGE_FILES), network * 0.8),
        ),
        here=LocalMachine(4, aes=True, busy=0.1),
        there=LocalMachine(8, aes=True),
        rung="shell",
        cipher=AES,
        unknown=(UNKNOWN,),
    )


def in_folder():
    """Return the result for a mounted folder that is slower than this computer."""
    here = (StageResult.HASH, StageResult.SOURCE)
    measured = (
        *(one for one in findings().measured if one.stage in here and one.what != COMPRESSED),
        of(StageResult.FOLDER, RENAME, 0.004, Unit.SECONDS),
        of(StageResult.FOLDER, LARGE_FILES, 60e6),
        of(StageResult.CHANNELS, flooded(2), 90e6),
        of(StageResult.FOLDER, TINY_FILES, 900.0, Unit.FILES),
        of(StageResult.CHANNELS, carried(TINY_FILES), 400.0, Unit.FILES),
    )
    return replace(
        findings(),
        measured=measured,
        there=LocalMachine(),
        rung="folder",
        cipher="",
        channels=2,
    )


def costly_encryption(cost=3.3e-9):
    """Return the result for a network that is faster than the first cipher, which is not AES."""
    slow = {CHACHA: (cost, 2.5e-9), AES: (0.7e-9, 0.5e-9)}
    network = [
        of(StageResult.CIPHER, cipher, 0.9 / max(each), cost=each) for cipher, each in slow.items()
    ]
    network += [
        of(StageResult.CHANNELS, flooded(count), count * 0.9 / cost, cost=slow[CHACHA])
        for count in (1, 2)
    ]
    others = [
        one
        for one in findings().measured
        if one.stage not in (StageResult.CIPHER, StageResult.CHANNELS) and one.what != COMPRESSED
    ]
    faster = {
        (StageResult.SOURCE, LARGE_FILES): 1.1e9,
        (StageResult.SERVER_DISK, LARGE_FILES): 760e6,
    }
    others = [
        of(one.stage, one.what, faster.get((one.stage, one.what), one.value), one.unit)
        for one in others
    ]
    here = LocalMachine(2, aes=True, busy=0.0)
    return replace(
        findings(), measured=(*others, *network), here=here, cipher=CHACHA, unknown=(LATE,)
    )


def a_record(number=0, found=None, **settings):
    """Return the record of a test `number` days after the first, with these settings."""
    found = found or findings()
    return {
        "at": (BEGAN + timedelta(days=number)).isoformat(),
        "quick": True,
        "findings": found.as_record(),
        "verdict": judge(found, Transfer(**settings)).as_record(),
    }


def keep(desk, *records):
    """Store tests as those of a desk's installation."""
    state = find_state(desk.controller.settings, find_places(desk.controller.config))
    for record in records:
        add_speed_test(state / "speed-tests.jsonl", record)
