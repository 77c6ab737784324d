"""A user who copies to a host or a folder with the real command, and independent checks of it."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.ssh.keys import create_key
from tests.site import DEADLINE, NEW_GROUP, Ended, close_streams, finish, kill_group

OWN = b".mydata-like"
KINDS = ("host", "folder")


class Seen(NamedTuple):
    """A file, folder or link as it is on a disk; a folder's `content` are the names in it."""

    kind: str
    mode: int
    modified_ns: int
    content: str


class CopySite:
    """A user with sources below `data` and a destination `there`, on a host or as a folder.

    The host is the computer of the test. Both are below `folder`.
    """

    def __init__(self, folder: Path, kind: str, sshd: PrivateSshd) -> None:
        self.folder = folder
        self.kind = kind
        self.sshd = sshd
        self.data = folder / "data"
        self.there = folder / "there"
        self.home = folder / "home"
        self.state = folder / "own files"
        self.wrap: tuple[str, ...] = ()  # the words before the command, such as a sandbox
        self._started: list[subprocess.Popen[str]] = []
        self.data.mkdir(parents=True, exist_ok=True)
        self._configure()

    def _configure(self) -> None:
        ssh = self.home / ".ssh"
        ssh.mkdir(parents=True, mode=0o700)
        sshd = self.sshd
        sshd.authorize(create_key(ssh / "id_ed25519").public)
        lines = ("Host store", f"HostName {sshd.host}", f"Port {sshd.port}")
        (ssh / "config").write_text("\n ".join((*lines, f"User {sshd.username}")) + "\n")
        (ssh / "known_hosts").write_text(f"[{sshd.host}]:{sshd.port} {sshd.host_key.line()}\n")
        for path in ssh.iterdir():
            path.chmod(0o600)

    @property
    def target(self) -> str:
        return self.name_target(self.there)

    def name_target(self, folder: Path) -> str:
        """Return a folder as a destination on the command line."""
        return f"store:{folder}" if self.kind == "host" else str(folder)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "MYDATA_" not in name}
        kept.pop("SSH_AUTH_SOCK", None)
        home = {"HOME": str(self.home), "MYDATA_LIKE_HOME": str(self.state)}
        return kept | home | {"COLUMNS": "110"}

    def start(self, *words: Any, **options: Any) -> "subprocess.Popen[str]":
        """Start `copy` with these words in a process group of its own."""
        return self.start_command("copy", *words, **options)

    def start_command(self, *words: Any, **options: Any) -> "subprocess.Popen[str]":
        """Start a command of the program; `options` are those of `Popen`."""
        command = [*self.wrap, sys.executable, "-m", "mydata_like"]
        process = subprocess.Popen(
            [*command, *(os.fsdecode(word) for word in words)],
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "encoding": "utf-8",
                "errors": "surrogateescape",
                "start_new_session": True,
                "env": self.environment,
                "creationflags": NEW_GROUP,
                **options,
            },
        )
        self._started.append(process)
        return process

    def copy(self, *words: Any, patience: float = DEADLINE) -> Ended:
        """Copy sources to the destination; print events unless another output is chosen."""
        shown = {"--events", "--json", "--text"}.intersection(words)
        chosen = [word for word in words if word != "--text"]
        process = self.start(*chosen, self.target, *([] if shown else ["--events"]))
        return finish(process, patience)

    def call(self, command: str, *words: Any) -> Ended:
        """Run another command to its end."""
        return finish(self.start_command(command, *words), DEADLINE)

    def write_settings(self, **values: object) -> None:
        """Write settings that have this destination; keys are as in `filters__settle_seconds`."""
        given = {
            "destination__kind": self.kind,
            "destination__address": self.target,
            "data__directory": str(self.data),
            "filters__settle_seconds": 0,
        }
        text = "".join(
            f"{key.replace('__', '.')} = {json.dumps(value)}\n"
            for key, value in (given | values).items()
        )
        self.state.mkdir(exist_ok=True)
        (self.state / "settings.toml").write_text(text)

    def close(self) -> None:
        """Kill processes that a failed test has left running."""
        for process in self._started:
            if process.poll() is None:
                kill_group(process)
                close_streams(process)

    @property
    def ledgers(self) -> list[Path]:
        return sorted(self.state.rglob("ledger*"))

    @property
    def segments(self) -> list[Path]:
        return sorted((self.there / ".mydata-like" / "manifest").rglob("*.jsonl"))


def make_mix(folder: Path, files: int, chance: Random) -> Path:
    """Make files with the sizes of an archive, 100 in each folder: 28 % are below 1 KB, 47 % from
    1 to 10 KB, 24 % from 10 to 20 KB, and 1 % up to 1 MB.
    """
    classes = ((28, 1, 3), (47, 3, 4), (24, 4, 4.3), (1, 4.3, 6))  # percent, powers of ten
    powers = [power for percent, *power in classes for _ in range(percent)]
    for number in range(files):
        if number % 100 == 0:
            below = folder / f"run {number // 100:03}"
            below.mkdir(parents=True)
            chance.shuffle(powers)
        size = int(10 ** chance.uniform(*powers[number % 100]))
        (below / f"{number:05}.raw").write_bytes(chance.randbytes(size))
    return folder


