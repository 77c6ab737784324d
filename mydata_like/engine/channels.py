"""Lends the transport's channels to the workers that send."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from mydata_like.core.errors import Cancelled, ServerUnavailableError, TransientError
from mydata_like.core.events import LimitsChanged
from mydata_like.core.model import Payload
from mydata_like.core.ports import Channel, Emit, Transport
from mydata_like.engine.bandwidth import Bandwidth
from mydata_like.engine.climb import Climb
from mydata_like.engine.gauge import Gauge, Progress
from mydata_like.engine.queues import WorkQueue
from mydata_like.engine.retry import Gate
from mydata_like.engine.workers import Condition

logger = logging.getLogger(__name__)

# What a staging host says that cannot be reached, or that grants no further session.
UNREACHABLE = "link.refused"
NOT_GRANTED = "channel.refused"
ASK_AGAIN = 30.0  # seconds after which a refused channel is asked for again
STALE = timedelta(minutes=2)  # after which an idle channel may have died without our hearing of it
GLANCE = 0.25  # seconds after which a worker looks whether it may go to work


class Channels:
    """Channels in use and idle, and how many of them there are.

    At most `limit` are open at once: a fixed number, what a search finds, or with 0 as many as
    this computer and the staging host can bear. Only so many workers take payloads, so that each
    gets a channel soon. One that was idle for long, by the clock on the wall since the computer
    may have slept, is replaced.
    """

    def __init__(
        self,
        transport: Transport,
        gate: Gate,
        emit: Emit,
        bandwidth: Bandwidth,
        limit: int | Climb = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.gauge = Gauge(gate.clock)
        self._transport = transport
        self._gate = gate
        self._emit = emit
        self._idle: WorkQueue[tuple[Channel, datetime]] = WorkQueue(gate.cancel, limit=1000)
        self._limit = limit
        self._at_work = 0
        self._first = 0  # who is to have a channel before anybody else
        self._opened = 0
        self._opening = 0
        self._granted = 0  # how many the host granted when it refused another
        self._granted_until = 0.0
        self._lock = Condition()

    @property
    def limit(self) -> int:
        """How many channels work at once."""
        limit = self._limit.channels if isinstance(self._limit, Climb) else self._limit
        return min(limit, self.ceiling) if limit else self.ceiling

    @property
    def ceiling(self) -> int:
        """How many channels this computer and the staging host can bear."""
        capacity = self._transport.capacity
        refused = self._gate.clock.monotonic() < self._granted_until
        return min(capacity, self._granted) if refused else capacity

    @property
    def round_trip(self) -> float:
        """How many seconds the way to the staging host and back takes, 0 while unknown."""
        return self._transport.round_trip

    @property
    def resting(self) -> bool:
        """Whether nothing new is sent now, for reasons that no channel has."""
        return self._gate.waits or self._gate.cancel.is_set()

    def change_limit(self, limit: int | Climb) -> None:
        """Let so many channels work from now on; those too many end with their payloads."""
        self._limit = limit
        self._follow_limit()

    def search(self) -> str:
        """Let the search for a good number go on; return why it went to another one, if it did."""
        climb = self._limit
        if not isinstance(climb, Climb):
            return ""
        if self.resting:
            climb.interrupt()
            return ""
        before, ceiling = climb.channels, self.ceiling
        reason = climb.begin(self.round_trip, ceiling) or climb.look(
            self.gauge.read(), ceiling, self.bandwidth.total
        )
        if climb.channels != before:
            self._follow_limit()
        return reason

    def _follow_limit(self) -> None:
        """Wake workers that may go to work now, and close idle channels that are too many."""
        with self._lock:
            self._lock.notify_all()
        for idle, _ in self._idle.take_ready(1000):
            self._return(idle)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until one more worker may take a payload, and be at work while this lasts."""
        with self._lock:
            while self._at_work >= self.limit or self._first:
                if self._gate.cancel.is_set():
                    raise Cancelled
                self._lock.wait(GLANCE)
            self._at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= 1
                self._lock.notify()

    @contextmanager
    def borrowed(self) -> Iterator[Channel]:
        """Lend a channel: an idle one, or a new one where the server grants it."""
        channel = self._take()
        try:
            with self.gauge.one_at_work():
                yield channel
        finally:
            self._return(channel)

    @contextmanager
    def borrowed_first(self, patience: float) -> Iterator[Channel | None]:
        """Lend a channel for what takes a moment, before further payloads; None without one.

        While this waits, for so many seconds, no other worker takes a payload.
        """
        with self._lock:
            self._first += 1
        try:
            channel = self._take_fresh() or self.open_another()
            if channel is None and (idle := self._idle.poll(patience)):
                channel = idle[0]
        finally:
            with self._lock:
                self._first -= 1
                self._lock.notify_all()
        try:
            yield channel
        finally:
            if channel is not None:
                self._return(channel)

    def ensure_open(self, channel: Channel) -> None:
        """Let a channel stand that has been lost; wait at the gate while none can be had.

        Whoever looks there for all others is to be quick, which a payload is not.
        """

        def reach() -> None:
            try:
                channel.open()
            except TransientError as error:
                if error.problem_code != UNREACHABLE:
                    raise
                raise _unavailable(error) from error

        self._gate.call(reach)

    @contextmanager
    def carrying(self, channel: Channel, payload: Payload) -> Iterator[Callable[[int], None]]:
        """Give a channel its share of the bandwidth for a payload; yield what counts its bytes.

        That is to be told how many of them have gone by now.
        """
        progress = Progress(self.gauge, payload)
        with self.bandwidth.used_by(channel) as meter:

            def reach(size: int) -> None:
                meter.reach(size)
                progress.reach(size)

            yield reach

    def open_another(self) -> Channel | None:
        """Open a channel, unless there are as many as there may be."""
        with self._lock:
            if self._opened + self._opening >= self.limit:
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

    def _take_fresh(self) -> Channel | None:
        """Return an idle channel, unless it has been that for long."""
        for ready, since in self._idle.take_ready(1):
            if self._gate.clock.now() - since < STALE:
                return ready
            with self._lock:
                self._opened -= 1
            ready.close()
        return None

    def _take(self) -> Channel:
        while True:
            opened = self._take_fresh() or self.open_another()
            if opened is not None:
                return opened
            idle = self._idle.poll(ASK_AGAIN)
            if idle is not None:
                return idle[0]

    def _return(self, channel: Channel) -> None:
        """Keep a channel for the next payload, or close it where there are too many."""
        with self._lock:
            surplus = self._opened > self.limit
            self._opened -= surplus
        if surplus:
            channel.close()
        else:
            with suppress(Cancelled):  # a run that ends has no next payload
                self._idle.put((channel, self._gate.clock.now()))

    def _admit(self, channel: Channel | None) -> Channel | None:
        """Lend a new channel, if the host turns out to be large enough for it.

        How many processors it has is known only when the first channel is open; one that
        was opened meanwhile stays unused then.
        """
        with self._lock:
            if channel is None:
                return None
            surplus = self._opened > 0 and self._opened >= self.limit
            self._opened += not surplus
        if surplus:
            channel.close()
            return None
        return channel

    def _open(self) -> Channel:
        """Open a channel; that none can be opened at all concerns the whole run."""
        try:
            return self._transport.open_channel()
        except TransientError as error:
            if self._opened and error.problem_code == NOT_GRANTED:
                self._note_refusal(f"the staging host grants no more: {error.message}")
                raise
            raise _unavailable(error) from error

    def _note_refusal(self, reason: str) -> None:
        """Make do with what is open, or about to be, until it is time to ask again."""
        with self._lock:
            self._granted = self._opened + self._opening - 1
            self._granted_until = self._gate.clock.monotonic() + ASK_AGAIN
        bandwidth = self.bandwidth.total
        self._emit(LimitsChanged(channels=self.limit, bandwidth=bandwidth, reason=reason))


def _unavailable(error: TransientError) -> ServerUnavailableError:
    return ServerUnavailableError(error.message, hint=error.hint, code=error.problem_code)
