"""The capabilities of a staging host: shell, SFTP or scp, found by trying each.

A shell is best, then SFTP, then scp. Each counts as allowed only after bytes were written with it
below the staging area's location. The probe file is removed again, where that is possible.
"""

import io
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from mydata_like.core.checksums import Algorithm
from mydata_like.core.errors import (
    FULL,
    RejectedError,
    StagingError,
    TransientError,
    UploaderError,
)
from mydata_like.core.formatting import format_path
from mydata_like.core.parsing import parse_count
from mydata_like.ssh import dialing
from mydata_like.ssh.dialing import NO_CHANNEL
from mydata_like.ssh.session import CommandResult, OpenSession, SftpSession, SshSession, Stream

_NO_GROUND: Final = 92  # exit status: the location cannot be entered
_NO_FILES: Final = 93  # exit status: the location does not accept files
_LONGEST_WAIT: Final = 10.0  # seconds without an answer, after which a host does not allow this
_SAMPLE: Final = bytes(range(256)) * 16
_SAMPLE_NAME: Final = ".mydata-probe"
SPARE: Final = 64 * 1024  # bytes that a file may need in addition to its size, for folder and map
_MOST_OUTPUT: Final = 64 * 1024  # bytes of a probe's output that are parsed
_MOST_SHOWN: Final = 200  # characters of a host's output in a message
_MODE: Final = 0o2770
_STAMP: Final = b"200001010000.00"  # the sample's modification time for `touch -t`
# The programs that the scripts of `transfer` need, besides those of which they use what is there.
_PROGRAMS: Final = (b"cat", b"ls", b"mkdir", b"mv", b"rm")
LINE_END: Final = rb"(?:%b)[ \t\v\f]*(?:[\r\n]|\Z)"  # a pattern for words at the end of a line
# What shells and programs print on a host at its limit of processes, files or memory.
_BUSY: Final = re.compile(
    rb"[Cc]annot fork|Resource temporarily unavailable|Cannot allocate memory|Too many open files"
).search
# GNU tar 1.34 gives no reason if a part of a write succeeds; a full disk is the only one for files.
_FULL: Final = re.compile(
    LINE_END % rb"No space left on device|Disk quota exceeded|Wrote only \d+ of \d+ bytes"
).search

# Work-around: tar 1.34 (GNU) takes options from TAR_OPTIONS, which may leave members out without an
# error. No report known; see test_what_the_host_has_set_for_its_tar_leaves_nothing_out.
# Remove when tar has an option to ignore the variable.
PREAMBLE: Final = (  # of each script
    # Start files of an account may also set what changes the output of tools: the units of sizes
    # (GNU coreutils, "Block size"), formats, the language, and where `cd` goes.
    b"unset TAR_OPTIONS BLOCK_SIZE BLOCKSIZE LS_BLOCK_SIZE POSIXLY_CORRECT TIME_STYLE CDPATH; "
    b"LC_ALL=C; export LC_ALL; umask 007; "
)
# Every login shell accepts this; the script itself is sent as input.
_WAITING: Final = b"""exec sh -c 'IFS= read -r s && eval "$s"'"""
_CHECKSUMS: Final = {  # programs that print the checksum of their input, the best first
    Algorithm.MD5: (b"md5sum", b"openssl md5 -r", b"md5 -q"),
    Algorithm.SHA256: (b"sha256sum", b"openssl sha256 -r", b"shasum -a 256", b"sha256 -q"),
}
_FIND_CHECKSUMS: Final = b"; ".join(
    b"for c in %b; do case $(printf mydata | $c 2>/dev/null) in "
    b'%b*) echo "%b $c"; break;; esac; done'
    % (
        b" ".join(b"'%b'" % it for it in programs),
        algorithm.hash(b"mydata").hexdigest().encode(),
        algorithm.value.encode(),
    )
    for algorithm, programs in _CHECKSUMS.items()
)
_PACKED: Final = rb"\050\265\057\375\040\006\061\000\000mydata"  # compressed by zstd; RFC 8878
_FLAVOURS: Final = {b"gnu tar": "gnu", b"busybox": "busybox", b"bsdtar": "bsd"}
_PLAIN: Final = frozenset(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%"
)


