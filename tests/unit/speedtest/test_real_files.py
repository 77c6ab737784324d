"""Sending test files by turns, over a scripted transport."""

from itertools import cycle

import pytest

from mydata_like.core.errors import Cancelled
from mydata_like.core.ports import SentFile
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.real_files import RealFiles, alternate
from mydata_like.speedtest.recommendations import Candidate
from mydata_like.speedtest.results import QUICK, SpeedTestBudget, Workload

EFFORT = QUICK._replace(samples=3, sending=0.0, sent=300_000, files=30)


def by_turns(before, after, **options):
    before, after = cycle(before), cycle(after)
    return alternate(lambda: next(before), lambda: next(after), **options)


def test_a_change_that_is_faster_in_all_turns_of_two_rounds_wins():
    before, after, won = by_turns([100.0, 90.0], [106.0, 120.0])

    assert won
    assert len(before) == len(after) == 6


@pytest.mark.parametrize(
    ("after", "turns"),
    [
        ([104.0], 1),  # faster, but within the usual differences
        ([200.0, 101.0], 2),
        ([200.0, 200.0, 90.0], 3),
        ([200.0] * 5 + [100.0], 6),  # won only once
    ],
)
def test_a_change_that_is_not_clearly_faster_once_is_not_tried_further(after, turns):
    before, _, won = by_turns([100.0], after)

    assert won is False
    assert len(before) == turns


def test_neither_is_always_sent_first():
    order = []
    alternate(lambda: order.append("before") or 1.0, lambda: order.append("after") or 2.0)

    assert order[:4] == ["before", "after", "after", "before"]
    assert order[6:8] == ["after", "before"]


def test_a_change_does_not_win_when_the_time_is_over():
    over = iter([False] * 5 + [True])

    assert by_turns([1.0], [2.0], is_over=lambda: next(over))[2] is None


class Line:
    """A destination, its transport and its channel, which records the number of files sent."""

    capacity, folder = 2, "folder"

    def __init__(self, state, act=lambda: None):
        self.state, self.act = state, act
        self.settings, self.payloads, self.left = [], [], []

    def open_transport(self, settings):
        self.settings.append(settings)
        return self

    def open_channel(self):
        return self

    def send(self, payload, progress):
        self.payloads.append([member.file.size for member in payload.members])
        self.act()
        progress(1)
        return [SentFile(index, "") for index, _ in enumerate(payload.members)]

    def close(self):
        self.left = [path for path in self.state.rglob("*") if path.is_file()]


def open_files(line, cancel=None, **settings):
    budget = SpeedTestBudget(EFFORT, cancel or CancelFlag())
    return RealFiles(line, Transfer(**settings), line.state, budget, [b"abc"])


def test_each_channel_sends_its_part_of_what_is_sent_at_once(tmp_path):
    line = Line(tmp_path)

    with open_files(line, channels=2) as files:
        large, tiny = files.measure(Workload.LARGE), files.measure(Workload.TINY)

        assert files.channels == 2
    assert len(large) == len(tiny) == EFFORT.samples
    assert line.payloads[0] == [100_000]
    assert line.payloads[-1] == [3000] * 10


def test_a_change_is_sent_with_its_settings_and_what_wins_stays(tmp_path):
    line = Line(tmp_path)
    candidate = Candidate("batches", "", Workload.TINY, {"transfer.batch_files": 1000})

    with open_files(line, batch_files=1, channels=1) as files:
        files.measure(Workload.TINY)
        line.payloads.clear()
        compared = files.compare(candidate)

    assert [one.batch_files for one in line.settings] == [1, 1000]
    assert {len(payload) for payload in line.payloads} == {1, 20}
    assert len(compared.before) == len(compared.after)


def test_compression_is_compared_with_pieces_of_the_users_files(tmp_path):
    contents = set()
    line = Line(
        tmp_path, lambda: contents.update(one.read_bytes()[:6] for one in tmp_path.rglob("own-*"))
    )

    with open_files(line, channels=1) as files:
        files.measure(Workload.LARGE)
        files.compare(Candidate("compression", "", Workload.LARGE, {}))

    assert contents == {b"abcabc"}


def test_a_file_in_transfer_is_cancelled_and_removed_once_the_transport_is_closed(tmp_path):
    cancel = CancelFlag()
    line = Line(tmp_path, cancel.set)

    with pytest.raises(Cancelled), open_files(line, cancel, channels=1) as files:
        files.measure(Workload.LARGE)

    assert len(line.payloads) == 1, "the rest of it is not sent"
    assert line.left, "the transport is closed before what it reads is removed"
    assert list(tmp_path.iterdir()) == []
