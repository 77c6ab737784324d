"""The chunked upload: chunks of one replica, sent over HTTP."""

import re
import shutil
import sqlite3
from pathlib import Path

import xxhash
from flask import Response, request

from mydata_like.demo.context import ServerContext, caller, can_read_dataset
from mydata_like.demo.database import Row
from mydata_like.demo.json_responses import answer_json
from mydata_like.demo.replicas import FIND_REPLICA
from mydata_like.demo.verifier import replica_path

_RANGE = re.compile(r"(\d+)-(\d+)/(\d+)")  # the end is exclusive and there is no unit
_SMALLEST = 10_000_000
_LARGEST = 100_000_000
_MOST_CHUNKS = 100


class Chunks:
    """Takes chunks in any order and joins them; every answer is a 200 that tells success."""

    def __init__(self, site: ServerContext) -> None:
        self._store = site.store
        self._verifier = site.verifier
        self._folder = site.directory / "chunks"

    def get_status(self, number: int) -> Response:
        """Tell where to go on, and how large chunks should be."""
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
        return self._keep(number, int(span[1]), content)

    def complete(self, number: int) -> Response:
        """Join the chunks and look at the result."""
        row = self._find(number)
        if row is None:
            return _refuse("Invalid object or access denied.")
        if row["verified"]:
            return answer_json({"success": True, "verified": True})
        if self._arrived(number) != row["size"]:
            return _refuse("Some chunks are missing.")
        self._join(number, replica_path(row["folder"], row["uri"]))
        self._verifier.schedule([number], at_once=True)
        return answer_json({"success": True, "verified": False})

    def _keep(self, replica: int, start: int, content: bytes) -> Response:
        folder = self._folder / str(replica)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with self._store.transaction():
                number = self._store.insert(
                    "chunk", replica=replica, start=start, stop=start + len(content)
                )
                (folder / str(start)).write_bytes(content)
        except sqlite3.IntegrityError:
            return _refuse("Chunk already uploaded.")
        return answer_json({"success": True, "id": number})

    def _join(self, replica: int, target: Path) -> None:
        chunks = self._rows(replica)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as joined:
            for chunk in chunks:
                with (self._folder / str(replica) / str(chunk["start"])).open("rb") as piece:
                    shutil.copyfileobj(piece, joined)
        with self._store.transaction():
            self._store.change("DELETE FROM chunk WHERE replica = ?", replica)
        shutil.rmtree(self._folder / str(replica), ignore_errors=True)

    def _arrived(self, replica: int) -> int:
        """Return how many bytes have arrived without a gap."""
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
