"""Progress bars on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mydata_like.cli.output import PlainLines, RunOutput
from mydata_like.core.formatting import (
    LIMITS,
    format_duration,
    format_path,
    format_size,
    format_text,
    round_estimate,
)
from mydata_like.engine.progress import ActiveTransfer, RunProgress, Totals
from mydata_like.settings.schema import Settings

REFRESHES = 5  # a second


@contextmanager
def live_bars(
    progress: RunProgress, stream: TextIO, settings: Settings | None
) -> Iterator[RunOutput]:
    """Show progress bars on a terminal: one for each channel, the total, and the sums."""
    console = Console(file=stream, markup=False, highlight=False)
    picture = _Picture(progress)
    with Live(picture, console=console, refresh_per_second=REFRESHES, transient=True) as live:
        above = partial(live.console.print, end="", soft_wrap=True)
        yield PlainLines(above, settings)


class _Picture:
    """Draws the progress of a run."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress

    def __rich__(self) -> Group:
        totals = self._progress.totals
        channels = Table.grid(padding=(0, 1))
        for transfer in self._progress.transfers[:16]:
            channels.add_row(*_transfer_cells(transfer))
        whole = Table.grid()
        to_do = max(1, totals.wanted_bytes)
        sent = min(totals.transferred_bytes, to_do)
        whole.add_row(ProgressBar(total=to_do, completed=sent, width=76))
        measured = self._progress.measured
        limit = LIMITS.get(measured.limit) if measured else None
        lines = (*_sum_lines(totals), f"The limit: {limit}" if limit else "")
        return Group(channels, whole, *map(Text, lines))


def _transfer_cells(transfer: ActiveTransfer) -> tuple[RenderableType, ...]:
    name = format_path(transfer.name.rsplit(b"/", 1)[-1])
    if transfer.files > 1:
        name = f"{transfer.files:,} files"
    bar = ProgressBar(total=max(1, transfer.size), completed=transfer.done, width=30)
    again = f"attempt {transfer.attempt}" if transfer.attempt > 1 else ""
    said = f"retrying soon: {transfer.problem.message}" if transfer.problem else again
    return (
        f"channel {transfer.channel}",
        Text(name[:34]),
        bar,
        format_size(transfer.size),
        Text(format_text(said)),
    )


def _sum_lines(totals: Totals) -> tuple[str, str]:
    remaining = ""
    if totals.remaining is not None and totals.open:
        remaining = f", about {format_duration(round_estimate(totals.remaining))} left"
    return (
        f"{format_size(totals.transferred_bytes)} of {format_size(totals.wanted_bytes)} sent, "
        f"{format_size(totals.byte_rate)}/s, {totals.file_rate:.0f} files/s{remaining}",
        f"{totals.found:,} found = {totals.verified:,} verified + {totals.waiting:,} waiting + "
        f"{totals.skipped:,} skipped + {totals.failed:,} failed + {totals.open:,} open",
    )
