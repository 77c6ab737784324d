"""What transports have in common that send file by file, each file in requests of its own."""

from abc import ABC, abstractmethod
from itertools import count

from mydata_like.core.channel_time import NOTHING_SPENT
from mydata_like.core.errors import TransientError
from mydata_like.core.events import ChannelChanged
from mydata_like.core.model import FileRecord, Payload
from mydata_like.core.ports import Channel, Emit, Progress, SentFile, UnsentFile
from mydata_like.core.token_bucket import TokenBucket


class PayloadProgress:
    """Reports the progress of each member as that of the whole payload."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._before = self._omitted_before = 0  # of the members before this one
        self._omitted = 0

    def __call__(self, size: int, omitted: int = 0, /) -> None:
        self._omitted = self._omitted_before + omitted
        self._progress(self._before + size, self._omitted)

    def end_member(self, size: int) -> None:
        """Count further calls for the next member; `size` is that of this one."""
        self._before += size
        self._omitted_before = self._omitted


class FileTransport(ABC):
    """A bounded number of channels to one host, each sending one file at a time."""

    spent = NOTHING_SPENT  # not measured
    mark = b""
    can_replace = True
    rung: str  # the kind of access, as events name it

    def __init__(self, host: str, channels: int, emit: Emit | None) -> None:
        self.capacity = channels
        self.closed = False
        self._host = host
        self._emit = emit
        self._numbers = count(1)

    @abstractmethod
    def make_channel(self, number: int) -> Channel:
        """Return a channel, which connects when it sends."""

    @abstractmethod
    def cancelled(self) -> TransientError:
        """Return the error for a transfer that was cancelled here."""

    def prepare(self) -> None:  # noqa: B027 - nothing to do for any transport of this kind
        """Do nothing: channels open immediately."""

    def open_channel(self, wanted: int = 0) -> Channel:
        """Return a new channel; raises `TransientError` after `close`."""
        if self.closed:
            raise self.cancelled()
        channel = self.make_channel(next(self._numbers))
        self.report(channel.number, "open")
        return channel

    def report(self, number: int, state: str) -> None:
        """Report a channel's change of state."""
        if self._emit:
            host, rung = self._host, self.rung
            self._emit(ChannelChanged(channel=number, state=state, host=host, rung=rung))

    def close(self) -> None:
        """Make sends in progress raise `TransientError` at their next bytes."""
        self.closed = True


class FileChannel(ABC):
    """A channel that sends the members of payloads one after another."""

    def __init__(self, transport: FileTransport, number: int) -> None:
        self.number = number
        self._opened_by = transport
        self._rate = TokenBucket(self.check_open)
        self._cut = False

    @abstractmethod
    def send_file(
        self, index: int, wanted: FileRecord, progress: Progress
    ) -> SentFile | UnsentFile:
        """Send one member; return its outcome, or raise what ends the whole payload."""

    def open(self) -> None:  # noqa: B027 - nothing to do for any channel of this kind
        """Do nothing: connections are opened by requests."""

    def limit(self, rate: float) -> None:
        """Limit sending to this rate, in bytes a second, from now on."""
        self._rate.limit(rate)

    def cut(self) -> None:
        """Cancel the current file and the rest of its payload."""
        self._cut = True

    def close(self) -> None:
        """Close the channel; its connections stay open for the others."""
        self._opened_by.report(self.number, "closed")

    @property
    def is_cut(self) -> bool:
        """Whether sending is to end."""
        return self._cut or self._opened_by.closed

    def check_open(self) -> None:
        """Raise `TransientError` if sending is to end."""
        if self.is_cut:
            raise self._opened_by.cancelled()

    def send(self, payload: Payload, progress: Progress) -> list[SentFile | UnsentFile]:
        """Send the members one after another; each has its own outcome."""
        fates: list[SentFile | UnsentFile] = []
        whole = PayloadProgress(progress)
        try:
            for index, wanted in enumerate(payload.members):
                fates.append(self.send_file(index, wanted, whole))
                whole.end_member(wanted.file.size)
        finally:
            self._cut = False
        return fates
