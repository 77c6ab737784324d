"""The results of members: in order, and what the refusals of a staging area mean."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from mydata_like.core.errors import HELD, Problem, TransientError, describe_full
from mydata_like.core.formatting import format_path
from mydata_like.ssh.capabilities import LINE_END, says_full
from mydata_like.transfer.worker_messages import (
    MISSING,
    MemberResult,
    RenameTask,
    SendTask,
    TaskResult,
)

_DENIED: Final = (
    b"Permission denied",
    b"Operation not permitted",
    b"Read-only file system",
    b"File too large",
    b"File name too long",
    b"Not a directory",
    b"Is a directory",
)
_SAYS_DENIED: Final = re.compile(LINE_END % b"|".join(_DENIED)).search


def describe(remote: bytes, text: bytes) -> Problem:
    """Return the problem of a member that the staging area did not accept."""
    if says_full(text):
        return describe_full(remote)
    reason = format_path(text.strip().splitlines()[-1][:300]).rstrip(".") if text.strip() else ""
    if _SAYS_DENIED(text):  # this path will never be accepted
        return Problem(
            "staging.denied",
            f"The staging area refused {format_path(remote)}: {reason}.",
            "The server's administrator can fix its permissions.",
        )
    suffix = f": {reason}" if reason else ""
    return Problem("staging.unproven", f"The server did not confirm {format_path(remote)}{suffix}.")


def refuse(index: int, remote: bytes, text: bytes) -> MemberResult:
    """Return the result of a member that the staging area did not accept."""
    problem = describe(remote, text)
    return MemberResult(index, "", problem, again=problem.code != "staging.denied")


def missing(index: int, move: RenameTask) -> MemberResult:
    """Return the result for a replacement that is missing or incomplete."""
    shown = format_path(move.target)
    problem = Problem(MISSING, f"The new bytes of {shown} are not in the staging area.")
    return MemberResult(index, "", problem)


def describe_held(reason: str) -> Problem:
    """Return the problem of a changed file whose earlier bytes would be lost."""
    return Problem(
        HELD,
        "The content on the server was not replaced, because the staging area cannot keep it. "
        f"{reason}",
        "Both contents are unchanged. To replace the one on the server without keeping it, use "
        "mydata-like changed replace.",
    )


def held(index: int, reason: str) -> MemberResult:
    """Return the result for a replacement that was left because of its earlier bytes."""
    problem = describe_held(reason)
    return MemberResult(index, "", problem)


def collect(
    results: Mapping[int, MemberResult], count: int, lost: TransientError | None = None
) -> TaskResult:
    """Return the results of `count` members in order; the others were `lost` with the connection.

    Raises `lost` if nothing has arrived.
    """
    if lost is None:
        return TaskResult(tuple(results[index] for index in range(count)))
    if not any(result.checksum for result in results.values()):
        raise lost
    missing = (MemberResult(index, "", lost.problem, again=True) for index in range(count))
    return TaskResult(tuple(results.get(it.place, it) for it in missing), broken=True)


def send_others(
    known: Mapping[int, MemberResult], task: SendTask, send: Callable[[SendTask], TaskResult]
) -> TaskResult:
    """Send the members of a task without a known result; return the results of all in order."""
    if not known:
        return send(task)
    members = task.members
    rest = [index for index in range(len(members)) if index not in known]
    if not rest:
        return collect(known, len(members))
    try:
        sent = send(SendTask(tuple(members[index] for index in rest), task.batched))
    except TransientError as error:
        return collect(known, len(members), error)
    results = {**known, **renumber(sent, rest)}
    return replace(collect(results, len(members)), broken=sent.broken)


def renumber(sent: TaskResult, indexes: Sequence[int]) -> dict[int, MemberResult]:
    """Return results by the indexes that their members have in the whole task."""
    return {indexes[it.place]: it._replace(place=indexes[it.place]) for it in sent.results}
