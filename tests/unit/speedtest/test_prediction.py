"""What findings mean: which stage is the limit, what would be faster, and what is not worth it."""

import json

import pytest

from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.prediction import Workload
from mydata_like.speedtest.recommendations import choose_mode, judge
from mydata_like.speedtest.results import (
    CEILING,
    COMPRESSED,
    COMPRESSION,
    LARGE_FILES,
    MD5,
    MD5_ALL,
    RECORDS,
    ROUND_TRIP,
    TINY_FILES,
    CpuCost,
    LocalMachine,
    Measurement,
    SpeedTestResult,
    StageResult,
    Unit,
    carried,
    flooded,
    in_usual_batches,
    local,
)

MB = 1e6
AES, CHACHA = "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"


def of(stage, what, value, cost=None):
    samples = (value * 0.98, value, value * 1.02)
    return Measurement(stage, what, Unit.BYTES, samples, cost or CpuCost())


# A quick pair of computers with four cores each, a network of 1 Gbit/s, and fast disks.
OFFICE = {
    "source": of(StageResult.SOURCE, LARGE_FILES, 900 * MB),
    "source tiny": of(StageResult.SOURCE, TINY_FILES, 40_000),
    "hash": of(StageResult.HASH, MD5, 600 * MB),
    "hash all": of(StageResult.HASH, MD5_ALL, 2400 * MB),
    "aes": of(StageResult.CIPHER, AES, 110 * MB, CpuCost(1.3e-9, 2.4e-9)),
    "chacha": of(StageResult.CIPHER, CHACHA, 108 * MB, CpuCost(3e-9, 4e-9)),
    "1": of(StageResult.CHANNELS, flooded(1), 110 * MB),
    "2": of(StageResult.CHANNELS, flooded(2), 112 * MB),
    "4": of(StageResult.CHANNELS, flooded(4), 112 * MB),
    "ceiling": of(StageResult.NETWORK, CEILING, 4000 * MB),
    "disk": of(StageResult.SERVER_DISK, LARGE_FILES, 700 * MB),
    "disk tiny": of(StageResult.SERVER_DISK, TINY_FILES, 20_000),
    "together tiny": of(StageResult.CHANNELS, carried(TINY_FILES), 12_000),
    "api": of(StageResult.API, RECORDS, 2_000),
}


def findings(changes=(), *, cipher=AES, one_machine=False, cpus=4, others=0, **more):
    rows = {name: one for name, one in (OFFICE | dict(changes)).items() if one}
    return SpeedTestResult(
        measured=tuple(rows.values()),
        here=LocalMachine(cpus, aes=True, others=others),
        there=LocalMachine(cpus, aes=True, others=others),
        one_machine=one_machine,
        cipher=cipher,
        **{"rung": "shell"} | more,
    )


FAST_NET = {str(n): of(StageResult.CHANNELS, flooded(n), 2000 * MB) for n in (1, 2, 4)}
SLOW_CPU = {
    "hash": of(StageResult.HASH, MD5, 100 * MB),
    "hash all": of(StageResult.HASH, MD5_ALL, 200 * MB),
}


@pytest.mark.parametrize(
    ("changes", "limit", "behind"),
    [
        ({}, StageResult.NETWORK, StageResult.SERVER_DISK),
        (FAST_NET, StageResult.SERVER_DISK, StageResult.SOURCE),
        (FAST_NET | {"disk": None}, StageResult.SOURCE, StageResult.HASH),
        (
            {"source": of(StageResult.SOURCE, LARGE_FILES, 80 * MB)},
            StageResult.SOURCE,
            StageResult.NETWORK,
        ),
        (FAST_NET | SLOW_CPU, StageResult.HASH, StageResult.SERVER_DISK),
        (
            FAST_NET | {"aes": of(StageResult.CIPHER, AES, 60 * MB, CpuCost(16e-9, 2e-9))},
            StageResult.CIPHER,
            StageResult.SERVER_DISK,
        ),
        (
            FAST_NET | {"aes": of(StageResult.CIPHER, AES, 60 * MB, CpuCost(1e-9, 16e-9))},
            StageResult.SERVER_CPU,
            StageResult.SERVER_DISK,
        ),
        (
            {"ceiling": of(StageResult.NETWORK, CEILING, 30 * MB)},
            StageResult.CHANNELS,
            StageResult.SERVER_DISK,
        ),
        (
            {"disk": of(StageResult.SERVER_DISK, LARGE_FILES, 50 * MB)},
            StageResult.SERVER_DISK,
            StageResult.NETWORK,
        ),
    ],
)
def test_the_slowest_stage_is_the_limit_for_large_files(changes, limit, behind):
    large = judge(findings(changes), Transfer()).predictions[0]

    assert (large.limit, large.behind) == (limit, behind)


