"""What is wished of a watch from outside wakes it, once."""

from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.scheduler import RunRequests

LONG = 60.0  # seconds that no test waits


def test_a_wish_for_a_run_ends_the_rest_and_is_taken_once():
    wishes = RunRequests(CancelFlag())
    wishes.start()

    assert not wishes.wait(LONG)
    assert wishes.take()
    assert not wishes.take()
    assert not wishes.wait(0.0)


def test_a_watch_that_is_to_end_rests_no_more():
    wishes = RunRequests(CancelFlag())
    wishes.leave()

    assert wishes.wait(LONG)
    assert not wishes.take()
    assert wishes.is_set()


def test_a_request_to_stop_ends_the_rest():
    cancel = CancelFlag()
    wishes = RunRequests(cancel)
    wishes.start()
    wishes.take()
    cancel.set("signal")

    assert wishes.wait(LONG)


def test_a_run_over_everything_is_wished_for_rather_than_one_over_sources_alone():
    wishes = RunRequests(CancelFlag())
    wishes.start(alone=True)
    assert wishes.take() == "source"

    wishes.start()
    wishes.start(alone=True)
    assert wishes.take() == "person"


def test_one_folder_is_wished_for_alone():
    wishes = RunRequests(CancelFlag())
    wishes.start_only("a/b")

    assert wishes.take() == "folder"
    assert wishes.only == "a/b"


def test_of_two_folders_at_once_comes_a_run_over_everything():
    wishes = RunRequests(CancelFlag())
    wishes.start_only("a")
    wishes.start_only("b")
    assert wishes.take() == "person"

    wishes.start()
    wishes.start_only("a")
    assert wishes.take() == "person"
