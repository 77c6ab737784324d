"""The API of datafiles, under both resource names that the server has for them."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import Response, request

from mydata_like.demo.context import (
    READABLE_DATASETS,
    Caller,
    ServerContext,
    caller,
    can_read_dataset,
    find_record,
    find_writable_dataset,
    id_in,
    require_permission,
    uri_of,
)
from mydata_like.demo.database import Row
from mydata_like.demo.requests import (
    JSON,
    SORRY,
    ParsedRecord,
    QueryFilters,
    Refusal,
    answer_objects,
    answer_text,
    denied,
    envelope,
    failed,
    invalid,
    read_changes,
    read_draft,
    read_json,
    read_order,
    read_page,
)
from mydata_like.demo.storage_placement import Placer, StoragePath
from mydata_like.demo.verifier import disk_path, replica_path


def replace_record(
    site: ServerContext, draft: ParsedRecord, old: int, place: StoragePath | None
) -> bool:
    """Replace a record without a replica as the real server does: delete the wrong records.

    The real server's defect also deletes the datafile whose id is that of the dataset. Call it
    within a transaction. Return whether a new record is to be created.
    """
    site.report_violation(
        f"POST of {draft.directory!r}/{draft.filename!r} in dataset {draft.dataset},"
        f" whose record {old} has no replica"
    )
    site.store.change("DELETE FROM datafile WHERE id = ?", old)
    victim = site.store.row(
        "SELECT replica.box, uri, location FROM replica JOIN box ON box.id = replica.box"
        " WHERE datafile = ?",
        draft.dataset,
    )
    site.store.change("DELETE FROM datafile WHERE id = ?", draft.dataset)
    site.store.change("DELETE FROM replica WHERE datafile = ?", draft.dataset)
    if victim is None or place is None or victim["box"] != place.box:
        return True
    replica_path(victim["location"], victim["uri"]).unlink(missing_ok=True)
    site.report_violation(f"datafile {draft.dataset} was destroyed with its bytes")
    return False


_RESOURCES = ("mydata_dataset_file", "dataset_file")
_INSERT = f"INSERT INTO datafile VALUES ({', '.join('?' * 11)})"  # noqa: S608 - constants
_FIND = """
    SELECT d.id, r.id AS replica FROM datafile d LEFT JOIN replica r ON r.datafile = d.id
    WHERE d.dataset = ? AND d.directory = ? AND d.filename = ? AND d.version = ?
