"""The parts of a speed test that need no server."""

import os
import sys

import pytest

from mydata_like.core.errors import RejectedError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.values import CIPHERS
from mydata_like.speedtest.end_to_end import EndToEndTest
from mydata_like.speedtest.flood_worker import FloodProgress, count_there
from mydata_like.speedtest.local_machine import DirectReader, find_aes, find_sample
from mydata_like.speedtest.prediction import TINY
from mydata_like.speedtest.results import FULL, QUICK, SpeedTestBudget
from mydata_like.speedtest.throughput_probe import slice_up
from mydata_like.state.state_files import SPEED_TESTS_KEPT, add_speed_test, read_speed_tests


def test_looks_are_taken_after_the_beginning_and_of_all_sessions_together():
    slow_start = [FloodProgress(0.0, 0), FloodProgress(1.0, 100), FloodProgress(4.0, 400)]
    steady = [FloodProgress(0.0, 0), FloodProgress(4.0, 400), FloodProgress(9.0, 900)]

    samples = slice_up([slow_start, steady], 3)

    assert samples == pytest.approx((200.0, 200.0, 200.0))


def test_the_beginning_lasts_until_windows_are_full():
    far = [FloodProgress(0.0, 0), FloodProgress(2.0, 20), FloodProgress(8.0, 620)]

    assert slice_up([far], 3, 2.0) == pytest.approx((100.0, 100.0, 100.0))
    assert min(slice_up([far], 3, 30.0)) > 0


def test_a_flood_that_stands_still_for_a_while_has_a_slow_look():
    samples = slice_up(
        [
            [
                FloodProgress(0.0, 0),
                FloodProgress(1.0, 400),
                FloodProgress(3.0, 400),
                FloodProgress(4.0, 800),
            ]
        ],
        3,
    )

    assert all(sample > 0 for sample in samples)
    assert max(samples) == pytest.approx(400)
    assert min(samples) < 100


@pytest.mark.parametrize(
    ("text", "aes"),
    [
        ("model name : x\nflags\t\t: fpu aes sse", True),
        ("Features : fp asimd aes pmull", True),
        ("flags : fpu sse", False),
        ("", None),
    ],
)
def test_processors_say_whether_they_encrypt(text, aes):
    assert find_aes(text) is aes


def test_the_time_of_the_hosts_sshd_is_read_from_its_line():
    first = b"1000000000 500000000 7\n\n3000000000 600000000 9\n\n"
    second = b"1100000000 500000000 7\n\n2000000000 550000000 8\n\n"

    assert count_there([first, second]) == pytest.approx((2.0, 0.1))
    assert count_there([b"\n\n\n"]) is None
    assert count_there([b"0 0 0\n\n0 0 0\n\n"]) is None
    assert count_there([b""]) is None


def test_a_file_is_read_whole_past_the_memory_of_the_system(tmp_path):
    content = os.urandom(300_001)
    path = tmp_path / "file"
    path.write_bytes(content)

    read = b""
    with DirectReader(path, 64 * 1024) as file:
        while piece := file.read():
            read += piece

    assert read == content


def test_a_sample_has_large_files_and_so_many_tiny_ones(tmp_path):
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "deep" / "large").write_bytes(bytes(8_000_000))
    (tmp_path / "deep" / "between").write_bytes(bytes(1_000_000))
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "large")
    for number in range(5):
        (tmp_path / "deep" / "deeper" / str(number)).write_bytes(b"tiny")

    sample = find_sample(tmp_path, 3)

    assert sample.large == (tmp_path / "deep" / "large",)
    assert len(sample.tiny) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="needs folders by their descriptors")
def test_a_file_that_cannot_be_looked_at_is_left_out_of_the_sample(tmp_path):
    """Its path is too long to be asked for, which stands for one that is gone in the meantime."""
    (tmp_path / "tiny").write_bytes(b"tiny")
    name, most = "n" * 200, os.pathconf(tmp_path, "PC_PATH_MAX") - 1
    folder, length = os.open(tmp_path, os.O_RDONLY), len(os.fsencode(tmp_path))
    while length + 1 + len(name) < most:
        os.mkdir(name, dir_fd=folder)
        deeper = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder, length = deeper, length + 1 + len(name)
    os.close(os.open(name, os.O_CREAT, dir_fd=folder))
    os.close(folder)

    assert find_sample(tmp_path, 3).tiny == (tmp_path / "tiny",)


def test_the_latest_tests_are_kept_and_a_broken_line_is_passed_over(tmp_path):
    file = tmp_path / "speed-tests.jsonl"
    add_speed_test(file, {"number": 0})
    file.write_text(file.read_text() + "{broken\n")

    for number in range(1, SPEED_TESTS_KEPT + 5):
        add_speed_test(file, {"number": number})

    kept = [record["number"] for record in read_speed_tests(file)]
    assert kept == list(range(5, SPEED_TESTS_KEPT + 5))


def test_as_many_tiny_files_are_sent_as_line_and_disk_take_in_a_look():
    fast, slow = 500e6, 3e6

    assert EndToEndTest("", 1, fast, 40_000).files(FULL) == FULL.files
    assert EndToEndTest("", 1, slow, 40_000).files(FULL) == slow * FULL.seconds / TINY
    assert EndToEndTest("", 1, fast, 120).files(FULL) == 60
    assert EndToEndTest("", 1, fast).files(FULL) == FULL.files


@pytest.mark.parametrize("effort", [FULL, QUICK])
def test_no_more_than_a_gigabyte_is_sent_whatever_is_tested_and_applied(effort):
    budget = SpeedTestBudget(effort, CancelFlag())
    floods = [1, *[2] * 4, *[1] * len(CIPHERS)]  # 1, 2, 4, 8 and another number of channels

    for sessions in floods:
        budget.take(effort.flood * sessions)
    for _ in ("before", "after"):
        budget.take((effort.samples + 1) * (effort.disk + effort.files * TINY))

    assert effort.most == 1_000_000_000
    with pytest.raises(RejectedError):
        budget.take(effort.most)


def test_bytes_absorbed_by_buffers_do_not_count_as_speed():
    swallowed = [FloodProgress(0.0, 0), FloodProgress(0.01, 500), FloodProgress(1.01, 1500)]

    assert slice_up([swallowed], 3) == pytest.approx((1000.0, 1000.0, 1000.0))
