"""Files that a user cancels while a run goes, and files that are wanted again."""

from dataclasses import replace

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.core.events import FileRetried
from mydata_like.core.local_files import ArchiveMember
from mydata_like.core.model import Payload
from mydata_like.engine.user_overrides import CANCELLED, STOPPING, CutOffError, UserOverrides
from tests.unit.engine.files import a_wanted


class Line:
    number = 1
    cuts = 0

    def cut(self):
        self.cuts += 1


class Bench:
    def __init__(self):
        self.events = []
        self.choices = UserOverrides(self.events.append)

    def objections(self, *keys):
        return [self.choices.find_objection(file(key)) for key in keys]


def file(key):
    wanted = a_wanted("x")
    return replace(wanted, file=wanted.file._replace(key=key))


@pytest.fixture
def bench():
    return Bench()


def test_nothing_is_cancelled_without_a_request(bench):
    assert bench.objections(b"a", b"a/b") == [None, None]


def test_a_path_stands_for_itself_and_all_below_it(bench):
    bench.choices.cancel("a/b/")

    assert bench.objections(b"a/b", b"a/b/c/d", b"a/bc", b"a") == [CANCELLED, CANCELLED, None, None]


def test_names_are_matched_as_events_print_them(bench):
    bench.choices.cancel(r"a/\xff\n")

    assert bench.objections(b"a/\xff\n") == [CANCELLED]


def test_the_choice_for_the_nearest_folder_counts(bench):
    bench.choices.cancel("a")
    assert bench.choices.retry("a/b") is None
    bench.choices.cancel("a/b/c")

    assert bench.objections(b"a/x", b"a/b/x", b"a/b/c/x") == [CANCELLED, None, CANCELLED]

    bench.choices.cancel("a")
    assert bench.objections(b"a/b/x") == [CANCELLED]


def test_what_is_under_way_is_cut_off_and_nothing_else(bench):
    line, other = Line(), Line()
    other.number = 2

    def send() -> None:
        with (
            bench.choices.sending(Payload(1, (file(b"a"), file(b"b")), True), line),
            bench.choices.sending(Payload(2, (file(b"c"),), False), other),
        ):
            bench.choices.cancel("a")
            raise TransientError("the line broke")

    with pytest.raises(CutOffError):
        send()
    assert (line.cuts, other.cuts) == (1, 0)


def test_a_line_that_breaks_on_its_own_is_not_a_cut(bench):
    with (
        pytest.raises(TransientError) as caught,
        bench.choices.sending(Payload(1, (file(b"a"),), False), Line()),
    ):
        raise TransientError("the line broke")

    assert not isinstance(caught.value, CutOffError)


def test_what_was_cancelled_just_now_is_not_begun(bench):
    bench.choices.cancel("a")

    with (
        pytest.raises(CutOffError),
        bench.choices.sending(Payload(1, (file(b"a"),), False), Line()),
    ):
        raise AssertionError


def test_what_was_left_is_sent_again_once(bench):
    bench.choices.cancel("a/2")
    bench.choices.keep(file(b"a/1"), "failed")
    bench.choices.keep(file(b"a/2"), "waiting")
    bench.choices.keep(file(b"b/1"), "failed")

    assert bench.choices.retry("a") is None
    assert bench.choices.retry("a").code == "command.nothing-to-retry"

    assert {wanted.file.key for wanted in bench.choices.take_again()} == {b"a/1", b"a/2"}
    assert bench.choices.take_again() == []
    assert [(it.path, it.outcome) for it in bench.events if isinstance(it, FileRetried)] == [
        (b"a/1", "failed"),
        (b"a/2", "waiting"),
    ]


def test_once_a_run_has_nothing_left_to_send_nothing_is_sent_again(bench):
    bench.choices.keep(file(b"a"), "failed")
    bench.choices.keep(file(b"b"), "failed")
    bench.choices.retry("a")

    assert len(bench.choices.take_last()) == 1
    bench.choices.retry("b")
    assert len(bench.choices.take_last()) == 1
    assert bench.choices.take_last() == []
    bench.choices.keep(file(b"a"), "failed")
    assert bench.choices.retry("a") is not None


def test_a_cancellation_that_is_lifted_before_the_file_is_left_has_no_effect(bench):
    bench.choices.cancel("a")
    assert bench.objections(b"a/1") == [CANCELLED]
    assert bench.choices.retry("a") is None

    bench.choices.keep(file(b"a/1"), "waiting")

    assert [wanted.file.key for wanted in bench.choices.take_again()] == [b"a/1"]
    assert [(it.path, it.outcome) for it in bench.events] == [(b"a/1", "waiting")]


def test_a_cut_stays_the_users_when_it_is_lifted_at_once(bench):
    def send() -> None:
        with bench.choices.sending(Payload(1, (file(b"a"),), False), Line()):
            bench.choices.cancel("a")
            assert bench.choices.retry("a") is None
            raise TransientError("the line was cut")

    with pytest.raises(CutOffError):
        send()
    with bench.choices.sending(Payload(1, (file(b"a"),), False), Line()):
        pass


def test_only_the_files_of_that_transfer_are_sent_after_all(bench):
    payload = Payload(1, (file(b"a/1"), file(b"a/2")), True)
    with bench.choices.carrying(payload):
        bench.choices.cancel("a/2")
        bench.choices.cancel_transfer(1)
        bench.choices.keep(file(b"a/1"), "waiting", 1)
        bench.choices.keep(file(b"a/2"), "waiting", 1)
    bench.choices.keep(file(b"a/3"), "failed", 2)

    assert bench.choices.retry_transfer(1) is None

    assert [wanted.file.key for wanted in bench.choices.take_again()] == [b"a/1"]
    assert bench.choices.retry_transfer(1).code == "command.nothing-to-retry"
    assert bench.choices.retry_transfer(2).code == "command.nothing-to-retry"


def test_a_run_that_is_finishing_begins_nothing(bench):
    bench.choices.keep(file(b"a"), "failed")
    bench.choices.finish()

    assert bench.objections(b"a") == [STOPPING]
    assert bench.choices.retry("a") is not None


def test_the_files_of_an_archive_are_left_and_sent_together(bench):
    members = tuple(ArchiveMember(file(key).file, key) for key in (b"a/1", b"a/2"))
    archive = replace(file(b""), members=members)
    bench.choices.cancel("a/2")
    assert bench.choices.find_objection(archive) == CANCELLED

    bench.choices.keep(archive, "waiting")
    assert bench.choices.retry("a/2") is None

    assert bench.choices.take_again() == [replace(archive, interrupted=True)]
    assert [event.path for event in bench.events] == [b"a/1", b"a/2"]


def test_an_archive_is_left_and_sent_by_its_own_name_too(bench):
    archive = replace(file(b"a/b.tar"), members=(ArchiveMember(file(b"a/b/1").file, b"1"),))
    bench.choices.cancel("a/b.tar")
    assert bench.choices.find_objection(archive) == CANCELLED
    bench.choices.keep(archive, "waiting")

    assert bench.choices.retry("a/b.tar") is None

    assert bench.choices.find_objection(archive) is None
    assert bench.choices.take_again() == [replace(archive, interrupted=True)]
