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
from mydata_like.core.events import Event, LimitsChanged, RunProgressed
from mydata_like.demo.middleware import Delay, Fault
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.progress import RunProgress, Totals
from mydata_like.engine.time_left import TimeLeft
from mydata_like.hostos.clock import SystemClock
from tests.faults.tcpproxy import TcpProxy
from tests.site import QUICK, Site, open_site

FOLDER = Path(__file__).parent / "recordings"
SPACING = 1.0  # seconds between recorded sums
SUMS = (
    *("seconds", "found", "found_bytes", "known", "verified", "wanted", "wanted_bytes"),
    *("waiting", "skipped", "failed", "sent", "transferred_bytes", "transferred"),
)
FIELDS = (*SUMS, "limit")  # the last in bytes a second, 0 for none; older recordings lack it
LAST = 3.0  # seconds before the end, in which nobody needs an estimate
FIRST = 10.0  # seconds, or a quarter of the run, in which an estimate may be a guess, as after each
# change of the line, which shows only in what is sent then
MEDIAN = 0.25  # of the errors of all runs after that
NINE_TENTHS = 0.60  # of those of each run
KB, MB = 1_000, 1_000_000


class Mix(NamedTuple):
    """Files by folder, and what slows down the run."""

    files: Sequence[tuple[str, int, int]]  # dataset folder, number, size
    settings: Sequence[str] = ()
    record: float = 0.0  # seconds for each request that creates records
    before: int = 0  # of the folders, which an earlier run uploads whole; a sixth of all others
    changes: Sequence[tuple[float, float]] = ()  # seconds, and the bandwidth in MB/s from then on
    line: Sequence[tuple[float, float]] = ()  # the same of the line, which the program cannot know
    # Of the earlier run, if it was another kind of run:
    earlier_files: Sequence[tuple[str, int, int]] = ()
    earlier_settings: Sequence[str] = ()


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
    "faster than before": Mix(
        [("a/a", 30, 15 * MB)],
        ["limits.bandwidth=15"],
        earlier_files=[("b/a", 1, 8 * MB)],
        earlier_settings=["limits.bandwidth=1"],
    ),
    "limit lowered": Mix(
        [("a/a", 30, 5 * MB)],
        ["limits.bandwidth=20"],
        changes=[(4.0, 2.0)],
        earlier_files=[("b/a", 10, 10 * MB)],
        earlier_settings=["limits.bandwidth=20"],
    ),
    "tiny after large": Mix(
        [("a/a", 60_000, KB)],
        earlier_files=[("b/a", 2, 5 * MB)],
        earlier_settings=["limits.bandwidth=1"],
    ),
    "line slower and faster": Mix(
        [("a/a", 24, 10 * MB)],
        ["transfer.channels=1"],
        line=[(0.0, 6.0), (15.0, 1.5), (45.0, 6.0)],
    ),
}


