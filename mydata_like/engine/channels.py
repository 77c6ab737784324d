"""Lends the transport's channels to the workers that send."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf

from mydata_like.core.errors import Cancelled, ServerUnavailableError, TransientError
from mydata_like.core.events import LimitsChanged
from mydata_like.core.model import Payload
from mydata_like.core.ports import Channel, Clock, Emit, Transport
from mydata_like.engine.channel_tuner import ChannelTuner, ThroughputMeter, TransferProgress
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Condition, Lock, WorkQueue

HUNGRY = 0.75  # of its share; who uses that much could use more
GROWTH = 1.3  # what the others are left, for more than they use now
LEAST = 0.02  # of the total, for who uses next to nothing
NOTABLE = 0.01  # changes of a share below this part of it are not passed on


@dataclass(slots=True, eq=False)
class _Flow:
    """A channel at work, and what it made of its share."""

    channel: Channel
    since: float
    lent: bool = True
    share: float = inf
    moved: int = 0


class Meter:
    """Counts the bytes of one payload as a channel carries it."""

    def __init__(self, flow: _Flow) -> None:
        self._flow = flow
        self._counted = 0

    def reach(self, size: int) -> None:
        """Note that so many bytes of the payload have gone, in all."""
        self._flow.moved += size - self._counted
        self._counted = size


class Bandwidth:
    """A number of bytes a second, shared fairly by the channels at work; 0 sets no limit.

    What a channel leaves of its share goes to the others with the next `divide_anew`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._total = 0.0
        self._flows: dict[int, _Flow] = {}

    @property
    def total(self) -> float:
        """Bytes a second for all channels together."""
        return self._total

    def change(self, total: float) -> None:
        """Let so many bytes a second go from now on."""
        with self._lock:
            self._total = total
            self._share_out()

    @contextmanager
    def used_by(self, channel: Channel) -> Iterator[Meter]:
        """Give a channel its share while this lasts."""
        with self._lock:
            flow = self._flows.get(channel.number)
            if flow is None:
                flow = self._flows[channel.number] = _Flow(channel, self._clock.monotonic())
                self._share_out()
            flow.lent = True
        try:
            yield Meter(flow)
        finally:
            flow.lent = False

    def divide_anew(self) -> None:
        """Divide by what each channel has made of its share since the last time."""
        with self._lock:
            now = self._clock.monotonic()
            idle = [key for key, flow in self._flows.items() if not (flow.lent or flow.moved)]
            for key in idle:
                del self._flows[key]
            demands = {key: _demand(flow, now, self._total) for key, flow in self._flows.items()}
            for flow in self._flows.values():
                flow.since, flow.moved = now, 0
            self._share_out(demands)

    def _share_out(self, demands: Mapping[int, float] | None = None) -> None:
        keys = list(self._flows)
        wishes = [demands[key] if demands else inf for key in keys]
        for key, share in zip(keys, divide(self._total, wishes), strict=True):
            flow = self._flows[key]
            if abs(share - flow.share) > NOTABLE * flow.share or flow.share == inf:
                flow.share = share
                flow.channel.limit(share)


def divide(total: float, demands: Sequence[float]) -> list[float]:
    """Divide a total so that nobody lacks what another has beyond its demand.

    Whoever demands less than an equal part gets that, the others share the rest; what nobody
    demands is divided equally, so that the shares always sum up to the total.
    """
    shares = [0.0] * len(demands)
    rest = total
    order = sorted(range(len(demands)), key=lambda place: demands[place])
    for done, place in enumerate(order):
        shares[place] = min(demands[place], rest / (len(order) - done))
        rest -= shares[place]
    return [share + rest / len(shares) for share in shares]


def _demand(flow: _Flow, now: float, total: float) -> float:
    """Return what a channel could use: without end for one that uses up its share."""
    seconds = now - flow.since
    if seconds <= 0 or flow.moved >= HUNGRY * flow.share * seconds:
        return inf
    return max(GROWTH * flow.moved / seconds, LEAST * total)


logger = logging.getLogger(__name__)

# What a staging host says that cannot be reached, or that grants no further session.
UNREACHABLE = "link.refused"
NOT_GRANTED = "channel.refused"
ASK_AGAIN = 30.0  # seconds after which a refused channel is asked for again
STALE = timedelta(minutes=2)  # after which an idle channel may have died without our hearing of it
GLANCE = 0.25  # seconds after which a worker looks whether it may go to work


class ChannelPool:
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
        limit: int | ChannelTuner = 0,
    ) -> None:
        self.bandwidth = bandwidth
        self.gauge = ThroughputMeter(gate.clock)
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
        limit = self._limit.channels if isinstance(self._limit, ChannelTuner) else self._limit
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

    def change_limit(self, limit: int | ChannelTuner) -> None:
        """Let so many channels work from now on; those too many end with their payloads."""
        self._limit = limit
        self._follow_limit()

    def search(self) -> str:
        """Let the search for a good number go on; return why it went to another one, if it did."""
        climb = self._limit
        if not isinstance(climb, ChannelTuner):
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
        progress = TransferProgress(self.gauge, payload)
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
