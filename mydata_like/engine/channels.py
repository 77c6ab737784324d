"""The pool that lends the transport's channels to send workers, and their shared bandwidth."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf

from mydata_like.core.errors import (
    FULL,
    Cancelled,
    ServerUnavailableError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.events import LimitsChanged
from mydata_like.core.model import Payload
from mydata_like.core.ports import Channel, Clock, Emit, Progress, Transport
from mydata_like.engine.channel_tuner import ChannelTuner, ThroughputMeter, TransferProgress
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Condition, Lock, WorkQueue

SATURATED = 0.75  # share of its allowance from which on a channel could use more
GROWTH = 1.3  # headroom for the other channels, relative to what they use now
SMALLEST_SHARE = 0.02  # minimum share of the total, for channels that use almost nothing
NOTABLE = 0.01  # smaller relative changes of a share are not applied
HELD = 1e-3  # bytes a second of a channel while nothing may be sent


@dataclass(slots=True, eq=False)
class _Flow:
    """An active channel and its use of its share."""

    channel: Channel
    since: float
    lent: bool = True
    share: float = inf
    moved: int = 0


class Meter:
    """A counter of the bytes of one payload on its channel."""

    def __init__(self, flow: _Flow) -> None:
        self._flow = flow
        self._counted = 0

    def reach(self, size: int) -> None:
        """Record that `size` bytes of the payload have been sent in total."""
        self._flow.moved += size - self._counted
        self._counted = size


class Bandwidth:
    """A limit in bytes a second, shared fairly among the active channels; 0 sets no limit.

    The next `divide_anew` gives the unused part of a channel's share to the others. While it is
    held, the channels wait in the middle of their payloads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._total = 0.0
        self._held = False
        self._flows: dict[int, _Flow] = {}

    @property
    def total(self) -> float:
        """The limit for all channels together, in bytes a second."""
        return self._total

    def change(self, total: float) -> None:
        """Set the limit for all channels together."""
        with self._lock:
            self._total = total
            self._share_out()

    def hold(self, *, held: bool) -> None:
        """Let the channels wait, or continue."""
        with self._lock:
            if held != self._held:
                self._held = held
                self._share_out()

    @contextmanager
    def used_by(self, channel: Channel) -> Iterator[Meter]:
        """Give a channel its share in this context."""
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
        """Divide the limit by what each channel has used of its share since the last call."""
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
        limits = [demands[key] if demands else inf for key in keys]
        shares = [HELD] * len(keys) if self._held else divide(self._total, limits)
        for key, share in zip(keys, shares, strict=True):
            flow = self._flows[key]
            if abs(share - flow.share) > NOTABLE * flow.share or flow.share == inf:
                flow.share = share
                flow.channel.limit(share)


def divide(total: float, demands: Sequence[float]) -> list[float]:
    """Divide a total by max-min fairness.

    Demands below an equal share are met in full; the others share the rest. What no one demands is
    divided equally, so the shares always sum up to the total.
    """
    shares = [0.0] * len(demands)
    rest = total
    order = sorted(range(len(demands)), key=lambda place: demands[place])
    for done, place in enumerate(order):
        shares[place] = min(demands[place], rest / (len(order) - done))
        rest -= shares[place]
    return [share + rest / len(shares) for share in shares]


def _demand(flow: _Flow, now: float, total: float) -> float:
    """Return what a channel could use; infinite if it uses up its share."""
    seconds = now - flow.since
    if seconds <= 0 or flow.moved >= SATURATED * flow.share * seconds:
        return inf
    return max(GROWTH * flow.moved / seconds, SMALLEST_SHARE * total)


logger = logging.getLogger(__name__)

# The problem codes of a staging host that is unreachable, or that refuses another session.
UNREACHABLE = "link.refused"
NOT_GRANTED = "channel.refused"
ASK_AGAIN = 30.0  # seconds after which a refused channel is requested again
ASK_SOON = 5.0  # seconds, if no channel was open yet
REFUSALS = 3  # attempts to reopen a lost channel, after which another one takes its place
STALE = timedelta(minutes=2)  # after which an idle channel may be broken without notice
CHECK_INTERVAL = 0.25  # seconds between checks whether a worker may start


