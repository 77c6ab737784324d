"""Sending all together, over a scripted channel."""

from contextlib import closing

import pytest

from mydata_like.core.errors import Cancelled, TransientError
from mydata_like.core.ports import SentFile
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.end_to_end import EndToEndTest, measure_end_to_end
from mydata_like.speedtest.prediction import TINY
from mydata_like.speedtest.results import (
    QUICK,
    TINY_FILES,
    SpeedTestBudget,
    carried,
    in_usual_batches,
)
from mydata_like.transfer.channel import CUT

WISH = EndToEndTest("folder", channels=1, rate=1e6)


class Line:
    """A transport and its channel: half of a large file goes, until someone breaks it off.

    `act` is done while it goes; `left` are the files there were when the transport was closed.
    """

    capacity = 1

    def __init__(self, state, act=lambda: None, beats=0):
        self.state, self.act, self.beats = state, act, beats
        self.cut_off = False
        self.payloads = []
        self.left = []

    def open_channel(self, wanted=0):
        return self

    def send(self, payload, progress):
        size = payload.members[0].file.size
        self.payloads.append(len(payload.members))
        if not payload.batched:
            for part in (*[0] * self.beats, *range(1, 9)):
                self.act()
                progress(size * part // 16)
                if self.cut_off:
                    raise TransientError("Interrupted.", code=CUT)
        return [SentFile(index, "") for index, _ in enumerate(payload.members)]

    def cut(self):
        self.cut_off = True

    def close(self):
        self.left = [path for path in self.state.rglob("*") if path.is_file()]


def carry_by(line, budget, **settings):
    with closing(
        measure_end_to_end(lambda _: line, Transfer(**settings), WISH, line.state, budget)
    ) as parts:
        return list(parts)


@pytest.mark.parametrize("beats", [0, 5])
@pytest.mark.parametrize("over", ["total", "together"])
def test_a_time_limit_cuts_a_large_file_off_and_its_speed_is_known(tmp_path, over, beats):
    line = Line(tmp_path, beats=beats)

    large, _ = carry_by(line, SpeedTestBudget(QUICK._replace(**{over: 0.0}), CancelFlag()))

    assert line.cut_off
    assert all(sample > 0 for sample in large.samples)


def test_without_a_time_limit_a_large_file_is_sent_to_its_end(tmp_path):
    line = Line(tmp_path)

    large, tiny = carry_by(line, SpeedTestBudget(QUICK, CancelFlag()))

    assert not line.cut_off
    assert len(large.samples) == len(tiny.samples) == QUICK.samples


def test_a_large_file_takes_two_seconds_and_leaves_bytes_for_what_comes_after_it():
    quick, half = WISH._replace(rate=1e9), 500_000_000

    assert WISH.size(QUICK, left=10**9) == 2_000_000
    assert quick.size(QUICK, left=10**9) == half
    assert quick.size(QUICK, left=half) == half
    assert quick._replace(spared=half // 2, channels=2).size(QUICK, left=half) == half // 4


@pytest.mark.parametrize("settings", [{"batch_files": 3}, {"batch_bytes": 3 * TINY}])
def test_small_batches_are_compared_with_those_of_the_default(tmp_path, settings):
    line = Line(tmp_path)

    _, *tiny = carry_by(line, SpeedTestBudget(QUICK, CancelFlag()), **settings)

    together = carried(TINY_FILES)
    assert [one.what for one in tiny] == [together, in_usual_batches(together)]
    assert sorted(set(line.payloads)) == [1, 3, WISH.files(QUICK)]


def test_without_batches_their_gain_is_shown(tmp_path):
    line = Line(tmp_path)

    carry_by(line, SpeedTestBudget(QUICK, CancelFlag()), batch_below=0)

    assert set(line.payloads) == {1, WISH.files(QUICK)}


def test_a_large_file_in_transfer_is_cancelled_and_removed_once_it_is_closed(tmp_path):
    cancel, parts = CancelFlag(), []

    def cancel_at_once():
        parts.append(len(parts))
        cancel.set()

    line = Line(tmp_path, cancel_at_once)

    with pytest.raises(Cancelled):
        carry_by(line, SpeedTestBudget(QUICK, cancel))

    assert parts == [0], "the rest of it is not sent"
    assert line.left, "the transport is closed before what it reads is removed"
    assert list(tmp_path.iterdir()) == []
