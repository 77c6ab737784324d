"""The shell program that gives files on a host their final names, and makes folders and links.

It is sent as the input of `sh -s`, in parts. A part that did not arrive completely is not valid
shell, so nothing of it runs. It starts in the destination; answers end with NUL.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final, NamedTuple

from mydata_like.core.destination_files import Placement, TreeFolder, TreeLink
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.capabilities import quote
from mydata_like.transfer.ssh.remote_shell import MARK

_AT_ONCE: Final = 500  # names in one part
_SECOND: Final = 10**9  # nanoseconds
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PART: Final = 64 * 1024  # approximate bytes of names in one part

# `e` enters a folder of the current one and makes it if it is missing, `w` only enters it. Neither
# follows a link: after `cd`, the name must still not be one. `v` is the reason of a failure.
ENTER: Final = (
    b'w() { v=link; [ ! -h "./$1" ] || return 1; v="No such file or directory"; '
    b'cd -P -- "./$1" 2>/dev/null || return 1; v=link; [ ! -h "$OLDPWD/$1" ]; }; '
    b'e() { w "$1" && return; [ "$v" = link ] && return 1; '
    b'if [ -d "./$1" ]; then v="Permission denied"; return 1; fi; '
    b'if [ -e "./$1" ]; then v="Not a directory"; return 1; fi; '
    b'v=$(mkdir -- "./$1" 2>&1); set -- "$1" "$v"; w "$1" || { v=${2:-$v}; return 1; }; }; '
)
# `p` places the file $1 of the current folder as $2 in the folder $d. Where there are no hard
# links (FAT, some mounts), the name is checked and the file moved. `a` is the answer.
#
# `ln` makes no link inside of a folder that has the name of the file, if it is told the folder
# that is to contain the name. Only if the names differ, it could do so, if somebody makes a folder
# of that name after it was found to be free.
PLACE: Final = (
    b'a() { printf \'mydata:%d:%s:%s\\0\' "$i" "$1" "$2"; }; '
    b'same() { [ "$1" -ef "$d/$2" ] && [ ! -h "$d/$2" ]; }; '
    b'taken() { [ -e "$1" ] || [ -h "$1" ]; }; '
    b'p() { if [ -h "$1" ] || [ ! -f "$1" ]; then a missing; return; fi; '
    b'if same "$1" "$2"; then rm -f "$1"; a placed; return; fi; '
    b'if taken "$d/$2"; then a occupied; return; fi; '
    b'[ "$1" = "$2" ] && t=$d/ || t=$d/$2; '
    b'v="Operation not permitted"; [ -z "$links" ] || v=$(ln "$1" "$t" 2>&1); '
    b'if same "$1" "$2"; then rm -f "$1"; a placed; return; fi; '
    b'if taken "$d/$2"; then a occupied; return; fi; '
    b'case $v in *"not permitted"*|*"not supported"*|*"not implemented"*|*"nvalid argument"*) '
    b'v=$(mv -n -- "$1" "$t" 2>&1); '
    b'if ! taken "$1" && [ -f "$d/$2" ]; then a moved; return; fi; '
    b'if taken "$d/$2"; then a occupied; return; fi;; esac; a failed "$v"; }; '
    # `g` does the same for many files whose names stay, with few processes.
    b'g() { i=$1; m=$2; shift 2; k=1; for n do [ ! -h "$n" ] || k=; done; '
    b'if [ -n "$k" ]; then chmod "$m" "$@" 2>/dev/null; '
    b'else for n do [ -h "$n" ] || chmod "$m" "$n" 2>/dev/null; done; fi; '
    b'[ -n "$links" ] || k=; [ -z "$k" ] || ln "$@" "$d/" 2>/dev/null; '
    b'if [ -n "$k" ]; then for n do same "$n" "$n" || { k=; break; }; done; fi; '
    b'if [ -n "$k" ]; then rm -f "$@"; a all "$#"; return; fi; '
    b'for n do p "$n" "$n"; i=$((i+1)); done; }; '
    # The others: mode, name and final name of each.
    b'h() { i=$1; shift; while [ $# -gt 0 ]; do [ -h "$2" ] || chmod "$1" "$2" 2>/dev/null; '
    b'p "$2" "$3"; '
    b"i=$((i+1)); shift 3; done; }; "
)
# The target of a link is compared with what readlink prints, whose last byte is a line end.
_TREE: Final = (
    b'y() { [ "$(readlink "$1"; echo x)" = "$2$(echo; echo x)" ]; }; '
    b'z() { if [ -h "$1" ]; then y "$1" "$2" && a there || a occupied; return; fi; '
    b'if [ -e "$1" ]; then a occupied; return; fi; '
    b'v=$(ln -s -- "$2" "$1" 2>&1); if [ -h "$1" ] && y "$1" "$2"; then a there; '
    b'else a failed "$v"; fi; }; '
)
PROLOGUE: Final = b"{ root=$PWD; IFS=; " + ENTER + PLACE + _TREE + b"}\n"


class Answer(NamedTuple):
    """What became of a placement, folder or link: `word`, and the reason that a program printed."""

    word: str
    reason: bytes = b""


class _Numbered(NamedTuple):
    position: int
    placement: Placement
    folder: bytes
    name: bytes
    final_folder: bytes
    final_name: bytes

    @property
    def kind(self) -> tuple[bytes, bytes, bool, int]:
        """What the members of one part have in common."""
        stays = self.name == self.final_name
        return self.folder, self.final_folder, stays, self.placement.mode if stays else 0


def write_placing(placements: Sequence[Placement], *, links: bool) -> tuple[bytes, list[int]]:
    """Return the program that places files, and the order in which it does that.

    Its answers count in that order.
    """
    numbered = []
    for position, placement in enumerate(placements):
        folder, _, name = placement.temporary.rpartition(b"/")
        final_folder, _, final_name = placement.final.rpartition(b"/")
        numbered.append(_Numbered(position, placement, folder, name, final_folder, final_name))
    numbered.sort(key=lambda one: (one.kind, one.position))
    parts = [b"links=%b\n" % (b"1" if links else b"")]
    start = 0
    for kind, group in groupby(numbered, key=lambda one: one.kind):
        for members in _split(group):
            parts.append(_write_part(kind, members, start))
            start += len(members)
    return PROLOGUE + b"".join(parts), [one.position for one in numbered]


def _split(members: Iterable[_Numbered]) -> Iterator[list[_Numbered]]:
    part: list[_Numbered] = []
    size = 0
    for member in members:
        if len(part) == _AT_ONCE or size > _PART:
            yield part
            part, size = [], 0
        part.append(member)
        size += len(member.name) + len(member.final_name)
    if part:
        yield part


def _write_part(
    kind: tuple[bytes, bytes, bool, int], members: list[_Numbered], start: int
) -> bytes:
    folder, final_folder, stays, mode = kind
    if stays:
        call = b"g %d %o" % (start, mode)
        words = [quote(b"./" + one.name) for one in members]
    else:
        call = b"h %d" % start
        words = [
            b"%o %b %b"
            % (one.placement.mode, quote(b"./" + one.name), quote(b"./" + one.final_name))
            for one in members
        ]
    return (
        b'{ cd -- "$root"\ni=%d\nif %b; then d=$PWD; cd -- "$root"\n'
        b'if %b; then %b %b\nelse a gone %d; fi\nelse a folder "%d:$v"; fi; }\n'
    ) % (
        start,
        enter_words(b"e", final_folder),
        enter_words(b"w", folder),
        call,
        b" ".join(words),
        len(members),
        len(members),
    )


def enter_words(function: bytes, folder: bytes) -> bytes:
    """Return the words that enter a folder with `e` or `w`, from the destination on."""
    names = [name for name in folder.split(b"/") if name]
    return b" && ".join(b"%b %b" % (function, quote(name)) for name in names) or b":"


def read_placing(output: bytes, order: Sequence[int]) -> list[Answer] | None:
    """Return the answers to placements in their order; None if some are missing."""
    answers: list[Answer | None] = [None] * len(order)
    for start, word, text in _read_answers(output):
        count, _, reason = text.partition(b":")
        if word in ("all", "gone", "folder"):
            name = {"all": "placed", "gone": "missing"}.get(word, word)
            for place in range(start, start + (parse_count(count) or 0)):
                answers[order[place]] = Answer(name, reason)
        else:
            answers[order[start]] = Answer(word, text)
    complete = [answer for answer in answers if answer is not None]
    return complete if len(complete) == len(answers) else None


def _read_answers(output: bytes) -> Iterator[tuple[int, str, bytes]]:
    for record in output.split(b"\0"):
        _, found, rest = record.partition(MARK)
        number, _, rest = rest.partition(b":")
        word, _, text = rest.partition(b":")
        if found and (index := parse_count(number)) is not None:
            yield index, word.decode("ascii", "replace"), text


def write_tree(folders: Sequence[TreeFolder], links: Sequence[TreeLink]) -> bytes:
    """Return the program that makes folders, then links, and then sets modes and times.

    The inner folders are set first, since their parents may then not be entered any more.
    """
    parts = [PROLOGUE]
    for index, folder in enumerate(folders):
        enter = enter_words(b"e", folder.path)
        parts.append(
            b'{ cd -- "$root"\ni=%d\nif %b; then a there; else a folder "$v"; fi; }\n'
            % (index, enter)
        )
    for index, link in enumerate(links, start=len(folders)):
        above, _, name = link.path.rpartition(b"/")
        parts.append(
            b'{ cd -- "$root"\ni=%d\nif %b; then z %b %b; else a folder "$v"; fi; }\n'
            % (index, enter_words(b"e", above), quote(b"./" + name), quote(link.target))
        )
    for folder in reversed(folders):
        parts.append(
            b'{ cd -- "$root"\nif %b; then chmod %o . 2>/dev/null; %b; fi; }\n'
            % (enter_words(b"w", folder.path), folder.mode, _touch(folder.modified_ns))
        )
    return b"".join(parts)


def _touch(modified_ns: int) -> bytes:
    """Return the command that sets the time of the current folder: GNU's, or to the second."""
    sign = b"-" if modified_ns < 0 else b""
    seconds, rest = divmod(abs(modified_ns), _SECOND)
    stamp = _EPOCH + timedelta(seconds=modified_ns // _SECOND)
    return b"touch -c -d @%b%d.%09d . 2>/dev/null || TZ=UTC0 touch -c -t %b . 2>/dev/null" % (
        sign,
        seconds,
        rest,
        stamp.strftime("%Y%m%d%H%M.%S").encode(),
    )


def read_tree(output: bytes, count: int) -> list[Answer] | None:
    """Return the answers to `write_tree`; None if some are missing."""
    answers = {index: Answer(word, text) for index, word, text in _read_answers(output)}
    return [answers[at] for at in range(count)] if len(answers) == count else None
