"""Moves new bytes of changed files into place: by a shell, or where nothing can be renamed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from mydata_like.core.errors import FileChangedError, Problem, TransientError
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import check_space, quote
from mydata_like.transfer.archive_writer import open_content
from mydata_like.transfer.batch_sender import describe
from mydata_like.transfer.remote_shell import MARK, Shells, enter
from mydata_like.transfer.tar import is_plain
from mydata_like.transfer.worker_messages import (
    LOST,
    MISSING,
    Member,
    MemberResult,
    Moving,
    RenameTask,
    Sender,
    SendTask,
    TaskResult,
)

_SCRIPT: Final = 64 * 1024  # approximate bytes of one script: hosts limit the length of a line
_CHUNK: Final = 256 * 1024  # bytes that are read at once
_ANSWERS: Final = 1024 * 1024  # bytes of output that are parsed
# A replacement is four words: $1 replaces $2 if it has $3 bytes; it is removed if $2 is empty. $4
# is its index in the report. Where Perl works, it takes a fiftieth of the processor time, because
# the shell starts two programs for each file.
_PERL: Final = (
    b"while (my ($s, $t, $n, $i) = splice @ARGV, 0, 4) { my @f = lstat $s; "
    b'print "mydata:$i:", $t eq "" ? (unlink($s), "moved")[1] '
    b': !@f || !-f _ || $f[7] != $n ? "gone" '
    b': -d $t ? "Is a directory" : rename($s, $t) ? "moved" : $!, "\\n" }'
)
# After `set`, $9 is the current size. Globbing is off in between.
_MOVE: Final = (
    b'm() { if [ -z "$2" ]; then rm -f -- "$1"; echo "mydata:$4:moved"; return; fi; '
    b'if [ ! -f "$1" ] || [ -L "$1" ]; then echo "mydata:$4:gone"; return; fi; '
    b'set -- "$1" "$2" "$3" "$4" $(ls -ldn "$1"); '
    b'if [ "$9" != "$3" ]; then echo "mydata:$4:gone"; '
    b'elif [ -d "$2" ]; then echo "mydata:$4:Is a directory"; '
    b'elif r=$(mv -f -- "$1" "$2" 2>&1); then echo "mydata:$4:moved"; '
    b'else echo "mydata:$4:$r"; fi; }; '
    b'while [ $# -gt 0 ]; do m "$1" "$2" "$3" "$4"; shift 4; done'
)
_RUN: Final = (
    b"; unset PERL5OPT PERL5LIB PERLLIB PERL_UNICODE; "
    b'if perl -e 0 >/dev/null 2>&1; then perl -e %b -- "$@"; else %b; fi' % (quote(_PERL), _MOVE)
)


def missing(index: int, move: RenameTask) -> MemberResult:
    """Return the result for a replacement that is missing or incomplete."""
    shown = format_path(move.target)
    problem = Problem(MISSING, f"The new bytes of {shown} are not in the staging area.")
    return MemberResult(index, "", problem)


def replace_by_shell(shells: Shells, location: bytes, moves: Sequence[RenameTask]) -> TaskResult:
    """Rename replacements; raises `TransientError` if the connection broke."""
    words: dict[int, bytes] = {}
    for script in _write_scripts(location, moves):
        finished = shells.start(script).finish()
        if finished.status is None:
            raise TransientError(
                "The staging host did not report which files it renamed.", code=LOST
            )
        check_space(finished.output)
        words.update(_read(finished.output))
    results = (_judge(index, move, words.get(index, b"")) for index, move in enumerate(moves))
    return TaskResult(tuple(results))


def _write_scripts(location: bytes, moves: Sequence[RenameTask]) -> Iterator[bytes]:
    head = enter(location) + b"set -f; set --"
    words = b""
    for index, move in enumerate(moves):
        if not is_plain(move.source) or not is_plain(move.target or move.source):
            continue
        target = quote(b"./" + move.target) if move.target else b"''"
        words += b" %b %b %d %d" % (quote(b"./" + move.source), target, move.size, index)
        if len(words) > _SCRIPT:
            yield head + words + _RUN
            words = b""
    if words:
        yield head + words + _RUN


def _read(output: bytes) -> Iterator[tuple[int, bytes]]:
    for line in output[:_ANSWERS].splitlines():
        _, _, rest = line.partition(MARK)
        number, _, word = rest.partition(b":")
        if (index := parse_count(number)) is not None:
            yield index, word


def _judge(index: int, move: RenameTask, word: bytes) -> MemberResult:
    if word == b"moved":
        return MemberResult(index, "")
    if word == b"gone":
        return missing(index, move)
    problem = describe(move.target or move.source, word)
    return MemberResult(index, "", problem, again=problem.code != "staging.denied")


class InPlaceSender:
    """Sends files to hosts that cannot rename, where each is written to its final path.

    New files are not registered yet. A replacement of registered bytes is first only read, and is
    sent when the server no longer considers the old bytes verified.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._buffer = bytearray(_CHUNK)

    @property
    def round_trip(self) -> float:
        return self._sender.round_trip

    def send(self, task: SendTask, moving: Moving) -> TaskResult:
        """Send a payload; raises `TransientError` if the connection broke and none is proven."""
        results = {
            index: self._read(index, member, moving)
            for index, member in enumerate(task.members)
            if member.aside
        }
        rest = [index for index in range(len(task.members)) if index not in results]
        broken = False
        if rest:
            members = tuple(task.members[index] for index in rest)
            sent = self._sender.send(replace(task, members=members), moving)
            results |= _renumber(sent, rest)
            broken = sent.broken
        return TaskResult(tuple(results[index] for index in sorted(results)), broken)

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Send replacements that were only read before; others are reported as missing."""
        results = {
            index: missing(index, move) if move.target else MemberResult(index, "")
            for index, move in enumerate(moves)
        }
        members = {index: move.member for index, move in enumerate(moves) if move.member}
        if not members:
            return TaskResult(tuple(results.values()))
        task = SendTask(tuple(members.values()), batched=False)
        sent = self._sender.send(task, moving)
        results |= _renumber(sent, list(members))
        return TaskResult(tuple(results.values()), sent.broken)

    def close(self) -> None:
        self._sender.close()

    def _read(self, index: int, member: Member, moving: Moving) -> MemberResult:
        """Read a file whose path still has the verified bytes of the server."""
        try:
            with open_content(member) as source:
                for _ in source.chunks(self._buffer):
                    moving(0)
                return MemberResult(index, source.finish(), inside=source.inside)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)


def _renumber(sent: TaskResult, indexes: Sequence[int]) -> dict[int, MemberResult]:
    """Return results by the indexes that their members have in the whole task."""
    return {indexes[it.place]: it._replace(place=indexes[it.place]) for it in sent.results}
