"""Packing: nothing lost, limits kept, large files alone."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.local_files import ArchiveMember
from mydata_like.core.model import Payload
from mydata_like.engine.pack import Pack
from mydata_like.engine.pipeline import CancelFlag, WorkQueue
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.settings.schema import Transfer
from mydata_like.transfer.archive_reader import TarArchives
from tests.fakes.clock import FakeClock
from tests.fakes.source import ListSource
from tests.unit.engine.files import a_record, a_staged, a_wanted, as_registered

SETTINGS = Transfer(batch_below=100, batch_bytes=300, batch_files=5, batch_age=2.0)


def pack(items, *, starving=False, clock=None):
    clock = clock or FakeClock()
    return list(
        Pack(SETTINGS, clock, UserOverrides(id), TarArchives())(
            ListSource(items, clock, starving=starving)
        )
    )


def test_what_is_wanted_again_joins_the_others():
    choices = UserOverrides(id)
    choices.keep(a_wanted("again"), "failed")
    choices.retry("alice")
    clock = FakeClock()

    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource([[a_wanted("a")]], clock))

    assert names(packed) == [["a", "again"]]


def test_channels_share_tiny_files_where_each_sends_one_after_the_other():
    clock = FakeClock()
    pack = Pack(Transfer(method="s3"), clock, UserOverrides(id), TarArchives())

    packed = pack(ListSource([[a_wanted(str(number)) for number in range(60)]], clock))

    assert [len(payload) for payload in names(packed)] == [25, 25, 10]


def test_on_a_slow_line_batches_are_smaller():
    clock, sizes = FakeClock(), iter([60, 60, 1000])
    tiny = [[a_wanted(str(number), size=30) for number in range(8)]]
    packed = Pack(SETTINGS, clock, UserOverrides(id), TarArchives(), lambda: next(sizes))

    assert [len(payload) for payload in names(packed(ListSource(tiny, clock)))] == [2, 2, 4]


def pack_with(order_by, items):
    """Return the names of the payloads; `order_by` acts when the first one is sent."""
    choices, clock = UserOverrides(id), FakeClock()
    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource(items, clock))
    first = next(packed)
    order_by(choices)
    return names([first, *packed])


LARGE = [a_wanted(f"{n}", size=100) for n in range(6)]


def test_a_file_that_the_user_prefers_is_sent_next():
    sent = pack_with(lambda choices: choices.send_next(["alice/Set 1/4"]), [LARGE])

    assert sent == [["0"], ["4"], ["1"], ["2"], ["3"], ["5"]]


def test_a_preferred_file_overtakes_those_found_before_it():
    sent = pack_with(lambda choices: choices.send_next(["alice/Set 1/4"]), [[it] for it in LARGE])

    assert sent == [["0"], ["4"], ["1"], ["2"], ["3"], ["5"]]


def test_the_latest_preference_comes_first():
    def prefer(choices):
        choices.send_next(["alice/Set 1/3"])
        choices.send_next(["alice/Set 1/5"])

    assert pack_with(prefer, [LARGE]) == [["0"], ["5"], ["3"], ["1"], ["2"], ["4"]]


def test_an_archive_is_preferred_by_its_own_name():
    members = tuple(ArchiveMember(file.file, file.file.name) for file in LARGE[:2])
    archive = replace(a_wanted("x.tar", size=200), members=members)

    sent = pack_with(lambda choices: choices.send_next(["alice/Set 1/x.tar"]), [[*LARGE, archive]])

    assert sent[1] == ["x.tar"]


def test_preferred_tiny_files_wait_for_no_others():
    items = [[LARGE[0], *(a_wanted(f"tiny {n}") for n in range(4))]]

    def prefer(choices):
        choices.send_next(["alice/Set 1/tiny 3", "alice/Set 1/tiny 2"])

    assert pack_with(prefer, items) == [["0"], ["tiny 3", "tiny 2"], ["tiny 0", "tiny 1"]]


def test_a_preferred_tiny_file_leaves_an_open_batch():
    items = [[*(a_wanted(f"tiny {n}") for n in range(3)), *LARGE[:3]]]

    sent = pack_with(lambda choices: choices.send_next(["alice/Set 1/tiny 1"]), items)

    assert sent == [["0"], ["tiny 1"], ["1"], ["2"], ["tiny 0", "tiny 2"]]


def test_a_preferred_file_is_sent_before_an_old_batch():
    choices, clock = UserOverrides(id), FakeClock()
    items = [[a_wanted("tiny"), *LARGE[:3]]]
    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource(items, clock))
    first = next(packed)

    clock.move(SETTINGS.batch_age)
    choices.send_next(["alice/Set 1/2"])

    assert names([first, *packed]) == [["0"], ["2"], ["1"], ["tiny"]]


def test_nothing_is_lost_when_the_order_changes_between_a_file_and_the_last_batch():
    choices, clock = UserOverrides(id), FakeClock()
    choices.send_next(["alice/Set 1/tiny", "alice/Set 1/0"])
    items = [[a_wanted("tiny"), LARGE[0]]]
    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource(items, clock))
    first = next(packed)

    choices.send_next(["alice/Set 1/tiny"])

    assert names([first, *packed]) == [["0"], ["tiny"]]


def test_files_that_wait_are_listed_until_they_are_sent():
    choices, clock, queue = UserOverrides(id), FakeClock(), WorkQueue(CancelFlag(), limit=9)
    choices.order.follow(queue)
    items = [[*LARGE[:2], *(a_wanted(f"tiny {n}") for n in range(2)), *LARGE[2:]]]
    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource(items, clock))
    for _ in range(3):
        queue.put(next(packed))

    def listed():
        return [it.path.decode().removeprefix("alice/Set 1/") for it in choices.list_next(9)]

    assert listed() == ["0", "1", "2", "tiny 0", "tiny 1", "3", "4", "5"]
    choices.send_next([f"alice/Set 1/{name}" for name in ("5", "tiny 1", "1")])
    assert listed() == ["5", "tiny 1", "1", "0", "2", "tiny 0", "3", "4"]
    for payload in packed:
        queue.put(payload)
    sent = [name for members in names(queue.take_ready(9)) for name in members]
    assert sent == ["5", "tiny 1", "1", "0", "2", "3", "4", "tiny 0"]
    assert listed() == []


class CrowdedSource(ListSource):
    """A source whose next stage has no room until all items have been taken."""

    def wait_for_room(self, item):
        if self._items and self._items[0] is None:
            self._items.pop(0)
        return self.finished


def test_files_are_taken_in_while_there_is_no_room():
    choices, clock = UserOverrides(id), FakeClock()
    items = [[LARGE[0]], None, [LARGE[1]], None, [LARGE[2]]]
    packed = Pack(SETTINGS, clock, choices, TarArchives())(CrowdedSource(items, clock))

    assert names([next(packed)]) == [["0"]]
    assert [file.path.rpartition(b"/")[2] for file in choices.list_next(9)] == [b"1", b"2"]


def test_a_preferred_file_is_listed_before_packed_ones_that_it_overtakes():
    choices, clock = UserOverrides(id), FakeClock()
    queue = WorkQueue(CancelFlag())
    choices.order.follow(queue)
    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource([LARGE], clock))
    choices.send_next(["alice/Set 1"])
    queue.put(next(packed))
    queue.put(next(packed))

    choices.send_next(["alice/Set 1/4"])
    listed = [file.path.rpartition(b"/")[2] for file in choices.list_next(4)]
    for payload in packed:
        queue.put(payload)

    assert listed == [b"4", b"0", b"1", b"2"]
    assert names(queue.peek()) == [["4"], ["0"], ["1"], ["2"], ["3"], ["5"]]


def test_a_cancelled_file_that_is_preferred_is_sent():
    choices, clock = UserOverrides(id), FakeClock()
    choices.cancel("alice")
    choices.keep(LARGE[0], "waiting")
    choices.keep(LARGE[1], "failed")
    choices.send_next(["alice/Set 1"])

    packed = Pack(SETTINGS, clock, choices, TarArchives())(ListSource([[LARGE[2]]], clock))

    assert names(packed) == [["2"], ["0"]]
    assert choices.find_objection(LARGE[0]) is None


def names(packed):
    return [[m.file.name.decode() for m in p.members] for p in packed if isinstance(p, Payload)]


def test_tiny_files_travel_together():
    packed = pack([[a_wanted("a"), a_wanted("b")]])

    assert names(packed) == [["a", "b"]]
    assert packed[0].batched


def test_a_large_file_travels_alone_and_does_not_wait_for_a_batch():
    packed = pack([[a_wanted("a"), a_wanted("large", size=100), a_wanted("b")]])

    assert names(packed) == [["large"], ["a", "b"]]
    assert not packed[0].batched


def test_a_changed_file_is_sent_together_with_new_ones():
    packed = pack([[a_wanted("a"), a_wanted("known", earlier=a_record("known")), a_wanted("b")]])

    assert names(packed) == [["a", "known", "b"]]


def test_a_file_that_did_not_verify_is_never_part_of_a_batch():
    again = replace(a_wanted("again", earlier=a_record("again")), round=1)

    packed = pack([[a_wanted("a"), again, a_wanted("b")]])

    assert names(packed) == [["again"], ["a", "b"]]


def test_what_needs_no_transfer_passes_by():
    registered = as_registered(a_wanted("r"), "0" * 32)

    packed = pack([[a_staged("s"), a_wanted("a"), registered]])

    assert packed[0] == [a_staged("s"), registered]
    assert names(packed) == [["a"]]


def test_an_idle_channel_gets_a_batch_before_it_is_full():
    assert names(pack([[a_wanted("a")], None, [a_wanted("b")]], starving=True)) == [["a"], ["b"]]


def test_a_batch_waits_for_company_while_all_channels_are_busy():
    assert names(pack([[a_wanted("a")], None, [a_wanted("b")]])) == [["a", "b"]]


def test_an_old_batch_goes_although_all_channels_are_busy():
    pauses = [None] * 50

    packed = pack([[a_wanted("a")], *pauses, [a_wanted("b")]])

    assert names(packed) == [["a"], ["b"]]


@given(st.lists(st.lists(st.integers(0, 150), max_size=12), max_size=8))
def test_nothing_is_lost_and_no_limit_passed(sizes):
    files = [
        [a_wanted(f"{i}-{j}", size=size) for j, size in enumerate(group)]
        for i, group in enumerate(sizes)
    ]

    packed = pack([group for group in files if group])

    assert sorted(n for p in names(packed) for n in p) == sorted(
        w.file.name.decode() for group in files for w in group
    )
    for payload in packed:
        assert len(payload.members) == 1 or payload.size <= SETTINGS.batch_bytes
        assert len(payload.members) <= SETTINGS.batch_files
    assert len({payload.id for payload in packed}) == len(packed)
