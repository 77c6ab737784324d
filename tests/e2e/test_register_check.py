"""`register --check`: the whole way is tried with one small file, and nothing is left of it."""

from contextlib import contextmanager

import pytest

from mydata_like.demo.demo_site import open_demo
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.ssh.keys import create_key
from tests.fakes.objects import ObjectServer, refusal
from tests.object_site import BOX, add_storage
from tests.site import Site, make_data, open_site
from tests.sshd_fixture import needs_sshd, noisy, scp_only, sftp_only, with_programs
from tests.staging import use_folder

pytestmark = [pytest.mark.e2e, needs_sshd]


@contextmanager
def registered_site(folder, *, options=(), auto_approve=True):
    make_data(folder / "site", tiny_files=1, large=1000)
    with open_site(folder / "site", options=options, auto_approve=auto_approve) as site:
        site.command("register", "--accept-host-key", site.sshd.fingerprint)
        yield site


@pytest.fixture
def site(tmp_path):
    with registered_site(tmp_path) as site:
        yield site


def check(site, *settings):
    """Return how a check ended, and its steps by name."""
    ended = site.command("register", "--check", "--json", settings=settings)
    (said,) = ended.lines
    return ended.code, {step["name"]: step for step in said["steps"]}


def staged(site):
    return [path.name for path in site.server.box_location.rglob("*") if path.is_file()]


def test_a_way_that_is_open_is_proved_and_nothing_is_left(site):
    before = len(site.server.requests)

    code, steps = check(site)

    assert code == 0
    assert {step["result"] for step in steps.values()} == {"ok"}
    assert list(steps) == [
        *("server", "account", "instrument", "rights", "approval"),
        *("host 127.0.0.1", "file", "cleaning"),
    ]
    assert "checksum" in steps["file"]["message"]
    assert (site.changes(before), staged(site)) == ([], [])
    assert not list(site.state.glob("check-*"))


def test_the_demonstration_admits_keys_that_its_server_approves(tmp_path):
    own = f"transfer.key_file={create_key(tmp_path / 'own').path}"
    with open_demo() as place:
        site = Site(place)
        trust = ("--accept-host-key", place.sshd.fingerprint)
        assert site.command("register", *trust, settings=(own,)).code == 0

        code, steps = check(site, own)

        assert (code, steps["host 127.0.0.1"]["result"]) == (0, "ok")


def test_a_host_whose_shell_prints_something_first_is_proved_as_well(tmp_path):
    with registered_site(tmp_path, options=noisy(tmp_path)) as site:
        code, steps = check(site)

        assert code == 0
        assert {step["result"] for step in steps.values()} == {"ok"}
        assert "checksum" in steps["file"]["message"]
        assert staged(site) == []


def test_a_shell_with_few_programs_reports_the_size(tmp_path):
    with registered_site(tmp_path, options=with_programs(tmp_path)) as site:
        code, steps = check(site)

        assert code == 0
        assert steps["file"]["result"] == "ok"
        assert "correct size" in steps["file"]["message"]
        assert staged(site) == []


@pytest.mark.parametrize("kind", ["sftp", "scp"])
def test_hosts_that_allow_less_say_less(tmp_path, kind):
    options = sftp_only() if kind == "sftp" else (*scp_only(tmp_path), "Subsystem sftp /bin/false")
    with registered_site(tmp_path, options=options) as site:
        code, steps = check(site)

        assert code == 0
        assert steps["host 127.0.0.1"]["result"] == "ok"
        assert ("host 127.0.0.1, staging.no-resume" in steps) == (kind == "scp")
        if kind == "sftp":
            assert (steps["file"]["result"], steps["cleaning"]["result"]) == ("ok", "ok")
            assert staged(site) == []
        else:
            assert (steps["file"]["result"], steps["cleaning"]["result"]) == ("unproven",) * 2
            assert f".mydata-like-check-{site.uuid}" in steps["cleaning"]["message"]


def test_a_host_that_allows_no_channel_is_explained(tmp_path):
    with registered_site(tmp_path, options=("MaxSessions 0",)) as site:
        code, steps = check(site)

        assert code == 3
        assert steps["host 127.0.0.1"]["code"] == "ssh.no-channel"
        assert "MaxSessions" in steps["host 127.0.0.1"]["hint"]


