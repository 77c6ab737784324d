"""Which changes of settings are tried, and what a test says about its results."""

import pytest

from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.recommendations import as_verdict, count_channels, list_candidates
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    Measurement,
    SettingsComparison,
    SpeedTestResult,
    StageResult,
    Unit,
    Workload,
)

AES, FAST, CHACHA = "aes128-ctr", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"
ALONE = {AES: 1e9, FAST: 3e9, CHACHA: 0.5e9}


def findings(*measured, cipher=AES, compared=()):
    ciphers = (
        Measurement(StageResult.CIPHER, name, Unit.BYTES, (rate,)) for name, rate in ALONE.items()
    )
    return SpeedTestResult(measured=(*ciphers, *measured), cipher=cipher, compared=compared)


def tried(found, *, zstd=True, **settings):
    values = {"ciphers": (AES, CHACHA, FAST)} | settings
    listed = list_candidates(found, Transfer(**values), zstd=zstd)
    return [(one.code, one.workload, dict(one.changes)) for one in listed]


def test_other_ciphers_are_tried_the_fastest_here_first_and_none_is_lost():
    large = Workload.LARGE
    assert tried(findings()) == [
        ("cipher", large, {"transfer.ciphers": [FAST, AES, CHACHA]}),
        ("cipher", large, {"transfer.ciphers": [CHACHA, AES, FAST]}),
    ]
    assert tried(findings(cipher="")) == []  # a mounted folder


def test_only_settings_that_are_not_at_their_default_are_tried_otherwise():
    usual = Transfer()
    shrinks = Measurement(StageResult.SOURCE, COMPRESSED, Unit.SHARE, (0.5,))
    changed = {"channels": 31, "batch_files": 3, "batch_below": 0, "compression": "never"}

    found = tried(findings(shrinks, cipher=""), **changed)

    batches = {f"transfer.{key}": getattr(usual, key) for key in ("batch_below", "batch_files")}
    assert found == [
        ("batches", Workload.TINY, batches),
        ("channels", Workload.LARGE, {"transfer.channels": 0}),
        ("channels", Workload.TINY, {"transfer.channels": 0}),
        ("compression", Workload.LARGE, {"transfer.compression": "auto"}),
    ]
    assert tried(findings(shrinks, cipher="")) == []


@pytest.mark.parametrize(("share", "zstd"), [(0.9, True), (0.5, False)])
def test_compression_is_not_tried_where_it_cannot_help(share, zstd):
    measured = Measurement(StageResult.SOURCE, COMPRESSED, Unit.SHARE, (share,))

    assert tried(findings(measured, cipher=""), zstd=zstd, compression="never") == []


def test_as_many_channels_as_an_automatic_run_starts_with_are_not_compared_with_it():
    assert tried(findings(cipher=""), channels=count_channels(Transfer())) == []


def test_the_verdict_says_what_was_sent_and_which_part_is_the_slowest():
    found = findings(
        Measurement(StageResult.NETWORK, "1 session", Unit.BYTES, (112e6,)),
        Measurement(StageResult.SERVER_DISK, LARGE_FILES, Unit.BYTES, (300e6,)),
        Measurement(StageResult.CHANNELS, Workload.LARGE.together, Unit.BYTES, (80e6,)),
        Measurement(StageResult.CHANNELS, Workload.TINY.together, Unit.FILES, (4000.0,)),
    )

    verdict = as_verdict(found)

    assert verdict["sentence"] == (
        "Large files were sent at 80.0 MB/s; the slowest part alone is the connection to the "
        "staging host (112.0 MB/s). Tiny files were sent at 4,000 files/s."
    )
    large, tiny = verdict["workloads"]
    assert (large["limit"], large["together"]) == ("network", 80e6)
    assert (tiny["limit"], tiny["parts"]) == (None, {})


def test_only_what_was_faster_twice_is_recommended():
    lost = SettingsComparison(
        "cipher", "Other.", Workload.LARGE, {"a": 1}, (1.0,), (1.1,), won=False
    )
    won = lost._replace(code="batches", after=(2.0,), won=True)

    verdicts = [as_verdict(findings(compared=some)) for some in [(lost,), (lost, won), ()]]

    assert [[one["code"] for one in each["advice"]] for each in verdicts] == [[], ["batches"], []]
    found = [each["sentence"] == "No difference found: no other setting was faster twice."
             for each in verdicts]  # fmt: skip
    assert found == [True, False, False]
