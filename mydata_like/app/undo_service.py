"""Brings earlier content of a changed file back from where the server keeps it."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mydata_like.app.ledgers import list_ledgers
from mydata_like.app.run_connection import connected
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate
from mydata_like.app.run_service import open_run, to_all
from mydata_like.app.transports.ssh_kind import list_endpoints
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.core.checksums import Algorithm
from mydata_like.core.data_directory import Shard, find_key
from mydata_like.core.errors import RunError
from mydata_like.core.events import Event, FileFailed, FileSkipped, FileVerified, FileWaiting
from mydata_like.core.extra_sources import source_key
from mydata_like.core.formatting import format_path
from mydata_like.core.local_files import bounded_ns, signed
from mydata_like.core.model import (
    ChangeChoice,
    ChangedFile,
    HoldReason,
    KeptCopy,
    Replacement,
    Undo,
)
from mydata_like.core.staging_path import kept_path
from mydata_like.engine.layout_walk import ScanScope
from mydata_like.engine.scheduler import SOURCE
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.file_queries import FileQueries
from mydata_like.settings.schema import Settings
from mydata_like.transfer.ssh.probe_file import open_probe

# Called with the replacement that never arrived, and the bytes in its place; raises if the record
# is not to describe these.
Confirm = Callable[[Replacement, KeptCopy], None]


def undo_replacement(
    settings: Settings, config: Path | None, path: Path, observer: RunObserver, confirm: Confirm
) -> KeptCopy:
    """Put the newest kept content of a file back in its place on the server, and verify it.

    The newer content is kept in its turn, and is not sent again while the local file stays as it
    is. If nothing is kept because the newer content never arrived, only the record is changed.
    Return what was brought back. Raises `UploaderError`.
    """
    found, shard = _find_copy(settings, config, path)
    in_place = isinstance(found, Replacement)
    if isinstance(found, Replacement):
        copy = _measure_place(settings, config, found, observer)
        confirm(found, copy)
    else:
        copy = found
    seen: list[Event] = []
    request = RunRequest(
        settings=settings,
        config=config,
        reason=SOURCE,  # nothing is scanned
        part=ScanScope(shard=shard),
        undo=Undo(copy, _describe_local(settings, copy), in_place),
    )
    observer = replace(observer, emit=to_all(observer.emit, seen.append))
    with open_run(request, observer) as run:
        problem = run.execute().finished.problem
    problems = [it.problem for it in seen if isinstance(it, FileFailed | FileWaiting)]
    if problem or problems:
        code, message, hint = problem or problems[0]
        raise RunError(message, hint=hint, code=code)
    if not any(isinstance(it, FileVerified | FileSkipped) for it in seen):
        raise _nothing_kept(copy.key)
    return copy


def _measure_place(
    settings: Settings, config: Path | None, lost: Replacement, observer: RunObserver
) -> KeptCopy:
    """Return the bytes in the place of those that never arrived; the staging host measures them."""
    request = RunRequest(settings=settings, config=config)
    gate = build_gate(request, observer, SystemClock())
    with connected(request, observer, gate) as connection:
        access = TransportAccess(request, observer, connection)
        approved = access.approval.fetch_approval()
    if approved is None:
        raise _nothing_kept(lost.key)
    endpoint = list_endpoints(access, approved.area)[0]
    with open_probe(endpoint, os.fsencode(approved.area.location)) as there:
        size, checksum = there.inspect(os.fsencode(lost.remote))
    if size is None or checksum in ("", lost.checksum):
        raise _nothing_kept(lost.key)
    path = kept_path(lost.remote, checksum)
    return KeptCopy(
        lost.key, lost.dataset, lost.datafile, lost.remote, path, size, checksum, "", ""
    )


def _describe_local(settings: Settings, copy: KeptCopy) -> ChangedFile | None:
    """Return the local file as it is now, with the choice to keep the earlier content.

    None if there is no such file, or if it has that content.
    """
    path = (settings.data.directory or Path()) / os.fsdecode(copy.key)
    try:
        status = path.stat()
        if status.st_size == copy.size and _has_checksum(path, copy.checksum):
            return None
    except OSError:
        return None
    return ChangedFile(
        copy.key,
        status.st_size,
        bounded_ns(status.st_mtime_ns),
        bounded_ns(status.st_ctime_ns),
        signed(status.st_ino),
        copy.dataset,
        copy.size,
        copy.checksum,
        copy.verified_at,
        HoldReason.SETTING,
        ChangeChoice.KEEP,
    )


def _has_checksum(path: Path, checksum: str) -> bool:
    with path.open("rb") as file:
        return hashlib.file_digest(file, Algorithm.of(checksum).hash).hexdigest() == checksum


def _find_copy(
    settings: Settings, config: Path | None, path: Path
) -> tuple[KeptCopy | Replacement, Shard]:
    """Return the newest kept content of a file, and the shard whose ledger knows of it.

    If nothing is kept, return the replacement that is incomplete.
    """
    directory = settings.data.directory or Path()
    keys = [find_key(directory, place) for place in (Path.cwd() / path, directory / path)]
    for shard, file in list_ledgers(settings, config):
        with FileQueries.opened(file, os.fsencode(directory)) as queries:
            for key in (*filter(None, keys), source_key(path)):
                if queries and (found := queries.find_kept(key)):
                    return found[0], shard
                lost = queries.find_replacement(key) if queries else None
                if lost and lost.modified_ns < 0:  # of an older version, which kept nothing
                    return lost, shard
    raise _nothing_kept(os.fsencode(path))


def _nothing_kept(path: bytes) -> RunError:
    return RunError(
        f"The server keeps no earlier content of {format_path(path)}.",
        hint="mydata-like where shows what is kept of a file.",
        code="changed.nothing-kept",
    )
