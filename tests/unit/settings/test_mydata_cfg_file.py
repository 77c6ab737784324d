"""MyData.cfg in all the forms in which it is met."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.errors import SettingsError
from mydata_like.settings.mydata_cfg import blank_key, key_places, read_legacy_file, usual_places
from tests.legacy import WINDOWS_PAIRS, write_legacy
from tests.umasks import has_mode


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_text_arrives_whatever_the_encoding(tmp_path, encoding, newline):
    path = write_legacy(tmp_path / "MyData.cfg", encoding=encoding, newline=newline)

    found = read_legacy_file(path, code_page="cp1252")

    assert found.pairs == WINDOWS_PAIRS
    assert found.encoding == {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(encoding, encoding)
    assert not found.repeated
    assert not found.bad_lines


def test_the_code_page_is_detected(tmp_path):
    path = write_legacy(tmp_path / "MyData.cfg", encoding="cp1252")

    assert read_legacy_file(path).pairs == WINDOWS_PAIRS


def test_of_a_key_given_twice_the_last_one_counts_and_it_is_reported(tmp_path):
    path = tmp_path / "MyData.cfg"
    path.write_text("[MyData]\nUsername = old\nnothing to read here\nuserName: new\n")

    found = read_legacy_file(path)

    assert found.pairs == {"username": "new"}
    assert found.repeated == ("username",)
    assert found.bad_lines == (3,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"username = me\n", "no section"),
        (b"[Other]\nusername = me\n", "no section"),
        (b"", "no section"),
        (bytes(range(256)) * 50, "is not text"),
        (b"[MyData]\nusername = a\0b\n", "is not text"),
        (b"[MyData]\nusername = \x81\n", "is not text"),
        (b"[MyData]\n" + b"# much\n" * 200_000, "too large"),
    ],
    ids=["no section", "another section", "empty", "binary", "NUL", "undefined", "huge"],
)
def test_an_invalid_mydata_cfg_is_reported_in_one_sentence(tmp_path, content, message):
    path = tmp_path / "MyData.cfg"
    path.write_bytes(content)

    with pytest.raises(SettingsError, match=message):
        read_legacy_file(path, code_page="cp1252")


def test_a_file_that_is_not_there_is_reported(tmp_path):
    with pytest.raises(SettingsError, match="There is no file"):
        read_legacy_file(tmp_path / "MyData.cfg")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_legacy_file(tmp_path)


@given(st.binary(max_size=300))
def test_whatever_a_file_holds_it_is_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "MyData.cfg"
    path.write_bytes(b"[MyData]\n" + content)

    with suppress(SettingsError):
        assert read_legacy_file(path, code_page="cp1252").path == path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_blanked_key_is_all_that_is_missing_afterwards(tmp_path, encoding):
    path = write_legacy(tmp_path / "MyData.cfg", encoding=encoding, newline="\r\n")
    path.chmod(0o664)
    before = path.read_bytes().decode(encoding)

    blank_key(read_legacy_file(path, code_page="cp1252"))

    key = WINDOWS_PAIRS["api_key"]
    assert path.read_bytes() == before.replace(f" = {key}", " =").encode(encoding)
    assert key not in path.read_bytes().decode(encoding)
    assert has_mode(path, 0o664)
    assert list(tmp_path.iterdir()) == [path]


def test_the_key_never_shows_itself(tmp_path):
    found = read_legacy_file(write_legacy(tmp_path / "MyData.cfg"))

    assert WINDOWS_PAIRS["api_key"] not in repr(found)


@pytest.mark.parametrize(
    ("platform", "places"),
    [
        (
            "win32",
            [
                "programs/Monash University/MyData/MyData.cfg",
                "local/Monash University/MyData/MyData.cfg",
            ],
        ),
        ("darwin", ["home/Library/Application Support/MyData/MyData.cfg"]),
        ("linux", ["home/.local/share/MyData/MyData.cfg"]),
    ],
)
def test_mydata_has_its_places_on_each_system(platform, places):
    environment = {"PROGRAMDATA": "programs", "LOCALAPPDATA": "local"}

    found = usual_places(environment, platform, Path("home"))

    assert [place.as_posix() for place in found] == places


def test_on_linux_the_place_can_be_moved():
    moved = usual_places({"XDG_DATA_HOME": "/elsewhere"}, "linux", Path("home"))

    assert moved == (Path("/elsewhere/MyData/MyData.cfg"),)


def test_the_ssh_key_is_at_home_or_next_to_the_file():
    assert key_places(Path("shared/MyData.cfg"), Path("home")) == (
        Path("home/.ssh/MyData"),
        Path("shared/.ssh/MyData"),
    )
