"""The command: python -m benchmarks [--case P3] [--rounds 3] [--quick | --full] [--json FILE]."""

import argparse
import compileall
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import mydata_like
from benchmarks.arena import Arena, Link
from benchmarks.cases import CASES
from benchmarks.contest import Case, Outcome, compete
from benchmarks.corpus import FULL, QUICK, Scale
from benchmarks.ground import open_sshd
from benchmarks.machine import describe_machine, is_in_memory
from benchmarks.measure import ContestError
from benchmarks.mounts import mount_disk, mount_sshfs
from benchmarks.report import table, to_markdown, to_record
from benchmarks.reserve import Reserve

_DISK = 4 * 2**30  # bytes of a new disk; only used ones take space
_BYTES_PER_FILE = "4096"  # of the disk, so that there are enough numbers for tiny files


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen cases; return 1 if a contestant of ours failed."""
    options = _parse(arguments)
    scale = _scale(options)
    chosen = _choose(options.case)
    if options.list:
        for case in chosen:
            print(f"{case.name}  {case.title}: {case.describe(scale)}")
        return 0
    # Otherwise, if Python may not write its caches, each of our processes compiles every module.
    compileall.compile_dir(Path(mydata_like.__file__).parent, quiet=1)
    facts = describe_machine(options.directory)
    print(_facts_table(facts))
    # On SIGTERM, exit normally, so that the files in memory are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    outcomes = []
    for case in chosen:
        try:
            outcome = _run(case, scale, options)
        except ContestError as error:
            print(f"{case.name} was left out: {error}.\n", flush=True)
            continue
        print(to_markdown(outcome), flush=True)
        outcomes.append(outcome)
        if options.json:
            _write_json(options, facts, outcomes)
    return int(any(_failed(outcome) for outcome in outcomes))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("--case", default="", help="cases to run, such as P1,P3; all by default")
    add("--list", action="store_true", help="list the cases and exit")
    add("--rounds", type=int, default=3, help="how often each contestant runs")
    add("--quick", action="store_true", help="less data, for a first impression only")
    add("--full", action="store_true", help="a million files, a file of 1 TiB: takes hours")
    add("--only", default="", help="only contestants whose names match this regular expression")
    add("--json", type=Path, help="also write all samples to this file")
    add("--directory", type=Path, default=_default_directory(), help="folder of the test data")
    add(
        "--disk",
        type=Path,
        default=Path("/var/tmp"),
        help="folder of the data of P11 and P16C",
    )
    add("--file-size", type=int, help="MiB of each of the 16 large files")
    add("--files", type=int, help="number of tiny files")
    add("--known-files", type=int, help="number of files for P7, P8, P17B, P17F")
    return parser.parse_args(arguments)


def _default_directory() -> Path:
    """Return a folder in memory if there is one, so that disks do not affect the comparison."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else Path(tempfile.gettempdir())


def _scale(options: argparse.Namespace) -> Scale:
    scale = QUICK if options.quick else FULL if options.full else Scale()
    if options.file_size:
        scale = scale._replace(large_size=options.file_size * 2**20)
    if options.files:
        scale = scale._replace(tiny_count=options.files)
    if options.known_files:
        scale = scale._replace(known_count=options.known_files)
    return scale


def _choose(names: str) -> list[Case]:
    wanted = {name.strip().upper() for name in names.split(",") if name.strip()}
    known = {name for case in CASES for name in case.names}
    unknown = wanted - known
    if unknown:
        raise SystemExit(f"There is no case {', '.join(sorted(unknown))}; see --list.")
    return [case for case in CASES if not wanted or wanted & case.names]


def _run(case: Case, scale: Scale, options: argparse.Namespace) -> Outcome:
    """Run one case in a temporary directory."""
    place = options.disk if case.on_disk else options.directory
    if case.on_disk and is_in_memory(place):
        raise ContestError(f"{place} is not on a disk (see --disk)")
    directory = Path(tempfile.mkdtemp(prefix="mydata-like-benchmark-", dir=place))
    try:
        _say(f"{case.name}: making {case.describe(scale)}")
        corpus = case.make(directory / "source", scale)
        with ExitStack() as stack:
            ground = stack.enter_context(open_sshd(directory / "sshd", case.wire))
            reserve = stack.enter_context(Reserve(directory))
            arena = Arena(
                **ground._asdict(),
                corpus=corpus,
                directory=directory,
                stack=stack,
                reserve=reserve,
                mounted=stack.enter_context(_mount(case.mount, ground.link, directory)),
            )
            return compete(case, arena, options.rounds, options.only, _say)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _mount(kind: str, link: Link, directory: Path) -> Iterator[Path | None]:
    """Mount the target's own file system, if it has one."""
    folder = directory / "mounted"
    match kind:
        case "disk":
            image = directory / "disk.img"
            with mount_disk(image, _DISK, folder, "-i", _BYTES_PER_FILE):
                yield folder
        case "sshfs":
            with mount_sshfs(link, directory / "remote", folder):
                yield folder
        case _:
            yield None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _facts_table(facts: dict[str, str]) -> str:
    return "\n".join([*table(("machine and programs", ""), list(facts.items())), ""])


def _write_json(
    options: argparse.Namespace, facts: dict[str, str], outcomes: Sequence[Outcome]
) -> None:
    record = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": facts,
        "cases": [to_record(outcome) for outcome in outcomes],
    }
    options.json.write_text(json.dumps(record, indent=1) + "\n")


def _failed(outcome: Outcome) -> bool:
    return any(row.trouble for row in outcome.rows if row.entrant.is_ours)


if __name__ == "__main__":
    sys.exit(main())
