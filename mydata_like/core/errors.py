"""What can go wrong, said once: a stable code, a sentence for a person, an advice.

UploaderError
├── ItemError                 this file fails, the run goes on
│   ├── TransientError        trying again may help
│   │   └── UnansweredError   a request that writes may still be at work on the server
│   ├── FileChangedError      the local file changed, vanished or cannot be read
│   ├── ArchiveError          this is no archive of ours, or a damaged one
│   └── RejectedError         the server will never take it as it is
└── RunError                  the run cannot go on until something is mended
    ├── SettingsError         a setting is missing or wrong
    ├── SourceError           a folder outside of the data directory cannot be carried
    ├── AccessDeniedError     the server does not accept who we are
    ├── NotApprovedError      the uploader's key awaits approval
    ├── HostKeyError          the staging host is not the one we know
    ├── StagingError          the staging area cannot take bytes (full, no rung works)
    ├── AlreadyRunningError   another run holds this data directory
    └── ServerUnavailableError  server or network are away
Cancelled                     a person or the system asked to stop (not an Exception)
"""

from typing import ClassVar, NamedTuple


class Problem(NamedTuple):
    """One thing that went wrong: `code` is stable (see docs/events.md), the rest is for people."""

    code: str
    message: str
    hint: str = ""


class UploaderError(Exception):
    """Something went wrong that a person may have to read about."""

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
    """It failed now and may work later; `retry_after` is what the server asked for, in seconds."""

    code = "item.transient"

    def __init__(
        self, message: str, *, hint: str = "", code: str | None = None, retry_after: float = 0.0
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.retry_after = retry_after


class UnansweredError(TransientError):
    """The answer to a request that writes was not heard: it may still be at work on the server.

    It must not be repeated before it is over: two that write the same block each other there.
    """

    code = "server.unanswered"


def describe_wait(seconds: float) -> Problem:
    """Say why a request whose answer was lost is not repeated for so many seconds at most."""
    return Problem(
        UnansweredError.code,
        "The answer to a request was lost; the server may still be working on it.",
        f"It is sent again only when that is over, in {max(1, round(seconds))} seconds at the "
        "latest; everything else goes on.",
    )


class FileChangedError(ItemError):
    """The local file changed, vanished or became unreadable while it was wanted."""

    code = "file.changed"


class ArchiveError(ItemError):
    """What was to be read as an archive is none of ours, or a damaged one."""

    code = "archive.damaged"


class RejectedError(ItemError):
    """The server will not take this, however often it is asked."""

    code = "item.rejected"


class RunError(UploaderError):
    """The run cannot go on until somebody or something mends the cause."""

    code = "run.failed"
    exit_code = 3


class SettingsError(RunError):
    """A setting is missing or wrong."""

    code = "settings.invalid"
    exit_code = 2


class SourceError(RunError):
    """A folder or file outside of the data directory cannot be carried."""

    code = "source.refused"
    exit_code = 2


class AccessDeniedError(RunError):
    """The server does not accept who we are, or what we may do."""

    code = "server.denied"


class NotApprovedError(RunError):
    """The uploader's key has not been approved (or no longer is)."""

    code = "uploader.not-approved"


class HostKeyError(RunError):
    """The staging host's key is unknown or not the one we know."""

    code = "host-key.unknown"


class StagingError(RunError):
    """The staging area takes no bytes: it is full, or nothing we can speak is allowed there."""

    code = "staging.refused"


class AlreadyRunningError(RunError):
    """Another run holds this data directory."""

    code = "run.already-running"


class ServerUnavailableError(RunError):
    """The server or the network are away."""

    code = "server.unavailable"
    exit_code = 4


class Cancelled(BaseException):
    """A person or the system asked to stop."""