@pytest.mark.parametrize(
    ("changes", "limit", "files"),
    [
        ({}, StageResult.API, 2_000),
        ({"api": of(StageResult.API, RECORDS, 50_000)}, StageResult.CHANNELS, 12_000),
        (
            {"api": None, "disk tiny": of(StageResult.SERVER_DISK, TINY_FILES, 13_000)},
            StageResult.SERVER_DISK,
            13_000,
        ),
        ({"source tiny": of(StageResult.SOURCE, TINY_FILES, 150)}, StageResult.SOURCE, 150),
    ],
)
def test_the_slowest_stage_is_the_limit_for_tiny_files(changes, limit, files):
    tiny = judge(findings(changes), Transfer()).predictions[2]

    assert tiny.limit is limit
    assert tiny.files == pytest.approx(files, rel=0.03)


def test_sides_that_share_their_cores_need_them_for_all_three():
    shared = findings(FAST_NET | {"disk": None}, one_machine=True, cpus=2)

    large = judge(shared, Transfer()).predictions[0]

    assert large.limit is StageResult.SERVER_CPU
    assert "that both sides share, mainly receiving (" in judge(shared, Transfer()).sentence
    assert large.rate == pytest.approx(2 / (1 / (600 * MB) + 1.3e-9 + 2.4e-9), rel=0.01)


def test_sides_that_have_cores_of_their_own_on_one_computer_need_only_these():
    apart = findings(
        FAST_NET | {"disk": None, "hash all": of(StageResult.HASH, MD5_ALL, 600 * MB)},
        one_machine=True,
        cpus=1,
        others=1,
    )

    large = judge(apart, Transfer()).predictions[0]

    assert large.limit is StageResult.HASH
    assert large.rate == pytest.approx(1 / (1 / (600 * MB) + 1.3e-9), rel=0.01)


def test_a_checksum_costs_what_its_processor_took_whatever_others_did():
    slowed = {
        "hash": of(StageResult.HASH, MD5, 300 * MB, CpuCost(1 / (600 * MB))),
        "hash all": of(StageResult.HASH, MD5_ALL, 1200 * MB),
        "disk": None,
        "source": None,
    }
    large = judge(findings(FAST_NET | slowed), Transfer()).predictions[0]

    assert large.limit is StageResult.HASH
    assert large.rate == pytest.approx(2 / (1 / (600 * MB) + 1.3e-9), rel=0.01)


def test_what_processors_did_together_is_what_they_need_and_a_change_is_reckoned_from_there():
    costs = {
        "aes": of(StageResult.CIPHER, AES, 60 * MB, CpuCost(16e-9, 2e-9)),
        "chacha": of(StageResult.CIPHER, CHACHA, 120 * MB, CpuCost(8e-9, 1e-9)),
        "together": of(StageResult.CHANNELS, carried(LARGE_FILES), 100 * MB),
    }
    found = findings(FAST_NET | costs, channels=4)

    large = judge(found, Transfer()).predictions[0]

    assert large.limit is StageResult.CIPHER
    assert large.rate == pytest.approx(100 * MB, rel=1e-3)
    gain = advice(found, Transfer(), "cipher").gain
    assert gain == pytest.approx((16 + 1 / 0.6) / (8 + 1 / 0.6), rel=0.01)


def test_a_disk_that_took_short_looks_faster_has_the_pace_of_what_was_carried():
    slow = {
        "disk": of(StageResult.SERVER_DISK, LARGE_FILES, 50 * MB),
        "together": of(StageResult.CHANNELS, carried(LARGE_FILES), 40 * MB),
    }

    large = judge(findings(slow), Transfer()).predictions[0]

    assert (large.limit, large.rate) == (StageResult.SERVER_DISK, pytest.approx(40 * MB, rel=1e-3))


