"""What all ways back have in common: content is read together, alone, and from an offset on.

Also what a local folder makes of it: a file has the bytes that are wanted, or none.

Those to hosts (libssh, paramiko, SFTP) and folders have further tests in `test_destination_files`.
"""

import os
import stat
from contextlib import ExitStack, closing
from hashlib import md5
from random import Random

import pytest

from mydata_like.app.host_login import SHELL
from mydata_like.app.mytardis_place import RecordFiles, StagedFiles, StoredAt
from mydata_like.app.receiving import SessionReceiver
from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Server
from mydata_like.ssh.connect import connect
from mydata_like.transfer.folder.mounted_files import LocalFiles
from mydata_like.transfer.folder.received_files import ReceivedFiles, WantedFile
from mydata_like.transfer.s3.bucket_files import BucketFiles
from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from mydata_like.transfer.s3.s3_transport import NewObjects
from mydata_like.transfer.ssh.host_files import HostFiles
from mydata_like.transfer.ssh.sftp_files import SftpFiles
from tests.embedded import Api, staged
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET
from tests.privileges import needs_bytes
from tests.s3_service import SERVICES, open_service
from tests.site import yield_processor
from tests.sshd_fixture import endpoint_of, needs_sshd, sftp_only, sshd_with

pytestmark = [needs_bytes, needs_sshd]

ODD = (
    "a b",
    "new\nline",
    "back\\slash",
    "-rf",
    "it's",
    "zwölf 日本",
    "x" * 200,
    "$(id)",
    "%20",
    "#",
)
LARGE = Random(1).randbytes(3_000_000)
CONTENT = {f"odd/{it}": it.encode() * 50 for it in ODD} | {"empty": b"", "large": LARGE}
CONTENT["zeros"] = b"x" + bytes(2_000_000) + b"x"
TIME = 1_600_000_000 * 10**9
# What is wanted instead of what is there: bytes that were changed, or cut off, or are too many.
DAMAGED = {
    "other": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "truncated": lambda content: content + b"more",
    "longer": lambda content: content[:-1],
}
PATHS = [os.fsencode(it) for it in CONTENT]
WAYS = ("libssh", "paramiko", "SFTP", "SFTP with paramiko", "folder", "S3", "HTTP", "staging host")


def open_folder(way, folder, stack):
    """Return the files of a folder, on a host or mounted."""
    for path, content in CONTENT.items():
        (folder / "there" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "there" / path).write_bytes(content)
        (folder / "there" / path).chmod(0o640)
        os.utime(folder / "there" / path, ns=(TIME, TIME))
    there = os.fsencode(folder / "there")
    if way == "folder":
        return LocalFiles(there)
    options = sftp_only() if "SFTP" in way else ()
    sshd = stack.enter_context(sshd_with(folder, *options))
    (folder / "keys").mkdir()
    library = "paramiko" if "paramiko" in way else "libssh"
    endpoint = endpoint_of(sshd, folder / "keys", stack=library)
    if "SFTP" in way:
        return SftpFiles(lambda: connect(endpoint), there)
    return HostFiles(lambda: (connect(endpoint), SHELL), there)


def open_bucket(folder, stack):
    """Return the objects of a bucket."""
    service = stack.enter_context(open_service(SERVICES[0], folder))
    bucket = Bucket(name=BUCKET, endpoint=service.url, prefix="raw", access_key=ACCOUNT)
    client = stack.enter_context(closing(open_client(bucket, SECRET, S3Options(connections=4))))
    for path, content in CONTENT.items():
        client.put_object(Bucket=BUCKET, Key=bucket.key(path), Body=content)
    return BucketFiles(client, bucket, NewObjects({}, conditional=True))


def open_server(way, folder, stack):
    """Return the files of a server; half of them are also on its staging host."""
    server = stack.enter_context(EmbeddedServer(folder / "server", verify_delay=0.01))
    api = stack.enter_context(Api(server))
    api.prepare()
    stored = {}
    for number, (path, content) in enumerate(CONTENT.items(), 1):
        api.put_file(f"own/{number}", content)
        sums = {"md5sum": md5(content).hexdigest(), "size": len(content)}
        made = api.post("mydata_dataset_file/", json=staged(f"{number}", **sums))
        assert made.status_code == 201, made.text
        listed = api.get("mydata_dataset_file/?format=json&limit=0").json()["objects"]
        ids = {it["filename"]: it["id"] for it in listed}
        stored[os.fsencode(path)] = StoredAt(ids[f"{number}"], len(content))
    while not all(it.verified for it in server.datafiles()):
        yield_processor()
    stored[b"missing"] = StoredAt(999, 5)
    settings = Server(url=server.url, username=server.username)
    client = ApiClient(settings, server.api_key, SystemClock(), CancelFlag())
    if way == "HTTP":
        return RecordFiles(client, stored)
    host = open_folder("libssh", folder, stack)
    for path in PATHS[::2]:
        (folder / "there" / os.fsdecode(path)).unlink()
    return StagedFiles(client, stored, host, {path: path for path in [*PATHS, b"missing"]})


