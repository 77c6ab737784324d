"""The command `mydata-like get`, and peers that fetch the same files from the private sshd."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.arena import Arena
from benchmarks.contest import OURS, Entrant, Peer
from benchmarks.copying import Copying
from benchmarks.measure import Command, ContestError, Sample, measure


@dataclass(frozen=True)
class Getting(Copying):
    """`mydata-like get` from a cold start; the copy that it fetches is not timed."""

    @property
    def entrants(self) -> Sequence[Entrant]:
        return [Entrant("mydata-like get", OURS, "MD5 of the manifest")]

    def prepare(self, arena: Arena) -> None:
        self._log_in(arena)
        there = replace(arena, directory=arena.directory / "copied", mounted=None)
        if not there.directory.exists():
            there.directory.mkdir()
            there.target.mkdir()
            self._copy(there)

    def run(self, arena: Arena) -> Sequence[Sample]:
        arena.clear()
        command = [
            *("env", f"HOME={self._home(arena)}", f"MYDATA_LIKE_HOME={arena.whole}"),
            *self.program("get", "--json"),
            f"{arena.link.destination}:{arena.directory / 'copied' / 'target'}/",
            str(arena.target),
        ]
        sample, printed = measure([command], arena.servers)
        summary = json.loads(printed[0].strip().splitlines()[-1])
        if summary.get("fetched") != len(arena.corpus.files):
            raise ContestError(
                f"{summary.get('fetched')} files were fetched; {summary.get('problem')}"
            )
        return [sample]


def fetch_scp(streams: int, *, recursive: bool = False) -> Peer:
    """Several `scp` by its own protocol, whose remote shell expands the names; or one `scp -r`."""
    name = "scp -r" if recursive else f"scp x{streams}"

    def commands(arena: Arena) -> list[Command]:
        link = arena.link
        scp = ["scp", "-q", "-p", "-O", "-T", *link.options()]
        if recursive:
            return [[*scp, "-r", *_there(arena, arena.corpus.folders), f"{arena.target}/"]]
        return [
            ["sh", "-c", _into_folder(arena, [*scp, f"{link.destination}:{_join(arena, share)}"])]
            for share in arena.shares(streams)
        ]

    return Peer(Entrant(name, "scp", "", ("scp",)), commands)


def fetch_tar(streams: int, *, sparse: bool = False) -> Peer:
    """`ssh tar | tar`, as one stream or distributed over several."""
    family = "tar" if streams == 1 else "tar, several"
    name = f"ssh tar {'-S ' * sparse}| tar x{streams}"
    return Peer(Entrant(name, family, "", ("tar", "ssh")), _each_share(streams, sparse, ""))


def fetch_by_hand(streams: int) -> Peer:
    """`ssh tar | tar`, and `md5sum -c` here with a list that was made before."""
    entrant = Entrant(
        f"ssh tar | tar x{streams}, md5sum -c", "by hand", "MD5 of a list", ("tar", "md5sum")
    )
    check = "md5sum --quiet -c {names}.md5"
    return Peer(entrant, _each_share(streams, sparse=False, then=check))


def fetch_rsync(options: str = "-a") -> Peer:
    """`rsync` from the host."""

    def commands(arena: Arena) -> list[Command]:
        ssh = shlex.join(arena.link.ssh())
        (there,) = _there(arena, [""])
        return [["rsync", options, "-e", ssh, there, f"{arena.target}/"]]

    return Peer(Entrant(f"rsync {options}", "rsync", "its stream", ("rsync", "ssh")), commands)


def _each_share(streams: int, sparse: bool, then: str) -> Callable[[Arena], list[Command]]:
    """Return the commands that fetch a share each, and then do something in the target."""

    def command(arena: Arena, number: int, share: list[str]) -> Command:
        names = arena.write_list(f"fetched-{number}", share)
        pack = ["tar", "-C", str(arena.corpus.root), *["-S"] * sparse, "-cf", "-", "-T", str(names)]
        ssh = shlex.join([*arena.link.ssh(), arena.link.destination, shlex.join(pack)])
        steps = [f"cd {arena.target}", f"{ssh} | tar -xf -"]
        if then:
            sums = Path(f"{names}.md5")
            if not sums.exists():
                measure(
                    [["sh", "-c", f"cd {arena.corpus.root} && xargs md5sum <{names} >{sums}"]], ()
                )
            steps.append(then.format(names=names))
        return ["sh", "-c", " && ".join(steps)]

    return lambda arena: [
        command(arena, number, share) for number, share in enumerate(arena.shares(streams))
    ]


def _into_folder(arena: Arena, copy: Sequence[str]) -> str:
    """Return a script that copies files of one folder to that folder in the target."""
    (folder,) = arena.corpus.folders
    target = arena.target / folder
    return f"mkdir -p {target} && {shlex.join([*copy, f'{target}/'])}"


def _join(arena: Arena, share: Sequence[str]) -> str:
    return " ".join(f"{arena.corpus.root}/{path}" for path in share)


def _there(arena: Arena, below: Sequence[str]) -> list[str]:
    return [f"{arena.link.destination}:{arena.corpus.root}/{path}" for path in below]
