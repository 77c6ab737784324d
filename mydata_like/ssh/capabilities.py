"""The capabilities of a staging host: shell, scp or SFTP, found by trying each.

A shell is best, then scp, then SFTP. A rung counts as allowed only once bytes were really
written below the staging area's location on it; what was written is removed again.
"""

import hashlib
import io
import os
import re
from contextlib import suppress
from typing import Final, NamedTuple

from mydata_like.core.errors import RejectedError, StagingError, TransientError
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import parse_count
from mydata_like.ssh.session import CommandResult, SshSession, Stream

_NO_GROUND: Final = 92  # the location cannot be entered
_NO_FILES: Final = 93  # it takes no files
_SAMPLE: Final = bytes(range(256)) * 16
_SAMPLE_NAME: Final = ".mydata-probe"
_ANSWER: Final = 64 * 1024  # bytes of what a probe tells that are looked at
_SAYING: Final = 200  # characters of what a host said that are passed on
_MODE: Final = 0o2770
LINE_END: Final = rb"(?:%b)[ \t\v\f]*(?:[\r\n]|\Z)"  # a pattern for words that end a line
_FULL: Final = re.compile(LINE_END % b"No space left on device|Disk quota exceeded").search

# What every login shell understands; all that varies comes through its input.
_WAITING: Final = b"""exec sh -c 'IFS= read -r s && eval "$s"'"""
_MD5: Final = hashlib.md5(b"mydata", usedforsecurity=False).hexdigest().encode()
_CHECKSUMS: Final = (b"md5sum", b"openssl md5 -r", b"md5 -q")
_PACKED: Final = rb"\050\265\057\375\040\006\061\000\000mydata"  # by zstd; RFC 8878
_FLAVOURS: Final = {b"gnu tar": "gnu", b"busybox": "busybox", b"bsdtar": "bsd"}
_PLAIN: Final = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%"
)


class HostCapabilities(NamedTuple):
    """The best rung that works, and what there is on it.

    `rung` is `shell`, `scp` or `sftp`; `why` says how that was found. `tar` is `gnu`, `bsd`,
    `busybox` or empty where no tar extracts; `checksum` is the command that prints the MD5 of
    its standard input, or empty; `cpus` is None where the host does not tell; `zstd` says whether
    the host's unpacks.
    """

    rung: str
    why: str = ""
    tar: str = ""
    checksum: bytes = b""
    cpus: int | None = None
    zstd: bool = False


def quote(word: bytes) -> bytes:
    """Return any bytes but NUL as one word of a POSIX shell."""
    if b"\0" in word:
        raise ValueError("a remote word cannot hold NUL")
    return b"'" + word.replace(b"'", b"'\"'\"'") + b"'"


def says_full(text: bytes) -> bool:
    """Return whether a remote command reported that no space is left."""
    return _FULL(text) is not None


def check_space(text: bytes) -> None:
    """Raise `StagingError` if a remote command reported that no space is left."""
    if says_full(text):
        raise StagingError(
            "The staging area is full.",
            hint="Sending resumes automatically when the server has space again.",
            code="staging.full",
        )


def build_scp(location: bytes) -> bytes:
    """Return the command that takes files below a location by the scp protocol.

    A host that only allows scp may split the command itself, knowing no quotes. The slash at
    the end keeps scp from making a file in the place of a missing folder.
    """
    folder = location.rstrip(b"/") + b"/"
    return b"scp -r -p -t -- " + (folder if _PLAIN.issuperset(folder) else quote(folder))


def probe(session: SshSession, location: bytes) -> HostCapabilities:
    """Return the best rung that works below this location, made where it is missing.

    Raises `StagingError` where none does or the location takes no files.
    """
    if b"\n" in location or b"\0" in location or not location.startswith(b"/"):
        raise _no_files(location, b"it is no absolute path of one line")
    refusals: list[str] = []
    for name, attempt in (("a shell", _probe_shell), ("scp", _probe_scp), ("SFTP", _probe_sftp)):
        try:
            found = attempt(session, location)
        except RejectedError as error:
            refusals.append(f"{name} was refused ({error.message.rstrip('.')})")
            continue
        return found._replace(why="; ".join([*refusals, found.why]))
    raise StagingError(
        f"The staging host accepts no files: {'; '.join(refusals)}.",
        hint="The server's administrator can allow a shell, scp or SFTP for this account.",
    )


def _probe_shell(session: SshSession, location: bytes) -> HostCapabilities:
    """Try a shell; what its login scripts print before our own words does not matter."""
    token = os.urandom(8).hex().encode()
    nonce = b"mydata-" + token + b' it\'s 5$ "now"! `x` \\'
    stream = session.start(_WAITING)
    stream.write(_script(location, token, nonce) + b"\n" + _sample_tar())
    finished = stream.finish()
    _, ours, said = finished.output.partition(b"\n" + nonce + b"\n")
    if not ours:
        raise RejectedError(_saying(finished))
    if finished.status in (_NO_GROUND, _NO_FILES):
        raise _no_files(location, finished.errors)
    facts = dict(line.partition(b" ")[::2] for line in said[:_ANSWER].splitlines())
    tar = _flavour(facts)
    return HostCapabilities(
        "shell",
        f"a shell answers, {f'{tar} tar extracts' if tar else 'without a tar that extracts'}",
        tar,
        _known(facts.get(b"checksum", b"")),
        _cpus(facts),
        facts.get(b"zstd") == b"mydata",
    )


