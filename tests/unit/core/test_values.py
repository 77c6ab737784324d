"""Our dataclasses are those of the standard library, but for what takes long to make."""

import copy
import dataclasses
import pickle

import pytest

from mydata_like.core.commands import Cancel, Pause, Resume, Stop
from mydata_like.core.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A value with a field that must be given and one that need not."""

    name: str
    number: int = 3


@dataclass(slots=True)
class Changing:
    """A value that is not frozen."""

    number: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The same, made by the standard library."""

    name: str
    number: int = 3


def test_a_value_shows_itself_as_any_dataclass_does():
    assert repr(Ours(name="a")) == repr(Theirs(name="a")).replace("Theirs", "Ours")
    assert repr(Pause()) == "Pause()"


def test_values_are_the_same_where_class_and_fields_are():
    assert Ours(name="a") == Ours(name="a", number=3)
    assert Ours(name="a") != Ours(name="a", number=4)
    assert Ours(name="a") != Theirs(name="a")
    assert Pause() == Pause() != Resume()
    assert Stop(now=True) == Stop() != Stop(now=False)
    assert Cancel("a") != Cancel("b")


def test_frozen_values_that_are_the_same_have_the_same_place_in_a_set():
    assert {Ours(name="a"), Ours(name="a"), Ours(name="b")} == {Ours(name="a"), Ours(name="b")}
    assert len({Pause(), Pause(), Resume()}) == 2


def test_what_may_change_has_no_place_in_a_set():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Changing(1))


def test_the_standard_library_reads_and_replaces_the_fields():
    value = Ours(name="a")

    assert [field.name for field in dataclasses.fields(value)] == ["name", "number"]
    assert dataclasses.replace(value, number=5) == Ours(name="a", number=5)
    assert dataclasses.asdict(value) == {"name": "a", "number": 3}


def test_a_value_has_no_other_fields_and_wants_those_without_a_default():
    with pytest.raises(TypeError, match="name"):
        Ours()
    with pytest.raises(AttributeError):
        Changing(1).other = 2


def test_values_travel_between_processes():
    value = Ours(name="a", number=7)

    assert pickle.loads(pickle.dumps(value)) == value == copy.copy(value)
