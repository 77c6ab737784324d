"""Paths are spelled as scans report them, whatever the file system takes for the same."""

from pathlib import Path

import pytest

from mydata_like.core.data_directory import spell_as_listed


@pytest.mark.parametrize("typed", ["Alice/Scan 1", "alice/scan 1", "ALICE/SCAN 1/more"])
def test_a_path_is_spelled_as_its_folders_list_it(tmp_path: Path, typed: str) -> None:
    (tmp_path / "Alice" / "Scan 1").mkdir(parents=True)
    ignores_case = (tmp_path / "alice").exists()

    spelled = spell_as_listed(tmp_path, Path(typed))

    listed = typed.replace("ALICE/SCAN", "Alice/Scan").replace("alice/scan", "Alice/Scan")
    assert spelled.as_posix() == (listed if ignores_case else typed)
