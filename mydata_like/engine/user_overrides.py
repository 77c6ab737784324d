"""Decisions on what a run still sends: the user's on single files, and to send nothing more."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from mydata_like.core.errors import Problem, TransientError, UploaderError
from mydata_like.core.events import FileRetried
from mydata_like.core.formatting import format_path
from mydata_like.core.model import FileRecord, Payload
from mydata_like.core.ports import Channel, Emit
from mydata_like.engine.pipeline import Lock
from mydata_like.engine.send_order import SendOrder, WaitingFile

CANCELLED = Problem(
    "file.cancelled", "The user held this file back.", "It is left for the next run."
)
STOPPING = Problem(
    "run.stopping", "The run ends before this file's turn.", "It is left for the next run."
)
NOTHING_LEFT = Problem(
    "command.nothing-to-retry",
    "There are no failed or cancelled files there that can be sent again now.",
    "The next run sends the rest again.",
)
NO_TRANSFER = Problem(
    "command.no-transfer", "That transfer is not in progress.", "It has ended or never started."
)
KEPT = 10_000  # unsuccessful files that can be sent again in the same run


class CutOffError(TransientError):
    """Sending of a payload was interrupted or prevented by the user."""

    code = CANCELLED.code

    def __init__(self) -> None:
        super().__init__(CANCELLED.message, hint=CANCELLED.hint)


class _SkippedFile(NamedTuple):
    wanted: FileRecord
    outcome: str  # "failed" or "waiting"
    transfer: int  # by which it was not sent


class UserOverrides:
    """The user's decisions in one run; safe to use from any thread.

    A path is a text as in events, below the data directory. The path of a folder stands for all of
    its files, including those found later. Of several decisions, the one for the nearest folder
    counts. The files of an archive are cancelled and sent together. What is lifted before its
    cancellation has taken effect is sent as well.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = Lock()
        self._cancelled: dict[str, bool] = {}
        self._transfers: set[int] = set()  # that have not ended
        self._given_up: set[int] = set()  # active and ended ones
        self._under_way: dict[int, tuple[Payload, Channel]] = {}
        self._cut: set[int] = set()  # the numbers of interrupted channels
        self._left: dict[bytes, _SkippedFile] = {}
        self._again: list[FileRecord] = []
        self._over = False  # nothing more is sent again
        self.order = SendOrder()
        self.finishing = False
        self.failure: UploaderError | None = None  # why the run is incomplete, if not by the user

    def finish(self, failure: UploaderError | None = None) -> None:
        """Send nothing more, except for what is in progress."""
        with self._lock:
            self.finishing = self._over = True
            self.failure = self.failure or failure

    def note(self, failure: UploaderError) -> None:
        """Report this failure at the end of the run; sending continues."""
        with self._lock:
            self.failure = self.failure or failure

    def cancel(self, path: str) -> None:
        """Cancel this path and all below it; an active payload with such a member is interrupted.

        Files that have reached the staging area before are registered.
        """
        with self._lock:
            self._decide(path, cancelled=True)
            self._interrupt(lambda payload: any(map(self._is_cancelled, payload.members)))

    def cancel_transfer(self, number: int) -> Problem | None:
        """Cancel the rest of a transfer; return a problem if that is not possible."""
        with self._lock:
            if number not in self._transfers:
                return NO_TRANSFER
            self._given_up.add(number)
            self._interrupt(lambda payload: payload.id == number)
            return None

    def _interrupt(self, applies: Callable[[Payload], bool]) -> None:
        for number, (payload, channel) in self._under_way.items():
            if applies(payload):
                self._cut.add(number)
                channel.cut()

    def retry(self, path: str) -> Problem | None:
        """Send unsuccessful files at or below this path again, and lift its cancellation.

        Return a problem if that is not possible.
        """
        with self._lock:
            if self._over:
                return NOTHING_LEFT
            lifted = self._lift(path)
            found = self._take_back(lambda left: _has_part_in(left.wanted, path))
            return None if found or lifted else NOTHING_LEFT

    def retry_transfer(self, number: int) -> Problem | None:
        """Send the files of a cancelled transfer after all, except for those cancelled by path.

        Return a problem if that is not possible.
        """
        with self._lock:
            if self._over or number not in self._given_up:
                return NOTHING_LEFT
            self._given_up.remove(number)
            found = self._take_back(
                lambda left: left.transfer == number and not self._is_cancelled(left.wanted)
            )
            return None if found or number in self._transfers else NOTHING_LEFT

    def send_next(self, paths: Sequence[str]) -> None:
        """Send waiting files at or below these paths before all others, in the paths' order.

        This lifts their cancellation.
        """
        with self._lock:
            if not self._over:
                for path in paths:
                    self._lift(path)
                self._take_back(
                    lambda left: (
                        left.outcome == "waiting"
                        and any(_has_part_in(left.wanted, path) for path in paths)
                    )
                )
        self.order.prefer(paths)

    def list_next(self, most: int) -> list[WaitingFile]:
        """Return up to so many of the files that are sent next, in their order."""
        return self.order.list_next(most, self._is_cancelled)

    def list_held(self, most: int) -> list[WaitingFile]:
        """Return up to so many of the files that would be sent next, but are cancelled."""
        return self.order.list_next(most, lambda wanted: not self._is_cancelled(wanted))

    def _take_back(self, applies: Callable[[_SkippedFile], bool]) -> bool:
        """Send unsuccessful files again; return whether there were any to which this applies."""
        found = [key for key, left in self._left.items() if applies(left)]
        for key in found:
            self._send_again(self._left.pop(key))
        return bool(found)

    def _send_again(self, left: _SkippedFile) -> None:
        for file in left.wanted.files:
            self._emit(FileRetried.of(file, left.outcome))
        self._again.append(left.wanted)

    @property
    def made(self) -> bool:
        """Whether any decision may prevent sending a file."""
        return self.finishing or bool(self._cancelled) or bool(self._given_up)

    def find_objection(self, wanted: FileRecord, transfer: int = 0) -> Problem | None:
        """Return why this transfer must not send this file now; None if it may."""
        if self.finishing:
            return STOPPING
        left = transfer in self._given_up or self._is_cancelled(wanted)
        return CANCELLED if left else None

    @contextmanager
    def carrying(self, payload: Payload) -> Iterator[None]:
        """Allow cancelling a transfer in this context, across all of its attempts."""
        with self._lock:
            self._transfers.add(payload.id)
        try:
            yield
        finally:
            with self._lock:
                self._transfers.remove(payload.id)

    @contextmanager
    def sending(self, payload: Payload, channel: Channel) -> Iterator[None]:
        """Allow interrupting a payload in this context; raises `CutOffError` if that happened."""
        with self._lock:
            if self.made and any(self.find_objection(it, payload.id) for it in payload.members):
                raise CutOffError
            self._under_way[channel.number] = payload, channel
        try:
            yield
        except TransientError as error:
            if channel.number in self._cut:
                raise CutOffError from error
            raise
        finally:
            with self._lock:
                del self._under_way[channel.number]
                self._cut.discard(channel.number)

    def keep(self, wanted: FileRecord, outcome: str, transfer: int = 0) -> None:
        """Store a file that the user may retry; `outcome` is the one that was reported.

        A cancelled file that the user has released in the meantime is sent again.
        """
        with self._lock:
            wanted.interrupted = True
            left = _SkippedFile(wanted, outcome, transfer)
            released = outcome == "waiting" and self.find_objection(wanted, transfer) is None
            if released and not self._over:
                self._send_again(left)
            elif len(self._left) < KEPT:
                self._left[wanted.files[0].key] = left

    def take_again(self) -> list[FileRecord]:
        """Return the files that are to be sent again now."""
        with self._lock:
            taken, self._again = self._again, []
            return taken

    def take_last(self) -> list[FileRecord]:
        """Return the files to send again; if there are none, no more are accepted."""
        with self._lock:
            taken, self._again = self._again, []
            self._over = self._over or not taken
            return taken

    def _decide(self, path: str, *, cancelled: bool) -> None:
        path = path.rstrip("/")
        for other in [it for it in self._cancelled if _lies_in(it, path)]:
            del self._cancelled[other]
        self._cancelled[path] = cancelled

    def _lift(self, path: str) -> bool:
        """Lift a cancellation; return whether there was one at, above or below the path."""
        path = path.rstrip("/")
        before = [it for it, cancelled in self._cancelled.items() if cancelled]
        if not any(_lies_in(it, path) or _lies_in(path, it) for it in before):
            return False
        self._decide(path, cancelled=False)
        return True

    def _is_cancelled(self, wanted: FileRecord) -> bool:
        return any(map(self._is_left_out, wanted.keys))

    def _is_left_out(self, key: bytes) -> bool:
        path = format_path(key)
        while path not in self._cancelled and "/" in path:
            path = path.rpartition("/")[0]
        return self._cancelled.get(path, False)


def _has_part_in(wanted: FileRecord, path: str) -> bool:
    return any(_lies_in(format_path(key), path) for key in wanted.keys)


def _lies_in(path: str, folder: str) -> bool:
    folder = folder.rstrip("/")
    return path == folder or path.startswith(folder + "/")