def test_the_combined_transfer_shows_the_capacity_of_the_processors_even_if_floods_were_slower():
    quick = {"together": of(StageResult.CHANNELS, carried(LARGE_FILES), 900 * MB)}

    found = findings(FAST_NET | SLOW_CPU | quick | {"disk": None}, channels=4)

    assert judge(found, Transfer()).predictions[0].rate == pytest.approx(900 * MB, rel=1e-3)


def test_data_cached_in_memory_does_not_make_a_disk_look_faster():
    quick = {
        "disk": of(StageResult.SERVER_DISK, LARGE_FILES, 50 * MB),
        "together": of(StageResult.CHANNELS, carried(LARGE_FILES), 400 * MB),
    }

    large = judge(findings(quick), Transfer()).predictions[0]

    assert (large.limit, large.rate) == (StageResult.SERVER_DISK, pytest.approx(50 * MB))


def test_fast_and_slow_moments_count_by_the_time_that_they_take():
    moments = Measurement(
        StageResult.CHANNELS, carried(LARGE_FILES), Unit.BYTES, (60 * MB, 20 * MB)
    )

    found = findings(FAST_NET | SLOW_CPU | {"together": moments, "disk": None}, channels=4)

    assert judge(found, Transfer()).predictions[0].rate == pytest.approx(30 * MB)


def test_what_was_carried_together_says_nothing_of_processors_that_were_not_the_limit():
    slow = {"together": of(StageResult.CHANNELS, carried(LARGE_FILES), 20 * MB)}

    assert judge(findings(slow), Transfer()).predictions[0].rate == pytest.approx(112 * MB)


def test_a_host_whose_sshd_waits_for_a_processor_is_not_a_slow_network():
    waiting = of(StageResult.CHANNELS, flooded(4), 110 * MB, CpuCost(1.3e-9, 2.4e-9, 0.0, 30e-9))

    (large, *_) = judge(findings({"4": waiting}, sessions=4), Transfer(channels=4)).predictions

    assert large.limit is StageResult.SERVER_CPU


def test_a_cipher_that_costs_less_helps_where_others_take_the_processors():
    waiting = CpuCost(16e-9, 2.4e-9, 20e-9)
    costs = {
        "4": of(StageResult.CHANNELS, flooded(4), 110 * MB, waiting),
        "aes": of(StageResult.CIPHER, AES, 27 * MB, waiting),
        "chacha": of(StageResult.CIPHER, CHACHA, 50 * MB, CpuCost(8e-9, 1e-9, 10e-9)),
    }
    found = findings(costs, sessions=4)

    assert judge(found, Transfer(channels=4)).predictions[0].limit is StageResult.CIPHER
    assert advice(found, Transfer(channels=4), "cipher").gain == pytest.approx(2, rel=0.1)


def test_a_stage_that_takes_next_to_no_time_does_not_count():
    large, _, tiny = judge(findings(), Transfer()).predictions

    assert StageResult.API not in large.rates
    assert StageResult.API in tiny.rates


def test_one_channel_alone_keeps_one_core_busy():
    changes = FAST_NET | {"disk": None, "source": None}

    one, four = (
        judge(findings(changes), Transfer(channels=number)).predictions[0] for number in (1, 4)
    )

    assert four.rate == pytest.approx(4 * one.rate, rel=0.01)


def test_a_flood_that_only_the_processors_held_back_says_nothing_of_the_network():
    flooded_by_one = {"1": of(StageResult.CHANNELS, flooded(1), 400 * MB), "2": None, "4": None}

    large = judge(findings(flooded_by_one), Transfer(channels=1)).predictions[0]

    assert StageResult.NETWORK not in (large.limit, large.behind)


def test_far_away_a_large_file_goes_over_two_streams():
    far = {
        "round trip": of(StageResult.NETWORK, ROUND_TRIP, 0.06),
        "ceiling": of(StageResult.NETWORK, CEILING, 33 * MB),
        "1": of(StageResult.CHANNELS, flooded(1), 32 * MB),
        "2": of(StageResult.CHANNELS, flooded(2), 64 * MB),
    }
    large, mixed, _ = judge(findings(far), Transfer(channels=1)).predictions

    assert (large.limit, mixed.limit) == (StageResult.CHANNELS, StageResult.CHANNELS)
    assert large.rate == pytest.approx(64 * MB)
    assert mixed.rate == pytest.approx(32 * MB)


