"""Replicas over HTTP, with the number of bytes that have arrived."""

from shutil import copyfile

from flask import Response, request

from mydata_like.demo.context import DEFAULT_BOX, ServerContext, caller, can_read_dataset, uri_of
from mydata_like.demo.datafiles import show_replica
from mydata_like.demo.json_responses import Refusal, answer_json, denied, failed, invalid
from mydata_like.demo.request_parsing import cut, read_page
from mydata_like.demo.verifier import replica_path

FIND_REPLICA = """
    SELECT r.id AS replica, r.uri, r.verified, r.created AS stored, r.last_verified, r.datafile,
        r.dataset, b.name AS location, b.location AS folder, d.size, d.md5sum
    FROM replica r JOIN box b ON b.id = r.box JOIN datafile d ON d.id = r.datafile
    WHERE r.id = ?
"""
FIND_FIRST = """
    SELECT r.dataset, r.uri, b.location FROM replica r JOIN box b ON b.id = r.box
    WHERE r.datafile = ? ORDER BY r.id
"""


class Replicas:
    """Stored copies; they can be looked at one by one and not be changed."""

    def __init__(self, site: ServerContext, *, ours: bool) -> None:
        self._store = site.store
        self._ours = ours

    def list_replicas(self) -> Response:
        """Answer with nothing, which is what all but superusers are shown."""
        page = read_page()
        if any(name.startswith("datafile") for name in request.args):
            raise invalid("The 'datafile' field does not allow filtering.")
        return answer_json(cut(page, []))

    def get_replica(self, number: int) -> Response:
        row = self._store.row(FIND_REPLICA, number)
        if row is None:
            raise Refusal(404)
        if not can_read_dataset(self._store, caller(), row["dataset"]):
            raise denied()
        shown = show_replica(row, row["datafile"])
        if self._ours:
            shown["resource_uri"] = uri_of("mydata_replica", number)
            shown["size"] = _find_size(row["folder"], row["uri"])
        return answer_json(shown)

    def refuse(self, number: int = 0) -> Response:
        """Fail, as every attempt to write a replica does."""
        raise failed() if caller().id else denied()


def copy_replica(site: ServerContext, datafile: int) -> None:
    """Copy a datafile's replica to the same path in the default box, and count it as verified."""
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


def _find_size(folder: str, uri: str) -> int | None:
    try:
        return replica_path(folder, uri).stat().st_size
    except (OSError, ValueError):
        return None
