"""The evaluation of the client's configuration, compared with that of OpenSSH (`ssh -G`)."""

import shutil
import subprocess
from pathlib import Path

import pytest

from mydata_like.core.copy_arguments import HostTarget
from mydata_like.core.errors import SettingsError
from mydata_like.ssh.openssh_config import HostOptions, HostQuery
from mydata_like.ssh.user_config import find_login

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs OpenSSH's client")

CONFIGURATIONS = {
    "first value": "Host store\n Port 1\nHost *\n Port 2\n User both\n",
    "before any host": "Port 1\nHost store\n Port 2\n",
    "equals sign": "Host=store\n  Port = 7\n\tUser=me\n",
    "case": "HOST store\n pORT 7\n",
    "other case of the name": "Host Store STORE\n Port 7\n",
    "patterns": "Host s?ore other*\n Port 7\nHost st[o]re\n Port 8\n User x\n",
    "negated": "Host * !store\n Port 7\nHost !other\n User me\nHost !other *\n Port 9\n",
    "quotes": 'Host "store"\n User "a b"\n IdentityFile "/k/a b"\n IdentityFile \'/k/c d\'\n',
    "comments": "# Host other\nHost store # Port 1\n Port 7 # seven\n   # Port 9\n",
    "several keys": "IdentityFile /k/1\nHost *\n IdentityFile /k/2\n IdentityFile /k/1\n",
    "host name": "Host store\n HostName %h.Example.ORG\n IdentityFile /k/%h\n Port 7\n",
    "match host": "HostName real\nMatch host real\n Port 7\nMatch host store\n Port 8\n",
    "match original": "Host store\n HostName real\nMatch originalhost store,x\n Port 7\n",
    "match negated": "Match !originalhost store\n Port 7\nMatch !host other user me\n Port 8\n",
    "match user": "Match user you\n Port 7\nMatch user me host s*\n Port 8\n",
    "match all": "Match all\n Port 7\n",
    "match final": "Match final host real\n Port 7\nHost store\n HostName real\n",
    "match canonical": "Match canonical all\n Port 7\nMatch all\n Port 8\n",
    "jump hosts": "Host store\n ProxyJump me@one:22,two\n",
    "include": "Include {folder}/more\nPort 9\n",
    "include in a block": "Host other\n Include {folder}/more\nHost store\n Include {folder}/m*\n",
    "after an include": "Host store\n Include {folder}/blocks\n Port 9\n User me\n",
    "none": "Host store\n ProxyJump none\n IdentityFile none\n",
}
OPTIONS = ("hostname", "port", "user", "identityfile", "proxyjump")


def ask_openssh(config):
    """Return what OpenSSH has for the options, without the default keys; tokens stay in keys."""
    words = ["ssh", "-G", "-F", config, "-l", "me", "store"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    found = {name: [] for name in OPTIONS}
    for line in listed.splitlines():
        name, _, value = line.partition(" ")
        if name in OPTIONS and not value.startswith("~/.ssh/id_"):
            found[name].append(value)
    return found


def ask_ours(config):
    query = HostQuery("store", "me", "me", Path.home())
    options = HostOptions(query, [config])
    port = int(options.find("port") or 22)
    jump = options.find("proxyjump")
    return {
        "hostname": [options.host],
        "port": [str(port)],
        "user": [options.username],
        "identityfile": options.identity_files,
        "proxyjump": [] if jump in (None, "none") else [jump],
    }


@pytest.mark.parametrize("text", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
def test_options_are_those_of_openssh(tmp_path, text):
    (tmp_path / "more").write_text("IdentityFile /k/more\nHost store\n Port 7\n")
    (tmp_path / "blocks").write_text("Host other\n Port 7\nHost store\n Port 8\n")
    config = tmp_path / "config"
    config.write_text(text.format(folder=tmp_path))

    assert ask_ours(config) == ask_openssh(config)


def test_included_files_are_found_in_the_folder_of_the_user(tmp_path):
    folder = tmp_path / ".ssh"
    (folder / "conf.d").mkdir(parents=True)
    (folder / "config").write_text("Include conf.d/*.conf ~/other\n")
    (folder / "conf.d" / "a.conf").write_text("Host store\n Port 7\n")
    (folder / "conf.d" / "b").write_text("Port 8\n")
    (tmp_path / "other").write_text("User me\n")

    login = find_login(HostTarget("store", b""), tmp_path, {}, system_folder=tmp_path / "none")

    assert (login.port, login.username) == (7, "me")


def test_the_configuration_of_the_system_comes_second(tmp_path):
    for folder, text in ((".ssh/config", "Port 7\n"), ("etc/ssh_config", "Port 8\nUser me\n")):
        (tmp_path / folder).parent.mkdir()
        (tmp_path / folder).write_text(text)

    login = find_login(HostTarget("store", b""), tmp_path, {}, system_folder=tmp_path / "etc")

    assert (login.port, login.username) == (7, "me")


def test_variables_and_the_home_folder_are_expanded(tmp_path):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        "IdentityFile ~/.ssh/a~b\nIdentityFile %d/%h-%n-%p-%r-%u-%%-%Z\n"
        "IdentityFile ${KEYS}/d\nIdentityFile ${NO}/e\nIdentityAgent ${KEYS}/agent\nHostName real\n"
    )

    login = find_login(
        HostTarget("store", b"", "me", 7),
        tmp_path,
        {"KEYS": "/keys", "LOGNAME": "us"},
        system_folder=tmp_path / "none",
    )

    assert [str(path) for path in login.key_files] == [
        f"{tmp_path}/.ssh/a~b",
        f"{tmp_path}/real-store-7-me-us-%-%Z",
        "/keys/d",
        f"{tmp_path}/${{NO}}/e",
    ]
    assert login.agent == "/keys/agent"


@pytest.mark.parametrize(
    ("text", "agent"),
    [("", "/one"), ("IdentityAgent none", ""), ("IdentityAgent $OTHER", "/two")],
)
def test_the_agent_is_that_of_the_environment_or_the_configured_one(tmp_path, text, agent):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(text)
    environment = {"SSH_AUTH_SOCK": "/one", "OTHER": "/two", "LOGNAME": "me"}

    login = find_login(
        HostTarget("store", b""), tmp_path, environment, system_folder=tmp_path / "none"
    )

    assert login.agent == agent


def test_an_account_without_a_name_has_to_name_a_user(tmp_path):
    with pytest.raises(SettingsError, match="this account has no name") as refused:
        find_login(HostTarget("store", b""), tmp_path, {}, system_folder=tmp_path / "none")

    assert refused.value.hint == "Name the user: USER@store."


def test_files_that_include_themselves_are_refused(tmp_path):
    config = tmp_path / "config"
    config.write_text(f"Include {config}\n")

    with pytest.raises(SettingsError, match="too many files"):
        HostOptions(HostQuery("store", "me", "me", tmp_path), [config])


def test_a_configuration_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "config").mkdir()

    with pytest.raises(SettingsError):
        HostOptions(HostQuery("store", "me", "me", tmp_path), [tmp_path / "config"])
