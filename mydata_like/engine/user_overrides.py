"""What a person decided about single files while a run goes: to leave them, to send them again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mydata_like.core.errors import Problem, TransientError
from mydata_like.core.events import FileRetried
from mydata_like.core.formatting import format_path
from mydata_like.core.model import FileToSend, LocalFile, Payload
from mydata_like.core.ports import Channel, Emit
from mydata_like.engine.pipeline import Lock

CANCELLED = Problem(
    "file.cancelled", "A person cancelled this file.", "It is left for the next run."
)
STOPPING = Problem(
    "run.stopping", "The run ends before this file's turn.", "It is left for the next run."
)
NOTHING_LEFT = Problem(
    "command.nothing-to-retry",
    "Nothing has failed or was cancelled there that could be sent again now.",
    "What this run cannot take up again is taken by the next one.",
)
NO_TRANSFER = Problem(
    "command.no-transfer", "That transfer is not under way.", "It has ended, or never was."
)
KEPT = 10_000  # files without success that can be sent again in the same run


class CutOffError(TransientError):
    """A payload was not sent, or not to its end, because a person so decided."""

    code = CANCELLED.code

    def __init__(self) -> None:
        super().__init__(CANCELLED.message, hint=CANCELLED.hint)


class _SkippedFile(NamedTuple):
    wanted: FileToSend
    outcome: str  # "failed" or "waiting"


class UserOverrides:
    """The choices made in one run; safe to use from any thread.

    A path is a text as events print it, below the data directory; that of a folder stands for
    all in it, also for what is found there later. Of several choices the one for the nearest
    folder counts. The files of an archive are left and sent together.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._lock = Lock()
        self._cancelled: dict[str, bool] = {}
        self._transfers: set[int] = set()  # which have not ended
        self._given_up: set[int] = set()  # among these, and among those that have
        self._under_way: dict[int, tuple[Payload, Channel]] = {}
        self._left: dict[bytes, _SkippedFile] = {}
        self._again: list[FileToSend] = []
        self._over = False  # nothing is sent again any more
        self.finishing = False

    def finish(self) -> None:
        """Send nothing more but what is under way."""
        with self._lock:
            self.finishing = self._over = True

    def cancel(self, path: str) -> None:
        """Send nothing at or below this path; a payload under way with such a member is cut off.

        What has reached the staging area before is registered.
        """
        with self._lock:
            self._decide(path, cancelled=True)
            for payload, channel in self._under_way.values():
                if any(map(self._is_cancelled, payload.members)):
                    channel.cut()

    def cancel_transfer(self, number: int) -> Problem | None:
        """Send nothing more of a transfer; return why that is not possible, if it is not."""
        with self._lock:
            if number not in self._transfers:
                return NO_TRANSFER
            self._given_up.add(number)
            for payload, channel in self._under_way.values():
                if payload.id == number:
                    channel.cut()
            return None

    def retry(self, path: str) -> Problem | None:
        """Send again what was left at or below this path, and lift its cancellation.

        Return why that is not possible, if it is not.
        """
        with self._lock:
            if self._over:
                return NOTHING_LEFT
            lifted = self._lift(path)
            found = [key for key, left in self._left.items() if _has_part_in(left.wanted, path)]
            for key in found:
                wanted, outcome = self._left.pop(key)
                for file in wanted.files:
                    self._emit(FileRetried.of(file, outcome))
                self._again.append(wanted)
            return None if found or lifted else NOTHING_LEFT

    @property
    def made(self) -> bool:
        """Whether there may be an objection to any file."""
        return self.finishing or bool(self._cancelled) or bool(self._given_up)

    def find_objection(self, wanted: FileToSend, transfer: int = 0) -> Problem | None:
        """Return why this file is not to be sent now, by this transfer, if it is not."""
        if self.finishing:
            return STOPPING
        left = transfer in self._given_up or self._is_cancelled(wanted)
        return CANCELLED if left else None

    @contextmanager
    def carrying(self, payload: Payload) -> Iterator[None]:
        """Let a transfer be cancelled while this lasts, however many attempts it takes."""
        with self._lock:
            self._transfers.add(payload.id)
        try:
            yield
        finally:
            with self._lock:
                self._transfers.remove(payload.id)

    @contextmanager
    def sending(self, payload: Payload, channel: Channel) -> Iterator[None]:
        """Let a payload be cut off while this lasts; raises `CutOffError` where it was."""
        with self._lock:
            if self.made and any(self.find_objection(it, payload.id) for it in payload.members):
                raise CutOffError
            self._under_way[channel.number] = payload, channel
        try:
            yield
        except TransientError as error:
            cut = payload.id in self._given_up
            if cut or (self._cancelled and any(map(self._is_cancelled, payload.members))):
                raise CutOffError from error
            raise
        finally:
            with self._lock:
                del self._under_way[channel.number]

    def keep(self, wanted: FileToSend, outcome: str) -> None:
        """Keep what a person may want to be sent again; `outcome` is what was told of it."""
        with self._lock:
            if len(self._left) < KEPT:
                self._left[wanted.files[0].key] = _SkippedFile(wanted, outcome)

    def take_again(self) -> list[FileToSend]:
        """Return what is to be sent again by now."""
        with self._lock:
            taken, self._again = self._again, []
            return taken

    def take_last(self) -> list[FileToSend]:
        """Return what is to be sent again; where nothing is, nothing will be from now on."""
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
        """Take a cancellation back; return whether there was one at, above or below the path."""
        path = path.rstrip("/")
        before = [it for it, cancelled in self._cancelled.items() if cancelled]
        if not any(_lies_in(it, path) or _lies_in(path, it) for it in before):
            return False
        self._decide(path, cancelled=False)
        return True

    def _is_cancelled(self, wanted: FileToSend) -> bool:
        return any(map(self._is_left_out, wanted.files))

    def _is_left_out(self, file: LocalFile) -> bool:
        path = format_path(file.key)
        while path not in self._cancelled and "/" in path:
            path = path.rpartition("/")[0]
        return self._cancelled.get(path, False)


def _has_part_in(wanted: FileToSend, path: str) -> bool:
    return any(_lies_in(format_path(file.key), path) for file in wanted.files)


def _lies_in(path: str, folder: str) -> bool:
    folder = folder.rstrip("/")
    return path == folder or path.startswith(folder + "/")
