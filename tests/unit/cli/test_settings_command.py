import json
import os
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydata_like.cli.settings_command import app

KEY = "0123456789abcdef-canary"
DATA = "C:/data" if os.name == "nt" else "/data"
NOWHERE = Path("/nowhere/x.toml")
COMPLETE = f"""\
[server]
url = "https://data.example.org"
username = "facility"  # ask Ada

[instrument]
name = "Microscope 1"
facility = "Imaging"
contact_name = "Ada"
contact_email = "ada@example.org"

[data]
directory = "{DATA}"
"""


@pytest.fixture
def home(tmp_path):
    return tmp_path


@pytest.fixture
def call(home):
    def call(*words, text=None, **variables):
        environment = {"MYDATA_LIKE_HOME": str(home), **variables}
        result = CliRunner().invoke(app, words, input=text, env=environment)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert KEY not in result.output
        return result

    return call


def write(home, text=COMPLETE):
    path = home / "settings.toml"
    path.write_text(text)
    return path


def test_a_value_that_is_set_is_shown_and_its_comment_stays(home, call):
    path = write(home)

    assert call("set", "server.username", "other").exit_code == 0

    assert call("get", "server.username").stdout == "other\n"
    assert 'username = "other"  # ask Ada' in path.read_text()


def test_the_ssh_of_an_earlier_version_is_still_read_with_a_warning(home, call):
    write(home, COMPLETE + '[transfer]\nssh = "system"\n')

    result = call("check")

    assert result.exit_code == 0
    assert 'transfer.ssh = "system"' in result.output
    assert "no longer supported" in result.output
    assert call("get", "transfer.ssh").stdout == "paramiko\n"
    call("unset", "transfer.ssh")
    assert "no longer supported" not in call("check").output


def test_a_value_that_is_removed_has_its_default_again(home, call):
    write(home, "[transfer]\nchannels = 7\n")

    assert call("unset", "transfer.channels").exit_code == 0

    assert call("get", "transfer.channels").stdout == "0\n"


def test_lists_are_set_with_commas(home, call):
    call("set", "filters.excludes", "*.tmp, cache/")

    assert call("get", "filters.excludes").stdout == "*.tmp, cache/\n"
    assert 'excludes = ["*.tmp", "cache/"]' in (home / "settings.toml").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("set", "server.requests", "99"), "server.requests must be at most 16"),
        (("set", "server.urll", "x"), "did you mean server.url?"),
        (("get", "server.urll"), "did you mean server.url?"),
        (("explain", "nonsense"), "nonsense is not a setting"),
        (("set", "schedule.kind", "weekly"), "schedule.days must name a day"),
        (("show", "--set", "server.requests=0"), "server.requests must be at least 1"),
        (("show", "--config", str(NOWHERE)), f"{NOWHERE} does not exist"),
    ],
)
def test_what_is_wrong_is_reported_and_nothing_is_written(home, call, words, message):
    path = write(home)

    result = call(*words)

    assert result.exit_code == 2
    assert message in result.stderr
    assert not result.stdout
    assert path.read_text() == COMPLETE


def test_a_file_with_several_faults_can_be_fixed_one_by_one(home, call):
    write(home, '[server]\nurl = "ftp://a"\nrequests = 0\nnope = 1\n')

    first = call("set", "server.requests", "2")
    second = call("unset", "server.nope")
    third = call("set", "server.url", "https://a.org")

    assert [first.exit_code, second.exit_code, third.exit_code] == [0, 0, 0]
    assert "Still wrong" in first.stderr
    assert "server.url must begin" in second.stderr
    assert not third.stderr


def test_check_says_that_all_is_right(home, call):
    write(home)

    result = call("check")

    assert (result.exit_code, result.stdout) == (0, "All settings are valid.\n")


def test_check_reports_all_that_is_wrong_with_its_line(home, call):
    path = write(home, '[server]\nurl = "x"\nurll = 3\n[data]\nlayout = "y"\n')

    result = call("check")

    assert result.exit_code == 2
    assert f"{path}, line 2: server.url must begin with https://" in result.stderr
    assert f"{path}, line 3: server.urll is not a setting; did you mean" in result.stderr
    assert f"{path}, line 5: data.layout must be one of" in result.stderr


def test_check_reports_what_is_missing(call):
    result = call("check")

    assert result.exit_code == 2
    assert "server.url is not set yet: The web address" in result.stderr


def test_show_prints_every_value_and_its_source(home, call):
    write(home)

    result = call("show", "--set", "transfer.channels=5", MYDATA_LIKE_SERVER_REQUESTS="2")

    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert rows["server.username"] == ["facility", "user", "file"]
    assert rows["server.requests"] == ["2", "environment"]
    assert rows["transfer.channels"] == ["5", "command", "line"]
    assert rows["transfer.attempts"] == ["5", "default"]


def test_show_as_json_is_for_programs(home, call):
    path = write(home)

    rows = json.loads(call("show", "--json").stdout)

    assert rows["server.username"] == {
        "value": "facility",
        "source": "user file",
        "origin": str(path),
        "line": 3,
        "locked_by": None,
    }
    assert rows["data.directory"]["value"] == str(Path(DATA))
    assert rows["filters.includes"]["value"] == []
    assert rows["server.ca_file"]["value"] is None
    assert rows["schedule.to_time"]["value"] == "23:59:00"


