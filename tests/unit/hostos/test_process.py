"""How the program starts itself, and is started by others."""

import os
import subprocess
from pathlib import Path

import pytest

from mydata_like import __version__
from mydata_like.hostos.process import find_background_program, find_program, find_window


@pytest.mark.process
def test_the_program_is_found_from_any_folder():
    words = find_program()

    ended = subprocess.run(
        [*words, "--version"], cwd="/", capture_output=True, text=True, timeout=60
    )

    assert Path(words[0]).is_absolute()
    assert ended.stdout == f"mydata-like {__version__}\n"


def test_the_window_is_opened_by_the_program_itself_but_on_windows():
    words = find_window()

    if os.name == "nt" and Path(find_program()[0]).name == "mydata-like.exe":
        assert Path(words[0]).name == "mydata-like-gui.exe"
    else:
        assert words == (*find_program(), "gui")


def test_a_service_has_a_program_of_its_own_on_windows_only():
    words = find_background_program()

    if os.name == "nt":
        assert Path(words[0]).name != "mydata-like.exe"
    else:
        assert words == find_program()