def test_while_files_go_over_http_that_is_what_is_said(tmp_path):
    with registered_site(tmp_path, auto_approve=False) as site:
        code, steps = check(site)
        insisting, failed = check(site, "transfer.method=ssh")

        assert (code, steps["staging"]["result"]) == (0, "unproven")
        assert (insisting, failed["approval"]["code"]) == (3, "uploader.not-approved")


def test_a_host_that_is_away_is_named_and_the_other_is_tried(site):
    sshd = site.sshd
    hosts = f"127.0.0.9, {sshd.host}"
    site.server.set_address(ScpAddress(sshd.username, hosts, sshd.port, (sshd.fingerprint,)))

    code, steps = check(site)

    assert code == 1
    assert steps["host 127.0.0.9"]["code"] == "link.refused"
    assert (steps["host 127.0.0.1"]["result"], steps["file"]["result"]) == ("ok", "ok")


def test_a_key_that_the_server_refuses_ends_the_check_at_once(site):
    site.server.revoke_key()

    code, steps = check(site)

    assert code == 3
    assert list(steps) == ["server"]
    assert steps["server"]["code"] == "server.denied"


def test_the_user_reads_a_line_for_each_step(site):
    said = site.command("register", "--check")

    assert said.code == 0
    lines = said.output.splitlines()
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert "first run" in lines[-1]


def test_a_folder_is_proved_by_the_host_that_sees_the_file(site):
    folder = use_folder(site)

    code, steps = check(site)

    assert code == 0
    assert {step["result"] for step in steps.values()} == {"ok"}
    assert list(steps)[5:] == [f"folder {folder}", "file", "host 127.0.0.1", "cleaning"]
    assert "checksum" in steps["file"]["message"]
    assert staged(site) == [".mydata-staging"]


def test_another_folder_is_found_out_by_the_host_that_does_not_see_the_file(site, tmp_path):
    marker = use_folder(site) / ".mydata-staging"
    other = tmp_path / "other"
    other.mkdir()
    marker.rename(other / marker.name)

    code, steps = check(site, f"transfer.folder={other}")

    assert (code, steps["host 127.0.0.1"]["code"]) == (3, "staging.wrong")
    assert [path.name for path in other.iterdir()] == [marker.name]


def test_a_folder_needs_no_staging_host(site):
    use_folder(site)
    site.sshd.stop()

    code, steps = check(site)

    assert (code, steps["host 127.0.0.1"]["result"]) == (0, "unproven")
    assert (steps["file"]["result"], steps["cleaning"]["result"]) == ("ok", "ok")


def test_a_folder_that_is_not_confirmed_is_reported_with_where_it_is_mounted(site):
    folder = use_folder(site)
    (folder / ".mydata-staging").unlink()

    code, steps = check(site)
    refused = site.command("register")
    accepted = site.command("register", "--accept-folder")

    assert (code, steps[f"folder {folder}"]["code"]) == (4, "staging.unconfirmed")
    assert (refused.code, "--accept-folder" in refused.complaints) == (3, True)
    assert "file system" in refused.complaints
    assert (accepted.code, str(folder) in accepted.output) == (0, True)
    assert check(site)[0] == 0


def test_a_host_that_does_not_know_the_key_is_explained_by_what_the_server_says(site):
    site.sshd.forbid_all()

    code, steps = check(site)

    assert (code, steps["host 127.0.0.1"]["code"]) == (3, "uploader.not-admitted")
    assert "file" not in steps


def test_a_bucket_is_proved_and_nothing_is_left_of_it(site):
    with ObjectServer() as server:
        settings = add_storage(site, server.url)

        code, steps = check(site, *settings)

        assert code == 0
        assert {step["result"] for step in steps.values()} == {"ok"}
        assert list(steps)[-3:] == ["bucket", "file", "cleaning"]
        assert server.objects == {}
        assert server.kinds() == ["PutObject", "GetObject", "DeleteObject"]


def test_a_bucket_that_is_denied_is_said_with_what_to_do(site):
    with ObjectServer() as server:
        server.interfere = lambda _: refusal("AccessDenied", 403)
        code, steps = check(site, *add_storage(site, server.url))

    assert code == 3
    assert (steps["bucket"]["code"], steps["bucket"]["result"]) == ("s3.denied", "failed")
    assert "rights" in steps["bucket"]["hint"]


def test_registering_for_a_bucket_names_its_storage_box(site):
    settings = add_storage(site, "http://127.0.0.1:9")

    ended = site.command("register", "--json", settings=settings)

    assert ended.lines == [{"approved": True, "box": BOX, "hosts": ["127.0.0.1:9"]}]