def test_explain_shows_meaning_limits_and_every_layer(home, call):
    path = write(home, "[server]\nrequests = 3\n")

    result = call("explain", "server.requests", MYDATA_LIKE_SERVER_REQUESTS="6")

    assert result.stdout == (
        "server.requests: Parallel requests\n"
        "  How many requests to the server may run concurrently, at most. Fewer do while "
        "the server is slow. Lower it for a small server.\n"
        "  from: 1 to 16\n"
        "  in MyData.cfg: max_verification_threads\n"
        "Values, the last one counts:\n"
        "  default: 6\n"
        f"  user file ({path}, line 2): 3\n"
        "* environment (MYDATA_LIKE_SERVER_REQUESTS): 6\n"
    )


def test_another_file_is_used_and_made_when_named(home, call):
    path = home / "other.toml"

    call("set", "server.requests", "9", "--config", str(path))

    assert call("get", "server.requests", "--config", str(path)).stdout == "9\n"
    assert call("get", "server.requests").stdout == "6\n"


def test_the_key_is_stored_in_a_file_only_when_asked_to(home, call):
    write(home)

    result = call("set-key", "--store=file", "--stdin", text=f"{KEY}\n")

    assert result.exit_code == 0
    assert "not encrypted" in result.stdout
    assert KEY in (home / "secrets.toml").read_text()


def test_the_key_is_asked_for_without_being_shown(home, call):
    write(home)

    result = call("set-key", "--store=file", text=f"{KEY}\n")

    assert result.exit_code == 0
    assert "API key" in result.stdout


def test_without_a_good_keyring_the_advice_names_the_other_ways(home, call):
    write(home)

    # The keyring library reads this variable when it is first asked for its backend.
    result = call(
        "set-key",
        "--stdin",
        text=f"{KEY}\n",
        PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring",
    )

    assert result.exit_code == 2
    assert "--store=file" in result.stderr
    assert not (home / "secrets.toml").exists()


@pytest.mark.parametrize("text", ["", "\n", "two words\x00\n"])
def test_an_invalid_key_is_not_stored(home, call, text):
    write(home)

    assert call("set-key", "--store=file", "--stdin", text=text).exit_code == 2
    assert not (home / "secrets.toml").exists()


def test_a_key_needs_a_server_and_an_account(call):
    result = call("set-key", "--store=file", "--stdin", text=f"{KEY}\n")

    assert result.exit_code == 2
    assert "server.url and server.username" in result.stderr


def test_the_secret_of_an_access_key_is_stored_for_its_address(home, call):
    write(home)
    address = ("--set", "transfer.s3_endpoint=https://s3.example.org:9000/")
    account = ("--set", "transfer.s3_access_key=AKIA7")

    stored = call("set-key", "--s3", "--store=file", "--stdin", *address, *account, text="a/b+c=\n")
    nameless = call("set-key", "--s3", "--store=file", "--stdin", text="a/b+c=\n")

    assert stored.stdout.startswith("The secret access key of AKIA7 on https://s3.example.org:9000")
    kept = tomllib.loads((home / "secrets.toml").read_text())
    assert kept["https://s3.example.org:9000"] == {"AKIA7": "a/b+c="}
    assert nameless.exit_code == 2
    assert "transfer.s3_access_key" in nameless.stderr


NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}


def test_a_new_address_of_the_server_offers_the_key_of_the_former_one(home, call):
    write(home)
    call("set-key", "--store=file", "--stdin", text=f"{KEY}\n")

    changed = call("set", "server.url", "https://new.example.org/api/v1/", **NO_KEYRING)
    used = call("set-key", "--from", "https://data.example.org", **NO_KEYRING)

    assert changed.exit_code == 0
    assert "The API key is stored for https://data.example.org." in changed.stderr
    assert "set-key --from https://data.example.org" in changed.stderr
    assert used.stdout == "The API key of facility on https://new.example.org is in the file now.\n"
    kept = tomllib.loads((home / "secrets.toml").read_text())
    assert kept["https://new.example.org"] == {"facility": KEY}


def test_an_address_without_a_key_offers_none(home, call):
    write(home)

    changed = call("set", "server.url", "https://new.example.org", **NO_KEYRING)
    missing = call("set-key", "--from", "https://data.example.org", **NO_KEYRING)

    assert (changed.exit_code, changed.stderr) == (0, "")
    assert missing.exit_code == 2


def test_an_address_copied_from_the_api_is_the_server_s(home, call):
    write(home)

    call("set", "server.url", "https://data.example.org/tardis/api/v1/", **NO_KEYRING)

    assert call("get", "server.url").stdout == "https://data.example.org/tardis\n"


def test_an_invalid_address_can_be_replaced(home, call):
    write(home, COMPLETE.replace("https://data", "ftp://data"))

    assert call("set", "server.url", "https://data.example.org", **NO_KEYRING).exit_code == 0