class HostCapabilities(NamedTuple):
    """The best kind of access that works, and the tools of the host.

    `access` is `shell`, `scp`, `sftp` or `folder`; `why` is the reason. `tar` is `gnu`, `bsd`,
    `busybox`, or empty if no tar extracts. `checksum` is the command that prints the MD5 of its
    standard input, or empty, `sha256` that for SHA-256. `cpus` is None if unknown. `zstd` is
    whether the host can unpack zstd, `times` whether it can set modification times, and `renames`
    whether it can rename and remove files. `lacks` are the programs without which its shell is not
    used. `doubtful` is whether a better kind of access did not answer, so that it may work another
    time. `gcm_only` is whether only paramiko checks what the host sends.
    """

    access: str
    why: str = ""
    tar: str = ""
    checksum: bytes = b""
    cpus: int | None = None
    zstd: bool = False
    times: bool = True
    renames: bool = True
    lacks: str = ""
    doubtful: bool = False
    gcm_only: bool = False
    sha256: bytes = b""

    def find_checksum(self, algorithm: Algorithm) -> bytes:
        """Return the command that prints the checksum of its standard input, or nothing."""
        return self.checksum if algorithm is Algorithm.MD5 else self.sha256

    @property
    def in_place(self) -> bool:
        """Whether files must be written to their final paths."""
        return self.access == "scp" or not self.renames

    @property
    def sound(self) -> bool:
        """Whether a probe can have returned this, so that it may be used after it was stored."""
        return (
            self.access in ("shell", "scp", "sftp")
            and self.tar in ("", *_FLAVOURS.values())
            and self.checksum in (b"", *_CHECKSUMS[Algorithm.MD5])
            and self.sha256 in (b"", *_CHECKSUMS[Algorithm.SHA256])
        )


class _NoProgramsError(RejectedError):
    """The shell lacks programs that are needed."""

    def __init__(self, programs: bytes) -> None:
        self.programs = format_path(programs)[:_MOST_SHOWN]
        super().__init__(f"it has no {self.programs}")


def quote(word: bytes) -> bytes:
    """Return bytes as one word of a POSIX shell; raises ValueError for NUL."""
    if b"\0" in word:
        raise ValueError("a remote word cannot contain NUL")
    return b"'" + word.replace(b"'", b"'\"'\"'") + b"'"


def says_full(text: bytes) -> bool:
    """Return whether a remote command reported that no space is left."""
    return _FULL(text) is not None


def check_space(text: bytes) -> None:
    """Raise `StagingError` if a remote command reported that no space is left."""
    if says_full(text):
        raise _full()


def _full() -> StagingError:
    return StagingError(
        "The staging area is full.",
        hint="The server's administrator can free space or raise the quota.",
        code=FULL,
    )


def confirm(session: SshSession, location: bytes, access: str) -> None:
    """Check that a session allows what an earlier one did; raises `TransientError` if not.

    At a limit of logins or processes, a host may accept a session whose commands then fail.
    """
    why = ""
    try:
        if access == "shell":
            ended = session.run(b"exec sh -c 'echo mydata:'")
            why = "" if b"mydata:" in ended.output else _describe_output(ended)
        elif access == "scp":
            stream = session.start(build_scp(location))
            _expect_ready(stream, location)
            stream.finish()
    except RejectedError as error:
        why = error.message
    if why:
        raise TransientError(f"Another session was refused: {why}", code=NO_CHANNEL)


def build_scp(location: bytes) -> bytes:
    """Return the command that receives files below a location with the scp protocol.

    A host that only allows scp may split the command without support for quotes.
    """
    # Work-around: OpenSSH 9.2 has an scp that makes a file in the place of a missing folder, unless
    # the name ends with a slash. No report known; see test_a_location_that_takes_no_files_is_named.
    # Remove when `scp -t` has an option that requires a folder.
    folder = location.rstrip(b"/") + b"/"
    return b"scp -r -p -t -- " + (folder if _PLAIN.issuperset(folder) else quote(folder))


