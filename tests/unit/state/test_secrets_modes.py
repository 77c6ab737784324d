"""Rights of others to what is ours are taken away, and only to what is ours."""

import os
import stat

import pytest

from mydata_like.state.paths import StatePaths
from mydata_like.state.secrets import correct_modes, judge_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX has modes")


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def places(tmp_path):
    """Places below a folder that a user chose, open to all, a file of each kind in them."""
    places = StatePaths.below(tmp_path / "chosen")
    places.make_private(places.state)
    for name in ("ledger-host-1.db", "ledger-host-1.db-wal", "run-1.lock", "signal.json"):
        (places.state / name).touch()
    for path in (places.known_hosts, places.key_file, places.config_file, places.secrets_file):
        path.touch()
    (places.logs / "mydata-like.log.1").touch()
    for path in (tmp_path / "chosen").rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (tmp_path / "chosen").chmod(0o755)
    return places


def test_what_is_ours_is_corrected_and_reported_once(places):
    first = correct_modes(places, places.state)
    second = correct_modes(places, places.state)

    assert first is not None
    assert first.code == "files.exposed"
    assert str(places.state) in first.message
    assert "and 5 more" in first.message
    assert second is None
    assert {mode_of(folder) for folder in (places.state, places.logs)} == {0o700}
    ours = (*places.state.glob("ledger*"), *places.logs.iterdir(), places.known_hosts)
    assert {mode_of(file) for file in ours} == {0o600}


def test_what_a_user_chose_and_what_others_may_read_stays(places):
    correct_modes(places, places.state)

    assert mode_of(places.config_file.parent) == 0o755
    assert mode_of(places.config_file) == 0o666
    assert mode_of(places.state / "signal.json") == 0o666


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_chosen_state_folder_that_others_may_write_to_is_reported(tmp_path, mode):
    tmp_path.chmod(0o755)
    assert judge_folder(tmp_path) is None
    tmp_path.chmod(mode)

    problem = judge_folder(tmp_path)

    assert problem is not None
    assert problem.code == "files.shared"
    assert str(tmp_path) in problem.message
    assert mode_of(tmp_path) == mode


def test_an_exposed_key_is_not_covered_up(places):
    correct_modes(places, places.state)

    assert mode_of(places.key_file) == 0o666
    assert mode_of(places.secrets_file) == 0o666


def test_a_chosen_state_folder_that_others_can_write_keeps_its_files(places, tmp_path):
    chosen = tmp_path / "everybody's"
    chosen.mkdir()
    chosen.chmod(0o777)
    ledger = chosen / "ledger-host-1.db"
    ledger.touch()
    ledger.chmod(0o644)

    correct_modes(places, chosen)

    assert mode_of(chosen) == 0o777
    assert mode_of(ledger) == 0o644


def test_a_link_is_not_followed(places, tmp_path):
    target = tmp_path / "of-another"
    target.touch()
    target.chmod(0o644)
    (places.state / "ledger-link.db").symlink_to(target)

    correct_modes(places, places.state)

    assert mode_of(target) == 0o644
