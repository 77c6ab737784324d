"""From a MyData that was approved to runs of ours, without anybody's doing on the server."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydata_like.cli.main import build_app
from tests.embedded import Api, registration
from tests.invariants import check_complete, check_idle
from tests.legacy import WINDOWS_PAIRS, write_legacy, write_old_key
from tests.site import make_data, open_site
from tests.sshd_fixture import needs_sshd

app = build_app()

pytestmark = [pytest.mark.e2e, needs_sshd]

REQUEST = "POST /api/v1/mydata_uploaderregistrationrequest/"


@pytest.fixture
def old_key():
    return write_old_key(Path.home() / ".ssh" / "MyData")


@pytest.fixture
def site(tmp_path, old_key):
    """A site where MyData has asked for approval, and where nothing of ours is set."""
    make_data(tmp_path / "data", tiny_files=5, large=1000)
    with open_site(tmp_path, auto_approve=False) as site:
        site.sshd.forbid_all()
        site.sshd.authorize(old_key.public)
        _ask_as_mydata(site, old_key.public)
        for file in (site.config, site.config.with_name("secrets.toml")):
            file.unlink()
        yield site


def _ask_as_mydata(site, key):
    with Api(site.server) as api:
        api.post("instrument/", json={"facility": "/api/v1/facility/1/", "name": "Scope"})
        api.post("mydata_uploader/", json={"uuid": WINDOWS_PAIRS["uuid"], "name": "Scope"})
        body = registration(key.md5_fingerprint) | {"requester_public_key": key.line()}
        assert api.post("mydata_uploaderregistrationrequest/", json=body).status_code == 201


def _take_over(site):
    pairs = WINDOWS_PAIRS | {
        "mytardis_url": site.server.url,
        "username": site.server.username,
        "api_key": site.server.api_key,
        "facility_name": "Demo Facility",
        "instrument_name": "Scope",
        "data_directory": str(site.data),
        "folder_structure": "Username / Dataset",
        "ignore_old_datasets": "False",
        "use_excludes_file": "False",
        "upload_invalid_user_folders": "True",
    }
    old = write_legacy(site.place.folder / "old" / "MyData.cfg", pairs)
    words = ["settings", "import", str(old), "--key-store=file", "--config", str(site.config)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output


def test_an_approved_mydata_is_followed_without_a_new_request(site, old_key):
    site.server.approve(WINDOWS_PAIRS["uuid"])
    asked = len(site.server.requests)

    _take_over(site)
    ended = site.run()

    check_complete(site, ended)
    assert ended.sums["sent"] == ended.sums["found"] > 0
    assert REQUEST not in site.changes(asked)
    assert f"RSA {old_key.public.fingerprint}" in site.sshd.log
    check_idle(site)


def test_a_request_of_mydata_that_waits_is_not_made_again(site, old_key):
    asked = len(site.server.requests)

    _take_over(site)
    ended = site.run("transfer.method=ssh", "advanced.pause_patience=0")

    assert (ended.code, ended.problem) == (3, "uploader.not-approved")
    assert old_key.public.md5_fingerprint in ended.sums["problem"]["message"]
    assert REQUEST not in site.changes(asked)
