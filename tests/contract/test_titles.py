"""Experiments named after people: found as MyData has named them, and named so when made."""

from contextlib import closing

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.datasets import Datasets, Identity
from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.core.model import DatasetFolder, Layout, OwnerKind
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.fixtures import DemoUser, add_user
from mydata_like.settings.schema import Data, Server
from tests.fakes.clock import FakeClock

PEOPLE = (
    DemoUser("testuser3", "t3@example.org", ""),
    DemoUser("madonna", "madonna@example.org", "Madonna"),
    DemoUser("prince", "prince@example.org", " Prince"),
    DemoUser("eve", "eve@example.org", "Eve  Adams "),
)
RULE = {
    "testuser3": "Scope - testuser3",
    "madonna": "Scope - Madonna ",
    "prince": "Scope -  Prince",
    "eve": "Scope - Eve  Adams ",
    "alice": "Scope - Alice Liddell",
}
BEFORE = {
    "testuser3": "Scope - ",
    "madonna": "Scope - Madonna",
    "prince": "Scope - Prince",
    "eve": "Scope - Eve Adams",
}


@pytest.fixture
def embedded(tmp_path):
    with EmbeddedServer(tmp_path / "server", verify_delay=0.01) as server:
        for person in PEOPLE:
            add_user(server.site.store, person)
        yield server


@pytest.fixture
def api(embedded):
    clock = FakeClock()
    settings = Server(url=embedded.url, username=embedded.username)
    with closing(ApiClient(settings, embedded.api_key, clock, clock.cancel())) as client:
        yield HttpServer(client)


def find(api, owner, kind=OwnerKind.USERNAME, layout=Layout.USERNAME_DATASET, *, dry_run=False):
    """Return the dataset that a folder of an owner becomes."""
    facility = api.fetch_facilities()[0]
    identity = Identity(
        account=api.fetch_account(),
        facility=facility,
        instrument=api.ensure_instrument(facility, "Scope"),
        uploader="our own",
        origin="pc:/data",
    )
    datasets = Datasets(api, identity, Data(layout=layout), lambda event: None, dry_run=dry_run)
    return datasets.find_dataset(
        DatasetFolder(path=b"x/Scan", name="Scan", title=None, owner_kind=kind, owner=owner)
    )


def make(api, title, folder, layout=Layout.USERNAME_DATASET):
    """Make an experiment with a dataset, as MyData does, and return the dataset."""
    experiment = api.create_experiment(
        ExperimentDraft(title, "MyData's", layout.value, folder, "", "MyData's own")
    )
    instrument = api.ensure_instrument(api.fetch_facilities()[0], "Scope")
    return api.create_dataset(experiment, "Scan", instrument)


def titles(embedded):
    return [row["title"] for row in embedded.site.store.rows("SELECT title FROM experiment")]


@pytest.mark.parametrize(("owner", "title"), RULE.items(), ids=RULE)
def test_an_experiment_of_mydata_is_found(api, embedded, owner, title):
    made = make(api, title, owner)

    assert find(api, owner).id == made.id
    assert find(api, owner, dry_run=True).id == made.id
    assert titles(embedded) == [title]


@pytest.mark.parametrize(("owner", "title"), RULE.items(), ids=RULE)
def test_a_new_experiment_is_named_as_mydata_names_it(api, embedded, owner, title):
    assert find(api, owner).id == find(api, owner).id

    assert titles(embedded) == [title]


@pytest.mark.parametrize(("owner", "title"), BEFORE.items(), ids=BEFORE)
def test_an_experiment_of_the_other_spelling_is_found(api, embedded, owner, title):
    made = make(api, title, owner)

    assert find(api, owner).id == made.id
    assert titles(embedded) == [title]


def test_mydatas_spelling_counts_where_both_are_there(api, embedded):
    make(api, BEFORE["madonna"], "madonna")
    made = make(api, RULE["madonna"], "madonna")

    assert find(api, "madonna").id == made.id


@pytest.mark.parametrize("title", ["Scope - t3@example.org", "Scope - testuser3"])
def test_one_without_a_name_is_found_by_folder_and_by_account(api, embedded, title):
    made = make(api, title, "t3@example.org", Layout.EMAIL_DATASET)

    found = find(api, "t3@example.org", OwnerKind.EMAIL, Layout.EMAIL_DATASET)

    assert found.id == made.id
