"""The trial of `get`: kill it at random moments, tamper with its destination, and check all files.

`python -m tests.trials.get --rounds 30 [--files 200] [--seed N] [--flips 10] [--to S3 HTTP]`

In each round, files are sent to a host (over libssh, over paramiko, or over SFTP only), to a
folder, to a bucket or to a MyTardis server (over HTTP), and some are changed, truncated or removed
there. Some sources are so large, by holes, that processes receive them. The real `get` is killed
several times after a random number of files, with or without its processes, or only one of these
is, and then ends by itself. After each kill, every file that has a name must have the bytes that
were sent. At the end all files must be here but those that were tampered with, and no temporary
names must be left.

With `--flips`, so many packets between it and the destination have a bit changed instead of the
kills; those of S3 and HTTP are not encrypted here. Whatever it makes of that, no wrong bytes may
get a name, and a `get` without changes must complete the rest. A packet counts as accepted if wrong
bytes have a name.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil

from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.selftest.tampering import TamperingProxy
from tests.copy_site import CopySite, look
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, ObjectServer
from tests.site import Ended, close_streams, finish, kill_group, open_site
from tests.sshd_fixture import sftp_only, sshd_with

PATIENCE = 120.0  # seconds
KILLS = 3  # of a round
ENDINGS = (b".tif", b"\xff.raw", b" '.txt", b"\n", b"\\n", b"-\r", b"*", b".")
FOLDERS = (b"", b"run 1", b"run 1/deep/er", b"-rf", b"caf\xe9", b"new\nline")
PART = b".mydata-get-"
HOLES = 300_000_000  # bytes
WAYS = ("libssh", "paramiko", "SFTP", "folder", "S3", "HTTP")  # to the destination


@dataclass
class Report:
    """The results of rounds."""

    rounds: int = 0
    kills: int = 0
    inside: int = 0  # kills after some files were here, and before all were
    files: int = 0
    tampered: int = 0
    flips: int = 0
    accepted: int = 0  # of these, and of the files that were tampered with
    wrongs: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.rounds} rounds, {self.kills} kills ({self.inside} inside), {self.files} files "
            f"at the ends, {self.tampered} tampered, {self.flips} packets changed, "
            f"{self.accepted} accepted, {len(self.wrongs)} wrongs"
        )


class Destination(CopySite):
    """A host or a folder, and the user who sends `source` there."""

    def __init__(self, folder: Path, way: str, sshd: PrivateSshd) -> None:
        super().__init__(folder, "folder" if way == "folder" else "host", sshd)
        self.source = self.data / "src"
        # Only the settings choose the library.
        self._library = "paramiko" if way == "paramiko" else "auto"

    def send(self) -> Ended:
        """Send all that is in the source."""
        self.write_settings(transfer__ssh=self._library)
        return self.call("run", "--json")

    def change(self, path: bytes, change: Callable[[bytes], bytes | None]) -> None:
        """Replace the bytes that are stored for a file, or remove it."""
        there = os.path.join(os.fsencode(self.there / "src"), path)
        with open(there, "rb") as file:
            content = change(file.read())
        if content is None:
            os.unlink(there)
            return
        with open(there, "wb") as file:
            file.write(content)

    @contextmanager
    def tampering(self) -> Iterator[TamperingProxy]:
        """Yield the proxy through which commands go meanwhile."""
        ssh, port = self.home / ".ssh", str(self.sshd.port)
        before = {path: path.read_text() for path in (ssh / "config", ssh / "known_hosts")}
        with TamperingProxy(self.sshd.port) as proxy:
            for path, text in before.items():
                path.write_text(text.replace(port, str(proxy.port)))
            yield proxy
        for path, text in before.items():
            path.write_text(text)


class BucketDestination(Destination):
    """A bucket of a service in memory."""

    def __init__(self, folder: Path, sshd: PrivateSshd, stack: ExitStack) -> None:
        super().__init__(folder, "folder", sshd)
        self.kind = "s3"
        self._service = stack.enter_context(ObjectServer())
        self._port = self._service.port

    def name_target(self, folder: Path) -> str:
        return f"s3://{BUCKET}/{folder.name}"

    @property
    def environment(self) -> dict[str, str]:
        account = {"AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": SECRET}
        url = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}"}
        return super().environment | account | url | {"AWS_EC2_METADATA_DISABLED": "true"}

    def change(self, path: bytes, change: Callable[[bytes], bytes | None]) -> None:
        key = f"{self.there.name}/src/{path.decode()}"
        content = change(self._service.objects[key])
        if content is None:
            del self._service.objects[key]
        else:
            self._service.objects[key] = content

    @contextmanager
    def tampering(self) -> Iterator[TamperingProxy]:
        with TamperingProxy(self._service.port, is_encrypted=False) as proxy:
            self._port = proxy.port
            yield proxy
        self._port = self._service.port


class ServerDestination:
    """A MyTardis server with what was sent over HTTP; commands always go through a proxy."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.source = folder / "data" / "alice" / "Scan 1"
        self.source.mkdir(parents=True)
        self._site = stack.enter_context(open_site(folder))
        url, port = self._site.server.url, self._site.server.port
        self._proxy = stack.enter_context(TamperingProxy(port, is_encrypted=False))
        for file in (self._site.config, self._site.config.with_name("secrets.toml")):
            text = file.read_text().replace(url, f"http://127.0.0.1:{self._proxy.port}")
            # Else `get` asks the staging host first.
            file.write_text(text.replace("[transfer]", '[transfer]\nmethod = "http"'))

    def send(self) -> Ended:
        return self._site.run()

    def start_command(self, *words: str | bytes) -> "subprocess.Popen[str]":
        config = ("--config", str(self._site.config))
        given = map(os.fsdecode, words)
        return self._site._start(["-m", "mydata_like", *given, *config], subprocess.DEVNULL)

    def change(self, path: bytes, change: Callable[[bytes], bytes | None]) -> None:
        folder, _, name = path.decode().rpartition("/")
        (found,) = [
            it
            for it in self._site.server.datafiles()
            if (it.directory or "", it.filename) == (folder, name)
        ]
        assert found.path
        content = change(found.path.read_bytes())
        if content is None:
            self._site.server.lose(found.id)
        else:
            found.path.write_bytes(content)

    @contextmanager
    def tampering(self) -> Iterator[TamperingProxy]:
        yield self._proxy
        self._proxy.flip(inward=True, after=sys.maxsize)  # no change is to come


