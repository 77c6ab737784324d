"""Invariants that hold after any fault: no losses, no duplicates, no false claims."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext

from mydata_like.app.settings_service import find_places, ledger_file, load_settings
from mydata_like.core.events import FileFailed
from mydata_like.core.extra_sources import KnownSource
from mydata_like.core.model import EntryState
from mydata_like.demo.invariants import is_archive, list_archived
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from tests.site import Carried, Ended, Picture, Site


def check_sums(ended: Ended) -> None:
    """Check that every found local file has exactly one outcome."""
    sums = ended.sums
    fates = sum(sums[name] for name in ("verified", "waiting", "skipped", "failed"))
    assert sums["found"] == fates, sums


def check_carried(site: Site, carried: Carried) -> None:
    """Check a run in this process after which all files are safe."""
    sums = carried.sums
    assert carried.code == 0, [event for event in carried.events if isinstance(event, FileFailed)]
    assert sums.found == sums.verified + sums.skipped, sums
    wrongs = site.find_wrongs()
    assert not wrongs, wrongs[:10]


def check_law(carried: Carried) -> None:
    """Check that every found local file has exactly one outcome, for a run in this process."""
    sums = carried.sums
    assert sums.found == sums.verified + sums.waiting + sums.skipped + sums.failed, sums


def check_complete(site: Site, ended: Ended) -> None:
    """Check a run after all faults: all files are safe, stored once, and reported as safe."""
    assert ended.code == 0, (ended.sums, ended.complaints[-3000:])
    check_sums(ended)
    assert ended.sums["found"] == ended.sums["verified"] + ended.sums["skipped"], ended.sums
    wrongs = site.find_wrongs()
    assert not wrongs, wrongs[:10]


def check_idle(site: Site, *settings: str) -> None:
    """Check that a further run sends no byte and creates no record, except our own status."""
    asked = len(site.server.requests)
    ended = site.run(*settings)
    assert (ended.code, ended.sums["sent"], ended.sums["bytes"]) == (0, 0, 0), ended
    changes = [change for change in site.changes(asked) if "/mydata_uploader/" not in change]
    assert not changes, changes[:10]


def check_untouched(before: Picture) -> None:
    """Check that the local files are unchanged, including their times."""
    changed = before.differences()
    assert not changed, changed[:10]


def find_falsehoods(site: Site) -> list[str]:
    """Return what is wrong after a run was cut off.

    Files may be missing, but none may be stored twice, or with bytes that do not match its
    checksum. A record may describe earlier bytes than those in place, if the ledger has that
    replacement.
    """
    with opened_ledger(site) as ledger:
        boasts = _find_boasts(site, ledger) if ledger else []
    return [*find_wrong_records(site), *boasts]


def find_wrong_records(site: Site) -> list[str]:
    """Return what is wrong on the server, except replacements that the ledger has noted."""
    with opened_ledger(site) as ledger:
        replaced = {it.datafile for it in ledger.find_replacements()} if ledger else set()
    forgiven = {f"datafile {number} " for number in replaced}
    return [
        wrong
        for wrong in site.server.check_invariants()
        if not any(wrong.startswith(one) for one in forgiven)
    ]


def list_known(site: Site) -> set[str]:
    """Return the keys of all files in our ledger."""
    with opened_ledger(site) as ledger:
        return {os.fsdecode(entry.key) for entry in ledger.iter_entries()} if ledger else set()


@contextmanager
def opened_ledger(site: Site) -> Iterator[SqliteLedger | None]:
    """Open the ledger of a site for reading; None if there is none."""
    settings = load_settings(site.config).settings
    root = os.fsencode(site.data)
    file = ledger_file(settings, find_places(site.config), root)
    ledger = SqliteLedger.open_to_read(file, root, SystemClock())
    with ledger or nullcontext():
        yield ledger


def _find_boasts(site: Site, ledger: SqliteLedger) -> list[str]:
    """Return the files that our ledger has as verified and the server does not."""
    verified = {
        (file.dataset, file.directory or "", file.filename): file.md5sum
        for file in site.server.datafiles()
        if file.verified
    }
    archived = {
        (
            file.dataset,
            "/".join(filter(None, (file.directory, file.filename))),
            *inside[:2],
        ): inside.md5sum
        for file in site.server.datafiles()
        if file.verified and file.path and is_archive(file.filename)
        for inside in list_archived(file.path)
    }
    sources = ledger.find_sources()
    wrong = []
    for entry in (e for e in ledger.iter_entries() if e.state is EntryState.VERIFIED):
        _, _, *directory, name = _below_its_owner(entry.key, sources).split("/")
        stored = verified.get((entry.dataset, "/".join(directory), name))
        if entry.archive:
            stored = archived.get((entry.dataset, entry.archive, "/".join(directory), name))
        if stored != entry.checksum:
            wrong.append(f"{entry.key!r} is verified in the ledger, but not on the server")
    return wrong


def _below_its_owner(key: bytes, sources: Collection[KnownSource]) -> str:
    """Return a key as if its source were in the data directory."""
    for source in sources:
        if key.startswith(source.path + b"/"):
            return "owner/dataset" + os.fsdecode(key.removeprefix(source.path))
    return os.fsdecode(key)
