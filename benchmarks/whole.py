"""The real command with the embedded server: find, send, register and verify all files."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Entrant
from benchmarks.measure import ContestError, Sample, find_children, measure
from benchmarks.ours import Settings, format_settings
from benchmarks.server_process import ServerProcess
from benchmarks.wire import open_wire
from mydata_like.core.model import Layout
from mydata_like.demo.fixtures import FACILITY

CHECKS = "MD5 on the way, server's MD5"
SERVING = "benchmarks.server_process"


@dataclass(frozen=True)
class WholeRun:
    """`mydata-like run` from a cold start on a new server; one run has two rows.

    `hog` is the place of a busy thread or process, as in `benchmarks.hog`. `settings` are those of
    the section `transfer` that differ from the defaults. With `distant`, the API is behind a
    network emulation like that of the staging host, and the installation was registered before.
    """

    family: str = OURS
    hog: str = ""
    settings: Settings = ()
    distant: bool = False

    @property
    def entrants(self) -> Sequence[Entrant]:
        hog = f", a hog {self.hog}" if self.hog else ""
        return entrants_of_run(self.family, hog + format_settings(self.settings))

    def prepare(self, arena: Arena) -> None:
        """Do nothing: every run has a new server."""

    def run(self, arena: Arena) -> Sequence[Sample]:
        arena.clear()
        with contextlib.ExitStack() as stack:
            installation = Installation.create(arena, arena.whole, stack, self.settings)
            if self.distant:
                installation.move_away(stack)
                installation.register()
            try:
                sample, summary = installation.run(self.hog)
            finally:
                installation.server.kill()  # it may be busy for long, and its work is not needed
        if summary["sent"] != len(arena.corpus.files):
            raise ContestError(f"{summary['sent']} files were sent")
        return both(sample, summary)


def entrants_of_run(family: str, addition: str = "") -> Sequence[Entrant]:
    """Return the rows of one run: the time of the command, and the time in its summary."""
    return (
        Entrant(f"mydata-like run, the whole command{addition}", family, CHECKS),
        Entrant(f"mydata-like run, its own summary{addition}", f"{family}, summary", CHECKS),
    )


def both(sample: Sample, summary: dict[str, Any]) -> Sequence[Sample]:
    """Return the samples of the whole command and of its summary."""
    facts = {"whole process (s)": sample.seconds}
    return sample, sample._replace(seconds=summary["seconds"], facts=facts)


@dataclass(frozen=True, kw_only=True)
class Installation:
    """An embedded server and a configured client for a case's corpus."""

    directory: Path
    server: ServerProcess
    arena: Arena

    @classmethod
    def create(
        cls,
        arena: Arena,
        directory: Path,
        stack: contextlib.ExitStack,
        settings: Settings = (),
        serving: Sequence[str] = (),
    ) -> "Installation":
        """Start a server, which `stack` ends; its staging host is the arena's sshd.

        `serving` are further options of the server.
        """
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        server = stack.enter_context(ServerProcess(directory / "server", *serving))
        link = arena.link
        server.set_address(
            username=link.username,
            hostname=link.host,
            port=link.port,
            host_keys=[link.host_key],
        )
        made = cls(directory=directory, server=server, arena=arena)
        made._write_settings(dict(settings))
        return made

    def move_away(self, stack: contextlib.ExitStack) -> None:
        """Put a network like that in front of the staging host in front of the API as well."""
        assert self.arena.wire
        address = urlsplit(self.server.url)
        assert address.port
        port, _ = stack.enter_context(open_wire(self.arena.wire, address.port))
        url = f"{address.scheme}://{address.hostname}:{port}"
        self.config.write_text(self.config.read_text().replace(self.server.url, url))

    def register(self) -> None:
        """Register, as an instrument's user does before the first run; not timed."""
        done = subprocess.run(self.command(name="register"), capture_output=True, check=False)
        if done.returncode:
            raise ContestError(f"register ended with {done.returncode}")

    def run(self, hog: str = "") -> tuple[Sample, dict[str, Any]]:
        """Run the command once. Raises `ContestError` unless all files are verified at its end."""
        serving = find_children(SERVING, str(self.directory / "server"))
        command = self.command("--json", hog=hog)
        sample, printed = measure([command], [*self.arena.servers, *serving])
        summary = json.loads(printed[0].strip().splitlines()[-1])
        if summary["verified"] != len(self.arena.corpus.files):
            raise ContestError(f"{summary['verified']} files were verified; {summary['problem']}")
        return sample, summary

    def command(self, *options: str, hog: str = "", name: str = "run") -> list[str]:
        """Return a command of this installation, `run` by default."""
        return [
            *("env", f"MYDATA_LIKE_HOME={self.directory / 'home'}"),
            f"MYDATA_LIKE_API_KEY={self.server.api_key}",
            *(sys.executable, "-m"),
            *(("benchmarks.hog", hog) if hog else ("mydata_like",)),
            *(name, "--config", str(self.config), *options),
        ]

    def requests(self, since: int = 0) -> list[str]:
        """Return the requests that the server has answered, as in `GET user` or `GET /`."""
        entries = self.server.list_requests(since)
        paths = [entry["path"].partition("?")[0] for entry in entries]
        return [
            f"{entry['method']} {path.removeprefix('/api/v1/').partition('/')[0] or '/'}"
            for entry, path in zip(entries, paths, strict=True)
        ]

    @property
    def config(self) -> Path:
        return self.directory / "mydata-like.toml"

    def _write_settings(self, transfer: dict[str, object]) -> None:
        link = self.arena.link
        sections: dict[str, dict[str, object]] = {
            "server": {"url": self.server.url, "username": self.server.username},
            "instrument": {
                "name": "Benchmark",
                "facility": FACILITY,
                "contact_name": "Ann Lee",
                "contact_email": "ann@example.org",
            },
            "data": {"directory": str(self.arena.corpus.root), "layout": Layout.DATASET.value},
            "filters": {"settle_seconds": 0},
            "limits": {"low_priority": False},  # the same priority as the peers
            "transfer": {"key_file": str(link.key_file), **transfer},
            "advanced": {"state_directory": str(self.directory / "state")},
        }
        # JSON strings and numbers are valid TOML.
        lines = [
            line
            for name, values in sections.items()
            for line in (f"[{name}]", *(f"{key} = {json.dumps(values[key])}" for key in values))
        ]
        self.config.write_text("\n".join(lines) + "\n")
