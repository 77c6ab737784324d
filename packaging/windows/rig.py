"""Run the program and its tests under Windows, with Wine.

`python packaging/windows/rig.py [STEP...]` needs root on Debian 12 or newer. What it downloads and
builds is kept in `build/windows-rig`:

- a prefix of Wine, and CPython for Windows, which is in Maven's central repository;
- the locked dependencies and those of the tests, as wheels for Windows;
- stand-ins for libraries that Wine or this CPython lacks, from `standins`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from rig_bundle import build_bundle
from rig_flow import upload
from rig_installer import check_installer

ROOT: Final = Path(__file__).parents[2]
STANDINS: Final = Path(__file__).parent / "standins"
PYTHON: Final = "org.bytedeco:cpython:jar:windows-x86_64:3.11.3-1.5.9"
PACKAGES: Final = {  # Debian's packages, by a program of each
    "wine": "wine",
    "x86_64-w64-mingw32-gcc": "gcc-mingw-w64-x86-64-win32",
    "x86_64-w64-mingw32-objdump": "binutils-mingw-w64-x86-64",
    "Xvfb": "xvfb",
    "makensis": "nsis",
}
WHEELS: Final = ROOT / "packaging" / "requirements-bundle.txt"
# Without Windows' fonts, Wine writes the window's texts with one that has serifs.
REPLACED_FONTS: Final = r"HKCU\Software\Wine\Fonts\Replacements"
FONTS: Final = ("Segoe UI", "MS Shell Dlg", "MS Shell Dlg 2", "Tahoma")
SCREEN: Final = "1366x768x24"
TIMEOUT: Final = 1800.0  # seconds for one command
LOOK: Final = 1.0  # seconds between two looks at a command
LAST_LINES: Final = 10.0  # seconds to read what is left of a command's output
# Functions of ICU that Qt imports, and calls only for text in rare encodings.
ICU: Final = re.compile(r"\b(ucnv_\w+|UCNV_\w+)\b")
# A program with a desktop that waits until its standard input is closed.
RESIDENT: Final = """
import ctypes, sys
ctypes.windll.user32.GetDesktopWindow()
print("ready", flush=True)
sys.stdin.read()
"""
DIFFERENT: Final = (
    "tests/unit/core/test_file_access.py",
    "tests/unit/core/test_data_directory_spelling.py",
    "tests/unit/hostos/test_open_files_on_windows.py",
    "tests/unit/hostos/test_logs.py",
    "tests/unit/hostos/test_logs_reading.py",
    "tests/unit/cli/test_terminal.py",
    "tests/unit/ledger/test_sqlite_ledger.py",
)
NOT_COPIED: Final = (
    *(".git", ".venv", "build", "dist", ".hypothesis", ".*_cache", "__pycache__", "_md5.*"),
)
PARALLEL: Final = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")
# Without its metadata, the program does not know what it depends on.
METADATA: Final = """
from hatchling.build import prepare_metadata_for_build_wheel
prepare_metadata_for_build_wheel(".")
"""
TEST_GROUP: Final = (
    "hypothesis",
    "pytest",
    "pytest-qt",
    "pytest-timeout",
    "pytest-xdist",
    "pyyaml",
)


class RigError(Exception):
    """A step that failed."""


class Rig:
    """Wine with CPython for Windows in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = folder / "prefix"
        self.python = folder / "python"
        self.source = folder / "source"
        self.display = ""
        self._server: subprocess.Popen[bytes] | None = None  # none for another prefix
        self._resident: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of Windows programs."""
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "LANG") if name in os.environ}
        return kept | {
            "WINEPREFIX": str(self.prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "DISPLAY": self.display,
            "PYTHONPATH": to_windows(self.source),
            "PYTHONUNBUFFERED": "1",
        }

    @property
    def windows(self) -> Path:
        """The drive C: of Windows."""
        return self.prefix / "drive_c"

    def run(self, *words: str, timeout: float = TIMEOUT, **variables: str) -> str:
        """Run Windows' Python with these arguments; return its output, which is also printed."""
        return self.execute(self.python / "python.exe", *words, timeout=timeout, **variables)

    def execute(
        self, program: Path, *words: str, timeout: float = TIMEOUT, **variables: str
    ) -> str:
        """Run a program of Windows; return its output, which is also printed."""
        command = ["wine", str(program), *words]
        environment = self.environment | variables
        try:
            return run(command, timeout, env=environment, cwd=self.source, server=self._server)
        finally:
            if self._server is not None and self._server.poll() is not None:
                print("Wine's server has ended; see wineserver.log", flush=True)
                self._end_windows()
                self._start_windows()

    # What is prepared, once

    def prepare(self) -> None:
        """Get and build everything that is missing; copy the program."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, make in (
            ("system packages", install_packages),
            ("CPython", self._get_python),
            ("prefix of Wine", self.make_prefix),
            ("wheels", self._get_wheels),
            ("stand-ins", self._build_standins),
            ("copy of the program", self._copy_source),
        ):
            with timed(name):
                make()

    def refresh(self) -> None:
        """Copy the program again, and prepare nothing else."""
        self._copy_source()

    def find_missing(self) -> str:
        """Return what keeps the rig from being used as it is; empty if nothing does."""
        if missing := [program for program in PACKAGES if not shutil.which(program)]:
            return f"{', '.join(missing)} is not installed"
        prefix, stamp = self.folder / "prefix", self.folder / "requirements"
        made = (prefix / "system.reg", stamp, self.python / "python3.dll")
        if not all(file.exists() for file in made):
            return f"{self.folder} is not complete"
        if prefix.stat().st_uid != os.geteuid():
            return f"{prefix} belongs to another account"
        return "" if stamp.read_bytes() == WHEELS.read_bytes() else "the wheels are out of date"

    def _get_python(self) -> None:
        if (self.python / "python.exe").exists():
            return
        jar = self.folder / "cpython.jar"
        if not jar.exists():
            tools = self._make_tools()
            run([str(tools / "maven-artifact"), PYTHON, str(jar)])
        shutil.rmtree(self.python, ignore_errors=True)
        unpacked = self.folder / "unpacked"
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(unpacked)
        (inner,) = unpacked.rglob("python311.dll")
        inner.parent.rename(self.python)
        shutil.rmtree(unpacked)

    def _make_tools(self) -> Path:
        """Return the programs of an environment for programs that download."""
        tools = self.folder / "tools"
        if not (tools / "bin" / "uv").exists():
            venv.create(tools, clear=True, with_pip=True)
            run([str(tools / "bin" / "pip"), "install", "--quiet", "uv", "maven-artifact"])
        return tools / "bin"

    def make_prefix(self) -> None:
        """Make the prefix, unless it exists: Windows with nothing installed."""
        if not (self.prefix / "system.reg").exists():
            run(["wineboot", "-i"], env=self.environment)
            run(["wine", "winecfg", "-v", "win10"], env=self.environment)  # Debian's default is 7
            for font in FONTS:
                value = ["/v", font, "/d", "DejaVu Sans", "/f"]
                run(["wine", "reg", "add", REPLACED_FONTS, *value], env=self.environment)
            run(["wineserver", "-w"], env=self.environment)

    def _get_wheels(self) -> None:
        stamp = self.folder / "requirements"
        if stamp.exists() and stamp.read_bytes() == WHEELS.read_bytes():
            return
        target = self.python / "lib" / "site-packages"
        for what in (["--require-hashes", "--requirement", str(WHEELS)], TEST_GROUP):
            self._install(target, *what)
        shutil.copy(WHEELS, stamp)

    def _install(self, target: Path, *what: str) -> None:
        """Install packages for Windows into a folder."""
        run(
            [
                *(str(self._make_tools() / "uv"), "pip", "install", "--quiet"),
                *("--python-platform", "x86_64-pc-windows-msvc", "--python-version", "3.11"),
                *("--only-binary", ":all:", "--target", str(target), *what),
            ]
        )

    def _build_standins(self) -> None:
        """Build the libraries that are missing.

        This CPython lacks `python3.dll`, which extensions for all versions import from. Wine 8
        lacks `bcryptprimitives.dll` and `icuuc.dll`; the functions of the latter return nothing.
        Those of its `rstrtmgr.dll` do nothing. These three are where Windows has them, so that no
        bundle contains them.
        """
        system = self.windows / "windows" / "system32"
        self._compile(system / "rstrtmgr.dll", STANDINS / "rstrtmgr.c", "-lntdll")
        if (system / "icuuc.dll").exists():
            return
        names = re.findall(r"\s(_?Py\w+)$", list_symbols(self.python / "python311.dll"), re.M)
        forwards = "".join(f"{name}=python311.{name}\n" for name in sorted(set(names)))
        python3 = self.python / "python3.dll"
        self._compile(python3, STANDINS / "empty.c", "-nostdlib", "-eDllMainCRTStartup", forwards)
        primitives = system / "bcryptprimitives.dll"
        self._compile(primitives, STANDINS / "bcryptprimitives.c", "-ladvapi32")
        qt = self.python / "lib" / "site-packages" / "PySide6" / "Qt6Core.dll"
        functions = sorted(set(ICU.findall(list_symbols(qt))))
        code = self.folder / "icuuc.c"
        code.write_text(
            "".join(f"__declspec(dllexport) void *{it}(void) {{ return 0; }}\n" for it in functions)
        )
        self._compile(system / "icuuc.dll", code)

    def _compile(self, library: Path, code: Path, *words: str) -> None:
        options = [word for word in words if word.startswith("-")]
        for exports in (word for word in words if not word.startswith("-")):
            definition = self.folder / f"{library.stem}.def"
            definition.write_text(f"LIBRARY {library.stem}\nEXPORTS\n{exports}")
            options.append(str(definition))
        run(["x86_64-w64-mingw32-gcc", "-shared", "-o", str(library), str(code), *options])

    def _copy_source(self) -> None:
        """Copy the program and its tests, so that Windows writes nothing into them."""
        ignored = shutil.ignore_patterns(*NOT_COPIED)
        shutil.copytree(ROOT, self.source, dirs_exist_ok=True, ignore=ignored)
        for file in self.source.rglob("*"):  # remove what is left of an earlier copy
            is_left = not (ROOT / file.relative_to(self.source)).exists()
            if is_left and file.is_file() and file.parent.name != "__pycache__":
                file.unlink()
        core = self.source / "mydata_like" / "core"
        compiler = ["x86_64-w64-mingw32-gcc", "-O3", "-shared", "-static-libgcc"]
        run([*compiler, "-o", str(core / "_md5.dll"), str(core / "md5.c")])
        for old in self.source.glob("*.dist-info"):
            shutil.rmtree(old)
        # Hatchling is among the wheels for Windows, but needs none of its libraries.
        packages = os.environ | {"PYTHONPATH": str(self.python / "lib" / "site-packages")}
        run([sys.executable, "-c", METADATA], env=packages, cwd=self.source)

    @contextmanager
    def started(self) -> Iterator[None]:
        """Start Windows, and end it with all of its programs."""
        self._start_windows()
        try:
            yield
        finally:
            self._end_windows()

    def _start_windows(self) -> None:
        """Start Wine's server, and a program that keeps the desktop.

        The first program with a window also starts Wine's desktop, which inherits the streams of
        that program and keeps them open, so that a reader of its output would wait forever.
        Therefore a program with streams of its own starts the desktop, and stays, since the desktop
        ends with the last program.
        """
        with (self.folder / "wineserver.log").open("a") as log:
            command = ["wineserver", "--foreground", "--persistent"]
            self._server = subprocess.Popen(command, stderr=log, env=self.environment)
        self._resident = subprocess.Popen(
            ["wine", str(self.python / "python.exe"), "-c", RESIDENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment,
        )
        assert self._resident.stdout is not None
        timer = threading.Timer(TIMEOUT, self._resident.kill)
        timer.start()
        started = self._resident.stdout.readline()
        timer.cancel()
        if not started:
            self._end_windows()
            raise RigError("Windows does not start")

    def _end_windows(self) -> None:
        """End all programs; those whose server has ended wait for it forever."""
        assert self._server is not None
        assert self._resident is not None
        if self._server.poll() is None:
            subprocess.run(["wineserver", "-k"], env=self.environment, check=False)
        else:
            self._resident.kill()
        self._server.wait()
        self._resident.communicate()

    # The steps

    def start(self) -> None:
        """Print the version, and check all parts of the program."""
        self.run("-m", "mydata_like", "--version")
        self.run("-m", "mydata_like", "--self-test")

    def files(self) -> None:
        """Run the tests of what differs on Windows."""
        self._test(*DIFFERENT)

    def unit(self) -> None:
        """Run the unit tests in two processes; one in which a test hangs is replaced."""
        self._test("tests/unit", *PARALLEL, "--continue-on-collection-errors", "--durations=20")

    def test_each(self, parts: Sequence[str], **variables: str) -> None:
        """Run tests, each file or folder in a process of its own, since one may hang."""
        failed = []
        for part in parts:
            try:
                with timed(part):
                    self._test(part, "--continue-on-collection-errors", **variables)
            except RigError as error:
                failed.append(f"{part}: {error}")
        if failed:
            raise RigError("; ".join(failed))

    def _test(self, *words: str, **variables: str) -> None:
        # Opening files takes far more processor time in Wine than on Linux.
        quiet = ("-q", "-p", "no:cacheprovider", "--tb=short", "--no-time-limit")
        self.run("-m", "pytest", *quiet, *words, **variables)

    def demo(self) -> None:
        """Upload sample data to the embedded server."""
        self.run("-m", "mydata_like", "demo", "--no-window")

    def wheel(self) -> None:
        """Install the wheel that `make wheel` has built, with its newest libraries, and try it."""
        (built,) = (ROOT / "dist").glob("mydata_like-*-win_amd64.whl")
        installed = self.folder / "wheel"
        shutil.rmtree(installed, ignore_errors=True)
        self._install(installed, f"{built}[s3]")
        # Without the copy of the program, which is the current folder.
        alone = {"PYTHONPATH": to_windows(installed), "PYTHONSAFEPATH": "1"}
        found = self.run("-c", "import mydata_like; print(mydata_like.__file__)", **alone)
        if "wheel" not in found or not list(
            installed.glob("mydata_like/resources/site/index.html")
        ):
            raise RigError("this is not the wheel, or one without the documentation")
        for words in (["demo", "--no-window"], ["--self-test"]):
            self.run("-m", "mydata_like", *words, **alone)

    def service(self) -> None:
        """Install the service, start its command, and remove it."""
        self.run(r"packaging\windows\service_trial.py", timeout=600)

    def window(self) -> None:
        """Operate the real window, and save pictures of it."""
        self.run("-m", "tests.trials.window", to_windows(self.folder / "pictures"))

    def kill(self) -> None:
        """Kill runs at random moments."""
        self.run("-m", "tests.trials.kill", "--rounds", "20", "--files", "100")

    def watch(self) -> None:
        """Run a watch while files appear, are held open, and the server goes away."""
        self.run("-m", "tests.trials.watch")


def to_windows(path: Path) -> str:
    """Return a path as Windows programs in Wine see it."""
    return "Z:" + str(path).replace("/", "\\")


def install_packages() -> None:
    """Install the Debian packages whose programs are missing."""
    missing = [package for program, package in PACKAGES.items() if not shutil.which(program)]
    if missing:
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        run(["apt-get", "update", "-qq"], env=quiet)
        run(["apt-get", "install", "-qq", "--no-install-recommends", *missing], env=quiet)


def list_symbols(library: Path) -> str:
    """Return the tables of a Windows library's imports and exports."""
    command = ["x86_64-w64-mingw32-objdump", "-p", str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run(
    command: Sequence[str],
    timeout: float = TIMEOUT,
    *,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    server: subprocess.Popen[bytes] | None = None,
) -> str:
    """Run a command, print its output as it comes, and return it. Raises `RigError`.

    Its standard streams are pipes, since Wine cannot inherit all kinds of files. A program of Wine
    that the command started may keep its output open, so this waits for the command only, and no
    longer than for Wine's `server`, without which programs of Wine hang.
    """
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=env,
        cwd=cwd,
    )
    assert started.stdout is not None
    lines: list[str] = []

    def follow(output: IO[str]) -> None:
        for line in output:
            print(line, end="", flush=True)
            lines.append(line)

    reader = threading.Thread(target=follow, args=(started.stdout,), daemon=True)
    reader.start()
    end = time.monotonic() + timeout
    while started.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            started.wait(LOOK)
        if time.monotonic() > end or (server is not None and server.poll() is not None):
            started.kill()
    code = started.returncode
    reader.join(LAST_LINES)
    if code:
        raise RigError(f"{' '.join(command[:6])} ended with exit code {code}")
    return "".join(lines)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Print the name of a part, and how long it took."""
    began = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)


@contextmanager
def screen(rig: Rig) -> Iterator[None]:
    """Open a screen, and start Windows."""
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", SCREEN, "-nolisten", "tcp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    rig.display = f":{server.stdout.readline().strip()}"
    try:
        with rig.started():
            yield
    finally:
        server.terminate()
        server.wait()


def make_ready(rig: Rig, *, quick: bool) -> bool:
    """Prepare the rig; if `quick`, only copy the program, or print why there is no complete rig."""
    if not quick:
        rig.prepare()
    elif missing := rig.find_missing():
        print(f"Windows is not tried here, since {missing}; make test-windows prepares it.")
        return False
    else:
        rig.refresh()
    return True


def main() -> int:
    """Prepare the rig and carry out steps; return 1 if one failed."""
    steps: dict[str, Callable[[Rig], None]] = {
        "start": Rig.start,
        "files": Rig.files,
        "demo": Rig.demo,
        "unit": Rig.unit,
        "service": Rig.service,
        "flow": upload,
        "window": Rig.window,
        "kill": Rig.kill,
        "watch": Rig.watch,
        "wheel": Rig.wheel,
        "bundle": build_bundle,
        "installer": check_installer,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {list(steps)}")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "windows-rig")
    parser.add_argument("--quick", action="store_true", help="do nothing where it is not prepared")
    options = parser.parse_args()
    quick = ["start", "files"]  # the self-test has an upload
    chosen = options.steps or (quick if options.quick else [*steps])
    if unknown := set(chosen) - set(steps):
        parser.error(f"there is no step {', '.join(sorted(unknown))}")
    rig = Rig(options.folder.absolute())
    if not make_ready(rig, quick=options.quick):
        return 0
    failed = []
    with screen(rig):
        for name in chosen:
            try:
                with timed(name):
                    steps[name](rig)
            except RigError as error:
                failed.append(f"{name}: {error}")
    print("\n".join(failed) or "all steps passed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
