"""The definition of the service that runs `mydata-like watch`, in the words of each system.

Formats: systemd.service(5), systemd.exec(5) of systemd 247 or later; launchd.plist(5); the task
schema 1.2 of the Windows Task Scheduler. All are texts made from the same facts, so each can be
looked at, and tested, on any system.
"""

import plistlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from subprocess import list2cmdline
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

NAME: Final = "mydata-like"
LABEL: Final = "org.mydata-like.watch"
TASK: Final = r"\mydata-like\watch"
MARK: Final = "Made by mydata-like, which removes it as well"
_AGAIN: Final = 60  # seconds until a service that failed is started again
_STOPPING: Final = 30  # seconds until one that does not stop is killed
_NO_KEYRING: Final = (
    "Without anybody logged in no keyring can be opened: keep the API key in the secrets file "
    "(mydata-like settings set-key --store file)."
)
_NETWORK: Final = ("Wants=network-online.target", "After=network-online.target")
_MANNERS: Final = (
    "Restart=on-failure",
    f"RestartSec={_AGAIN}",
    "RestartPreventExitStatus=2",  # settings that are wrong stay so until somebody changes them
    "KillMode=mixed",
    f"TimeoutStopSec={_STOPPING}",
    "Nice=10",
    "IOSchedulingClass=best-effort",
    "IOSchedulingPriority=7",
    "UMask=0077",
    "LimitCORE=0",  # memory holds the API key and the private key
)
# What a user's own service manager can do as well: filters of system calls.
_CONFINED: Final = (
    "NoNewPrivileges=yes",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",  # netlink: which networks it has
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged",
    "SystemCallErrorNumber=EPERM",
)
# Not set, as they would break something: ProtectProc= and ProcSubset= (which programs run, and
# whether they wait for disks, decides on pauses), RemoveIPC= (other programs of the account use
# IPC), PrivateUsers= (who owns a file is looked at), IPAddressAllow= (hosts have names here).
_GUARDS: Final = (
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
_READ_ALL: Final = "CAP_DAC_READ_SEARCH"  # what root needs to read the files of others


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a service is to run: the program with its words, its environment, and as whom."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    account: str = ""  # whose rights it has
    uid: int = 0  # of the person who installs it, where the system has such numbers
    everyone: bool = False  # starts with the computer rather than when the person logs in
    writable: tuple[str, ...] = ()  # folders, the only ones where a service for all may write
    as_root: bool = False  # its account is root


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A service as one system wants it: a file, and the commands that make it count or not.

    `advice` is what else a person may want to do.
    """

    file: PurePath
    content: bytes
    install: tuple[tuple[str, ...], ...]
    uninstall: tuple[tuple[str, ...], ...]
    advice: tuple[str, ...] = ()


class Folders(NamedTuple):
    """The person's folders in which systems look: home, configuration, and our own state."""

    home: PurePath
    configuration: PurePath
    state: PurePath


def define_service(system: str, errand: Errand, folders: Folders) -> Definition:
    """Return the service of a system (`sys.platform`)."""
    match system:
        case "win32":
            return _define_task(errand, folders.state)
        case "darwin":
            return _define_launchd(errand, folders.home)
        case _:
            return _define_systemd(errand, folders.configuration)


def _define_systemd(errand: Errand, configuration: PurePath) -> Definition:
    unit = f"{NAME}.service"
    folder = configuration / "systemd/user"
    control: tuple[str, ...] = ("systemctl", "--user")
    advice: tuple[str, ...] = (
        "A service of your own ends when you log out, unless an administrator allows it to "
        f"linger: loginctl enable-linger {errand.account}",
    )
    if errand.everyone:
        folder, control = PurePosixPath("/etc/systemd/system"), ("systemctl",)
        advice = (_NO_KEYRING,)
    return Definition(
        file=folder / unit,
        content="\n".join(_systemd_lines(errand)).encode(),
        install=((*control, "daemon-reload"), (*control, "enable", "--now", unit)),
        uninstall=((*control, "disable", "--now", unit),),
        advice=(f"See how it does: {' '.join(control)} status {NAME}", *advice),
    )


def _systemd_lines(errand: Errand) -> Iterator[str]:
    for_all = errand.everyone
    yield f"# {MARK}"
    yield "[Unit]"
    yield "Description=mydata-like: carries instrument data to its server"
    yield from _NETWORK if for_all else ()
    yield ""
    yield "[Service]"
    yield f"ExecStart={' '.join(_quote_exec(word) for word in errand.words)}"
    yield from (f"Environment={_quote(f'{k}={v}')}" for k, v in errand.environment.items())
    yield from (f"User={errand.account}",) if for_all else ()
    yield from _MANNERS
    yield from _CONFINED
    yield from _guard(errand) if for_all else ()  # a user's own service manager may not do more
    yield ""
    yield "[Install]"
    yield f"WantedBy={'multi-user' if for_all else 'default'}.target"
    yield ""


def _guard(errand: Errand) -> Iterator[str]:
    yield f"CapabilityBoundingSet={_READ_ALL if errand.as_root else ''}"
    yield from _GUARDS
    # The sign says that a folder may be missing when the service starts.
    if errand.writable:
        folders = (_quote(f"-{folder}") for folder in errand.writable)
        yield f"ReadWritePaths={' '.join(folders)}"


def _quote(word: str) -> str:
    """Return a word as systemd reads it, neither split nor filled in."""
    text = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


def _quote_exec(word: str) -> str:
    return _quote(word).replace("$", "$$")


def _define_launchd(errand: Errand, home: PurePath) -> Definition:
    folder = PurePosixPath("/Library/LaunchDaemons") if errand.everyone else home
    file = folder / f"{LABEL}.plist"
    if not errand.everyone:
        file = home / "Library/LaunchAgents" / file.name
    domain = "system" if errand.everyone else f"gui/{errand.uid}"
    content: dict[str, object] = {
        "Label": LABEL,
        "ProgramArguments": list(errand.words),
        "EnvironmentVariables": dict(errand.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": _AGAIN,
        "ExitTimeOut": _STOPPING,
        "ProcessType": "Background",
        "LowPriorityIO": True,
        "Nice": 10,
        "Umask": 0o077,
    }
    if errand.everyone:
        content["UserName"] = errand.account
    return Definition(
        file=file,
        content=format_plist(content),
        install=(("launchctl", "bootstrap", domain, str(file)),),
        uninstall=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        advice=(f"See how it does: launchctl print {domain}/{LABEL}",),
    )


def format_plist(content: Mapping[str, object]) -> bytes:
    """Return a property list that says who made it."""
    head, end, rest = plistlib.dumps(content, sort_keys=False).decode().partition("?>\n")
    return f"{head}{end}<!-- {MARK} -->\n{rest}".encode()


def _define_task(errand: Errand, state: PurePath) -> Definition:
    file = state / f"{NAME}-watch.xml"
    # A task has no environment of its own.
    scope = ("/M",) if errand.everyone else ()
    variables = tuple(("setx", name, value, *scope) for name, value in errand.environment.items())
    return Definition(
        file=file,
        content=_task_text(errand).encode("utf-16"),  # the only encoding that schtasks reads
        install=(
            *variables,
            ("schtasks", "/Create", "/TN", TASK, "/XML", str(file), "/F"),
            ("schtasks", "/Run", "/TN", TASK),
        ),
        uninstall=(
            ("schtasks", "/End", "/TN", TASK),
            ("schtasks", "/Delete", "/TN", TASK, "/F"),
        ),
        advice=(
            f'See how it does: schtasks /Query /TN "{TASK}" /V /FO LIST',
            *((_NO_KEYRING,) if errand.everyone else ()),
        ),
    )


def _task_text(errand: Errand) -> str:
    program, *words = errand.words
    account = escape(errand.account)
    trigger = (
        "<BootTrigger><Enabled>true</Enabled></BootTrigger>"
        if errand.everyone
        else f"<LogonTrigger><Enabled>true</Enabled><UserId>{account}</UserId></LogonTrigger>"
    )
    logon = "S4U" if errand.everyone else "InteractiveToken"
    return f"""\
<?xml version="1.0" encoding="UTF-16"?>
<!-- {MARK} -->
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>mydata-like: carries instrument data to its server</Description>
  </RegistrationInfo>
  <Triggers>{trigger}</Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{account}</UserId>
      <LogonType>{logon}</LogonType>
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
      <Interval>PT{_AGAIN // 60}M</Interval>
      <Count>999</Count>
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


def is_ours(file: Path) -> bool:
    """Return whether a file was made here; one that does not exist is nobody's, so ours."""
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return True
    return MARK.encode() in content or MARK.encode("utf-16-le") in content
