"""Making and changing datafile records, one by one and in bulk, with all that can go wrong."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mydata_like.demo.answers import Refusal, failed, invalid
from mydata_like.demo.danger import replace_record
from mydata_like.demo.drafts import Draft, read_changes, read_draft
from mydata_like.demo.placing import Place, Placer
from mydata_like.demo.site import Caller, Site, find_writable_dataset, id_in
from mydata_like.demo.store import Row

_RESOURCES = ("mydata_dataset_file", "dataset_file")
_INSERT = f"INSERT INTO datafile VALUES ({', '.join('?' * 11)})"  # noqa: S608 - constants
_FIND = """
    SELECT d.id, r.id AS replica FROM datafile d LEFT JOIN replica r ON r.datafile = d.id
    WHERE d.dataset = ? AND d.directory = ? AND d.filename = ? AND d.version = ?
"""
_INSERT_REPLICA = "INSERT INTO replica VALUES (?, ?, ?, ?, ?, 0, ?, NULL)"


class Made(NamedTuple):
    """A new datafile; `path` is where its bytes are expected, empty where the client knows."""

    id: int
    replica: int
    path: str


class Registrar:
    """Makes and changes datafile records as the server does."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._store = site.store

    def find_dataset(self, data: Mapping[str, Any], who: Caller) -> int:
        """Return the dataset that a record names, if the caller may add to it."""
        uri = data.get("dataset")
        if uri is None:
            raise invalid(
                "The 'dataset' field has no data and doesn't allow a default or null value."
            )
        number = id_in(uri, "dataset")
        if number is None or not self._store.number(
            "SELECT count(*) FROM dataset WHERE id = ?", number
        ):
            raise invalid(f"Could not find the provided dataset object via resource URI '{uri}'.")
        find_writable_dataset(self._store, who, number)
        return number

    def make(self, data: Mapping[str, Any], dataset: int, placer: Placer) -> Made:
        """Make one record; it may stay even where the answer is 500, as on the real server."""
        draft = read_draft(data, dataset, self._site.times)
        with self._store.transaction():
            place = placer.place(data, draft)
            made = self._insert_with_care(draft, place)
        if made is None or place is None or place.path is None:
            raise failed()
        self._site.verifier.schedule([made.replica])
        return made

    def attach(self, data: Mapping[str, Any], dataset: int, content: bytes) -> Made:
        """Make a record together with its bytes."""
        draft = read_draft(data, dataset, self._site.times)
        place = Placer(self._site, uploads=False).place_attached(draft)
        path = place.path
        if path is None:
            raise failed()
        with self._store.transaction():
            made = self._insert_with_care(draft, place)
            if made is not None:
                write_content(Path(path), content)
        if made is None:
            raise failed()
        self._site.verifier.schedule([made.replica], at_once=True)
        return made._replace(path="")

    def apply(self, objects: Sequence[Mapping[str, Any]], who: Caller, placer: Placer) -> str:
        """Make and change records, all or none; return the path of the last one made."""
        allowed: set[int] = set()
        with self._store.transaction():
            try:
                fresh = [entry for entry in objects if not self._change_existing(entry, who)]
                drafts = [self._check_new(entry, who, allowed) for entry in fresh]
                places = [placer.place(*pair) for pair in zip(fresh, drafts, strict=True)]
                replicas = self._insert_many(drafts, places)
            except sqlite3.IntegrityError:
                raise failed() from None
        self._site.verifier.schedule(replicas)
        last = places[-1] if places else None
        return last.path or "" if last is not None and not last.given else ""

    def change(self, number: int, data: Mapping[str, Any], who: Caller) -> None:
        """Change a record; a replica can be given to one that has none, and not be changed."""
        row = self._store.row("SELECT * FROM datafile WHERE id = ?", number)
        if row is None:
            raise Refusal(404)
        with self._store.transaction():
            try:
                replicas = self._change(row, data, who)
            except sqlite3.IntegrityError:
                raise failed() from None
        self._site.verifier.schedule(replicas)

    def _change_existing(self, data: Mapping[str, Any], who: Caller) -> bool:
        number = id_in(data.get("resource_uri"), *_RESOURCES)
        row = None
        if number is not None:
            row = self._store.row("SELECT * FROM datafile WHERE id = ?", number)
        if row is None:
            return False
        self._site.verifier.schedule(self._change(row, data, who))
        return True

    def _change(self, row: Row, data: Mapping[str, Any], who: Caller) -> list[int]:
        """Change a record inside a transaction; return the replicas to be looked at."""
        find_writable_dataset(self._store, who, row["dataset"])
        changes = read_changes(data, self._site.times)
        for column, value in changes.items():
            sql = f"UPDATE datafile SET {column} = ? WHERE id = ?"  # noqa: S608 - our own names
            self._store.change(sql, value, row["id"])
        replicas = data.get("replicas")
        if not replicas:
            return []
        if self._store.row("SELECT 1 FROM replica WHERE datafile = ?", row["id"]):
            raise failed()
        place = Placer(self._site, uploads=True).place_replica(replicas[0])
        return [self._insert_replica(row["id"], row["dataset"], place)]

    def _check_new(self, data: Mapping[str, Any], who: Caller, allowed: set[int]) -> Draft:
        dataset = id_in(data.get("dataset"), "dataset")
        if dataset is None or dataset not in allowed:
            dataset = self.find_dataset(data, who)
            allowed.add(dataset)
        return read_draft(data, dataset, self._site.times)

    def _insert_many(self, drafts: list[Draft], places: list[Place | None]) -> range:
        """Insert records with their replicas and return the replicas' ids."""
        if any(place is None or place.path is None for place in places):
            raise failed()
        first = self._next("datafile")
        now = self._site.times.now()
        self._store.change_many(
            _INSERT, [(number, *draft) for number, draft in enumerate(drafts, first)]
        )
        first_replica = self._next("replica")
        rows = [
            (first_replica + index, first + index, draft.dataset, place.box, place.uri, now)
            for index, (draft, place) in enumerate(zip(drafts, places, strict=True))
            if place is not None
        ]
        self._store.change_many(_INSERT_REPLICA, list(rows))
        return range(first_replica, first_replica + len(rows))

    def _next(self, table: str) -> int:
        return self._store.number("SELECT seq FROM sqlite_sequence WHERE name = ?", table) + 1

    def _insert_replica(self, datafile: int, dataset: int, place: Place) -> int:
        number = self._next("replica")
        now = self._site.times.now()
        self._store.change(_INSERT_REPLICA, number, datafile, dataset, place.box, place.uri, now)
        return number

    def _insert_with_care(self, draft: Draft, place: Place | None) -> Made | None:
        """Insert a record, unless its name exists; None where only harm was done."""
        existing = self._store.row(_FIND, *draft[:4])
        number = self._next("datafile")
        if existing is not None:
            if existing["replica"] is not None:
                raise Refusal(409)
            if not replace_record(self._site, draft, existing["id"], place):
                return None
            number = draft.dataset
        self._store.change(_INSERT, number, *draft)
        if place is None:
            return Made(number, 0, "")
        replica = self._insert_replica(number, draft.dataset, place)
        return Made(number, replica, "" if place.given else place.path or "")


def write_content(path: Path, content: bytes) -> None:
    """Write a file into a box, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
