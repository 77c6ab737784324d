"""The command `mydata-like copy`, which needs no server, and what is noted of all that copy."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Contestant, Entrant
from benchmarks.corpus import modify_some
from benchmarks.measure import ContestError, Sample, measure
from benchmarks.noted import Noted
from mydata_like.core.destination_files import OWN_FOLDER

CPU = "CPU of the client for each file (µs)"
WITH_AGENT = f"{OURS}, an agent"


def compared(contestant: Contestant) -> Noted:
    """Compare all bytes after each run; note the CPU time of the client for each file."""
    return Noted(contestant, lambda arena: None, _compare)


def _compare(arena: Arena, sample: Sample) -> dict[str, float]:
    arena.compare_target()
    return {CPU: sample.client / len(arena.corpus.files) * 1e6}


@dataclass(frozen=True)
class Copying:
    """`mydata-like copy` from a cold start to the private sshd, with a key file or an agent.

    If the files are `known`, the first copy is not timed; later ones send nothing, or one file in
    `modify`, which is modified before.
    """

    agent: bool = False
    known: bool = False
    modify: int = 0

    @property
    def entrants(self) -> Sequence[Entrant]:
        key, family = ("an agent", WITH_AGENT) if self.agent else ("a key file", OURS)
        needs = ("ssh-agent", "ssh-add") if self.agent else ()
        checks = "sizes and times" if self.known else "MD5 of both sides"
        return [Entrant(f"mydata-like copy, {key}", family, checks, needs)]

    def prepare(self, arena: Arena) -> None:
        """Write the user's ssh configuration; copy all files if they are to be known."""
        self._log_in(arena)
        if self.known and not (here := _known(arena)).directory.exists():
            here.directory.mkdir()
            here.clear()
            self._copy(here)
            here.compare_target()

    def run(self, arena: Arena) -> Sequence[Sample]:
        wanted = modify_some(arena.corpus, self.modify) if self.modify else 0
        if not self.known:
            wanted = len(arena.corpus.files)
            arena.clear()
        sample, summary = self._copy(_known(arena) if self.known else arena)
        if summary["sent"] != wanted:
            raise ContestError(f"{summary['sent']} files were sent instead of {wanted}")
        if not self.known:
            shutil.rmtree(arena.target / os.fsdecode(OWN_FOLDER))
            arena.check_target()
        facts = {"its own summary (s)": summary["seconds"]}
        return [sample._replace(facts=facts)]

    def _copy(self, arena: Arena) -> tuple[Sample, dict[str, Any]]:
        """Run the command once. Raises `ContestError` unless all files are verified at its end."""
        command = [
            *("env", f"HOME={self._home(arena)}", f"MYDATA_LIKE_HOME={arena.whole}"),
            *self.program("copy", "--json"),
            f"{arena.corpus.root}/",
            f"{arena.link.destination}:{arena.target}",
        ]
        sample, printed = measure([command], arena.servers)
        summary = json.loads(printed[0].strip().splitlines()[-1])
        if summary["verified"] != len(arena.corpus.files):
            raise ContestError(f"{summary['verified']} files were verified; {summary['problem']}")
        return sample, summary

    def program(self, *arguments: str) -> Sequence[str]:
        """Return the words of our program with these arguments."""
        return [sys.executable, "-m", "mydata_like", *arguments]

    def _home(self, arena: Arena) -> Path:
        """Return the user's home, which is beside the source."""
        return arena.corpus.root.parent / ("home-agent" if self.agent else "home")

    def _log_in(self, arena: Arena) -> None:
        """Write a home with the ssh configuration for the private sshd; start an agent for it."""
        link, folder = arena.link, self._home(arena) / ".ssh"
        folder.mkdir(parents=True, mode=0o700)
        socket = folder / "agent"
        options = {
            "Port": link.port,
            "UserKnownHostsFile": link.known_hosts,
            "IdentityAgent": socket if self.agent else "none",
        }
        if self.agent:
            _start_agent(arena, socket)
        else:
            options["IdentityFile"] = link.key_file
        (folder / "config").write_text("".join(f"{key} {options[key]}\n" for key in options))


def _known(arena: Arena) -> Arena:
    """Return an arena with a target and a ledger that all runs share."""
    return replace(arena, directory=arena.directory / "known")


def _start_agent(arena: Arena, socket: Path) -> None:
    """Run an ssh-agent with the key of the arena's link until the end of the case."""
    command = ["ssh-agent", "-D", "-a", str(socket)]
    agent = arena.stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
    arena.stack.callback(agent.kill)
    assert agent.stdout
    agent.stdout.readline()  # it listens before it prints this
    environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
    subprocess.run(["ssh-add", "-q", str(arena.link.key_file)], env=environment, check=True)
