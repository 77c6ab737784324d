"""Lends the transport's channels to the workers that send."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mydata_like.core.errors import ServerUnavailableError, TransientError
from mydata_like.core.events import LimitsChanged
from mydata_like.core.ports import Channel, Emit, Transport
from mydata_like.engine.retry import Gate
from mydata_like.engine.workers import Lock, WorkQueue

logger = logging.getLogger(__name__)

# What a staging host says that cannot be reached, or that grants no further session.
UNREACHABLE = "link.refused"
NOT_GRANTED = "channel.refused"
ASK_AGAIN = 30.0  # seconds after which a refused channel is asked for again


class Channels:
    """Channels in use and idle; a server that grants fewer than there are workers is obeyed."""

    def __init__(self, transport: Transport, gate: Gate, emit: Emit) -> None:
        self._transport = transport
        self._gate = gate
        self._emit = emit
        self._idle: WorkQueue[Channel] = WorkQueue(gate.cancel, limit=1000)
        self._opened = 0
        self._opening = 0
        self._lock = Lock()

    @contextmanager
    def borrowed(self) -> Iterator[Channel]:
        """Lend a channel: an idle one, or a new one where the server grants it."""
        channel = self._take()
        try:
            yield channel
        finally:
            self._idle.put(channel)

    def _take(self) -> Channel:
        for ready in self._idle.take_ready(1):
            return ready
        while True:
            opened = self.open_another()
            if opened is not None:
                return opened
            idle = self._idle.poll(ASK_AGAIN)
            if idle is not None:
                return idle

    def open_another(self) -> Channel | None:
        """Open a channel, unless there are as many as there may be."""
        with self._lock:
            if self._opened + self._opening >= self._transport.capacity:
                return None
            self._opening += 1
        channel = None
        try:
            channel = self._gate.call(self._open)
        except TransientError as error:
            logger.info("No further channel: %s", error)
        finally:
            with self._lock:
                self._opening -= 1
        return self._admit(channel)

    def _admit(self, channel: Channel | None) -> Channel | None:
        """Lend a new channel, if the host turns out to be large enough for it.

        How many processors it has is known only when the first channel is open; one that
        was opened meanwhile stays unused then.
        """
        with self._lock:
            if channel is None or (self._opened and self._opened >= self._transport.capacity):
                return None
            self._opened += 1
            return channel

    def _open(self) -> Channel:
        """Open a channel; that none can be opened at all concerns the whole run."""
        try:
            return self._transport.open_channel()
        except TransientError as error:
            if self._opened and error.problem_code == NOT_GRANTED:
                reason = f"the staging host grants no more: {error.message}"
                self._emit(LimitsChanged(channels=self._opened, reason=reason))
                raise
            raise ServerUnavailableError(
                error.message, hint=error.hint, code=error.problem_code
            ) from error
