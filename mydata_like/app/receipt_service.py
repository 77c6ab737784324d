"""Receipts: which files of a folder are verified elsewhere, and whether they are still the same.

In the text form of a receipt, the lines about verified files are those that `md5sum -c`, or
`sha256sum -c`, reads in the folder of the receipt. All other lines are comments; the last one has
the SHA-256 of everything above it.
"""

import base64
import hashlib
import os
import re
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like import __version__
from mydata_like.app.file_status_service import list_known
from mydata_like.app.known_copies import find_evidence, list_addresses
from mydata_like.app.settings_service import find_places, find_state
from mydata_like.app.source_service import find_sources
from mydata_like.app.verify_service import FileFault
from mydata_like.catalogues.manifest.segments import format_checksums, parse_checksums
from mydata_like.core import hashing
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import SERVICE, ProvenFile, StoredFile
from mydata_like.core.errors import Cancelled, SettingsError, UploaderError
from mydata_like.core.extra_sources import KnownSource, source_key
from mydata_like.core.file_access import system_path
from mydata_like.core.file_status import FileSafety, FileStatus, LocalState
from mydata_like.core.formatting import format_files, format_path, format_text
from mydata_like.core.openat import is_link, join
from mydata_like.core.parsing import moment_of
from mydata_like.core.ports import CancelSignal
from mydata_like.engine.data_root import reason
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.process import read_account
from mydata_like.hostos.removable_drives import eject, find_drive
from mydata_like.settings.atomic_write import read_plain, write_private
from mydata_like.settings.schema import Settings
from mydata_like.transfer.tar import is_plain

