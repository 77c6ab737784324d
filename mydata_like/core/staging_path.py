"""The path of a datafile below the staging area's location.

The server's own rule is `quote(description)-id/quote(directory)/filename`, with the unquoted file
name. It is used if it gives a path that a disk can store and that is unique to the file. Otherwise
a component is made safe, shortened, and marked with `~` and a digest of its original text.
Components that already look marked are marked again, so that no two files of a dataset share a
path.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from pathlib import PurePosixPath
from urllib.parse import quote, unquote

UNTITLED = "untitled"
KEPT = ".mydata-old-"  # begins the name of earlier bytes, followed by their checksum

_COMPONENT_LIMIT = 255  # bytes; the limit of ext4, XFS, NTFS and most others
_DIRECTORY_LIMIT = 3000  # bytes; leaves space for the rest below Linux's 4096 for a whole path
_REMEMBERED = 256  # folders; their files come one after the other
_MARK = re.compile(r"~[0-9a-f]{32}(\.[A-Za-z0-9]{1,10})?\Z")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")  # most names; a quick test
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")


def staged_path(dataset_name: str, dataset_id: int, directory: str, name: str) -> str:
    """Return a datafile's path below the staging area's location, with `/` as separator.

    No component is empty, `.` or `..`, or has more than 255 bytes of UTF-8. Two different pairs of
    directory and name never have the same path in one dataset.
    """
    top = dataset_folder(dataset_name, dataset_id)
    below = f"/{_directory_path(directory)}" if directory else ""
    return f"{top}{below}/{_name_component(name)}"


def aside_path(remote: str, size: int, modified_ns: int, mark: bytes) -> str:
    """Return the temporary path of new bytes of a datafile, until they may replace earlier ones.

    It is in the same directory, and the same for every attempt to send the same bytes. The name
    begins with the mark of the uploader, up to 32 characters.
    """
    folder, slash, _ = remote.rpartition("/")
    meaning = f"{remote}\0{size}\0{modified_ns}".encode("utf-8", "surrogateescape")
    name = mark.decode() + blake2b(meaning, digest_size=16).hexdigest()
    return f"{folder}{slash}.mydata-{name[:32]}.new"


def kept_path(remote: str, checksum: str) -> str:
    """Return the path of earlier bytes of a datafile that are kept after they were replaced.

    It is in the same directory; a name that would be too long is shortened.
    """
    folder, slash, name = remote.rpartition("/")
    first = f"{KEPT}{checksum}-"
    if len(first + name) > _COMPONENT_LIMIT or len(_encode(first + name)) > _COMPONENT_LIMIT:
        return f"{folder}{slash}{first}{_marked(name, remote, limit=_COMPONENT_LIMIT - len(first))}"
    return f"{folder}{slash}{first}{name}"


def is_kept(path: str) -> bool:
    """Return whether a path is that of kept earlier bytes."""
    return path.rpartition("/")[2].startswith(KEPT)


@lru_cache(_REMEMBERED)
def dataset_folder(description: str, number: int) -> str:
    """Return the name of a dataset's folder, which no other dataset has."""
    plain = quote(description, safe="") or UNTITLED
    ending = f"-{number}"
    if len(plain) + len(ending) <= _COMPONENT_LIMIT:
        return plain + ending
    return _marked(plain, f"dataset\0{description}", ending)


@lru_cache(_REMEMBERED)
def _directory_path(directory: str) -> str:
    path = "/".join(_directory_component(part) for part in directory.split("/"))
    if len(path) <= _DIRECTORY_LIMIT:
        return path
    return _marked(quote(directory, safe=""), f"path\0{directory}")


def _directory_component(part: str) -> str:
    plain = quote(part, safe="")
    dots = plain in ("", ".", "..")
    if dots or len(plain) > _COMPONENT_LIMIT or _MARK.search(plain):
        return _marked(plain.replace(".", "%2E") if dots else plain, f"directory\0{part}")
    return plain


def _name_component(name: str) -> str:
    if _PLAIN.fullmatch(name) or _is_safe(name):
        return name
    extension = _EXTENSION.search(PurePosixPath(name).suffix)
    ending = extension[0] if extension else ""
    stem = name[: len(name) - len(ending)] if ending and name.endswith(ending) else name
    return _marked(_shown(stem), f"name\0{name}", ending if stem != name else "")


def _is_safe(name: str) -> bool:
    """Return whether the server and a disk accept a file's name unchanged."""
    if name in ("", ".", "..") or name != name.strip() or _MARK.search(name):
        return False
    if len(name.encode()) > _COMPONENT_LIMIT or _looks_quoted(name):
        return False
    return all(map(_is_literal, name))


def _looks_quoted(name: str) -> bool:
    """Return whether a name may be the quoted form of a folder: `a b` is quoted as `a%20b`."""
    return "%" in name and quote(unquote(name), safe="") == name


def _is_literal(character: str) -> bool:
    return character != "/" and unicodedata.category(character) not in ("Cc", "Zl", "Zp")


def _shown(name: str) -> str:
    """Return a readable form of a name, with unsafe characters percent-encoded."""
    if name != name.strip() or not name.strip("."):
        return quote(name, safe="").replace(".", "%2E")
    return "".join(char if _is_literal(char) else quote(char, safe="") for char in name)


def _marked(shown: str, meaning: str, ending: str = "", *, limit: int = _COMPONENT_LIMIT) -> str:
    digest = blake2b(_encode(meaning), digest_size=16).hexdigest()
    mark = f"~{digest}{ending}"
    return _cut(shown, limit - len(mark)) + mark


def _cut(text: str, limit: int) -> str:
    """Return the first `limit` bytes of a text without splitting a character or escape."""
    cut = _encode(text)[:limit].decode("utf-8", "ignore")
    return re.sub(r"%[0-9A-F]?\Z", "", cut)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
