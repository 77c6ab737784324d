"""Replaces the bytes of changed files and keeps the earlier ones: by a shell, or where possible."""

from collections.abc import Iterator, Sequence
from typing import Final

from mydata_like.core.errors import FileChangedError, TransientError
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import check_space, quote
from mydata_like.transfer.archive_writer import open_content
from mydata_like.transfer.member_results import (
    describe,
    held,
    missing,
    refuse,
    renumber,
    send_others,
)
from mydata_like.transfer.ssh.remote_shell import MARK, Shells, enter
from mydata_like.transfer.tar import is_plain
from mydata_like.transfer.worker_messages import (
    LOST,
    Member,
    MemberResult,
    Moving,
    RenameTask,
    Sender,
    SendTask,
    TaskResult,
)

_CANNOT_RENAME: Final = "The staging host cannot rename files."
_SCRIPT: Final = 64 * 1024  # approximate bytes of one script: hosts limit the length of a line
_CHUNK: Final = 256 * 1024  # bytes that are read at once
_ANSWERS: Final = 1024 * 1024  # bytes of output that are parsed
# A replacement is six words: $1 replaces $2 if it has $3 bytes; it is removed if $2 is empty. What
# is at $2 gets the second name $5 first, unless that is empty, or exists with $6 bytes: by a hard
# link, so that $2 never vanishes, or else by a rename, which is undone if $1 cannot take its place.
# A missing $1 has been moved before if the rest is as it was left then. $4 is its index in the
# report. Where Perl works, it takes a fiftieth of the processor time, because the shell starts
# programs for each file.
_PERL: Final = (
    b"sub size { my @f = lstat $_[0]; @f && -f _ ? $f[7] : -1 } "
    b"sub move { my ($s, $t, $n, $k, $m) = @_; my $back = 0; "
    b'if ($t eq "") { unlink $s; return "moved" } '
    b'if (!lstat $s) { return size($t) == $n && ($k eq "" || size($k) == $m) ? "moved" : "gone" } '
    b'return "gone" if size($s) != $n; '
    b'return "Is a directory" if -d $t && !-l $t; '
    b'if ($k ne "" && size($k) != $m) { return "kept:File exists" if lstat $k; '
    b"if (lstat $t) { link($t, $k) || ($back = rename($t, $k)) || return qq(kept:$!) } } "
    b'return "moved" if rename $s, $t; my $why = "$!"; rename $k, $t if $back; $why } '
    b"while (my ($s, $t, $n, $i, $k, $m) = splice @ARGV, 0, 6) { "
    b'print "mydata:$i:", move($s, $t, $n, $k, $m), "\\n" }'
)
# Globbing is off. After `set`, $5 is the size.
_MOVE: Final = (
    b'z() { if [ -f "$1" ] && [ ! -L "$1" ]; then set -- $(ls -ldn "$1"); echo "$5"; fi; }; '
    b'm() { if [ -z "$2" ]; then rm -f -- "$1"; echo moved; return; fi; b=; '
    b'if [ ! -e "$1" ] && [ ! -L "$1" ] && [ "$(z "$2")" = "$3" ] '
    b'&& { [ -z "$4" ] || [ "$(z "$4")" = "$5" ]; }; then echo moved; return; fi; '
    b'if [ "$(z "$1")" != "$3" ]; then echo gone; return; fi; '
    b'if [ -d "$2" ] && [ ! -L "$2" ]; then echo Is a directory; return; fi; '
    b'if [ -n "$4" ] && [ "$(z "$4")" != "$5" ]; then '
    b'if [ -e "$4" ] || [ -L "$4" ]; then echo kept:File exists; return; fi; '
    b'if [ -e "$2" ] || [ -L "$2" ]; then if ln -- "$2" "$4" 2>/dev/null; then :; '
    b'elif e=$(mv -f -- "$2" "$4" 2>&1); then b=1; else echo "kept:$e"; return; fi; fi; fi; '
    b'if e=$(mv -f -- "$1" "$2" 2>&1); then echo moved; return; fi; '
    b'if [ -n "$b" ]; then mv -f -- "$4" "$2"; fi; echo "$e"; }; '
    b'while [ $# -gt 0 ]; do echo "mydata:$4:$(m "$1" "$2" "$3" "$5" "$6")"; shift 6; done'
)
_RUN: Final = (
    b"; unset PERL5OPT PERL5LIB PERLLIB PERL_UNICODE; "
    b'if perl -e 0 >/dev/null 2>&1; then perl -e %b -- "$@"; else %b; fi' % (quote(_PERL), _MOVE)
)


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
        paths = move.source, move.target, move.kept
        if not all(is_plain(path) for path in paths if path):
            continue
        source, target, kept = (quote(b"./" + path) if path else b"''" for path in paths)
        words += b" %b %b %d %d %b %d" % (source, target, move.size, index, kept, move.kept_size)
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
    if word.startswith(b"kept:"):
        return held(index, describe(move.kept, word[5:]).message)
    return refuse(index, move.target or move.source, word)


class InPlaceSender:
    """Sends files to hosts that cannot rename, where each is written to its final path.

    New files are not registered yet. Registered bytes cannot be kept here, and are only replaced if
    the user has released them. Such a replacement is first only read, so that the ledger notes it.
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
        return send_others(results, task, lambda rest: self._sender.send(rest, moving))

    def replace(self, moves: Sequence[RenameTask], moving: Moving) -> TaskResult:
        """Send replacements that were only read before; no others can be replaced."""
        results = {
            index: held(index, _CANNOT_RENAME) if move.target else MemberResult(index, "")
            for index, move in enumerate(moves)
        }
        members = {
            index: move.member for index, move in enumerate(moves) if move.member and not move.kept
        }
        if not members:
            return TaskResult(tuple(results.values()))
        task = SendTask(tuple(members.values()), batched=False)
        sent = self._sender.send(task, moving)
        results |= renumber(sent, list(members))
        return TaskResult(tuple(results.values()), sent.broken)

    def close(self) -> None:
        self._sender.close()

    def _read(self, index: int, member: Member, moving: Moving) -> MemberResult:
        """Read a file whose path still has the verified bytes of the server."""
        if not member.release:
            return held(index, _CANNOT_RENAME)
        try:
            with open_content(member) as source:
                for _ in source.chunks(self._buffer):
                    moving(0)
                return MemberResult(index, source.finish(), inside=source.inside)
        except FileChangedError as error:
            return MemberResult(index, "", error.problem)
