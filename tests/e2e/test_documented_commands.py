"""Every command that the documentation shows does what it says, typed as it is shown."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from mydata_like.cli.main import build_app
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.fixtures import FACILITY
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.ssh.keys import PublicKey, create_key
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, ObjectServer
from tests.life import MYDATA, UUID
from tests.s3_service import open_service
from tests.sshd_fixture import needs_sshd

app = build_app()

pytestmark = [pytest.mark.e2e, needs_sshd]

ROOT = Path(__file__).parents[2]
FIRST = ROOT / "README.md"  # sets up what the others need
TEXTS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [page for page in TEXTS if "```sh\n" in page.read_text(encoding="utf-8")]
SET_KEY = 'printf "%s\\n" "$KEY" | mydata-like settings set-key --stdin --store file'
# What asks the user, opens a window, never ends on its own, changes the computer or takes minutes.
INSTEAD = {
    "mydata-like": "mydata-like gui --help",  # tests/gui opens it
    "mydata-like doctor": "mydata-like doctor --quick",
    "mydata-like doctor --apply": "mydata-like doctor --help",
    "mydata-like doctor --apply --latest": "mydata-like doctor --help",
    "mydata-like doctor --events": "mydata-like doctor --help",
    "mydata-like doctor --anyway": "mydata-like doctor --help",
    "mydata-like doctor --json": "mydata-like doctor --help",
    "mydata-like pause": "mydata-like pause --help",  # needs a run, see test_commands
    "mydata-like resume": "mydata-like resume --help",
    "mydata-like stop": "mydata-like stop --help",
    "mydata-like register --wait": "mydata-like register",
    "mydata-like settings set-key": SET_KEY,
    "mydata-like settings import": "mydata-like settings import --key-store file",
    "mydata-like watch": "mydata-like watch --events --attended </dev/null",
    "mydata-like watch --install": "mydata-like watch --print",
}
ARCHIVE = "raw-d46da448-0001.tar"
PATIENCE = 120.0


def shown(page: Path) -> list[str]:
    """Return the lines that a page wants typed, without what explains them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = [re.sub(r"\s+# .*", "", line) for block in blocks for line in block.splitlines()]
    return [line.removeprefix(".venv/bin/") for line in lines if not line.startswith("# ")]


