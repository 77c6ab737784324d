"""The API of replicas: their current size, and the upload of large ones in chunks."""

import re
import shutil
import sqlite3
from contextlib import suppress
from shutil import copyfile

import xxhash
from flask import Response, request

from mydata_like.demo.context import DEFAULT_BOX, ServerContext, caller, can_read_dataset, uri_of
from mydata_like.demo.database import Row
from mydata_like.demo.requests import Refusal, answer_json, answer_list, denied, failed, invalid
from mydata_like.demo.verifier import replica_path

FIND_REPLICA = """
    SELECT r.uri, r.verified, r.created AS stored, r.last_verified, r.datafile,
        r.dataset, b.name AS location, b.location AS folder, d.size, d.md5sum
    FROM replica r JOIN box b ON b.id = r.box JOIN datafile d ON d.id = r.datafile
    WHERE r.id = ?
"""
FIND_FIRST = """
    SELECT r.dataset, r.uri, b.location FROM replica r JOIN box b ON b.id = r.box
    WHERE r.datafile = ? ORDER BY r.id
"""


class Replicas:
    """The API of replicas; they can be read one by one and not be changed."""

    def __init__(self, site: ServerContext, *, ours: bool) -> None:
        self._store = site.store
        self._ours = ours

    def list_replicas(self) -> Response:
        """Answer with an empty list, as the real server does unless the user is a superuser."""
        if any(name.startswith("datafile") for name in request.args):
            raise invalid("The 'datafile' field does not allow filtering.")
        return answer_list((), str)

    def get_replica(self, number: int) -> Response:
        row = self._store.row(FIND_REPLICA, number)
        if row is None:
            raise Refusal(404)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise denied()
        shown = {
            "created_time": row["stored"],
            "datafile": uri_of("dataset_file", row["datafile"]),
            "id": number,
            "last_verified_time": row["last_verified"],
            "location": row["location"],
            "resource_uri": uri_of("replica", number),
            "uri": row["uri"],
            "verified": bool(row["verified"]),
        }
        if self._ours:
            shown["resource_uri"] = uri_of("mydata_replica", number)
            shown["size"] = None
            with suppress(OSError, ValueError):
                if row["uri"] is not None:
                    shown["size"] = replica_path(row["folder"], row["uri"]).stat().st_size
        return answer_json(shown)

    def refuse(self, number: int = 0) -> Response:
        """Refuse any change of a replica."""
        raise failed() if caller().id else denied()


def copy_replica(site: ServerContext, datafile: int) -> None:
    """Copy a datafile's replica to the same path in the default box, as a verified replica."""
    first = site.store.row(FIND_FIRST, datafile)
    box = site.store.row("SELECT * FROM box WHERE name = ?", DEFAULT_BOX)
    assert first
    assert box
    copy = replica_path(box["location"], first["uri"])
    copy.parent.mkdir(parents=True, exist_ok=True)
    copyfile(replica_path(first["location"], first["uri"]), copy)
    now = site.times.now()
    site.store.insert(
        "replica",
        datafile=datafile,
        dataset=first["dataset"],
        box=box["id"],
        uri=first["uri"],
        verified=True,
        created=now,
        last_verified=now,
    )


_RANGE = re.compile(r"(\d+)-(\d+)/(\d+)")  # the end is exclusive and there is no unit
_SMALLEST = 10_000_000
_LARGEST = 100_000_000
_MOST_CHUNKS = 100


class Chunks:
    """The upload in chunks, in any order; every answer is a 200 with a field `success`."""

    def __init__(self, site: ServerContext) -> None:
        self._store = site.store
        self._verifier = site.verifier
        self._folder = site.directory / "chunks"

    def get_status(self, number: int) -> Response:
        """Answer with the next offset and the size of chunks."""
        row = self._find(number)
        if row is None:
            return _refuse("Invalid object or access denied.")
        offset = self._arrived(number)
        if row["verified"] or offset >= row["size"] > 0:
            return answer_json({"success": True, "completed": True})
        size = min(max(_SMALLEST, -(-row["size"] // _MOST_CHUNKS)), _LARGEST)
        return answer_json(
            {
                "success": True,
                "completed": False,
                "offset": offset,
                "size": size,
                "checksum": "xxh3_64",
            }
        )

    def take_chunk(self, number: int) -> Response:
        row = self._find(number)
        if row is None:
            return _refuse("Invalid object or access denied.")
        span = _RANGE.fullmatch(request.headers.get("Content-Range", ""))
        content = request.get_data()
        if span is None or int(span[2]) - int(span[1]) != len(content):
            return _refuse("Missing or invalid Content-Range.")
        checksum = xxhash.xxh3_64_hexdigest(content)
        if request.headers.get("Checksum") != checksum:
            return _refuse(f"Checksum does not match. xxh3_64:{checksum}")
        folder = self._folder / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with self._store.transaction():
                chunk = self._store.insert(
                    "chunk", replica=number, start=int(span[1]), stop=int(span[2])
                )
                (folder / str(int(span[1]))).write_bytes(content)
        except sqlite3.IntegrityError:
            return _refuse("Chunk already uploaded.")
        return answer_json({"success": True, "id": chunk})

    def complete(self, number: int) -> Response:
        """Join the chunks and verify the result."""
        row = self._find(number)
        if row is None:
            return _refuse("Invalid object or access denied.")
        if row["verified"]:
            return answer_json({"success": True, "verified": True})
        if self._arrived(number) != row["size"]:
            return _refuse("Some chunks are missing.")
        target = replica_path(row["folder"], row["uri"])
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as joined:
            for chunk in self._rows(number):
                with (self._folder / str(number) / str(chunk["start"])).open("rb") as piece:
                    shutil.copyfileobj(piece, joined)
        self._store.change("DELETE FROM chunk WHERE replica = ?", number)
        shutil.rmtree(self._folder / str(number), ignore_errors=True)
        self._verifier.schedule([number], at_once=True)
        return answer_json({"success": True, "verified": False})

    def _arrived(self, replica: int) -> int:
        """Return the number of bytes that have arrived without a gap."""
        offset = 0
        for chunk in self._rows(replica):
            if chunk["start"] != offset:
                break
            offset = chunk["stop"]
        return offset

    def _rows(self, replica: int) -> list[Row]:
        return self._store.rows("SELECT * FROM chunk WHERE replica = ? ORDER BY start", replica)

    def _find(self, number: int) -> Row | None:
        row = self._store.row(FIND_REPLICA, number)
        if row is None or not can_read_dataset(self._store, caller(), row["dataset"]):
            return None
        return row


def _refuse(error: str) -> Response:
    return answer_json({"success": False, "error": error})
