"""Live bars on a terminal; only a run that a person watches there needs what draws them."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mydata_like.cli.report import PlainLines, Report
from mydata_like.core.format import LIMITS, format_duration, format_path, format_size, format_text
from mydata_like.engine.tally import Tally, Travel
from mydata_like.engine.totals import Totals

REFRESHES = 5  # a second


@contextmanager
def live_bars(tally: Tally, stream: TextIO) -> Iterator[Report]:
    """Show live bars on a terminal: per channel, in all, and the sums."""
    console = Console(file=stream, markup=False, highlight=False)
    picture = _Picture(tally)
    with Live(picture, console=console, refresh_per_second=REFRESHES, transient=True) as live:
        above = partial(live.console.print, end="", soft_wrap=True)
        yield PlainLines(above)


class _Picture:
    """Draws the tally anew whenever it is asked to."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def __rich__(self) -> Group:
        totals = self._tally.totals
        channels = Table.grid(padding=(0, 1))
        for travel in self._tally.travels[:16]:
            channels.add_row(*_travel_cells(travel))
        whole = Table.grid()
        to_do = max(1, totals.wanted_bytes)
        whole.add_row(ProgressBar(total=to_do, completed=min(totals.sent_bytes, to_do), width=76))
        measured = self._tally.measured
        limit = LIMITS.get(measured.limit) if measured else None
        lines = (*_sum_lines(totals), f"The limit: {limit}" if limit else "")
        return Group(channels, whole, *map(Text, lines))


def _travel_cells(travel: Travel) -> tuple[RenderableType, ...]:
    name = format_path(travel.name.rsplit(b"/", 1)[-1])
    if travel.files > 1:
        name = f"{travel.files:,} files"
    bar = ProgressBar(total=max(1, travel.size), completed=travel.done, width=30)
    again = f"attempt {travel.attempt}" if travel.attempt > 1 else ""
    said = f"again soon: {travel.problem.message}" if travel.problem else again
    return (
        f"channel {travel.channel}",
        Text(name[:34]),
        bar,
        format_size(travel.size),
        Text(format_text(said)),
    )


def _sum_lines(totals: Totals) -> tuple[str, str]:
    remaining = "" if totals.remaining is None else f", {format_duration(totals.remaining)} left"
    return (
        f"{format_size(totals.sent_bytes)} of {format_size(totals.wanted_bytes)} sent, "
        f"{format_size(totals.byte_rate)}/s, {totals.file_rate:.0f} files/s{remaining}",
        f"{totals.found:,} found = {totals.verified:,} verified + {totals.waiting:,} waiting + "
        f"{totals.skipped:,} skipped + {totals.failed:,} failed + {totals.open:,} open",
    )
