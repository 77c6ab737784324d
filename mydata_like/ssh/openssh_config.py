"""The options that OpenSSH's client configuration sets for a host (ssh_config(5)).

Paramiko's `SSHConfig` runs the commands of `Match exec`, ignores `Include`, and takes the home
folder from the environment. This module runs nothing.
"""

import os
import re
import shlex
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import load_limited

INVALID: Final = "ssh.config"
_LARGEST: Final = 1024 * 1024  # bytes of one file
_DEEPEST: Final = 16  # files that include one another, as in OpenSSH
_LINE: Final = re.compile(r"\s*([A-Za-z0-9]+)(?:\s*=\s*|\s+|$)(.*)", re.DOTALL)
_TOKEN: Final = re.compile(r"%(.)|\$\{(\w+)\}", re.DOTALL)
_WRITABLE_BY_OTHERS: Final = 0o022


class HostQuery(NamedTuple):
    """A host as the user names it, and who asks; `username` is empty if it is not given."""

    host: str
    username: str
    local_user: str
    home: Path


class HostOptions:
    """The options of a host by their names in lower case; the first value of each counts.

    `notes` are sentences on what was not evaluated.
    """

    def __init__(self, query: HostQuery, files: Sequence[Path]) -> None:
        """Read the files in this order; raises `SettingsError` if one is invalid or unreadable."""
        self.query = query
        self.notes: list[str] = []
        self.identity_files: list[str] = []
        self._values: dict[str, list[str]] = {}
        self._has_final = False
        for final in (False, True):
            for file in files:
                self._read(file, final=final, depth=0, folder=file.parent)
            if not self._has_final:
                break

    def find(self, keyword: str) -> str | None:
        """Return the first argument of an option; None if it is not set."""
        values = self._values.get(keyword)
        return values[0] if values else None

    def find_all(self, keyword: str) -> list[str] | None:
        """Return all arguments of an option; None if it is not set."""
        return self._values.get(keyword)

    def find_path(self, keyword: str) -> str | None:
        """Return an option's only argument, which may contain spaces."""
        values = self._values.get(keyword)
        return " ".join(values) if values else None

    @property
    def host(self) -> str:
        """The host's name or address, in lower case as in OpenSSH."""
        name = self.find("hostname") or self.query.host
        found = _TOKEN.sub(lambda it: {"h": self.query.host, "%": "%"}.get(it[1], it[0]), name)
        return found.lower()

    @property
    def username(self) -> str:
        return self.query.username or self.find("user") or self.query.local_user

    def expand(self, text: str, port: int, environment: Mapping[str, str]) -> str:
        """Return a value with its tokens, variables and a leading `~/` expanded; others stay."""
        computer = socket.gethostname()
        tokens = {
            "%": "%",
            "d": str(self.query.home),
            "h": self.host,
            "k": self.find("hostkeyalias") or self.query.host,
            "l": computer,
            "L": computer.partition(".")[0],
            "n": self.query.host,
            "p": str(port),
            "r": self.username,
            "u": self.query.local_user,
        }

        def replace(match: re.Match[str]) -> str:
            if match[2]:
                return environment.get(match[2], match[0])
            return tokens.get(match[1], match[0])

        if text == "~" or text.startswith("~/"):
            text = "%d" + text[1:]
        return _TOKEN.sub(replace, text)

    def _read(self, file: Path, *, final: bool, depth: int, folder: Path) -> None:
        """Read one file; files that it includes are relative to `folder`."""
        active = True
        for number, keyword, rest in _read_lines(file):
            try:
                arguments = _split(rest)
            except ValueError as error:
                raise _invalid(file, number, str(error)) from error
            if not arguments:
                raise _invalid(file, number, f"{keyword} has no value")
            match keyword:
                case "host":
                    active = _matches_list(self.query.host, arguments)
                case "match":
                    active = self._matches(arguments, f"{file}, line {number}", final=final)
                case _ if not active:
                    pass
                case "include":
                    if depth == _DEEPEST:
                        raise _invalid(file, number, "too many files include one another")
                    for included in self._find_included(arguments, folder):
                        self._read(included, final=final, depth=depth + 1, folder=folder)
                case "identityfile":
                    name = " ".join(arguments)
                    if name not in self.identity_files:
                        self.identity_files.append(name)
                case _:
                    self._values.setdefault(keyword, arguments)

    def _find_included(self, names: Sequence[str], folder: Path) -> Iterator[Path]:
        for name in names:
            pattern = str(self.query.home) + name[1:] if name.startswith("~/") else name
            path = folder / pattern
            yield from sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))

    def _matches(self, arguments: list[str], where: str, *, final: bool) -> bool:
        """Return whether all criteria of a `Match` are met; those not evaluated are not."""
        found = True
        words = iter(arguments)
        for word in words:
            negated = word.startswith("!")
            kind, _, value = word.removeprefix("!").partition("=")
            kind = kind.lower()
            if kind == "all":
                continue
            if kind in ("final", "canonical"):
                self._has_final = self._has_final or kind == "final"
                met = final and kind == "final"
            else:
                value = value or next(words, "")
                subject = self._find_subject(kind)
                if subject is None:
                    note = f"{where}: a Match with {kind} is not evaluated, so it does not apply."
                    if note not in self.notes:
                        self.notes.append(note)
                    return False
                met = _matches_list(subject, value.lower().split(","))
            found = found and met != negated
        return found

    def _find_subject(self, kind: str) -> str | None:
        """Return what a criterion of `Match` is about; None if it is not evaluated."""
        match kind:
            case "host":
                return self.host
            case "originalhost":
                return self.query.host.lower()
            case "user":
                return self.username.lower()
            case "localuser":
                return self.query.local_user.lower()
            case _:
                return None