RECEIPTS: Final = "receipts"  # the folder of the state with those of removable drives
_END: Final = b"# SHA-256 of all lines above: "
_LAST_LINE: Final = re.compile(_END + rb"([0-9a-f]{64})\r?\n?")
_PIECE: Final = 1 << 20  # bytes that are read at once
_SERVER: Final = "the server has compared its copy with this checksum"
_EVIDENCE: Final = {
    "host": "the host has computed this checksum of its own copy",
    "read-back": "the copy was read back from its storage and hashed",
    "read-back-cached": "the copy was read back, possibly from memory, and hashed",
    SERVICE: "the service has reported the checksum of its copy",
    "": "the copy was compared with this checksum",  # how is not known
}
_NOTES: Final = {
    LocalState.UNCERTAIN: "its attributes here have changed since",
    LocalState.GONE: "no longer here",
    LocalState.UNREADABLE: "could not be looked at here",
}
_REASONS: Final = {
    FileSafety.CHANGED: "changed here since it was sent",
    FileSafety.PENDING: "sent, and not verified yet",
    FileSafety.GONE: "no longer here, and not verified",
}
UNSEEN: Final = "no run of this computer has sent it"
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Receipt: {0}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
@page {{ size: A4; margin: 15mm }}
:root {{ color-scheme: light dark }}
body {{ font: 10.5pt system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em }}
h1 {{ border-left: .25em solid #2e7d32; padding-left: .5em }}
body:has(.open) h1 {{ border-color: #b26a00 }}
table {{ border-collapse: collapse; width: 100% }} thead {{ display: table-header-group }}
tr {{ break-inside: avoid }} h2, p, td {{ overflow-wrap: anywhere }}
h2 {{ font-size: 1.1em; margin: 2em 0 0 }} h2 + p {{ margin-top: .2em }}
h2, h2 + p {{ break-after: avoid }}
th, td {{ text-align: left; vertical-align: top; padding: .3em .6em }}
th, td {{ border-bottom: 1px solid #8886 }}
td:nth-child(2), td:nth-child(4) {{ white-space: nowrap; font-variant-numeric: tabular-nums }}
th:nth-child(2), td:nth-child(2) {{ text-align: right }}
body > table td:nth-child(3) {{ font: .85em/1.4 ui-monospace, monospace }}
@media (min-width: 45em) {{ body > table td:nth-child(3) {{ min-width: 33ch }} }}
.open {{ border: 2px solid #b26a00; padding: 0 1em 1em; margin: 1em 0 }}
.open h2 {{ margin-top: 1em }}
@media print {{
body {{ font-size: 8pt; margin: 0; max-width: none; padding: 0 }} a {{ display: none }}
}}
</style></head><body>
<h1>{0}</h1>"""


class VerifiedFile(NamedTuple):
    """A file as it was verified; the path is relative to the folder of the receipt.

    `note` is what has become of the local file since, or how it is stored.
    """

    path: bytes
    size: int
    checksum: str
    at: datetime | None
    note: str


class UnverifiedFile(NamedTuple):
    """A file that is not known as verified anywhere, and why; of a folder, the size is None."""

    path: bytes
    size: int | None
    reason: str


class VerifiedThere(NamedTuple):
    """The files that are verified at one destination; `evidence` says in words how."""

    destination: str
    evidence: str
    files: list[VerifiedFile]


@dataclass
class Receipt:
    """What the ledgers of this computer know of the files of a folder, at one time.

    `others` is the number of links and special files, which a receipt does not cover.
    """

    folder: bytes
    at: datetime
    author: str
    there: list[VerifiedThere] = field(default_factory=list)
    unverified: list[UnverifiedFile] = field(default_factory=list)
    others: int = 0

    @cached_property
    def verified(self) -> int:
        """The number of files that are verified at one destination at least."""
        return len({file.path for part in self.there for file in part.files})

    @property
    def total(self) -> int:
        return self.verified + len(self.unverified)

    @property
    def heading(self) -> str:
        """How many of all files are verified."""
        are = "is" if self.total == 1 else "are"
        return f"{self.verified:,} of {format_files(self.total)} {are} verified"

    @cached_property
    def text(self) -> bytes:
        """The text form."""
        content = b"".join(line + b"\n" for line in _format_lines(self))
        return content + _END + hashlib.sha256(content).hexdigest().encode() + b"\n"

    @property
    def checksum(self) -> str:
        """The SHA-256 in the last line of the text form."""
        return self.text[-65:-1].decode()

    def describe(self) -> Iterator[str]:
        """Yield what else is to be said about all of it."""
        yield f"Folder: {format_path(self.folder)}"
        made = f"Made {_format_time(self.at)} by {self.author} with mydata-like {__version__}"
        yield format_text(f"{made}, from the records of this computer.")
        if self.others:
            yield f"Links and special files are not covered: {self.others:,}."

    def describe_part(self, part: VerifiedThere) -> str:
        """Return where files are verified, how many, and how."""
        return f"{format_text(part.destination)}: {self.describe_amount(part)}"

    def describe_amount(self, part: VerifiedThere) -> str:
        """Return how many files are verified at a destination, and how."""
        return f"{len(part.files):,} of {format_files(self.total)}; {part.evidence}"


def make_receipt(settings: Settings, config: Path | None, paths: Sequence[Path]) -> Receipt:
    """Return the receipt of files and folders, which are on one drive.

    Raises `SettingsError` if there are no such files, `UploaderError` if a ledger cannot be read.
    """
    tops = [source_key(path) for path in paths]
    disk = _Disk()
    for top in tops:
        disk.read(top)
    known = [
        (place, [it for top in tops for it in list_known(its, config, top)])
        for place, its in _list_destinations(settings, config)
    ]
    found = disk.files.keys() | {path for _, files in known for path, _ in files}
    if not found and not disk.unreadable:
        raise SettingsError(
            f"There are no files at {', '.join(map(format_path, tops))}, and none are known.",
            hint="Check the path.",
            code="receipt.no-files",
        )
    ends = [it + (b"" if it in found else b"/") for it in tops]  # only folders end with a slash
    folder = os.path.commonprefix(ends) or b"/"  # noqa: RUF071 - up to its last slash
    below = folder.rindex(b"/") + 1
    author = f"{read_account() or 'an account without a name'} on {socket.gethostname()}"
    receipt = Receipt(folder[:below], SystemClock().now(), author, others=disk.others)
    verified: dict[tuple[str, str], dict[bytes, VerifiedFile]] = {}
    open_files = {path: (size, UNSEEN) for path, size in disk.files.items()}
    for place, files in known:
        for path, status in files:
            if why := _find_doubt(status):
                open_files[path] = disk.files.get(path, status.size), why
            else:  # the newest ledger of a destination comes first
                row = _describe_verified(path[below:], status)
                verified.setdefault(place, {}).setdefault(row.path, row)
    for place, rows in verified.items():
        receipt.there.append(VerifiedThere(*place, [rows[path] for path in sorted(rows)]))
        for path in rows:
            open_files.pop(folder[:below] + path, None)
    receipt.unverified += [UnverifiedFile(it[below:], None, why) for it, why in disk.unreadable]
    receipt.unverified += [
        UnverifiedFile(path[below:], *why) for path, why in sorted(open_files.items())
    ]
    return receipt


def write_receipt(receipt: Receipt, file: Path, *, page: bool) -> None:
    """Write a receipt as a web page or as text; raises `SettingsError` if that fails."""
    write_private(file, format_page(receipt).encode() if page else receipt.text)


class _Disk:
    """The regular files of some folders; links are not followed."""

    def __init__(self) -> None:
        self.files: dict[bytes, int] = {}  # sizes by path
        self.unreadable: list[tuple[bytes, str]] = []  # folders, and why
        self.others = 0

    def read(self, top: bytes) -> None:
        """Add a file, or all files of a folder; a path that is not there adds nothing."""
        try:
            place = top if b"/" in top else top + b"/"  # the drive `E:` alone is its current folder
            status = os.stat(system_path(place))  # noqa: PTH116 - of bytes
        except OSError:
            return
        if stat.S_ISREG(status.st_mode):
            self.files[top] = status.st_size
            return
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(system_path(folder + b"/")) as entries:
                    waiting += [path for entry in entries if (path := self._add(folder, entry))]
            except OSError as error:
                self.unreadable.append((folder, f"the folder cannot be read: {reason(error)}"))

    def _add(self, folder: bytes, entry: "os.DirEntry[bytes]") -> bytes | None:
        """Add a file; return the path of a folder."""
        status, path = entry.stat(follow_symlinks=False), folder + b"/" + entry.name
        if is_link(status):
            self.others += 1
        elif stat.S_ISDIR(status.st_mode):
            return path
        elif stat.S_ISREG(status.st_mode):
            self.files[path] = status.st_size
        else:
            self.others += 1
        return None


def _list_destinations(
    settings: Settings, config: Path | None
) -> Iterator[tuple[tuple[str, str], Settings]]:
    """Yield name and evidence of each destination, and the settings that lead to its ledgers."""
    server, destination = settings.server, settings.destination
    if destination.takes_tree:
        yield (destination.address, _EVIDENCE[find_evidence(settings, config)]), settings
    else:
        yield (f"MyTardis server {server.url}, account {server.username}", _SERVER), settings
    for copied, address in list_addresses(config):
        yield (address, _EVIDENCE[find_evidence(copied, config)]), copied


def _find_doubt(status: FileStatus) -> str:
    """Return why a file does not count as verified; empty if it does."""
    entry, at = status.entry, status.evidence.times.verified
    if status.evidence.verified and entry and entry.checksum:
        if status.local is not LocalState.CHANGED:
            return ""
        kind = Algorithm.of(entry.checksum).label
        since = f" on {_format_time(moment_of(at))}" if at else ""
        return f"changed here since it was verified{since}; {kind} then: {entry.checksum}"
    if status.outcome:
        return format_text(status.outcome.problem.message.rstrip("."))
    return _REASONS.get(status.safety, "not verified")


def _describe_verified(path: bytes, status: FileStatus) -> VerifiedFile:
    entry, at = status.entry, status.evidence.times.verified
    assert entry is not None
    notes = [f"in the archive {format_text(entry.archive)}"] if entry.archive else []
    notes += [_NOTES[status.local]] if status.local in _NOTES else []
    moment = moment_of(at) if at else None
    return VerifiedFile(path, entry.size, entry.checksum, moment, "; ".join(notes))


def _format_time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%SZ}" if at else "at an unknown time"


def _format_lines(receipt: Receipt) -> Iterator[bytes]:
    """Yield the lines of the text form, except for the last one."""

    def comment(text: str) -> bytes:
        return f"# {text}".rstrip().encode()

    yield comment(receipt.heading)
    if receipt.unverified:
        yield comment("")
        yield comment(f"NOT verified: {format_files(len(receipt.unverified))}")
    for path, size, why in receipt.unverified:
        amount = "" if size is None else f" ({size:,} bytes)"
        yield comment(f"  {format_path(path)}{amount}: {why}")
    yield comment("")
    for line in receipt.describe():
        yield comment(line)
    yield comment("To compare the files with this list, run in their folder:")
    kinds = {Algorithm.of(it.checksum) for part in receipt.there for it in part.files}
    for kind in sorted(kinds or {Algorithm.MD5}, key=lambda it: it.value):
        yield comment(f"  {kind.program} -c THIS_FILE")
    for part in receipt.there:
        yield comment("")
        yield comment(receipt.describe_part(part))
        for file in part.files:
            note = f"; {file.note}" if file.note else ""
            yield comment(f"{file.size:,} bytes, verified {_format_time(file.at)}{note}")
            stored = StoredFile(file.path, file.size, 0, 0, 0)
            lines = format_checksums([ProvenFile(stored, file.checksum)])
            yield b"".join(lines).removesuffix(b"\n")
    yield comment("")


def format_page(receipt: Receipt) -> str:
    """Return a receipt as a web page without scripts, which contains the text form as well."""
    parts = [_PAGE.format(escape(receipt.heading))]
    if receipt.unverified:
        rows = [
            (format_path(it.path), "" if it.size is None else f"{it.size:,}", it.reason)
            for it in receipt.unverified
        ]
        heading = f"NOT verified: {format_files(len(rows))}"
        parts += ["<div class='open'>", *_format_table(heading, ("File", "Bytes", "Why"), rows)]
        parts.append("</div>")
    parts += [f"<p>{escape(line)}</p>" for line in receipt.describe()]
    for part in receipt.there:
        heads = "File", "Bytes", Algorithm.of(part.files[0].checksum).label, "Verified"
        listed = [
            (
                format_path(it.path) + (f" ({it.note})" if it.note else ""),
                f"{it.size:,}",
                it.checksum,
                _format_time(it.at),
            )
            for it in part.files
        ]
        amount = receipt.describe_amount(part)
        parts += _format_table(format_text(part.destination), heads, listed, amount)
    text = base64.b64encode(receipt.text).decode()
    parts.append(f"<p>SHA-256 of the text form: <code>{receipt.checksum}</code></p>")
    parts.append(f"<p><a download='receipt.txt' href='data:text/plain;base64,{text}'>")
    parts.append("The text form, for md5sum or sha256sum</a></p></body></html>\n")
    return "\n".join(parts)


def _format_table(
    heading: str, heads: Sequence[str], rows: Iterable[Sequence[str]], about: str = ""
) -> Iterator[str]:
    """Yield the lines of a table; its second column has numbers."""
    yield f"<h2>{escape(heading)}</h2>\n{about and f'<p>{escape(about)}</p>'}\n<table>"
    yield f"<thead><tr>{''.join(f'<th scope=col>{escape(it)}</th>' for it in heads)}</tr></thead>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{escape(it)}</td>' for it in row)}</tr>"
    yield "</table>"


class ReceiptCheck(NamedTuple):
    """The files of a receipt, compared with a folder; it is `intact` if its checksum fits.

    The paths of files that are not `equal` are in `faults`.
    """

    intact: bool
    checksum: str
    equal: int
    faults: dict[FileFault, list[bytes]]

    @property
    def good(self) -> bool:
        return self.intact and not any(self.faults.values())


def check_receipt(
    file: Path, folder: Path, cancel: CancelSignal, report: Callable[[int, int], None]
) -> ReceiptCheck:
    """Hash all files of a receipt in text form again, below a folder.

    `report` is given how many files of how many are done. Raises `SettingsError` if it is no
    receipt, `Cancelled` when asked to stop.
    """
    try:
        content = read_plain(file)
    except OSError as error:
        raise SettingsError(
            f"{format_path(os.fsencode(file))} cannot be read: {reason(error)}.",
            code="receipt.unreadable",
        ) from error
    body, end = content[: content.rfind(_END)], content[content.rfind(_END) :]
    last = _LAST_LINE.fullmatch(end)
    if last is None:
        raise SettingsError(
            f"{format_path(os.fsencode(file))} is no complete receipt in text form.",
            hint="A web page of a receipt contains its text form: open it and save that.",
            code="receipt.unreadable",
        )
    wanted: dict[bytes, set[str]] = {}
    for path, line in parse_checksums(body):
        if not line.startswith(b"#"):
            checksum = line.lstrip(b"\\").partition(b" ")[0].decode("ascii", "replace")
            wanted.setdefault(path, set()).add(checksum)
    faults: dict[FileFault, list[bytes]] = {fault: [] for fault in FileFault}
    top = source_key(folder)
    for done, (path, checksums) in enumerate(wanted.items()):
        report(done, len(wanted))
        if fault := _find_fault(top, path, checksums, cancel):
            faults[fault].append(path)
    found = hashlib.sha256(body).hexdigest()
    equal = len(wanted) - sum(map(len, faults.values()))
    return ReceiptCheck(found.encode() == last[1], found, equal, faults)


def _find_fault(
    top: bytes, path: bytes, checksums: Iterable[str], cancel: CancelSignal
) -> FileFault | None:
    """Return what is wrong with a file; None if it has these checksums."""
    place = system_path(join(top, path))
    try:
        # A list that was tampered with may name anything.
        if not is_plain(path) or not stat.S_ISREG(os.stat(place).st_mode):  # noqa: PTH116
            return FileFault.MISSING
        same = all(_hash(place, it, cancel) == it for it in checksums)
    except (FileNotFoundError, NotADirectoryError):
        return FileFault.MISSING
    except OSError:
        return FileFault.UNREADABLE
    return None if same else FileFault.CHANGED


def _hash(path: bytes, like: str, cancel: CancelSignal) -> str:
    """Return the checksum of a file by the algorithm of another one."""
    checksum = hashing.new(Algorithm.of(like))
    with Path(os.fsdecode(path)).open("rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            if cancel.is_set():
                raise Cancelled
            checksum.update(piece)
    return checksum.hexdigest()


class DriveReceipt(NamedTuple):
    """A receipt, in a `file`, of all that was added from a removable drive with this top folder."""

    top: Path
    drive: str
    verified: int
    total: int
    file: Path


def keep_drive_receipts(
    settings: Settings, config: Path | None, since: datetime, media: Iterable[Path]
) -> list[DriveReceipt]:
    """Write a receipt for each removable drive whose last source was finished since a time.

    Drives are looked for in the folders `media`. Raises `UploaderError`.
    """
    receipts = []
    for drive, added in _find_on_drives(settings, config, media).items():
        ends = [it.finished for it in added if it.finished]
        if len(ends) < len(added) or max(ends) < since.replace(microsecond=0):
            continue
        receipt = make_receipt(settings, config, [Path(os.fsdecode(it.path)) for it in added])
        name = drive.name or drive.drive.rstrip(":")
        plain = re.sub(r"[^\w.-]", "_", name)
        folder = find_state(settings, find_places(config)) / RECEIPTS
        file = folder / f"{receipt.at:%Y-%m-%d %H-%M-%S} {plain}.html"
        write_receipt(receipt, file, page=True)
        receipts.append(DriveReceipt(drive, name, receipt.verified, receipt.total, file))
    return receipts


def eject_drive(
    settings: Settings, config: Path | None, drive: Path, media: Iterable[Path]
) -> None:
    """Eject a removable drive if all that was added from it is verified, as it is there now.

    Raises `UploaderError`.
    """
    if added := _find_on_drives(settings, config, media).get(drive):
        receipt = make_receipt(settings, config, [Path(os.fsdecode(it.path)) for it in added])
        if receipt.verified < receipt.total or not all(it.finished for it in added):
            raise UploaderError(
                "Files that were added from it are not verified.",
                hint="Start a run, then eject it.",
                code="drive.not-ejected",
            )
    if os.path.ismount(drive):  # not unplugged meanwhile
        eject(drive)


def _find_on_drives(
    settings: Settings, config: Path | None, media: Iterable[Path]
) -> dict[Path, list[KnownSource]]:
    """Return the sources that are on removable drives, by the top folder of the drive."""
    found: dict[Path, list[KnownSource]] = {}
    for source in find_sources(settings, config):
        path = Path(os.fsdecode(source.path))
        if os.path.lexists(path) and (drive := find_drive(path, media)):
            found.setdefault(drive, []).append(source)
    return found
