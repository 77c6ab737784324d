"""Build the packages for the current system: `python packaging/build.py [--here] [--release]`.

The build uses packaging/build and writes to dist: the bundle as a folder, checked by its self-test,
and the packages of this system. See packaging/README.md.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGING = Path(__file__).parent
ROOT = PACKAGING.parent
BUILD = PACKAGING / "build"
DIST = ROOT / "dist"
BUNDLE = DIST / "mydata-like"
MOST = 175_000_000  # bytes; the size limit of the bundle


def run(*words: str | Path) -> None:
    """Run a command; a failure ends the build."""
    print("$", *words, flush=True)
    subprocess.run(words, check=True, cwd=ROOT)


def prepare() -> Path:
    """Create the virtual environment of the build from the lock file; return its Python.

    It is reused while the lock file is unchanged.
    """
    place = BUILD / "venv"
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    lock = PACKAGING / "requirements-bundle.txt"
    done = place / "requirements.txt"
    if not done.exists() or done.read_bytes() != lock.read_bytes():
        run(sys.executable, "-m", "venv", "--clear", place)
        run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock)
        shutil.copyfile(lock, done)
    run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--force-reinstall",
        ROOT,
    )
    return python


def prepare_here() -> Path:
    """Return the Python that runs this, which has everything from the lock file.

    Only the metadata of the program itself may be missing. They are written into the build folder.
    """
    python = Path(sys.executable)
    BUILD.mkdir(exist_ok=True)
    write = f"import hatchling.build as it; it.prepare_metadata_for_build_wheel({str(BUILD)!r})"
    run(python, "-c", write)
    paths = (str(BUILD), str(ROOT), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    return python


def make_bundle(python: Path) -> None:
    """Make the bundle folder, including its list of components and the licences."""
    run(python, PACKAGING / "icons.py", BUILD / "icons")
    run(python, PACKAGING / "windows" / "version.py", BUILD / "version.txt")
    run(
        *(python, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", DIST, "--workpath", BUILD / "work"),
        PACKAGING / "mydata-like.spec",
    )
    if sys.platform == "linux":
        run(python, PACKAGING / "linux" / "glibc.py", BUNDLE)
    run(python, PACKAGING / "papers.py", BUNDLE)
    shutil.copy(ROOT / "LICENSE", BUNDLE)


def check_bundle() -> None:
    """Check that the bundle works on this computer and is not too large."""
    size = sum(file.stat().st_size for file in BUNDLE.rglob("*") if not file.is_symlink())
    print(f"{BUNDLE}: {size / 1e6:.1f} MB", flush=True)
    if size > MOST:
        sys.exit(f"The bundle is larger than {MOST / 1e6:.0f} MB: check what was added.")
    run(BUNDLE / ("mydata-like.exe" if os.name == "nt" else "mydata-like"), "--self-test")


def wrap_up(python: Path, options: list[str]) -> None:
    """Make the packages of this system from the bundle."""
    if sys.platform == "linux":
        run(python, PACKAGING / "linux" / "wrap.py", BUNDLE, BUILD / "icons", DIST, *options)
    elif os.name == "nt" and not (compiler := shutil.which("makensis")):
        message = "No installer was made, since makensis is not on the PATH: install NSIS."
        sys.exit(message) if "--release" in options else print(message, flush=True)
    elif os.name == "nt":
        run(compiler, "-V2", "-WX", "-INPUTCHARSET", "UTF8", PACKAGING / "windows/mydata-like.nsi")
        run(python, PACKAGING / "windows" / "manifests.py", DIST)
    elif sys.platform == "darwin":
        image = DIST / "mydata-like.dmg"
        source = DIST / "mydata-like.app"
        run("hdiutil", "create", "-volname", "mydata-like", "-srcfolder", source, "-ov", image)


def main() -> None:
    """Run all steps of the build."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--here",
        action="store_true",
        help="use this Python, with what is installed there, and no virtual environment",
    )
    parser.add_argument(
        "--release", action="store_true", help="compress by xz, which takes three minutes"
    )
    given = parser.parse_args()
    if not (ROOT / "resources" / "site").is_dir():
        print("Without the pages of `mydata-like help`: make docs builds them.", flush=True)
    python = prepare_here() if given.here else prepare()
    make_bundle(python)
    check_bundle()
    wrap_up(python, ["--release"] if given.release else [])


if __name__ == "__main__":
    main()
