"""Dataclasses for values: compared and hashed by value, and replaced instead of changed."""

from dataclasses import field, replace

import pytest

from mydata_like.core.frozen import frozen

pytestmark = pytest.mark.pure


@frozen()
class Point:
    x: int
    y: int = 0
    secret: str = field(default="", repr=False)
    note: str = field(default="", compare=False)


@frozen()
class Place:
    x: int
    y: int = 0
    secret: str = ""
    note: str = ""


@frozen(kw_only=True, eq=False)
class Lonely:
    x: int = 0


def test_values_are_equal_if_class_and_fields_are():
    assert Point(1, 2) == Point(1, 2, note="other")
    assert hash(Point(1, 2)) == hash(Point(1, 2, note="other"))
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != Place(1, 2)
    assert {Point(1): "found"}[Point(1)] == "found"


def test_without_comparison_each_equals_itself_only():
    lonely = Lonely()

    assert lonely == lonely
    assert lonely != Lonely()


def test_a_value_is_replaced_and_shown_without_secrets():
    point = replace(Point(1, secret="key"), y=5)

    assert (point.x, point.y, point.secret) == (1, 5, "key")
    assert repr(point) == "Point(x=1, y=5, note='')"


def test_a_value_has_no_other_attributes():
    with pytest.raises(AttributeError):
        Point(1).z = 3