def probe(
    connect: Callable[[], OpenSession], location: bytes
) -> tuple[OpenSession, HostCapabilities]:
    """Log in; return the session, and the best access below this location, created if missing.

    Each kind of access has its own connection, since a host may break it or stay silent instead of
    refusing. Raises `StagingError` if the host refuses all kinds or the location does not accept
    files, `TransientError` if one did not answer and none works, and the errors of `connect`.
    """
    if b"\n" in location or b"\0" in location or not location.startswith(b"/"):
        raise _no_files(location, b"it is not an absolute path of one line")
    refusals: list[str] = []
    lacks = hint = ""
    unanswered: TransientError | None = None
    for name, attempt in (("a shell", _probe_shell), ("SFTP", _probe_sftp), ("scp", _probe_scp)):
        session = connect()
        try:
            with _closing_after_failure(session), session.limit_waits(_LONGEST_WAIT):
                found = attempt(session, location)
        except RejectedError as error:
            lacks, hint = lacks or getattr(error, "programs", ""), hint or error.hint
            refusals.append(f"{name} was refused ({error.message.rstrip('.')})")
        except TransientError as error:
            if error.problem_code == NO_CHANNEL:  # whatever the channel is for
                raise
            unanswered = unanswered or error
            refusals.append(f"{name} did not answer ({error.message.rstrip('.')})")
        else:
            why = "; ".join([*refusals, found.why])
            return session, found._replace(
                why=why,
                lacks=lacks,
                doubtful=unanswered is not None,
                gcm_only=session.gcm_only,
            )
    message = f"The staging host does not accept files: {'; '.join(refusals)}."
    if dialing.says_expired(message.encode()):
        raise StagingError(message, hint=dialing.RENEW, code=dialing.EXPIRED)
    if unanswered is None:
        usual = "The server's administrator can allow a shell, scp or SFTP for this account."
        raise StagingError(message, hint=hint or usual)
    raise TransientError(
        message,
        hint="If this persists, the host's administrator can check the account's login scripts "
        "and its limit of processes.",
        code=unanswered.problem_code,
    )


def allows_nothing(error: UploaderError) -> StagingError:
    """Return the error of a host that refuses the only channel of a session."""
    return StagingError(
        "The staging host accepts the uploader's key, but allows neither commands nor "
        f"transfers: {error.message}",
        hint="Its administrator can raise MaxSessions in sshd_config (10 is the default, 0 "
        "allows nothing), or the limits of processes for this account.",
        code="ssh.no-channel",
    )


class CommandFacts(NamedTuple):
    """What a shell tells without writing anything: the account's home, and the two as above."""

    home: bytes
    checksum: bytes
    sha256: bytes
    output: bytes  # of what else was asked


def probe_commands(session: SshSession, more: bytes) -> CommandFacts:
    """Return what the shell of a host tells, also what the script `more` prints.

    Raises `RejectedError` if it answers nothing.
    """
    nonce = b"mydata-" + os.urandom(8).hex().encode()
    parts = [
        PREAMBLE + b"set -f",
        b"printf '\\n%%s\\n' %b" % quote(nonce),
        b'printf "home %s\\n" "$PWD"',
        _FIND_CHECKSUMS,
        more,
    ]
    finished = session.run(b"exec sh -c " + quote(b"; ".join(parts)))
    _, found, output = finished.output.partition(b"\n" + nonce + b"\n")
    if not found:
        raise RejectedError(_describe_output(finished))
    facts = dict(line.partition(b" ")[::2] for line in output[:_MOST_OUTPUT].splitlines())
    md5, sha256 = (_find_checksum(facts, it) for it in Algorithm)
    return CommandFacts(facts.get(b"home", b""), md5, sha256, output)


def _find_checksum(facts: Mapping[bytes, bytes], algorithm: Algorithm) -> bytes:
    """Return the command for checksums that a host has printed, or nothing."""
    found = facts.get(algorithm.value.encode(), b"")
    return found if found in _CHECKSUMS[algorithm] else b""


@contextmanager
def _closing_after_failure(session: OpenSession) -> Iterator[None]:
    try:
        yield
    except UploaderError:
        session.close()
        raise


