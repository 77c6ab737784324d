"""The columns of the table of runs."""

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication

from mydata_like.core.queries import RunRow
from mydata_like.gui.look import words
from mydata_like.gui.look.limits import limit_name, limit_word
from mydata_like.gui.tables.columns import Column
from mydata_like.gui.tables.marks import Mark

translate = QCoreApplication.translate

STOPPED_BY_PERSON = "run.interrupted"


def run_columns(is_under_way: Callable[[str], bool]) -> list[Column]:
    """Return what a table says of runs; which of them goes on is asked with its name."""

    def mark(row: RunRow) -> Mark | None:
        return _mark(row, under_way=is_under_way(row.key))

    def outcome(row: RunRow) -> str:
        return _mark(row, under_way=is_under_way(row.key)).word

    return [
        Column("at", translate("runs", "When"), _when, "at", 22),
        Column("reason", translate("runs", "Why"), _why, "reason", 24),
        Column("files", translate("runs", "Files sent"), _files, "files", 12, number=True),
        Column("size", translate("runs", "Size"), _size, "size", 12, number=True),
        Column("speed", translate("runs", "Speed"), _speed, width=13, number=True),
        Column("span", translate("runs", "Duration"), _span, "span", 14, number=True),
        Column("limit", translate("runs", "Limit"), _limit, width=17, tip=_tell_limit),
        Column("outcome", translate("runs", "Outcome"), outcome, width=30, mark=mark, tip=_tip),
    ]


def number(row: RunRow, name: str) -> float:
    """Return a sum of a run, 0 where it is not known."""
    value = row.summary.get(name)
    return value if isinstance(value, int | float) else 0


def problem_code(row: RunRow) -> str:
    """Return the code of what ended a run early, empty for none."""
    return str(_problem(row).get("code", ""))


def _problem(row: RunRow) -> dict[str, Any]:
    problem = row.summary.get("problem")
    return problem if isinstance(problem, dict) else {}


def _when(row: RunRow) -> str:
    return words.moment(row.started) if row.started else ""


def _why(row: RunRow) -> str:
    reason = str(row.summary.get("reason", "person"))
    known = {
        "person": translate("runs", "Started by a person"),
        "startup": translate("runs", "At the start"),
        "saved": translate("runs", "Settings were saved"),
        "once": translate("runs", "Schedule: once"),
        "daily": translate("runs", "Schedule: daily"),
        "weekly": translate("runs", "Schedule: weekly"),
        "interval": translate("runs", "Schedule: every few minutes"),
        "settled": translate("runs", "New files had settled"),
        "folder": translate("runs", "One folder only"),
        "retry": translate("runs", "Second try"),
        "source": translate("runs", "Folders were added"),
    }
    return known.get(reason, words.plain(reason))


def _mark(row: RunRow, *, under_way: bool) -> Mark:
    if row.finished is None:
        if under_way:
            return Mark(translate("runs", "Not finished"), "working", "working")
        return _mark_cut_off(row)
    if problem_code(row) == STOPPED_BY_PERSON:
        return Mark(translate("runs", "Stopped"), "stop", "waiting")
    if problem_code(row):
        return Mark(translate("runs", "Ended early"), "error", "problem")
    return _mark_of_files(row)


def _mark_cut_off(row: RunRow) -> Mark:
    left = int(number(row, "found") - number(row, "verified") - number(row, "skipped"))
    word = translate("runs", "Cut off")
    if left > 0:
        word = translate("runs", "Cut off, %Ln file(s) open", None, left)
    return Mark(word, "warning", "waiting")


def _mark_of_files(row: RunRow) -> Mark:
    failed, waiting = int(number(row, "failed")), int(number(row, "waiting"))
    if failed:
        return Mark(translate("runs", "%Ln file(s) failed", None, failed), "warning", "problem")
    behind = int(number(row, "left_behind"))
    if behind:
        return Mark(translate("runs", "%Ln left out", None, behind), "warning", "waiting")
    if waiting:
        return Mark(translate("runs", "%Ln file(s) wait", None, waiting), "waiting", "waiting")
    return _mark_of_verified(row)


def _mark_of_verified(row: RunRow) -> Mark:
    verified = int(number(row, "verified"))
    if verified:
        return Mark(translate("runs", "All %Ln file(s) safe", None, verified), "check", "good")
    if number(row, "found"):
        return Mark(translate("runs", "Nothing to send"), "skipped", "skipped")
    return Mark(translate("runs", "No files found"), "skipped", "skipped")


def _tip(row: RunRow) -> str:
    problem = _problem(row)
    return words.plain(f"{problem.get('message', '')} {problem.get('hint', '')}".strip())


def _files(row: RunRow) -> str:
    return words.count(int(number(row, "sent")))


def _size(row: RunRow) -> str:
    return words.size(_bytes(row))


def _bytes(row: RunRow) -> float:
    # Sums of a run under way have another name for it.
    return number(row, "bytes") or number(row, "sent_bytes")


def _speed(row: RunRow) -> str:
    seconds = number(row, "seconds")
    return words.rate(_bytes(row) / seconds) if seconds and _bytes(row) else ""


def _limit(row: RunRow) -> str:
    """Return what kept it from going faster, of a run that sent something."""
    return limit_word(str(row.summary.get("limit", ""))) if _bytes(row) else ""


def _tell_limit(row: RunRow) -> str:
    return limit_name(str(row.summary.get("limit", "")))


def _span(row: RunRow) -> str:
    return words.span(number(row, "seconds"))
