"""Whole runs whose staging host gets another key, which the server's administrator enters."""

from math import inf
from threading import Thread

import pytest

from mydata_like.core.events import RunPaused, RunResumed, RunStarted, TransferStarted
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.engine.command_handler import CommandHandler
from mydata_like.engine.pipeline import CancelFlag
from tests.invariants import check_carried
from tests.site import make_data, once, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

BY_SERVER = ("transfer.method=ssh", "transfer.host_keys=[]")


@pytest.fixture
def site(tmp_path):
    make_data(tmp_path / "site", tiny_files=5, large=8_000_000)
    with open_site(tmp_path / "site") as site:
        vouch(site)
        yield site


def vouch(site):
    """Do what the server's administrator does: enter the key that the host has now."""
    sshd = site.sshd
    site.server.set_address(
        ScpAddress(sshd.username, sshd.host, sshd.port, host_keys=[sshd.fingerprint])
    )


def replace_key(site):
    site.sshd.restart(new_host_key=True, announce=lambda: vouch(site))


@pytest.mark.parametrize("patience", [None, inf], ids=["attended", "unattended"])
@pytest.mark.parametrize("kind", [RunStarted, TransferStarted])
def test_a_run_that_meets_another_key_asks_the_server_for_it_again(site, kind, patience):
    replaced = once(kind, lambda: replace_key(site))

    carried = site.carry(*BY_SERVER, watch=replaced, patience=patience)

    check_carried(site, carried)
    assert carried.of_kind(RunPaused) == []


def test_resume_asks_the_server_for_the_key_again(site):
    controller = CommandHandler(CancelFlag(), lambda _: None)
    resume = Thread(target=controller.handle, args=(b'{"command": "resume"}',))
    replaced = once(TransferStarted, lambda: site.sshd.restart(new_host_key=True))
    corrected = once(RunPaused, lambda: (vouch(site), resume.start()))

    carried = site.carry(
        *BY_SERVER,
        watch=lambda event: (replaced(event), corrected(event)),
        patience=inf,
        controller=controller,
    )

    resume.join()
    check_carried(site, carried)
    assert [event.problem.code for event in carried.of_kind(RunPaused)] == ["host-key.changed"]
    assert len(carried.of_kind(RunResumed)) == 1


@pytest.mark.parametrize("corrects", [False, True])
def test_a_key_that_the_server_does_not_name_or_must_not_name_ends_the_run(site, corrects):
    pinned = f'transfer.host_keys=["{site.sshd.fingerprint}"]' if corrects else BY_SERVER[1]
    replace = replace_key if corrects else lambda site: site.sshd.restart(new_host_key=True)
    replaced = once(TransferStarted, lambda: replace(site))

    carried = site.carry(BY_SERVER[0], pinned, watch=replaced)

    assert (carried.code, carried.sums.problem.code) == (3, "host-key.changed")
    assert site.sshd.fingerprint in carried.sums.problem.message
