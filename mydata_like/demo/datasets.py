"""Datasets, and the numbers of their datafiles."""

from typing import Any

from flask import Response, request

from mydata_like.demo.accounts import Accounts
from mydata_like.demo.answers import Refusal, answer_json, denied, failed
from mydata_like.demo.queries import Filters, cut, read_json, read_page
from mydata_like.demo.site import (
    READABLE_DATASETS,
    Site,
    caller,
    can_read_dataset,
    can_read_experiment,
    find_writable_dataset,
    id_in,
    require_permission,
    uri_of,
)
from mydata_like.demo.store import Row

_IN_EXPERIMENT = "d.id IN (SELECT dataset FROM dataset_experiment WHERE experiment = ?)"
_FILTERS = Filters(
    {
        "experiments__id": _IN_EXPERIMENT,
        "experiments": _IN_EXPERIMENT,
        "description": "d.description = ?",
        "instrument__id": "d.instrument = ?",
        "instrument": "d.instrument = ?",
        "directory": "d.directory = ?",
        "id": "d.id = ?",
    },
    frozenset({"immutable", "created_time", "modified_time", "parameter_sets"}),
)
_FIND = f"SELECT d.* FROM dataset d WHERE (? OR d.id IN {READABLE_DATASETS}) AND "  # noqa: S608 - constants
_NUMBERS = """
    SELECT count(*) AS total, sum(verified) AS verified, max(last_verified) AS latest,
        group_concat(DISTINCT box) AS boxes
    FROM replica WHERE dataset = ?
"""


class Datasets:
    """The middle level of the hierarchy."""

    def __init__(self, site: Site, accounts: Accounts) -> None:
        self._store = site.store
        self._times = site.times
        self._accounts = accounts

    def list_datasets(self) -> Response:
        page = read_page()
        conditions, values = _FILTERS.read()
        who = caller()
        rows = self._store.rows(
            _FIND + " AND ".join(["1", *conditions]) + " ORDER BY d.id",
            who.superuser,
            who.id,
            who.id,
            *values,
        )
        shown = rows[page.offset : page.offset + page.limit]
        answer = cut(page, rows)
        return answer_json(answer | {"objects": [self._show(row) for row in shown]})

    def get_dataset(self, number: int) -> Response:
        row = self._store.row("SELECT * FROM dataset WHERE id = ?", number)
        if row is None:
            raise Refusal(404)
        if not can_read_dataset(self._store, caller(), number):
            raise denied()
        return answer_json(self._show(row))

    def create_dataset(self) -> Response:
        data = read_json(request.get_data(), request.content_type or "")
        who = require_permission()
        experiments = [id_in(uri, "experiment") for uri in data.get("experiments") or ()]
        if not experiments:
            raise denied()
        for experiment in experiments:
            if experiment is None or not can_read_experiment(self._store, who, experiment):
                raise denied()
        with self._store.transaction():
            number = self._insert(data, [number for number in experiments if number])
        row = self._store.row("SELECT * FROM dataset WHERE id = ?", number)
        assert row is not None
        return answer_json(self._show(row), 201, location=uri_of("dataset", number))

    def change_dataset(self, number: int) -> Response:
        data = read_json(request.get_data(), request.content_type or "")
        row = find_writable_dataset(self._store, caller(), number)
        self._store.change(
            "UPDATE dataset SET description = ?, immutable = ?, modified = ? WHERE id = ?",
            data.get("description", row["description"]),
            bool(data.get("immutable", row["immutable"])),
            self._times.now(),
            number,
        )
        return self.get_dataset(number)

    def get_numbers(self, number: int) -> Response:
        """Tell how many datafiles there are and how many are verified; anybody may know."""
        if self._store.row("SELECT 1 FROM dataset WHERE id = ?", number) is None:
            return answer_json({"success": False})
        total, size = self._count(number)
        row = self._store.rows(_NUMBERS, number)[0]
        verified = row["verified"] or 0
        return answer_json(
            {
                "success": True,
                "files": {"total": total, "verified": verified},
                "verified": 0 < total == verified,
                "size": size,
                "location": self._box_names(row["boxes"]),
                "last_verified": self._times.to_utc(row["latest"]) if row["latest"] else None,
            }
        )

    def _insert(self, data: dict[str, Any], experiments: list[int]) -> int:
        description = data.get("description") or ""
        if "\0" in description:
            raise failed()
        now = self._times.now()
        number = self._store.insert(
            "dataset",
            description=description,
            directory=data.get("directory"),
            immutable=bool(data.get("immutable")),
            instrument=id_in(data.get("instrument"), "instrument"),
            created=now,
            modified=now,
        )
        for experiment in experiments:
            self._store.insert("dataset_experiment", experiment=experiment, dataset=number)
        return number

    def _count(self, dataset: int) -> tuple[int, int]:
        row = self._store.rows(
            "SELECT count(*), coalesce(sum(size), 0) FROM datafile INDEXED BY datafile_sizes"
            " WHERE dataset = ?",
            dataset,
        )[0]
        return row[0], row[1]

    def _box_names(self, boxes: str | None) -> str:
        numbers = (boxes or "").split(",")
        rows = self._store.rows("SELECT id, name FROM box ORDER BY name")
        return ",".join(row["name"] for row in rows if str(row["id"]) in numbers)

    def _show(self, row: Row) -> dict[str, Any]:
        number = row["id"]
        count, size = self._count(number)
        experiments = self._store.rows(
            "SELECT experiment FROM dataset_experiment WHERE dataset = ?", number
        )
        instrument = row["instrument"]
        return {
            "created_time": row["created"],
            "dataset_datafile_count": count,
            "dataset_experiment_count": len(experiments),
            "dataset_size": size,
            "description": row["description"],
            "directory": row["directory"],
            "experiments": [uri_of("experiment", found["experiment"]) for found in experiments],
            "id": number,
            "immutable": bool(row["immutable"]),
            "instrument": instrument and self._accounts.show_instrument(instrument),
            "modified_time": row["modified"],
            "parameter_sets": [],
            "resource_uri": uri_of("dataset", number),
        }
