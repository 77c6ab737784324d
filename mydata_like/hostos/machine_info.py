"""Facts about this computer, for the server's record of the uploader."""

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from mydata_like.core.formatting import format_size
from mydata_like.core.machine import MachineRecord
from mydata_like.hostos.process import read_account

if sys.platform == "win32":
    import winreg

_LOCAL: Final = 0x02  # the bit of a locally administered MAC address; IEEE 802, 8.4

_WINDOWS_11: Final = (10, 0, 22000)  # its number is still that of Windows 10


def find_traits() -> tuple[str, str, frozenset[str]]:
    """Return what identifies this computer: its name, system id, and MAC addresses.

    Each may change over time, or be missing.
    """
    return socket.gethostname(), read_system_id(), choose_lasting(list_addresses())


def list_addresses(
    read: Callable[[], Mapping[str, Sequence[Any]]] = psutil.net_if_addrs,
) -> Mapping[str, Sequence[Any]]:
    """Return psutil's addresses by the interface's name; none if the system does not list them.

    That happens on Windows while interfaces come and go.
    """
    try:
        return read()
    except (OSError, RuntimeError):
        return {}


def choose_lasting(addresses: Mapping[str, Sequence[Any]]) -> frozenset[str]:
    """Return the MAC addresses of the hardware, or all if there are none.

    `addresses` are psutil's, by the interface's name.
    """
    entries = (entry for interface in addresses.values() for entry in interface)
    links = (entry.address for entry in entries if entry.family == psutil.AF_LINK)
    macs = {mac.lower().replace("-", ":") for mac in links} - {"", "00:00:00:00:00:00"}
    made = {mac for mac in macs if not int(mac[:2], 16) & _LOCAL}
    return frozenset(made or macs)


def read_system_id() -> str:
    """Return the id that the operating system was given when it was installed."""
    try:
        if sys.platform == "win32":
            folder = r"SOFTWARE\Microsoft\Cryptography"
            access = winreg.KEY_READ | winreg.KEY_WOW64_64KEY
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, folder, 0, access) as key:
                return str(winreg.QueryValueEx(key, "MachineGuid")[0])
        if sys.platform == "darwin":
            words = ("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
            ended = subprocess.run(words, capture_output=True, text=True, check=True, timeout=5)  # noqa: S603 - a fixed program
            found = re.search(r'"IOPlatformUUID" = "([^"]+)"', ended.stdout)
            return found[1] if found else ""
        return Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


def describe_machine(data_directory: Path | None = None) -> MachineRecord:
    """Return the current facts; the disk is that of the data directory."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:  # the source address of outgoing packets; connecting UDP sends nothing
            probe.connect(("192.0.2.1", 9))  # an address reserved for documentation
            outward = str(probe.getsockname()[0])
        except OSError:
            outward = ""
    try:
        usage = shutil.disk_usage(data_directory) if data_directory else None
    except OSError:  # the drive is missing
        usage = None
    frozen = getattr(sys, "frozen", False)
    location = Path(sys.executable).parent if frozen else Path(__file__).parents[1]
    system, release, version, machine = _describe_system()
    return MachineRecord(
        hostname=socket.gethostname(),
        os_platform=sys.platform,
        os_system=system,
        os_release=release,
        os_version=version,
        os_username=read_account(),
        machine=machine,
        # The module `platform` would run two programs for these.
        architecture="64bit" if sys.maxsize > 2**32 else "32bit",
        processor=os.environ.get("PROCESSOR_IDENTIFIER", machine),
        memory=f"{psutil.virtual_memory().total / 2**30:.1f}G",
        cpus=psutil.cpu_count() or 1,
        disk_usage=f"{format_size(usage.free)} free of {format_size(usage.total)}" if usage else "",
        **choose_interface(list_addresses(), outward),
        user_agent_install_location=str(location),
    )


def _describe_system() -> tuple[str, str, str, str]:
    """Return the system's name, release and version, and the kind of processor."""
    if sys.platform == "win32":  # where `platform` would run `cmd`
        number = sys.getwindowsversion().platform_version
        release = "11" if number >= _WINDOWS_11 else str(number[0])
        machine = os.environ.get("PROCESSOR_ARCHITECTURE", "")
        return "Windows", release, ".".join(map(str, number)), machine
    names = platform.uname()
    return names.system, names.release, names.version, names.machine


def choose_interface(addresses: Mapping[str, Sequence[Any]], outward: str) -> dict[str, str]:
    """Return the interface with the outward address, else the first that is not a loopback.

    It is described by the fields of `MachineRecord`.

    `addresses` are psutil's, by the interface's name.
    """
    found = [_read_interface(name, entries) for name, entries in addresses.items()]
    for interface in found:
        if outward and interface["ipv4_address"] == outward:
            return interface
    usable = (it for it in found if it["ipv4_address"] and it["ipv4_address"][:4] != "127.")
    return next(usable, {})


def _read_interface(name: str, entries: Sequence[Any]) -> dict[str, str]:
    first: dict[int, Any] = {}
    for entry in entries:
        first.setdefault(entry.family, entry)
    mac, ipv4, ipv6 = (
        first.get(family) for family in (psutil.AF_LINK, socket.AF_INET, socket.AF_INET6)
    )
    return {
        "interface": name,
        "mac_address": mac.address if mac else "",
        "ipv4_address": ipv4.address if ipv4 else "",
        "ipv6_address": ipv6.address.partition("%")[0] if ipv6 else "",
        "subnet_mask": (ipv4.netmask or "") if ipv4 else "",
    }