def record(name: str, mix: Mix) -> None:
    """Run the real command over a mix and keep its sums."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_site(Path(folder) / "site") as site,
        TcpProxy(site.sshd.port) as proxy,
    ):
        if mix.line:  # one connection: the proxy limits each
            login = site.sshd.username, site.sshd.host, proxy.port, (site.sshd.fingerprint,)
            site.server.set_address(ScpAddress(*login))
        if mix.record:
            slow = Delay(mix.record)
            site.server.faults.add(Fault(action=slow, method="PATCH", path="/$", count=None))
        same = [(dataset, max(1, count // 6), size) for dataset, count, size in mix.files]
        for dataset, count, size in mix.earlier_files or same:
            _write(site.data / "earlier" / dataset, count, size)
        for dataset, count, size in mix.files[: mix.before]:
            _write(site.data / dataset, count, size)
        settings = mix.earlier_settings or mix.settings
        before = mix._replace(settings=settings, changes=(), line=mix.line[:1])
        earlier = _run(site, before, proxy)
        for dataset, count, size in mix.files[mix.before :]:
            _write(site.data / dataset, count, size)
        sums = _run(site, mix, proxy)
    FOLDER.mkdir(exist_ok=True)
    kept = {"fields": FIELDS, "line": mix.line, "earlier": earlier, "sums": sums}
    text = json.dumps(kept, separators=(",", ":"))
    file = FOLDER / f"{name.replace(',', '').replace(' ', '-')}.json"
    file.write_text(text.replace("],[", "],\n[") + "\n")
    _print(f"{name}: {sums[-1][0]:.0f} s, {len(sums)} sums")


def _write(folder: Path, count: int, size: int) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number:05}.raw").write_bytes(random.randbytes(size))


def _run(site: Site, mix: Mix, proxy: TcpProxy) -> list[list[float]]:
    """Run in this process; return the sums of each second."""
    lines: list[list[float]] = []
    changes, line = list(mix.changes), list(mix.line)
    limit = 0.0
    progress, cancel = RunProgress(SystemClock()), CancelFlag()

    def watch(event: Event) -> None:
        nonlocal limit
        if isinstance(event, LimitsChanged):
            limit = event.bandwidth
        if not isinstance(event, RunProgressed):
            return
        totals = progress.totals
        sums = [*(round(getattr(totals, field), 2) for field in SUMS), limit]
        while line and totals.seconds >= line[0][0]:
            proxy.bandwidth = line.pop(0)[1] * MB
        if not lines or sums[0] - lines[-1][0] >= SPACING or not totals.open:
            lines.append(sums)
        if changes and totals.seconds > changes[0][0]:
            command = {"command": "set_bandwidth", "bandwidth": changes.pop(0)[1] * MB}
            controller.handle(json.dumps(command).encode())

    controller = CommandHandler(cancel, watch)
    request = RunRequest(settings=load_settings(site.config, (*QUICK, *mix.settings)).settings)
    request = replace(request, config=site.config)
    observer = RunObserver(emit=watch, cancel=cancel, progress=progress, controller=controller)
    with open_run(request, observer) as run:
        assert run.execute().exit_code == 0
    return lines


class Errors(NamedTuple):
    """The errors of a run's estimates after its beginning, as shares of the true time."""

    seconds: float  # of the run
    each: list[float]
    rise: float  # the largest factor from one estimate to the next


def nine_tenths(errors: Sequence[float]) -> float:
    """Return the error that nine tenths of all errors do not exceed."""
    return quantiles(errors, n=10)[-1]


def list_recordings() -> list[Path]:
    """Return the files of all recordings."""
    return sorted(FOLDER.glob("*.json"))


def _read_moment(line: Sequence[float]) -> tuple[Totals, float]:
    """Return the sums of a recorded moment, and the limit; the run sent all bytes itself, once."""
    *sums, limit = [*line, 0.0][: len(FIELDS)]
    totals = Totals(**dict(zip(SUMS, sums, strict=True)))
    totals.carried_bytes, totals.carried = totals.transferred_bytes, totals.transferred
    return totals, limit


def replay(file: Path, *, first: bool = False) -> Errors:
    """Estimate again, at each moment of a recording, as the first run or with an earlier one."""
    recording = json.loads(file.read_text())
    assert tuple(recording["fields"]) in (SUMS, FIELDS)
    earlier, sums = ([_read_moment(line) for line in recording[it]] for it in ("earlier", "sums"))
    history = None
    if not first:
        history = TimeLeft()
        list(_estimate(history, earlier))
        history = history.measured
    model = TimeLeft()
    model.history = history
    end = sums[-1][0].seconds
    errors, rise, before = [], 1.0, None
    for totals, estimate in _estimate(model, sums):
        now = totals.seconds
        line = recording.get("line", ())
        changed = any(moment and 0 <= now - moment < FIRST for moment, _ in line)
        if estimate is None or now < min(FIRST, end / 4) or changed:
            before = None
            continue
        truth = _find_truth(totals, end, line)
        if end - now >= LAST:
            errors.append(abs(estimate - truth) / truth)
        rise = max(rise, estimate / before if before else 1.0)
        before = estimate
    return Errors(end, errors, rise)


def _find_truth(totals: Totals, end: float, line: Sequence[tuple[float, float]]) -> float:
    """Return the seconds left; before a line changes again, what it were if it stayed as it is."""
    later = [moment for moment, _ in line if moment > totals.seconds]
    if not later:
        return end - totals.seconds
    rate = [each for moment, each in line if moment <= totals.seconds][-1]
    return totals.left.bytes / (rate * MB)


def _estimate(
    model: TimeLeft, moments: Iterable[tuple[Totals, float]]
) -> Iterator[tuple[Totals, float | None]]:
    """Yield the sums of each moment with its estimate."""
    for sums, limit in moments:
        work, backlog = (sums.done, sums.left), sums.backlog
        yield (
            sums,
            model.estimate(sums.seconds, *work, backlog=backlog, paused=False, limit=limit),
        )


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
