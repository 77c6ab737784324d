"""The errors of the program: each has a stable code, a message for the user and a hint.

UploaderError
├── ItemError                 one file fails, the run continues
│   ├── TransientError        a later attempt may succeed
│   │   └── UnansweredError   the server may still be processing a request that writes
│   ├── FileChangedError      the local file changed, vanished or cannot be read
│   ├── ArchiveError          a file is not an archive of this program, or it is damaged
│   └── RejectedError         the server rejects it permanently
└── RunError                  the run cannot continue until something is fixed
    ├── SettingsError         a setting is missing or wrong
    ├── SourceError           a folder outside the data directory cannot be uploaded
    ├── AccessDeniedError     the server does not accept the account
    ├── NotApprovedError      the uploader's key awaits approval
    ├── HostKeyError          the staging host's key is unknown or not the expected one
    ├── StagingError          the staging area accepts no bytes (full, no method works)
    ├── AlreadyRunningError   another run holds this data directory
    └── ServerUnavailableError  the server or the network is unavailable
        └── WaitRequestedError  the server asks for no requests until a certain time
Cancelled                     the user or the system requested a stop (not an Exception)
"""

from enum import Enum
from typing import ClassVar, Final, NamedTuple

from mydata_like.core.formatting import format_path

FULL: Final = "staging.full"


class Problem(NamedTuple):
    """A problem: `code` is stable (see docs/events.md); message and hint are for the user."""

    code: str
    message: str
    hint: str = ""


class UploaderError(Exception):
    """The base class of errors that are reported to the user."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problem_code = code or self.code

    @property
    def problem(self) -> Problem:
        return Problem(self.problem_code, self.message, self.hint)


class ItemError(UploaderError):
    """This file fails; the run goes on."""

    code = "item.failed"


class TransientError(ItemError):
    """A temporary error: the same may succeed later."""

    code = "item.transient"


class Loss(Enum):
    """How the answer to a request was lost, which tells how long the request may go on."""

    SILENT = "silent"  # no answer came in time
    BROKEN = "broken"  # the connection broke, as it does when the server goes down
    UNDELIVERED = "undelivered"  # the server's host has not confirmed to have received all of it


class UnansweredError(TransientError):
    """The response to a request that writes was lost: the server may still be processing it.

    It must not be repeated before it has ended: two requests that write the same block each other
    on the server.
    """

    code = "server.unanswered"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        loss: Loss = Loss.SILENT,
        sent_at: float = 0.0,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.loss = loss
        self.sent_at = sent_at  # monotonic


def describe_wait(seconds: float, lost: UnansweredError | None = None) -> Problem:
    """Return a problem that explains why a request with a lost response is repeated only later."""
    hint = (
        f"It is sent again when that has ended, in {max(1, round(seconds))} seconds at the "
        "latest; everything else continues."
    )
    return Problem(
        UnansweredError.code,
        "The response to a request was lost; the server may still be processing it.",
        f"{hint} {lost.hint}" if lost and lost.hint else hint,
    )


def describe_full(path: bytes) -> Problem:
    """Return the problem of a file that does not fit into the staging area."""
    return Problem(
        FULL,
        f"The staging area has no space for {format_path(path)}.",
        "The next run sends it. The server's administrator can free space or raise the quota.",
    )


STRANGE_RECORD: Final = "server.strange-record"
HELD: Final = "waiting.changed"  # the code of a changed file that waits for the user's choice
KEPT: Final = "skipped.changed"  # of one whose copy the user keeps
OUTSIDE: Final = "skipped.outside-dataset"  # of one that belongs to no dataset


def describe_strange_record(fault: str) -> Problem:
    """Return the problem of a file whose record on the server is invalid."""
    return Problem(
        STRANGE_RECORD,
        f"The server's record of this file is invalid: {fault}.",
        "Report this to the server's administrator. Other files are not affected.",
    )


class FileChangedError(ItemError):
    """The local file changed, vanished or became unreadable during the transfer."""

    code = "file.changed"


class ArchiveError(ItemError):
    """A file is not an archive of this program, or it is damaged."""

    code = "archive.damaged"


class RejectedError(ItemError):
    """The server rejects this permanently."""

    code = "item.rejected"


class RunError(UploaderError):
    """The run cannot continue until the cause is fixed."""

    code = "run.failed"
    exit_code = 3


class SettingsError(RunError):
    """A setting is missing or wrong."""

    code = "settings.invalid"
    exit_code = 2


class SourceError(RunError):
    """A folder or file outside the data directory cannot be uploaded."""

    code = "source.refused"
    exit_code = 2


class AccessDeniedError(RunError):
    """The server does not accept the account or denies it access."""

    code = "server.denied"


class NotApprovedError(RunError):
    """The uploader's key is not approved, or no longer approved."""

    code = "uploader.not-approved"


class HostKeyError(RunError):
    """The staging host's key is unknown or not the expected one."""

    code = "host-key.unknown"


class StagingError(RunError):
    """The staging area accepts no bytes: it is full, or allows no supported transfer method."""

    code = "staging.refused"


class AlreadyRunningError(RunError):
    """Another run holds this data directory."""

    code = "run.already-running"


class ServerUnavailableError(RunError):
    """The server or the network is unavailable."""

    code = "server.unavailable"
    exit_code = 4


class WaitRequestedError(ServerUnavailableError):
    """The server asks for no requests for `rest` more seconds; nothing was sent."""

    code = "server.wait-requested"

    def __init__(
        self, message: str, *, hint: str = "", code: str | None = None, rest: float = 0.0
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.rest = rest


class Cancelled(BaseException):
    """The user or the system requested a stop."""

    exit_code: ClassVar[int] = 130  # as shells report SIGINT
