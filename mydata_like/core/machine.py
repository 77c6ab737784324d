"""The facts about a computer that the server's record of an uploader has."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """The facts about this computer that are sent to the server; any may be empty."""

    hostname: str = ""
    os_platform: str = ""
    os_system: str = ""
    os_release: str = ""
    os_version: str = ""
    os_username: str = ""
    machine: str = ""
    architecture: str = ""
    processor: str = ""
    memory: str = ""
    cpus: int = 1
    disk_usage: str = ""
    interface: str = ""
    mac_address: str = ""
    ipv4_address: str = ""
    ipv6_address: str = ""
    subnet_mask: str = ""
    user_agent_install_location: str = ""
