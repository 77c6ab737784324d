"""Uploads through the real command to every kind of staging area that this computer can start.

`python -m tests.hosts --all` or `python -m tests.hosts KIND...`

For each kind, runs upload tiny files, files with odd names, and large files. Another large file is
interrupted by SIGKILL and completed by the next run. At the end, all bytes on the server are
compared. A kind that is full has space for all files but some large ones: the first run must upload
what fits, the next one the rest, after the space was enlarged.
The result is a table in Markdown. Some kinds need root, since dropbear and
ProFTPD log in only to accounts of the system, and to mount small disks. `make staging-hosts` puts
SFTPGo and Apache MINA into `build/hosts`, `make s3-hosts` the S3 services into `.venv/bin`.
"""

import argparse
import getpass
import json
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import asyncssh

from mydata_like.demo.ssh_servers import AsyncSshd, PrivateSshd
from mydata_like.ssh.keys import PublicKey, create_key
from tests.mounts import SAMBA, SmallDisk, SmbMount, SshfsMount, may_mount_disks
from tests.object_site import add_storage
from tests.openssh import open_ssh
from tests.s3_service import FOLDERS, open_service
from tests.site import Ended, Site, finish, kill_group, open_site, wait_for
from tests.sshd_fixture import scp_only, script, sftp_only

PATIENCE = 600.0  # seconds for one run
MOUNT = ("mount",)
QUOTA = 40_000_000  # bytes
SPACE = "40m"  # of a small disk, as `mount` reads it
LONG_AGO = 1_600_000_000
BUILT = Path(__file__).parents[1] / "build" / "hosts"
ELSEWHERE = "/usr/sbin:/usr/local/sbin:/usr/local/go/bin"
INSIDE = "/mnt"  # where only the chrooted server sees another file system
NO_ATTRIBUTES = "list,download,upload,overwrite,delete,rename,create_dirs"
MINA = ("java", "-cp", f"{BUILT}/mina/*", str(Path(__file__).parent / "mina" / "MinaSshd.java"))
ODD_NAMES = (
    *("-rf", ".hidden", "a b", "100% done", "it's $(x) `y` *", 'a "quote"', "r\u00e9sum\u00e9"),
    *("re\u0301sume\u0301", "\u6f22\u5b57", "semi;colon&amp", "back\\slash", "~tilde", "[x]?"),
)
# smbnetfs 0.6.3 decodes names as in a URL, and the server has them encoded.
SMB_NAMES = ("-rf", ".hidden", "~tilde")
PROFTPD = """
LoadModule mod_sftp.c
ServerType standalone
DefaultAddress 127.0.0.1
UseIPv6 off
Port {port}
User {user}
Group root
RootLogin on
UseFtpUsers off
RequireValidShell off
AllowOverwrite on
DelayEngine off
WtmpLog off
TransferLog none
PidFile {here}/pid
ScoreboardFile {here}/scoreboard
SystemLog {here}/log
<IfModule mod_sftp.c>
SFTPEngine on
SFTPHostKey {host_key}
SFTPAuthorizedUserKeys file:{here}/keys
SFTPAuthMethods publickey
</IfModule>
"""


class Amounts(NamedTuple):
    """What is uploaded: the number of tiny files, and the bytes of the large ones."""

    tiny: int = 1000
    large: tuple[int, ...] = (100_000_000, 100_000_000)
    interrupted: int = 50_000_000
    too_much: tuple[int, ...] = (9_000_000, 50_000_000, 9_000_000)  # one is above `SPACE`


class Result(NamedTuple):
    """One row of the table."""

    kind: str
    version: str
    way: str
    wrong: str = ""
    reported: str = ""


class _Server:
    """A server program for this account, with the interface of `PrivateSshd`."""

    def __init__(self, here: Path) -> None:
        here.mkdir(parents=True)
        self.here = here
        self.host = "127.0.0.1"
        with closing(socket.socket()) as listener:
            listener.bind((self.host, 0))
            self.port = listener.getsockname()[1]
        self.username = getpass.getuser()
        self.host_key = self._make_host_key()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def fingerprint(self) -> str:
        return self.host_key.fingerprint

    def _make_host_key(self) -> PublicKey:
        return create_key(self.here / "host" / "key").public

    def _command(self) -> Sequence[str]:
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._launch()
        return self

    def _launch(self) -> None:
        with (self.here / "server.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, cwd=self.here, env=self._environment()
            )
        while self._process.poll() is None and not self._accepts():
            time.sleep(0.05)

    def _environment(self) -> dict[str, str]:
        return dict(os.environ)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def _accepts(self) -> bool:
        try:
            socket.create_connection((self.host, self.port)).close()
        except ConnectionRefusedError:
            return False
        return True


