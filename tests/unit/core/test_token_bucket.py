"""The bucket: never too fast, never much too slow, changed while bytes wait."""

import pytest

from mydata_like.core.token_bucket import TokenBucket

MB = 1_000_000


class Bench:
    """A bucket in time that moves when it is slept in."""

    def __init__(self, rate, *, lag=0.0):
        self.now = 100.0
        self.lag = lag  # seconds that every sleep takes too long
        self.naps = []
        self.at = {}  # what happens after so many naps
        self.bucket = TokenBucket(self.look, monotonic=lambda: self.now, sleep=self.sleep)
        self.bucket.limit(rate)

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.now += seconds + self.lag

    def look(self):
        self.at.get(len(self.naps), lambda: None)()

    def send(self, size, chunk=256 * 1024):
        """Send so many bytes; return the seconds until the last of them went, and the pieces."""
        begun, left, pieces = self.now, size, []
        while left:
            pieces += [len(it) for it in self.bucket.pieces(memoryview(bytes(min(chunk, left))))]
            left -= min(chunk, left)
        return self.now - begun, pieces


@pytest.mark.parametrize("rate", [1000, 30_000, MB, 40 * MB, 1000 * MB])
@pytest.mark.parametrize("chunk", [700, 32_640, 256 * 1024])
def test_the_rate_is_kept_whatever_the_chunks(rate, chunk):
    size = max(50_000, min(rate, 10 * MB))

    seconds, pieces = Bench(rate).send(size, chunk)

    assert sum(pieces) == size
    assert seconds == pytest.approx(size / rate, rel=0.05, abs=0.06)


def test_sleeps_that_last_too_long_are_made_up_for():
    seconds, _ = Bench(4 * MB, lag=0.02).send(20 * MB)

    assert seconds == pytest.approx(5, rel=0.02)


def test_slow_limits_are_smooth_too():
    bench = Bench(100_000)

    _, pieces = bench.send(MB)

    assert max(pieces) <= 5000
    assert max(bench.naps) <= 0.1


def test_no_limit_never_waits_and_divides_nothing():
    bench = Bench(0)

    seconds, pieces = bench.send(2**20)

    assert (seconds, bench.naps) == (0, [])
    assert pieces == [256 * 1024] * 4


def test_a_long_silence_is_not_saved_up():
    bench = Bench(MB)
    bench.send(MB)
    bench.now += 60

    seconds, _ = bench.send(MB)

    assert seconds >= 0.85


def test_lifting_the_limit_frees_what_waits():
    bench = Bench(1000)
    bench.at = {3: lambda: bench.bucket.limit(0)}

    seconds, _ = bench.send(50 * MB)

    assert seconds < 0.5


def test_another_limit_holds_from_then_on_and_forgives_nothing():
    bench = Bench(MB)
    begun = bench.now
    for turn in range(400):  # as when shares change all the time
        bench.bucket.limit(MB * (1 + turn % 2))
        bench.send(10_000, 10_000)

    assert bench.now - begun >= 4 * MB / (1.5 * MB) * 0.95


def test_a_waiting_process_reports_it_and_may_be_stopped():
    def end():
        raise InterruptedError

    bench = Bench(1000)
    bench.at = {20: end}

    with pytest.raises(InterruptedError):
        bench.send(MB)
    assert len(bench.naps) == 20
