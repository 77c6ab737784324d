"""The examples of docs/copy.md, typed as they are shown, with the program as it is installed.

They are smaller than there. `make copy-test` has the full sizes.
"""

import os
import re
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.copy_site import (
    KINDS,
    find_differences,
    hash_file,
    make_mix,
    open_copy_site,
    read_checksums,
)
from tests.openssh import open_ssh
from tests.site import close_streams, finish, kill_group, wait_for
from tests.sshd_fixture import needs_sshd

FULL = "FULL_SIZE" in os.environ
PATIENCE = 900
PAGE = Path(__file__).parents[2] / "docs/copy.md"
MIB = 2**20

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.timeout(PATIENCE),
    pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX"),
]


@pytest.fixture
def site(tmp_path):
    with (
        open_ssh(tmp_path / "sshd") as sshd,
        open_copy_site(tmp_path / "site", KINDS[0], sshd) as site,
    ):
        yield site


@pytest.fixture
def example(site, installed):
    """Return what types the commands of an example, and returns the last line of each output."""
    environment = site.environment | {"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}"}
    page = PAGE.read_text(encoding="utf-8")

    def type_it(title):
        (shown,) = re.findall(rf"^### {title}\n.*?^```sh\n(.*?)^```", page, re.M | re.S)
        assert len(shown.splitlines()) <= 5
        shown = shown.replace("/data/microscope", str(site.data))
        shown = shown.replace("ann@storage.example.org:/archive", site.target)
        last = []
        for line in shown.splitlines():
            ended = subprocess.run(
                ["sh", "-c", line],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                env=environment,
                check=False,
            )
            assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
            last.append(ended.stdout.splitlines()[-1])
        return last

    return type_it


def test_many_small_files(site, example):
    files = 40_000 if FULL else 2000
    source = make_mix(site.data / "2026-11", files, Random(1))

    preview, copied, verified = example("Many small files")

    assert preview.startswith(f"{files:,} files, ")
    assert copied == f"{files:,} files: {files:,} compared on the host now (md5sum)"
    assert f"{files // 20:,} of {files // 20:,} files are as listed" in verified
    assert find_differences(source, site.there, b"2026-11") == []


def test_one_large_file(site, example):
    film = site.data / "film.raw"
    with film.open("wb") as file:
        for _ in range(512 if FULL else 128):
            file.write(os.urandom(MIB))

    copied, verified = example("One large file")

    assert copied == "1 file: 1 compared on the host now (md5sum)"
    assert "1 of 1 file" in verified
    assert read_checksums(site.there) == {(b"film.raw", hash_file(film)): 1}


def test_a_disk_image_with_holes(site, example):
    image, size = site.data / "disk.img", (8192 if FULL else 1024) * MIB
    with image.open("wb") as file:
        for number in range(16):
            file.seek(number * (size // 16) + 12_345)
            file.write(os.urandom(4 * MIB))
        file.truncate(size)

    (copied,) = example("A disk image with holes")

    there = (site.there / "disk.img").stat()
    assert copied == "1 file: 1 compared on the host now (md5sum)"
    assert there.st_size == size
    assert there.st_blocks * 512 <= 66 * MIB
    assert read_checksums(site.there) == {(b"disk.img", hash_file(image)): 1}


def test_a_source_tree_four_times(site, example):
    files = 5000
    source = make_mix(site.data / "source", files, Random(2))
    paths = sorted(source.rglob("*.raw"))

    first = example("A source tree, again and again")
    second = example("A source tree, again and again")
    for path in paths[::100]:
        path.write_bytes(path.read_bytes()[::-1] + b"changed")
    third = example("A source tree, again and again")
    for number in range(3):
        (source / f"large {number}").write_bytes(os.urandom(32 * MIB))
    fourth = example("A source tree, again and again")

    now = "compared on the host now (md5sum)"
    before = "proven earlier and unchanged there"
    assert first == [f"5,000 files: 5,000 {now}"]
    assert second == [f"5,000 files: 5,000 {before}"]
    assert third == [f"5,000 files: 4,950 {before}, 50 {now}"]
    assert fourth == [f"5,003 files: 5,000 {before}, 3 {now}"]
    kept = [
        os.fsencode(it.relative_to(site.there / "source"))
        for it in (site.there / "source").rglob(".mydata-old-*")
    ]
    assert len(kept) == 50
    assert find_differences(source, site.there, b"source", others=kept) == []


def test_four_shards_of_which_one_is_killed(site):
    files = 40_000 if FULL else 2000
    source = make_mix(site.data / "2026-11", files, Random(3))

    def start(number, output="--json"):
        return site.start(source, site.target, output, "--shard", f"{number}/4")

    killed, *others = start(1, "--events"), start(2), start(3), start(4)
    wait_for(killed, "file_staged")
    kill_group(killed)
    close_streams(killed)
    ended = [finish(it, PATIENCE) for it in (start(1), *others)]
    whole = site.copy(source, "--json", patience=PATIENCE)

    assert [it.code for it in ended] == [0] * 4, ended
    assert (
        sum(it.sums["found"] for it in ended) == sum(it.sums["verified"] for it in ended) == files
    )
    assert (whole.code, whole.sums["sent"], whole.sums["verified"]) == (0, 0, files)
    assert find_differences(source, site.there, b"2026-11") == []
    assert read_checksums(site.there).total() == files
    assert len({path.parent for path in site.segments}) == 4  # each has its own