class ChannelPool:
    """The channels in use and idle, limited in number.

    At most `limit` are open at once: a fixed number, the result of a search, or with 0 as many as
    this computer and the staging host support. Only that many workers take payloads, so each soon
    gets a channel. Channels that were idle for long are replaced; the idle time is measured by the
    wall clock, since the computer may have slept.
    """

    def __init__(
        self,
        transport: Transport,
        gate: Gate,
        emit: Emit,
        bandwidth: Bandwidth,
        limit: int | ChannelTuner = 0,
        describe_capacity: Callable[[], str] = str,
    ) -> None:
        self.bandwidth = bandwidth
        self._describe_capacity = describe_capacity
        self.gauge = ThroughputMeter(gate.clock)
        self._transport = transport
        self._gate = gate
        self._emit = emit
        self._idle: WorkQueue[tuple[Channel, datetime]] = WorkQueue(gate.cancel, limit=1000)
        self._limit = limit
        self._at_work = 0
        self._first = 0  # how many callers have priority over all others
        self._opened = 0
        self._opening = 0
        self._granted = 0  # number of channels the host allowed when it refused another
        self._granted_until = 0.0
        self._refusals: Counter[int] = Counter()  # of lost channels in a row, by number
        self._substitutes: dict[int, Channel] = {}  # by the number of the channel that was lent
        self._capped = 0  # the fixed limit of which it was reported that it is not reached
        self._refusal = ""  # what is to be reported as soon as a channel is open
        self._reported: tuple[str, int] | None = None  # the last refusal, with the limit
        self._lock = Condition()

    @property
    def limit(self) -> int:
        """The number of channels that may be active at once."""
        limit = self._limit.channels if isinstance(self._limit, ChannelTuner) else self._limit
        return min(limit, self.ceiling) if limit else self.ceiling

    @property
    def ceiling(self) -> int:
        """The number of channels that this computer and the staging host support."""
        capacity = self._transport.capacity
        refused = self._gate.clock.monotonic() < self._granted_until
        return min(capacity, self._granted) if refused else capacity

    @property
    def round_trip(self) -> float:
        """The round-trip time to the staging host in seconds, 0 while unknown."""
        return self._transport.round_trip

    @property
    def held(self) -> bool:
        """Whether nothing may be sent now."""
        return self._gate.held

    @property
    def resting(self) -> bool:
        """Whether the whole run is waiting or ending, so no channel sends anything new."""
        return self._gate.waits or self._gate.cancel.is_set()

    def change_limit(self, limit: int | ChannelTuner) -> None:
        """Set the limit; channels above it are closed after their current payloads."""
        self._limit = limit
        self._follow_limit()

    def search(self) -> str:
        """Continue the search for the best number; return why the number changed, if it did."""
        tuner = self._limit
        if not isinstance(tuner, ChannelTuner):
            return ""
        if self.resting:
            tuner.interrupt()
            return ""
        before, ceiling = tuner.channels, self.ceiling
        reason = tuner.begin(self.round_trip, ceiling) or tuner.look(
            self.gauge.read(), ceiling, self.bandwidth.total
        )
        if tuner.channels != before:
            self._follow_limit()
        return reason

    def _follow_limit(self) -> None:
        """Wake workers that may start now, and close surplus idle channels."""
        with self._lock:
            self._lock.notify_all()
        for idle, _ in self._idle.take_ready(1000):
            self._return(idle)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until one more worker may take a payload, and count it as active in this context."""
        with self._lock:
            while self._at_work >= self.limit or self._first:
                if self._gate.cancel.is_set():
                    raise Cancelled
                self._lock.wait(CHECK_INTERVAL)
            self._at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= 1
                self._lock.notify()

    @contextmanager
    def borrowed(self) -> Iterator[Channel]:
        """Lend a channel: an idle one, or a new one if the server allows it."""
        channel = self._take()
        try:
            with self.gauge.one_at_work():
                yield channel
        finally:
            self._return(self._find_current(channel))

    @contextmanager
    def borrowed_first(self, patience: float) -> Iterator[Channel | None]:
        """Lend a channel for a short task, ahead of further payloads; None if there is none.

        While this waits, for at most `patience` seconds, no other worker takes a payload.
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
                self._return(self._find_current(channel))

    def ensure_open(self, lent: Channel) -> Channel:
        """Return a lent channel, reopened if it was lost; wait at the gate while none can be.

        The worker that probes for all others must be quick, and sending a payload is not. If only
        this channel is refused repeatedly, another one takes its place as soon as it is idle.
        """
        channel = self._find_current(lent)

        def reach() -> None:
            try:
                channel.open()
            except TransientError as error:
                if error.problem_code != UNREACHABLE:
                    raise
                raise _unavailable(error) from error

        try:
            self._gate.call(reach, staging=True)
        except TransientError as error:
            if not self._is_in_vain(channel, error):
                raise
            self._note_refusal(error.message, self._opened + self._opening)
            self._report_refusal()
            channel.close()
            self._substitutes[channel.number] = channel = self._take()
        self._refusals.pop(channel.number, None)
        return channel

    def _is_in_vain(self, channel: Channel, error: TransientError) -> bool:
        """Return whether a lost channel is given up for now, as there are others."""
        with self._lock:
            if error.problem_code != NOT_GRANTED or self._opened < 2:
                return False
            self._refusals[channel.number] += 1
            if self._refusals[channel.number] < REFUSALS:
                return False
            self._opened -= 1
            del self._refusals[channel.number]
            return True

    def _find_current(self, lent: Channel) -> Channel:
        """Return the channel that has taken the place of a lent one, or this itself."""
        while substitute := self._substitutes.get(lent.number):
            lent = substitute
        return lent

    @contextmanager
    def carrying(self, channel: Channel, payload: Payload) -> Iterator[Progress]:
        """Give a channel its share of the bandwidth for a payload; yield a progress callback."""
        self._expect(payload)
        progress = TransferProgress(self.gauge, payload)
        with self.bandwidth.used_by(channel) as meter:

            def reach(size: int, omitted: int = 0, /) -> None:
                meter.reach(size - omitted)
                progress.reach(size, omitted)

            yield reach

    def _expect(self, payload: Payload) -> None:
        """Choose the number of channels that suits the first payload."""
        tuner = self._limit
        if isinstance(tuner, ChannelTuner) and (reason := tuner.expect(payload, self.ceiling)):
            self._follow_limit()
            bandwidth = self.bandwidth.total
            self._emit(LimitsChanged(channels=self.limit, bandwidth=bandwidth, reason=reason))

    def open_another(self) -> Channel | None:
        """Open a channel unless the limit is reached."""
        with self._lock:
            if self._opened + self._opening >= self.limit:
                return None
            self._opening += 1
        channel = None
        try:
            channel = self._gate.call(self._open, staging=True)
        except TransientError as error:
            logger.info("No further channel can be opened: %s", error)
        finally:
            with self._lock:
                self._opening -= 1
        admitted = self._admit(channel)
        self._report_refusal()
        self._report_cap()
        return admitted

    def _take_fresh(self) -> Channel | None:
        """Return an idle channel, unless it has been idle for too long."""
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
            idle = self._idle.poll(self._find_pause())
            if idle is not None:
                return idle[0]

    def _find_pause(self) -> float:
        """Return the seconds until another channel may be requested."""
        refused = self._granted_until - self._gate.clock.monotonic()
        return refused if refused > 0 else ASK_AGAIN

    def _return(self, channel: Channel) -> None:
        """Keep a channel for the next payload, or close it if there are too many."""
        with self._lock:
            surplus = self._opened > self.limit
            self._opened -= surplus
        if surplus:
            channel.close()
        else:
            with suppress(Cancelled):  # a run that is ending has no next payload
                self._idle.put((channel, self._gate.clock.now()))

    def _admit(self, channel: Channel | None) -> Channel | None:
        """Return a new channel if the host supports it.

        The host's number of processors is known only once the first channel is open. A channel that
        was opened before then may exceed the limit, and is closed.
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
        """Open a channel; if none can be opened at all, that affects the whole run."""
        try:
            return self._transport.open_channel()
        except (TransientError, StagingError) as error:
            if self._is_for_now(error):
                self._note_refusal(error.message, self._opened + self._opening - 1)
                raise TransientError(error.message, code=NOT_GRANTED) from error
            if isinstance(error, StagingError):
                raise
            raise _unavailable(error) from error

    def _is_for_now(self, error: UploaderError) -> bool:
        """Return whether the run can continue with the channels that are open or being opened.

        Before the first one is open, it may be a limit of logins, or concern them all: the last
        one that is being opened finds out, or the one that probes. A full disk is no such limit.
        """
        if error.problem_code == FULL:
            return False
        with self._lock:
            if self._opened:
                return error.problem_code == NOT_GRANTED
            return self._opening > 1 and not self._gate.waits

    def _note_refusal(self, why: str, granted: int) -> None:
        """Limit the pool to the channels that are open or opening, until it is time to retry."""
        with self._lock:
            pause = ASK_AGAIN if self._opened else ASK_SOON
            self._granted = granted
            self._granted_until = self._gate.clock.monotonic() + pause
            self._refusal = f"the staging host allows no more: {why}"

    def explain_cap(self, wanted: int) -> str:
        """Return why fewer channels than `wanted` may work; empty if that many may."""
        allowed = self.limit
        if allowed >= wanted:
            return ""
        why = self._describe_capacity()
        text = f"of {wanted}, this computer and the staging host allow {allowed}"
        return f"{text}: {why}" if why else text

    def _report_cap(self) -> None:
        """Report once that a fixed limit exceeds what the processors of both sides support."""
        with self._lock:
            wanted = 0 if isinstance(self._limit, ChannelTuner) else self._limit
            ready = self._opened and wanted > self._transport.capacity
            if not ready or self._capped == wanted:
                return
            self._capped = wanted
        reason, bandwidth = self.explain_cap(wanted), self.bandwidth.total
        self._emit(LimitsChanged(channels=self.limit, bandwidth=bandwidth, reason=reason))

    def _report_refusal(self) -> None:
        """Report once that the host allows no more channels, when none is being opened."""
        with self._lock:
            refusal = self._refusal, self.limit
            ready = self._refusal and self._opened and not self._opening
            if not ready or refusal == self._reported:
                return
            self._reported, self._refusal = refusal, ""
        reason, limit = refusal
        bandwidth = self.bandwidth.total
        self._emit(LimitsChanged(channels=limit, bandwidth=bandwidth, reason=reason))


def _unavailable(error: TransientError) -> ServerUnavailableError:
    return ServerUnavailableError(error.message, hint=error.hint, code=error.problem_code)