def matches_pattern(text: str, pattern: str) -> bool:
    """Return whether text matches a pattern with the wildcards `*` and `?`."""
    wild = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(wild, text, re.DOTALL) is not None


def _matches_list(text: str, patterns: Sequence[str]) -> bool:
    """Return whether text matches a pattern of a list, and none that is negated by `!`."""
    if any(matches_pattern(text, it[1:]) for it in patterns if it.startswith("!")):
        return False
    return any(matches_pattern(text, it) for it in patterns if not it.startswith("!"))


def _read_lines(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield number, keyword in lower case and the rest of each line that sets something."""
    try:
        content = load_limited(file, _LARGEST)
        _require_safe(file)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"The SSH configuration {file} cannot be read: {reason}.",
            hint="Fix its permissions, or move it away.",
            code=INVALID,
        ) from error
    for number, line in enumerate(content.decode("utf-8", "surrogateescape").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.match(line.strip())
        if found is None:
            raise _invalid(file, number, "it does not begin with the name of an option")
        yield number, found[1].lower(), found[2]


def _require_safe(file: Path) -> None:
    """Raise `SettingsError` if others can write the file, as OpenSSH does."""
    if os.name != "posix":
        return
    status = file.stat()
    if status.st_uid in (0, os.getuid()) and not status.st_mode & _WRITABLE_BY_OTHERS:
        return
    raise SettingsError(
        f"The SSH configuration {file} can be changed by other users.",
        hint=f"OpenSSH refuses it as well. Restrict its permissions: chmod 600 {file}",
        code=INVALID,
    )


def _split(rest: str) -> list[str]:
    """Split the arguments of a line, up to a comment; raises ValueError."""
    words = shlex.shlex(rest, posix=True)
    words.whitespace_split = True
    words.commenters = ""
    words.escape = "\\" if "\\ " in rest or '\\"' in rest else ""  # others are kept, as on Windows
    arguments = []
    for word in words:
        if word.startswith("#"):
            break
        arguments.append(word)
    return arguments


def _invalid(file: Path, number: int, reason: str) -> SettingsError:
    return SettingsError(
        f"The SSH configuration {file} is invalid in line {number}: {reason}.",
        hint="Correct the line. `ssh -G HOST` shows how OpenSSH reads the configuration.",
        code=INVALID,
    )
