"""MyData's own file, MyData.cfg: where it lies, what it says, and its API key taken out of it.

It has one section `[MyData]` as Python's ConfigParser writes it. MyData names no encoding when
it writes, so on Windows the file is in the code page of the system.
"""

import locale
import re
import stat
from collections import Counter
from collections.abc import Mapping
from configparser import MissingSectionHeaderError, ParsingError, RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path

from mydata_like.core.errors import SettingsError
from mydata_like.settings.writing import write_private

_LARGEST = 1024 * 1024
_SECTION = "mydata"
_KEY_LINE = re.compile(r"^([ \t]*api_key[ \t]*[=:])[^\r\n]*", re.IGNORECASE | re.MULTILINE)
_BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class LegacyFile:
    """What a MyData.cfg says: texts by key, keys in lower case.

    `repeated` keys are given more than once, and the last one counts; `bad_lines` are numbers
    of lines that are no setting.
    """

    path: Path
    encoding: str
    pairs: Mapping[str, str] = field(repr=False)  # the API key is among them
    repeated: tuple[str, ...]
    bad_lines: tuple[int, ...]


def usual_places(environment: Mapping[str, str], platform: str, home: Path) -> tuple[Path, ...]:
    """Return where MyData keeps its file on a system (`sys.platform`), the likeliest first."""
    if platform == "win32":
        shared, own = environment.get("PROGRAMDATA"), environment.get("LOCALAPPDATA")
        return tuple(
            Path(folder) / "Monash University" / "MyData" / "MyData.cfg"
            for folder in (shared, own)
            if folder
        )
    if platform == "darwin":
        return (home / "Library" / "Application Support" / "MyData" / "MyData.cfg",)
    folder = environment.get("XDG_DATA_HOME") or home / ".local" / "share"
    return (Path(folder) / "MyData" / "MyData.cfg",)


def key_places(config: Path, home: Path) -> tuple[Path, ...]:
    """Return where the SSH key of a MyData with this file may be, the likeliest first."""
    return (home / ".ssh" / "MyData", config.parent / ".ssh" / "MyData")


def read_legacy_file(path: Path, code_page: str = "") -> LegacyFile:
    """Read a MyData.cfg: as UTF-8, else in a code page (the system's own by default).

    Raises SettingsError where it cannot be read or is something else; what single lines say
    is never a reason to raise.
    """
    encoding, text = _decode(path, _load(path), code_page or _system_code_page())
    parser = RawConfigParser(strict=False)
    counts: Counter[str] = Counter()

    def count(name: str) -> str:
        counts[name.lower()] += 1
        return name.lower()

    parser.optionxform = count  # type: ignore[assignment, method-assign]
    bad_lines: tuple[int, ...] = ()
    try:
        parser.read_string(text)
    except MissingSectionHeaderError:
        raise _no_mydata(path) from None
    except ParsingError as error:  # raised when all the other lines are read
        bad_lines = tuple(number for number, _ in error.errors)
    section = next((name for name in parser.sections() if name.lower() == _SECTION), None)
    if section is None:
        raise _no_mydata(path)
    pairs = dict(parser.items(section))
    repeated = tuple(name for name in pairs if counts[name] > 1)
    return LegacyFile(path, encoding, pairs, repeated, bad_lines)


def blank_key(file: LegacyFile) -> None:
    """Take the API key out of the file; every other byte of it stays as it is.

    Raises SettingsError where the file cannot be written.
    """
    text = _load(file.path).decode(file.encoding)
    path = file.path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode)
    # MyData may run as somebody else.
    write_private(path, _KEY_LINE.sub(r"\1", text).encode(file.encoding), mode)


def _load(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        raise SettingsError(
            f"There is no file {path}.", hint="Check the path of MyData.cfg."
        ) from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(content) > _LARGEST:
        raise SettingsError(f"{path} is too large for a MyData.cfg (1 MiB at most).")
    return content


def _decode(path: Path, content: bytes, code_page: str) -> tuple[str, str]:
    """Return the encoding of a file, and its text without a byte order mark."""
    marked = _BYTE_ORDER_MARKS.get(content[:2])
    for encoding in [marked] if marked else ["utf-8", code_page]:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return encoding, text.removeprefix("\ufeff")
    raise SettingsError(
        f"{path} is no text, neither in UTF-8 nor in the code page {code_page}.",
        hint="Open it in a text editor and save it as UTF-8.",
    )


def _system_code_page() -> str:
    """Return the code page of this system; one of Windows where the system has UTF-8."""
    encoding = locale.getencoding()
    return "cp1252" if encoding.lower().replace("-", "") in ("utf8", "ascii") else encoding


def _no_mydata(path: Path) -> SettingsError:
    return SettingsError(
        f"{path} is no MyData.cfg: it has no section [MyData].",
        hint="Name the file in which MyData keeps its settings.",
    )
