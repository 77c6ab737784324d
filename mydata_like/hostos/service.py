"""The definitions of the `mydata-like watch` service and of the start at login, for each system.

Formats: systemd.service(5), systemd.exec(5) of systemd 247 or later; launchd.plist(5); the schema
of the Windows Task Scheduler (https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema).
All are texts, so each can be inspected and tested on any system.
"""

import os
import plistlib
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from subprocess import list2cmdline
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from mydata_like.core.errors import SettingsError
from mydata_like.core.frozen import frozen
from mydata_like.settings.atomic_write import ensure_folder

if sys.platform == "win32":
    import winreg
else:
    import pwd

NAME: Final = "mydata-like"
LABEL: Final = "org.mydata-like.watch"
TASK: Final = r"\mydata-like\watch"
START_TASK: Final = ("schtasks", "/Run", "/TN", TASK)
MARK: Final = "Made by mydata-like, which removes it as well"
_RESTART_DELAY: Final = 60  # seconds until a service that failed is started again
_REPETITION: Final = 600  # seconds until Windows starts one that has ended
_STOP_TIMEOUT: Final = 30  # seconds until one that does not stop is killed
_NO_KEYRING: Final = (
    "While no user is logged in, the keyring is locked. Store the API key in the secrets file: "
    "mydata-like settings set-key --store file"
)
_NETWORK: Final = ("Wants=network-online.target", "After=network-online.target")
_PROCESS_OPTIONS: Final = (
    "Restart=on-failure",
    f"RestartSec={_RESTART_DELAY}",
    "RestartPreventExitStatus=2",  # invalid settings stay invalid until the user changes them
    "KillMode=mixed",
    f"TimeoutStopSec={_STOP_TIMEOUT}",
    "Nice=10",
    "IOSchedulingClass=best-effort",
    "IOSchedulingPriority=7",
    "UMask=0077",
    "LimitCORE=0",  # memory holds the API key and the private key
)
# Options that a user's own service manager supports as well: filters of system calls.
_SANDBOX_OPTIONS: Final = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",  # netlink: to list networks
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged",
    "SystemCallErrorNumber=EPERM",
)
# Not set, as they would break something: ProtectProc= and ProcSubset= (pauses depend on which
# programs run and whether they wait for disks), RemoveIPC= (other programs of the account use
# IPC), PrivateUsers= (the owners of files are read), IPAddressAllow= (hosts are given by name).
_FILE_SYSTEM_OPTIONS: Final = (
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "PrivateMounts=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
)
_READ_ALL: Final = "CAP_DAC_READ_SEARCH"  # to read the files of other accounts as root


@frozen(kw_only=True)
class ServiceCommand:
    """The command of a service: the program and its arguments, its environment, and its account."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)  # a task of Windows has none
    account: str = ""  # the service runs with its permissions
    uid: int = 0  # of the user who installs it, if the system has user ids
    everyone: bool = False  # starts with the computer rather than when the user logs in
    writable: tuple[str, ...] = ()  # the only folders to which a service for everyone may write
    as_root: bool = False  # the account is root


@frozen(kw_only=True)
class ServiceDefinition:
    """A service for one system: its file, and the commands that activate and deactivate it.

    `advice` is what else the user may want to do.
    """

    file: PurePath
    content: bytes
    install: tuple[tuple[str, ...], ...] = ()
    uninstall: tuple[tuple[str, ...], ...] = ()
    advice: tuple[str, ...] = ()
    query: tuple[str, ...] = ()  # succeeds if the service exists, where its file does not tell


class ServiceFolders(NamedTuple):
    """The user's folders for definitions: home, configuration, and our state folder."""

    home: PurePath
    configuration: PurePath
    state: PurePath


def define_service(
    system: str, command: ServiceCommand, folders: ServiceFolders
) -> ServiceDefinition:
    """Return the service for a system (`sys.platform`)."""
    match system:
        case "win32":
            return _define_task(command, folders.state)
        case "darwin":
            return _define_launchd(command, folders.home)
        case _:
            return _define_systemd(command, folders.configuration)


