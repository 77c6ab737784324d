"""Makes what people install, for the system that it runs on: `python packaging/build.py`.

Everything is built in packaging/build and put into dist: the bundle as a folder, tried by its own
self-test, and what carries it to other computers. See packaging/README.md.
"""

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
MOST = 175_000_000  # bytes that the bundle may have


def run(*words: str | Path) -> None:
    """Run a command; whatever goes wrong in it ends the build."""
    print("$", *words, flush=True)
    subprocess.run(words, check=True, cwd=ROOT)


def prepare() -> Path:
    """Make the environment of the build, of nothing but what is locked; return its Python.

    It is kept as long as the lock stays the same.
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


def make_bundle(python: Path) -> None:
    """Make the folder with the program and all that it needs, and its papers."""
    run(python, PACKAGING / "icons.py", BUILD / "icons")
    run(python, PACKAGING / "windows" / "version.py", BUILD / "version.txt")
    run(
        *(python, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", DIST, "--workpath", BUILD / "work"),
        PACKAGING / "mydata-like.spec",
    )
    run(python, PACKAGING / "papers.py", BUNDLE)
    shutil.copy(ROOT / "LICENSE", BUNDLE)


def check_bundle() -> None:
    """See that it works on this computer, and is as small as it should be."""
    size = sum(file.stat().st_size for file in BUNDLE.rglob("*") if not file.is_symlink())
    print(f"{BUNDLE}: {size / 1e6:.1f} MB", flush=True)
    if size > MOST:
        sys.exit(f"The bundle is larger than {MOST / 1e6:.0f} MB: see what came in.")
    run(BUNDLE / ("mydata-like.exe" if os.name == "nt" else "mydata-like"), "--self-test")


def wrap_up(python: Path) -> None:
    """Make what carries the bundle to other computers of this system."""
    if sys.platform == "linux":
        run(python, PACKAGING / "linux" / "wrap.py", BUNDLE, BUILD / "icons", DIST)
    elif os.name == "nt" and (compiler := shutil.which("iscc")):
        run(compiler, PACKAGING / "windows" / "mydata-like.iss")
    elif sys.platform == "darwin":
        image = DIST / "mydata-like.dmg"
        source = DIST / "mydata-like.app"
        run("hdiutil", "create", "-volname", "mydata-like", "-srcfolder", source, "-ov", image)


def main() -> None:
    """Do all of it."""
    python = prepare()
    make_bundle(python)
    check_bundle()
    wrap_up(python)


if __name__ == "__main__":
    main()
