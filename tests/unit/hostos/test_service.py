"""The service's definition on each system, read as that system reads it."""

import configparser
import plistlib
import shlex
from pathlib import PurePosixPath, PureWindowsPath
from xml.etree import ElementTree

import pytest

from mydata_like.hostos.service import (
    ServiceCommand,
    ServiceFolders,
    define_service,
    find_service_account,
)
from tests.unit.hostos.task_schema import find_errors

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


ACCOUNTS = [
    pytest.param(r"LAB\scope", False, "InteractiveToken", id="at logon"),
    pytest.param(r"LAB\scope", True, "S4U", id="with the computer"),
    pytest.param("SYSTEM", True, None, id="as SYSTEM"),
    pytest.param("NT AUTHORITY\\LOCAL SERVICE", True, None, id="as LOCAL SERVICE"),
]


def define_task(account=r"LAB\scope", *, everyone=True):
    program = r"C:\Program Files\my & <data>\mydata-like.exe"
    return define_service("win32", errand(program, everyone=everyone, account=account), WINDOWS)


def read_task(definition):
    return ElementTree.fromstring(definition.content.decode("utf-16"))


def find_text(definition, path):
    return read_task(definition).findtext(
        "/".join(f"t:{name}" for name in path.split("/")), None, TASKS
    )


@pytest.mark.parametrize(("account", "everyone", "logon"), ACCOUNTS)
def test_windows_starts_the_program_with_its_words(account, everyone, logon):
    definition = define_task(account, everyone=everyone)

    program = find_text(definition, "Actions/Exec/Command")
    assert program == r"C:\Program Files\my & <data>\mydata-like.exe"
    words = find_text(definition, "Actions/Exec/Arguments")
    assert words == 'watch --config "/etc/my settings.toml"'
    assert find_text(definition, "Principals/Principal/LogonType") == logon


@pytest.mark.parametrize(("account", "everyone", "logon"), ACCOUNTS)
def test_a_task_follows_the_schema(account, everyone, logon):
    assert find_errors(define_task(account, everyone=everyone).content) == []


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        (">255<", ">999<", "Count is 999"),
        (">S4U<", ">ServiceAccount<", "LogonType is ServiceAccount"),
        ("Priority>", "Priorities>", "Settings has Priorities"),
        ('Context="Author"', 'Context="Writer"', "Actions has the context of no principal"),
        (
            "2004/02",
            "2005/02",
            "the root is {http://schemas.microsoft.com/windows/2005/02/mit/task}Task",
        ),
    ],
)
def test_the_check_of_the_schema_finds_errors(before, after, error):
    text = define_task().content.decode("utf-16").replace(before, after)

    assert error in find_errors(text.encode("utf-16"))


def test_a_task_for_one_user_starts_with_the_login_and_one_for_all_with_the_computer():
    mine, for_all = (read_task(define_task(everyone=everyone)) for everyone in (False, True))

    assert mine.findtext("t:Triggers/t:LogonTrigger/t:UserId", None, TASKS) == r"LAB\scope"
    assert for_all.find("t:Triggers/t:BootTrigger", TASKS) is not None


@pytest.mark.parametrize(
    ("account", "sid"),
    [
        ("SYSTEM", "S-1-5-18"),
        ("LocalSystem", "S-1-5-18"),
        ("S-1-5-19", "S-1-5-19"),
        ("nt authority\\local service", "S-1-5-19"),
        ("NetworkService", "S-1-5-20"),
        (r"LAB\scope", ""),
        ("S-1-5-21-1-2-3-1001", ""),
    ],
)
def test_accounts_for_services_are_known_by_their_ids(account, sid):
    assert find_service_account(account) == sid
    assert find_text(define_task(account), "Principals/Principal/UserId") == (sid or account)


def test_a_task_runs_for_ever_on_battery_once_and_again_after_it_ended():
    definition = define_task()
    settings = {
        element.tag.rpartition("}")[2]: element.text
        for element in read_task(definition).find("t:Settings", TASKS)
    }

    assert settings["ExecutionTimeLimit"] == "PT0S"
    assert settings["DisallowStartIfOnBatteries"] == settings["StopIfGoingOnBatteries"] == "false"
    assert settings["StartWhenAvailable"] == "true"
    assert settings["MultipleInstancesPolicy"] == "IgnoreNew"
    assert settings["Priority"] == "8"
    assert find_text(definition, "Settings/RestartOnFailure/Interval") == "PT1M"
    assert find_text(definition, "Triggers/BootTrigger/Repetition/Interval") == "PT10M"


def test_a_task_without_a_password_says_what_it_cannot_read():
    advice = " ".join(define_task().advice)

    assert "settings set-key --store file" in advice
    assert r'schtasks /Change /TN "\mydata-like\watch" /RU "LAB\scope" /RP *' in advice
    assert "/RP" not in " ".join(define_task("SYSTEM").advice)
    assert "/RP" not in " ".join(define_task(everyone=False).advice)


def test_the_commands_of_a_task_change_nothing_else():
    definition = define_task()

    assert {command[0] for command in (*definition.install, *definition.uninstall)} == {"schtasks"}
    assert definition.query == ("schtasks", "/Query", "/TN", r"\mydata-like\watch")
