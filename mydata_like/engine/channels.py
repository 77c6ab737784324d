"""The pool that lends channels to send workers: their number, their bandwidth, their reports."""

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
from mydata_like.engine.channel_tuner import ChannelTuner, ThroughputMeter, ThroughputSample
from mydata_like.engine.gate import Gate
from mydata_like.engine.pipeline import Condition, Lock, WorkQueue
from mydata_like.settings.schedule_section import parse_speed
from mydata_like.settings.transfer_sections import Limits

SATURATED = 0.75  # share of its allowance from which on a channel could use more
GROWTH = 1.3  # headroom for the other channels, relative to what they use now
SMALLEST_SHARE = 0.02  # minimum share of the total, for channels that use almost nothing
NOTABLE = 0.01  # smaller relative changes of a share are not applied
HELD = 1e-3  # bytes a second of a channel while nothing may be sent
RATE_SECONDS = 5.0  # over which the present rate is averaged
BATCH_SECONDS = 10.0  # that a batch takes: what a stop or a lost connection costs
SMALL_BATCH = 2 << 20  # bytes, until the rate is known, and of a slow line
FAST = 2e6  # bytes a second of a channel, from which on more channels do not delay the first files
BUFFERED = 4 << 20  # bytes that a connection takes at once, however slow the line is


@dataclass(slots=True, eq=False)
class _Flow:
    """An active channel and its use of its share."""

    channel: Channel
    since: float
    lent: bool = True
    share: float = inf
    moved: int = 0


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
    def used_by(self, channel: Channel) -> Iterator[_Flow]:
        """Give a channel its share in this context; yield its flow, to count its bytes."""
        with self._lock:
            flow = self._flows.get(channel.number)
            if flow is None:
                flow = self._flows[channel.number] = _Flow(channel, self._clock.monotonic())
                self._share_out()
            flow.lent = True
        try:
            yield flow
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
# Logins at once to a far host: more of them take time from what is being sent, and each other.
LOGINS = 2
FAR = 0.02  # seconds of a round trip


BY_HAND = "requested by the user"


def find_planned(limits: Limits, moment: datetime) -> tuple[float, str]:
    """Return the bandwidth at a local time in bytes a second (0: no limit), and its setting.

    The first period of the timetable that covers the time counts.
    """
    for text in limits.timetable:
        speed = parse_speed(text)
        if speed.period.covers(moment):
            return speed.bytes_per_second, f"limits.timetable: {text}"
    return limits.bandwidth * 1e6, "limits.bandwidth"


