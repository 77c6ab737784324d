"""The choice of storage box and path for a new replica."""

import posixpath
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from mydata_like.demo.context import DEFAULT_BOX, ServerContext
from mydata_like.demo.database import Row
from mydata_like.demo.requests import ParsedRecord
from mydata_like.demo.verifier import join_inside


class StoragePath(NamedTuple):
    """A storage box and a path below its location; `given` if the client named them."""

    box: int
    location: str
    uri: str
    given: bool

    @property
    def path(self) -> str | None:
        """The absolute path, or None if it is outside the box."""
        try:
            return join_inside(self.location, self.uri)
        except ValueError:
            return None


class Placer:
    """The choice of paths during one request, with a cache of storage boxes."""

    def __init__(self, site: ServerContext, *, uploads: bool) -> None:
        self._site = site
        self._uploads = uploads  # whether to use the box of the uploader's approval
        self._boxes: dict[tuple[str, str], Row | None] = {}
        self._folders: dict[int, str] = {}

    def place(self, data: Mapping[str, Any], draft: ParsedRecord) -> StoragePath | None:
        """Return the path of a record's replica, or None if its uploader is not approved."""
        if replicas := data.get("replicas"):
            return self.place_replica(replicas[0])
        box = self._find("name", self._site.receiving_box)
        if self._uploads:
            uploader = str(data.get("uploader_uuid", ""))
            fingerprint = str(data.get("requester_key_fingerprint", ""))
            request = self._find(uploader, fingerprint)
            if request is not None:
                box = self._find("id", str(request["box"])) if request["approved"] else None
        if box is None:
            return None
        return StoragePath(box["id"], box["location"], self._compute_uri(draft), given=False)

    def place_replica(self, replica: Mapping[str, Any]) -> StoragePath:
        """Return the path that the client gave for a replica; an unknown box is the default one."""
        box = self._find("name", str(replica.get("location"))) or self.default_box()
        uri = str(replica.get("url") or replica.get("uri") or "")
        return StoragePath(box["id"], box["location"], uri, given=True)

    def place_default(self, draft: ParsedRecord) -> StoragePath:
        """Return the path for a file that was sent with its record."""
        box = self.default_box()
        return StoragePath(box["id"], box["location"], self._compute_uri(draft), given=False)

    def default_box(self) -> Row:
        box = self._find("name", DEFAULT_BOX)
        assert box is not None
        return box

    def _find(self, kind: str, value: str) -> Row | None:
        """Return a box by its name or id, or an uploader's request for approval."""
        key = (kind, value)
        if key not in self._boxes:
            store = self._site.store
            if kind in ("name", "id"):
                found = store.row(f"SELECT * FROM box WHERE {kind} = ?", value)  # noqa: S608 - constants
            else:
                found = store.row(
                    "SELECT registration.* FROM registration JOIN uploader"
                    " ON uploader.id = uploader WHERE uuid = ? AND fingerprint = ?",
                    kind,
                    value,
                )
            self._boxes[key] = found
        return self._boxes[key]

    def _compute_uri(self, draft: ParsedRecord) -> str:
        """Return the server's path: the directory is percent-encoded, the name is not."""
        if draft.dataset not in self._folders:
            row = self._site.store.row(
                "SELECT description FROM dataset WHERE id = ?", draft.dataset
            )
            assert row is not None
            name = quote(row["description"], safe="") or "untitled"
            self._folders[draft.dataset] = f"{name}-{draft.dataset}"
        folder = self._folders[draft.dataset]
        return posixpath.join(folder, quote(draft.directory or ""), draft.filename.strip())
