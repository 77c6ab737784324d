"""How well runs estimate the time that they still need, by recordings of real runs.

`python -m tests.trials.time_left` prints the errors of the estimates for each recording.
`python -m tests.trials.time_left record [NAME...]` records again, by runs over different mixes of
files, to a server and a staging host that are slowed down as in use.
"""

import json
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from mydata_like.app.run_request import RunObserver, RunRequest
from mydata_like.app.run_service import open_run
from mydata_like.app.settings_service import load_settings
from mydata_like.core.events import Event, RunProgressed
from mydata_like.demo.middleware import Delay, Fault
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.progress import RunProgress, Totals
from mydata_like.engine.time_left import TimeLeft
from mydata_like.hostos.clock import SystemClock
from tests.site import QUICK, Site, open_site

FOLDER = Path(__file__).parent / "recordings"
SPACING = 1.0  # seconds between recorded sums
FIELDS = (
    *("seconds", "found", "found_bytes", "known", "verified", "wanted", "wanted_bytes"),
    *("waiting", "skipped", "failed", "sent", "transferred_bytes", "transferred"),
)
LAST = 3.0  # seconds before the end, in which nobody needs an estimate
MEDIAN = 0.25  # of the errors of all runs, from their first quarter on
NINE_TENTHS = 0.60  # of those of each run
KB, MB = 1_000, 1_000_000


class Mix(NamedTuple):
    """Files by folder, and what slows down the run."""

    files: Sequence[tuple[str, int, int]]  # dataset folder, number, size
    settings: Sequence[str] = ()
    record: float = 0.0  # seconds for each request that creates records
    before: int = 0  # of the folders, which an earlier run uploads whole; a sixth of all others
    changes: Sequence[tuple[float, float]] = ()  # seconds, and the bandwidth in MB/s from then on


MIXES = {
    "small then large": Mix([("a/a", 800, 20 * KB), ("a/b", 8, 20 * MB)], ["limits.bandwidth=2"]),
    "large then small": Mix([("a/a", 8, 10 * MB), ("a/b", 800, 20 * KB)], ["limits.bandwidth=2"]),
    "tiny, slow records": Mix([("a/a", 3000, 3 * KB)], record=1.5),
    "large": Mix([("a/a", 6, 30 * MB)], ["limits.bandwidth=4"]),
    "one large": Mix([("a/a", 1, 150 * MB)], ["limits.bandwidth=4"]),
    "in turns": Mix(
        [(f"a/{number}", *(((2, 15 * MB), (300, 5 * KB))[number % 2])) for number in range(8)],
        ["limits.bandwidth=3"],
    ),
    "mostly known": Mix(
        [("a/a", 3000, 3 * KB), ("b/a", 400, 50 * KB), ("b/b", 4, 20 * MB)],
        ["limits.bandwidth=2"],
        before=1,
    ),
    "bandwidth halved": Mix([("a/a", 12, 15 * MB)], ["limits.bandwidth=4"], changes=[(20.0, 2.0)]),
    "middle, slow records": Mix([("a/a", 400, 200 * KB)], ["limits.bandwidth=4"], record=1.5),
    "all sizes": Mix(
        [("a/a", 300, 2 * KB), ("a/b", 60, MB), ("a/c", 2, 40 * MB), ("a/d", 500, 10 * KB)],
        ["limits.bandwidth=4"],
        record=1.0,
    ),
}


def record(name: str, mix: Mix) -> None:
    """Run the real command over a mix and keep its sums."""
    with tempfile.TemporaryDirectory() as folder, open_site(Path(folder) / "site") as site:
        if mix.record:
            slow = Delay(mix.record)
            site.server.faults.add(Fault(action=slow, method="PATCH", path="/$", count=None))
        for dataset, count, size in mix.files:
            _write(site.data / "earlier" / dataset, max(1, count // 6), size)
        for dataset, count, size in mix.files[: mix.before]:
            _write(site.data / dataset, count, size)
        earlier = _run(site, mix._replace(changes=()))
        for dataset, count, size in mix.files[mix.before :]:
            _write(site.data / dataset, count, size)
        sums = _run(site, mix)
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"fields": FIELDS, "earlier": earlier, "sums": sums}, separators=(",", ":"))
    file = FOLDER / f"{name.replace(',', '').replace(' ', '-')}.json"
    file.write_text(text.replace("],[", "],\n[") + "\n")
    _print(f"{name}: {sums[-1][0]:.0f} s, {len(sums)} sums")


