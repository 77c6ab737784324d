"""Going on where an earlier attempt broke off: what lies there is compared with what is here."""

import hashlib
from collections.abc import Iterable
from typing import Final

from mydata_like.core.errors import UploaderError
from mydata_like.ssh.session import Stream
from mydata_like.transfer.protocol import Moving
from mydata_like.transfer.shell import read_answer

_PIECE: Final = 16 * 1024 * 1024

# Tells the checksum of what is there, and what is to be done with it is the next line. An
# answer that does not come, because the line broke, does not drop it.
#
# Hashing takes minutes where much is there. An empty line after each piece shows that it goes on,
# and ends it where nobody listens any more.
_RESUME: Final = (
    b'{ echo "mydata:$({ n=%d; while [ $n -gt 0 ] && dd bs=1048576 count=16 2>/dev/null; do '
    b'echo >&3 || exit; n=$((n - 1)); done; cat; } < "./$t" | %b)"; } 3>&1; IFS= read -r how; '
    b'case $how in append) ;; fresh) rm -f -- "./$t" ;; *) exit 94 ;; esac; '
)


def resume(there: int, checksum: bytes) -> bytes:
    """Return the script that goes on with the bytes that are there, if it is told to.

    `checksum` is the command that prints the MD5 of its input.
    """
    return _RESUME % (there // _PIECE, checksum)


def compare(
    stream: Stream, chunks: Iterable[memoryview], there: int, moving: Moving
) -> tuple[bool, memoryview]:
    """Hash as many bytes as are there, here and there at once.

    Return whether they are the same, and what is left of the last chunk. A script that cannot be
    asked any more is dropped: it would hash on for nobody.
    """
    try:
        ours, rest = _pass(chunks, there, moving)
        theirs = read_answer(stream, moving)
    except UploaderError:
        stream.close()
        raise
    return theirs[:32] == ours.encode(), rest


def _pass(chunks: Iterable[memoryview], length: int, moving: Moving) -> tuple[str, memoryview]:
    """Read so many bytes; return their checksum, and what is left of the last chunk."""
    prefix = hashlib.md5(usedforsecurity=False)
    for chunk in chunks:
        taken = chunk[:length]
        prefix.update(taken)
        length -= len(taken)
        moving(0)
        if not length:
            return prefix.hexdigest(), chunk[len(taken) :]
    return "", memoryview(b"")
