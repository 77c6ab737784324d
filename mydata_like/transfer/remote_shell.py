"""Remote scripts, temporary names, and a shell that is started in advance for the next one."""

import hashlib
import math
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from threading import Lock, Thread
from typing import Final

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.ssh.capabilities import quote
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import CommandResult, SshSession, Stream
from mydata_like.transfer.archive_writer import ArchiveSource
from mydata_like.transfer.compression import Compression
from mydata_like.transfer.file_source import FileSource
from mydata_like.transfer.worker_messages import Member, Moving


def part_name(member: Member) -> bytes:
    """Return the temporary name of a file: the same for every attempt to send the same bytes.

    It begins with the mark of the uploader that sends it.
    """
    text = b"%b\0%d\0%d" % (member.remote, member.size, member.modified_ns)
    digest = hashlib.sha256(text).hexdigest().encode()
    return b".mydata-%b.part" % (member.mark + digest)[:32]


def owner_mark(owner: str) -> bytes:
    """Return the mark of an uploader, of which the uuid is given: eight hexadecimal digits."""
    return hashlib.sha256(owner.encode()).hexdigest()[:8].encode() if owner else b""


def hold_back(
    source: FileSource | ArchiveSource, chunks: Iterable[memoryview]
) -> Iterator[memoryview]:
    """Yield chunks of a source, the last only once the file is known to have stayed the same."""
    for chunk in chunks:
        if not source.remaining:
            source.finish()
        yield chunk


MARK: Final = b"mydata:"  # what a script's answers begin with
NO_GROUND: Final = 92  # the location itself takes no new directories
_NOISE: Final = 64 * 1024  # of a login script, at most, before the script's own answer
_ECHO: Final = b'while IFS= read -r line; do echo "mydata:"; done'
_ECHOES: Final = 2
_TRIES: Final = 10
_PAUSE: Final = 0.05  # seconds

# What every login shell understands; all that varies comes through its input.
WAITING: Final = b"""exec sh -c 'IFS= read -r s && eval "$s"'"""
_PREAMBLE: Final = b"LC_ALL=C; export LC_ALL; umask 007; "


def ancestors(path: bytes) -> list[bytes]:
    """Return the directories above a relative path, the outermost first."""
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[: depth + 1]) for depth in range(len(parts))]


def enter(location: bytes) -> bytes:
    """Return the script that goes to the location, made where it is missing."""
    where = quote(location)
    return b"cd -- %b 2>/dev/null || { mkdir -p -m 2770 -- %b && cd -- %b || exit %d; }; " % (
        where,
        where,
        where,
        NO_GROUND,
    )


def make(directories: Iterable[bytes]) -> bytes:
    """Return the script that makes directories below the current one, where missing.

    It ends if the current one takes none; a later refusal is noticed then.
    """
    words = b" ".join(quote(b"./" + directory) for directory in directories)
    if not words:
        return b""
    return b"mkdir -p -m 2770 -- %b || [ -w . ] || exit %d; " % (words, NO_GROUND)


def finish_refused(stream: Stream, error: UploaderError) -> CommandResult:
    """Return how a script failed that ended before it had taken all it was sent.

    Raises `error`, the failure to send more, where it was the line and not the script.
    """
    try:
        finished = stream.finish()
    except TransientError:
        raise error from None
    if not finished.status:
        raise error
    return finished