"""
_INSERT_REPLICA = "INSERT INTO replica VALUES (?, ?, ?, ?, ?, 0, ?, NULL)"


class CreatedRecord(NamedTuple):
    """A new datafile; `path` is where its bytes are expected, empty if the client chose it."""

    id: int
    replica: int
    path: str


class Registrar:
    """Creates and changes datafile records as the real server does."""

    def __init__(self, site: ServerContext) -> None:
        self._site = site
        self._store = site.store

    def find_dataset(self, data: Mapping[str, Any], who: Caller) -> int:
        """Return the dataset of a record. Raises `Refusal` if the caller may not add to it."""
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

    def create(
        self, data: Mapping[str, Any], who: Caller, placer: Placer, content: bytes | None = None
    ) -> CreatedRecord:
        """Create a record, with its bytes if the request has them.

        Without bytes it may stay even if the answer is 500, as on the real server.
        """
        draft = read_draft(data, self.find_dataset(data, who), self._site.times)
        with self._store.transaction():
            place = placer.place(data, draft) if content is None else placer.place_default(draft)
            made = self._insert_with_care(draft, place)
            path = None if made is None or place is None else place.path
            if content is not None and made is not None:
                if path is None:
                    raise failed()  # the record must not stay, as its bytes could not be written
                disk = disk_path(path)
                disk.parent.mkdir(parents=True, exist_ok=True)
                disk.write_bytes(content)
        if made is None or path is None:
            raise failed()
        self._site.verifier.schedule([made.replica], at_once=content is not None)
        return made

    def apply(self, objects: Sequence[Mapping[str, Any]], who: Caller, placer: Placer) -> str:
        """Create and change records, all or none; return the path of the last new one."""
        allowed: set[int] = set()  # datasets to which the caller may add
        replicas: list[int] = []
        drafts: list[ParsedRecord] = []
        places: list[StoragePath | None] = []
        with self._store.transaction():
            try:
                for data in objects:
                    number = id_in(data.get("resource_uri"), *_RESOURCES)
                    row = number and self._store.row("SELECT * FROM datafile WHERE id = ?", number)
                    if row:
                        replicas += self._change(row, data, who)
                        continue
                    dataset = id_in(data.get("dataset"), "dataset")
                    if dataset is None or dataset not in allowed:
                        dataset = self.find_dataset(data, who)
                        allowed.add(dataset)
                    drafts.append(read_draft(data, dataset, self._site.times))
                    places.append(placer.place(data, drafts[-1]))
                replicas += self._insert_many(drafts, places)
            except sqlite3.IntegrityError:
                raise failed() from None
        self._site.verifier.schedule(replicas)
        last = places[-1] if places else None
        return last.path or "" if last is not None and not last.given else ""

    def change(self, number: int, data: Mapping[str, Any], who: Caller) -> None:
        """Change a record; a replica can be added to a record without one, but not changed."""
        row = find_record(self._store, "datafile", number)
        with self._store.transaction():
            try:
                replicas = self._change(row, data, who)
            except sqlite3.IntegrityError:
                raise failed() from None
        self._site.verifier.schedule(replicas)

    def _change(self, row: Row, data: Mapping[str, Any], who: Caller) -> list[int]:
        """Change a record within a transaction; return the replicas to verify."""
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

    def _insert_many(self, drafts: list[ParsedRecord], places: list[StoragePath | None]) -> range:
        """Insert records and their replicas; return the ids of the replicas."""
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
        self._store.change_many(_INSERT_REPLICA, rows)
        return range(first_replica, first_replica + len(rows))

    def _next(self, table: str) -> int:
        return self._store.number("SELECT seq FROM sqlite_sequence WHERE name = ?", table) + 1

    def _insert_replica(self, datafile: int, dataset: int, place: StoragePath) -> int:
        number = self._next("replica")
        now = self._site.times.now()
        self._store.change(_INSERT_REPLICA, number, datafile, dataset, place.box, place.uri, now)
        return number

    def _insert_with_care(
        self, draft: ParsedRecord, place: StoragePath | None
    ) -> CreatedRecord | None:
        """Insert a record. Return None if `replace_record` only deleted others.

        Raises 409 if a record of this name has a replica.
        """
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
            return CreatedRecord(number, 0, "")
        replica = self._insert_replica(number, draft.dataset, place)
        return CreatedRecord(number, replica, "" if place.given else place.path or "")


_FILTERS = QueryFilters(
    {
        "dataset": "d.dataset = ?",
        "dataset__id": "d.dataset = ?",
        "dataset__experiments__id": "d.dataset IN"
        " (SELECT dataset FROM dataset_experiment WHERE experiment = ?)",
        "dataset__description": "d.dataset IN (SELECT id FROM dataset WHERE description = ?)",
        "filename": "d.filename = ?",
        "directory": "d.directory = ?",
        "directory__startswith": "instr(d.directory, ?) = 1",
    },
    frozenset(
        {"id", "md5sum", "sha512sum", "size", "version", "mimetype", "replicas", "deleted"}
        | {"created_time", "modification_time", "datafile", "deleted_time", "parameter_sets"}
    ),
)
_ORDERS = {"filename": "d.filename", "modification_time": "d.modified", "id": "d.id"}
_VERIFIED = """
    SELECT uri, location FROM replica JOIN box ON box.id = box
    WHERE datafile = ? AND verified ORDER BY replica.id
"""
_SHOWN = """
    SELECT json_object(
        'created_time', d.created, 'datafile', NULL, 'dataset', '/api/v1/dataset/' || d.dataset
        || '/', 'deleted', json('false'), 'deleted_time', NULL, 'directory', d.directory,
        'filename', d.filename, 'id', d.id, 'md5sum', d.md5sum, 'mimetype', d.mimetype,
        'modification_time', d.modified, 'replicas', (
            SELECT json_group_array(json_object(
                'created_time', r.created, 'datafile', '/api/v1/dataset_file/' || d.id || '/',
                'id', r.id, 'last_verified_time', r.last_verified, 'location', b.name,
                'resource_uri', '/api/v1/replica/' || r.id || '/', 'uri', r.uri,
                'verified', json(iif(r.verified, 'true', 'false'))))
            FROM (SELECT * FROM replica WHERE datafile = d.id ORDER BY id) r
            JOIN box b ON b.id = r.box
        ), 'resource_uri', '/api/v1/%s/' || d.id || '/', 'sha512sum', d.sha512sum,
        'size', d.size, 'version', d.version%s)
    FROM datafile d WHERE %s
