"""Two uploaders that make the same experiment or dataset at once: both use the older one."""

from contextlib import closing
from threading import Barrier, Thread

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.datasets import Datasets, Identity, UnusedObjects
from mydata_like.core.events import Notice
from mydata_like.core.model import DatasetFolder, OwnerKind
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import EMPTY_LIST, Fault
from mydata_like.settings.schema import Data, Server
from tests.fakes.clock import FakeClock

FOLDER = DatasetFolder(
    path=b"alice/Scan", name="Scan", title=None, owner_kind=OwnerKind.USERNAME, owner="alice"
)


@pytest.fixture
def embedded(tmp_path):
    with EmbeddedServer(tmp_path / "server", verify_delay=0.01) as server:
        yield server


@pytest.fixture
def lenient(tmp_path):
    with EmbeddedServer(tmp_path / "server", verify_delay=0.01, allows_removal=True) as server:
        yield server


def open_client(embedded) -> ApiClient:
    clock = FakeClock()
    settings = Server(url=embedded.url, username=embedded.username)
    return ApiClient(settings, embedded.api_key, clock, clock.cancel())


class Facts(dict):
    """Facts about an installation, as in its ledger."""

    find_meta, record_meta = dict.get, dict.__setitem__


class Uploader:
    """One of several installations for one instrument."""

    def __init__(self, client: ApiClient, uuid: str) -> None:
        server = HttpServer(client)
        facility = server.fetch_facilities()[0]
        identity = Identity(
            account=server.fetch_account(),
            facility=facility,
            instrument=server.ensure_instrument(facility, "Scope"),
            uploader=uuid,
            origin=f"{uuid}:/data",
        )
        self.notices: list[Notice] = []
        self.unused = UnusedObjects(Facts())
        self.find = Datasets(server, identity, Data(), self._note, unused=self.unused).find_dataset

    def _note(self, event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event)


def count(embedded, table: str) -> int:
    return embedded.site.store.number(f"SELECT count(*) FROM {table}")


@pytest.mark.parametrize(
    ("path", "looks", "twice"),
    [("mydata_experiment/", 2, "experiment"), ("/dataset/", 2, "dataset")],
    ids=["experiment", "dataset"],
)
def test_what_another_one_made_between_our_look_and_our_making_is_used(
    embedded, path, looks, twice
):
    with closing(open_client(embedded)) as one, closing(open_client(embedded)) as other:
        first, second = Uploader(one, "one"), Uploader(other, "other")
        older = first.find(FOLDER)
        embedded.faults.add(Fault(action=EMPTY_LIST, method="GET", path=path, count=looks))

        younger = second.find(FOLDER)

        assert count(embedded, twice) == 2
        assert younger.id == older.id
        assert [it.problem.code for it in second.notices] == ["server.made-twice"]
        assert f"the {twice} " in second.notices[0].problem.message
        assert first.notices == []
        (left,) = second.unused.load()
        assert left.kind == twice
        second.unused.forget(HttpServer(other).is_gone)
        assert second.unused.load() == (left,)
        embedded.site.store.change(f"DELETE FROM {twice} WHERE id = ?", left.id)
        second.unused.forget(HttpServer(other).is_gone)
        assert second.unused.load() == ()


@pytest.mark.parametrize(
    ("path", "looks", "twice"),
    [("mydata_experiment/", 2, "experiment"), ("/dataset/", 2, "dataset")],
    ids=["experiment", "dataset"],
)
def test_what_was_made_for_nothing_is_removed_where_the_server_lets_us(lenient, path, looks, twice):
    with closing(open_client(lenient)) as one, closing(open_client(lenient)) as other:
        first, second = Uploader(one, "one"), Uploader(other, "other")
        older = first.find(FOLDER)
        lenient.faults.add(Fault(action=EMPTY_LIST, method="GET", path=path, count=looks))

        younger = second.find(FOLDER)

    assert count(lenient, twice) == 1
    assert younger.id == older.id
    assert (second.notices, second.unused.load()) == ([], ())


def test_what_somebody_already_uses_is_never_removed(lenient):
    with closing(open_client(lenient)) as one, closing(open_client(lenient)) as other:
        older = Uploader(one, "one").find(FOLDER)
        store, second = lenient.site.store, Uploader(other, "other")
        store.change(
            "CREATE TRIGGER busy AFTER INSERT ON dataset BEGIN INSERT INTO datafile (dataset,"
            " filename, version, size, md5sum, sha512sum, mimetype) VALUES"
            " (NEW.id, 'x', 1, 1, '', '', ''); END"
        )
        store.change(
            "INSERT INTO datafile (dataset, filename, version, size, md5sum, sha512sum,"
            " mimetype) VALUES (?, 'x', 1, 1, '', '', '')",
            older.id,
        )
        lenient.faults.add(Fault(action=EMPTY_LIST, method="GET", path="/dataset/", count=2))

        younger = second.find(FOLDER)

    assert younger.id == older.id
    assert count(lenient, "dataset") == 2
    assert [it.kind for it in second.unused.load()] == ["dataset"]


def test_two_that_start_at_once_agree_every_time(embedded):
    found = {}
    with closing(open_client(embedded)) as one, closing(open_client(embedded)) as other:
        uploaders = [Uploader(one, "one"), Uploader(other, "other")]
        for number in range(10):
            folder = DatasetFolder(
                path=b"ex", name="Scan", title=f"Experiment {number}", owner="demo"
            )
            barrier = Barrier(2)

            def find(uploader, folder=folder, barrier=barrier) -> None:
                barrier.wait()
                found[uploader] = uploader.find(folder).id

            threads = [Thread(target=find, args=[uploader]) for uploader in uploaders]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert len(set(found.values())) == 1


def test_an_empty_experiment_that_the_server_names_first_gives_way_to_the_used_one(embedded):
    with closing(open_client(embedded)) as one, closing(open_client(embedded)) as other:
        used = Uploader(one, "one").find(FOLDER)
        shift(embedded, 1, 11)
        embedded.faults.add(Fault(action=EMPTY_LIST, method="GET", path="experiment/", count=3))
        Uploader(other, "other").find(FOLDER)
        shift(embedded, 12, 2)
        embedded.site.store.change("DELETE FROM dataset_experiment WHERE experiment = 2")

        found = Uploader(other, "third").find(FOLDER)

    assert found.id == used.id


def shift(embedded, before: int, after: int) -> None:
    """Give an experiment another id."""
    store = embedded.site.store
    store.change("PRAGMA foreign_keys = OFF")
    store.change("UPDATE experiment SET id = ? WHERE id = ?", after, before)
    for table in ("acl", "parameter", "parameter_set", "dataset_experiment"):
        sql = f"UPDATE {table} SET experiment = ? WHERE experiment = ?"
        store.change(sql, after, before)
