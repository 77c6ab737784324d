"""Packing: nothing lost, limits kept, large files alone."""

from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.model import Payload, Registered
from mydata_like.engine.pack import Pack
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.settings.schema import Transfer
from mydata_like.transfer.archive_reader import TarArchives
from tests.fakes.clock import FakeClock
from tests.fakes.source import ListSource
from tests.unit.engine.files import a_record, a_staged, a_wanted

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
    packed = pack([[a_wanted("a"), a_wanted("known", datafile=a_record("known")), a_wanted("b")]])

    assert names(packed) == [["a", "known", "b"]]


def test_a_file_that_did_not_verify_is_never_part_of_a_batch():
    again = a_wanted("again", datafile=a_record("again"))._replace(round=1)

    packed = pack([[a_wanted("a"), again, a_wanted("b")]])

    assert names(packed) == [["again"], ["a", "b"]]


def test_what_needs_no_transfer_passes_by():
    registered = Registered(a_wanted("r"), "0" * 32)

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
