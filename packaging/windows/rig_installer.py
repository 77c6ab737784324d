"""The step `installer` of the rig: install, upgrade and remove the program on a new Windows.

It needs the bundle, from the step `bundle`. The log is `installer.log` in the folder of the rig.
"""

from __future__ import annotations

import copy
import getpass
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rig import Rig

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = Path(__file__).parent / "mydata-like.nsi"
PATIENCE: Final = 900.0  # seconds
PAUSE: Final = 0.5  # seconds between two looks
BANDWIDTH: Final = 3  # MB/s of 128 MB, so that the upgrade comes in the middle of a run
HIVES: Final = {"user.reg": "HKCU", "system.reg": "HKLM"}
# What Windows itself and the copy of the uninstaller change.
PROFILE: Final = f"users/{getpass.getuser()}"
TEMPORARY: Final = ("windows/temp", "AppData/Local/Temp", f"{PROFILE}/Temp")
NOISE: Final = re.compile(
    r"""^HK(CU|LM)\ (Software\\\\Wine\\\\ | Console\b | .*\\\\Explorer\\\\SessionInfo
        | .*\\\\Control\\\\(Device)?Class(es)?\\\\
        | Software\\\\Microsoft\\\\SystemCertificates\b  # Windows' own, made by the first TLS
        | Software\\\\Microsoft\\\\Windows\\\\CurrentVersion\\\\Uninstall\ ?$
        | .*\\\\CurrentVersion\\\\Fonts\b  # of Linux: Wine drops those that it cannot draw
        | .*"PendingFileRenameOperations"=.*~nsu)
    """,
    re.VERBOSE,
)
PROGRAMS: Final = f"{PROFILE}/AppData/Local/Programs"  # a folder of Windows
# Prints the commands of the program's processes. Wine 8 does not tell psutil their names.
LIST: Final = """
import json, pathlib, psutil
found = []
for process in psutil.process_iter():
    try:
        words = process.cmdline()
    except (OSError, psutil.Error):
        continue
    if words and pathlib.Path(words[0]).name.startswith("mydata-like"):
        found.append(words)
print(json.dumps(found))
"""


class State(NamedTuple):
    """The files on drive C: and the values in the registry, as `HIVE key value`."""

    files: frozenset[str]
    values: frozenset[str]

    def compare(self, later: State) -> list[str]:
        """Return what was added (+) and removed (-) later."""
        changes = []
        for before, after in zip(self, later, strict=True):
            changes += [f"+ {it}" for it in sorted(after - before)]
            changes += [f"- {it}" for it in sorted(before - after)]
        return changes