def _define_systemd(command: ServiceCommand, configuration: PurePath) -> ServiceDefinition:
    unit = f"{NAME}.service"
    folder = configuration / "systemd/user"
    control: tuple[str, ...] = ("systemctl", "--user")
    advice: tuple[str, ...] = (
        "A user service ends when you log out, unless an administrator allows it to continue: "
        f"loginctl enable-linger {command.account}",
    )
    if command.everyone:
        folder, control = PurePosixPath("/etc/systemd/system"), ("systemctl",)
        advice = (_NO_KEYRING,)
    return ServiceDefinition(
        file=folder / unit,
        content="\n".join(_systemd_lines(command)).encode(),
        install=((*control, "daemon-reload"), (*control, "enable", "--now", unit)),
        uninstall=((*control, "disable", "--now", unit),),
        advice=(f"To show its status: {' '.join(control)} status {NAME}", *advice),
    )


def _systemd_lines(command: ServiceCommand) -> Iterator[str]:
    for_all = command.everyone
    yield f"# {MARK}"
    yield "[Unit]"
    yield "Description=mydata-like: uploads instrument data to its server"
    yield from _NETWORK if for_all else ()
    yield ""
    yield "[Service]"
    yield f"ExecStart={' '.join(_quote(word).replace('$', '$$') for word in command.words)}"
    yield from (f"Environment={_quote(f'{k}={v}')}" for k, v in command.environment.items())
    yield from (f"User={command.account}",) if for_all else ()
    yield from _PROCESS_OPTIONS
    yield from _SANDBOX_OPTIONS
    if for_all:  # a user's own service manager is not allowed more
        yield f"CapabilityBoundingSet={_READ_ALL if command.as_root else ''}"
        yield from _FILE_SYSTEM_OPTIONS
        # The minus sign allows a folder to be missing when the service starts.
        folders = " ".join(_quote(f"-{folder}") for folder in command.writable)
        yield from (f"ReadWritePaths={folders}",) if folders else ()
    yield ""
    yield "[Install]"
    yield f"WantedBy={'multi-user' if for_all else 'default'}.target"
    yield ""


def _quote(word: str) -> str:
    """Return a word quoted for systemd, without splitting or expansion."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


def _define_launchd(command: ServiceCommand, home: PurePath) -> ServiceDefinition:
    folder = PurePosixPath("/Library/LaunchDaemons") if command.everyone else home
    file = folder / f"{LABEL}.plist"
    if not command.everyone:
        file = home / "Library/LaunchAgents" / file.name
    domain = "system" if command.everyone else f"gui/{command.uid}"
    content: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": list(command.words),
        "EnvironmentVariables": dict(command.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": _RESTART_DELAY,
        "ExitTimeOut": _STOP_TIMEOUT,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "Umask": 0o077,
    }
    if command.everyone:
        content["UserName"] = command.account
    return ServiceDefinition(
        file=file,
        content=format_plist(content),
        install=(("launchctl", "bootstrap", domain, str(file)),),
        uninstall=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        advice=(f"To show its status: launchctl print {domain}/{LABEL}",),
    )


def format_plist(content: Mapping[str, object]) -> bytes:
    """Return a property list with our mark."""
    head, end, rest = plistlib.dumps(content, sort_keys=False).decode().partition("?>\n")
    return f"{head}{end}<!-- {MARK} -->\n{rest}".encode()


# Accounts of Windows without a password; their names differ between languages, these ids do not.
_SERVICE_ACCOUNTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SYSTEM": "S-1-5-18",
        "LOCALSYSTEM": "S-1-5-18",
        "LOCALSERVICE": "S-1-5-19",
        "NETWORKSERVICE": "S-1-5-20",
    }
)
LOCAL_SYSTEM: Final = _SERVICE_ACCOUNTS["SYSTEM"]  # with full access to the computer
_NO_PASSWORD: Final = (
    "The task runs without your password, so that it reads neither the keyring nor network shares. "
    "Store the API key in the secrets file: mydata-like settings set-key --store file",
    "To let it read both, have Windows store the password (again after each change of it): "
    'schtasks /Change /TN "{task}" /RU "{account}" /RP *',
)


def find_service_account(account: str) -> str:
    """Return the id of Windows' account for services with this English name, or "" for others."""
    name = account.rpartition("\\")[2].replace(" ", "").upper()
    known = _SERVICE_ACCOUNTS.get(name, name)
    return known if known in _SERVICE_ACCOUNTS.values() else ""