class Round:
    """One source, one destination and one local folder that gets the files back."""

    def __init__(
        self,
        site: Destination | ServerDestination,
        way: str,
        chance: random.Random,
        files: int,
        report: Report,
    ) -> None:
        self._site = site
        self._way = way
        self._chance = chance
        self._files = files
        self._report = report
        self._source = os.fsencode(site.source)
        self._here = os.fsencode(site.folder / "here")

    def run(self, flips: int) -> None:
        """Copy, tamper, and get the files back."""
        self._make()
        sent = self._site.send()
        if sent.code:
            self._wrong(f"run has failed: {sent.output} {sent.complaints}")
            return
        ours = {path: it for path, it in look(self._source).items() if it.kind == "file"}
        tampered = self._tamper(sorted(ours))
        if flips:
            self._flip(flips, ours, tampered)
        for _ in range(0 if flips else KILLS):
            self._kill(len(ours))
            self._check(ours, tampered)
        ended = finish(self._start(), PATIENCE)
        here = self._check(ours, tampered)
        if missing := ours.keys() - tampered - here:
            self._wrong(f"{sorted(missing)} are not here: {ended.output} {ended.complaints}")
            return
        if left := [path for path in look(self._here) if PART in path]:
            self._wrong(f"{left} are left")
        if ended.code != bool(tampered):
            self._wrong(f"exit code {ended.code}: {ended.output} {ended.complaints}")
        self._report.rounds += 1
        self._report.files += len(here)
        self._report.tampered += len(tampered)

    def _make(self) -> None:
        chance = self._chance
        takes_bytes = self._way not in ("S3", "HTTP")
        for number in range(self._files):
            size = chance.choice((0, 10, chance.randrange(5000), chance.randrange(400_000)))
            size = chance.randrange(9_000_000) if chance.random() < 0.02 else size
            folder, name = chance.choice(FOLDERS), b"%05d%b" % (number, chance.choice(ENDINGS))
            if not takes_bytes:
                folder, name = (it.decode("latin-1").encode() for it in (folder, name))
            folder = os.path.join(self._source, folder)
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name), "wb") as file:
                file.write(chance.randbytes(size))
        if self._way in ("libssh", "paramiko") and chance.random() < 0.7:
            with open(os.path.join(self._source, b"holes"), "wb") as file:
                file.truncate(HOLES)

    def _tamper(self, paths: list[bytes]) -> set[bytes]:
        """Change some files at the destination; return their paths."""
        chance, changed = self._chance, set[bytes]()
        if self._way == "HTTP":  # no bytes are asked for of an empty file
            paths = [it for it in paths if os.path.getsize(os.path.join(self._source, it))]
        for path in chance.sample(paths, chance.choice((0, 1, len(paths) // 10))):
            self._site.change(path, self._damage)
            changed.add(path)
        return changed

    def _damage(self, content: bytes) -> bytes | None:
        """Return the content with one bit changed or truncated, or None."""
        kind = self._chance.randrange(3)
        if not content or kind == 2:
            return None
        place = self._chance.randrange(len(content))
        if kind == 1:
            return content[:place]
        bit = 1 << self._chance.randrange(8)
        return content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        source = self._source + b"/"
        return self._site.start_command("get", source, self._here, "--replace", *words)

    def _flip(self, flips: int, ours: dict[bytes, object], tampered: set[bytes]) -> None:
        """Change packets of some commands, each at other places."""
        found = [os.stat(os.path.join(self._source, path)) for path in ours]
        size = sum(min(it.st_size, it.st_blocks * 512) for it in found)  # holes are not sent
        left = flips
        with self._site.tampering() as proxy:
            while left > 0:
                # Replies have the bytes of files; what comes earlier is part of a login.
                inward = self._chance.random() < 0.8
                after = self._chance.randrange(size // 2 if inward else 6000)
                proxy.flip(inward=inward, after=after, bit=self._chance.randrange(8))
                process = self._start()
                while process.poll() is None:
                    if proxy.changed.wait(0.05) and left > 0:
                        left -= 1
                        self._report.flips += 1
                        after = self._chance.randrange(size // 4)
                        proxy.flip(inward=True, after=after, bit=self._chance.randrange(8))
                close_streams(process)
                wrongs = len(self._report.wrongs)
                here = self._check(ours, tampered)
                self._report.accepted += len(self._report.wrongs) - wrongs
                for path in sorted(here)[::2]:  # half of them are to be fetched again
                    os.unlink(os.path.join(self._here, path))

    def _kill(self, files: int) -> None:
        """Start the command, and kill it once a random number of files is here."""
        wanted = self._chance.randrange(files)
        process = self._start("--bandwidth", str(self._chance.choice((0, 5, 30))))
        deadline = time.monotonic() + PATIENCE
        seen = 0
        while process.poll() is None and seen <= wanted and time.monotonic() < deadline:
            seen = sum(len(names) for _, _, names in os.walk(self._here))
        try:
            process.wait(self._chance.random() * 0.1)
        except subprocess.TimeoutExpired:
            self._report.kills += 1
            self._report.inside += bool(seen)
        children, way = self._list_children(process), self._chance.randrange(3)
        if way:
            kill_group(process)
        else:
            process.kill()  # its processes end by themselves
        close_streams(process)
        psutil.wait_procs(children, PATIENCE)

    def _list_children(self, process: "subprocess.Popen[str]") -> list[psutil.Process]:
        """Return the processes of a command, after one of them was perhaps killed."""
        try:
            children = psutil.Process(process.pid).children()
            if children and self._chance.random() < 0.3:
                self._chance.choice(children).kill()
        except psutil.NoSuchProcess:
            return []
        return children

    def _check(self, ours: dict[bytes, object], tampered: set[bytes]) -> set[bytes]:
        """Check that each file that has a name has its bytes; return them."""
        if not os.path.isdir(self._here):
            return set()
        found = {
            path: it
            for path, it in look(self._here).items()
            if it.kind == "file" and PART not in path
        }
        for path, it in found.items():
            if path not in ours or it.content != ours[path].content:
                self._wrong(f"{path!r} has other bytes")
            if path in tampered:
                self._wrong(f"{path!r} is here, and was tampered with")
        return set(found)

    def _wrong(self, what: str) -> None:
        self._report.wrongs.append(f"round {self._report.rounds} ({self._way}): {what}")


def open_destination(
    way: str, folder: Path, sshd: PrivateSshd, stack: ExitStack
) -> Destination | ServerDestination:
    """Return an empty destination of one kind, until the stack is closed."""
    if way == "HTTP":
        return ServerDestination(folder, stack)
    if way == "S3":
        site: Destination = BucketDestination(folder, sshd, stack)
    else:
        site = Destination(folder, way, sshd)
    stack.callback(site.close)
    return site


def run_trial(
    rounds: int,
    files: int,
    seed: int,
    flips: int,
    ways: Sequence[str],
    say: Callable[[str], object],
) -> Report:
    """Execute rounds, each with a source of its own; stop at the first that goes wrong."""
    report = Report()
    with (
        tempfile.TemporaryDirectory() as top,
        sshd_with(Path(top)) as shell,
        sshd_with(Path(top, "SFTP"), *sftp_only()) as restricted,
    ):
        for number in range(rounds):
            chance, way = random.Random(seed * 1000 + number), ways[number % len(ways)]
            sshd = restricted if way == "SFTP" else shell
            with ExitStack() as stack:
                site = open_destination(way, Path(top, f"{number}"), sshd, stack)
                Round(site, way, chance, files, report).run(flips)
            say(f"{way}: {report}")
            if report.wrongs:
                break
    return report


def main() -> int:
    """Run the trial; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flips", type=int, default=0, help="changed packets of each round")
    parser.add_argument("--to", nargs="+", choices=WAYS, default=WAYS, help="destinations")
    chosen = parser.parse_args()
    say = partial(print, flush=True)
    # Nothing passes a proxy on the way to a folder.
    ways = [way for way in chosen.to if not (chosen.flips and way == "folder")]
    report = run_trial(chosen.rounds, chosen.files, chosen.seed, chosen.flips, ways, say)
    print(*report.wrongs, f"{report} (seed {chosen.seed})", sep="\n")
    return bool(report.wrongs)


if __name__ == "__main__":
    sys.exit(main())
