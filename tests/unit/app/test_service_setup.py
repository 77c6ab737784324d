"""The account and the folders of a service of Windows, as texts."""

import getpass

import pytest

from mydata_like.app.service_setup import find_share, require_own_account
from mydata_like.core.errors import SettingsError


@pytest.mark.parametrize(
    ("path", "real", "share"),
    [
        (r"M:\data", r"\\server\lab\data", r"\\server\lab\data"),
        (r"D:\data", r"D:\data", ""),
        (r"D:\link", r"E:\data", ""),
        (r"\\server\lab\data", r"\\server\lab\data", ""),
        (r"D:\data", "\\\\?\\Volume{4c1b}\\data", ""),
    ],
    ids=["mapped drive", "local drive", "link", "share", "volume"],
)
def test_a_drive_letter_of_a_share_is_found(path, real, share):
    assert find_share(path, real) == share


def test_the_settings_of_another_account_are_not_used_for_a_service():
    require_own_account(getpass.getuser().upper())

    with pytest.raises(SettingsError, match="are not those of LOCAL SERVICE") as caught:
        require_own_account("LOCAL SERVICE")
    assert "MYDATA_LIKE_HOME" in caught.value.hint
