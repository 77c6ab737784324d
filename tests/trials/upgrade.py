"""The trial of upgrades: `python -m tests.trials.upgrade [--only COMMIT ...]`.

For each of some earlier versions, taken from this repository, the earlier program uploads a data
folder. Then the present one must open its settings, ledger and state, know every file, send a new
one and nothing else, and answer `status` and `where`. After that the earlier program is started
again: it must work, or say in a sentence that the ledger is of a newer version. With the ledger
that was put aside before the migration it must work in any case.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.site import Ended, Site, make_data, open_site

ROOT: Final = Path(__file__).parents[2]
# The last commit of each day on which something changed, and the day.
EARLIER: Final = {
    "45b4f553": "2026-11-22",
    "ee8ab33e": "2026-11-23",
    "58ab39c8": "2026-11-24",
    "6f8f448a": "2026-11-25",
    "616447ae": "2026-11-26",
    "561cc885": "2026-11-27",
    "13ba150a": "2026-11-28",
    "609d8bdc": "2026-11-29",
    "0e8dd131": "2026-11-30",
}
NEWER: Final = "written by a newer version"


def _unpack(commit: str, folder: Path) -> Path:
    """Unpack the program of a commit."""
    folder.mkdir(parents=True)
    order = ("git", "archive", commit, "mydata_like", "resources")
    packed = subprocess.run(order, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(("tar", "-x", "-C", folder), check=True, input=packed)
    return folder


@contextmanager
def _as_program(site: Site, folder: Path) -> Iterator[None]:
    """Let the site's commands be those of an earlier program."""
    site.wrap = ("env", f"PYTHONPATH={folder}", "PYTHONSAFEPATH=1")
    try:
        yield
    finally:
        site.wrap = ()


def _describe(ended: Ended) -> str:
    return f"exit code {ended.code}: {ended.complaints[-600:]}{ended.output[-600:]}"


def _require(truth: bool, what: str, ended: Ended) -> None:
    if not truth:
        raise AssertionError(f"{what}: {_describe(ended)}")


def _run(site: Site, verified: int, sent: int, whose: str) -> None:
    ended = site.run()
    _require(ended.code == 0 and bool(ended.lines), f"{whose} run", ended)
    counted = ended.sums["verified"], ended.sums["sent"]
    _require(counted == (verified, sent), f"{whose} run: verified and sent are {counted}", ended)


def _ask(site: Site, whose: str) -> None:
    for words in (("status", "--json"), ("where", "new.raw", "--json")):
        ended = site.command(*words)
        _require(not ended.code and "Traceback" not in ended.complaints, f"{whose} {words}", ended)


def try_upgrade(commit: str, place: Path) -> str:
    """Upgrade from a commit, and go back; return what the earlier program did at the end."""
    program = _unpack(commit, place / "program")
    data = make_data(place / "site", tiny_files=10, large=100_000)
    with open_site(place / "site") as site:
        files = len(site.place.expected_files())
        with _as_program(site, program):
            _run(site, files, files, "the earlier")
        former = {path.name for path in site.ledgers}
        owner = next(it for it in sorted(data.iterdir()) if it.is_dir())
        dataset = next(it for it in sorted(owner.iterdir()) if it.is_dir())
        (dataset / "new.raw").write_bytes(b"new")

        _run(site, files + 1, 1, "the present")
        _ask(site, "the present")
        assert site.find_wrongs() == []

        with _as_program(site, program):
            ended = site.run()
            if ended.code == 0:
                _require(ended.sums["sent"] == 0, "the earlier run sent files again", ended)
                return "works with the present ledger"
            spoken = ended.complaints + ended.output
            _require(NEWER in spoken and "Traceback" not in spoken, "the earlier says", ended)
            kept = [it for it in site.ledgers if ".before-v" in it.name and it.name not in former]
            _require(len(kept) == 1, f"put aside: {[it.name for it in kept]}", ended)
            ledger = kept[0].with_name(kept[0].name.split(".before-v")[0] + kept[0].suffix)
            for path in site.ledgers:
                if path.name.startswith(ledger.name):
                    path.unlink()
            kept[0].rename(ledger)
            _run(site, files + 1, 0, "with the ledger put aside, the earlier")
    return "says that the ledger is of a newer version; works with the one that was put aside"


def main() -> int:
    """Try each of the earlier versions, and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[*EARLIER], help="commits")
    wrongs = tried = 0
    for commit in parser.parse_args().only:
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = try_upgrade(commit, Path(folder))
            except AssertionError as error:
                wrongs += 1
                result = f"WRONG: {error}"
        sys.stdout.write(f"{commit} ({EARLIER.get(commit, 'another')}): {result}\n")
        sys.stdout.flush()
        tried += 1
    sys.stdout.write(f"{tried} earlier versions, there and back: {wrongs} wrong\n")
    return min(wrongs, 1)


if __name__ == "__main__":
    sys.exit(main())
