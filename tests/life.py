"""A recording of the whole life of an installation, with the real command.

`python -m tests.life > docs/life.md` uses an embedded server and a private sshd: MyData's settings
are imported, the key is approved, files are uploaded on a schedule, and the key is revoked and
approved again. Any failure ends it with exit code 1.
"""

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.fixtures import FACILITY
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.ssh.keys import PublicKey

UUID = "0b6f4c56-8a4e-4a5e-9d0a-3f2f6a1f7c11"
DEADLINE = 60.0  # seconds after which a step counts as failed
MYDATA = """\
[MyData]
instrument_name = Confocal 1
facility_name = {facility}
contact_name = Ann Lee
contact_email = ann.lee@example.org
data_directory = {data}
mytardis_url = {url}
username = {username}
api_key = {key}
uuid = {uuid}
folder_structure = Username / Dataset
schedule_type = Timer
timer_minutes = 15
timer_from_time = 00:00:00
timer_to_time = 23:59:00
ignore_new_files = True
ignore_new_files_minutes = 1
upload_method = ParallelSSH
cipher = aes128-gcm@openssh.com,aes128-ctr
max_upload_threads = 4
fake_md5_sum = False
locked = False
"""
INTRODUCTION = """\
# A whole life, recorded

From MyData to months of unattended uploads. A program typed the commands; their output is real,
with the embedded server and an OpenSSH `sshd` on one machine. Only paths are shortened.
`python -m tests.life > docs/life.md` records it again.
"""


class Life:
    """A home folder, a server and a staging host, and the recorded text."""

    def __init__(self, folder: Path, server: EmbeddedServer, sshd: PrivateSshd) -> None:
        self.folder = folder
        self.server = server
        self.sshd = sshd
        self.data = folder / "data"
        self.lines: list[str] = [INTRODUCTION]

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if "MYDATA_" not in name}
        return kept | {"MYDATA_LIKE_HOME": str(self.folder / "mydata-like"), "COLUMNS": "110"}

    def tell(self, text: str) -> None:
        self.lines.append(f"{text}\n")

    def show(self, *words: str, code: int = 0) -> str:
        """Run a command and record its output; it must end with this exit code."""
        ended = subprocess.run(
            [sys.executable, "-m", "mydata_like", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
            env=self.environment,
            check=False,
        )
        self.record(words, ended.stdout)
        if ended.returncode != code:
            raise SystemExit(
                f"{' '.join(words)}: exit code {ended.returncode}, not {code}:\n{ended.stdout}"
            )
        return ended.stdout

    def record(self, words: tuple[str, ...], output: str) -> None:
        command = " ".join(f'"{word}"' if " " in word else word for word in words)
        text = f"$ mydata-like {command}\n{output.rstrip()}".replace(
            str(self.folder), "/home/scope"
        )
        self.lines.append(
            "```\n" + "\n".join(line.rstrip() for line in text.splitlines()) + "\n```\n"
        )

    def write_file(self, name: str, content: bytes) -> None:
        path = self.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def approve(self) -> None:
        """Approve the request as an administrator does, and authorize the key."""
        assert self.server.approve(UUID) == 1
        for key in self.server.public_keys():
            self.sshd.authorize(PublicKey.parse(key))

    def revoke(self) -> None:
        self.server.withdraw_approval(UUID)
        self.sshd.forbid_all()
        self.sshd.kill_sessions()

    @contextmanager
    def watching(self) -> Iterator["Watch"]:
        """Run `watch` in the background."""
        watch = Watch(self.environment)
        try:
            yield watch
        finally:
            watch.end()


class Watch:
    """A `mydata-like watch` whose output is read line by line."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mydata_like", "watch"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self.output: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)

    def wait_for(self, text: str) -> None:
        """Wait until a line contains this text."""
        while True:
            try:
                line = self._lines.get(timeout=DEADLINE)
            except queue.Empty:
                raise SystemExit(
                    f"watch did not print {text!r}, but:\n{''.join(self.output)}"
                ) from None
            self.output.append(line)
            if text in line:
                return

    def end(self) -> None:
        """Stop it as a service is stopped."""
        self._process.terminate()
        code = self._process.wait(DEADLINE)
        self._reader.join(DEADLINE)
        while not self._lines.empty():
            self.output.append(self._lines.get())
        if code not in (0, 130):
            raise SystemExit(f"watch ended with {code}:\n{''.join(self.output)}")


def play(life: Life) -> None:
    """Record the whole life. Raises SystemExit if a step fails."""
    _import(life)
    _register(life)
    _watch(life)
    losses = life.server.check_invariants(_expect(life))
    if losses:
        raise SystemExit("\n".join(losses))
    life.tell("Every file on the server is identical to its local file.")


def _import(life: Life) -> None:
    life.tell("## MyData's settings\n\nMyData's settings file has the API key in plain text.")
    old = life.folder / "MyData.cfg"
    old.write_text(
        MYDATA.format(
            facility=FACILITY,
            data=life.data,
            url=life.server.url,
            username=life.server.username,
            key=life.server.api_key,
            uuid=UUID,
        )
    )
    life.show("settings", "import", str(old), "--key-store", "file")
    if life.server.api_key in (life.folder / "mydata-like" / "settings.toml").read_text():
        raise SystemExit("the API key is in the settings file")


def _register(life: Life) -> None:
    life.tell("## Approval\n\nThe key is created here; an administrator approves it on the server.")
    life.show("register", code=3)
    life.tell("The administrator ticks *approved*, chooses the storage box and authorizes the key.")
    life.approve()
    life.show("register", "--check")


def _watch(life: Life) -> None:
    life.tell("## Unattended\n\nFiles are sent over SSH as soon as they have settled.")
    life.show("settings", "set", "schedule.kind", "watch")
    life.show("settings", "set", "transfer.method", "ssh")
    life.show("settings", "set", "filters.settle_seconds", "1")
    name = life.server.username
    life.write_file(f"{name}/Monday/scan-001.tif", os.urandom(300_000))
    life.write_file(f"{name}/Monday/scan-002.tif", os.urandom(200_000))
    with life.watching() as watch:
        watch.wait_for("verified")
        life.tell("The first files are on the server. The administrator revokes the key.")
        life.revoke()
        life.write_file(f"{name}/Tuesday/scan-003.tif", os.urandom(100_000))
        watch.wait_for("Paused")
        life.show("status")
        life.tell("It is approved again, and the run continues automatically.")
        life.approve()
        watch.wait_for("Going on")
        watch.wait_for("verified")
    life.tell("The output of `watch` until it was stopped:")
    life.record(("watch",), "".join(watch.output))


def _expect(life: Life) -> dict[tuple[str, str, str], Path]:
    """Return all local files by dataset, directory and name on the server."""
    return {
        (path.parent.name, "", path.name): path
        for path in life.data.glob("*/*/*")
        if path.is_file()
    }


def live() -> str:
    """Record the life in a temporary folder, and return it as Markdown."""
    with (
        tempfile.TemporaryDirectory(prefix="mydata-like-life-") as name,
        PrivateSshd(Path(name) / "sshd") as sshd,
        EmbeddedServer(Path(name) / "server", auto_approve=False) as server,
    ):
        server.set_address(ScpAddress(sshd.username, sshd.host, sshd.port, (sshd.fingerprint,)))
        life = Life(Path(name), server, sshd)
        life.data.mkdir()
        play(life)
        return "\n".join(life.lines)


if __name__ == "__main__":
    sys.stdout.write(live())