def _write(folder: Path, count: int, size: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number:05}.raw").write_bytes(random.randbytes(size))


def _run(site: Site, mix: Mix) -> list[list[float]]:
    """Run in this process; return the sums of each second."""
    lines: list[list[float]] = []
    changes = list(mix.changes)
    progress, cancel = RunProgress(SystemClock()), CancelFlag()

    def watch(event: Event) -> None:
        if not isinstance(event, RunProgressed):
            return
        totals = progress.totals
        sums = [round(getattr(totals, field), 2) for field in FIELDS]
        if not lines or sums[0] - lines[-1][0] >= SPACING or not totals.open:
            lines.append(sums)
        if changes and totals.seconds > changes[0][0]:
            limit = {"command": "set_bandwidth", "bandwidth": changes.pop(0)[1] * MB}
            controller.handle(json.dumps(limit).encode())

    controller = CommandHandler(cancel, watch)
    request = RunRequest(settings=load_settings(site.config, (*QUICK, *mix.settings)).settings)
    request = replace(request, config=site.config)
    observer = RunObserver(emit=watch, cancel=cancel, progress=progress, controller=controller)
    with open_run(request, observer) as run:
        assert run.execute().exit_code == 0
    return lines


class Errors(NamedTuple):
    """The errors of a run's estimates from its first quarter on, as shares of the true time."""

    seconds: float  # of the run
    each: list[float]
    rise: float  # the largest factor from one estimate to the next


def nine_tenths(errors: Sequence[float]) -> float:
    """Return the error that nine tenths of all errors do not exceed."""
    return quantiles(errors, n=10)[-1]


def list_recordings() -> list[Path]:
    """Return the files of all recordings."""
    return sorted(FOLDER.glob("*.json"))


def _read_totals(line: Sequence[float]) -> Totals:
    """Return the sums of a recorded moment; the run sent all bytes itself, once."""
    totals = Totals(**dict(zip(FIELDS, line, strict=True)))
    totals.carried_bytes, totals.carried = totals.transferred_bytes, totals.transferred
    return totals


def replay(file: Path, *, first: bool = False) -> Errors:
    """Estimate again, at each moment of a recording, as the first run or with an earlier one."""
    recording = json.loads(file.read_text())
    assert tuple(recording["fields"]) == FIELDS
    earlier, sums = ([_read_totals(line) for line in recording[it]] for it in ("earlier", "sums"))
    history = None
    if not first:
        history = TimeLeft()
        list(_estimate(history, earlier))
        history = history.measured
    model = TimeLeft()
    model.history = history
    end = sums[-1].seconds
    errors, rise, before = [], 1.0, None
    for now, estimate in _estimate(model, sums):
        if estimate is None or now < end / 4:
            continue
        if end - now >= LAST:
            errors.append(abs(estimate - (end - now)) / (end - now))
        rise = max(rise, estimate / before if before else 1.0)
        before = estimate
    return Errors(end, errors, rise)


def _estimate(model: TimeLeft, sums: Iterable[Totals]) -> Iterator[tuple[float, float | None]]:
    """Yield each moment with its estimate."""
    for totals in sums:
        work, backlog = (totals.done, totals.left), totals.backlog
        yield totals.seconds, model.estimate(totals.seconds, *work, backlog=backlog, paused=False)


def main(words: Sequence[str]) -> int:
    """Record, or print the errors; return 1 if they are too large."""
    if words:
        for name in words[1:] or MIXES:
            record(name, MIXES[name])
        return 0
    wrong = False
    for first in (False, True):
        found = {file.stem: replay(file, first=first) for file in list_recordings()}
        title = "first run" if first else "after another run"
        _print(f"{title:24} {'seconds':>7} {'median':>7} {'9 of 10':>7} {'rise':>5}")
        for name, errors in found.items():
            shares = f"{median(errors.each):7.0%} {nine_tenths(errors.each):7.0%}"
            _print(f"{name:24} {errors.seconds:7.0f} {shares} {errors.rise:5.2f}")
        every = [error for errors in found.values() for error in errors.each]
        _print(f"{'all':32} {median(every):7.0%} {nine_tenths(every):7.0%}")
        worst = max(nine_tenths(errors.each) for errors in found.values())
        wrong = wrong or median(every) > MEDIAN or worst > NINE_TENTHS
    return int(wrong)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
