"""All fuzz targets: the parsers of external data, with samples and the errors they declare."""

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mydata_like.catalogues.mytardis.client import ResponseClassifier, find_server_address
from mydata_like.catalogues.mytardis.http import HttpResponse
from mydata_like.catalogues.mytardis.serializers import (
    page_parser,
    parse_account,
    parse_datafile,
    parse_dataset,
    parse_experiment,
    parse_facility,
    parse_instrument,
    parse_resources,
    parse_set,
    parse_stats,
)
from mydata_like.catalogues.mytardis.uploader import (
    MachineIdentity,
    UploaderMark,
    build_area,
    parse_approval,
)
from mydata_like.core.commands import parse_command
from mydata_like.core.errors import Problem, UploaderError
from mydata_like.hostos.clock import SystemClock
from mydata_like.hostos.lock import LockHolder
from mydata_like.hostos.logs import parse_line, read_end
from mydata_like.ledger.ledger_file import LockWaiting
from mydata_like.ledger.sqlite_ledger import SqliteLedger
from mydata_like.settings.mydata_cfg import read_legacy_file
from mydata_like.settings.schema import check_values
from mydata_like.settings.settings_file import read_settings_file
from mydata_like.ssh.keys import PublicKey, create_key, known_keys, load_key
from mydata_like.ssh.session import Endpoint
from mydata_like.state.state_files import (
    Heartbeat,
    PendingApproval,
    ServerSettings,
    TimestampStore,
    VisitedFolders,
    load_approval,
    load_deletions,
    load_record,
    read_speed_tests,
    to_plain,
    to_utc,
)
from mydata_like.transfer import tar
from mydata_like.transfer.archive_reader import TarArchives
from mydata_like.transfer.archive_writer import INDEX_HEAD, INDEX_TAIL
from tests.fuzz.hosts import TARGETS as HOST_TARGETS
from tests.fuzz.own import TARGETS as OWN_TARGETS
from tests.fuzz.target import (
    MD5,
    NOW,
    TIME,
    Parse,
    Target,
    load_values,
    of_file,
    of_text,
    plain,
    to_json,
)

# Replies of the server

REPLICA = {"id": 1, "uri": "Set-1/a", "location": "box", "verified": True}
DATAFILE = {
    "id": 7,
    "dataset": "/api/v1/dataset/3/",
    "directory": "sub",
    "filename": "a.dat",
    "size": "12",
    "md5sum": MD5,
    "modification_time": "2026-01-02T03:04:05",
    "replicas": [REPLICA | {"last_verified_time": "2026-01-02T03:04:05.6"}],
}
GROUP = {"id": 4, "name": "managers"}
BOX = {
    "name": "box",
    "options": [{"key": "location", "value": "/data"}],
    "attributes": [
        {"key": "scp_username", "value": "mydata"},
        {"key": "scp_hostname", "value": "host"},
        {"key": "scp_port", "value": "22"},
    ],
}
ROWS: Mapping[str, tuple[Callable[[Any], Any], object]] = {
    "datafiles": (parse_datafile, DATAFILE),
    "datasets": (parse_dataset, {"id": 3, "description": "Set", "dataset_datafile_count": 2}),
    "experiments": (
        parse_experiment,
        {"id": 2, "title": "E", "parameter_sets": [{"parameters": [{"string_value": "x"}]}]},
    ),
    "accounts": (
        parse_account,
        {"id": 5, "username": "u", "first_name": "A", "last_name": "", "groups": [GROUP]},
    ),
    "facilities": (parse_facility, {"id": 6, "name": "F", "manager_group": GROUP}),
    "instruments": (parse_instrument, {"id": 8, "name": "Microscope"}),
    "approvals": (
        lambda row: (found := parse_approval(row)).box and build_area(found.box),
        {
            "id": 9,
            "requester_key_fingerprint": "SHA256:x",
            "approved": True,
            "approver_comments": None,
            "approval_expiry": "2027-01-01T00:00:00",
            "approved_storage_box": BOX,
        },
    ),
}
ANSWERS: Mapping[str, tuple[Callable[[Any], Any], object]] = {
    "resources": (parse_resources, {"dataset": {"list_endpoint": "/api/v1/dataset/"}}),
    "statistics": (parse_stats, {"success": True, "files": {"total": 3, "verified": 2}}),
    "sets": (parse_set, {"objects": [DATAFILE]}),
}


