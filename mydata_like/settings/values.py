"""The types of values that settings have, and their checks."""

import datetime
import ipaddress
import math
import re
import socket
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin
from urllib.parse import SplitResult, urlsplit

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d\d:\d\d\S*", re.ASCII)


class Range(NamedTuple):
    """A check of a number: the smallest and the largest allowed value."""

    lowest: float
    highest: float

    def __call__(self, number: float) -> float:
        if number < self.lowest:
            raise ValueError(f"must be at least {self.lowest}")
        if number > self.highest:
            raise ValueError(f"must be at most {self.highest}")
        return number


def read_value(annotation: Any, value: object) -> object:
    """Return a plain value checked and as the annotation's type; raises ValueError with the reason.

    Callables in the annotation's metadata are checks: they return the value in its normal form.
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        read = read_value(parts[0], value)
        for check in filter(callable, parts[1:]):
            read = check(read)
        return read
    if origin is UnionType:  # with None
        return None if value is None else read_value(parts[0], value)
    if origin is tuple:
        return _read_list(parts[0], value)
    if origin is Literal:
        return _choose(dict(zip(parts, parts, strict=True)), value)
    if issubclass(annotation, Enum):
        return _choose({member.value: member for member in annotation}, value)
    return _READERS[annotation](value)


def _read_list(member: Any, value: object) -> tuple[object, ...]:
    """Read each member of a list; errors name the number of the member."""
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list, such as ['a', 'b']")
    read, wrong = [], []
    for number, entry in enumerate(value, 1):
        try:
            read.append(read_value(member, entry))
        except ValueError as error:
            wrong.append(f"(entry {number}) {error}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return tuple(read)


def _choose(choices: Mapping[Any, object], value: object) -> object:
    if isinstance(value, str) and value in choices:
        return choices[value]
    *others, last = map(repr, choices)
    raise ValueError(f"must be one of: {', '.join(others)} or {last}")


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _read_whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


def _read_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


def _read_path(value: object) -> Path | None:
    text = _read_text(value)
    return Path(text) if text else None


def _read_date(value: object) -> datetime.date:
    try:
        if isinstance(value, str) and _DATE.fullmatch(value):
            return datetime.date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("must be a date, such as 2026-12-31")


def _read_time(value: object) -> datetime.time:
    try:
        if isinstance(value, str) and _TIME.fullmatch(value):
            return datetime.time.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("must be a time, such as 18:30:00")


_READERS: Final[Mapping[type, Callable[[object], object]]] = MappingProxyType(
    {
        str: _read_text,
        bool: _read_flag,
        int: _read_whole,
        float: _read_number,
        Path: _read_path,
        datetime.date: _read_date,
        datetime.time: _read_time,
    }
)


CIPHERS = (  # those that are allowed, in order of preference
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
    "chacha20-poly1305@openssh.com",
)

DIRECT = "none"  # as a proxy: a direct connection

_DAY = 86_400.0
_YEAR = 365.25 * _DAY
_UNITS = {"day": _DAY, "week": 7 * _DAY, "month": _YEAR / 12, "year": _YEAR}
_AGE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(day|week|month|year)s?", re.ASCII)
_LONGEST_AGE = 1000 * _YEAR
_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)+")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_JUMP = re.compile(
    r"((?P<user>[\w.][\w.-]*)@)?(?P<host>[A-Za-z0-9][\w.-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>\d{1,5}))?",
    re.ASCII,
)
_HOST = re.compile(
    r"([^@\[\]]*@)?(\[(?P<inside>[^@\[\]]+)\]|(?P<name>[^@\[\]:]+))(:(?P<port>\d{1,5}))?", re.ASCII
)
_PORTS = {"http": 80, "https": 443}


def parse_age(text: str) -> float | None:
    """Return the seconds of a text such as `6 months`, None for an empty one.

    A month is a twelfth of a year, a year has 365.25 days. Raises ValueError.
    """
    if not text.strip():
        return None
    match = _AGE.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError('must be a number and a unit, such as "30 days", "2 weeks", "6 months"')
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST_AGE:
        raise ValueError("must be at most 1000 years")
    return seconds


def parse_url(text: str) -> SplitResult:
    """Split an http or https address of a server; raises ValueError with the reason."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError("is not a web address") from None
    if parts.scheme not in _PORTS:
        raise ValueError("must begin with https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or a password")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("must end with the path: no ? and no #")
    if not parts.hostname or port == 0 or re.search(r"[\s\\]", text):
        raise ValueError("names no server")
    return parts