class ChannelPool:
    """The channels in use and idle, limited in number and bandwidth; every change is reported.

    At most `limit` are open at once: a fixed number, the result of a search, or with 0 as many as
    this computer and the staging host support. Only that many workers take payloads, so each soon
    gets a channel. Channels that were idle for long are replaced; the idle time is measured by the
    wall clock, since the computer may have slept.

    The bandwidth comes from the settings. One from the user is valid until the timetable's next
    change of period, or the end of the run.
    """

    def __init__(
        self,
        transport: Transport,
        gate: Gate,
        emit: Emit,
        limits: Limits,
        channels: int | ChannelTuner = 0,
        measure_idle: Callable[[], float | None] = lambda: None,
        describe_capacity: Callable[[], str] = str,
    ) -> None:
        self.bandwidth = Bandwidth(gate.clock)
        self.gauge = ThroughputMeter(gate.clock, measure_idle)
        self._transport = transport
        self._gate = gate
        self._emit = emit
        self._limits = limits
        self._describe_capacity = describe_capacity
        self._rate = 0.0  # bytes a second, lately
        self._measured = self.gauge.read()
        self._first_payload: Payload | None = None
        self._proven = False  # whether the line is fast, or a payload has arrived
        self._planned = (0.0, "")  # the bandwidth in the settings, when it was last applied
        self._channels = channels
        self._changing = Lock()  # for the limits
        self._idle: WorkQueue[tuple[Channel, datetime]] = WorkQueue(gate.cancel, limit=1000)
        self._at_work = 0
        self._first = 0  # how many callers have priority over all others
        self._opened = 0
        self._opening = 0
        self._granted = 0  # number of channels the host allowed when it refused another
        self._granted_until = 0.0
        self._refusals: Counter[int] = Counter()  # of lost channels in a row, by number
        self._substitutes: dict[int, Channel] = {}  # by the number of the channel that was lent
        self._unreported = ""  # why there are fewer channels, until one is open
        self._reported: tuple[str, int] | None = None  # the last such reason, with the limit
        self._lock = Condition()

    @property
    def limit(self) -> int:
        """The number of channels that may be active at once."""
        wanted = self._wanted
        return min(wanted, self.ceiling) if wanted else self.ceiling

    @property
    def ceiling(self) -> int:
        """The number of channels that this computer and the staging host support."""
        capacity = self._transport.capacity
        refused = self._gate.clock.monotonic() < self._granted_until
        return min(capacity, self._granted) if refused else capacity

    @property
    def _wanted(self) -> int:
        """The number that the settings, the user or the search ask for; 0 for all."""
        wanted = self._channels
        return wanted.channels if isinstance(wanted, ChannelTuner) else wanted

    @property
    def are_far(self) -> bool:
        """Whether a login takes long, as far as is known."""
        return self._transport.round_trip >= FAR

    @property
    def resting(self) -> bool:
        """Whether the whole run is waiting or ending, so no channel sends anything new."""
        return self._gate.waits or self._gate.cancel.is_set()

    def keep(self) -> None:
        """Follow holds and the timetable, redistribute bandwidth, continue the channel search."""
        planned = find_planned(self._limits, self._gate.clock.now().astimezone())
        self._measure_rate()
        with self._changing:
            if planned != self._planned:
                self._planned = planned
                self._change_bandwidth(*planned)
            if reason := self._search():
                self._report(reason)
        self.follow_holds()
        self.bandwidth.divide_anew()

    def _measure_rate(self) -> None:
        before, self._measured = self._measured, self.gauge.read()
        self._prove(self._measured)
        seconds = self._measured.moment - before.moment
        if seconds > 0 and not self.resting:
            rate = (self._measured.bytes - before.bytes) / seconds
            self._rate += (rate - self._rate) * min(1.0, seconds / RATE_SECONDS)

    def _prove(self, sample: ThroughputSample, *, arrived: bool = False) -> None:
        """Find out whether a run may use as many channels as it usually starts with.

        On a slow line, these would only keep the first files from arriving.
        """
        fast = sample.bytes - BUFFERED > FAST * sample.busy
        if self._proven or not (arrived or fast):
            return
        with self._changing:
            self._proven, tuner = True, self._channels
            if isinstance(tuner, ChannelTuner) and (reason := self._start(tuner)):
                self._follow_limit()
                self._report(reason)

    def _start(self, tuner: ChannelTuner) -> str:
        """Start with more channels if the way or the files are such; return the reason."""
        if not self._proven:
            return ""
        reason = tuner.begin(self._transport.round_trip, self.ceiling)
        if self._first_payload is not None:
            reason = tuner.expect(self._first_payload, self.ceiling) or reason
        return reason

    def find_batch_size(self) -> float:
        """Return the bytes that a channel sends in a short time, so that a batch arrives soon."""
        return max(SMALL_BATCH, BATCH_SECONDS * self._rate / max(1, self.limit))

    def follow_holds(self) -> None:
        """Stop what is being sent if nothing may be sent now; let it continue otherwise."""
        self.bandwidth.hold(held=self._gate.held)

    def set_bandwidth(self, rate: float) -> None:
        """Limit all channels together to so many bytes a second; 0 removes the limit."""
        with self._changing:
            # The period in which this limit is valid:
            self._planned = find_planned(self._limits, self._gate.clock.now().astimezone())
            self._change_bandwidth(rate, BY_HAND)

    def set_channels(self, count: int) -> None:
        """Set the number of channels, as far as this computer and the host support it.

        Channels above it are closed after their current payloads. With 0 the search for the best
        number starts again, from the current one.
        """
        with self._changing:
            self._channels = count or ChannelTuner(self.limit)
            self._follow_limit()
        self._report(f"{BY_HAND}; {self._few}" if self._few else BY_HAND)

    @property
    def _few(self) -> str:
        """Why there are fewer channels than the settings or the user ask for, if so."""
        wanted, allowed = self._channels, self.limit
        if isinstance(wanted, ChannelTuner) or wanted <= allowed:
            return ""
        text = f"of {wanted}, this computer and the staging host allow {allowed}"
        why = self._describe_capacity()
        return f"{text}: {why}" if why else text

    def _change_bandwidth(self, rate: float, reason: str) -> None:
        if rate != self.bandwidth.total:
            self.bandwidth.change(rate)
            self._report(reason)

    def _report(self, reason: str) -> None:
        bandwidth = self.bandwidth.total
        self._emit(LimitsChanged(channels=self.limit, bandwidth=bandwidth, reason=reason))

    def _search(self) -> str:
        """Continue the search for the best number; return why the number changed, if it did."""
        tuner = self._channels
        if not isinstance(tuner, ChannelTuner):
            return ""
        if self.resting:
            tuner.interrupt()
            return ""
        before, ceiling = tuner.channels, self.ceiling
        reason = self._start(tuner) or tuner.look(self._measured, ceiling, self.bandwidth.total)
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
        with self.borrowed_while(lambda: True) as channel:
            assert channel
            yield channel

    @contextmanager
    def borrowed_while(self, is_wanted: Callable[[], object]) -> Iterator[Channel | None]:
        """Lend a channel; None if it is not wanted any more before one is idle or can be opened."""
        channel = self._take(is_wanted)
        if channel is None:
            yield None
            return
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
            other = self._take(lambda: True)
            assert other
            self._substitutes[channel.number] = channel = other
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
        """Give a channel its share of the bandwidth for a payload; yield a progress callback.

        The files of the payload count in proportion to the bytes that are sent.
        """
        self._first_payload = self._first_payload or payload
        counted, share = 0, 0.0
        with self.bandwidth.used_by(channel) as flow:

            def reach(size: int, omitted: int = 0, /) -> None:
                nonlocal counted, share
                sent, to_send = size - omitted, payload.size - omitted
                done = sent / to_send if to_send else 1.0
                flow.moved += sent - counted
                self.gauge.add(sent - counted, (done - share) * payload.files)
                counted, share = sent, done
                if not self._proven:
                    self._prove(self.gauge.read())

            yield reach
            if not self._proven:
                self._prove(self.gauge.read(), arrived=True)

    def open_another(self) -> Channel | None:
        """Open a channel unless the limit is reached.

        The host's number of processors is known only once the first channel is open. A channel that
        was opened before then may exceed the limit, and is closed.
        """
        with self._lock:
            if self._opened + self._opening >= self.limit:
                return None
            if self.are_far and self._opening >= LOGINS:
                return None
            self._opening += 1
        channel = None
        surplus = False
        try:
            channel = self._gate.call(self._open, staging=True)
        except TransientError as error:
            logger.info("No further channel can be opened: %s", error)
        finally:
            with self._lock:
                self._opening -= 1
                if channel is not None:
                    surplus = 0 < self._opened >= self.limit
                    self._opened += not surplus
                    if self._reported is None and not self._unreported:
                        self._unreported = self._few
        if channel is not None and surplus:
            channel.close()
            channel = None
        self._report_refusal()
        return channel

    def _take_fresh(self) -> Channel | None:
        """Return an idle channel, unless it has been idle for too long."""
        for ready, since in self._idle.take_ready(1):
            if self._gate.clock.now() - since < STALE:
                return ready
            with self._lock:
                self._opened -= 1
            ready.close()
        return None

    def _take(self, is_wanted: Callable[[], object]) -> Channel | None:
        while is_wanted():
            opened = self._take_fresh() or self.open_another()
            if opened is not None:
                return opened
            if idle := self._idle.poll(CHECK_INTERVAL):  # or until another one may be opened
                return idle[0]
        return None

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

    def _open(self) -> Channel:
        """Open a channel; if none can be opened at all, that affects the whole run."""
        try:
            return self._transport.open_channel(self._wanted)
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
            self._unreported = f"the staging host allows no more: {why}"

    def _report_refusal(self) -> None:
        """Report once that there are fewer channels than wanted, when none is being opened."""
        with self._lock:
            reason, limit = self._unreported, self.limit
            ready = reason and self._opened and not self._opening
            if not ready or (reason, limit) == self._reported:
                return
            self._reported, self._unreported = (reason, limit), ""
        self._report(reason)


def _unavailable(error: TransientError) -> ServerUnavailableError:
    return ServerUnavailableError(error.message, hint=error.hint, code=error.problem_code)
