"""The limits of a run, from the settings, the timetable and the user."""

from datetime import datetime
from typing import NamedTuple

from mydata_like.core.events import LimitsChanged
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.channel_tuner import ChannelTuner
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.pipeline import Lock
from mydata_like.settings.schedule_section import parse_speed
from mydata_like.settings.transfer_sections import Limits as Settings

BY_HAND = "requested by the user"


class Planned(NamedTuple):
    """The bandwidth from the settings in bytes a second (0: no limit), and its source."""

    rate: float
    reason: str


def find_planned(settings: Settings, moment: datetime) -> Planned:
    """Return the settings' bandwidth at a local time: the first period that covers it counts."""
    for text in settings.timetable:
        speed = parse_speed(text)
        if speed.period.covers(moment):
            return Planned(speed.bytes_per_second, f"limits.timetable: {text}")
    return Planned(settings.bandwidth * 1e6, "limits.bandwidth")


class RunLimits:
    """The limits of a run, from the settings or the user; every change is reported.

    `channels` and their bandwidth own the limits. A bandwidth from the user is valid until the
    timetable's next change of period, or the end of the run.
    """

    def __init__(
        self,
        settings: Settings,
        channels: ChannelPool,
        clock: Clock,
        emit: Emit,
    ) -> None:
        self._settings = settings
        self.channels = channels
        self.clock = clock
        self._emit = emit
        self._planned = Planned(0.0, "")
        self._lock = Lock()

    def keep(self) -> None:
        """Follow holds and the timetable, redistribute bandwidth, continue the channel search."""
        planned = self._find_planned()
        with self._lock:
            if planned != self._planned:
                self._planned = planned
                self._change_bandwidth(planned.rate, planned.reason)
            if reason := self.channels.search():
                self._report(reason)
        self.follow_holds()
        self.channels.bandwidth.divide_anew()

    def follow_holds(self) -> None:
        """Stop what is being sent if nothing may be sent now; let it continue otherwise."""
        self.channels.bandwidth.hold(held=self.channels.held)

    def set_bandwidth(self, rate: float) -> None:
        """Limit all channels together to so many bytes a second; 0 removes the limit."""
        with self._lock:
            self._planned = self._find_planned()  # the period in which this limit is valid
            self._change_bandwidth(rate, BY_HAND)

    def set_channels(self, count: int) -> None:
        """Set the number of channels, as far as this computer and the host support it.

        With 0 the search for the best number starts again, from the current one.
        """
        with self._lock:
            self.channels.change_limit(count or ChannelTuner(self.channels.limit))
        self._report("; ".join(filter(None, (BY_HAND, self.channels.explain_cap(count)))))

    def _find_planned(self) -> Planned:
        return find_planned(self._settings, self.clock.now().astimezone())

    def _change_bandwidth(self, rate: float, reason: str) -> None:
        if rate != self.channels.bandwidth.total:
            self.channels.bandwidth.change(rate)
            self._report(reason)

    def _report(self, reason: str) -> None:
        bandwidth = self.channels.bandwidth.total
        self._emit(LimitsChanged(channels=self.channels.limit, bandwidth=bandwidth, reason=reason))
