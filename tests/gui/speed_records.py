"""Records of speed tests, created without running one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mydata_like.app.settings_service import find_places, find_state
from mydata_like.speedtest.recommendations import as_verdict
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    RECORDS,
    RENAME,
    ROUND_TRIP,
    TINY_FILES,
    LocalMachine,
    Measurement,
    SettingsComparison,
    SpeedTestResult,
    StageResult,
    Unit,
    Workload,
)
from mydata_like.state.state_files import add_speed_test

BEGAN = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
AES, CHACHA = "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"
LATE = "Compression: there was no time left to measure this."
UNKNOWN = "Something is unknown."
AUTOMATIC = SettingsComparison(
    "channels",
    "Choose the number of channels automatically.",
    Workload.LARGE,
    {"transfer.channels": 0},
    (40e6, 41e6, 40e6, 40e6, 42e6, 40e6),
    (80e6, 82e6, 81e6, 80e6, 84e6, 80e6),
    won=True,
)
OTHER_CIPHER = SettingsComparison(
    "cipher",
    f"Offer {CHACHA} first.",
    Workload.LARGE,
    {"transfer.ciphers": [CHACHA, AES]},
    (82e6,),
    (71e6,),
    won=False,
)


def of(stage, what, value, unit=Unit.BYTES):
    return Measurement(stage, what, unit, (value * 0.95, value, value * 1.1))


def findings(network=112e6, compared=(OTHER_CIPHER,)):
    """Return the result for two computers on a fast network with a slow API."""
    return SpeedTestResult(
        measured=(
            of(StageResult.HASH, MD5, 620e6),
            of(StageResult.HASH, MD5_ALL, 2.3e9),
            of(StageResult.SOURCE, LARGE_FILES, 480e6),
            of(StageResult.SOURCE, TINY_FILES, 2900.0, Unit.FILES),
            of(StageResult.SOURCE, COMPRESSED, 0.62, Unit.SHARE),
            of(StageResult.API, "2 connections", 61.0, Unit.REQUESTS),
            of(StageResult.API, RECORDS, 190.0, Unit.FILES),
            of(StageResult.CIPHER, AES, 2.1e9),
            of(StageResult.NETWORK, ROUND_TRIP, 0.0004, Unit.SECONDS),
            of(StageResult.NETWORK, "1 session", network * 0.9),
            of(StageResult.NETWORK, "4 sessions", network),
            of(StageResult.SERVER_DISK, LARGE_FILES, 310e6),
            of(StageResult.SERVER_DISK, TINY_FILES, 5200.0, Unit.FILES),
            of(StageResult.CHANNELS, Workload.LARGE.together, network * 0.75),
            of(StageResult.CHANNELS, Workload.TINY.together, 4000.0, Unit.FILES),
        ),
        compared=compared,
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
        of(StageResult.CHANNELS, Workload.LARGE.together, 90e6),
        of(StageResult.CHANNELS, Workload.TINY.together, 400.0, Unit.FILES),
    )
    return replace(
        findings(), measured=measured, compared=(), there=LocalMachine(), rung="folder", cipher=""
    )


def a_record(number=0, found=None):
    """Return the record of a test `number` days after the first."""
    found = found or findings()
    return {
        "at": (BEGAN + timedelta(days=number)).isoformat(),
        "quick": True,
        "findings": found.as_record(),
        "verdict": as_verdict(found),
    }


def keep(context, *records):
    """Store tests as those of a context's installation."""
    state = find_state(context.controller.settings, find_places(context.controller.config))
    for record in records:
        add_speed_test(state / "speed-tests.jsonl", record)
