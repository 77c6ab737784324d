"""Removable drives: USB sticks, disks and memory cards."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from mydata_like.core.errors import UploaderError
from mydata_like.core.formatting import format_text

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    from mydata_like.core.file_access import GENERIC_READ, open_handle

_REMOVABLE: Final = 2  # DRIVE_REMOVABLE of GetDriveTypeW
# Where desktops mount them: udisks on Linux, and macOS.
MEDIA: Final = (Path("/media"), Path("/run/media"), Path("/Volumes"))
_TIMEOUT: Final = 60.0  # seconds for a program that ejects, which may have to write


def find_drive(path: Path, media: Iterable[Path] = MEDIA) -> Path | None:
    """Return the top folder of the removable drive that a path is on; None if it is on none.

    Linux and macOS do not tell which drives are removable: those below `media` count as such.
    """
    if sys.platform == "win32":
        drive = Path(path.absolute().anchor)
        kind = ctypes.windll.kernel32.GetDriveTypeW(str(drive))
        return drive if kind == _REMOVABLE else None
    place = path.absolute()
    mounted = next(it for it in (place, *place.parents) if os.path.ismount(it))
    return mounted if any(it in mounted.parents for it in media) else None


def eject(drive: Path) -> None:
    """Eject the removable drive with this top folder; the user may then unplug it.

    Waits until all is written to it. Raises `UploaderError` if it is in use or the system refuses.
    """
    try:
        _eject(drive)
    except (OSError, subprocess.SubprocessError) as error:
        users: set[str] = set()
        with suppress(OSError, psutil.Error):  # the system does not tell
            users.update(_find_users(drive))
        programs = ", ".join(sorted(users))
        raise UploaderError(
            f"The system did not eject it: {_reason(error)}.",
            hint=f"It is still in use by {programs}: close these programs, then eject it again."
            if programs
            else "Close all programs that use it, or eject it in your file manager.",
            code="drive.not-ejected",
        ) from error


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    """Return the last part of what the system says, which has the reason."""
    if isinstance(error, subprocess.CalledProcessError):
        said = (error.stderr or error.stdout).strip().partition("\n")[0]
        return format_text(said.rpartition(": ")[2].rstrip(".")) or f"exit code {error.returncode}"
    if isinstance(error, FileNotFoundError):
        return f"{error.filename} was not found on this computer"
    return getattr(error, "strerror", None) or str(error)


def _find_users(drive: Path) -> Iterator[str]:
    """Yield the names of programs with open files or their current folder on a drive.

    Those of other accounts are not known. On Windows, asking for open files may take minutes.
    """
    asked = ["name", "cwd"] if sys.platform == "win32" else ["name", "cwd", "open_files"]
    for process in psutil.process_iter(asked):
        files = [it.path for it in process.info.get("open_files") or ()]
        if any(Path(it).is_relative_to(drive) for it in (process.info["cwd"], *files) if it):
            yield format_text(process.info["name"])


if sys.platform == "win32":
    _GENERIC_WRITE: Final = 0x40000000
    _SHARE: Final = 0x1 | 0x2  # reading and writing
    # FSCTL_LOCK_VOLUME, which fails if a file is open, FSCTL_DISMOUNT_VOLUME and
    # IOCTL_STORAGE_EJECT_MEDIA: https://learn.microsoft.com/windows/win32/api/winioctl/
    _STEPS: Final = (0x00090018, 0x00090020, 0x002D4808)

    _control = ctypes.WinDLL("kernel32", use_last_error=True).DeviceIoControl
    _control.restype = wintypes.BOOL
    _control.argtypes = (
        *(wintypes.HANDLE, wintypes.DWORD),
        *(wintypes.LPVOID, wintypes.DWORD),
        *(wintypes.LPVOID, wintypes.DWORD),
        *(wintypes.LPDWORD, wintypes.LPVOID),
    )

    def _eject(drive: Path) -> None:
        volume = f"\\\\.\\{drive.drive}".encode()
        handle = open_handle(volume, GENERIC_READ | _GENERIC_WRITE, _SHARE, 0)
        descriptor, size = msvcrt.open_osfhandle(handle, 0), wintypes.DWORD()
        try:
            for step in _STEPS:
                if not _control(handle, step, None, 0, None, 0, ctypes.byref(size), None):
                    raise ctypes.WinError(ctypes.get_last_error())
        finally:
            os.close(descriptor)

elif sys.platform == "darwin":

    def _eject(drive: Path) -> None:
        _run("diskutil", "eject", str(drive))

else:
    _BLOCKS: Final = Path("/sys/class/block")

    def _eject(drive: Path) -> None:
        mounts = psutil.disk_partitions(all=True)
        device = next((it.device for it in mounts if it.mountpoint == str(drive)), "")
        disk = _find_disk(device)
        # What is unplugged is the whole disk.
        others = {it.device for it in mounts if it.device and _find_disk(it.device) == disk}
        for mounted in (device, *sorted(others - {device})):
            _run("udisksctl", "unmount", "--no-user-interaction", "--block-device", mounted)
        # Disks are powered off as well, so that they park their heads. Sticks need not be, and
        # readers of memory cards would need to be plugged in again.
        medium = disk / "removable"
        if medium.exists() and medium.read_text("ascii").strip() == "0":
            _run("udisksctl", "power-off", "--no-user-interaction", "--block-device", device)

    def _find_disk(device: str) -> Path:
        """Return the folder of the disk that a device is, or is a part of."""
        block = (_BLOCKS / Path(device).name).resolve()
        return block.parent if (block / "partition").exists() else block


def _run(*words: str) -> None:
    subprocess.run(  # noqa: S603 - words of our own, without a shell
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT,
        check=True,
    )
