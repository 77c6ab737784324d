"""The trial of staging areas, `python -m tests.hosts`, with few files on two kinds."""

import pytest

from tests.hosts import KINDS, Amounts, format_row, is_available, try_kind
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

FEW = Amounts(tiny=30, large=(2_000_000,), interrupted=12_000_000)


WAYS = {
    "OpenSSH, SFTP only": "sftp",
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
    assert result.files > 0
    assert result.bytes > 0
    assert format_row(result).startswith(f"| {kind} | {result.version} | {way} | all bytes |")
