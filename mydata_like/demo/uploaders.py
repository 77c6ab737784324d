"""The API of uploaders and of requests for approval."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flask import Response

from mydata_like.demo.context import (
    Caller,
    ServerContext,
    caller,
    find_record,
    id_in,
    require_permission,
    uri_of,
)
from mydata_like.demo.database import Database, Row
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
from mydata_like.demo.server_clock import ServerClock

STAGING_BOX = "staging"


class ScpAddress(NamedTuple):
    """The host and the account over which an approved uploader reaches the staging area."""

    username: str
    hostname: str
    port: int
    host_keys: Sequence[str] = ()


def set_address(store: Database, address: ScpAddress, box: str = STAGING_BOX) -> None:
    """Write an address into the attributes of a storage box, where approved uploaders read it."""
    attributes = {
        "scp_username": address.username,
        "scp_hostname": address.hostname,
        "scp_port": str(address.port),
    }
    if address.host_keys:
        attributes["host_keys"] = ",".join(address.host_keys)
    for key, value in attributes.items():
        store.change(
            "INSERT INTO box_attribute (box, key, value)"
            " SELECT id, ?, ? FROM box WHERE name = ?"
            " ON CONFLICT (box, key) DO UPDATE SET value = excluded.value",
            key,
            value,
            box,
        )


def approve(store: Database, times: ServerClock, uuid: str, box: str = STAGING_BOX) -> int:
    """Approve all requests of an uploader; return their number."""
    return store.change(
        "UPDATE registration SET approved = 1, approval_time = ?,"
        " box = (SELECT id FROM box WHERE name = ?)"
        " WHERE uploader = (SELECT id FROM uploader WHERE uuid = ?)",
        times.now(),
        box,
        uuid,
    )


_LIMITS = (
    dict.fromkeys(("name", "contact_name", "contact_email", "hostname", "architecture"), 64)
    | dict.fromkeys(("processor", "mac_address", "ipv4_address", "ipv6_address"), 64)
    | dict.fromkeys(("os_release", "user_agent_version", "memory"), 32)
    | {"os_version": 128, "data_path": 256, "user_agent_install_location": 256, "uuid": 36}
)
_UPLOADERS = QueryFilters({"uuid": "uuid = ?"}, frozenset({"id", "name", "settings_updated"}))
_REQUESTS = QueryFilters(
    {
        "uploader__uuid": "uploader.uuid = ?",
        "requester_key_fingerprint": "fingerprint = ?",
    },
    frozenset({"id", "approved", "approver_comments", "requester_name", "requester_email"}),
)
_OBJECTS = "storages.backends.s3.S3Storage"
_STORAGE = "tardis.tardis_portal.storage.MyTardisLocalFileSystemStorage"


class UploaderResource:
    """The API of uploaders, with the settings that the server stores for them."""

    def __init__(self, site: ServerContext) -> None:
        self._site = site
        self._store = site.store

    def list_uploaders(self) -> Response:
        where, values = _UPLOADERS.read()
        sql = f"SELECT * FROM uploader WHERE {where} ORDER BY id"  # noqa: S608 - constants
        rows = self._store.rows(sql, *values) if caller().facilities else []
        return answer_list(rows, lambda row: self._show(row["id"]))

    def get_uploader(self, number: int) -> Response:
        if not caller().facilities:
            raise denied()
        return answer_json(self._show(number))

    def create_uploader(self) -> Response:
        data = read_json()
        require_manager()
        uuid, name = _check(data)
        try:
            number = self._store.insert("uploader", uuid=uuid, name=name, details=json.dumps(data))
        except sqlite3.IntegrityError:
            raise failed() from None
        return answer_created(self._show(number))

    def change_uploader(self, number: int) -> Response:
        """Update an uploader; the request must have its UUID."""
        data = read_json()
        require_manager()
        row = find_record(self._store, "uploader", number)
        if "uuid" not in data:
            raise failed()
        if data["uuid"] != row["uuid"]:
            raise denied()
        _, name = _check({"name": row["name"], **data})
        details = json.dumps(json.loads(row["details"]) | data)
        with self._store.transaction():
            self._store.change(
                "UPDATE uploader SET name = ?, details = ? WHERE id = ?", name, details, number
            )
            if "settings" in data:
                pairs = {str(row["key"]): str(row["value"]) for row in data["settings"]}
                keep_settings(self._store, self._site.times, number, pairs)
        return answer_changed(self._show(number))

    def _show(self, number: int) -> dict[str, Any]:
        row = find_record(self._store, "uploader", number)
        settings = self._store.rows(
            "SELECT * FROM uploader_setting WHERE uploader = ? ORDER BY id", number
        )
        return {
            "id": number,
            "name": row["name"],
            "resource_uri": uri_of("mydata_uploader", number),
            "settings": [
                show_pair("mydata_uploadersetting", row["id"], row["key"], row["value"])
                | {"uploader": uri_of("mydata_uploader", number)}
                for row in settings
            ],
            "settings_downloaded": None,
            "settings_updated": row["settings_updated"],
        }


def keep_settings(
    store: Database, times: ServerClock, uploader: int, settings: Mapping[str, str]
) -> None:
    """Store some settings of an uploader; its other settings stay unchanged."""
    for key, value in settings.items():
        store.change(
            "INSERT INTO uploader_setting (uploader, key, value) VALUES (?, ?, ?)"
            " ON CONFLICT (uploader, key) DO UPDATE SET value = excluded.value",
            uploader,
            key,
            value,
        )
    store.change("UPDATE uploader SET settings_updated = ? WHERE id = ?", times.now(), uploader)


class Registrations:
    """The API of requests for approval; an approved one includes its storage box."""

    def __init__(self, site: ServerContext) -> None:
        self._site = site
        self._store = site.store

    def list_requests(self) -> Response:
        where, values = _REQUESTS.read()
        sql = (
            "SELECT registration.* FROM registration"  # noqa: S608 - constants
            f" JOIN uploader ON uploader.id = uploader WHERE {where} ORDER BY registration.id"
        )
        rows = self._store.rows(sql, *values) if caller().facilities else []
        return answer_list(rows, self._show)

    def create_request(self) -> Response:
        data = read_json()
        require_manager()
        uploader = id_in(data.get("uploader"), "mydata_uploader")
        row = self._store.row("SELECT * FROM uploader WHERE id = ?", uploader)
        if row is None:
            raise failed()
        try:
            number = self._store.insert(
                "registration",
                uploader=row["id"],
                fingerprint=data["requester_key_fingerprint"],
                requester_name=data["requester_name"],
                requester_email=data["requester_email"],
                public_key=data["requester_public_key"],
                requested=self._site.times.now(),
            )
        except (KeyError, sqlite3.IntegrityError):
            raise failed() from None
        if self._site.auto_approve:
            approve(self._site.store, self._site.times, row["uuid"])
            if self._site.admit:
                self._site.admit(data["requester_public_key"])
        created = find_record(self._store, "registration", number)
        return answer_created(self._show(created) | {"name": data.get("name", "")})

    def _show(self, row: Row) -> dict[str, Any]:
        return {
            "approval_expiry": row["approval_expiry"],
            "approval_time": row["approval_time"],
            "approved": bool(row["approved"]),
            "approved_storage_box": self._show_box(row["box"]) if row["box"] else None,
            "approver_comments": row["approver_comments"],
            "id": row["id"],
            "request_time": row["requested"],
            "requester_email": row["requester_email"],
            "requester_key_fingerprint": row["fingerprint"],
            "requester_name": row["requester_name"],
            "requester_public_key": row["public_key"],
            "resource_uri": uri_of("mydata_uploaderregistrationrequest", row["id"]),
            "uploader": uri_of("mydata_uploader", row["uploader"]),
        }

    def _show_box(self, number: int) -> dict[str, Any]:
        box = find_record(self._store, "box", number)
        own = uri_of("storagebox", number)
        attributes = self._store.rows(
            "SELECT * FROM box_attribute WHERE box = ? ORDER BY id", number
        )
        objects = self._store.rows(
            "SELECT key, value FROM box_option WHERE box = ? AND key <> 'secret_key'", number
        )
        options = [(row["key"], row["value"]) for row in objects]
        if not options:  # as SFTP has the path: absolute and with slashes, also on Windows
            location = str(box["location"])
            remote = location if location.startswith("/") else "/" + location.replace("\\", "/")
            options = [("location", remote)]
        return {
            "attributes": [
                show_pair("storageboxattribute", row["id"], row["key"], row["value"])
                | {"storage_box": own}
                for row in attributes
            ],
            "description": box["name"],
            "django_storage_class": _OBJECTS if objects else _STORAGE,
            "id": number,
            "max_size": 1_000_000_000_000,
            "name": box["name"],
            "options": [
                show_pair("storageboxoption", number, key, value)
                | {"storage_box": own, "value_type": "string"}
                for key, value in options
            ],
            "resource_uri": own,
            "status": "online",
        }


def show_pair(resource: str, number: int, key: str, value: str) -> dict[str, Any]:
    """Return a key with its value, as three resources of the API have them."""
    return {"id": number, "key": key, "resource_uri": uri_of(resource, number), "value": value}


def require_manager() -> Caller:
    """Return the sender of the request. Raises 401 unless they manage a facility and may upload."""
    who = require_permission()
    if not who.facilities:
        raise denied()
    return who


def _check(data: dict[str, Any]) -> tuple[str, str]:
    """Return an uploader's UUID and name. Raises 500 for texts too long for their columns."""
    for key, limit in _LIMITS.items():
        if len(str(data.get(key, ""))) > limit:
            raise failed()
    if not isinstance(data.get("uuid"), str) or not isinstance(data.get("name"), str):
        raise failed()
    return data["uuid"], data["name"]
