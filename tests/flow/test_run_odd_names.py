"""Whole runs over files with names that Windows reserves or shortens, or with long paths."""

import pytest

from mydata_like.core.events import ChannelChanged
from mydata_like.demo.verifier import disk_path
from tests.builders import a_file
from tests.openssh import on_host
from tests.site import open_site
from tests.sshd_fixture import needs_sshd, scp_only, sftp_only

pytestmark = [pytest.mark.e2e, needs_sshd]

LONG_AGO = 1_600_000_000
SAME = ("con", "nul.txt", "COM1.tif", "ends with a dot.", "\N{GREEK SMALL LETTER MU} \u6f22\u5b57")
MARKED = "ends with a space "  # stored under another name; see `core/staging_path`
FOLDERS = ("aux", "dot.", f"{'x' * 120}/{'y' * 120}")
NAMES = (*SAME, MARKED, *(f"{folder}/a.tif" for folder in FOLDERS))
HOSTS = {"shell": lambda _: (), "scp": scp_only, "sftp": lambda _: sftp_only()}
WAYS = [
    *((host, f"transfer.ssh={stack}") for host in HOSTS for stack in ("libssh", "paramiko")),
    ("shell", "transfer.batch_below=0"),  # one by one
    ("shell", "transfer.method=http"),
]


def expected(site):
    """Return the local files by dataset, folder and name on the server."""
    folder = site.data / "alice/Scan"
    files = {}
    for path in NAMES:
        directory, _, name = path.rpartition("/")
        files["Scan", directory, name] = disk_path(f"{folder}/{path}")
    return files


@pytest.mark.parametrize(("host", "way"), WAYS, ids=lambda words: words)
def test_every_byte_arrives_and_is_verified_under_its_name(tmp_path, host, way):
    for number, name in enumerate(NAMES):
        a_file(tmp_path / "data/alice/Scan" / name, 1000 + number, LONG_AGO)
    with open_site(tmp_path, options=HOSTS[host](tmp_path)) as site:
        carried = site.carry(way)

        sums = carried.sums
        assert (carried.code, sums.found, sums.verified) == (0, len(NAMES), len(NAMES))
        assert site.server.check_invariants(expected(site)) == []
        opened = {it.rung for it in carried.of_kind(ChannelChanged) if it.state == "open"}
        assert opened == {"http" if way.endswith("http") else host}
        stored = {path.name for path in on_host(site.server.directory).rglob("Scan-*/*")}
        assert set(SAME) <= stored
        assert site.carry(way).sums.bytes == 0
