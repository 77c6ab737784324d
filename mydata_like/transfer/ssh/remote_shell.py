"""Remote scripts, temporary names, and shells that are started in advance."""

import math
import time
from collections.abc import Generator, Iterable
from contextlib import suppress
from threading import Lock, Thread
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.ssh import dialing
from mydata_like.ssh.capabilities import PREAMBLE, HostCapabilities, quote
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import CommandResult, SshSession, Stream
from mydata_like.transfer.archive_writer import ArchiveSource
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.ssh.multi_stream import FAR, StreamLimit
from mydata_like.transfer.temporary_files import part_name
from mydata_like.transfer.worker_messages import Member, Moving


def hold_back(
    source: FileSource | ArchiveSource, chunks: Iterable[memoryview]
) -> Generator[memoryview, None, None]:
    """Yield the chunks of a source, the last one only after the file was found unchanged."""
    for chunk in chunks:
        if not source.remaining:
            source.finish()
        yield chunk


MARK: Final = b"mydata:"  # the prefix of a script's replies
NO_DIRECTORY: Final = 92  # the location accepts no new directories
_MOST_LOGIN_OUTPUT: Final = 64 * 1024  # bytes of login script output before the reply
_ECHO: Final = b'while IFS= read -r line; do echo "mydata:"; done'
_TAKE_ALL: Final = b'echo "mydata:"; exec cat >/dev/null'
_GRANTED: Final = 10  # channels of a session, by sshd's default for MaxSessions
_TRIES: Final = 10
_PAUSE: Final = 0.05  # seconds

# Every login shell accepts this; the script itself is sent as input.
WAITING: Final = b"""exec sh -c 'IFS= read -r s && eval "$s"'"""


def ancestors(path: bytes) -> list[bytes]:
    """Return the parent directories of a relative path, the outermost first."""
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[: depth + 1]) for depth in range(len(parts))]


def enter(location: bytes) -> bytes:
    """Return the script that changes to the location, and creates it if it is missing."""
    where = quote(location)
    return b"cd -- %b 2>/dev/null || { mkdir -p -m 2770 -- %b && cd -- %b || exit %d; }; " % (
        where,
        where,
        where,
        NO_DIRECTORY,
    )


def make(directories: Iterable[bytes]) -> bytes:
    """Return the script that creates missing directories below the current one.

    It exits if the current directory is not writable; other failures show later.
    """
    words = b" ".join(quote(b"./" + directory) for directory in directories)
    if not words:
        return b""
    return b"mkdir -p -m 2770 -- %b || [ -w . ] || exit %d; " % (words, NO_DIRECTORY)


def finish_refused(stream: Stream, error: UploaderError) -> CommandResult:
    """Return the result of a script that ended before it received all its input.

    Raises `error`, the failure to send, if the connection broke instead of the script.
    """
    try:
        finished = stream.finish()
    except TransientError:
        raise error from None
    if not finished.status:
        raise error
    return finished


def read_answer(stream: Stream, moving: Moving | None = None) -> bytes:
    """Return the reply of a script; the output of login scripts before it is skipped.

    Empty lines before the reply are progress reports.
    """
    received = b""
    while len(received) < _MOST_LOGIN_OUTPUT:
        more = stream.read(4096)
        if not more:
            break
        if moving is not None:
            moving(0)
        received = received.rstrip(b"\n") + more
        found = received.rpartition(MARK)
        if found[1] and found[2].endswith(b"\n"):
            return found[2].strip()
    with suppress(TransientError):
        stream.close()
    raise TransientError("The shell of the staging host did not answer.", code="staging.shell")


class Shells:
    """Starts scripts over one session, with one spare shell to save the start-up time.

    Starting a shell takes two round trips, so the next one starts while the current script runs.

    `compression` decides about compressing the scripts' input. `spares` are the spare shells of all
    channels of the session.
    """

    def __init__(
        self,
        session: SshSession,
        compression: Compression | None = None,
        spares: "SpareShells | None" = None,
    ) -> None:
        self.compression = compression or Compression(available=False)
        self._session = session
        self._spare_shells = spares or SpareShells()
        self._next_shell: _Shell | None = None
        self._taking = Lock()
        self._spares = True  # whether the server grants a spare channel
        self.round_trip = math.inf  # seconds, the shortest measured
        self._is_measured = False  # whether the round trip was measured with `_ECHO`

    def open(self) -> None:
        """Start a shell for the first script; raises `TransientError` if it is not granted."""
        self._next_shell = _Shell(self._session)
        self._next_shell.begin()
        self.round_trip = self._next_shell.round_trip
        self._spare_shells.add_channel()

    def start(self, script: bytes, *, retry: bool = True) -> Stream:
        """Start a script that reads its input from the stream; callable from any thread.

        Raises `TransientError` with the code `channel.refused` if no channel is granted. With
        `retry`, it retries for a moment.
        """
        if b"\n" in script:  # a name with a newline; `WAITING` reads a single line
            return self._open(b"exec sh -c " + quote(PREAMBLE + script), retry=retry)
        stream = self._take() or self._open(WAITING, retry=retry)
        stream.write(PREAMBLE + script + b"\n")
        return stream

    def prepare(self) -> None:
        """Start a spare shell for the next script, unless the host grants none."""
        if self._next_shell is None and self._spares:
            self._next_shell = self._spare_shells.start(self._session)

    def run(self, script: bytes) -> bytes:
        """Run a short script and return its output."""
        return self.start(script).finish().output

    def find_round_trip(self, far: float) -> float:
        """Return the round trip in seconds; measure again with an echo if it seems `far`.

        A busy host may take long to start a shell, but a running shell replies quickly.
        """
        if far <= self.round_trip < math.inf and not self._is_measured:
            self._is_measured = True
            stream = self.start(_ECHO)

            def echo() -> None:
                stream.write(b"\n")
                read_answer(stream)

            times = dialing.time_answers(echo, far)
            measured = times.round_trip(self._session.network_round_trip)
            self.round_trip = min(self.round_trip, measured)
            stream.finish()
        return self.round_trip

    def time_sending(self, data: bytes) -> float:
        """Return the seconds until the host has received these bytes, which it drops.

        It is infinity for a far host, to which the first bytes of a connection go slowly.
        """
        if self.find_round_trip(FAR) >= FAR:
            return math.inf
        stream = self.start(_TAKE_ALL)
        read_answer(stream)
        began = time.perf_counter()
        stream.write(data)
        stream.finish()
        return max(0.0, time.perf_counter() - began - self.round_trip)

    def close(self) -> None:
        """Close the shell that waits; the channel ends."""
        self._spare_shells.remove_channel()
        self._drop_spare()

    def _drop_spare(self) -> None:
        if stream := self._take():
            stream.close()

    def _take(self) -> Stream | None:
        """Return the spare shell, or None."""
        with self._taking:
            shell, self._next_shell = self._next_shell, None
        if shell is None or not self._spare_shells.take(shell):
            return None
        if shell.is_alive():
            shell.join()
        self._spares = shell.stream is not None
        self.round_trip = min(self.round_trip, shell.round_trip)
        return shell.stream

    def _open(self, command: bytes, *, retry: bool) -> Stream:
        """Start a command; a server that grants only one channel needs a moment to end the last.

        If spare shells use the channels that this command needs, they are closed.
        """
        for _ in range(_TRIES if retry else 0):
            try:
                return self._session.start(command)
            except TransientError as error:
                if error.problem_code != NO_CHANNEL:
                    raise
            self._drop_spare()
            self._spare_shells.give_up()
            time.sleep(_PAUSE)
        return self._session.start(command)


