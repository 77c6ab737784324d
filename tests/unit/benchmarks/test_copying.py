"""The contestants of copy: each is judged by all bytes that are there. Nothing is timed here."""

import os
import shutil
from contextlib import ExitStack

import pytest

from benchmarks import peers
from benchmarks.arena import Arena
from benchmarks.contest import Entrant, Peer
from benchmarks.copying import CPU, Copying, compared
from benchmarks.corpus import Scale, make_tiny, make_tiny_folders
from benchmarks.ground import open_sshd
from benchmarks.known import KnownRsync
from benchmarks.measure import ContestError
from benchmarks.reserve import Reserve
from tests.sshd_fixture import needs_sshd

SMALL = Scale(tiny_count=400, tiny_size=10)


@pytest.fixture
def arena(tmp_path):
    with ExitStack() as stack:
        ground = stack.enter_context(open_sshd(tmp_path / "sshd"))
        yield Arena(
            **ground._asdict(),
            corpus=make_tiny_folders(tmp_path / "source", SMALL),
            directory=tmp_path,
            stack=stack,
            reserve=stack.enter_context(Reserve(tmp_path)),
        )


@pytest.fixture
def alone(tmp_path):
    """An arena without a host, with one folder of files."""
    return Arena(
        link=None,
        servers=(),
        corpus=make_tiny(tmp_path / "source", SMALL._replace(tiny_count=3)),
        directory=tmp_path,
        stack=ExitStack(),
        reserve=Reserve(tmp_path),
    )


def copying(script):
    """Return a peer that copies with a script of the shell, whose $1 and $2 are the folders."""
    entrant = Entrant("script", "peer")
    return Peer(
        entrant,
        lambda arena: [["sh", "-ec", script, "sh", str(arena.corpus.root), str(arena.target)]],
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "script",
    [
        pytest.param('cp -r "$1/." "$2"', id="the same tree"),
        pytest.param('cp "$1"/*/* "$2"', id="all files in one folder"),
        pytest.param('cp -r "$1" "$2"', id="the source's folder"),
    ],
)
def test_a_peer_with_all_bytes_has_its_cpu_for_each_file(alone, script):
    [sample] = compared(copying(script)).run(alone)

    assert sample.facts[CPU] == sample.client / 3 * 1e6


@pytest.mark.process
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            'cp -r "$1/." "$2"; cd "$2"/*; cp image-000000.raw image-000001.raw', id="other bytes"
        ),
        pytest.param('cp -r "$1/." "$2"; cd "$2"/*; mv image-000001.raw image', id="another name"),
    ],
)
def test_a_peer_with_as_many_other_bytes_has_failed(alone, script):
    with pytest.raises(ContestError, match=r"image-000001.raw is missing .* or has other bytes"):
        compared(copying(script)).run(alone)


@needs_sshd
@pytest.mark.parametrize("agent", [False, True], ids=["key file", "agent"])
def test_copy_logs_in_with_its_key_and_puts_all_files_there(arena, agent):
    if agent and shutil.which("ssh-agent") is None:
        pytest.skip("needs ssh-agent")
    contestant = compared(Copying(agent))

    contestant.prepare(arena)

    [sample] = contestant.run(arena)

    assert sample.facts[CPU] > 0
    assert sorted(path.name for path in arena.target.iterdir()) == list(arena.corpus.folders)


@needs_sshd
def test_copy_of_known_files_sends_nothing(arena):
    contestant = Copying(known=True)
    contestant.prepare(arena)

    contestant.run(arena)

    (arena.corpus.root / arena.corpus.files[0]).write_bytes(b"longer than before")
    with pytest.raises(ContestError, match="1 files were sent instead of 0"):
        contestant.run(arena)


@needs_sshd
@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")
def test_rsync_that_is_proven_finds_files_that_differ(arena):
    known = KnownRsync(proven=True)
    known.prepare(arena)
    copy = arena.directory / "copy" / arena.corpus.files[0]
    time = copy.stat().st_mtime_ns

    compared(peers.rsync_twice()).run(arena)
    known.run(arena)
    copy.write_bytes(bytes(SMALL.tiny_size))
    os.utime(copy, ns=(time, time))

    with pytest.raises(ContestError, match="it found 1 changes instead of 0"):
        known.run(arena)