def read_answer(stream: Stream, moving: Moving | None = None) -> bytes:
    """Return what the script answered; what a login script says before is skipped.

    Empty lines before it are signs of life, however many they are.
    """
    received = b""
    while len(received) < _NOISE:
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
    """Starts scripts over one session; one shell is kept waiting, so that none waits for it.

    A shell takes two round trips to start, so it is started while the previous script runs.

    `compression` is what is known of compressing their input, and `spares` are the shells that
    wait for channels of the same session.
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
        self._coming: _Shell | None = None
        self._taking = Lock()
        self._spares = True  # whether the server grants more than is needed
        self.round_trip = math.inf  # seconds, the shortest that was seen
        self._listened = False  # whether a shell's answers were timed

    def open(self) -> None:
        """Have a shell wait for the first script; raises `TransientError` where not granted."""
        self._coming = _Shell(self._session)
        self._coming.begin()
        self.round_trip = self._coming.round_trip

    def start(self, script: bytes, *, patient: bool = True) -> Stream:
        """Start a script whose input then is the stream's; by any thread.

        Raises `TransientError` with the code `channel.refused` where it is not granted, which
        may need to be waited for.
        """
        if b"\n" in script:  # a name with a newline; such a script is no line
            return self._open(b"exec sh -c " + quote(_PREAMBLE + script), patient=patient)
        stream = self._take() or self._open(WAITING, patient=patient)
        stream.write(_PREAMBLE + script + b"\n")
        return stream

    def prepare(self) -> None:
        """Have a shell start for the next script; nothing is lost where none is granted."""
        if self._coming is None and self._spares:
            self._coming = self._spare_shells.start(self._session)

    def run(self, script: bytes) -> bytes:
        """Run a short script to its end and return its output."""
        return self.start(script).finish().output

    def find_round_trip(self, far: float) -> float:
        """Return the seconds of a round trip; what seems `far` is looked at once more.

        A busy host takes its time to start a shell, but not to answer in one that runs.
        """
        if far <= self.round_trip < math.inf and not self._listened:
            self._listened = True
            stream = self.start(_ECHO)
            for _ in range(_ECHOES):
                asked = time.perf_counter()
                stream.write(b"\n")
                read_answer(stream)
                self.round_trip = min(self.round_trip, time.perf_counter() - asked)
            stream.finish()
        return self.round_trip

    def close(self) -> None:
        if stream := self._take():
            stream.close()

    def _take(self) -> Stream | None:
        """Return the shell that was prepared; None without one."""
        with self._taking:
            coming, self._coming = self._coming, None
        if coming is None or not self._spare_shells.take(coming):
            return None
        if coming.is_alive():
            coming.join()
        self._spares = coming.stream is not None
        self.round_trip = min(self.round_trip, coming.round_trip)
        return coming.stream

    def _open(self, command: bytes, *, patient: bool) -> Stream:
        """Start a command; a server that grants only one needs a moment to end the last.

        Where shells that wait for later scripts take the room of this one, they are closed.
        """
        for _ in range(_TRIES if patient else 0):
            try:
                return self._session.start(command)
            except TransientError as error:
                if error.problem_code != NO_CHANNEL:
                    raise
            self.close()
            self._spare_shells.give_up()
            time.sleep(_PAUSE)
        return self._session.start(command)


class SpareShells:
    """The shells of a session that wait while their channels run scripts.

    Once a channel was refused a script because of them, there are none.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._granted = True
        self._waiting: set[_Shell] = set()

    def start(self, session: SshSession) -> "_Shell | None":
        """Have a shell start in the background; None where the host has no room for it."""
        with self._lock:
            if not self._granted:
                return None
            shell = _Shell(session, spare=True)
            self._waiting.add(shell)
        shell.start()
        return shell

    def take(self, shell: "_Shell") -> bool:
        """Return whether a shell may be used: a spare one may have been closed."""
        with self._lock:
            known = shell in self._waiting
            self._waiting.discard(shell)
        return known or not shell.spare

    def give_up(self) -> None:
        """Close those that wait, and start no more."""
        with self._lock:
            self._granted = False
            waiting, self._waiting = self._waiting, set()
        for shell in waiting:
            shell.drop()


class _Shell(Thread):
    """A shell that starts, and then waits for its script; `spare` while another script runs."""

    def __init__(self, session: SshSession, *, spare: bool = False) -> None:
        super().__init__(name="shell", daemon=True)
        self._session = session
        self.spare = spare
        self.stream: Stream | None = None
        self.round_trip = math.inf

    def begin(self) -> None:
        """Start it here and now; raises `TransientError` where it is not granted."""
        began = time.monotonic()
        self.stream = self._session.start(WAITING)
        self.round_trip = (time.monotonic() - began) / 2  # one for the channel, one for the command

    def run(self) -> None:
        with suppress(UploaderError):  # then the next script does without
            self.begin()

    def drop(self) -> None:
        """Close what was started."""
        self.join()
        if self.stream is not None:
            with suppress(UploaderError):
                self.stream.close()


DROP = b'rm -f -- "./$t" "./$t.at"'  # what there is of a file under its temporary name


class RemoteDirs:
    """Starts scripts in the directories of files; knows which ones it has seen made."""

    def __init__(self, shells: Shells, location: bytes) -> None:
        self._shells = shells
        self._location = location
        self._known: set[bytes] = set()

    def start(self, member: Member, script: bytes, *, patient: bool = True) -> Stream:
        """Start a script in the file's directory, which is made where it is not known.

        The script's `$t` is the file's temporary name. Status 92 is `shell.NO_GROUND`, and 96
        says that the file has no place.
        """
        parent = parent_of(member)
        directories = [] if parent in self._known else ancestors(member.remote)
        into = b"cd -- %b || exit 96; " % quote(b"./" + parent)
        name = b"t=%b; " % part_name(member)
        ground = enter(self._location) + make(directories)
        return self._shells.start(ground + into + name + script, patient=patient)

    def drop(self, member: Member) -> None:
        """Remove what there is of a file under its temporary name."""
        self.start(member, DROP).finish()

    def note(self, member: Member, *, arrived: bool) -> None:
        """Remember whether the file's directory is there."""
        if arrived:
            self._known.add(parent_of(member))
        else:
            self._known.discard(parent_of(member))


def parent_of(member: Member) -> bytes:
    """Return the directory of a file, below the location."""
    return member.remote.rpartition(b"/")[0]
