"""Users, groups, facilities and instruments."""

import sqlite3
from collections.abc import Callable
from typing import Any

from flask import Response

from mydata_like.demo.context import (
    ServerContext,
    caller,
    find_record,
    id_in,
    require_permission,
    uri_of,
)
from mydata_like.demo.database import Row
from mydata_like.demo.requests import (
    QueryFilters,
    answer_changed,
    answer_created,
    answer_json,
    answer_list,
    denied,
    failed,
    read_json,
)

_NAME_LIMIT = 100

_USERS = QueryFilters(
    {"username": "username = ?", "email__iexact": "lower(email) = lower(?)"},
    frozenset({"id", "first_name", "last_name", "groups"}),
)
_GROUPS = QueryFilters({"name": "name = ?"}, frozenset({"id"}))
_FACILITIES = QueryFilters({"name": "name = ?", "id": "id = ?"}, frozenset({"manager_group"}))
_INSTRUMENTS = QueryFilters(
    {"facility__id": "facility = ?", "facility": "facility = ?", "name": "name = ?"},
    frozenset({"id", "created_time", "modified_time"}),
)


class Accounts:
    """The API of users, groups, facilities and instruments."""

    def __init__(self, site: ServerContext) -> None:
        self._store = site.store
        self._times = site.times

    def list_users(self) -> Response:
        return self._list("user", _USERS, self._show_user, lambda _: bool(caller().id))

    def show_user(self, number: int) -> Response:
        row = find_record(self._store, "user", number)
        if not caller().id:
            raise denied()
        return answer_json(self._show_user(row))

    def find_migrated_user(self) -> Response:
        """Answer that a user has no migrated account, as a server without migrations does."""
        return answer_json({"success": False})

    def list_groups(self) -> Response:
        return self._list('"group"', _GROUPS, show_group, lambda _: bool(caller().id))

    def list_facilities(self) -> Response:
        managed = caller().facilities
        return self._list(
            "facility", _FACILITIES, self._show_facility, lambda row: row["id"] in managed
        )

    def list_instruments(self) -> Response:
        managed = caller().facilities
        return self._list(
            "instrument", _INSTRUMENTS, self._show, lambda row: row["facility"] in managed
        )

    def get_instrument(self, number: int) -> Response:
        row = find_record(self._store, "instrument", number)
        if not caller().id:
            raise denied()
        return answer_json(self._show(row))

    def create_instrument(self) -> Response:
        data = read_json()
        facility = id_in(data.get("facility"), "facility")
        if facility not in require_permission().facilities:
            raise denied()
        now = self._times.now()
        try:
            number = self._store.insert(
                "instrument", name=_name(data), facility=facility, created=now, modified=now
            )
        except sqlite3.IntegrityError:
            raise failed() from None
        return answer_created(self.show_instrument(number))

    def rename_instrument(self, number: int) -> Response:
        data = read_json()
        row = find_record(self._store, "instrument", number)
        if row["facility"] not in require_permission().facilities:
            raise denied()
        try:
            self._store.change(
                "UPDATE instrument SET name = ?, modified = ? WHERE id = ?",
                _name(data),
                self._times.now(),
                number,
            )
        except sqlite3.IntegrityError:
            raise failed() from None
        return answer_changed(self.show_instrument(number))

    def show_instrument(self, number: int) -> dict[str, Any]:
        """Return all fields of an instrument, as datasets include them too."""
        return self._show(find_record(self._store, "instrument", number))

    def _list(
        self,
        table: str,
        filters: QueryFilters,
        show: Callable[[Row], object],
        is_visible: Callable[[Row], bool],
    ) -> Response:
        where, values = filters.read()
        sql = f"SELECT * FROM {table} WHERE {where} ORDER BY id"  # noqa: S608 - constants
        rows = self._store.rows(sql, *values)
        return answer_list([row for row in rows if is_visible(row)], show)

    def _show(self, row: Row) -> dict[str, Any]:
        facility = find_record(self._store, "facility", row["facility"])
        return {
            "created_time": row["created"],
            "facility": self._show_facility(facility),
            "id": row["id"],
            "modified_time": row["modified"],
            "name": row["name"],
            "resource_uri": uri_of("instrument", row["id"]),
        }

    def _show_facility(self, row: Row) -> dict[str, Any]:
        group = find_record(self._store, '"group"', row["manager_group"])
        return {
            "created_time": row["created"],
            "id": row["id"],
            "manager_group": show_group(group),
            "modified_time": row["modified"],
            "name": row["name"],
            "resource_uri": uri_of("facility", row["id"]),
        }

    def _show_user(self, row: Row) -> dict[str, Any]:
        """Return a user; names and e-mail addresses of others are for facility managers only."""
        who = caller()
        open_ = bool(who.facilities) or who.superuser or who.id == row["id"]
        groups = self._store.rows(
            'SELECT g.* FROM "group" g JOIN membership m ON m."group" = g.id WHERE m.user = ?',
            row["id"],
        )
        return {
            "email": row["email"] if open_ else "",
            "first_name": row["first_name"] if open_ else "",
            "groups": [show_group(group) for group in groups] if open_ else [],
            "id": row["id"],
            "last_name": row["last_name"] if open_ else "",
            "resource_uri": uri_of("user", row["id"]),
            "username": row["username"],
        }


def show_group(row: Row) -> dict[str, Any]:
    """Return a group as the API shows it."""
    return {"id": row["id"], "name": row["name"], "resource_uri": uri_of("group", row["id"])}


def _name(data: dict[str, Any]) -> str:
    name = data.get("name")
    if not isinstance(name, str) or len(name) > _NAME_LIMIT:
        raise failed()
    return name