class Dropbear(_Server):
    """Dropbear, which sees another home folder with the keys that it accepts."""

    def _make_host_key(self) -> PublicKey:
        made = subprocess.run(
            ["dropbearkey", "-t", "ed25519", "-f", self.here / "key"],
            capture_output=True,
            check=True,
        )
        (line,) = re.findall(rb"^ssh-ed25519 .*$", made.stdout, re.MULTILINE)
        return PublicKey.parse(line.decode())

    def authorize(self, key: PublicKey) -> None:
        folder = self.here / "home" / ".ssh"
        folder.mkdir(parents=True, mode=0o700)
        (self.here / "home").chmod(0o700)
        (folder / "authorized_keys").write_text(key.line() + "\n")

    def _command(self) -> Sequence[str]:
        (self.here / "home").mkdir()
        home = Path(f"~{self.username}").expanduser()
        inside = f'mount --bind {self.here}/home {home} && exec dropbear "$@"'
        options = ("-F", "-E", "-s", "-r", str(self.here / "key"), "-p", f"127.0.0.1:{self.port}")
        return ("unshare", "-m", "sh", "-c", inside, "dropbear", *options, "-P", "")


class ProFtpd(_Server):
    """ProFTPD with mod_sftp."""

    def authorize(self, key: PublicKey) -> None:
        text = key.line().split()[1]
        (self.here / "keys").write_text(  # in the format of RFC 4716
            f"---- BEGIN SSH2 PUBLIC KEY ----\n{text}\n---- END SSH2 PUBLIC KEY ----\n"
        )

    def _command(self) -> Sequence[str]:
        config = self.here / "proftpd.conf"
        config.write_text(
            PROFTPD.format(
                here=self.here,
                port=self.port,
                user=self.username,
                host_key=self.here / "host" / "key",
            )
        )
        return (_find("proftpd"), "-n", "-q", "-c", str(config))


class SftpGo(_Server):
    """SFTPGo in its portable mode, whose only account has these permissions."""

    def __init__(self, here: Path, permissions: str) -> None:
        super().__init__(here)
        self._permissions = permissions
        self._key = ""

    def __enter__(self) -> Self:
        return self

    def authorize(self, key: PublicKey) -> None:
        """Start the server, which reads the key from its command line."""
        self._key = key.line()
        self._launch()

    def _command(self) -> Sequence[str]:
        place = ("--config-dir", str(self.here), "--directory", "/")
        account = ("--username", self.username, "--public-key", self._key)
        options = ("--sftpd-port", str(self.port), "--permissions", self._permissions)
        return (_find("sftpgo"), "portable", *place, *account, *options)

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {
            "SFTPGO_SFTPD__BINDINGS__0__ADDRESS": self.host,
            "SFTPGO_SFTPD__HOST_KEYS": str(self.here / "host" / "key"),
        }


class SftpGoWithQuota(SftpGo):
    """SFTPGo whose only account has a quota; it has the permissions of all."""

    def __init__(self, here: Path, **quota: int) -> None:
        super().__init__(here, "*")
        self._quota = quota

    def lift_quota(self) -> None:
        """Start the server again without a quota."""
        self.__exit__()
        self._quota = {}
        self._launch()

    def _command(self) -> Sequence[str]:
        user = {
            "username": self.username,
            "status": 1,
            "public_keys": [self._key],
            "home_dir": "/",
            "permissions": {"/": [self._permissions]},
            **self._quota,
        }
        for name in ("reset-password", "password-expiration"):  # without them it does not start
            make_file(self.here / "templates" / "email" / f"{name}.html", 0)
        (self.here / "users.json").write_text(json.dumps({"users": [user], "version": 15}))
        return (_find("sftpgo"), "serve", "--config-dir", str(self.here))

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {
            "SFTPGO_SFTPD__BINDINGS__0__PORT": str(self.port),
            "SFTPGO_HTTPD__BINDINGS__0__PORT": "0",
            "SFTPGO_DATA_PROVIDER__DRIVER": "memory",
            "SFTPGO_DATA_PROVIDER__NAME": str(self.here / "users.json"),
        }


