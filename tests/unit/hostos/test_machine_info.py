"""What is reported about this computer."""

import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from mydata_like.hostos.machine_info import (
    choose_interface,
    choose_lasting,
    describe_machine,
    find_traits,
    list_addresses,
)


def address(family: int, text: str, mask: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(family=family, address=text, netmask=mask)


LOOPBACK = [address(socket.AF_INET, "127.0.0.1", "255.0.0.0")]
WIRED = [
    address(psutil.AF_LINK, "aa:bb:cc:dd:ee:ff"),
    address(socket.AF_INET, "10.0.0.5", "255.255.255.0"),
    address(socket.AF_INET, "10.0.0.6", "255.255.255.0"),
    address(socket.AF_INET6, "fe80::1%eth0"),
]
VIRTUAL = [address(socket.AF_INET, "172.17.0.1")]


def test_this_machine_can_be_described() -> None:
    facts = describe_machine()

    assert facts.hostname == socket.gethostname()
    assert facts.memory.endswith("G")
    assert facts.cpus >= 1
    assert Path(facts.user_agent_install_location).is_absolute()


def test_the_interface_that_reaches_the_world_is_reported() -> None:
    addresses = {"lo": LOOPBACK, "docker0": VIRTUAL, "eth0": WIRED}

    assert choose_interface(addresses, "10.0.0.5") == {
        "interface": "eth0",
        "mac_address": "aa:bb:cc:dd:ee:ff",
        "ipv4_address": "10.0.0.5",
        "ipv6_address": "fe80::1",
        "subnet_mask": "255.255.255.0",
    }


def test_without_a_way_out_the_first_real_interface_is_reported() -> None:
    assert choose_interface({"lo": LOOPBACK, "docker0": VIRTUAL}, "")["interface"] == "docker0"
    assert choose_interface({"lo": LOOPBACK}, "") == {}
    assert choose_interface({}, "10.0.0.5") == {}


def test_a_computer_is_known_again_by_what_came_with_its_hardware():
    bridge = [address(psutil.AF_LINK, "02:42:ac:11:00:02")]
    nothing = [address(psutil.AF_LINK, "00:00:00:00:00:00"), address(psutil.AF_LINK, "")]
    windows = [address(psutil.AF_LINK, "AA-BB-CC-DD-EE-FF")]
    made = [address(psutil.AF_LINK, "A8-BB-CC-DD-EE-FF")]

    assert choose_lasting({"a": made, "b": bridge, "c": nothing}) == {"a8:bb:cc:dd:ee:ff"}
    assert choose_lasting({"a": windows, "b": bridge}) == {"aa:bb:cc:dd:ee:ff", "02:42:ac:11:00:02"}
    assert choose_lasting({"c": nothing}) == frozenset()


def test_this_computer_has_the_same_traits_whenever_it_is_asked():
    traits = find_traits()
    assert traits == find_traits()
    assert traits[0] == socket.gethostname()


def test_interfaces_that_the_system_cannot_list_are_left_out():
    def fail():
        raise RuntimeError("GetAdaptersAddresses() syscall failed.")

    assert list_addresses(fail) == {}
    assert choose_lasting({}) == frozenset()


@pytest.mark.process
def test_the_facts_about_this_computer_are_found_without_any_other_program():
    script = """
import sys
from mydata_like.hostos.machine_info import describe_machine
started = []
sys.addaudithook(lambda event, words: started.append(words) if "Popen" in event else None)
assert describe_machine().architecture in ("64bit", "32bit")
assert not started, started
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