def test_more_channels_than_a_run_begins_with_count_where_they_carry_clearly_more():
    near = {"2": of(StageResult.CHANNELS, flooded(2), 109 * MB)}
    far = {
        "2": of(StageResult.CHANNELS, flooded(2), 60 * MB),
        "4": of(StageResult.CHANNELS, flooded(4), 80 * MB),
    }

    assert choose_mode(findings(near, cpus=2), Transfer()).channels == 2
    assert choose_mode(findings(near, cpus=4), Transfer()).channels == 4
    assert choose_mode(findings(far, cpus=2), Transfer()).channels == 4
    assert choose_mode(SpeedTestResult(), Transfer()).channels == 1


def advice(found, settings, code):
    return next((one for one in judge(found, settings).advice if one.code == code), None)


def test_the_faster_cipher_is_advised_where_encryption_is_the_limit():
    costs = {
        "aes": of(StageResult.CIPHER, AES, 60 * MB, CpuCost(16e-9, 2e-9)),
        "chacha": of(StageResult.CIPHER, CHACHA, 120 * MB, CpuCost(8e-9, 1e-9)),
    }
    found = advice(findings(FAST_NET | costs), Transfer(ciphers=(AES, CHACHA)), "cipher")

    assert found.changes == {"transfer.ciphers": [CHACHA, AES]}
    assert found.gain == pytest.approx((16 + 1 / 0.6) / (8 + 1 / 0.6), rel=0.01)


def test_the_cipher_that_takes_the_least_of_the_processors_is_advised_not_the_luckiest():
    costs = {
        "chacha": of(StageResult.CIPHER, CHACHA, 60 * MB, CpuCost(16e-9, 2e-9)),
        "aes": of(StageResult.CIPHER, AES, 100 * MB, CpuCost(2e-9, 2e-9)),
        "ctr": of(StageResult.CIPHER, "aes128-ctr", 120 * MB, CpuCost(8e-9, 2e-9)),
    }
    settings = Transfer(ciphers=(CHACHA, "aes256-ctr", AES, "aes192-ctr", "aes128-ctr"))
    found = advice(findings(FAST_NET | costs, cipher=CHACHA), settings, "cipher")

    order = [AES, "aes128-ctr", CHACHA, "aes256-ctr", "aes192-ctr"]
    assert found.changes == {"transfer.ciphers": order}, "what was not measured must stay"


def test_of_ciphers_that_take_nearly_the_same_the_one_that_is_fastest_alone_is_advised():
    aes256 = "aes256-gcm@openssh.com"
    costs = {
        "chacha": of(StageResult.CIPHER, CHACHA, 60 * MB, CpuCost(16e-9, 2e-9)),
        "aes": of(StageResult.CIPHER, AES, 100 * MB, CpuCost(2.2e-9, 2e-9)),
        "aes256": of(StageResult.CIPHER, aes256, 110 * MB, CpuCost(2e-9, 1.9e-9)),
        "aes here": of(StageResult.CIPHER, local(AES), 12_000 * MB),
        "aes256 here": of(StageResult.CIPHER, local(aes256), 11_000 * MB),
    }
    found = advice(findings(FAST_NET | costs, cipher=CHACHA), Transfer(), "cipher")

    assert found.changes["transfer.ciphers"][:2] == [AES, aes256]


def test_a_cipher_is_left_alone_where_it_gains_nothing():
    assert (
        advice(findings({"chacha": of(StageResult.CIPHER, CHACHA, 115 * MB)}), Transfer(), "cipher")
        is None
    )


def test_more_channels_are_advised_where_their_number_is_set_too_low():
    changes = {
        "1": of(StageResult.CHANNELS, flooded(1), 20 * MB),
        "ceiling": of(StageResult.NETWORK, CEILING, 21 * MB),
    }
    found = advice(findings(changes), Transfer(channels=1), "channels")

    assert found.changes == {"transfer.channels": 0}
    assert found.gain == pytest.approx(112 / 20, rel=0.01)
    assert advice(findings(changes), Transfer(), "channels") is None