def _define_task(command: ServiceCommand, state: PurePath) -> ServiceDefinition:
    file = state / f"{NAME}-watch.xml"
    needs_password = command.everyone and not find_service_account(command.account)
    return ServiceDefinition(
        file=file,
        content=_task_text(command).encode("utf-16"),  # the only encoding that schtasks reads
        install=(
            ("schtasks", "/Create", "/TN", TASK, "/XML", str(file), "/F"),
            START_TASK,
        ),
        uninstall=(
            ("schtasks", "/End", "/TN", TASK),
            ("schtasks", "/Delete", "/TN", TASK, "/F"),
        ),
        query=("schtasks", "/Query", "/TN", TASK),
        advice=(
            f'To show its status: schtasks /Query /TN "{TASK}" /V /FO LIST',
            *(
                line.format(task=TASK, account=command.account)
                for line in (_NO_PASSWORD if needs_password else ())
            ),
        ),
    )


def _task_text(command: ServiceCommand) -> str:
    """Return the definition of a task that also starts again when it ended for any reason.

    Windows restarts a task on failure only if the program could not be started ([MS-TSCH] 2.5.4.2),
    so the trigger is repeated as well; while the program runs, nothing else is started. `Enabled`
    is left out, since the order of elements in a trigger is fixed, and differs between the schema
    and Windows.
    """
    program, *words = command.words
    service_account = find_service_account(command.account)
    account = escape(service_account or command.account)
    logon = "S4U" if command.everyone else "InteractiveToken"
    repetition = f"<Repetition><Interval>PT{_REPETITION // 60}M</Interval></Repetition>"
    trigger = (
        f"<BootTrigger>{repetition}</BootTrigger>"
        if command.everyone
        else f"<LogonTrigger>{repetition}<UserId>{account}</UserId></LogonTrigger>"
    )
    logon_type = "" if service_account else f"\n      <LogonType>{logon}</LogonType>"
    return f"""\
<?xml version="1.0" encoding="UTF-16"?>
<!-- {MARK} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>mydata-like: uploads instrument data to its server</Description>
  </RegistrationInfo>
  <Triggers>{trigger}</Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{account}</UserId>{logon_type}
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>8</Priority>
    <RestartOnFailure>
      <Interval>PT{_RESTART_DELAY // 60}M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{escape(program)}</Command>
      <Arguments>{escape(list2cmdline(words))}</Arguments>
      <WorkingDirectory>{escape(str(PureWindowsPath(program).parent))}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""


_TIMEOUT: Final = 60.0  # seconds for a command of the system
_MOST_OUTPUT: Final = 300  # characters of its output that are shown


class InstallStep(NamedTuple):
    """A command of the system, and why it failed (empty if it succeeded)."""

    command: tuple[str, ...]
    problem: str


def write_definition(definition: ServiceDefinition) -> None:
    """Write the definition file; raises `SettingsError` if that fails, or if it is not ours."""
    file = Path(definition.file)
    _require_ours(file)
    try:
        ensure_folder(file.parent)
        draft = file.with_name(f".{file.name}.new")
        draft.write_bytes(definition.content)
        draft.chmod(0o644)
        draft.replace(file)
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be written: {error.strerror or error}.",
            hint="For a service of the whole computer run this as an administrator.",
        ) from error


def remove_definition(definition: ServiceDefinition) -> None:
    """Remove the file, if it exists; raises `SettingsError` like writing."""
    file = Path(definition.file)
    if not file.exists():
        return
    _require_ours(file)
    try:
        file.unlink()
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be removed: {error.strerror or error}.",
            hint="For a service of the whole computer run this as an administrator.",
        ) from error


def run_commands(commands: Iterable[tuple[str, ...]]) -> Iterator[InstallStep]:
    """Run commands of the system one after another until one fails."""
    for command in commands:
        problem = _run(command)
        yield InstallStep(command, problem)
        if problem:
            return


def make_folders_as(account: str, folders: Iterable[Path]) -> None:
    """Create the missing folders with mode 0700, with the permissions of an account.

    For another account this needs root, but root's permissions are not used: the folders are in
    a home, where links could point elsewhere. Raises `SettingsError` if the account may not.
    """
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if not missing or sys.platform == "win32":
        return
    try:
        rights: dict[str, Any] = {}
        if os.geteuid() == 0:
            found = pwd.getpwnam(account)
            rights = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": ()}
        subprocess.run(  # noqa: S603 - words of our own, without a shell
            ("/bin/mkdir", "-p", "--", *missing),
            check=True,
            capture_output=True,
            umask=0o077,
            **rights,
        )
    except (OSError, KeyError, subprocess.CalledProcessError) as error:
        raise SettingsError(
            f"The account {account} cannot create these folders: {', '.join(missing)}.",
            hint="Create them, owned by this account, and install the service again.",
        ) from error


def _run(command: tuple[str, ...]) -> str:
    try:
        ended = subprocess.run(  # noqa: S603 - words of our own, without a shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    except FileNotFoundError:
        return f"{command[0]} was not found on this computer"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:_MOST_OUTPUT]
    if ended.returncode == 0:
        return ""
    output = (ended.stderr or ended.stdout).decode("utf-8", "replace").strip()
    return output[:_MOST_OUTPUT] or f"exit code {ended.returncode}"


def _require_ours(file: Path) -> None:
    """Raise `SettingsError` unless a file was made by this program, or does not exist."""
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}.") from error
    if MARK.encode() not in content and MARK.encode("utf-16-le") not in content:
        raise SettingsError(
            f"{file} was not created by this program and is left unchanged.",
            hint=f'Move it away first, or add the line "{MARK}" to a comment in it.',
        )


AUTOSTART_LABEL: Final = "org.mydata-like.window"
_RUN: Final = r"Software\Microsoft\Windows\CurrentVersion\Run"
_RESERVED: Final = '"`$\\'  # characters that an Exec line escapes within quotes


class FileAutostart:
    """An autostart entry that is a file in a folder of the user."""

    def __init__(self, definition: ServiceDefinition) -> None:
        self._definition = definition

    @property
    def place(self) -> str:
        """Where the entry is written."""
        return str(self._definition.file)

    def turn(self, *, on: bool) -> None:
        """Add or remove the entry; raises `SettingsError` if it is not ours."""
        if on:
            write_definition(self._definition)
        else:
            remove_definition(self._definition)


class RegistryAutostart:
    """An autostart entry in the user's registry on Windows."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._line = list2cmdline(words)

    @property
    def place(self) -> str:
        """Where the entry is written."""
        return rf"HKEY_CURRENT_USER\{_RUN}\{NAME}"

    def turn(self, *, on: bool) -> None:
        """Add or remove the entry."""
        if sys.platform == "win32":
            with winreg.CreateKey(winreg.HKEY_CURRENT_USER, _RUN) as key:
                if on:
                    winreg.SetValueEx(key, NAME, 0, winreg.REG_SZ, self._line)
                else:
                    with suppress(FileNotFoundError):
                        winreg.DeleteValue(key, NAME)