class Mina(_Server):
    """Apache MINA SSHD."""

    def authorize(self, key: PublicKey) -> None:
        (self.here / "keys").write_text(key.line() + "\n")

    def _command(self) -> Sequence[str]:
        return (*MINA, str(self.port), str(self.here / "host" / "key"), str(self.here / "keys"))


class Chroot(PrivateSshd):
    """OpenSSH that confines its accounts to a folder, in which files have the same paths.

    Each part of that folder's path must belong to root, unlike temporary folders.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(
            folder / "sshd", options=("ForceCommand internal-sftp", f"ChrootDirectory {INSIDE}")
        )
        inside = f"{INSIDE}{folder}"
        lines = (
            f"mount -t tmpfs -o mode=755 tmpfs {INSIDE}",
            f"mkdir -p {inside}",
            f"mount --bind {folder} {inside}",
            f'exec {self._program} "$@"\n',
        )
        within = script(folder / "within", " && ".join(lines))
        self._program = str(script(folder / "chroot", f'exec unshare -m {within} "$@"\n'))


def _find(program: str) -> str:
    """Return the path of a program, or of a folder in `build/hosts`; empty if it is missing."""
    if (BUILT / program).exists():
        return str(BUILT / program)
    return shutil.which(program) or shutil.which(program, path=f"{ELSEWHERE}:{FOLDERS}") or ""


def _with_shell(program: str, *words: str) -> Callable[[Path], Any]:
    """Return what starts OpenSSH with another login shell."""

    def start(folder: Path) -> Any:
        call = " ".join((program, *words))
        gate = script(folder / "gate", f'exec {call} -c "$SSH_ORIGINAL_COMMAND"\n')
        return open_ssh(folder / "sshd", options=(f"ForceCommand {gate}",))

    return start


def _with_busybox(folder: Path) -> Any:
    """Start OpenSSH on a system that has only the programs of busybox."""
    programs = folder / "bin"
    programs.mkdir()
    subprocess.run([_find("busybox"), "--install", "-s", programs], check=True)
    gate = script(
        folder / "gate", f'PATH={programs}; export PATH\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    return open_ssh(folder / "sshd", options=(f"ForceCommand {gate}",))


def _with_options(*options: str) -> Callable[[Path], Any]:
    return lambda folder: open_ssh(folder / "sshd", options=options)


def _with_scp(folder: Path) -> Any:
    return open_ssh(folder / "sshd", options=(*scp_only(folder), "Subsystem sftp /bin/false"))


Settings = tuple[str, ...]  # of a run


@contextmanager
def _by_ssh(site: Site, folder: Path) -> Iterator[Settings]:
    """Use the SSH server of the site."""
    yield ()


@contextmanager
def _by_folder(site: Site, folder: Path) -> Iterator[Settings]:
    """Use the location of the storage box as a folder."""
    yield _confirm(site, site.server.box_location)


@contextmanager
def _by_sshfs(site: Site, folder: Path) -> Iterator[Settings]:
    """Use the location, mounted by sshfs."""
    target = folder / "mounted"
    target.mkdir()
    with SshfsMount(site.sshd, site.place.key_file, site.server.box_location, target) as mount:
        yield _confirm(site, mount.target)


@contextmanager
def _by_samba(site: Site, folder: Path) -> Iterator[Settings]:
    """Use the location, served by Samba and mounted over SMB."""
    with SmbMount(folder, site.server.box_location) as mount:
        yield _confirm(site, mount.target)


def _confirm(site: Site, folder: Path) -> Settings:
    settings = ("transfer.method=folder", f"transfer.folder={folder}")
    ended = site.command("register", "--accept-folder", settings=settings)
    assert ended.code == 0, ended.complaints
    return settings


def _by_s3(name: str) -> Callable[[Site, Path], AbstractContextManager[Settings]]:
    """Return what starts a service whose objects are the site's storage."""

    @contextmanager
    def start(site: Site, folder: Path) -> Iterator[Settings]:
        with open_service(name, folder / name) as service:
            yield add_storage(site, service.url)

    return start


