"""A journey in words: its steps, and whether the file may be deleted."""

from datetime import UTC, datetime
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication

from mydata_like.core.freeing import Freed, Spared
from mydata_like.core.journeys import FileJourney, FolderJourney, Here, Ill, Journey, Unknown
from mydata_like.core.model import EntryState
from mydata_like.gui.look import words
from mydata_like.gui.look.palette import Status
from mydata_like.gui.where.source import Fates

translate = QCoreApplication.translate

_REACHED = {
    EntryState.FAILED: 1,
    EntryState.CHANGED: 1,
    EntryState.STAGED: 2,
    EntryState.REGISTERED: 3,
    EntryState.REPAIRED: 3,
    EntryState.VERIFIED: 4,
}


class Step(NamedTuple):
    """One step of a journey: a word, a picture of how it stands (none yet), and when or why."""

    word: str
    icon: str
    status: Status
    note: str


class Verdict(NamedTuple):
    """Whether a file may be deleted, in a headline and its reasons."""

    status: Status
    icon: str
    headline: str
    reason: str = ""


def list_steps(journey: FileJourney) -> list[Step]:
    """Return the steps of a file, those that it has not taken yet as well."""
    entry = journey.entry
    reached = _REACHED[entry.state] if entry else (1 if journey.ill else 0)
    times = journey.times
    changed = datetime.fromtimestamp(journey.modified_ns // 10**9, UTC)
    names = [
        (translate("where", "Changed here"), words.moment(changed) if journey.modified_ns else ""),
        (translate("where", "Seen by a run"), _tell_seen(journey)),
        (translate("where", "Sent"), _tell_moment(times.staged)),
        (translate("where", "Registered on the server"), _tell_moment(times.registered)),
        (translate("where", "Verified by the server"), _tell_moment(times.verified)),
    ]
    steps = [Step(word, "check", "good", note) for word, note in names[: reached + 1]]
    coming = [Step(word, "", "skipped", "") for word, _ in names[reached + 1 :]]
    if coming:
        coming[0] = _tell_next(journey, coming[0])
    return steps + coming


def _tell_next(journey: FileJourney, step: Step) -> Step:
    """Say why the next step has not been taken."""
    ill = journey.ill
    if ill is not None:
        icon, status = _picture_of(ill)
        return Step(step.word, icon, status, _tell_problem(ill))
    if journey.entry is not None:
        note = translate("where", "not yet; the next run goes on here")
        return Step(step.word, "waiting", "waiting", note)
    return Step(step.word, "waiting", "waiting", translate("where", "not yet"))


def _picture_of(ill: Ill) -> tuple[str, Status]:
    if ill.kind in ("failed", "folder-failed"):
        return "error", "problem"
    if ill.kind == "waiting":
        return "waiting", "waiting"
    return "skipped", "skipped"


def _tell_problem(ill: Ill) -> str:
    return words.plain(" ".join(filter(None, ill.problem[1:])))


def _tell_seen(journey: FileJourney) -> str:
    if journey.entry is not None and journey.entry.archive:
        text = translate("where", "kept together with others in the archive %1")
        return text.replace("%1", words.plain(journey.entry.archive))
    return _tell_moment(journey.ill.at) if journey.ill else ""


def _tell_moment(seconds: int | None) -> str:
    return words.moment(datetime.fromtimestamp(seconds, UTC)) if seconds is not None else ""


def judge(journey: Journey) -> Verdict:
    """Return whether a file or folder may be deleted, by what is known here; never a yes."""
    if journey.unknown is not None:
        return _judge_unknown(journey)
    if isinstance(journey, FolderJourney):
        return _judge_folder(journey)
    return _judge_file(journey)


def _judge_unknown(journey: Journey) -> Verdict:
    reasons = {
        Unknown.OUTSIDE: translate(
            "where", "It does not lie in the data folder, and was never dropped onto the window."
        ),
        Unknown.UNSEEN: translate(
            "where", "No run has come across it. It may be new, or left out by the layout."
        ),
        Unknown.ABSENT: translate(
            "where", "Neither this computer nor the list of sent files has it."
        ),
    }
    headline = translate("where", "No: as far as is known, it exists only here")
    if journey.unknown is Unknown.ABSENT:
        headline = translate("where", "There is no such file")
    return Verdict("problem", "error", headline, reasons[journey.unknown or Unknown.UNSEEN])


def _judge_file(journey: FileJourney) -> Verdict:
    if journey.here is Here.GONE:
        safe = journey.entry is not None and journey.entry.state is EntryState.VERIFIED
        headline = translate("where", "It is no longer on this computer")
        if safe:
            reason = translate("where", "The server had a verified copy when it was last asked.")
            return Verdict("good", "info", headline, reason)
        return Verdict("problem", "warning", headline, _tell_ill(journey))
    if journey.here is Here.CHANGED:
        headline = translate("where", "No: it has changed since it was sent")
        if _is_earlier(journey):
            headline = translate("where", "No: the server has an earlier state of it")
        reason = translate("where", "The next run sends it as it is now.")
        return Verdict("problem", "error", headline, _tell_ill(journey) or reason)
    if journey.entry is None or journey.entry.state is not EntryState.VERIFIED:
        headline = translate("where", "No: the server has not verified it yet")
        return Verdict("problem", "error", headline, _tell_ill(journey))
    headline = translate("where", "It was safe when the server was last asked")
    reason = translate("where", "Only a fresh check tells whether you may delete it.")
    return Verdict("waiting", "info", headline, reason)


def _is_earlier(journey: FileJourney) -> bool:
    return journey.entry is not None and journey.entry.state is EntryState.CHANGED


def _tell_ill(journey: Journey) -> str:
    return _tell_problem(journey.ill) if journey.ill else ""


def _judge_folder(journey: FolderJourney) -> Verdict:
    left = journey.known.files - journey.verified.files
    if left:
        headline = translate("where", "No: %Ln file(s) of it are not safe yet", None, left)
        reason = translate("where", "Those that are can be freed; a check tells which.")
        return Verdict("problem", "error", headline, reason)
    headline = translate("where", "All of it was safe when the server was last asked")
    reason = translate("where", "Only a fresh check tells whether you may delete it.")
    return Verdict("waiting", "info", headline, reason)


def tell_checked(fates: Fates) -> Verdict:
    """Return what a fresh check says: the only yes that there is."""
    asked = words.moment(datetime.now(tz=UTC))
    if not fates.freed and not fates.kept:
        return Verdict("problem", "warning", translate("where", "There are no files in it"))
    if fates.kept:
        return _tell_kept(fates)
    if len(fates.freed) == 1:
        headline = translate("where", "Yes, you may delete it")
        reason = translate(
            "where",
            "The server has a verified copy with the same size and checksum, and the local file "
            "was read once more (%1).",
        )
    else:
        count = len(fates.freed)
        headline = translate("where", "Yes, you may delete all %Ln file(s)", None, count)
        reason = translate(
            "where",
            "The server has a verified copy of each, with the same size and checksum, and the "
            "local files were read once more (%1).",
        )
    return Verdict("good", "check", headline, reason.replace("%1", asked))


def _tell_kept(fates: Fates) -> Verdict:
    first = fates.kept[0]
    why = words.plain(" ".join(filter(None, first.problem[1:])))
    if not fates.freed and len(fates.kept) == 1:
        return Verdict("problem", "error", translate("where", "No: keep it"), why)
    headline = translate("where", "No: %Ln file(s) have to stay", None, len(fates.kept))
    text = translate(
        "where", "%Ln file(s) may go. The first that stays is %1: %2", None, len(fates.freed)
    )
    return Verdict(
        "problem", "error", headline, text.replace("%1", words.plain(first.key)).replace("%2", why)
    )


def tell_fate(fate: Freed | Spared) -> str:
    """Return why a file stays, or nothing."""
    return words.plain(fate.problem.message) if isinstance(fate, Spared) else ""
