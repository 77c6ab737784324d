"""What shows the events of a run on standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mydata_like.cli.output import EventLines, PlainLines, RunOutput, Shape
from mydata_like.cli.terminal import drawing_stream
from mydata_like.engine.progress import RunProgress
from mydata_like.settings.schema import Settings


@contextmanager
def open_report(
    shape: Shape, progress: RunProgress, settings: Settings | None = None, *, dry_run: bool
) -> Iterator[RunOutput]:
    """Yield what shows the events of a run on standard output."""
    if shape in (Shape.EVENTS, Shape.BRIEF):
        yield EventLines(sys.stdout, brief=shape is Shape.BRIEF, dry_run=dry_run)
    elif shape is Shape.JSON:
        yield PlainLines(sys.stderr.write, settings)
    elif sys.stdout.isatty():
        from mydata_like.cli.progress_bars import (
            live_bars,  # here, since a run without a terminal needs none
        )

        with live_bars(progress, drawing_stream(sys.stdout), settings) as report:
            yield report
    else:
        yield PlainLines(sys.stdout.write, settings)