class Computer:
    """A new Windows, and the log of what was done on it."""

    def __init__(self, rig: Rig, setup: Path) -> None:
        self.rig = copy.copy(rig)
        self.rig.prefix = rig.folder / "installer-prefix"
        self.setup = setup
        self.log = rig.folder / "installer.log"
        self.log.write_text("")
        self.user = self.rig.windows / PROFILE
        shutil.rmtree(self.rig.prefix, ignore_errors=True)
        self.rig.make_prefix()
        for name in ("icuuc.dll", "bcryptprimitives.dll", "rstrtmgr.dll"):
            system = Path("windows") / "system32"
            shutil.copy(rig.windows / system / name, self.rig.windows / system)
        with self.rig.started():
            self.rig.run("-c", "import psutil")

    def note(self, text: str) -> None:
        """Print a line, and write it to the log."""
        print(text, flush=True)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"{text}\n")

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Note how long something took."""
        self.note(f"== {name}")
        began = time.monotonic()
        yield
        self.note(f"== {name}: {time.monotonic() - began:.1f} s")

    def run(self, program: Path, *words: str) -> str:
        """Run a program, and note its output."""
        self.note(f"$ {program.name} {' '.join(words)}")
        output = self.rig.execute(program, *words)
        with self.log.open("a", encoding="utf-8") as log:
            log.write(output)
        return output

    def install(self, *words: str) -> None:
        """Install silently, and note what the installer logged."""
        self._log_of(self.setup, "/S", *words)

    def uninstall(self, folder: Path, *words: str) -> None:
        """Remove the program silently, and wait: the uninstaller continues as a copy of itself."""
        self._log_of(folder / "uninstall.exe", "/S", *words)
        self.wait("the uninstaller", lambda: not folder.exists())

    def _log_of(self, program: Path, *words: str) -> None:
        report = self.rig.windows / "report.log"
        report.unlink(missing_ok=True)
        # Programs that it starts would keep a pipe open: in Wine they inherit it.
        code = self.start(program, *words, r"/LOG=C:\report.log").wait(PATIENCE)
        assert code == 0, f"{program.name} ended with exit code {code}"
        self.wait("its log", report.exists)
        ends = ("is installed.", "is removed.")
        self.wait("its end", lambda: any(it in report.read_text("cp1252") for it in ends))
        self.note(report.read_text("cp1252").rstrip())
        report.unlink()

    def wait(self, what: str, done: Callable[[], bool]) -> None:
        """Wait until something is done."""
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"waited too long for {what}"
            time.sleep(PAUSE)

    def processes(self) -> list[list[str]]:
        """Return the command lines of the program's processes."""
        found: list[list[str]] = json.loads(self.rig.run("-c", LIST).splitlines()[-1])
        return [[Path(words[0].replace("\\", "/")).name, *words[1:]] for words in found]

    def start(self, program: Path, *words: str) -> subprocess.Popen[bytes]:
        """Start a program in the background."""
        self.note(f"$ {program.name} {' '.join(words)}")
        return subprocess.Popen(
            ["wine", str(program), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.rig.environment,
        )

    def read_state(self) -> State:
        """Return the state of a Windows that is shut down, since that writes the registry."""
        subprocess.run(["wineserver", "-w"], env=self.rig.environment, check=True)
        files = set()
        for folder, folders, names in os.walk(self.rig.windows):
            place = Path(folder).relative_to(self.rig.windows)
            if any(it in place.as_posix() for it in TEMPORARY):
                continue
            files.update((place / name).as_posix() for name in (*folders, *names))
        return State(frozenset(files - {PROGRAMS}), frozenset(self._read_registry()))

    def _read_registry(self) -> Iterator[str]:
        for name, hive in HIVES.items():
            key = ""
            for line in (self.rig.prefix / name).read_text("utf-8").splitlines():
                if line.startswith("["):
                    key = line[1 : line.rindex("]")]
                entry = f"{hive} {key} {'' if line.startswith('[') else line}"
                if key and not line.startswith("#") and not NOISE.match(entry):
                    yield entry


def check_installer(rig: Rig) -> None:
    """Install, upgrade and remove the program, for one account and for all."""
    setup = make_setup(rig)
    computer = Computer(rig, setup)
    computer.note(f"{setup.name}: {setup.stat().st_size / 1e6:.1f} MB")
    first = computer.read_state()
    with computer.timed("for one account"), computer.rig.started():
        check_one_account(computer)
    left = find_left(computer, first)
    ours = f"+ {PROFILE}/AppData/Local/mydata-like"
    strangers = [it for it in left if not it.startswith(ours)]
    assert not strangers, f"left behind: {strangers}"
    assert any(re.match(rf"{re.escape(ours)}.*/ledger-.*\.db", it) for it in left), "no ledger"
    with computer.timed("for all users"), computer.rig.started():
        check_all_users(computer)
    left = find_left(computer, first)
    assert not left, f"left behind after /PURGE: {left}"


def find_left(computer: Computer, first: State) -> list[str]:
    """Return what differs from the first state, except for files of this test."""
    changes = first.compare(computer.read_state())
    ours = ("+ demo", "+ report.log")  # the uninstaller's copy may write to it at its very end
    left = [it for it in changes if not it.startswith(ours)]
    computer.note("Left: " + ("\n  ".join(left) or "nothing"))
    return left


def make_setup(rig: Rig) -> Path:
    """Return the installer, made from the bundle unless it is newer."""
    bundle = rig.source / "dist" / "mydata-like"
    made = sorted(rig.folder.glob("mydata-like-*-setup.exe"))
    sources = (bundle / "mydata-like.exe", SCRIPT)
    if made and all(made[-1].stat().st_mtime > it.stat().st_mtime for it in sources):
        return made[-1]
    options = {
        "BUNDLE": bundle,
        "ICON": rig.source / "packaging" / "build" / "icons" / "mydata-like.ico",
        "OUTPUT": rig.folder,
    }
    words = [f"-D{name}={path}" for name, path in options.items()]
    began = time.monotonic()
    subprocess.run(
        ["makensis", "-V2", "-WX", "-INPUTCHARSET", "UTF8", *words, str(SCRIPT)], check=True
    )
    print(f"makensis: {time.monotonic() - began:.0f} s", flush=True)
    return sorted(rig.folder.glob("mydata-like-*-setup.exe"))[-1]


def check_one_account(computer: Computer) -> None:
    """Install for this account, use it, upgrade it in the middle of a run, and remove it."""
    folder = computer.user / "AppData" / "Local" / "Programs" / "mydata-like"
    with computer.timed("install"):
        computer.install("/PATH=1")
    program = folder / "mydata-like.exe"
    roaming = computer.user / "AppData" / "Roaming" / "Microsoft" / "Windows"
    assert (roaming / "Start Menu" / "Programs" / "mydata-like.lnk").exists()
    assert (roaming / "SendTo" / "mydata-like.lnk").exists()
    computer.run(program, "--version")
    computer.run(program, "--self-test")
    assert (folder / "_internal/mydata_like/resources/site/index.html").exists()
    computer.rig.run("-c", CHECK_ENTRY, "HKEY_CURRENT_USER", "1")
    with computer.timed("upgrade while it runs"):
        upgrade_in_a_run(computer, folder)
    with computer.timed("uninstall"):
        computer.uninstall(folder)


def check_all_users(computer: Computer) -> None:
    """Install for all users with all choices, and remove it with all that it has stored."""
    folder = computer.rig.windows / "Program Files" / "mydata-like"
    managed = computer.rig.windows / "ProgramData" / "mydata-like"
    with computer.timed("install"):
        computer.install("/AllUsers", "/PATH=1", "/AUTOSTART=1", "/SENDTO=0")
    menu = managed.parent / "Microsoft" / "Windows" / "Start Menu" / "Programs"
    assert (menu / "mydata-like.lnk").exists()
    assert managed.is_dir()
    computer.run(folder / "mydata-like.exe", "--version")
    computer.rig.run("-c", CHECK_ENTRY, "HKEY_LOCAL_MACHINE", "0")
    (managed / "managed.toml").write_text('[instrument]\nfacility = "Rig"\n')
    output = computer.run(folder / "mydata-like.exe", "settings", "explain", "instrument.facility")
    assert "Rig" in output
    with computer.timed("uninstall with /PURGE"):
        computer.uninstall(folder, "/AllUsers", "/PURGE")
    assert not managed.exists()


# The entry in "Apps" has all that Windows shows, and the folder is on the search path.
CHECK_ENTRY: Final = r"""
import sys, winreg
root = getattr(winreg, sys.argv[1])
windows = r"Software\Microsoft\Windows\CurrentVersion"
with winreg.OpenKey(root, windows + r"\Uninstall\mydata-like") as key:
    entry = {winreg.EnumValue(key, n)[0]: winreg.EnumValue(key, n)[1]
             for n in range(winreg.QueryInfoKey(key)[1])}
for name, value in entry.items():
    print(f"  {name}: {value}")
assert entry["EstimatedSize"] > 50_000, "the size in KiB"
assert entry["SendTo"] == int(sys.argv[2])
assert entry["QuietUninstallString"].endswith("/S")
place = "Environment"
if root == winreg.HKEY_LOCAL_MACHINE:
    place = r"SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
    with winreg.OpenKey(root, windows + r"\Run") as key:
        print("  Run:", winreg.QueryValueEx(key, "mydata-like")[0])
with winreg.OpenKey(root, place) as key:
    path = winreg.QueryValueEx(key, "Path")[0]
print("  Path:", path)
assert entry["InstallLocation"] in path.split(";")
"""


def upgrade_in_a_run(computer: Computer, folder: Path) -> None:
    """Upgrade while a watch uploads and a window is open; both continue, and no file is lost."""
    program, config = folder / "mydata-like.exe", computer.rig.windows / "demo" / "settings.toml"
    name = r"C:\demo\settings.toml"
    server = start_server(computer, config, name)
    words = ("watch", "--config", name, "--set", "schedule.kind=startup")
    watch = computer.start(program, *words, "--set", f"limits.bandwidth={BANDWIDTH}")
    window = computer.start(folder / "mydata-like-gui.exe", "--hidden")

    def status() -> dict[str, object]:
        words = ("status", "--json", "--config", name)
        found: dict[str, object] = json.loads(computer.rig.execute(program, *words))
        return found

    computer.wait("the run", lambda: bool(status()["running"]))
    computer.note(f"running before: {computer.processes()}")
    with computer.timed("installer"):
        computer.install()
    assert watch.wait(PATIENCE) == 0, "the watch did not stop cleanly"
    assert window.wait(PATIENCE) == 0, "the window did not stop cleanly"
    after = computer.processes()
    computer.note(f"running after: {after}")
    assert any(it[:2] == ["mydata-like.exe", "watch"] and name in it for it in after)
    assert ["mydata-like-gui.exe", "--hidden"] in after
    computer.wait("all files", lambda: status()["safety"] == "safe")
    computer.note(f"after the upgrade: {json.dumps(status()['runs'])}")
    server.kill()


def start_server(computer: Computer, config: Path, name: str) -> subprocess.Popen[bytes]:
    """Start the embedded server, which writes settings; it does not belong to the installation."""
    config.parent.mkdir()
    words = ("-m", "mydata_like", "demo", "--serve", "--write-config", name)
    server = computer.start(computer.rig.python / "python.exe", *words)
    computer.wait("the server", config.exists)
    # The ledger belongs where a user has it.
    settings = config.read_text("utf-8")
    config.write_text(re.sub(r"^state_directory.*\n", "", settings, flags=re.MULTILINE), "utf-8")
    return server
