"""Users, groups, facilities and instruments."""

import sqlite3
from typing import Any

from flask import Response, request

from mydata_like.demo.context import ServerContext, caller, id_in, require_permission, uri_of
from mydata_like.demo.database import Row
from mydata_like.demo.requests import (
    QueryFilters,
    Refusal,
    answer_json,
    cut,
    denied,
    failed,
    read_json,
    read_page,
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


def _and(conditions: list[str]) -> str:
    return " AND ".join(["1", *conditions])


class Accounts:
    """The API of users, groups, facilities and instruments."""

    def __init__(self, site: ServerContext) -> None:
        self._store = site.store
        self._times = site.times

    def list_users(self) -> Response:
        page = read_page()
        conditions, values = _USERS.read()
        if not caller().id:
            return answer_json(cut(page, []))
        sql = f"SELECT * FROM user WHERE {_and(conditions)} ORDER BY id"  # noqa: S608 - constants
        users = self._store.rows(sql, *values)
        return answer_json(cut(page, [self._show_user(row) for row in users]))

    def show_user(self, number: int) -> Response:
        row = self._store.row("SELECT * FROM user WHERE id = ?", number)
        if row is None:
            raise Refusal(404)
        if not caller().id:
            raise denied()
        return answer_json(self._show_user(row))

    def find_migrated_user(self) -> Response:
        """Answer that a user has no migrated account, as a server without migrations does."""
        return answer_json({"success": False})

    def list_groups(self) -> Response:
        page = read_page()
        conditions, values = _GROUPS.read()
        if not caller().id:
            return answer_json(cut(page, []))
        sql = f'SELECT * FROM "group" WHERE {_and(conditions)} ORDER BY id'  # noqa: S608 - constants
        return answer_json(cut(page, [show_group(row) for row in self._store.rows(sql, *values)]))

    def list_facilities(self) -> Response:
        page = read_page()
        conditions, values = _FACILITIES.read()
        sql = f"SELECT * FROM facility WHERE {_and(conditions)} ORDER BY id"  # noqa: S608 - constants
        managed = caller().facilities
        rows = [row for row in self._store.rows(sql, *values) if row["id"] in managed]
        return answer_json(cut(page, [self._show_facility(row) for row in rows]))

    def list_instruments(self) -> Response:
        page = read_page()
        conditions, values = _INSTRUMENTS.read()
        sql = f"SELECT * FROM instrument WHERE {_and(conditions)} ORDER BY id"  # noqa: S608 - constants
        managed = caller().facilities
        rows = [row for row in self._store.rows(sql, *values) if row["facility"] in managed]
        return answer_json(cut(page, [self.show_instrument(row["id"]) for row in rows]))

    def get_instrument(self, number: int) -> Response:
        if self._store.row("SELECT 1 FROM instrument WHERE id = ?", number) is None:
            raise Refusal(404)
        if not caller().id:
            raise denied()
        return answer_json(self.show_instrument(number))

    def create_instrument(self) -> Response:
        data = read_json(request.get_data(), request.content_type or "")
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
        shown = self.show_instrument(number)
        return answer_json(shown, 201, location=uri_of("instrument", number))

    def rename_instrument(self, number: int) -> Response:
        data = read_json(request.get_data(), request.content_type or "")
        row = self._store.row("SELECT * FROM instrument WHERE id = ?", number)
        if row is None:
            raise Refusal(404)
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
        return answer_json(self.show_instrument(number), 200 if request.method == "PUT" else 202)

    def show_instrument(self, number: int) -> dict[str, Any] | None:
        """Return all fields of an instrument, as datasets include them too."""
        row = self._store.row("SELECT * FROM instrument WHERE id = ?", number)
        if row is None:
            return None
        facility = self._store.row("SELECT * FROM facility WHERE id = ?", row["facility"])
        assert facility is not None
        return {
            "created_time": row["created"],
            "facility": self._show_facility(facility),
            "id": row["id"],
            "modified_time": row["modified"],
            "name": row["name"],
            "resource_uri": uri_of("instrument", row["id"]),
        }

    def _show_facility(self, row: Row) -> dict[str, Any]:
        group = self._store.row('SELECT * FROM "group" WHERE id = ?', row["manager_group"])
        assert group is not None
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