class Reader:
    """A user who types the commands of the pages, on a computer of their own, with a server."""

    def __init__(
        self, folder: Path, server: EmbeddedServer, sshd: PrivateSshd, objects: ObjectServer
    ) -> None:
        self.folder = folder
        self._objects = objects
        self._server = server
        self._sshd = sshd
        self._data = folder / "data"
        self._names = {
            "https://mytardis.example.org": server.url,
            "facility-account": server.username,
            "My Facility": FACILITY,
            "/data/microscope": str(self._data),
            "/data/confocal": str(self._data),
            "explain KEY": "explain server.url",
            "you@storage.example.org:archive": f"storage.example.org:{folder}/archive",
            "ann@storage.example.org:/archive": f"storage.example.org:{folder}/archive",
            "cd /archive": f"cd {folder}/archive",
            "s3://archive/lab-1": f"s3://{BUCKET}/lab-1",
            "dataset:12": "dataset:1",
            "experiment:3": "experiment:1",
        }
        self._write("Scan 0/notes.txt")
        (folder / "FOLDER").mkdir()
        (folder / "FOLDER" / "notes.txt").write_bytes(os.urandom(1000))
        self._know_host()

    def read(self, page: Path) -> None:
        """Type all that a page shows; it must do what it should."""
        for line in shown(page):
            self.type(line)

    def type(self, line: str) -> None:
        for there, here in self._names.items():
            line = line.replace(there, here)
        if line.startswith("make "):
            line = line.replace("make ", f"make -C {ROOT} -n ")
        if line.startswith("python "):
            assert_known(shlex.split(line))
            return
        line = INSTEAD.get(line, line)
        ended = subprocess.run(
            ["/bin/sh", "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            cwd=self.folder,
            env=self._environment,
            check=False,
        )
        if line == "mydata-like register" and ended.returncode == 3:
            self._approve()
        else:
            assert ended.returncode == 0, f"{line}: {ended.returncode}\n{ended.stdout}"

    def _know_host(self) -> None:
        """Have an account on the host of a copy, as OpenSSH's configuration says it."""
        sshd, ssh = self._sshd, self.folder / ".ssh"
        ssh.mkdir(mode=0o700)
        sshd.authorize(create_key(ssh / "id_ed25519").public)
        (ssh / "known_hosts").write_text(f"[{sshd.host}]:{sshd.port} {sshd.host_key.line()}\n")
        (ssh / "config").write_text(
            f"Host storage.example.org\n  HostName {sshd.host}\n  Port {sshd.port}\n"
            f"  User {sshd.username}\n"
        )

    def make_copies(self) -> None:
        """Have what the page copies, and nothing at the destination."""
        shutil.rmtree(self.folder / "archive", ignore_errors=True)
        for name in ("2026-11/notes.txt", "source/main.c", "film.raw", "disk.img"):
            path = self._data / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(os.urandom(1000))

    def make_archive(self) -> None:
        """Have an archive made, and download it."""
        self._write("Scan 1/raw/f00001.dat")
        self._write("Scan 1/raw/f00002.dat")
        self.type('mydata-like settings set archive.rules "*.dat below 1 MB from 2 files"')
        self.type("mydata-like run")
        (archive,) = self._server.box_location.rglob("raw-*.tar")
        shutil.copy(archive, self.folder)
        self._names[ARCHIVE] = archive.name

    def leave_mydata(self) -> None:
        """Have MyData's settings where MyData keeps them, and none of our own."""
        shutil.rmtree(self.home)
        (self.home / "config").mkdir(parents=True)
        old = self.folder / ".local" / "share" / "MyData" / "MyData.cfg"
        old.parent.mkdir(parents=True)
        old.write_text(
            MYDATA.format(
                facility=FACILITY,
                data=self._data,
                url=self._server.url,
                username=self._server.username,
                key=self._server.api_key,
                uuid=UUID,
            )
        )

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def _environment(self) -> dict[str, str]:
        foreign = re.compile("XDG_|MYDATA_")
        kept = {name: value for name, value in os.environ.items() if not foreign.match(name)}
        return kept | {
            "HOME": str(self.folder),
            "MYDATA_LIKE_HOME": str(self.home),
            "MYDATA_LIKE_INSTRUMENT_UUID": UUID,
            "MYDATA_LIKE_FILTERS_SETTLE_SECONDS": "0",
            "MYDATA_LIKE_TRANSFER_HOST_KEYS": self._sshd.fingerprint,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "KEY": self._server.api_key,
            "AWS_ENDPOINT_URL": self._objects.url,
            "AWS_ACCESS_KEY_ID": ACCOUNT,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _write(self, name: str) -> None:
        path = self._data / self._server.username / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(1000))

    def _approve(self) -> None:
        assert self._server.approve(UUID) == 1
        for key in self._server.public_keys():
            self._sshd.authorize(PublicKey.parse(key))


def assert_known(words: list[str]) -> None:
    """See that a program of ours has the options with which it is shown."""
    program = words[: words.index("-m") + 2]
    told = subprocess.run(
        [sys.executable, *program[1:], "--help"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        check=True,
    ).stdout
    options = [word for word in words[len(program) :] if word.startswith("--")]
    assert [option for option in options if option not in told] == []


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[tuple[EmbeddedServer, PrivateSshd, ObjectServer]]:
    folder = tmp_path_factory.mktemp("documented")
    with (
        PrivateSshd(folder / "sshd") as sshd,
        EmbeddedServer(folder / "server", auto_approve=False) as server,
        open_service("memory", folder / "objects") as objects,
    ):
        server.set_address(ScpAddress(sshd.username, sshd.host, sshd.port, (sshd.fingerprint,)))
        assert isinstance(objects, ObjectServer)
        yield server, sshd, objects


@pytest.fixture(scope="module")
def readied(server, tmp_path_factory) -> tuple[Reader, Path]:
    """Someone who has done all that the first page shows, and a copy of the program's folder."""
    reader = Reader(tmp_path_factory.mktemp("reader"), *server)
    reader.home.mkdir()
    reader.read(FIRST)
    copy = reader.folder / "home as it was"
    shutil.copytree(reader.home, copy)
    return reader, copy


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_can_be_typed(page, readied):
    reader, copy = readied
    shutil.rmtree(reader.home)
    shutil.copytree(copy, reader.home)
    if page.stem == "archives":
        reader.make_archive()
    if page.stem == "coming-from-mydata":
        reader.leave_mydata()
    if page.stem == "copy":
        reader.make_copies()
    if page.stem in ("get", "receipt"):
        reader.make_copies()
        reader.type("mydata-like copy /data/microscope/2026-11 ann@storage.example.org:/archive")

    reader.read(page)


@pytest.mark.parametrize("page", [FIRST, *TEXTS], ids=lambda page: page.stem)
def test_commands_that_a_page_mentions_exist_with_their_options(page):
    text = page.read_text(encoding="utf-8")
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    on_windows = "".join(re.findall(r"^```bat\n(.*?)^```", text, re.M | re.S))
    found = re.findall(r"`(mydata-like [^`]+)`", plain) + re.findall(
        r"^mydata-like .+", on_windows, re.M
    )
    mentioned = {" ".join(command.split()) for command in found}

    assert [command for command in mentioned if not exists(shlex.split(command)[1:])] == []


def exists(words: list[str]) -> bool:
    """Return whether there is such a command, with such options."""
    if words[0] in ("--version", "--self-test"):  # which `__main__` knows
        return True
    command = typer.main.get_command(app)
    while words and isinstance(command, TyperGroup):
        command = command.get_command(typer.Context(command), words.pop(0))
        if command is None:
            return False
    known = {name for option in command.params for name in option.opts}
    return {word.partition("=")[0] for word in words if word.startswith("-")} <= known
