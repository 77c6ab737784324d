"""The API of experiments and datasets, with their parameters and access rights."""

from typing import Any

from flask import Response, request

from mydata_like.demo.accounts import Accounts
from mydata_like.demo.context import (
    READABLE_DATASETS,
    READABLE_EXPERIMENTS,
    ServerContext,
    caller,
    can_read_dataset,
    can_read_experiment,
    find_record,
    find_writable_dataset,
    id_in,
    require_permission,
    uri_of,
)
from mydata_like.demo.database import Row
from mydata_like.demo.requests import (
    QueryFilters,
    answer_created,
    answer_json,
    answer_list,
    answer_text,
    denied,
    failed,
    read_json,
)

_IN_EXPERIMENT = "d.id IN (SELECT dataset FROM dataset_experiment WHERE experiment = ?)"
_DATASET_FILTERS = QueryFilters(
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
_FIND_DATASET = f"SELECT d.* FROM dataset d WHERE (? OR d.id IN {READABLE_DATASETS}) AND "  # noqa: S608 - constants
_NUMBERS = """
    SELECT count(*) AS total, sum(verified) AS verified, max(last_verified) AS latest,
        group_concat(DISTINCT box) AS boxes
    FROM replica WHERE dataset = ?
"""


class DatasetResource:
    """The API of datasets."""

    def __init__(self, site: ServerContext, accounts: Accounts) -> None:
        self._site = site
        self._store = site.store
        self._times = site.times
        self._accounts = accounts

    def list_datasets(self) -> Response:
        where, values = _DATASET_FILTERS.read()
        who = caller()
        sql = f"{_FIND_DATASET}{where} ORDER BY d.id"
        return answer_list(
            self._store.rows(sql, who.superuser, who.id, who.id, *values), self._show
        )

    def get_dataset(self, number: int) -> Response:
        row = find_record(self._store, "dataset", number)
        if not can_read_dataset(self._store, caller(), number):
            raise denied()
        return answer_json(self._show(row))

    def create_dataset(self) -> Response:
        data = read_json()
        who = require_permission()
        experiments = [id_in(uri, "experiment") for uri in data.get("experiments") or ()]
        if not experiments:
            raise denied()
        for experiment in experiments:
            if experiment is None or not can_read_experiment(self._store, who, experiment):
                raise denied()
        description = data.get("description") or ""
        if "\0" in description:
            raise failed()
        now = self._times.now()
        with self._store.transaction():
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
        return answer_created(self._show(find_record(self._store, "dataset", number)))

    def change_dataset(self, number: int) -> Response:
        data = read_json()
        row = find_writable_dataset(self._store, caller(), number)
        self._store.change(
            "UPDATE dataset SET description = ?, immutable = ?, modified = ? WHERE id = ?",
            data.get("description", row["description"]),
            bool(data.get("immutable", row["immutable"])),
            self._times.now(),
            number,
        )
        return self.get_dataset(number)

    def delete_dataset(self, number: int) -> Response:
        """Delete a dataset with its records, as a server may allow; MyTardis answers 401."""
        find_writable_dataset(self._store, caller(), number)
        if not self._site.allows_removal:
            raise denied()
        with self._store.transaction():
            for table, column in (
                ("replica", "dataset"),
                ("datafile", "dataset"),
                ("dataset_experiment", "dataset"),
                ("dataset", "id"),
            ):
                self._store.change(f"DELETE FROM {table} WHERE {column} = ?", number)  # noqa: S608 - constants
        return answer_text(status=204)

    def get_numbers(self, number: int) -> Response:
        """Answer with the numbers of datafiles and of verified ones; needs no access rights."""
        if self._store.row("SELECT 1 FROM dataset WHERE id = ?", number) is None:
            return answer_json({"success": False})
        total, size = self._count(number)
        row = self._store.rows(_NUMBERS, number)[0]
        verified = row["verified"] or 0
        used = (row["boxes"] or "").split(",")
        boxes = self._store.rows("SELECT id, name FROM box ORDER BY name")
        return answer_json(
            {
                "success": True,
                "files": {"total": total, "verified": verified},
                "verified": 0 < total == verified,
                "size": size,
                "location": ",".join(box["name"] for box in boxes if str(box["id"]) in used),
                "last_verified": self._times.to_utc(row["latest"]) if row["latest"] else None,
            }
        )

    def _count(self, dataset: int) -> tuple[int, int]:
        row = self._store.rows(
            "SELECT count(*), coalesce(sum(size), 0) FROM datafile INDEXED BY datafile_sizes"
            " WHERE dataset = ?",
            dataset,
        )[0]
        return row[0], row[1]

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


_TITLE_LIMIT = 400
_FILTERS = QueryFilters(
    {"title": "title = ?", "uploader": "uploader.value = ?"},
    frozenset({"id", "description", "created_by", "locked", "institution_name"}),
)
_PARAMETER_IDS = {"uploader": 9, "user_folder_name": 10, "group_folder_name": 11}
_FIND = f"""
    SELECT e.* FROM experiment e
    LEFT JOIN parameter uploader ON uploader.experiment = e.id AND uploader.name = 'uploader'
    LEFT JOIN parameter owner ON owner.experiment = e.id AND owner.name = 'user_folder_name'
    LEFT JOIN parameter team ON team.experiment = e.id AND team.name = 'group_folder_name'
    WHERE (? OR e.id IN {READABLE_EXPERIMENTS}) AND
"""  # noqa: S608 - constants


class Experiments:
    """The API of experiments; the user who creates one owns it."""

    def __init__(self, site: ServerContext) -> None:
        self._site = site
        self._store = site.store
        self._times = site.times

    def list_experiments(self) -> Response:
        """Answer MyData's query by title, and by the owner's folder if the layout has one."""
        where, values = _FILTERS.read()
        owner, names = self._owner_condition()
        who = caller()
        sql = f"{_FIND} {where} AND {owner} ORDER BY e.id"
        rows = self._store.rows(sql, who.superuser, who.id, who.id, *values, *names)
        if "folder_structure" in request.args:
            rows = rows[:1]
        resource = request.path.split("/")[3]
        return answer_list(rows, lambda row: self._show(row, resource))

    def get_experiment(self, number: int) -> Response:
        row = find_record(self._store, "experiment", number)
        if not can_read_experiment(self._store, caller(), number):
            raise denied()
        return answer_json(self._show(row, request.path.split("/")[3]))

    def create_experiment(self) -> Response:
        data = read_json()
        who = require_permission()
        title = data.get("title") or ""
        if len(title) > _TITLE_LIMIT or "\0" in title:
            raise failed()
        with self._store.transaction():
            number = self._insert(title, data, who.id)
        shown = self._show(find_record(self._store, "experiment", number), "mydata_experiment")
        if "immutable" in data:
            shown["immutable"] = data["immutable"]
        return answer_created(shown)

    def delete_experiment(self, number: int) -> Response:
        """Delete an experiment, as a server may allow; MyTardis answers 401."""
        if not can_read_experiment(self._store, caller(), number) or not self._site.allows_removal:
            raise denied()
        with self._store.transaction():
            for table in ("acl", "parameter", "parameter_set", "dataset_experiment"):
                self._store.change(f"DELETE FROM {table} WHERE experiment = ?", number)  # noqa: S608 - constants
            self._store.change("DELETE FROM experiment WHERE id = ?", number)
        return answer_text(status=204)

    def grant(self) -> Response:
        """Give a user or a group a right on an experiment that the caller owns."""
        data = read_json()
        who = require_permission()
        experiment = id_in(data.get("content_object"), "experiment", "mydata_experiment")
        if experiment is None or not can_read_experiment(self._store, who, experiment):
            raise denied()
        number = self._store.insert(
            "acl",
            experiment=experiment,
            plugin=str(data.get("pluginId")),
            entity=int(data.get("entityId") or 0),
            owner=bool(data.get("isOwner")),
            writes=bool(data.get("canWrite")),
        )
        return answer_text(status=201, location=uri_of("objectacl", number))

    def _insert(self, title: str, data: dict[str, Any], owner: int) -> int:
        now = self._times.now()
        number = self._store.insert(
            "experiment",
            title=title,
            description=data.get("description") or "",
            institution=data.get("institution_name") or "Monash University",
            created_by=owner,
            created=now,
            updated=now,
        )
        self._store.insert(
            "acl", experiment=number, plugin="django_user", entity=owner, owner=1, writes=1
        )
        for group in data.get("parameter_sets") or ():
            parameter_set = self._store.insert(
                "parameter_set", experiment=number, namespace=group["schema"]
            )
            for parameter in group.get("parameters") or ():
                self._store.insert(
                    "parameter",
                    parameter_set=parameter_set,
                    experiment=number,
                    name=parameter["name"],
                    value=str(parameter["value"]),
                )
        return number

    def _owner_condition(self) -> tuple[str, list[str]]:
        """Return the condition on the owner's or the group's folder, depending on the layout."""
        layout = request.args.get("folder_structure", "")
        user = request.args.get("user_folder_name", "")
        group = request.args.get("group_folder_name", "")
        if layout.startswith(("Username", "Email")) and user:
            known = self._store.row(
                "SELECT username, email FROM user"
                " WHERE lower(username) = lower(?) OR lower(email) = lower(?)",
                user,
                user,
            )
            names = [user] if known is None else [known["username"], known["email"]]
            marks = ", ".join(["lower(?)"] * len(names))
            return f"lower(owner.value) IN ({marks})", names
        if layout.startswith("User Group") and group:
            return "team.value = ?", [group]
        return "1", []

    def _show(self, row: Row, resource: str) -> dict[str, Any]:
        number = row["id"]
        owners = self._store.rows(
            "SELECT DISTINCT entity FROM acl"
            " WHERE experiment = ? AND plugin = 'django_user' AND owner ORDER BY id",
            number,
        )
        count, size = self._store.rows(
            "SELECT count(*), coalesce(sum(size), 0) FROM datafile WHERE dataset IN"
            " (SELECT dataset FROM dataset_experiment WHERE experiment = ?)",
            number,
        )[0]
        return {
            "approved": False,
            "authors": [],
            "created_by": uri_of("user", row["created_by"]),
            "created_time": row["created"],
            "datafile_count": count,
            "dataset_count": self._store.number(
                "SELECT count(*) FROM dataset_experiment WHERE experiment = ?", number
            ),
            "description": row["description"],
            "end_time": None,
            "experiment_size": size,
            "handle": None,
            "id": number,
            "institution_name": row["institution"],
            "is_publication": False,
            "locked": False,
            "owner_ids": [owner["entity"] for owner in owners],
            "parameter_sets": self._parameter_sets(number),
            "public_access": 1,
            "resource_uri": uri_of(resource, number),
            "start_time": None,
            "title": row["title"],
            "update_time": row["updated"],
            "url": None,
        }

    def _parameter_sets(self, experiment: int) -> list[dict[str, Any]]:
        sets = self._store.rows("SELECT * FROM parameter_set WHERE experiment = ?", experiment)
        parameters = self._store.rows(
            "SELECT * FROM parameter WHERE experiment = ? ORDER BY id", experiment
        )
        return [
            {
                "experiment": uri_of("experiment", experiment),
                "id": row["id"],
                "parameters": [
                    {
                        "datetime_value": None,
                        "id": parameter["id"],
                        "link_id": None,
                        "name": uri_of("parametername", _PARAMETER_IDS.get(parameter["name"], 12)),
                        "numerical_value": None,
                        "parameterset": uri_of("experimentparameterset", row["id"]),
                        "resource_uri": uri_of("experimentparameter", parameter["id"]),
                        "string_value": parameter["value"],
                        "value": None,
                    }
                    for parameter in parameters
                    if parameter["parameter_set"] == row["id"]
                ],
                "resource_uri": uri_of("experimentparameterset", row["id"]),
                "schema": {
                    "hidden": True,
                    "id": 6,
                    "immutable": True,
                    "name": "MyData Default Experiment",
                    "namespace": row["namespace"],
                    "resource_uri": uri_of("schema", 6),
                    "subtype": "",
                    "type": 1,
                },
            }
            for row in sets
        ]
