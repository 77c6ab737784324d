"""The arguments of `copy`: sources, and a destination as users of rsync and scp write it."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from mydata_like.core.errors import SettingsError, SourceError
from mydata_like.core.extra_sources import lies_in
from mydata_like.core.formatting import format_path

_SCHEME: Final = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]+)://(.*)", re.DOTALL)
_DRIVE: Final = re.compile(rb"[A-Za-z]:")
_BRACKETS: Final = re.compile(rb"(?:[^\[\]/:]*@)?\[[^\[\]/]*\](?=:)")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
# As OpenSSH 9.6 refuses them: valid_hostname and valid_ruser in ssh.c.
_UNSAFE_IN_HOST: Final = frozenset("'`\"$\\;&<>|(){}[]@,/")
_UNSAFE_IN_USER: Final = frozenset("'`\";&<>|(){}")
_FORMS: Final = (
    "Write [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH or the path of a local folder."
)


class HostTarget(NamedTuple):
    """A folder on a host that is reached with SSH.

    `path` is absolute, or relative to the account's home folder; empty is the home itself. Without
    `username` or `port`, the SSH configuration decides. The host may be an alias in it.
    """

    host: str
    path: bytes
    username: str = ""
    port: int | None = None


class FolderTarget(NamedTuple):
    """A local folder; the path may be relative to the current one."""

    path: bytes


class BucketTarget(NamedTuple):
    """A bucket of an object storage, and the prefix of all keys, without slashes at its ends."""

    bucket: str
    prefix: str


CopyTarget = HostTarget | FolderTarget | BucketTarget


class CopySource(NamedTuple):
    """A folder or file to copy.

    `path` is absolute and separated by `/`; `place` is its path below the destination, or empty if
    a folder's contents are copied to the destination itself. It is a single file if it is `alone`.
    """

    path: bytes
    place: bytes
    alone: bool


def parse_target(text: bytes | str, *, windows: bool, home: bytes) -> CopyTarget:
    """Parse a destination; raises `SettingsError` for one that is refused.

    A colon before the first slash ends the name of a host, except after the letter of a drive on
    `windows`. A leading `~/` is the home folder: `home` locally, the account's on a host. Nothing
    else is expanded. On hosts, `..` is left to the host, since only it knows what links there lead
    to; `.` and repeated slashes are removed.
    """
    raw = os.fsencode(text)
    if not raw:
        raise _refuse("The destination is empty.", _FORMS)
    if b"\0" in raw:
        raise _refuse(f"The destination {format_path(raw)} contains a NUL character.")
    if windows and _DRIVE.match(raw):
        return _parse_drive(raw)
    if url := _SCHEME.fullmatch(raw):
        return _parse_url(raw, url[1].lower(), url[2])
    separators = rb"/\\" if windows else b"/"
    end = _find_colon(raw, separators)
    if end is None:
        return FolderTarget(_expand_local(raw, home, separators))
    account, path = raw[:end], raw[end + 1 :]
    if path.startswith(b":"):
        raise _refuse(f"{format_path(raw)} is a module of an rsync daemon, which is not supported.")
    username, host = _parse_account(raw, account)
    return HostTarget(host, _parse_remote_path(raw, path), username)


def format_target(target: CopyTarget) -> str:
    """Return a text that `parse_target` reads as the same destination; a local path is absolute."""
    match target:
        case FolderTarget(path):
            return os.fsdecode(path)
        case BucketTarget(bucket, prefix):
            return f"s3://{bucket}/{prefix}"
        case HostTarget(host, path, username, port):
            account = f"{quote(username)}@" if username else ""
            place = f"[{host}]" if ":" in host else quote(host)
            number = f":{port}" if port else ""
            below = "" if path.startswith(b"/") else "/~/"
            return f"ssh://{account}{place}{number}{below}{quote(path)}"


def plan_sources(
    sources: Sequence[bytes],
    is_folder: Callable[[bytes], bool],
    *,
    cwd: bytes,
    real_path: Callable[[bytes], bytes],
    windows: bool,
) -> list[CopySource]:
    """Return what is copied to which place below the destination; raises `SourceError`.

    As rsync does, `SRC` is copied to a folder of its name, and the contents of `SRC/`, `SRC/.`, `.`
    and `..` to the destination itself. Unlike rsync, contents are only copied if they are the only
    source: names in them could collide with others. `cwd` is the current folder without links in
    its path. `real_path` resolves the links of a folder whose path contains `..`; other links are
    not resolved.
    """
    if not sources:
        raise _refuse_source("There is nothing to copy.", "Name at least one folder or file.")
    planned = [
        _plan_source(source, is_folder, cwd, real_path, windows=windows) for source in sources
    ]
    if len(planned) > 1:
        _require_separate(planned)
    return planned


def _parse_drive(raw: bytes) -> FolderTarget:
    """Return the folder of a path that begins with a drive of Windows; `E:` is its top folder."""
    if raw[2:3] not in (b"", b"/", b"\\"):
        shown = format_path(raw)
        raise _refuse(
            f"{format_path(raw)} is neither an absolute path nor clearly a host.",
            f"Write {shown[:2]}\\{shown[2:]} for a folder on drive {shown[:2]}, or "
            f"ssh://{shown[0]}/~/{shown[2:]} for a host named {shown[0]}.",
        )
    return FolderTarget(raw if len(raw) > 2 else raw + b"/")


def _find_colon(raw: bytes, separators: bytes) -> int | None:
    """Return where the colon after a host is, or None for a local path.

    The colons of an IPv6 address in brackets do not count.
    """
    bracket = _BRACKETS.match(raw)
    begin = bracket.end() if bracket else 0
    local = re.match(rb"[^:" + separators + rb"]*(?=:)", raw[begin:])
    return begin + local.end() if local else None


def _parse_url(raw: bytes, scheme: bytes, rest: bytes) -> HostTarget | BucketTarget:
    if scheme == b"s3":
        return _parse_bucket(raw, rest)
    if scheme != b"ssh":
        shown = scheme.decode("ascii")
        raise _refuse(f"Destinations that begin with {shown}:// are not supported.", _FORMS)
    account, slash, path = rest.partition(b"/")
    place = re.fullmatch(rb"(.*?)(?::(\d{1,5}))?", account, re.DOTALL)
    assert place is not None
    port = int(place[2]) if place[2] else None
    if port is not None and not 0 < port < 65_536:
        raise _refuse(
            f"{format_path(raw)} has a port that does not exist.", "Ports are 1 to 65535."
        )
    username, host = _parse_account(raw, unquote_to_bytes(place[1]))
    decoded = unquote_to_bytes(path)
    if not decoded.startswith(b"~"):
        decoded = slash + decoded
    return HostTarget(host, _parse_remote_path(raw, decoded), username, port)


def _parse_bucket(raw: bytes, rest: bytes) -> BucketTarget:
    try:
        bucket, _, prefix = rest.decode("utf-8").partition("/")
    except UnicodeDecodeError:
        raise _refuse(
            f"{format_path(raw)} is not valid UTF-8, as names in object storage are."
        ) from None
    if not _BUCKET.fullmatch(bucket):
        raise _refuse(f"{format_path(raw)} does not name a bucket.", "Write s3://BUCKET/PREFIX.")
    parts = prefix.strip("/").split("/")
    if prefix and not {"", ".", ".."}.isdisjoint(parts):
        raise _refuse(
            f"{format_path(raw)} has a prefix with empty parts, or with . or .. as a part.",
            "Write s3://BUCKET/PREFIX.",
        )
    return BucketTarget(bucket, "/".join(parts))


def _parse_account(raw: bytes, account: bytes) -> tuple[str, str]:
    """Return user and host of `[user@]host`; an IPv6 address may be in brackets."""
    # `os.fsdecode` of another system would differ.
    name, at, host = account.decode("utf-8", "surrogateescape").rpartition("@")
    if ":" in name:
        raise SettingsError(  # without the text, which contains a password
            "The destination contains a password, which is not supported.",
            hint="Remove it; mydata-like logs in with keys.",
            code="copy.destination",
        )
    if host.startswith("[") and host.endswith("]") and ":" in host:
        host = host[1:-1]
    elif ":" in host:
        raise _refuse(
            f"{format_path(raw)} does not name a host.", "Write an IPv6 address in brackets."
        )
    if _is_unsafe(host, _UNSAFE_IN_HOST):
        raise _refuse(f"{format_path(raw)} does not name a valid host.", _local_hint(raw))
    if (at and not name) or (name and _is_unsafe(name, _UNSAFE_IN_USER)) or name.endswith("\\"):
        raise _refuse(f"{format_path(raw)} does not name a valid user.", _local_hint(raw))
    return name, host


def _is_unsafe(name: str, characters: frozenset[str]) -> bool:
    return (
        not name
        or name.startswith("-")
        or not name.isprintable()
        or any(character.isspace() for character in name)
        or not characters.isdisjoint(name)
    )


def _parse_remote_path(raw: bytes, path: bytes) -> bytes:
    """Return a path on a host in its normal form, relative if it is below the home folder.

    A relative one that a program could read as an option or a home folder begins with `./`.
    """
    if b"\0" in path:
        raise _refuse(f"The destination {format_path(raw)} contains a NUL character.")
    first, _, rest = path.partition(b"/")
    if first == b"~":
        path = rest.lstrip(b"/")
    elif first.startswith(b"~"):
        user = format_path(first)
        raise _refuse(
            f"The home folder of another user, {user}, is not looked up.",
            f"Write its absolute path; write ./{user} for a folder of this name.",
        )
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if path.startswith(b"/"):
        return b"/" + b"/".join(parts)
    if parts and parts[0].startswith((b"-", b"~")):
        parts.insert(0, b".")
    return b"/".join(parts)


def _expand_local(raw: bytes, home: bytes, separators: bytes) -> bytes:
    first = re.split(rb"[" + separators + rb"]", raw, maxsplit=1)
    if first[0] == b"~":
        return home + raw[1:]
    if first[0].startswith(b"~"):
        user = format_path(first[0])
        raise _refuse(
            f"The home folder of another user, {user}, is not looked up.",
            f"Write its absolute path; write ./{user} for a folder of this name.",
        )
    return raw


def _local_hint(raw: bytes) -> str:
    shown = format_path(raw)
    return f"{_FORMS} A local folder with a colon in its name is ./{shown}"


def _refuse(message: str, hint: str = _FORMS) -> SettingsError:
    return SettingsError(message, hint=hint, code="copy.destination")


def _plan_source(
    source: bytes,
    is_folder: Callable[[bytes], bool],
    cwd: bytes,
    real_path: Callable[[bytes], bytes],
    *,
    windows: bool,
) -> CopySource:
    shown = format_path(source)
    if not source or b"\0" in source:
        raise _refuse_source(
            "A source is empty or contains a NUL character.", "Name a folder or file."
        )
    if windows:
        source, cwd = source.replace(b"\\", b"/"), cwd.replace(b"\\", b"/")
        if _DRIVE.match(source) and source[2:3] not in (b"", b"/"):
            raise _refuse_source(
                f"{shown} is relative to the current folder of its drive.",
                "Write an absolute path, or one that is relative to the current folder.",
            )
    last = source.rpartition(b"/")[2]
    top = bool(windows and _DRIVE.fullmatch(source))
    path = _make_absolute(source, cwd, real_path, windows=windows)
    contents = top or last in (b"", b".", b"..") or path.endswith(b"/")
    if contents and not is_folder(path):
        raise _refuse_source(
            f"{shown} is not a folder.", "Write a file without a slash at its end."
        )
    if contents:
        return CopySource(path, b"", alone=False)
    return CopySource(path, path.rpartition(b"/")[2], alone=not is_folder(path))


def _make_absolute(
    source: bytes, cwd: bytes, real_path: Callable[[bytes], bytes], *, windows: bool
) -> bytes:
    """Return an absolute path without `.` and `..`; only that of a top folder ends with `/`."""
    anchor = re.match(rb"[A-Za-z]:|//[^/]+/[^/]+|(?=/)", source) if windows else None
    if windows and anchor is None:
        source = cwd + b"/" + source
    elif windows and anchor is not None and not anchor[0]:  # on the current drive
        source = cwd[:2] + source
    elif not windows and not source.startswith(b"/"):
        source = cwd + b"/" + source
    root = re.match(rb"[A-Za-z]:|//[^/]+/[^/]+|", source) if windows else None
    drive = root[0] if root else b""
    parts = [part for part in source[len(drive) :].split(b"/") if part not in (b"", b".")]
    while b".." in parts:
        after = parts.index(b"..") + 1
        before = drive + b"/" + b"/".join(parts[: after - 1])
        resolved = real_path(before)
        if windows:
            resolved = resolved.replace(b"\\", b"/")
        kept = [part for part in resolved[len(drive) :].split(b"/") if part]
        parts = kept[:-1] + parts[after:]
    return drive + b"/" + b"/".join(parts)


def _require_separate(planned: Sequence[CopySource]) -> None:
    """Raise `SourceError` if two sources would be copied to the same place, or one contains one."""
    for number, source in enumerate(planned):
        shown = format_path(source.path)
        if not source.place:
            raise _refuse_source(
                f"The contents of {shown} would be mixed with the other sources.",
                "Write the folder without the slash or dot at its end, or copy it separately.",
            )
        for other in planned[:number]:
            if other.place == source.place:
                raise _refuse_source(
                    f"{format_path(other.path)} and {shown} would both be copied to "
                    f"{format_path(source.place)}.",
                    "Copy them to different destinations.",
                )
    for source in planned:
        for other in planned:
            if source is not other and lies_in(source.path, other.path):
                raise _refuse_source(
                    f"{format_path(source.path)} is in {format_path(other.path)}, which is copied "
                    "as well.",
                    "Name only one of them.",
                )


def _refuse_source(message: str, hint: str) -> SourceError:
    return SourceError(message, hint=hint, code="copy.source")