def in_folder(changes=(), **more):
    """Return the findings for a mounted folder that is slower than the disk and the processors."""
    rows = {
        **{name: OFFICE[name] for name in ("source", "source tiny", "hash", "hash all")},
        "folder": of(StageResult.FOLDER, LARGE_FILES, 100 * MB),
        "2": of(StageResult.CHANNELS, flooded(2), 180 * MB),
        "4": of(StageResult.CHANNELS, flooded(4), 300 * MB),
        "folder tiny": of(StageResult.FOLDER, TINY_FILES, 500),
    } | dict(changes)
    measured = tuple(one for one in rows.values() if one)
    here = LocalMachine(4, aes=True)
    return SpeedTestResult(**{"measured": measured, "here": here, "rung": "folder"} | more)


@pytest.mark.parametrize(
    ("changes", "limit", "rate"),
    [
        ({}, StageResult.FOLDER, 300 * MB),
        ({"source": of(StageResult.SOURCE, LARGE_FILES, 80 * MB)}, StageResult.SOURCE, 80 * MB),
        (SLOW_CPU, StageResult.HASH, 200 * MB),
    ],
)
def test_with_a_folder_the_limit_is_the_disk_the_checksums_or_the_folder(changes, limit, rate):
    verdict = judge(in_folder(changes), Transfer())
    large, _, tiny = verdict.predictions

    assert (large.limit, tiny.limit) == (limit, StageResult.FOLDER)
    assert (large.rate, tiny.files) == (pytest.approx(rate, rel=0.01), pytest.approx(500, rel=0.01))
    assert {one.code for one in verdict.advice} == {"relief"}
    assert set(large.rates) <= {StageResult.SOURCE, StageResult.HASH, StageResult.FOLDER}


def test_a_folder_is_as_slow_as_whole_files_that_were_sent_to_it():
    slower = {"together": of(StageResult.CHANNELS, carried(LARGE_FILES), 150 * MB)}

    large = judge(in_folder(slower, channels=4), Transfer()).predictions[0]

    assert (large.limit, large.rate) == (StageResult.FOLDER, pytest.approx(150 * MB, rel=0.01))


def test_more_channels_are_advised_where_a_folder_takes_more_over_them():
    found = judge(in_folder(), Transfer(channels=1))

    (channels,) = [one for one in found.advice if one.changes]
    assert (channels.code, channels.changes) == ("channels", {"transfer.channels": 0})
    assert channels.gain == pytest.approx(3, rel=0.01)


def test_tiny_files_that_a_channel_sends_in_turn_are_no_matter_of_distance_in_a_folder():
    slower = {"together tiny": of(StageResult.CHANNELS, carried(TINY_FILES), 200)}

    verdict = judge(in_folder(slower), Transfer())

    assert verdict.sentence.endswith("for tiny ones the number of channels (200 files/s).")
    assert not any("closer" in one.text for one in verdict.advice)


def test_a_folder_that_was_not_measured_is_no_network():
    nothing = dict.fromkeys(("folder", "2", "4", "folder tiny"))

    verdict = judge(in_folder(nothing), Transfer(channels=1))

    assert verdict.sentence.startswith("The mounted folder was not measured; without it the limit")
    assert verdict.advice == ()


def test_larger_batches_are_advised_where_the_settings_make_them_small():
    tiny = carried(TINY_FILES)
    measured = {
        "together tiny": of(StageResult.CHANNELS, tiny, 300),
        "usual": of(StageResult.CHANNELS, in_usual_batches(tiny), 9_000),
    }
    settings = Transfer(batch_files=5, batch_below=Transfer().batch_below * 2)

    verdict = judge(findings(FAST_NET | measured | {"api": None}), settings)
    one, *others = (each for each in verdict.advice if each.workload is Workload.TINY)

    assert "the size of batches (300 files/s)" in verdict.sentence
    assert (one.code, others) == ("batches", [])
    assert one.changes == {"transfer.batch_files": Transfer().batch_files}
    assert (one.workload, one.gain) == (Workload.TINY, pytest.approx(30, rel=0.01))


def test_batches_that_are_as_good_as_larger_ones_are_not_blamed():
    tiny = carried(TINY_FILES)
    measured = {
        "together tiny": of(StageResult.CHANNELS, tiny, 300),
        "usual": of(StageResult.CHANNELS, in_usual_batches(tiny), 302),
    }

    verdict = judge(findings(FAST_NET | measured | {"api": None}), Transfer(batch_files=999))

    assert "batches" not in verdict.sentence
    assert "batches" not in {one.code for one in verdict.advice}