def _probe_shell(session: SshSession, location: bytes) -> HostCapabilities:
    """Try a shell; output of login scripts is ignored."""
    token = os.urandom(8).hex().encode()
    nonce = b"mydata-" + token + b' it\'s 5$ "now"! `x` \\'
    stream = session.start(_WAITING)
    stream.write(_script(location, token, nonce) + b"\n" + _sample_tar())
    finished = stream.finish()
    _, nonce_found, output = finished.output.partition(b"\n" + nonce + b"\n")
    if not nonce_found:
        text = _describe_output(finished)
        if finished.status is None or _BUSY(finished.errors + finished.output):
            raise TransientError(text, code="staging.shell")
        raise RejectedError(text)
    facts = dict(line.partition(b" ")[::2] for line in output[:_MOST_OUTPUT].splitlines())
    if missing := facts.get(b"missing"):
        raise _NoProgramsError(missing)
    if finished.status in (_NO_GROUND, _NO_FILES):
        raise _no_files(location, finished.errors)
    tar, version = "", facts.get(b"tar", b"").lower()
    if facts.get(b"extracted") == b"%d" % len(_SAMPLE):
        tar = next((flavour for name, flavour in _FLAVOURS.items() if name in version), "")
    cpus = parse_count(facts.get(b"cpus", b"")) or 0
    return HostCapabilities(
        "shell",
        f"the shell works, {f'{tar} tar extracts' if tar else 'but no tar extracts'}",
        tar,
        _find_checksum(facts, Algorithm.MD5),
        cpus if 0 < cpus < 10_000 else None,
        facts.get(b"zstd") == b"mydata",
        times=b"times" in facts,
        sha256=_find_checksum(facts, Algorithm.SHA256),
    )


def _script(location: bytes, token: bytes, nonce: bytes) -> bytes:
    """Return the script of the shell's probe: one line; it prints one fact per line."""
    parts = [
        PREAMBLE + b"set -f",
        b"printf '\\n%%s\\n' %b" % quote(nonce),
        b'm=; for c in %b; do command -v $c >/dev/null 2>&1 || m="$m, $c"; done'
        % b" ".join(_PROGRAMS),
        b'[ -z "$m" ] || { echo "missing ${m#, }"; exit; }',
        b"w=%b" % quote(location),
        b'cd -- "$w" 2>/dev/null || { mkdir -p -m 2770 -- "$w" && cd -- "$w" || exit %d; }'
        % _NO_GROUND,
        b"d=./.mydata-probe-%b" % token,
        # The shell's own printf may not report why it failed: dash 0.5.12 prints "I/O error".
        b'mkdir -m 700 -- "$d" && echo x | cat > "$d/x" || { rm -rf -- "$d"; exit %d; }'
        % _NO_FILES,
        b'TZ=UTC0 touch -t %b "$d/x" 2>/dev/null && echo times' % _STAMP,
        b'(cd "$d" && tar -x -o -f -) >/dev/null 2>&1',
        b'[ -f "$d/s" ] && set -- $(ls -ln "$d/s") && echo "extracted $5"',
        b'rm -rf -- "$d"',
        b'echo "tar "$(tar --version 2>&1 </dev/null)',
        _FIND_CHECKSUMS,
        b'echo "zstd "$(printf "%b" | zstd -dcq 2>/dev/null)' % _PACKED,
        b'echo "cpus "$(nproc || getconf _NPROCESSORS_ONLN || sysctl -n hw.ncpu) 2>/dev/null',
    ]
    return b"; ".join(parts)


def _sample_tar() -> bytes:
    import tarfile  # only for the first probe; channel workers start faster without it

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        member = tarfile.TarInfo("s")
        member.size = len(_SAMPLE)
        member.mode = 0o660
        tar.addfile(member, io.BytesIO(_SAMPLE))
    return archive.getvalue()


def _probe_sftp(session: SshSession, location: bytes) -> HostCapabilities:
    """Try SFTP; the sample stays, under a fixed name, only where nothing can be removed."""
    sftp = session.open_sftp()
    try:
        sftp.make_directories(location, _MODE)
        try:
            times, renames = try_sample(sftp, location), True
        except RejectedError:
            renames, sample = False, _sample(location)
            try:
                times = _write_sample(sftp, sample)
            finally:
                with suppress(RejectedError):
                    sftp.remove(sample)
    except RejectedError as error:
        free = sftp.find_free(location)
        short = free is not None and free < len(_SAMPLE) + SPARE
        if short and error.problem_code != "staging.denied":
            raise _full() from error
        raise _no_files(location, error.message.rstrip(".").encode()) from error
    sftp.close()
    why = "SFTP takes files" if renames else "SFTP takes files, but does not rename and remove them"
    return HostCapabilities("sftp", why, times=times, renames=renames)


