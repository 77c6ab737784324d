"""The search path of Windows: nothing is lost, cut off or added twice."""

import secrets
import sys

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.hostos.search_path import (
    LONGEST,
    add_folder,
    change_search_path,
    remove_folder,
)

FOLDER = r"C:\Program Files\mydata-like"


@pytest.mark.parametrize(
    ("path", "longer"),
    [
        ("", FOLDER),
        (r"C:\a", rf"C:\a;{FOLDER}"),
        (r"C:\a;", rf"C:\a;{FOLDER}"),
        (r"%SystemRoot%;;C:\b", rf"%SystemRoot%;;C:\b;{FOLDER}"),
        (rf"C:\a;{FOLDER}\;C:\b", rf"C:\a;{FOLDER}\;C:\b"),
        (rf'"{FOLDER.upper()}";C:\b', rf'"{FOLDER.upper()}";C:\b'),
    ],
)
def test_a_folder_is_added_once_at_the_end(path, longer):
    assert add_folder(path, FOLDER) == longer


def test_a_folder_is_removed_and_all_others_stay_as_they_are():
    assert remove_folder(rf"%A%;;C:\b\;{FOLDER}", FOLDER) == r"%A%;;C:\b" + "\\"
    assert remove_folder(rf"{FOLDER}\;C:\b;", FOLDER) == "C:\\b;"
    assert remove_folder(FOLDER, FOLDER) == ""
    assert remove_folder(rf"{FOLDER}2;C:\b", FOLDER) == rf"{FOLDER}2;C:\b"


def test_a_long_path_is_kept_in_full():
    path = ";".join(rf"C:\tools\{number:04}" for number in range(2000))

    assert add_folder(path, FOLDER) == f"{path};{FOLDER}"
    assert remove_folder(f"{path};{FOLDER}", FOLDER) == path


def test_a_path_that_windows_would_not_read_is_refused():
    with pytest.raises(SettingsError, match="longer than"):
        add_folder("x" * (LONGEST - len(FOLDER)), FOLDER)


@pytest.mark.skipif(sys.platform != "win32", reason="the registry is part of Windows")
def test_the_registry_has_the_folder_until_it_is_removed():
    folder = rf"C:\{secrets.token_hex(8)}"

    assert change_search_path(folder, present=True, everyone=False)
    assert not change_search_path(folder, present=True, everyone=False)
    assert change_search_path(folder, present=False, everyone=False)
    assert not change_search_path(folder, present=False, everyone=False)
