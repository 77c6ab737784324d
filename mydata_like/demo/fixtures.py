"""The initial data of an embedded server, and the sample files."""

import os
import random
import secrets
import time
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mydata_like.demo.context import DEFAULT_BOX
from mydata_like.demo.database import Database
from mydata_like.demo.server_clock import ServerClock
from mydata_like.demo.uploaders import STAGING_BOX, ScpAddress, set_address

ACCOUNT = "demo"
FACILITY = "Demo Facility"
MANAGERS = "Demo Facility Managers"
LAB = "lab-a"
PERMITTED = "mydata-default-permissions"


class DemoUser(NamedTuple):
    """A user to add; `permitted` gives the model permissions that an uploader's account needs."""

    username: str
    email: str
    full_name: str = ""
    groups: Iterable[str] = ()
    permitted: bool = False
    superuser: bool = False


def fill(store: Database, times: ServerClock, directory: Path) -> None:
    """Add the initial records to an empty database; leave any other unchanged."""
    if store.row("SELECT 1 FROM user"):
        return
    with store.transaction():
        for name in (MANAGERS, LAB, "Other Managers", PERMITTED):
            store.insert("group", name=name)
        boxes = {
            DEFAULT_BOX: directory / "store",
            STAGING_BOX: directory / "staging",
            f"local box at {directory / 'receiving'}": directory / "receiving",
        }
        for name, location in boxes.items():
            location.mkdir(parents=True, exist_ok=True)
            store.insert("box", name=name, location=str(location))
        set_address(store, ScpAddress("mydata", "127.0.0.1", 22))
        now = times.now()
        for name, group in ((FACILITY, 1), ("Other Facility", 3)):
            store.insert("facility", name=name, manager_group=group, created=now, modified=now)
        for user in (
            DemoUser(
                ACCOUNT, "demo@example.org", "Demo Account", [MANAGERS, PERMITTED], permitted=True
            ),
            DemoUser("admin", "admin@example.org", "Ada Admin", superuser=True),
            DemoUser("alice", "alice@example.org", "Alice Liddell", [LAB]),
            DemoUser("bob", "bob@example.org", "Bob Roberts", [LAB]),
            DemoUser("visitor", "visitor@example.org", "Vic Visitor"),
        ):
            add_user(store, user)


def add_user(store: Database, user: DemoUser) -> str:
    """Add a user who is a member of existing groups; return their API key."""
    key = secrets.token_hex(20)
    first, _, last = user.full_name.partition(" ")
    number = store.insert(
        "user",
        username=user.username,
        email=user.email,
        first_name=first,
        last_name=last,
        api_key=key,
        superuser=user.superuser,
        permitted=user.permitted,
    )
    for name in user.groups:
        store.change(
            'INSERT INTO membership SELECT ?, id FROM "group" WHERE name = ?', number, name
        )
    return key


MEBIBYTE = 1 << 20
_AGE = 3600 * 24  # seconds; so that no setting excludes the files or folders as too new
_ODD_NAMES = (
    "with spaces in the name.txt",
    "quote ' and \" and `tick`.txt",
    "dollar $(HOME) & more; rest.txt",
    "100% done.txt",
    "emoji \N{MICROSCOPE} \N{DNA DOUBLE HELIX}.txt",
    "\u6f22\u5b57.txt",
    unicodedata.normalize("NFC", "r\u00e9sum\u00e9 nfc.txt"),
    unicodedata.normalize("NFD", "r\u00e9sum\u00e9 nfd.txt"),
    "-rf",
    ".hidden",
    "no extension",
)


def make_samples(directory: Path, *, tiny_files: int = 300, large: int = 64 * MEBIBYTE) -> None:
    """Write sample data below a directory; `large` is the size of the two large files in bytes."""
    chance = random.Random(20240501)  # noqa: S311 - the same data every time
    for path, content in _small_files(chance, tiny_files):
        _write(directory / path, content)
    _write_large(directory / "alice" / "Tomogram 7" / "volume.raw", chance, large)
    _write_sparse(directory / "bob" / "Long run" / "sparse.dat", chance, large)
    _age(directory, chance)


def _small_files(chance: random.Random, tiny_files: int) -> Iterator[tuple[str, bytes]]:
    for index in range(tiny_files):
        folder = f"alice/Cell count 2024-05-01/well {index % 12:02d}/field {index % 5}"
        yield f"{folder}/image_{index:05d}.tif", chance.randbytes(chance.randrange(100, 6000))
    for name in _ODD_NAMES:
        if os.name == "nt" and '"' in name:
            continue  # not allowed on Windows
        yield f"bob/Odd names \N{GREEK SMALL LETTER MU}m/{name}", name.encode()
    yield "bob/Odd names \N{GREEK SMALL LETTER MU}m/a b/\u00fcn\u00ef/deep.txt", b"deep"
    yield "bob/Odd names \N{GREEK SMALL LETTER MU}m/empty.dat", b""
    yield "alice/Tomogram 7/log/acquisition.log", b"angle,exposure\n" * 200
    for index in range(8):
        yield f"bob/Long run/part_{index}.csv", chance.randbytes(50_000).hex().encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_large(path: Path, chance: random.Random, size: int) -> None:
    """Write bytes that cannot be compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for start in range(0, size, MEBIBYTE):
            file.write(chance.randbytes(min(MEBIBYTE, size - start)))


def _write_sparse(path: Path, chance: random.Random, size: int) -> None:
    """Write a sparse file with up to 1 MiB of data near its middle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.seek(size // 2)
        file.write(chance.randbytes(min(MEBIBYTE, size // 4)))
        file.truncate(size)


def _age(directory: Path, chance: random.Random) -> None:
    """Set the times of files and folders to more than a day ago, folders last."""
    newest = time.time() - _AGE
    for path in sorted(directory.rglob("*"), key=lambda path: -len(path.parts)):
        modified = newest - chance.randrange(3600)
        os.utime(path, (modified, modified))