Enlarge = Callable[[], None]


@contextmanager
def _on_small_disk(site: Site, folder: Path) -> Iterator[Enlarge]:
    """Put a small disk over the location of the storage box."""
    with SmallDisk(site.server.box_location, SPACE) as disk:
        yield disk.enlarge


def _on_small_disk_of(name: str) -> Callable[[Site, Path], AbstractContextManager[Enlarge]]:
    """Return what puts the files of an S3 service on a small disk."""

    @contextmanager
    def mount(site: Site, folder: Path) -> Iterator[Enlarge]:
        (folder / name).mkdir()
        with SmallDisk(folder / name, SPACE) as disk:
            yield disk.enlarge

    return mount


@contextmanager
def _with_quota(site: Site, folder: Path) -> Iterator[Enlarge]:
    assert isinstance(site.sshd, SftpGoWithQuota)
    yield site.sshd.lift_quota


def _built_with_go(program: str) -> tuple[str, ...]:
    """Return the command for a program that was installed with Go and does not know its version."""
    return ("go", "version", "-m", _find(program))


class Kind(NamedTuple):
    """A kind of staging area: how it starts, and the command that prints its version.

    Where it is not the SSH server that `start` returns, `use` returns the settings that choose it.
    `limit` leaves it space for all files but some of the pattern `excess`, and returns what
    enlarges it.
    """

    start: Callable[[Path], Any]
    version: Sequence[str] = ("sshd", "-V")
    needs: Sequence[str] = ()
    use: Callable[[Site, Path], AbstractContextManager[Settings]] = _by_ssh
    names: Sequence[str] = ODD_NAMES
    limit: Callable[[Site, Path], AbstractContextManager[Enlarge]] | None = None
    excess: str = "*.raw"


