"""The computer that an uploader belongs to, and whether it is this one."""

from datetime import UTC, datetime

import pytest

from mydata_like.catalogues.mytardis.uploader import MachineIdentity

NOW = datetime(2027, 3, 1, 12, 30, tzinfo=UTC)
HERE = ("SCOPE-PC", "id-1", ["aa", "bb"])


def seat(hostname: str, system: str, interfaces: list[str]) -> MachineIdentity:
    return MachineIdentity.of("0b6", hostname, system, interfaces)


def test_a_seat_is_read_as_it_was_written():
    written = seat(*HERE)
    assert MachineIdentity.parse(written.format(NOW)) == written._replace(since="2027-03-01")


def test_nothing_that_is_written_names_the_computers_ids():
    text = seat(*HERE).format(NOW)
    assert not any(f'"{word}"' in text for word in ("id-1", "aa", "bb"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "[]", "1", "null", "[" * 100_000),
        *('{"hostname": 1}', '{"hostname": "a", "system": "b"}'),
        '{"hostname": "a", "system": "b", "interfaces": [], "since": "0000-01-01"}',
        '{"hostname": "a", "system": "b", "interfaces": [], "since": "9999-12-31T23:59-23:59"}',
    ],
)
def test_a_foreign_file_is_not_a_machine_identity(text):
    assert MachineIdentity.parse(text) is None


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (HERE, True),
        (("scope-pc", "id-1", ["cc"]), True),  # another network card
        (("SCOPE-PC", "id-2", ["bb"]), True),  # installed again
        (("ROOM-7", "id-1", ["aa"]), True),  # renamed
        (("ROOM-7", "id-1", ["cc"]), False),  # a copy of the disk in another computer
        (("SCOPE-PC", "id-2", ["cc"]), False),  # another computer of the same name
        (("ROOM-7", "id-2", ["cc"]), False),  # copied settings
        (("SCOPE-PC", "", []), False),
    ],
)
def test_a_computer_is_known_again_by_two_of_three_traits(other, same):
    assert seat(*HERE).is_same(seat(*other)) is same


def test_unknown_traits_are_not_alike():
    assert not seat("a", "", []).is_same(seat("b", "", []))
    assert not seat("a", "", []).is_same(seat("a", "", []))


def test_a_new_name_is_noted_and_a_new_network_card_is_not():
    assert seat(*HERE).is_out_of_date(seat("ROOM-7", "id-1", ["aa"]))
    assert not seat(*HERE).is_out_of_date(seat("SCOPE-PC", "id-1", ["cc"]))