def try_sample(sftp: SftpSession, location: bytes) -> bool:
    """Write, rename and remove a sample; return whether its modification time was set.

    Raises `RejectedError` if any of that is refused.
    """
    target = b"%b-%b" % (_sample(location), os.urandom(8).hex().encode())  # unique per probe
    part = target + b".part"
    try:
        sftp.remove(part)  # nothing is written that could not be removed
        times = _write_sample(sftp, part)
        sftp.replace(part, target)
        sftp.remove(target)
    except RejectedError:
        with suppress(RejectedError):
            sftp.remove(part)
        raise
    return times


def _sample(location: bytes) -> bytes:
    return location.rstrip(b"/") + b"/" + _SAMPLE_NAME.encode()


def _write_sample(sftp: SftpSession, path: bytes) -> bool:
    """Write a sample; return whether its modification time could be set.

    The time stays recent: `transfer.temporary_files` removes old samples of others.
    """
    file = sftp.open_file(path, keep=True)  # probes at the same time write the same
    file.write(_SAMPLE)
    file.close()
    if sftp.find_size(path) != len(_SAMPLE):
        raise RejectedError("what was written is not there")
    return sftp.set_attributes(path, mode=0o660, modified=sftp.find_modified(path))


def _probe_scp(session: SshSession, location: bytes) -> HostCapabilities:
    """Try scp; its protocol cannot remove files, so the sample has a fixed name and is tiny.

    It is a directory with a file. A file alone could take the place of a missing location, while a
    directory becomes the location. SFTP may have left a file with the sample's name.
    """
    stream = session.start(build_scp(location))
    try:
        _expect_ready(stream, location)
        for part in (
            b"D2770 0 %b-scp\n" % _SAMPLE_NAME.encode(),
            b"C0660 %d %b\n" % (len(_SAMPLE), _SAMPLE_NAME.encode()),
            _SAMPLE + b"\0",
            b"E\n",
        ):
            stream.write(part)
            _expect_ready(stream, location)
        stream.finish()
    finally:
        stream.close()
    return HostCapabilities("scp", "scp works")


def _expect_ready(stream: Stream, location: bytes) -> None:
    """Wait for the host's acknowledgement (a zero byte, OpenSSH's scp.c)."""
    output = stream.read(_MOST_SHOWN)
    if output[:1] == b"\0":
        return
    if output[:1] in (b"\1", b"\2"):
        raise _no_files(location, output[1:])
    finished = stream.finish()
    printed, ready, _ = (output + finished.output).partition(b"\0")
    if ready:
        raise RejectedError(
            f"text came before its answer: {_shorten_output(printed)}",
            hint="A start file of the account on the host, such as .bashrc, prints text. Its "
            "administrator can let it print nothing where no terminal is used.",
        )
    raise RejectedError(_describe_output(finished, output))


def _describe_output(finished: CommandResult, before: bytes = b"") -> str:
    """Return the host's output as the reason for a failure."""
    output = finished.errors.strip() or (before + finished.output).strip()
    return _shorten_output(output) or "no output"


def _shorten_output(output: bytes) -> str:
    return format_path(b" ".join(output[:_MOST_OUTPUT].split()))[:_MOST_SHOWN]


def _no_files(location: bytes, output: bytes) -> StagingError:
    """Return the error of a location that refuses files; raise `StagingError` if it is full."""
    check_space(output[:_MOST_OUTPUT])
    words = b" ".join(output[:_MOST_OUTPUT].split())
    reason = format_path(words)[:_MOST_SHOWN].rstrip(".") or "no reason given"
    return StagingError(
        f"The staging area's folder {format_path(location)} does not accept files: {reason}.",
        hint="The server's administrator can fix its permissions or free space.",
    )
