"""The problems of files at a destination without a server, by what its system says."""

import re
from collections.abc import Sequence
from typing import Final

from mydata_like.core.destination_files import OWN_FOLDER, describe_occupied
from mydata_like.core.errors import FULL, Problem, RejectedError, StagingError
from mydata_like.core.formatting import format_path
from mydata_like.transfer.tar import is_plain

LINK: Final = "destination.link"
NAME: Final = "destination.name"
DENIED: Final = "destination.denied"
READ_ONLY: Final = "destination.read-only"
REFUSED: Final = "destination.refused"
ABSENT: Final = "destination.absent"
NO_FOLDER: Final = "destination.no-folder"
MISSING: Final = "staging.missing"

_FULL: Final = re.compile(rb"No space left|[Qq]uota exceeded").search
_READ_ONLY: Final = re.compile(rb"Read-only file system").search
_DENIED: Final = re.compile(rb"Permission denied|Operation not permitted").search
_NAME: Final = re.compile(
    rb"File name too long|Invalid argument|Illegal byte sequence|[Ii]nvalid or incomplete multibyte"
    rb"|Name too long"
).search
_IN_THE_WAY: Final = re.compile(rb"File exists|Not a directory|Is a directory").search


def check_path(path: bytes) -> None:
    """Raise ValueError unless a path stays below the destination."""
    if not is_plain(path):
        raise ValueError(f"not a plain relative path: {path!r}")


def check_paths(paths: Sequence[bytes]) -> None:
    """Raise ValueError unless all of these paths stay below the destination."""
    if paths and not is_plain(b"/".join(paths)):
        for path in paths:
            check_path(path)


def check_own(path: bytes) -> None:
    """Raise ValueError unless a path is that of our folder or below it."""
    check_path(path)
    if path.split(b"/")[0] != OWN_FOLDER:
        raise ValueError(f"not below {OWN_FOLDER!r}: {path!r}")


def describe_link(path: bytes) -> Problem:
    """Return the problem of a path with a link in place of a folder."""
    return Problem(
        LINK,
        f"A folder of {format_path(path)} is a symbolic link at the destination, which is not "
        "followed.",
        "Replace the link by a folder, or choose another destination.",
    )


def describe_missing(path: bytes) -> Problem:
    """Return the problem of a temporary file that is gone."""
    return Problem(
        MISSING,
        f"The destination lost {format_path(path)}, which was stored temporarily.",
        "It is sent again.",
    )


def describe_refusal(path: bytes, reason: bytes) -> Problem:
    """Return the problem of a path for which a program or the system gave a reason."""
    shown, why = format_path(path), shorten(reason)
    if _FULL(reason):
        return Problem(
            FULL,
            f"The destination has no space for {shown}.",
            "Free space there, or have the quota raised.",
        )
    if _READ_ONLY(reason):
        return Problem(
            READ_ONLY,
            f"{shown} cannot be written: the destination is mounted read-only.",
            "Mount it with write access.",
        )
    if _DENIED(reason):
        return Problem(
            DENIED,
            f"{shown} cannot be written: permission denied.",
            "Give the account of the destination write access.",
        )
    if _NAME(reason):
        return Problem(
            NAME,
            f"The destination cannot store the name {shown}.",
            "Rename the file: a shorter name without special characters can be stored everywhere.",
        )
    if _IN_THE_WAY(reason):
        return describe_occupied(path)
    return Problem(REFUSED, f"{shown} cannot be written: {why}.", "Check the destination.")


def shorten(reason: bytes) -> str:
    """Return the end of what a program printed as text for a message."""
    lines = reason.strip().splitlines()
    return (
        format_path(lines[-1].rpartition(b": ")[2])[:200].rstrip(".")
        if lines
        else "no reason was given"
    )


def destination_error(path: bytes, reason: bytes) -> StagingError:
    """Return the error of a destination that does not take files."""
    problem = describe_refusal(path, reason)
    return StagingError(problem.message, hint=problem.hint, code=problem.code)


def no_folder(path: bytes) -> StagingError:
    """Return the error of a destination that is something else than a folder."""
    return StagingError(
        f"The destination {format_path(path)} is not a folder.",
        hint="Name a folder, or a name that does not exist yet.",
        code=NO_FOLDER,
    )


def absent(path: bytes) -> StagingError:
    """Return the error of a destination that does not exist."""
    return StagingError(
        f"The destination {format_path(path)} does not exist.",
        hint="Check its name. If it is on a disk or a share, mount it.",
        code=ABSENT,
    )


def unreadable(path: bytes, reason: bytes) -> RejectedError:
    """Return the error of a file at the destination that cannot be read."""
    return RejectedError(
        f"{format_path(path)} at the destination cannot be read: {shorten(reason)}.",
        hint="Give the account of the destination access to it.",
        code=REFUSED,
    )
