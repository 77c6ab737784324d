"""The events of `get`: those of a run, with paths below the target folder."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    ChannelChanged,
    Event,
    FileFailed,
    FilesSeen,
    FileVerified,
    FileWanted,
    FolderFailed,
    RunProgressed,
    RunStarted,
    TransferFinished,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
)
from mydata_like.core.ports import Emit
from mydata_like.engine.pipeline import Lock, repeated
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.run import REPORT_INTERVAL
from mydata_like.hostos.clock import SystemClock
from mydata_like.transfer.folder.received_files import WantedFile

TOLD = 0.1  # seconds between events about the bytes of a transfer


class GetEvents:
    """Passes on what a `get` does, from any thread."""

    def __init__(self, emit: Emit | None) -> None:
        self._emit = emit
        self._clock = SystemClock()
        self._progress = RunProgress(self._clock)
        self._reported: RunProgressed | None = None
        self._run = str(uuid.uuid4())
        self._lock = Lock()
        self._numbers = count(1)

    def tell(self, *events: Event) -> None:
        """Count and pass on events."""
        if self._emit:
            self._progress.add_all(events)
            for event in events:
                self._emit(event)

    def start(self, target: bytes, files: int, size: int, *, dry_run: bool) -> None:
        """Tell that it begins, and what it has found."""
        now = self._clock.now()
        self.tell(
            RunStarted(run=self._run, at=now, data_directory=target, dry_run=dry_run, reason="get"),
            FilesSeen(folder=b"", files=files, bytes=size),
        )

    def want(self, file: WantedFile, size_before: int | None) -> None:
        """Tell that a file is to be fetched, perhaps to replace one of another size or content."""
        changed = size_before is not None
        size, before = file.size, size_before or 0
        self.tell(FileWanted(path=file.place, size=size, changed=changed, size_before=before))

    def settle(self, file: WantedFile, problem: Problem | None, *, here: bool) -> None:
        """Tell that a file is here, or why not."""
        if problem:
            self.tell(FileFailed(path=file.place, size=file.size, problem=problem))
        else:
            path, size, checksum = file.place, file.size, file.checksum
            self.tell(FileVerified(path=path, size=size, checksum=checksum, known=here))

    @contextmanager
    def channel(self, number: int, host: str) -> Iterator[None]:
        """Tell that a session is open in this context."""
        self.tell(ChannelChanged(channel=number, state="open", host=host))
        try:
            yield
        finally:
            self.tell(ChannelChanged(channel=number, state="closed", host=host))

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Tell the sums while in this context, and in the end."""
        with repeated(self._report, REPORT_INTERVAL):
            yield
        self._report()

    def _report(self) -> None:
        progress = self._progress.progress()
        before, self._reported = self._reported, replace(progress, seconds=0.0)
        if self._reported != before:
            self.tell(progress)

    @contextmanager
    def transfer(self, channel: int, files: Sequence[WantedFile]) -> "Iterator[IncomingTransfer]":
        """Yield what tells of files that one session fetches."""
        with self._lock:
            number = next(self._numbers)
        size = sum(it.size for it in files)
        transfer = IncomingTransfer(self, number, channel, files[0].place, len(files), size)
        try:
            yield transfer
        finally:
            transfer.end()

    def finish(self, others: Sequence[Problem], problem: Problem | None) -> None:
        """Tell the end, and before it the problems that are of no single file."""
        self.tell(*(FolderFailed(path=b"", problem=it) for it in others))
        self.tell(self._progress.summary(self._run, self._clock.now(), problem))


@dataclass(slots=True)
class IncomingTransfer:
    """The files that a session fetches together, of `size` bytes; one thread uses it.

    `moved` bytes have come. Of these, `omitted` did not have to be fetched in this attempt. The
    files that are here now have `arrived` with `arrived_size` bytes.
    """

    events: GetEvents
    number: int
    channel: int
    name: bytes
    files: int
    size: int
    attempt: int = 0
    moved: int = 0
    omitted: int = 0
    arrived: int = 0
    arrived_size: int = 0
    told: float = 0.0  # monotonic
    begun: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Tell of the next attempt, which continues what the one before has fetched."""
        self.attempt += 1
        self.begun, self.omitted = time.monotonic(), self.moved
        self.events.tell(
            TransferStarted(
                transfer=self.number,
                channel=self.channel,
                name=self.name,
                files=self.files,
                bytes=self.size,
                attempt=self.attempt,
            )
        )
        self._tell()

    def move(self, size: int, *, omitted: bool) -> None:
        """Count bytes; what is fetched once more, after wrong bytes, counts once."""
        size = min(size, self.size - self.moved)
        self.moved += size
        self.omitted += size * omitted
        if time.monotonic() - self.told >= TOLD:
            self._tell()

    def _tell(self) -> None:
        self.told = time.monotonic()
        number, channel = self.number, self.channel
        moved, omitted = self.moved, self.omitted
        self.events.tell(
            TransferProgressed(transfer=number, channel=channel, bytes=moved, omitted=omitted)
        )

    def retry(self, problem: Problem, delay: float) -> None:
        """Tell that an attempt has failed."""
        number, channel = self.number, self.channel
        self.events.tell(
            TransferRetried(transfer=number, channel=channel, problem=problem, delay=delay)
        )

    def end(self) -> None:
        """Tell what has arrived."""
        self._tell()
        self.events.tell(
            TransferFinished(
                transfer=self.number,
                channel=self.channel,
                files=self.arrived,
                bytes=self.arrived_size,
                seconds=time.monotonic() - self.begun,
            )
        )
