"""The limits of a speed test, and which part of an upload was the slowest."""

import pytest

from mydata_like.core.errors import Cancelled, RejectedError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.speedtest.results import (
    FULL,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    QUICK,
    RECORDS,
    TINY_FILES,
    Measurement,
    SpeedTestBudget,
    SpeedTestResult,
    StageResult,
    Unit,
    Workload,
)

FOUND = SpeedTestResult(
    measured=(
        Measurement(StageResult.HASH, MD5, Unit.BYTES, (50e6,)),
        Measurement(StageResult.HASH, MD5_ALL, Unit.BYTES, (400e6,)),
        Measurement(StageResult.CIPHER, "aes128-ctr", Unit.BYTES, (60e6,)),
        Measurement(StageResult.NETWORK, "1 session", Unit.BYTES, (90e6,)),
        Measurement(StageResult.NETWORK, "4 sessions", Unit.BYTES, (110e6, 112e6, 500e6)),
        Measurement(StageResult.SERVER_DISK, LARGE_FILES, Unit.BYTES, (300e6,)),
        Measurement(StageResult.SERVER_DISK, TINY_FILES, Unit.FILES, (4000.0,)),
        Measurement(StageResult.API, RECORDS, Unit.FILES, (190.0,)),
        Measurement(StageResult.CHANNELS, Workload.LARGE.together, Unit.BYTES, (80e6,)),
    )
)


def test_the_slowest_part_alone_comes_first():
    assert list(FOUND.find_parts(Workload.LARGE).items()) == [
        (StageResult.NETWORK, 112e6),
        (StageResult.SERVER_DISK, 300e6),
        (StageResult.HASH, 400e6),
    ]
    assert list(FOUND.find_parts(Workload.TINY)) == [StageResult.API, StageResult.SERVER_DISK]


@pytest.mark.parametrize("effort", [FULL, QUICK])
def test_no_more_than_a_gigabyte_is_sent(effort):
    budget = SpeedTestBudget(effort, CancelFlag())

    for _ in range(effort.most // effort.sent):
        budget.take(effort.sent)

    assert effort.most == 1_000_000_000
    with pytest.raises(RejectedError, match="limit of bytes"):
        budget.take(effort.sent)


def test_a_slow_disk_is_not_given_more_than_fits_into_a_sample():
    budget = SpeedTestBudget(FULL, CancelFlag())

    assert budget.fit(1000, seconds=FULL.seconds / 3, most=10_000) == 3000
    assert budget.fit(1000, seconds=60.0, most=10_000) == 1000
    assert budget.fit(1000, seconds=1e-9, most=10_000) == 10_000


def test_a_wait_ends_when_the_test_is_cancelled():
    cancel = CancelFlag()
    cancel.set("by the test")

    with pytest.raises(Cancelled):
        SpeedTestBudget(FULL, cancel).wait(60.0)
