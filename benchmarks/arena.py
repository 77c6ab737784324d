"""The environment of a case: one private sshd, and folders for source and target."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.corpus import Corpus
from benchmarks.measure import ContestError
from benchmarks.reserve import Reserve
from benchmarks.wire import Wire

CIPHER = "aes128-gcm@openssh.com"
_MOST = 4 * 2**30  # bytes of memory to reserve for a contestant
_KEPT: Final = 64 * 2**20  # bytes of data that are moved aside and not deleted
_PIECE: Final = 2**20


@dataclass(frozen=True, kw_only=True)
class Link:
    """The address of the private sshd, and the ssh options of all peers.

    `host_key` is the sshd's public key or its fingerprint.
    """

    host: str
    port: int
    username: str
    key_file: Path
    known_hosts: Path
    host_key: str

    @property
    def destination(self) -> str:
        return f"{self.username}@{self.host}"

    def options(self, cipher: str | None = CIPHER) -> list[str]:
        """Return options for ssh and scp; `cipher` None is their default."""
        pairs = {
            "Port": str(self.port),
            "IdentityFile": str(self.key_file),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "BatchMode": "yes",
            "Compression": "no",
            "ControlPath": "none",
            "LogLevel": "ERROR",
        }
        if cipher:
            pairs["Ciphers"] = cipher
        return ["-F", "/dev/null", *(f"-o{key}={value}" for key, value in pairs.items())]

    def ssh(self) -> list[str]:
        """Return the ssh command without its destination, as rsync's `-e` expects it."""
        return ["ssh", *self.options()]


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The environment of a case's contestants.

    `servers` are the process ids of the sshd, `carriers` that of the network emulation in front of
    it, if any. `stack` ends what contestants start for a whole case. `reserve` is memory for the
    files that they write. `mounted` is the file system for the target, if it has its own.
    """

    link: Link
    servers: tuple[int, ...]
    corpus: Corpus
    directory: Path
    stack: ExitStack
    reserve: Reserve
    wire: Wire | None = None
    carriers: tuple[int, ...] = ()
    mounted: Path | None = None

    @property
    def target(self) -> Path:
        return (self.mounted or self.directory) / "target"

    @property
    def whole(self) -> Path:
        """The folder for server and ledger of a whole run."""
        return self.directory / "whole"

    def clear(self) -> None:
        """Remove everything of the previous contestant, and create an empty target.

        Small data is only moved aside: for some minutes after a file was deleted, ext4 does not use
        its number again, and passes each such number for each new file (`recently_deleted` in
        fs/ext4/ialloc.c of Linux 6.18).
        """
        for directory in (self.target, self.whole):
            if self.corpus.bytes <= _KEPT and directory.exists():
                directory.rename(tempfile.mkdtemp(prefix="before-", dir=directory.parent))
            shutil.rmtree(directory, ignore_errors=True)
        self.target.mkdir()
        self.reserve.renew(min(self.corpus.bytes, _MOST))

    def check_target(self) -> None:
        """Raise `ContestError` if target and source differ in the number of files or bytes."""
        files, size, _ = count_tree(self.target)
        wanted = (len(self.corpus.files), self.corpus.bytes)
        if (files, size) != wanted:
            raise ContestError(
                f"the target has {files} files of {size} bytes instead of "
                f"{wanted[0]} of {wanted[1]}"
            )

    def compare_target(self) -> None:
        """Raise `ContestError` unless the target has the bytes of every file.

        Some peers put all files into one folder, or the folder of the source into the target.
        """
        root = self.corpus.root
        for name in self.corpus.files:
            source = root / name
            places = (self.target / name, self.target / source.name, self.target / root.name / name)
            found = next((path for path in places if path.exists()), None)
            if found is None or not have_same_bytes(source, found):
                raise ContestError(f"{name} is missing in the target, or has other bytes")

    def shares(self, count: int) -> list[list[str]]:
        """Return the paths of all files, distributed over `count` streams."""
        return [list(self.corpus.files[number::count]) for number in range(count)]

    def write_list(self, name: str, paths: Sequence[str]) -> Path:
        """Write paths to a file, one per line."""
        path = self.directory / name
        path.write_text("".join(f"{one}\n" for one in paths))
        return path

    def pipe_tar(self, tar: Sequence[str], *options: str) -> list[str]:
        """Return a command that unpacks the output of a tar command in the target."""
        unpack = shlex.join(["tar", "-C", str(self.target), *options, "-xf", "-"])
        ssh = shlex.join([*self.link.ssh(), self.link.destination, unpack])
        return ["sh", "-c", f"{shlex.join(tar)} | {ssh}"]


def have_same_bytes(first: Path, second: Path) -> bool:
    """Return whether two files have the same content."""
    with first.open("rb") as one, second.open("rb") as other:
        pieces = iter(lambda: (one.read(_PIECE), other.read(_PIECE)), (b"", b""))
        return all(piece == copied for piece, copied in pieces)


def count_tree(root: Path) -> tuple[int, int, int]:
    """Return the number of files below a folder, their sizes and their disk usage in bytes."""
    files = size = occupied = 0
    for folder, _, names in os.walk(root):
        for name in names:
            found = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - 100,000 files
            files += 1
            size += found.st_size
            occupied += found.st_blocks * 512
    return files, size, occupied