def _server(name: str, parse: Callable[[Any], Any], answer: object) -> Target:
    meaning = ResponseClassifier("server", "secret")
    headers = {"Content-Type": "application/json"}
    return Target(
        name=f"server {name}",
        samples=(to_json(answer),),
        open=plain(lambda data: meaning.decode(HttpResponse(200, headers, data), parse)),
        declared=(UploaderError,),
        has_json=True,
    )


def _list_server() -> list[Target]:
    pages = [
        _server(name, page_parser(parse), {"meta": {"total_count": 1}, "objects": [row]})
        for name, (parse, row) in ROWS.items()
    ]
    return pages + [_server(name, parse, answer) for name, (parse, answer) in ANSWERS.items()]


def _read_reply(data: bytes) -> object:
    """Classify an error reply made of lines: status, two headers and a body."""
    status, after, location, body = (*data.split(b"\n", 3), b"", b"", b"")[:4]
    target = location.decode("latin-1")
    headers = {"Retry-After": after.decode("latin-1"), "Location": target}
    find_server_address(target)
    code = int(status) if status.isdigit() and len(status) == 3 else 503
    return ResponseClassifier("server", "secret").check(HttpResponse(code, headers, body), (200,))


# Archives


def _build_archive(*lines: bytes) -> bytes:
    """Return an archive with these lines in its index."""
    content = b"12345"
    index = INDEX_HEAD + b",\n".join(lines) + INDEX_TAIL
    parts = [
        part
        for name, data in ((b"a", content), (b"x.index.json", index))
        for part in (tar.header(name, len(data), 0), data, tar.padding(len(data)))
    ]
    return b"".join(parts) + tar.END


MEMBER = {
    "name": "a",
    "size": 5,
    "modified_ns": 1,
    "offset": 512,
    "md5": "827ccb0eea8a706c4c34a16891f84e7b",
}


# Keys

KEY = b"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHHtLc6qWGHAfzTTOPGFJjdnYbaQhQKQ6GVrZ1KkQ0Lk x"


def _read_known_hosts(path: Path) -> object:
    return known_keys(Endpoint("host", 22, "user", path, path))


def _private_keys() -> tuple[bytes, ...]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "key"
        create_key(path)
        return path.read_bytes(), KEY


# Files of ours that the user or another program may have changed

SETTINGS = b"""
[server]
url = "https://host/"
[data]
directory = "/data"
settle_seconds = 10
[filters]
exclude = ["*.tmp", "~*"]
[schedule]
kind = "weekly"
"""
LEGACY = b"""[MyData]
username = me
instrument_name = Microscope
max_upload_threads = 5
scheduled_date = 2016-01-01
timer_minutes = 15
use_excludes_file = True
excludes_file = C:\\Excludes.txt
"""
AWAITED = to_plain(
    PendingApproval("SHA256:x", NOW, Problem("a.code", "What happened.", "What to do."))
)


def _check_settings(data: bytes) -> object:
    """Check values of settings from a server."""
    values = load_values(data)
    return check_values(values)[0] if isinstance(values, dict) else None


def _open_ledger(folder: Path) -> Parse:
    path = folder / "ledger.sqlite"

    def parse(data: bytes) -> object:
        for old in folder.iterdir():
            old.unlink()
        path.write_bytes(data)
        path.chmod(0o600)
        with SqliteLedger.open(
            path, b"/data", SystemClock(), waiting=LockWaiting(seconds=0.1, patience=0.1)
        ) as ledger:
            ledger.find_runs()
            ledger.find_sources()
            ledger.find_replacements()
            return ledger.measure_risk()

    return parse


def _ledgers() -> tuple[bytes, ...]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        SqliteLedger.open(path, b"/data", SystemClock()).close()
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return (path.read_bytes(),)


