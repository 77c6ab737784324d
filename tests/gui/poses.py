"""States of the window that a test cannot wait for, set by the events of a run."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mydata_like.core.errors import Problem
from mydata_like.core.events import (
    ChannelChanged,
    Event,
    RunFinished,
    RunPaused,
    RunProgressed,
    RunStarted,
    StagesMeasured,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
)
from mydata_like.core.model import NO_RISK
from mydata_like.engine.progress import NO_PROGRESS
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import PastRunState, Phase
from tests.gui.scenes import Moment

NOW = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)
LOST = Problem(
    "channel.lost",
    "The connection of channel 2 was lost during a transfer.",
    "It is opened again automatically, and the transfer is resumed.",
)
AWAY = Problem(
    "server.unreachable",
    "The server mytardis.example.org does not respond: no route to host.",
    "Nothing is lost. The request is repeated; check whether its page opens in a browser.",
)
ENDED = Problem(
    "window.engine-ended",
    "The engine ended unexpectedly (it was killed).",
    "Nothing is lost: Start resumes the upload. If it happens again, see the log.",
)
STAGES = ("scan", "check", "send", "register", "verify")


def pose(controller: WindowController, moment: Moment, last: PastRunState) -> None:
    """Put the window into the state of a moment; `last` is the real result of the last run."""
    controller._set(phase=Phase.IDLE, problem=None, last=last)
    match moment:
        case Moment.RUNNING:
            _send(controller, _running())
        case Moment.PAUSED:
            _send(controller, [*_running(), RunPaused(problem=AWAY)])
        case Moment.BROKEN:
            _send(controller, [RunFinished.of_nothing(NOW, ENDED)])
        case Moment.SAFE:
            assert last.finished
            later = last.finished + timedelta(seconds=1)  # otherwise the ledger's run is shown
            safe = replace(last, finished=later, found=last.verified, skipped=0, left_behind=0)
            controller._set(last=safe, at_risk=NO_RISK)
        case _:
            pass


def move(controller: WindowController) -> None:
    """Update the window now instead of at the next of four times a second."""
    controller._show()


def _running() -> list[Event]:
    """Return the events of a run in progress, with a file that is sent a second time."""
    started = [
        TransferStarted(
            transfer=number,
            channel=number,
            name=b"alice/Kidney section 4/raw/tile_%03d.tif" % number,
            files=1 + number % 2 * 249,
            bytes=8_000_000,
            attempt=number,
        )
        for number in (1, 2, 3)
    ]
    gone = [TransferProgressed(transfer=at, channel=at, bytes=2_000_000 * at) for at in (1, 2, 3)]
    measured = StagesMeasured(
        stage="send",
        limit="line",
        byte_rate=11.4e6,
        busy=dict.fromkeys(STAGES, 1.0),
        blocked=dict.fromkeys(STAGES, 0.0),
        spent={},
        processors=0.5,
    )
    return [
        RunStarted(run="1", at=NOW, data_directory=b"/data"),
        *(ChannelChanged(channel=number, state="open", rung="shell") for number in (1, 2, 3)),
        *started,
        *gone,
        TransferRetried(transfer=2, channel=2, problem=LOST, delay=1.0),
        _progressed(),
        measured,
    ]


def _progressed() -> RunProgressed:
    return replace(
        NO_PROGRESS,
        found=12_481,
        found_bytes=48_000_000_000,
        checked=12_000,
        verified=9_800,
        verified_bytes=40_000_000_000,
        waiting=3,
        skipped=12,
        failed=2,
        wanted=4_000,
        wanted_bytes=8_000_000_000,
        sent=2_600,
        sent_bytes=5_000_000_000,
        transferred_bytes=5_200_000_000,
        registered=2_400,
        byte_rate=11.4e6,
        file_rate=120.0,
        remaining=263.0,
        seconds=439.0,
        awake=True,
    )


def _send(controller: WindowController, events: list[Event]) -> None:
    controller._take_events(events)
    move(controller)