"""
_PARAMETERS = ", 'parameter_sets', json('[]')"


class Datafiles:
    """Datafiles under one resource name; `ours` selects the one of the MyData app."""

    def __init__(self, site: ServerContext, registrar: Registrar, *, ours: bool) -> None:
        self._store = site.store
        self._verifier = site.verifier
        self._site = site
        self._registrar = registrar
        self._ours = ours
        self._resource = "mydata_dataset_file" if ours else "dataset_file"
        self._orders = frozenset({"filename", "modification_time"} | (set() if ours else {"id"}))
        self._left_path = ""  # of a bulk request; the real server returns it with the next reply

    def list_datafiles(self, dataset: int | None = None) -> Response:
        page = read_page()
        where, values = _FILTERS.read()
        order = read_order(self._orders, _ORDERS)
        who = caller()
        if dataset is not None:
            where += " AND d.dataset = ?"
            values.append(str(dataset))
        if not who.superuser:
            where += f" AND d.dataset IN {READABLE_DATASETS}"
            values.extend([str(who.id), str(who.id)])
        total = self._store.number(f"SELECT count(*) FROM datafile d WHERE {where}", *values)  # noqa: S608 - constants
        shown = self._show(f"{where} ORDER BY {order} LIMIT ? OFFSET ?", *values, *page)
        return answer_objects(envelope(total, page, ()), shown)

    def get_datafile(self, number: int) -> Response:
        self._find(number)
        return answer_text(self._show("d.id = ?", number)[0], kind=JSON)

    def get_set(self, numbers: str) -> Response:
        """Answer with several records by id."""
        shown: list[str] = []
        missing = []
        for number in numbers.split(";"):
            try:
                shown += self._show("d.id = ?", self._find(int(number))["id"])
            except (Refusal, ValueError):
                missing.append(number)
        return answer_objects({"not_found": missing} if missing else {}, shown)

    def create(self) -> Response:
        """Create a record, or apply many if a header replaces the method by PATCH."""
        if request.headers.get("X-HTTP-Method-Override", "").upper() == "PATCH":
            return self.apply()
        if not caller().id:
            raise denied()
        placer = Placer(self._site, uploads=self._ours)
        if (request.content_type or "").startswith("multipart/form-data"):
            content = request.files["attached_file"].read()
            data = json.loads(request.form["json_data"])
            made = self._registrar.create(data, caller(), placer, content)
            return answer_text(status=201, location=uri_of(self._resource, made.id))
        made = self._registrar.create(read_json(), caller(), placer)
        path, self._left_path = made.path or self._left_path, ""
        return answer_text(path, 201, location=uri_of(self._resource, made.id))

    def apply(self) -> Response:
        """Create and change many records, all or none."""
        require_permission()
        data = read_json()
        objects = data.get("objects")
        if not isinstance(objects, list):
            raise invalid("Invalid data sent.")
        if not all(isinstance(entry, dict) for entry in objects):
            raise failed()
        placer = Placer(self._site, uploads=self._ours)
        self._left_path = self._registrar.apply(objects, caller(), placer)
        return answer_text(status=202)

    def change(self, number: int) -> Response:
        self._registrar.change(number, read_json(), require_permission())
        return answer_text(status=202)

    def replace(self, number: int) -> Response:
        """Replace a whole record, which fails if it has fields that every record has."""
        data = read_json()
        if "replicas" in data or "datafile" in data:
            raise failed()
        self._registrar.change(number, data, require_permission())
        response = answer_text(status=204)
        del response.headers["Content-Type"]
        return response

    def replace_list(self) -> Response:
        require_permission()
        raise failed()

    def delete(self, number: int) -> Response:
        raise denied()

    def verify(self, number: int) -> Response:
        """Verify a datafile now; only `dataset_file` offers this."""
        self._find_plain(number)
        replicas = self._store.rows("SELECT id FROM replica WHERE datafile = ?", number)
        self._verifier.schedule((replica["id"] for replica in replicas), at_once=True)
        return answer_text()

    def download(self, number: int) -> Response:
        """Answer with all bytes of a verified datafile; byte ranges are ignored."""
        row = self._find_plain(number)
        replica = self._store.row(_VERIFIED, number)
        if replica is None:
            raise Refusal(404)
        content = replica_path(replica["location"], replica["uri"]).read_bytes()
        return Response(content, content_type=row["mimetype"])

    def _find_plain(self, number: int) -> Row:
        """Return a datafile for the requests that Django, not its API, answers."""
        if self._ours:
            raise failed()
        row = self._store.row("SELECT * FROM datafile WHERE id = ?", number)
        if row is None:
            raise Refusal(404, SORRY)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise Refusal(403)
        return row

    def _find(self, number: int) -> Row:
        row = find_record(self._store, "datafile", number)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise denied()
        return row

    def _show(self, condition: str, *values: str | int) -> list[str]:
        """Return datafiles with their replicas as JSON texts.

        SQLite composes the JSON, because clients list thousands of datafiles.
        """
        sql = _SHOWN % (self._resource, "" if self._ours else _PARAMETERS, condition)
        return [row[0] for row in self._store.rows(sql, *values)]