@pytest.fixture(params=WAYS)
def files(request, tmp_path):
    folder, way = tmp_path, request.param
    with ExitStack() as stack:
        if way == "S3":
            files = open_bucket(folder, stack)
        elif way in ("HTTP", "staging host"):
            files = open_server(way, folder, stack)
        else:
            files = open_folder(way, folder, stack)
        yield stack.enter_context(closing(files))


def read(files, path, offset=0):
    with files.open_content(os.fsencode(path), offset) as content:
        return content and b"".join(content.pieces)


def test_each_file_is_read_alone(files):
    assert {path: read(files, path) for path in CONTENT} == CONTENT


def test_files_that_are_read_together_have_their_own_bytes(files):
    small = [path for path in PATHS if path not in (b"large", b"zeros")]

    together = [(it.path, b"".join(it.pieces)) for it in files.open_contents([*small, b"missing"])]

    assert len(dict(together)) == len(together)
    assert set(together) <= {(os.fsencode(path), content) for path, content in CONTENT.items()}


def test_a_file_is_read_from_an_offset_on(files):
    for offset in (0, 1, 65_536, len(LARGE) - 1, len(LARGE)):
        assert read(files, "large", offset) == LARGE[offset:]


def test_what_is_missing_is_none_and_others_follow(files):
    assert read(files, "missing") is None
    assert read(files, "odd/-rf") == CONTENT["odd/-rf"]


def test_reading_can_end_early_and_others_follow(files):
    with files.open_content(b"large") as content:
        assert LARGE.startswith(next(content.pieces))

    assert read(files, "odd/a b") == CONTENT["odd/a b"]


class Arrived:
    """What arrives; `fetched` bytes were not here before."""

    def __init__(self):
        self.problems = {}
        self.fetched = 0

    def move(self, size, *, waits):
        self.fetched += size * waits

    def settle(self, file, problem):
        self.problems[os.fsdecode(file.path)] = problem and problem.code


def want(path, content):
    name = os.fsencode(path)
    return WantedFile(name, b"run/" + name, len(content), md5(content).hexdigest(), TIME)


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here"


@pytest.fixture
def receive(files, here):
    """Return what receives files by their paths and the bytes that they are to have."""
    target = ReceivedFiles(os.fsencode(here))
    target.open(create=True)

    def receive(wanted, *, replace=False, sparse=False):
        arrived = Arrived()
        receiver = SessionReceiver(files, target, CancelFlag(), replace, sparse)
        receiver.receive([want(*it) for it in wanted.items()], arrived, again=False)
        return arrived

    return receive


def found_in(folder):
    return {
        str(it.relative_to(folder)): it.read_bytes() for it in folder.rglob("*") if it.is_file()
    }


def test_files_get_their_names_with_their_bytes_times_and_modes(receive, here, files):
    arrived = receive(CONTENT)

    seen = [(here / "run" / path).stat() for path in CONTENT]
    mode = 0o666 & ~ReceivedFiles(b"").umask
    if isinstance(files, HostFiles | SftpFiles | LocalFiles):
        mode = 0o640
    assert found_in(here / "run") == CONTENT
    assert arrived.problems == dict.fromkeys(CONTENT)
    assert {(it.st_mtime_ns, stat.S_IMODE(it.st_mode)) for it in seen} == {(TIME, mode)}


@pytest.mark.parametrize("damage", DAMAGED)
def test_other_bytes_get_no_name_and_leave_nothing(receive, here, damage):
    victims = ("odd/-rf", "odd/a b", "large")
    changed = {path: DAMAGED[damage](CONTENT[path]) for path in victims}

    arrived = receive(CONTENT | changed)

    wrong = {path: code for path, code in arrived.problems.items() if code}
    assert wrong == dict.fromkeys(victims, "destination.differs")
    assert (
        found_in(here / "run").items()
        == {it: CONTENT[it] for it in CONTENT.keys() - victims}.items()
    )


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_what_an_earlier_attempt_has_left_is_continued_and_compared(receive, here, right):
    part = here / os.fsdecode(want("large", LARGE).part)
    part.parent.mkdir(parents=True)
    part.write_bytes(LARGE[:2_000_000] if right else bytes(2_000_000))

    arrived = receive({"large": LARGE})

    assert found_in(here / "run") == {"large": LARGE}
    assert (arrived.fetched < 1_100_000) is right


def test_another_file_is_replaced_only_on_request(receive, here):
    names = ("large", "odd/-rf")
    mine = {it: b"mine" for it in names}
    (here / "run" / "odd").mkdir(parents=True)
    for path in names:
        (here / "run" / path).write_bytes(b"mine")

    refused = receive({it: CONTENT[it] for it in names})
    after = found_in(here / "run")
    replaced = receive({it: CONTENT[it] for it in names}, replace=True)

    assert refused.problems == dict.fromkeys(names, "destination.occupied")
    assert after == mine
    assert replaced.problems == dict.fromkeys(names)
    assert found_in(here / "run") == {it: CONTENT[it] for it in names}


@pytest.mark.parametrize("sparse", [True, False])
def test_zeros_become_holes_only_on_request(receive, here, sparse):
    receive({"zeros": CONTENT["zeros"]}, sparse=sparse)

    there = here / "run" / "zeros"
    assert there.read_bytes() == CONTENT["zeros"]
    assert (there.stat().st_blocks * 512 < 1_000_000) is sparse
