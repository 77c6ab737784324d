"""The status of a file in sentences: its steps, and whether it may be deleted."""

from datetime import UTC, datetime
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from mydata_like.core.deletion import DeletedFile, KeptFile
from mydata_like.core.file_status import (
    FileSafety,
    FileStatus,
    FolderStatus,
    KnownOutcome,
    PathStatus,
    UnknownReason,
)
from mydata_like.core.model import EntryState
from mydata_like.core.parsing import moment_of
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.where.status_poller import CleanupResults

translate = QCoreApplication.translate

_REACHED = {
    EntryState.FAILED: 1,
    EntryState.CHANGED: 1,
    EntryState.STAGED: 2,
    EntryState.REGISTERED: 3,
    EntryState.REPAIRED: 3,
    EntryState.VERIFIED: 4,
}


class TimelineStep(NamedTuple):
    """One step of a file: a word, a picture of how it stands (none yet), and when or why."""

    word: str
    icon: str
    status: Status
    note: str


class StatusText(NamedTuple):
    """Whether a file may be deleted, in a headline and its reasons."""

    status: Status
    icon: str
    headline: str
    reason: str = ""


def list_steps(status: FileStatus) -> list[TimelineStep]:
    """Return the steps of a file, those that it has not taken yet as well."""
    reached, times = _count_reached(status), status.evidence.times
    modified = moment_of(status.modified_ns // 10**9)
    names = [
        (translate("where", "Changed here"), texts.moment(modified) if status.modified_ns else ""),
        (translate("where", "Seen by a run"), _tell_seen(status)),
        (translate("where", "Sent"), _tell_moment(times.staged)),
        (translate("where", "Registered on the server"), _tell_moment(times.registered)),
        (translate("where", "Verified by the server"), _tell_moment(times.verified)),
    ]
    steps = [TimelineStep(word, "check", "good", note) for word, note in names[: reached + 1]]
    coming = [TimelineStep(word, "", "skipped", "") for word, _ in names[reached + 1 :]]
    if coming:
        coming[0] = _tell_next(status, coming[0])
    return steps + coming


def _count_reached(status: FileStatus) -> int:
    """Return how many steps the file has taken as it is now, after the first."""
    entry, safety = status.entry, status.safety
    if safety is FileSafety.CHANGED or safety is FileSafety.UNKNOWN:
        return 0  # what the ledger knows is about other bytes
    if entry is None or safety in (FileSafety.UNCERTAIN, FileSafety.UNSENT):
        return 1 if entry or status.outcome else 0
    if entry.state is EntryState.VERIFIED and not status.evidence.verified:
        return 1
    return _REACHED[entry.state]


def _tell_next(status: FileStatus, step: TimelineStep) -> TimelineStep:
    """Say why the next step has not been taken."""
    outcome = status.outcome
    if outcome is not None:
        icon, look = _picture_of(outcome)
        return TimelineStep(step.word, icon, look, _tell_problem(outcome))
    notes = {
        FileSafety.CHANGED: translate("where", "not these bytes; the next run sends them"),
        FileSafety.UNCERTAIN: translate(
            "where", "it may have changed since; the next run checks it"
        ),
        FileSafety.PENDING: translate("where", "not yet; the next run goes on here"),
    }
    note = notes.get(status.safety, translate("where", "not yet"))
    return TimelineStep(step.word, "waiting", "waiting", note)


def _picture_of(outcome: KnownOutcome) -> tuple[str, Status]:
    if outcome.kind in ("failed", "folder-failed"):
        return "error", "problem"
    if outcome.kind in ("found", "waiting"):
        return "waiting", "waiting"
    return "skipped", "skipped"


def _tell_problem(outcome: KnownOutcome) -> str:
    return texts.plain(" ".join(filter(None, outcome.problem[1:])))


def _tell_seen(status: FileStatus) -> str:
    if status.entry is not None and status.entry.archive:
        text = translate("where", "kept together with others in the archive %1")
        return text.replace("%1", texts.plain(status.entry.archive))
    return _tell_moment(status.outcome.at or None) if status.outcome else ""


def _tell_moment(seconds: int | None) -> str:
    return texts.moment(moment_of(seconds)) if seconds is not None else ""


def judge(status: PathStatus) -> StatusText:
    """Return whether a file or folder may be deleted, by what is known here; never a yes."""
    if isinstance(status, FolderStatus):
        return _judge_unknown(status) if status.unknown else _judge_folder(status)
    if status.safety is FileSafety.UNKNOWN:
        return _judge_unknown(status)
    if status.safety in (FileSafety.GONE, FileSafety.GONE_VERIFIED):
        return _judge_gone(status)
    return _judge_file(status)


def _judge_unknown(status: PathStatus) -> StatusText:
    reasons = {
        UnknownReason.OUTSIDE: translate(
            "where", "It is not in the data folder and was never dropped onto the window."
        ),
        UnknownReason.UNSEEN: translate(
            "where", "No run has come across it. It may be new, or left out by the layout."
        ),
        UnknownReason.ABSENT: translate(
            "where", "Neither this computer nor the list of sent files has it."
        ),
    }
    headline = translate("where", "No: as far as is known, it exists only here")
    if status.unknown is UnknownReason.ABSENT:
        headline = translate("where", "There is no such file")
    return StatusText("problem", "error", headline, reasons[status.unknown or UnknownReason.UNSEEN])


def _judge_gone(status: FileStatus) -> StatusText:
    headline = translate("where", "It is no longer on this computer")
    if status.safety is FileSafety.GONE_VERIFIED:
        reason = translate("where", "The server had a verified copy when it was last asked.")
        return StatusText("good", "info", headline, reason)
    reason = translate("where", "As far as is known, the server has no verified copy.")
    return StatusText("problem", "warning", headline, _tell_outcome(status) or reason)


def _judge_file(status: FileStatus) -> StatusText:
    safety = status.safety
    if safety is FileSafety.VERIFIED:
        headline = translate("where", "It was safe when the server was last asked")
        reason = translate("where", "Only a fresh check tells whether you may delete it.")
        return StatusText("waiting", "info", headline, reason)
    headlines = {
        FileSafety.CHANGED: translate("where", "No: it has changed since it was sent"),
        FileSafety.UNCERTAIN: translate("where", "No: it may have changed since it was verified"),
        FileSafety.PENDING: translate("where", "No: the server has not verified it yet"),
        FileSafety.UNSENT: translate("where", "No: it is not on the server"),
        FileSafety.UNREADABLE: translate("where", "It cannot be looked at now"),
    }
    if status.entry and status.entry.state is EntryState.CHANGED:
        headlines[safety] = translate("where", "No: the server has an earlier version")
    reasons = {
        FileSafety.CHANGED: translate("where", "The next run sends it as it is now."),
        FileSafety.UNCERTAIN: translate(
            "where", "The next run checks it, and sends it if it is another file now."
        ),
        FileSafety.UNREADABLE: translate(
            "where", "Check that its drive is connected, and that you may read it."
        ),
    }
    reason = _tell_outcome(status) or reasons.get(safety, "")
    return StatusText("problem", "error", headlines[safety], reason)


def _tell_outcome(status: PathStatus) -> str:
    return _tell_problem(status.outcome) if status.outcome else ""


def _judge_folder(status: FolderStatus) -> StatusText:
    left = status.known.files - status.verified.files
    if left:
        headline = translate("where", "No: %Ln file(s) of it are not safe yet", None, left)
        reason = translate("where", "Those that are can be freed; a check tells which.")
        return StatusText("problem", "error", headline, reason)
    headline = translate(
        "where", "All files that runs have found in it were safe when the server was last asked"
    )
    reason = translate("where", "Only a fresh check tells whether you may delete it.")
    return StatusText("waiting", "info", headline, reason)


def tell_checked(fates: CleanupResults) -> StatusText:
    """Return what a fresh check says: the only yes that there is."""
    asked = texts.moment(datetime.now(tz=UTC))
    if not fates.freed and not fates.kept:
        return StatusText("problem", "warning", translate("where", "There are no files in it"))
    if fates.kept:
        return _tell_kept(fates)
    if len(fates.freed) == 1:
        headline = translate("where", "Yes, you may delete it")
        reason = translate(
            "where",
            "The server has a verified copy with the same size and checksum, and the local file "
            "was read once more (%1). Free space has the server verify its copy again before it "
            "deletes.",
        )
    else:
        count = len(fates.freed)
        headline = translate("where", "Yes, you may delete all %Ln file(s)", None, count)
        reason = translate(
            "where",
            "The server has a verified copy of each, with the same size and checksum, and the "
            "local files were read once more (%1). Free space has the server verify its copies "
            "again before it deletes.",
        )
    return StatusText("good", "check", headline, reason.replace("%1", asked))


def _tell_kept(fates: CleanupResults) -> StatusText:
    first = fates.kept[0]
    why = texts.plain(" ".join(filter(None, first.problem[1:])))
    if not fates.freed and len(fates.kept) == 1:
        return StatusText("problem", "error", translate("where", "No: keep it"), why)
    headline = translate("where", "No: %Ln file(s) have to stay", None, len(fates.kept))
    text = translate(
        "where", "%Ln file(s) may go. The first that stays is %1: %2", None, len(fates.freed)
    )
    return StatusText(
        "problem", "error", headline, text.replace("%1", texts.plain(first.key)).replace("%2", why)
    )


def tell_fate(fate: DeletedFile | KeptFile) -> str:
    """Return why a file stays, or nothing."""
    return texts.plain(fate.problem.message) if isinstance(fate, KeptFile) else ""
