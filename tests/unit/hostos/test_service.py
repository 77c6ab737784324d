"""The service's definition on each system, read as that system reads it."""

import configparser
import plistlib
import shlex
from pathlib import PurePosixPath, PureWindowsPath
from xml.etree import ElementTree

import pytest

from mydata_like.hostos.service import ServiceCommand, ServiceFolders, define_service

HOSTILE = '/opt/my "data" $HOME 100%/mydata-like'
LINUX = ServiceFolders(
    PurePosixPath("/home/scope"), PurePosixPath("/home/scope/.config"), PurePosixPath("/state")
)
MAC = ServiceFolders(
    PurePosixPath("/Users/scope"), PurePosixPath("/Users/scope/.config"), PurePosixPath("/state")
)
WINDOWS = ServiceFolders(
    PureWindowsPath(r"C:\Users\scope"),
    PureWindowsPath(r"C:\Users\scope\.config"),
    PureWindowsPath(r"C:\Users\scope\AppData\Local\mydata-like"),
)
TASKS = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}


def errand(program=HOSTILE, **changes):
    facts = {
        "words": (program, "watch", "--config", "/etc/my settings.toml"),
        "environment": {"MYDATA_LIKE_HOME": "/srv/100% mine"},
        "account": "scope",
        "uid": 1000,
    }
    return ServiceCommand(**(facts | changes))


def read_unit(definition):
    unit = configparser.RawConfigParser(delimiters="=", strict=False)
    unit.optionxform = str
    unit.read_string(definition.content.decode())
    return unit


def systemd_words(text):
    """Split and fill in as systemd.service(5) says: C escapes, %% is %, $$ is $."""
    return [word.replace("$$", "$").replace("%%", "%") for word in shlex.split(text)]


def test_systemd_starts_the_very_words():
    definition = define_service("linux", errand(), LINUX)
    unit = read_unit(definition)

    assert definition.file == PurePosixPath("/home/scope/.config/systemd/user/mydata-like.service")
    assert systemd_words(unit["Service"]["ExecStart"]) == list(errand().words)
    assert systemd_words(unit["Service"]["Environment"]) == ["MYDATA_LIKE_HOME=/srv/100% mine"]
    assert "User" not in unit["Service"]
    assert unit["Install"]["WantedBy"] == "default.target"
    assert ("systemctl", "--user", "enable", "--now", "mydata-like.service") in definition.install
    assert "enable-linger scope" in " ".join(definition.advice)


def test_systemd_runs_a_service_for_all_as_the_user_and_guards_it():
    definition = define_service("linux", errand(everyone=True), LINUX)
    unit = read_unit(definition)

    assert definition.file == PurePosixPath("/etc/systemd/system/mydata-like.service")
    assert unit["Service"]["User"] == "scope"
    assert unit["Service"]["ProtectSystem"] == "strict"
    assert unit["Service"]["ProtectHome"] == "read-only"
    assert unit["Service"]["CapabilityBoundingSet"] == ""
    assert unit["Service"]["UMask"] == "0077"
    assert unit["Unit"]["After"] == "network-online.target"
    assert ("systemctl", "enable", "--now", "mydata-like.service") in definition.install


def test_systemd_lets_a_service_for_all_write_into_the_named_folders_only():
    writable = ("/home/scope/.local/state/mydata-like", HOSTILE)
    definition = define_service("linux", errand(everyone=True, writable=writable), LINUX)

    said = read_unit(definition)["Service"]["ReadWritePaths"].replace("$", "$$")
    assert systemd_words(said) == [f"-{folder}" for folder in writable]


def test_root_without_capabilities_still_reads_the_files_of_others():
    definition = define_service("linux", errand(everyone=True, as_root=True), LINUX)

    assert read_unit(definition)["Service"]["CapabilityBoundingSet"] == "CAP_DAC_READ_SEARCH"


@pytest.mark.parametrize("everyone", [False, True])
def test_systemd_filters_system_calls_also_of_a_users_own_service(everyone):
    lines = define_service("linux", errand(everyone=everyone), LINUX).content.decode().splitlines()

    assert {
        "NoNewPrivileges=yes",
        "MemoryDenyWriteExecute=yes",
        "RestrictNamespaces=yes",
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged",
    } <= set(lines)


def test_launchd_starts_the_very_words():
    definition = define_service("darwin", errand(), MAC)
    agent = plistlib.loads(definition.content)

    assert definition.file.parent == PurePosixPath("/Users/scope/Library/LaunchAgents")
    assert agent["ProgramArguments"] == list(errand().words)
    assert agent["EnvironmentVariables"] == {"MYDATA_LIKE_HOME": "/srv/100% mine"}
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert ("launchctl", "bootstrap", "gui/1000", str(definition.file)) in definition.install


def test_launchd_runs_a_service_for_all_as_the_user():
    definition = define_service("darwin", errand(everyone=True), MAC)

    assert definition.file.parent == PurePosixPath("/Library/LaunchDaemons")
    assert plistlib.loads(definition.content)["UserName"] == "scope"


@pytest.mark.parametrize(("everyone", "logon"), [(False, "InteractiveToken"), (True, "S4U")])
def test_windows_starts_the_program_with_its_words(everyone, logon):
    program = r"C:\Program Files\my & <data>\mydata-like.exe"
    account = r"LAB\scope"
    definition = define_service(
        "win32", errand(program, everyone=everyone, account=account), WINDOWS
    )
    task = ElementTree.fromstring(definition.content.decode("utf-16"))

    assert task.findtext("t:Actions/t:Exec/t:Command", None, TASKS) == program
    words = task.findtext("t:Actions/t:Exec/t:Arguments", None, TASKS)
    assert words == 'watch --config "/etc/my settings.toml"'
    principal = "t:Principals/t:Principal"
    assert task.findtext(f"{principal}/t:UserId", None, TASKS) == account
    assert task.findtext(f"{principal}/t:LogonType", None, TASKS) == logon
    assert task.findtext("t:Settings/t:ExecutionTimeLimit", None, TASKS) == "PT0S"
    trigger = "t:Triggers/t:BootTrigger" if everyone else "t:Triggers/t:LogonTrigger"
    assert task.find(trigger, TASKS) is not None
    assert definition.install[0][:2] == ("setx", "MYDATA_LIKE_HOME")
