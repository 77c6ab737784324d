"""What the speed test measures on this computer alone."""

import os
import sys

import pytest

from mydata_like.speedtest.local_machine import (
    DirectReader,
    find_aes,
    find_sample,
    measure_compression,
    read_pieces,
)


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


def test_pieces_of_the_users_files_show_how_far_they_shrink(tmp_path):
    (tmp_path / "shrinks").write_bytes(b"abc" * 10_000)

    (measured,) = measure_compression(read_pieces(find_sample(tmp_path, 3)))

    assert measured.value < 0.1
    assert list(measure_compression(())) == []
