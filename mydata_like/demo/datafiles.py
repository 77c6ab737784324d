"""Datafile records over HTTP, under both of the names the server has for them."""

import json
from typing import Any

from flask import Response, request

from mydata_like.demo.answers import (
    JSON,
    SORRY,
    Refusal,
    answer_objects,
    answer_text,
    denied,
    failed,
    invalid,
)
from mydata_like.demo.placing import Placer
from mydata_like.demo.queries import Filters, envelope, read_json, read_order, read_page
from mydata_like.demo.records import Registrar
from mydata_like.demo.site import (
    READABLE_DATASETS,
    Site,
    caller,
    can_read_dataset,
    find_writable_dataset,
    require_permission,
    uri_of,
)
from mydata_like.demo.store import Row
from mydata_like.demo.verifier import replica_path

_FILTERS = Filters(
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
_REPLICAS = """
    SELECT r.id AS replica, r.datafile, r.uri, r.verified, r.created AS stored, r.last_verified,
        b.name AS location, b.location AS folder
    FROM replica r JOIN box b ON b.id = r.box WHERE r.datafile IN (%s) ORDER BY r.id
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
    """Datafiles under one resource name; `ours` is the MyData app's variant of it."""

    def __init__(self, site: Site, registrar: Registrar, *, ours: bool) -> None:
        self._store = site.store
        self._verifier = site.verifier
        self._site = site
        self._registrar = registrar
        self._ours = ours
        self._resource = "mydata_dataset_file" if ours else "dataset_file"
        self._orders = frozenset({"filename", "modification_time"} | (set() if ours else {"id"}))
        self._left_path = ""  # of a bulk request, for the next reply to show by mistake

    def list_datafiles(self, dataset: int | None = None) -> Response:
        page = read_page()
        conditions, values = _FILTERS.read()
        order = read_order(self._orders, _ORDERS)
        who = caller()
        if dataset is not None:
            conditions.append("d.dataset = ?")
            values.append(str(dataset))
        if not who.superuser:
            conditions.append(f"d.dataset IN {READABLE_DATASETS}")
            values.extend([str(who.id), str(who.id)])
        where = " AND ".join(["1", *conditions])
        total = self._store.number(f"SELECT count(*) FROM datafile d WHERE {where}", *values)  # noqa: S608 - constants
        shown = self._show(f"{where} ORDER BY {order} LIMIT ? OFFSET ?", *values, *page)
        return answer_objects(envelope(total, page, ()), shown)

    def get_datafile(self, number: int) -> Response:
        self._find(number)
        return answer_text(self._show("d.id = ?", number)[0], kind=JSON)

    def get_set(self, numbers: str) -> Response:
        """Answer with several records by their ids."""
        shown: list[str] = []
        missing = []
        for number in numbers.split(";"):
            try:
                shown += self._show("d.id = ?", self._find(int(number))["id"])
            except (Refusal, ValueError):
                missing.append(number)
        return answer_objects({"not_found": missing} if missing else {}, shown)

    def create(self) -> Response:
        """Make a record, or apply many where the client could not say PATCH."""
        if request.headers.get("X-HTTP-Method-Override", "").upper() == "PATCH":
            return self.apply()
        if not caller().id:
            raise denied()
        if (request.content_type or "").startswith("multipart/form-data"):
            return self._create_with_file()
        data = read_json(request.get_data(), request.content_type or "")
        dataset = self._registrar.find_dataset(data, caller())
        made = self._registrar.make(data, dataset, Placer(self._site, uploads=self._ours))
        path, self._left_path = made.path or self._left_path, ""
        return answer_text(path, 201, location=uri_of(self._resource, made.id))

    def apply(self) -> Response:
        """Make and change many records at once, or none."""
        require_permission()
        data = read_json(request.get_data(), request.content_type or "")
        objects = data.get("objects")
        if not isinstance(objects, list):
            raise invalid("Invalid data sent.")
        if not all(isinstance(entry, dict) for entry in objects):
            raise failed()
        placer = Placer(self._site, uploads=self._ours)
        self._left_path = self._registrar.apply(objects, caller(), placer)
        return answer_text(status=202)

    def change(self, number: int) -> Response:
        data = read_json(request.get_data(), request.content_type or "")
        self._registrar.change(number, data, require_permission())
        return answer_text(status=202)

    def replace(self, number: int) -> Response:
        """Take a whole record back, which fails if it has the fields that every record has."""
        data = read_json(request.get_data(), request.content_type or "")
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
        """Ask for a look at the bytes; only the plain resource can."""
        if self._ours:
            raise failed()
        row = self._store.row("SELECT dataset FROM datafile WHERE id = ?", number)
        if row is None:
            raise Refusal(404, SORRY)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise Refusal(403)
        replicas = self._store.rows("SELECT id FROM replica WHERE datafile = ?", number)
        self._verifier.schedule((replica["id"] for replica in replicas), at_once=True)
        return answer_text()

    def download(self, number: int) -> Response:
        """Answer with a datafile's bytes, once they are verified; never with a part of them."""
        if self._ours:
            raise failed()
        row = self._store.row("SELECT * FROM datafile WHERE id = ?", number)
        if row is None:
            raise Refusal(404, SORRY)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise Refusal(403)
        good = [it for it in self._store.rows(_REPLICAS % "?", number) if it["verified"]]
        if not good:
            raise Refusal(404)
        content = replica_path(good[0]["folder"], good[0]["uri"]).read_bytes()
        return Response(content, content_type=row["mimetype"])

    def _create_with_file(self) -> Response:
        data = json.loads(request.form["json_data"])
        dataset = self._registrar.find_dataset(data, caller())
        find_writable_dataset(self._store, caller(), dataset)
        attached = request.files["attached_file"]
        made = self._registrar.attach(data, dataset, attached.read())
        return answer_text(status=201, location=uri_of(self._resource, made.id))

    def _find(self, number: int) -> Row:
        row = self._store.row("SELECT * FROM datafile WHERE id = ?", number)
        if row is None:
            raise Refusal(404)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise denied()
        return row

    def _show(self, condition: str, *values: str | int) -> list[str]:
        """Return datafiles as they are answered with, each with its replicas, as JSON.

        The database writes it: clients list each datafile once at least, by the thousand.
        """
        sql = _SHOWN % (self._resource, "" if self._ours else _PARAMETERS, condition)
        return [row[0] for row in self._store.rows(sql, *values)]


def show_replica(row: Row, datafile: int) -> dict[str, Any]:
    """Return a replica as it stands in its datafile."""
    return {
        "created_time": row["stored"],
        "datafile": uri_of("dataset_file", datafile),
        "id": row["replica"],
        "last_verified_time": row["last_verified"],
        "location": row["location"],
        "resource_uri": uri_of("replica", row["replica"]),
        "uri": row["uri"],
        "verified": bool(row["verified"]),
    }
