"""What earlier attempts have left of large files, on hosts with a shell."""

from collections.abc import Iterator
from typing import Final

from mydata_like.core.parsing import parse_count
from mydata_like.transfer import striped
from mydata_like.transfer.ground import Ground, parent_of
from mydata_like.transfer.protocol import Member
from mydata_like.transfer.sealed import part_name
from mydata_like.transfer.shell import MARK

RESUMABLE: Final = 8 * 1024 * 1024  # less than this is faster sent again than compared
_LISTING: Final = 1024 * 1024  # bytes of a host's answer that are looked at: 10,000 parts
_STRIPED: Final = -1  # the size of what several streams left behind, which may have gaps
_TELL: Final = (
    b'if [ -f "./$t" ]; then set -- $(ls -ldn "./$t"); a=; [ ! -f "./$t.at" ] || a=:striped; '
    b'echo "mydata:$t:$5$a"; fi'
)
_LIST: Final = b"for t in .mydata-*.part; do " + _TELL + b"; done"


class Parts:
    """Knows what lies in the staging area under temporary names."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._sizes: dict[bytes, dict[bytes, int]] = {}  # by directory, by temporary name

    def find(self, member: Member) -> int:
        """Return how much an earlier attempt left of a large file, 0 for nothing of use.

        A directory is looked at once: what breaks a line later ends this session too.
        """
        parent = parent_of(member)
        if parent not in self._sizes:
            listed = self._ground.start(member, _LIST).finish()
            self._sizes[parent] = dict(_read(listed.output))
        there = self._sizes[parent].pop(part_name(member), 0)
        if there == _STRIPED:  # others than ours may be at work on theirs
            mended = self._ground.start(member, striped.MEND + _TELL).finish()
            there = dict(_read(mended.output)).get(part_name(member), 0)
        return there if RESUMABLE <= there <= member.size else 0


def _read(output: bytes) -> Iterator[tuple[bytes, int]]:
    for line in output[:_LISTING].splitlines():
        mark, _, rest = line.partition(MARK)
        name, _, size = rest.partition(b":")
        if not mark and size.endswith(b":striped"):
            yield name, _STRIPED
        elif not mark and (count := parse_count(size)) is not None:
            yield name, count
