"""Runs over data into which nothing can be written see each other through the server."""

import os
from contextlib import contextmanager

import pytest

from mydata_like.app.approval import describe_applicant
from mydata_like.app.connection import open_connection
from mydata_like.app.server_marks import marked
from mydata_like.app.settings_service import find_api_key, find_places, load_settings, open_secrets
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import AlreadyRunningError
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import Lease, LockHolder
from tests.site import a_site, make_data
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

OURS = "6b49f74f-117e-45ba-be74-73a3ae100cc0"
THEIRS = "7b49f74f-117e-45ba-be74-73a3ae100cc0"


site = a_site(tiny_files=5, large=100_000)


@contextmanager
def at_work(site, uuid, *more, shard=WHOLE, known=True, missing=True):
    """Be at work as the installation of this uuid, for which the data directory takes no lease."""
    settings = load_settings(site.config, (f"instrument.uuid={uuid}", *more)).settings
    places, clock = find_places(site.config), SystemClock()
    lease = Lease(os.fsencode(settings.data.directory), shard, LockHolder.here(clock))
    lease.missing = missing
    key = find_api_key(settings, open_secrets(site.config))[0]
    client = ApiClient(settings.server, key.reveal(), clock, CancelFlag())
    connection = open_connection(client, settings.instrument)
    try:
        if known:
            installation = describe_applicant(connection, settings, places).installation
            connection.uploaders.ensure_uploader(installation, connection.instrument)
        with marked(lease, connection, settings, places, shard):
            yield connection
    finally:
        connection.close()


def test_the_second_one_names_the_first(site):
    with (
        at_work(site, OURS),
        pytest.raises(AlreadyRunningError, match=rf"since .* process {os.getpid()} on "),
        at_work(site, THEIRS),
    ):
        pytest.fail("two runs at once")

    with at_work(site, THEIRS):
        pass


def test_a_mark_that_was_not_renewed_counts_no_longer(site):
    with at_work(site, OURS):
        site.server.site.store.change(
            "UPDATE uploader SET settings_updated = '2020-01-01T00:00:00'"
        )

        with at_work(site, THEIRS):
            pass


def test_other_data_and_other_shards_are_free(site, tmp_path):
    elsewhere = make_data(tmp_path / "elsewhere", tiny_files=1, large=10)

    with (
        at_work(site, OURS, shard=Shard(1, 2)),
        at_work(site, THEIRS, shard=Shard(2, 2)),
        at_work(site, "8b49f74f-117e-45ba-be74-73a3ae100cc0", f"data.directory={elsewhere}"),
    ):
        pass


def test_a_mark_is_none_of_the_settings_that_the_server_sets(site):
    with at_work(site, OURS) as connection:
        record = connection.uploaders.find_uploader(OURS)

    assert record.settings == {}
    assert [key for key, _ in record.marks] == ["mydata_like_at_work"]


def test_nothing_is_asked_of_the_server_where_a_lease_is_held(site):
    with at_work(site, OURS, known=False, missing=False):
        requests = len(site.server.requests)

    assert site.changes(requests) == []
    assert site.server.site.store.rows("SELECT * FROM uploader") == []
