"""A hook of hatchling that compiles the library of `mydata_like.core.hashing`, given a C compiler.

A compiler for Windows in CC makes a wheel for Windows anywhere: CC=x86_64-w64-mingw32-gcc.
Without one, the program computes checksums by hashlib, and reads folders and tiny files one by one.
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

CORE: Final = Path(__file__).parents[1] / "mydata_like" / "core"
LIBRARIES: Final = {"win32": "_md5.dll", "darwin": "_md5.dylib"}
SOURCES: Final = ("md5.c", "tiny_files.c", "folder_entries.c")
OPTIONS: Final = ("-O3", "-shared", "-fPIC", "-fvisibility=hidden")


def find_compiler() -> list[str]:
    """Return the command of a compiler that knows vectors; empty if there is none."""
    given = shlex.split(os.environ.get("CC", ""))
    found = next(filter(None, map(shutil.which, ("gcc", "clang", "cc"))), None)
    return given or ([found] if found else [])


def find_system(compiler: list[str]) -> tuple[str, str]:
    """Return the system that a compiler compiles for, as `sys.platform` and in tags of wheels."""
    if Path(compiler[0]).name.startswith("x86_64-w64-mingw32"):
        return "win32", "win_amd64"
    return sys.platform, sysconfig.get_platform().replace("-", "_").replace(".", "_")


def compile_library(compiler: list[str], library: Path) -> bool:
    """Compile the library; return whether that succeeded.

    The file is replaced at once, since programs may use it and other builds may read it.
    """
    sources = [str(CORE / name) for name in SOURCES]
    # In a folder of its own: a library for Windows contains the name that it is compiled to.
    with TemporaryDirectory(dir=library.parent) as folder:
        part = Path(folder) / library.name
        try:
            if subprocess.run([*compiler, *OPTIONS, "-o", part, *sources], check=False).returncode:
                return False
            part.replace(library)
        except OSError as error:
            print(error, file=sys.stderr)
            return False
    return True


class Hook(BuildHookInterface[Any]):
    """Puts the library into wheels, which then are for one system, and the pages into sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the library into the sources, for editable installations as well."""
        if self.target_name == "sdist":
            if (site := Path(self.root, "resources", "site")).is_dir():  # made by `make docs`
                build_data["force_include"][str(site)] = "resources/site"
            return
        compiler = find_compiler()
        system, tag = find_system(compiler or [""])
        if tag == "win_amd64" and sys.platform != "win32":
            # Of MinGW: the same bytes each time. The base is made from the name of the folder.
            compiler.append("-Wl,--no-insert-timestamp,--disable-auto-image-base")
        library = CORE / LIBRARIES.get(system, "_md5.so")
        if not (compiler and compile_library(compiler, library)):
            self.app.display_warning("No C compiler: hashlib will compute the checksums, slower.")
            return
        build_data["artifacts"].append(f"mydata_like/core/{library.name}")
        build_data["tag"] = f"py3-none-{tag}"
        build_data["pure_python"] = False
