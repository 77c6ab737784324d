"""What must hold after anything that went wrong: nothing lost, nothing twice, nothing false."""

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
    """The law of conservation: every local file that was found has one fate."""
    sums = ended.sums
    fates = sum(sums[name] for name in ("verified", "waiting", "skipped", "failed"))
    assert sums["found"] == fates, sums


def check_carried(site: Site, carried: Carried) -> None:
    """A run in this process after which everything is safe."""
    sums = carried.sums
    assert carried.code == 0, [event for event in carried.events if isinstance(event, FileFailed)]
    assert sums.found == sums.verified + sums.skipped, sums
    wrongs = site.find_wrongs()
    assert not wrongs, wrongs[:10]


def check_law(carried: Carried) -> None:
    """The law of conservation, for a run in this process."""
    sums = carried.sums
    assert sums.found == sums.verified + sums.waiting + sums.skipped + sums.failed, sums


def check_complete(site: Site, ended: Ended) -> None:
    """A run after all faults: everything is safe, once, and it says so."""
    assert ended.code == 0, (ended.sums, ended.complaints[-3000:])
    check_sums(ended)
    assert ended.sums["found"] == ended.sums["verified"] + ended.sums["skipped"], ended.sums
    wrongs = site.find_wrongs()
    assert not wrongs, wrongs[:10]


def check_idle(site: Site, *settings: str) -> None:
    """A further run sends no byte and makes no record; it only tells that we are there."""
    asked = len(site.server.requests)
    ended = site.run(*settings)
    assert (ended.code, ended.sums["sent"], ended.sums["bytes"]) == (0, 0, 0), ended
    changes = [change for change in site.changes(asked) if "/mydata_uploader/" not in change]
    assert not changes, changes[:10]


def check_untouched(before: Picture) -> None:
    """The local files are as they were, to the last bit and nanosecond."""
    changed = before.differences()
    assert not changed, changed[:10]


def find_falsehoods(site: Site) -> list[str]:
    """Return what is wrong in the middle, when a run was cut off.

    Files may be missing, but none may be there twice, or with bytes that are not those of its
    checksum. A record that is being replaced may be of bytes that have not taken their place yet:
    then the ledger knows.
    """
    with _opened_ledger(site) as ledger:
        replaced = {it.datafile for it in ledger.find_replacements()} if ledger else set()
        boasts = _find_boasts(site, ledger) if ledger else []
    forgiven = {f"datafile {number} " for number in replaced}
    wrongs = [
        wrong
        for wrong in site.server.check_invariants()
        if not any(wrong.startswith(one) for one in forgiven)
    ]
    return [*wrongs, *boasts]


@contextmanager
def _opened_ledger(site: Site) -> Iterator[SqliteLedger | None]:
    settings = load_settings(site.config).settings
    root = os.fsencode(site.data)
    file = ledger_file(settings, find_places(site.config), root)
    ledger = SqliteLedger.open_to_read(file, root, SystemClock())
    with ledger or nullcontext():
        yield ledger


def _find_boasts(site: Site, ledger: SqliteLedger) -> list[str]:
    """Return what our ledger calls safe and the server does not."""
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
        told = verified.get((entry.dataset, "/".join(directory), name))
        if entry.archive:
            told = archived.get((entry.dataset, entry.archive, "/".join(directory), name))
        if told != entry.checksum:
            wrong.append(f"the ledger calls {entry.key!r} verified, the server does not")
    return wrong


def _below_its_owner(key: bytes, sources: Collection[KnownSource]) -> str:
    """Return a key as if its source lay in the data directory."""
    for source in sources:
        if key.startswith(source.path + b"/"):
            return "owner/dataset" + os.fsdecode(key.removeprefix(source.path))
    return os.fsdecode(key)