KINDS = {
    "OpenSSH, bash": Kind(_with_shell("bash"), needs=("bash",)),
    "OpenSSH, dash": Kind(_with_shell("dash"), needs=("dash",)),
    "OpenSSH, ksh": Kind(_with_shell("ksh"), needs=("ksh",)),
    "OpenSSH, zsh": Kind(_with_shell("zsh"), needs=("zsh",)),
    "OpenSSH, fish": Kind(_with_shell("fish"), needs=("fish",)),
    "OpenSSH, tcsh": Kind(_with_shell("tcsh"), needs=("tcsh",)),
    "OpenSSH, rbash": Kind(_with_shell("rbash"), needs=("rbash",)),
    "OpenSSH, busybox": Kind(_with_busybox, ("busybox",), needs=("busybox",)),
    "OpenSSH, SFTP only": Kind(_with_options(*sftp_only())),
    "OpenSSH, SFTP that cannot rename": Kind(
        _with_options("ForceCommand internal-sftp -P remove,rename,posix-rename")
    ),
    "OpenSSH, SFTP without SETSTAT": Kind(
        _with_options("ForceCommand internal-sftp -P setstat,fsetstat")
    ),
    "OpenSSH, scp only": Kind(_with_scp),
    "OpenSSH, MaxSessions 1": Kind(_with_options("MaxSessions 1")),
    "OpenSSH, ChrootDirectory": Kind(Chroot, needs=("unshare",)),
    "Dropbear": Kind(
        lambda folder: Dropbear(folder / "dropbear"),
        ("dropbear", "-V"),
        ("dropbear", "dropbearkey", "unshare"),
    ),
    "ProFTPD": Kind(
        lambda folder: ProFtpd(folder / "proftpd"), ("proftpd", "--version"), ("proftpd",)
    ),
    "SFTPGo": Kind(
        lambda folder: SftpGo(folder / "sftpgo", "*"), ("sftpgo", "--version"), ("sftpgo",)
    ),
    "SFTPGo, no chmod and chtimes": Kind(
        lambda folder: SftpGo(folder / "sftpgo", NO_ATTRIBUTES),
        ("sftpgo", "--version"),
        ("sftpgo",),
    ),
    "Apache MINA": Kind(lambda folder: Mina(folder / "mina"), MINA, ("java", "mina")),
    "asyncssh": Kind(lambda folder: AsyncSshd(folder / "asyncssh"), ()),
    "Folder": Kind(_with_options(), ("uname", "-r"), use=_by_folder),
    "Folder, sshfs": Kind(_with_options(), ("sshfs", "-V"), ("sshfs",), _by_sshfs),
    "Folder, Samba": Kind(_with_options(), ("smbd", "-V"), SAMBA, _by_samba, SMB_NAMES),
    "S3, versitygw": Kind(
        _with_options(), _built_with_go("versitygw"), ("versitygw",), _by_s3("versitygw")
    ),
    "S3, MinIO": Kind(_with_options(), _built_with_go("minio"), ("minio",), _by_s3("minio")),
    "OpenSSH, full": Kind(_with_options(), needs=MOUNT, limit=_on_small_disk),
    "OpenSSH, SFTP only, full": Kind(
        _with_options(*sftp_only()), needs=MOUNT, limit=_on_small_disk
    ),
    "OpenSSH, scp only, full": Kind(_with_scp, needs=MOUNT, limit=_on_small_disk),
    "SFTPGo, quota of bytes": Kind(
        lambda folder: SftpGoWithQuota(folder / "sftpgo", quota_size=QUOTA),
        ("sftpgo", "--version"),
        ("sftpgo",),
        limit=_with_quota,
    ),
    "SFTPGo, quota of files": Kind(
        lambda folder: SftpGoWithQuota(folder / "sftpgo", quota_files=500),
        ("sftpgo", "--version"),
        ("sftpgo",),
        limit=_with_quota,
        excess="*",
    ),
    "Folder, full": Kind(_with_options(), ("uname", "-r"), MOUNT, _by_folder, limit=_on_small_disk),
    "S3, versitygw, full": Kind(
        _with_options(),
        _built_with_go("versitygw"),
        (*MOUNT, "versitygw"),
        _by_s3("versitygw"),
        limit=_on_small_disk_of("versitygw"),
    ),
    "S3, MinIO, full": Kind(
        _with_options(),
        _built_with_go("minio"),
        (*MOUNT, "minio"),
        _by_s3("minio"),
        limit=_on_small_disk_of("minio"),
    ),
}


def try_kind(name: str, folder: Path, amounts: Amounts) -> Result:
    """Upload to a new host of this kind, and compare all bytes."""
    kind = KINDS[name]
    if kind.limit:
        return try_full(name, kind, folder, amounts)
    version = find_version(kind)
    data = folder / "site" / "data" / "alice"
    make_small(data, amounts.tiny, kind.names)
    with (
        open_site(folder / "site", sshd=kind.start(folder)) as site,
        kind.use(site, folder) as settings,
    ):
        tiny = run(site, settings)
        for number, size in enumerate(amounts.large):
            make_file(data / "Large" / f"{number}.raw", size)
        large = run(site, settings)
        make_file(data / "Interrupted" / "one.raw", amounts.interrupted)
        interrupt(site, settings)
        resumed = run(site, settings)
        runs = (tiny, large, resumed)
        wrong = [f"exit code {ended.code}: {ended.problem}" for ended in runs if ended.code]
        return Result(
            name,
            version,
            find_way(tiny),
            "; ".join([*wrong, *site.find_wrongs()][:3]),
            find_reported(runs),
        )


def try_full(name: str, kind: Kind, folder: Path, amounts: Amounts) -> Result:
    """Upload too much to a new host of this kind, enlarge its space, and upload the rest."""
    assert kind.limit is not None
    data = folder / "site" / "data" / "alice"
    make_small(data, amounts.tiny, kind.names)
    for number, size in enumerate(amounts.too_much):
        make_file(data / "Large" / f"{number}.raw", size)
    with (
        open_site(folder / "site", sshd=kind.start(folder)) as site,
        kind.limit(site, folder) as enlarge,
        kind.use(site, folder) as settings,
    ):
        full = run(site, settings)
        wrong = list(find_wrongs_of_full(site, full, kind.excess))
        enlarge()
        completed = run(site, settings)
        if completed.code:
            wrong.append(f"then exit code {completed.code}: {completed.problem}")
        wrong += site.find_wrongs()
        code = f"`{full.sums['problem']['code']}`" if full.sums["problem"] else ""
        return Result(name, find_version(kind), find_way(full), "; ".join(wrong[:3]), reported=code)