def _script(location: bytes, token: bytes, nonce: bytes) -> bytes:
    """Return the script of the shell's probe: one line, its answers one fact a line."""
    parts = [
        b"LC_ALL=C; export LC_ALL; umask 007; set -f",
        b"printf '\\n%%s\\n' %b" % quote(nonce),
        b"w=%b" % quote(location),
        b'cd -- "$w" 2>/dev/null || { mkdir -p -m 2770 -- "$w" && cd -- "$w" || exit %d; }'
        % _NO_GROUND,
        b"d=./.mydata-probe-%b" % token,
        # The shell's own printf may not report why it failed: dash 0.5.12 prints "I/O error".
        b'mkdir -m 700 -- "$d" && env printf x > "$d/x" || { rm -rf -- "$d"; exit %d; }'
        % _NO_FILES,
        b'(cd "$d" && tar -x -o -f -) >/dev/null 2>&1',
        b'[ -f "$d/s" ] && set -- $(ls -ln "$d/s") && echo "extracted $5"',
        b'rm -rf -- "$d"',
        b'echo "tar "$(tar --version 2>&1 </dev/null)',
        b"for c in %b; do case $(printf mydata | $c 2>/dev/null) in "
        b'%b*) echo "checksum $c"; break;; esac; done' % (b" ".join(map(quote, _CHECKSUMS)), _MD5),
        b'echo "zstd "$(printf "%b" | zstd -dcq 2>/dev/null)' % _PACKED,
        b'echo "cpus "$(nproc || getconf _NPROCESSORS_ONLN || sysctl -n hw.ncpu) 2>/dev/null',
    ]
    return b"; ".join(parts)


def _sample_tar() -> bytes:
    import tarfile  # of use to the one that probes, and each channel worker starts without it

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo("s")
        member.size = len(_SAMPLE)
        member.mode = 0o660
        tar.addfile(member, io.BytesIO(_SAMPLE))
    return archive.getvalue()


def _flavour(facts: dict[bytes, bytes]) -> str:
    """Return which tar there is, if it has extracted what we sent."""
    if facts.get(b"extracted") != b"%d" % len(_SAMPLE):
        return ""
    version = facts.get(b"tar", b"").lower()
    return next((flavour for name, flavour in _FLAVOURS.items() if name in version), "")


def _known(command: bytes) -> bytes:
    """Return the command that printed the right MD5, if it is one of ours."""
    return command if command in _CHECKSUMS else b""


def _cpus(facts: dict[bytes, bytes]) -> int | None:
    count = parse_count(facts.get(b"cpus", b"")) or 0
    return count if 0 < count < 10_000 else None


def _probe_scp(session: SshSession, location: bytes) -> HostCapabilities:
    """Try scp; its protocol cannot remove, so the sample has one name and is tiny."""
    stream = session.start(build_scp(location))
    try:
        _expect_ready(stream, location)
        stream.write(b"C0660 %d %b\n" % (len(_SAMPLE), _SAMPLE_NAME.encode()))
        _expect_ready(stream, location)
        stream.write(_SAMPLE + b"\0")
        _expect_ready(stream, location)
        stream.finish()
    finally:
        stream.close()
    _remove_sample(session, location)
    return HostCapabilities("scp", "scp takes files")


def _expect_ready(stream: Stream, location: bytes) -> None:
    """Wait for the other side's consent (a zero byte, OpenSSH's scp.c)."""
    said = stream.read(_SAYING)
    if said[:1] == b"\0":
        return
    if said[:1] in (b"\1", b"\2"):
        raise _no_files(location, said[1:])
    raise RejectedError(_saying(stream.finish(), said))


def _remove_sample(session: SshSession, location: bytes) -> None:
    """Remove what the probe of scp wrote, where SFTP is allowed as well."""
    try:
        sftp = session.open_sftp()
        sftp.remove(_sample_path(location))
    except (RejectedError, TransientError):
        return


def _probe_sftp(session: SshSession, location: bytes) -> HostCapabilities:
    sftp = session.open_sftp()
    target = b"%b-%b" % (_sample_path(location), os.urandom(8).hex().encode())  # others probe, too
    part = target + b".part"
    try:
        sftp.make_directories(location, _MODE)
        file = sftp.open_file(part)
        file.write(_SAMPLE)
        file.close()
        sftp.replace(part, target)
        size = sftp.find_size(target)
        sftp.remove(target)
    except RejectedError as error:
        with suppress(RejectedError, TransientError):
            sftp.remove(part)  # its name is never used again
        raise _no_files(location, error.message.rstrip(".").encode()) from error
    if size != len(_SAMPLE):
        raise _no_files(location, b"what was written is not there")
    return HostCapabilities("sftp", "SFTP takes files")


def _sample_path(location: bytes) -> bytes:
    return location.rstrip(b"/") + b"/" + _SAMPLE_NAME.encode()


def _saying(finished: CommandResult, before: bytes = b"") -> str:
    """Return what a host said instead of what was hoped for, fit for a message."""
    said = finished.errors.strip() or (before + finished.output).strip()
    text = format_path(b" ".join(said[:_ANSWER].split()))[:_SAYING]
    return text or "it said nothing"


def _no_files(location: bytes, said: bytes) -> StagingError:
    """Return why a location takes no files; raise `StagingError` if it is full."""
    check_space(said[:_ANSWER])
    words = b" ".join(said[:_ANSWER].split())
    reason = format_path(words)[:_SAYING].rstrip(".") or "no reason given"
    return StagingError(
        f"The staging area's folder {format_path(location)} takes no files: {reason}.",
        hint="The server's administrator can fix its permissions or make room.",
    )