def complete_address(text: str) -> str:
    """Complete a server's address as typed or pasted: add the scheme, remove the path of the API.

    Only an address of this machine becomes unencrypted http. Raises ValueError with the reason.
    """
    address = text.strip()
    if "://" not in address:
        host = urlsplit(f"//{address}").hostname or ""
        address = f"{'http' if is_loopback(host) else 'https'}://{address}"
    address = address.partition("/api/v1")[0].rstrip("/")
    parse_url(address)
    return address


def parse_jump(text: str) -> tuple[str, str, int]:
    """Return user (may be empty), host and port of a text such as `user@host:22`."""
    match = _JUMP.fullmatch(text)
    port = int(match["port"] or 22) if match else 0
    if match is None or not 0 < port < 65_536:
        raise ValueError(
            f"{text[:60]!r} is not a host; write user@host:port, with an IPv6 address in brackets"
        )
    return match["user"] or "", match["host"].strip("[]"), port


def parse_host(text: str) -> tuple[str, int | None]:
    """Return host and port of a text such as `host`, `user@host:22` or `[host]:22`; None for all.

    An IPv6 address needs brackets only before a port.
    """
    match = _HOST.fullmatch(text)
    if match is None and text.count(":") > 1 and not set("[]@").intersection(text):
        return text, None
    port = int(match["port"]) if match and match["port"] else None
    if match is None or (port is not None and not 0 < port < 65_536):
        raise ValueError(f"{text[:60]!r} is not a host; write HOST, HOST:PORT or [ADDRESS]:PORT")
    return match["inside"] or match["name"], port


def server_origin(url: str) -> str:
    """Return scheme, host and port of a URL in normal form: `https://data.example.org`."""
    parts = parse_url(url)
    host = (parts.hostname or "").rstrip(".")
    host = f"[{host}]" if ":" in host else host
    if parts.port in (None, _PORTS[parts.scheme]):
        return f"{parts.scheme}://{host}"
    return f"{parts.scheme}://{host}:{parts.port}"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine, regardless of any name server.

    Other names below `localhost`, or `localhost.`, may be resolved by a name server. An address may
    have any form that `inet_aton` accepts (127.1), or be an IPv4 address mapped into IPv6.
    """
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            address = ipaddress.ip_address(socket.inet_aton(host))
        except (OSError, ValueError):
            return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _check_text(text: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ValueError("must be one line without control characters")
    return text.strip()


def _check_url(text: str) -> str:
    text = _check_text(text)
    if text:
        parse_url(text)
    return text.rstrip("/")


def _check_server_url(text: str) -> str:
    return _check_url(text).partition("/api/v1")[0].rstrip("/")  # as copied from the API


def _check_proxy(text: str) -> str:
    text = _check_text(text)
    if not text or text.lower() == DIRECT:
        return text.lower()
    parts = parse_url(text)
    if parts.path.strip("/"):
        raise ValueError("must end with the port: a proxy has no path")
    return text.rstrip("/")


def _check_email(text: str) -> str:
    text = _check_text(text)
    if text and not _EMAIL.fullmatch(text):
        raise ValueError("must be an e-mail address, such as name@example.org")
    return text


def _check_age(text: str) -> str:
    parse_age(text)
    return text.strip()


def _check_cipher(name: str) -> str:
    if name not in CIPHERS:
        raise ValueError(f"{name[:60]!r} is not allowed; choose from {', '.join(CIPHERS)}")
    return name


def _check_fingerprint(text: str) -> str:
    text = _check_text(text).rstrip("=")
    if not _FINGERPRINT.fullmatch(text):
        raise ValueError("must be a fingerprint as `ssh-keygen -lf` prints it: SHA256:...")
    return text


def _check_jump(text: str) -> str:
    text = _check_text(text)
    parse_jump(text)
    return text


def _check_path(path: Path | None) -> Path | None:
    if path is None:
        return None
    if "\0" in str(path):
        raise ValueError("must not contain a NUL character")
    try:
        path = path.expanduser()
    except RuntimeError:
        raise ValueError("begins with ~ but does not name a known home folder") from None
    if not path.is_absolute():
        raise ValueError("must be an absolute path, including the drive on Windows")
    return path


def once_each(noun: str) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    """Return a check that a list has no duplicates."""

    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(values)) != len(values):
            raise ValueError(f"names a {noun} twice")
        return values

    return check


Line = Annotated[str, _check_text]
Proxy = Annotated[str, _check_proxy]
Url = Annotated[str, _check_url]
ServerUrl = Annotated[str, _check_server_url]
Email = Annotated[str, _check_email]
Age = Annotated[str, _check_age]
Cipher = Annotated[str, _check_cipher]
Fingerprint = Annotated[str, _check_fingerprint]
Jump = Annotated[str, _check_jump]
OptionalPath = Annotated[Path | None, _check_path]