def find_wrongs_of_full(site: Site, full: Ended, excess: str) -> Iterator[str]:
    """Yield what a run did wrong that had space for all files but some of the pattern `excess`."""
    if (full.code, full.problem) != (3, "staging.full"):
        yield f"exit code {full.code}: {full.problem}"
    staged, verified, waiting, failed = (
        {event["path"] for event in full.events(f"file_{outcome}")}
        for outcome in ("staged", "verified", "waiting", "failed")
    )
    if failed:
        yield f"{len(failed)} failed"
    if staged != verified:
        yield f"{len(staged)} arrived, {len(verified)} are verified"
    left = {site.data / path for path in waiting}
    if not set(site.data.rglob(excess)) > left > set():
        yield f"{len(left)} are left"
    yield from site.find_wrongs(left_out=sorted(left))


def run(site: Site, settings: Settings) -> Ended:
    """Run to the end."""
    return finish(site.start("run", "--events", settings=settings), PATIENCE)


def interrupt(site: Site, settings: Settings) -> None:
    """Kill a run while it sends."""
    process = site.start("run", "--events", settings=("limits.bandwidth=8", *settings))
    wait_for(process, "transfer_progressed")
    kill_group(process)
    process.communicate()


def make_small(data: Path, tiny: int, names: Sequence[str]) -> None:
    for number in range(tiny):
        make_file(data / "Tiny" / f"{number % 10}" / f"{number}.dat", number % 3000)
    for name in names:
        make_file(data / "Odd" / name / name, 100)


def make_file(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))
    os.utime(path, (LONG_AGO, LONG_AGO))


def find_way(ended: Ended) -> str:
    ways = {event["rung"] for event in ended.events("channel_changed") if event["rung"]}
    return ", ".join(sorted(ways))


def find_reported(runs: Sequence[Ended]) -> str:
    """Return what the runs reported."""
    notices = (f"`{event['problem']['code']}`" for run in runs for event in run.events("notice"))
    limits = (event["reason"] for run in runs for event in run.events("limits_changed"))
    refusals = (reason for reason in limits if "allows no more" in reason)
    return " ".join(dict.fromkeys([*notices, *refusals]))


def find_version(kind: Kind) -> str:
    if not kind.version:
        return str(asyncssh.__version__)
    program, *options = kind.version
    if not (path := _find(program)):
        return ""
    ended = subprocess.run([path, *options], capture_output=True, text=True, check=False)
    text = ended.stdout + ended.stderr
    found = re.search(r"\tmod\t\S+\tv(\S+)", text) or re.search(r"(\d+\.\d[\w.]*)", text)
    return found[1] if found else ""


def is_available(kind: Kind) -> bool:
    if "mount" in kind.needs and not may_mount_disks():
        return False
    return all(map(_find, kind.needs)) and (not kind.needs or os.geteuid() == 0)


HEAD = """\
| kind | version | way | result | reported |
|---|---|---|---|---|"""


def format_row(result: Result) -> str:
    cells = (
        result.kind,
        result.version,
        result.way,
        result.wrong or "all bytes",
        result.reported,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hosts-") as made:
        yield Path(made)


def _show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hosts", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    parser.add_argument("--all", action="store_true", help="all kinds that can be started here")
    chosen = parser.parse_args()
    names = [name for name, kind in KINDS.items() if is_available(kind)]
    if chosen.all and (missing := [name for name in KINDS if name not in names]):
        sys.stderr.write(f"Left out, since they cannot be started here: {'; '.join(missing)}\n")
    # asyncssh still answers the run that was killed, and asyncio warns of each answer.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    chosen_names = names if chosen.all else chosen.kinds
    failed = 0
    _show(HEAD)
    for name in chosen_names:
        with _folder() as folder:
            result = try_kind(name, folder, Amounts())
        failed += bool(result.wrong)
        _show(format_row(result))
    _show(f"{len(chosen_names)} kinds, {failed} of them wrong")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