Autostart = FileAutostart | RegistryAutostart


def find_autostart(system: str, words: tuple[str, ...], folders: ServiceFolders) -> Autostart:
    """Return the autostart entry for a system (`sys.platform`) that runs this command line."""
    match system:
        case "win32":
            return RegistryAutostart(words)
        case "darwin":
            return FileAutostart(_define_agent(words, folders.home))
        case _:
            return FileAutostart(_define_desktop_file(words, folders.configuration))


def _define_desktop_file(words: tuple[str, ...], configuration: PurePath) -> ServiceDefinition:
    lines = (
        "[Desktop Entry]",
        f"# {MARK}",
        "Type=Application",
        f"Name={NAME}",
        "Comment=Uploads instrument data to its server",
        f"Exec={' '.join(_quote_argument(word) for word in words)}",
        "Terminal=false",
        "X-GNOME-Autostart-enabled=true",
        "",
    )
    file = configuration / "autostart" / f"{NAME}.desktop"
    return ServiceDefinition(file=file, content="\n".join(lines).encode())


def _quote_argument(word: str) -> str:
    escaped = "".join(f"\\{char}" if char in _RESERVED else char for char in word)
    # The value of a key has its own escapes, and % begins a field code.
    return '"' + escaped.replace("\\", "\\\\").replace("%", "%%") + '"'


def _define_agent(words: tuple[str, ...], home: PurePath) -> ServiceDefinition:
    content = {
        "Label": AUTOSTART_LABEL,
        "ProgramArguments": list(words),
        "RunAtLoad": True,
        "LimitLoadToSessionType": "Aqua",
    }
    return ServiceDefinition(
        file=home / "Library/LaunchAgents" / f"{AUTOSTART_LABEL}.plist",
        content=format_plist(content),
    )