class SpareShells:
    """The spare shells of a session, which wait while its channels run scripts.

    There are only as many as sshd usually grants besides the channels. After a script was refused
    because of them, no more are started.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._channels = 0
        self._granted = True
        self._waiting: set[_Shell] = set()

    def add_channel(self) -> None:
        """Count a channel of the session."""
        with self._lock:
            self._channels += 1

    def remove_channel(self) -> None:
        """Count a channel that is closed."""
        with self._lock:
            self._channels -= 1

    def start(self, session: SshSession) -> "_Shell | None":
        """Start a shell in the background; None if the host grants no spare shells."""
        with self._lock:
            if not self._granted or self._channels + len(self._waiting) >= _GRANTED:
                return None
            shell = _Shell(session, spare=True)
            self._waiting.add(shell)
        shell.start()
        return shell

    def take(self, shell: "_Shell") -> bool:
        """Return whether a shell may be used; a spare one may have been closed."""
        with self._lock:
            known = shell in self._waiting
            self._waiting.discard(shell)
        return known or not shell.spare

    def give_up(self) -> None:
        """Close all spare shells and start no more."""
        with self._lock:
            self._granted = False
            waiting, self._waiting = self._waiting, set()
        for shell in waiting:
            shell.drop()


class _Shell(Thread):
    """A shell that starts and then waits for its script; `spare` if another script runs."""

    def __init__(self, session: SshSession, *, spare: bool = False) -> None:
        super().__init__(name="shell", daemon=True)
        self._session = session
        self.spare = spare
        self.stream: Stream | None = None
        self.round_trip = math.inf

    def begin(self) -> None:
        """Start it in this thread; raises `TransientError` if it is not granted."""
        began = time.monotonic()
        self.stream = self._session.start(WAITING)
        self.round_trip = (time.monotonic() - began) / 2  # one for the channel, one for the command

    def run(self) -> None:
        with suppress(UploaderError):  # the next script starts its own shell
            self.begin()

    def drop(self) -> None:
        """Close the shell."""
        self.join()
        if self.stream is not None:
            with suppress(UploaderError):
                self.stream.close()


DROP = b'rm -f -- "./$t" "./$t.at"'  # removes the temporary file and its block list


class RemoteDirs:
    """Starts scripts in the directories of files; remembers which directories exist."""

    def __init__(self, shells: Shells, location: bytes) -> None:
        self._shells = shells
        self._location = location
        self._known: set[bytes] = set()

    def start(self, member: Member, script: bytes, *, retry: bool = True) -> Stream:
        """Start a script in the file's directory, which is created if it may not exist.

        In the script, `$t` is the file's temporary name. Exit status 92 is `NO_DIRECTORY`; 96 means
        that the file's directory cannot be entered.
        """
        parent = parent_of(member)
        directories = [] if parent in self._known else ancestors(member.remote)
        into = b"cd -- %b || exit 96; " % quote(b"./" + parent)
        name = b"t=%b; " % part_name(member)
        prefix = enter(self._location) + make(directories)
        return self._shells.start(prefix + into + name + script, retry=retry)

    def drop(self, member: Member) -> None:
        """Remove the temporary file."""
        self.start(member, DROP).finish()

    def note(self, member: Member, *, arrived: bool) -> None:
        """Remember whether the file's directory exists."""
        if arrived:
            self._known.add(parent_of(member))
        else:
            self._known.discard(parent_of(member))


def parent_of(member: Member) -> bytes:
    """Return the directory of a file, below the location."""
    return member.remote.rpartition(b"/")[0]


class SessionState(NamedTuple):
    """What the senders of all channels of a session share: options, and what is known by now.

    With `named`, the host prints the members of batches from the first batch on.
    """

    location: bytes
    capabilities: HostCapabilities
    compression: Compression
    limit: StreamLimit
    spares: SpareShells
    named: bool = False
    find_zeros: bool = False