def test_compression_is_advised_where_the_network_is_the_limit_and_the_data_shrink():
    rows = {
        "ratio": of(StageResult.SOURCE, COMPRESSED, 0.25),
        "packing": of(StageResult.SOURCE, COMPRESSION, 400 * MB),
    }
    never = Transfer(compression="never")

    found = advice(findings(rows, zstd=True), never, "compression")

    assert found.changes == {"transfer.compression": "auto"}
    assert found.gain == pytest.approx(4, rel=0.05)
    assert advice(findings(rows, zstd=False), never, "compression") is None
    assert advice(findings(rows, zstd=True), Transfer(), "compression") is None
    solid = rows | {"ratio": of(StageResult.SOURCE, COMPRESSED, 0.99)}
    assert advice(findings(solid, zstd=True), never, "compression") is None


def test_archives_are_advised_where_records_are_the_limit():
    found = judge(findings(), Transfer()).advice

    assert [one.workload for one in found if one.code == "archives"] == [Workload.TINY]
    kept = judge(findings(), Transfer(), archives=True)
    assert not [one for one in kept.advice if one.code == "archives"]
    assert kept.predictions[2].limit is StageResult.CHANNELS


def test_what_only_others_can_change_is_said_with_what_comes_next():
    relief = [one for one in judge(findings(), Transfer()).advice if one.code == "relief"]

    assert relief[0].changes == {}
    assert "network" in relief[0].text
    assert "The disk of the server is the next limit." in relief[0].text


def test_a_network_that_is_full_is_said_to_be():
    reached = {"together": of(StageResult.CHANNELS, carried(LARGE_FILES), 111 * MB)}

    sentence = judge(findings(reached), Transfer()).sentence

    assert "the network (it is full: 111.0 MB/s of 112.0 MB/s)" in sentence
    assert "for tiny ones the server's API (2,000 files/s)" in sentence


def test_the_way_to_the_server_is_missed_before_a_limit_is_named():
    here_only = judge(findings(dict.fromkeys(("1", "2", "4"), None)), Transfer())

    assert here_only.sentence.startswith("The network was not measured; without it")
    assert here_only.advice == ()


BY_SFTP = dict.fromkeys(("api", "ceiling", "disk", "disk tiny", "together tiny"))


def test_without_a_shell_the_network_and_the_disk_of_the_server_are_not_distinguished():
    verdict = judge(findings(BY_SFTP, rung="sftp"), Transfer())

    assert verdict.sentence == (
        "The limit is for large files the network or the disk of the server (112.0 MB/s)."
    )
    assert verdict.predictions[0].limit is StageResult.NETWORK
    assert [one for one in verdict.advice if one.code == "relief"] == []


def test_a_pace_of_tiny_files_is_not_invented():
    tiny = judge(findings(BY_SFTP, rung="sftp"), Transfer()).predictions[2]
    with_records = judge(findings(BY_SFTP | {"api": OFFICE["api"]}, rung="sftp"), Transfer())

    assert tiny.limit is None
    assert with_records.predictions[2].limit is StageResult.API


def test_without_measurements_there_is_no_verdict():
    nothing = judge(SpeedTestResult(), Transfer())

    assert nothing.sentence.startswith("Nothing could be measured")
    assert nothing.advice == ()


def test_all_of_it_becomes_json():
    found = findings()
    record = {"findings": found.as_record(), "verdict": judge(found, Transfer()).as_record()}

    again = json.loads(json.dumps(record))

    assert again["verdict"]["workloads"][0]["limit"] == "network"
    assert again["findings"]["stages"][0]["median"] == 900 * MB


def test_where_processors_hold_back_a_flood_more_channels_are_faster_by_chance_only():
    short = CpuCost(1.2e-9, 1e-9, 0.0, 9e-9)
    floods = {
        "2": of(StageResult.CHANNELS, flooded(2), 168 * MB, short),
        "4": of(StageResult.CHANNELS, flooded(4), 172 * MB, short),
        "8": of(StageResult.CHANNELS, flooded(8), 198 * MB, short),
    }
    free = {"2": of(StageResult.CHANNELS, flooded(2), 168 * MB), "8": floods["8"]}

    assert choose_mode(findings(floods, sessions=2, cpus=2), Transfer()).channels == 2
    assert choose_mode(findings(free, sessions=2, cpus=2), Transfer()).channels == 8