@contextmanager
def open_copy_site(
    folder: Path, kind: str, sshd: PrivateSshd, make: type[CopySite] = CopySite
) -> Iterator[CopySite]:
    """Yield a site; at the end, the real md5sum checks the lists of all destinations in it."""
    site = make(folder, kind, sshd)
    try:
        yield site
    finally:
        site.close()
    destinations = [it.parents[1] for it in folder.rglob(".mydata-like/destination.json")]
    assert [wrong for there in destinations for wrong in check_with_md5sum(there)] == []


def look(top: Path | bytes) -> dict[bytes, Seen]:
    """Return all that is below a folder, by paths from there; its own entry is `b""`.

    Modification times of links are left out.
    """
    found: dict[bytes, Seen] = {}
    waiting = [b""]
    while waiting:
        path = waiting.pop()
        full = os.path.join(os.fsencode(top), path) if path else os.fsencode(top)
        status = os.lstat(full)
        mode, modified = stat.S_IMODE(status.st_mode), status.st_mtime_ns
        if stat.S_ISLNK(status.st_mode):
            found[path] = Seen("link", 0, 0, os.fsencode(os.readlink(full)).hex())
        elif stat.S_ISDIR(status.st_mode):
            names = sorted(os.listdir(full))
            found[path] = Seen("folder", mode, modified, str(names))
            waiting += [path + b"/" + name if path else name for name in names]
        else:
            found[path] = Seen("file", mode, modified, hash_file(full))
    return found


def hash_file(path: Path | bytes, algorithm: str = "md5") -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def find_lists(there: Path) -> list[Path]:
    """Return the files of the manifest that are for people."""
    manifest = there / ".mydata-like" / "manifest"
    return sorted([*manifest.rglob("*.md5"), *manifest.rglob("*.sha256")])


def read_checksums(there: Path) -> Counter[tuple[bytes, str]]:
    """Return path and checksum of every line of the manifest that is for people."""
    lines: Counter[tuple[bytes, str]] = Counter()
    for path in find_lists(there):
        for line in path.read_bytes().splitlines():
            checksum, _, name = line.removeprefix(b"\\").partition(b"  ")
            name = name.removeprefix(b"./")
            if line.startswith(b"\\"):
                # As in md5sum.c of coreutils 9.
                name = b"\\".join(
                    part.replace(b"\\n", b"\n").replace(b"\\r", b"\r")
                    for part in name.split(b"\\\\")
                )
            lines[name, checksum.decode()] += 1
    return lines


def check_with_md5sum(there: Path) -> list[str]:
    """Return the complaints of the real md5sum, or sha256sum, about the lists of a destination."""
    wrongs = []
    for path in find_lists(there):
        if not path.stat().st_size:
            continue  # md5sum does not accept an empty list
        ended = subprocess.run(
            [f"{path.suffix[1:]}sum", "--check", "--quiet", "--strict", path.relative_to(there)],
            cwd=there,
            capture_output=True,
            check=False,
        )
        if ended.returncode:
            wrongs.append(f"{path.name}: {(ended.stdout + ended.stderr).decode(errors='replace')}")
    return wrongs


def find_false_claims(there: Path) -> list[str]:
    """Return what the manifest says falsely, or more than once, as the bytes there tell."""
    wrongs = []
    for (name, checksum), number in read_checksums(there).items():
        path = os.path.join(os.fsencode(there), name)
        if number > 1:
            wrongs.append(f"{name!r} is listed {number} times")
        if not os.path.isfile(path) or os.path.islink(path):
            wrongs.append(f"{name!r} is listed and missing")
        elif hash_file(path, "md5" if len(checksum) == 32 else "sha256") != checksum:
            wrongs.append(f"{name!r} is listed with other bytes")
    return wrongs


def find_differences(
    source: Path, there: Path, place: bytes = b"", *, others: Sequence[bytes] = ()
) -> list[str]:
    """Compare a source with its copy, and that with the manifest; return what differs.

    `others` are paths below the place that may be there in addition.
    """
    ours, theirs = look(source), look(there / os.fsdecode(place))
    listed = Counter(name for name, _ in read_checksums(there))
    wrongs = find_false_claims(there)
    for path, seen in ours.items():
        copied = theirs.pop(path, None)
        if copied is None:
            wrongs.append(f"{path!r} is missing")
        elif seen.kind != copied.kind:
            wrongs.append(f"{path!r} is a {copied.kind}")
        elif seen.kind == "folder" and not (path or place):
            continue
        elif (seen.kind == "folder" and not others and seen != copied) or (
            seen.kind != "folder" and (seen.content, seen.mode) != (copied.content, copied.mode)
        ):
            wrongs.append(f"{path!r}: {seen} {copied}")
        elif seen.kind == "file" and seen.modified_ns // 10**9 != copied.modified_ns // 10**9:
            wrongs.append(f"{path!r}: time {seen.modified_ns} {copied.modified_ns}")
        if seen.kind == "file" and not listed[place + b"/" + path if place else path]:
            wrongs.append(f"{path!r} is not listed")
    extra = [path for path in theirs if path not in others and path.split(b"/")[0] != OWN]
    return wrongs + [f"{path!r} is there in addition" for path in extra]
