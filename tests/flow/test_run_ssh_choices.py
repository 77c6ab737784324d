"""Whole runs with choices of SSH that this version does not have: it says so once."""

import pytest
import tomlkit

from tests.invariants import check_complete
from tests.site import a_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


site = a_site(tiny_files=3, large=10_000)


def test_the_systems_own_ssh_of_earlier_versions_counts_as_paramiko(site):
    text = tomlkit.parse(site.config.read_text(encoding="utf-8"))
    text["transfer"]["ssh"] = "system"
    site.config.write_text(tomlkit.dumps(text), encoding="utf-8")

    ended = site.run_events()

    check_complete(site, ended)
    codes = [line["problem"]["code"] for line in ended.events("notice")]
    assert codes.count("settings.former") == 1
    opened = [it for it in ended.events("channel_changed") if it["state"] == "open"]
    assert {it["detail"].split(",")[0] for it in opened} == {"paramiko"}
