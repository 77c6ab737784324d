"""The real server's worst fault: a POST of a name whose record has no replica.

It deletes the record and makes the new one under the *dataset's* id. A datafile that has that
id is overwritten, or destroyed with its bytes where its replica lies in the same box.
"""

from pathlib import Path

from mydata_like.demo.drafts import Draft
from mydata_like.demo.placing import Place
from mydata_like.demo.site import Site
from mydata_like.demo.store import Row
from mydata_like.demo.verifier import replica_path


def replace_record(site: Site, draft: Draft, old: int, place: Place | None) -> bool:
    """Do the harm inside a transaction; return whether a new record is to take the place."""
    site.report_violation(
        f"POST of {draft.directory!r}/{draft.filename!r} in dataset {draft.dataset},"
        f" whose record {old} has no replica"
    )
    site.store.change("DELETE FROM datafile WHERE id = ?", old)
    victim = site.store.row(
        "SELECT replica.box, uri, location FROM replica JOIN box ON box.id = replica.box"
        " WHERE datafile = ?",
        draft.dataset,
    )
    site.store.change("DELETE FROM datafile WHERE id = ?", draft.dataset)
    site.store.change("DELETE FROM replica WHERE datafile = ?", draft.dataset)
    if victim is None or place is None or victim["box"] != place.box:
        return True
    _destroy(victim)
    site.report_violation(f"datafile {draft.dataset} was destroyed with its bytes")
    return False


def _destroy(victim: Row) -> None:
    path: Path = replica_path(victim["location"], victim["uri"])
    path.unlink(missing_ok=True)
