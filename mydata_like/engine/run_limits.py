"""How much a run may take at once: by the settings, by the hour of the week, by a person."""

from datetime import datetime
from typing import NamedTuple

from mydata_like.core.events import LimitsChanged
from mydata_like.core.ports import Clock, Emit
from mydata_like.engine.channel_tuner import ChannelTuner
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.pipeline import Lock
from mydata_like.settings.schedule_section import parse_speed
from mydata_like.settings.transfer_sections import Limits as Settings

BY_HAND = "a person asked for it"


class Planned(NamedTuple):
    """A bandwidth in bytes a second (0: no limit) by the settings, and which of them says so."""

    rate: float
    reason: str


def find_planned(settings: Settings, moment: datetime) -> Planned:
    """Return what the settings say for a local time: the first period that covers it counts."""
    for text in settings.timetable:
        speed = parse_speed(text)
        if speed.period.covers(moment):
            return Planned(speed.bytes_per_second, f"limits.timetable: {text}")
    return Planned(settings.bandwidth * 1e6, "limits.bandwidth")


class RunLimits:
    """Changes the limits of a run, by the settings or as the user asks; every change is reported.

    `channels` and their bandwidth own the limits. A bandwidth that the user set holds until the
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
        """Follow the timetable, leave to busy channels what others do not use, search on."""
        planned = self._find_planned()
        with self._lock:
            if planned != self._planned:
                self._planned = planned
                self._change_bandwidth(planned.rate, planned.reason)
            if reason := self.channels.search():
                self._tell(reason)
        self.channels.bandwidth.divide_anew()

    def set_bandwidth(self, rate: float) -> None:
        """Let all channels together send so many bytes a second; 0 as fast as it goes."""
        with self._lock:
            self._planned = self._find_planned()  # for which this takes the place
            self._change_bandwidth(rate, BY_HAND)

    def set_channels(self, count: int) -> None:
        """Let so many channels work, as far as this computer and the host can bear them.

        With 0 a good number is found by itself again, from the present one on.
        """
        with self._lock:
            self.channels.change_limit(count or ChannelTuner(self.channels.limit))
        allowed = self.channels.limit
        few = f"; of {count}, this computer and the staging host bear {allowed}"
        self._tell(BY_HAND + (few if allowed < count else ""))

    def _find_planned(self) -> Planned:
        return find_planned(self._settings, self.clock.now().astimezone())

    def _change_bandwidth(self, rate: float, reason: str) -> None:
        if rate != self.channels.bandwidth.total:
            self.channels.bandwidth.change(rate)
            self._tell(reason)

    def _tell(self, reason: str) -> None:
        bandwidth = self.channels.bandwidth.total
        self._emit(LimitsChanged(channels=self.channels.limit, bandwidth=bandwidth, reason=reason))
