"""The place in the staging area that is a speed test's own, and that nothing of it stays there."""

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, UploaderError
from mydata_like.doctor.carrying import OpenTransport
from mydata_like.doctor.host import Host
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import Endpoint, SshSession

_MOST: Final = 32  # channels that the settings allow

Clean = Callable[["Staging", SshSession], None]


class Staging(NamedTuple):
    """The staging host, and the folder below its location that is ours to write and remove."""

    endpoint: Endpoint
    location: bytes
    folder: str
    open_transport: OpenTransport


def name_files(staging: Staging) -> tuple[bytes, ...]:
    """Return the files that floods write where there is no shell: always the same ones."""
    prefix = staging.location.rstrip(b"/") + b"/" + staging.folder.encode()
    return tuple(b"%b-%d" % (prefix, number) for number in range(_MOST))


def clean_by_shell(staging: Staging, session: SshSession) -> None:
    """Remove whatever a test has left there."""
    Host(session, staging.location, staging.folder.encode()).clean()


def clean_by_sftp(staging: Staging, session: SshSession) -> None:
    """Remove the files of floods, where there is no shell."""
    sftp = session.open_sftp()
    for name in name_files(staging):
        with suppress(RejectedError):
            sftp.remove(name)


def leave_nothing(staging: Staging, session: SshSession, clean: Clean) -> bool:
    """Remove what was written there, over a new session where the old one broke.

    Return whether it is gone; what cannot be removed now is by the next test.
    """
    with suppress(UploaderError):
        clean(staging, session)
        return True
    with suppress(UploaderError), closing(connect(staging.endpoint)) as another:
        clean(staging, another)
        return True
    return False
