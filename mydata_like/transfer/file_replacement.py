"""Moves new bytes of changed files into place on hosts with a shell."""

from collections.abc import Iterator, Sequence
from typing import Final

from mydata_like.core.errors import Problem, TransientError
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import check_space, quote
from mydata_like.transfer.batch_sender import describe
from mydata_like.transfer.remote_shell import MARK, Shells, enter
from mydata_like.transfer.tar import is_plain
from mydata_like.transfer.worker_messages import LOST, MISSING, MemberResult, RenameTask, TaskResult

_SCRIPT: Final = 64 * 1024  # bytes of one script, about: a host takes no longer words
_ANSWERS: Final = 1024 * 1024  # bytes of what it prints that are looked at
# $2 replaces $1 if it has $3 bytes, and the result is reported for $4. After `set` the size that
# is there is $9; without globs in between.
_MOVE: Final = (
    b'set -f; m() { if [ ! -f "$1" ] || [ -L "$1" ]; then echo "mydata:$4:gone"; return; fi; '
    b'set -- "$1" "$2" "$3" "$4" $(ls -ldn "$1"); '
    b'if [ "$9" != "$3" ]; then echo "mydata:$4:gone"; '
    b'elif [ -d "$2" ]; then echo "mydata:$4:Is a directory"; '
    b'elif r=$(mv -f -- "$1" "$2" 2>&1); then echo "mydata:$4:moved"; '
    b'else echo "mydata:$4:$r"; fi; }; '
)


def missing(index: int, move: RenameTask) -> MemberResult:
    """Return the fate of what is not there any more, or not whole."""
    shown = format_path(move.target)
    problem = Problem(MISSING, f"The new bytes of {shown} do not lie in the staging area.")
    return MemberResult(index, "", problem)


def replace_by_shell(shells: Shells, location: bytes, moves: Sequence[RenameTask]) -> TaskResult:
    """Rename what was laid aside; raises `TransientError` when the line broke."""
    said: dict[int, bytes] = {}
    for script in _write_scripts(location, moves):
        finished = shells.start(script).finish()
        if finished.status is None:
            raise TransientError(
                "The staging host did not report which files it renamed.", code=LOST
            )
        check_space(finished.output)
        said.update(_read(finished.output))
    fates = (_judge(index, move, said.get(index, b"")) for index, move in enumerate(moves))
    return TaskResult(tuple(fates))


def _write_scripts(location: bytes, moves: Sequence[RenameTask]) -> Iterator[bytes]:
    head = enter(location) + _MOVE
    script = head
    for index, move in enumerate(moves):
        source, target = quote(b"./" + move.source), quote(b"./" + move.target)
        if not is_plain(move.source) or not is_plain(move.target or move.source):
            continue
        if move.target:
            script += b"m %b %b %d %d; " % (source, target, move.size, index)
        else:
            script += b'rm -f -- %b; echo "mydata:%d:moved"; ' % (source, index)
        if len(script) > _SCRIPT:
            yield script
            script = head
    if script != head:
        yield script


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
