"""The connection, folders and files that a speed test uses."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, UploaderError
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.end_to_end import OpenTransport
from mydata_like.speedtest.remote_host import RemoteHost
from mydata_like.speedtest.results import Measurement, SpeedTestBudget, StageResult, Unit, connected
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import Endpoint, SshSession

CONNECTIONS: Final = (1, 2, 4)
_ANSWERS: Final = 5  # to each question

Questions = Mapping[str, Callable[[], object]]  # each asks the server one thing, in one request


def measure_api(questions: Questions, budget: SpeedTestBudget) -> Iterator[Measurement]:
    """Yield how long each answer takes, then how many of the last question's come in a second."""
    for name, ask in questions.items():
        if budget.spent():
            return
        seconds = budget.time(ask, _ANSWERS)
        yield Measurement(StageResult.API, name, Unit.SECONDS, seconds)
    *_, ask = questions.values()
    for connections in CONNECTIONS:
        if budget.spent():
            return
        with ThreadPoolExecutor(connections) as threads:

            def act(threads: ThreadPoolExecutor = threads, number: int = connections) -> float:
                return float(len(list(threads.map(lambda _: ask(), range(number * 2)))))

            yield Measurement(
                StageResult.API, connected(connections), Unit.REQUESTS, budget.look(act)
            )


_MOST: Final = 32  # channels that the settings allow

Clean = Callable[["ProbeFiles", SshSession], None]


class ProbeFiles(NamedTuple):
    """The staging host, and the folder below its location that is ours to write and remove."""

    endpoint: Endpoint
    location: bytes
    folder: str
    open_transport: OpenTransport


def name_files(staging: ProbeFiles) -> tuple[bytes, ...]:
    """Return the files that floods write where there is no shell: always the same ones."""
    prefix = staging.location.rstrip(b"/") + b"/" + staging.folder.encode()
    return tuple(b"%b-%d" % (prefix, number) for number in range(_MOST))


def clean_by_shell(staging: ProbeFiles, session: SshSession) -> None:
    """Remove whatever a test has left there."""
    RemoteHost(session, staging.location, staging.folder.encode()).clean()


def clean_by_sftp(staging: ProbeFiles, session: SshSession) -> None:
    """Remove the files of floods, where there is no shell."""
    sftp = session.open_sftp()
    for name in name_files(staging):
        with suppress(RejectedError):
            sftp.remove(name)


def leave_nothing(staging: ProbeFiles, session: SshSession, clean: Clean) -> bool:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedTestTarget:
    """What is examined: the data's folder, the server's API, and the way into its staging area.

    Without a `staging`, `why` says what is in its way. `state` takes the test's own files.
    `records` are how many files a second earlier runs brought to the server where its API was
    their limit.
    """

    root: Path
    state: Path
    transfer: Transfer
    questions: Questions
    staging: ProbeFiles | None = None
    why: str = ""
    records: tuple[float, ...] = ()
