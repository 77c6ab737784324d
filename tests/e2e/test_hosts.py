"""The trial of staging areas, `python -m tests.hosts`, with few files on some kinds."""

import pytest

from tests.hosts import KINDS, Amounts, format_row, is_available, try_kind
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

FEW = Amounts(tiny=30, large=(2_000_000,), interrupted=12_000_000, too_much=(1_000_000, 50_000_000))
FULL = {"SFTPGo, quota of bytes": "sftp", "S3, versitygw, full": "s3"}

WAYS = {
    "OpenSSH, SFTP only": "sftp",
    "OpenSSH, SFTP without SETSTAT": "sftp",
    "OpenSSH, ChrootDirectory": "sftp",
    "Dropbear": "shell",
    "SFTPGo, no chmod and chtimes": "sftp",
    "Folder, sshfs": "folder",
    "S3, versitygw": "s3",
}


@pytest.mark.parametrize(("kind", "way"), WAYS.items(), ids=WAYS)
def test_all_bytes_arrive_on_a_kind_of_host(tmp_path, kind, way):
    if not is_available(KINDS[kind]):
        pytest.skip(f"{kind} cannot be started here")

    result = try_kind(kind, tmp_path, FEW)

    assert (result.wrong, result.way) == ("", way)
    assert format_row(result).startswith(f"| {kind} | {result.version} | {way} | all bytes |")


@pytest.mark.parametrize(("kind", "way"), FULL.items(), ids=FULL)
def test_a_full_kind_gets_what_fits_and_the_rest_when_it_has_space(tmp_path, kind, way):
    if not is_available(KINDS[kind]):
        pytest.skip(f"{kind} cannot be started here")

    result = try_kind(kind, tmp_path, FEW)

    assert (result.wrong, result.way) == ("", way)
    assert result.reported == "`staging.full`"