def _list_all() -> list[Target]:
    ours = (UploaderError,)
    return [
        *_list_server(),
        Target(
            name="server errors",
            samples=(b"200\n\n\n{}",),
            others=(
                b"503\n120\nhttps://host/api/v1/\n<html>busy</html>",
                b"302\n\nhttps://h/api/v1/x\n",
            ),
            open=plain(_read_reply),
            declared=ours,
        ),
        Target(
            name="server times",
            samples=(b"2026-01-02T03:04:05.678901", b"2026-01-02 03:04:05+00:00"),
            open=of_text(lambda text: to_utc(text, 36000.0)),
        ),
        Target(
            name="uploader marks",
            samples=(UploaderMark(frozenset("a"), "me", "pc").format().encode(),),
            open=of_text(UploaderMark.parse),
            has_json=True,
        ),
        Target(
            name="uploader seats",
            samples=(MachineIdentity.of("u", "pc", "s", ["m"]).format(NOW).encode(),),
            open=of_text(MachineIdentity.parse),
            has_json=True,
        ),
        Target(
            name="lock holders",
            samples=(LockHolder.here(SystemClock()).format().encode(),),
            open=plain(LockHolder.parse),
            has_json=True,
        ),
        Target(
            name="archives",
            samples=(_build_archive(to_json(MEMBER)),),
            open=plain(lambda data: TarArchives().read_index([data])),
            declared=ours,
        ),
        Target(
            name="archive indexes",
            samples=(to_json(MEMBER),),
            open=plain(lambda data: TarArchives().read_index([_build_archive(data)])),
            declared=ours,
            has_json=True,
        ),
        Target(
            name="known hosts",
            samples=(b"host " + KEY + b"\n",),
            others=(
                b"@cert-authority *.x " + KEY,
                b"|1|c2FsdA==|aGFzaA== " + KEY,
            ),
            open=of_file(_read_known_hosts),
        ),
        Target(
            name="public keys",
            samples=(KEY,),
            open=of_text(PublicKey.parse),
            declared=(ValueError,),
        ),
        Target(
            name="private keys",
            samples=_private_keys(),
            open=of_file(load_key),
            declared=ours,
        ),
        Target(
            name="settings files",
            samples=(SETTINGS,),
            open=of_file(read_settings_file),
            declared=ours,
        ),
        Target(
            name="settings of servers",
            samples=(to_json({"server.url": "https://h/", "filters.excludes": ["*.tmp"]}),),
            open=plain(_check_settings),
            has_json=True,
        ),
        Target(
            name="MyData.cfg",
            samples=(LEGACY, LEGACY.decode().encode("utf-16")),
            open=of_file(read_legacy_file),
            declared=ours,
        ),
        Target(
            name="engine commands",
            samples=(b'{"command": "start", "id": 1}', b'{"command": "pause"}'),
            open=plain(parse_command),
            has_json=True,
        ),
        Target(
            name="kept server settings",
            samples=(
                to_json(
                    {
                        "texts": {"a": "b"},
                        "updated": "2026-01-02T03:04:05",
                        "changed_at": TIME,
                        "seen_at": TIME,
                        "offset": 36000.0,
                    }
                ),
            ),
            open=of_file(lambda path: load_record(path, ServerSettings)),
            has_json=True,
        ),
        Target(
            name="standing",
            samples=(to_json({"told": "x", "told_at": TIME, "awaited": AWAITED, "let_in": ""}),),
            open=of_file(load_approval),
            has_json=True,
        ),
        Target(
            name="moments",
            samples=(to_json({"run": "2026-01-02T03:04:05+00:00"}),),
            open=of_file(lambda path: TimestampStore(path).find("run")),
            has_json=True,
        ),
        Target(
            name="heartbeat",
            samples=(to_json(to_plain(Heartbeat(NOW, 1, "0.1.0", "waiting", NOW, NOW))),),
            open=of_file(lambda path: load_record(path, Heartbeat)),
            has_json=True,
        ),
        Target(
            name="deletion log",
            samples=(to_json({"at": TIME, "path": "/a", "md5": MD5, "deleted": True}) + b"\n",),
            open=of_file(load_deletions),
            declared=ours,
        ),
        Target(
            name="visited folders",
            samples=(to_json({"at": TIME, "folder": "a/b"}) + b"\n",),
            open=of_file(lambda path: VisitedFolders(path, SystemClock()).find(NOW)),
            declared=ours,
        ),
        Target(
            name="speed tests",
            samples=(b'{"at": "2026-01-02T03:04:05+00:00", "limit": "disk"}\n',),
            open=of_file(read_speed_tests),
        ),
        Target(
            name="log lines",
            samples=(b"2026-01-02 03:04:05,678 INFO main mydata_like.engine: A run begins\n",),
            open=of_file(
                lambda path: [parse_line(it, "") for it in read_end(path, 500).split("\n")]
            ),
        ),
        Target(
            name="ledger files",
            samples=_ledgers(),
            open=_open_ledger,
            declared=ours,
            slow=True,
        ),
    ]


TARGETS: Mapping[str, Target] = {
    target.name: target for target in (*_list_all(), *HOST_TARGETS, *OWN_TARGETS)
}
