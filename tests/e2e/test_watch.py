"""`mydata-like watch` as people start it: the service, a second one, its end, its commands."""

import json
import re
import shlex
import stat
import subprocess
import sys

import pytest

from mydata_like.demo.middleware import Fault, Hang
from tests.privileges import IS_ROOT
from tests.site import a_site, finish
from tests.sshd_fixture import needs_sshd

pytestmark = pytest.mark.e2e

SYSTEMCTL = """\
#!/bin/sh
echo "$@" >> "{record}"
{end}
"""


@pytest.fixture
def home(tmp_path):
    """A home with a `systemctl` of its own, which writes down what it is asked to do."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def give_systemctl(home, end="exit 0"):
    tool = home / "bin" / "systemctl"
    tool.write_text(SYSTEMCTL.format(record=home / "asked", end=end))
    tool.chmod(stat.S_IRWXU)


def command(home, *words, environment=None):
    environment = environment or {
        "PATH": str(home / "bin"),
        "HOME": str(home),
        "MYDATA_LIKE_HOME": str(home / "own files"),
    }
    return subprocess.run(
        [sys.executable, "-m", "mydata_like", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def is_root():
    return IS_ROOT


def unit(home):
    return home / ".config" / "systemd" / "user" / "mydata-like.service"


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")
class TestService:
    def test_it_is_installed_and_removed_again(self, home):
        give_systemctl(home)
        installed = command(home, "watch", "--install")
        text = unit(home).read_text()
        removed = command(home, "watch", "--uninstall")

        assert installed.returncode == 0, installed.stderr
        assert f'Environment="MYDATA_LIKE_HOME={home / "own files"}"' in text
        assert ' "watch"' in text
        assert removed.returncode == 0, removed.stderr
        assert not unit(home).exists()
        assert (home / "asked").read_text().splitlines() == [
            "--user daemon-reload",
            "--user enable --now mydata-like.service",
            "--user disable --now mydata-like.service",
        ]

    @pytest.mark.skipif(not is_root(), reason="only root is refused")
    def test_root_is_not_taken_for_the_account_of_a_service(self, home):
        refused = command(home, "watch", "--print", "--system")
        meant = command(home, "watch", "--print", "--system", "--as-root")

        assert refused.returncode == 2
        assert "--user NAME" in refused.stderr
        assert "User=root" in meant.stdout

    def test_a_service_for_all_writes_below_the_home_of_its_account_only(self, home):
        import pwd

        account = pwd.getpwnam("daemon")
        config = home / "settings.toml"
        config.write_text(f'data.directory = "{home}"\nmonitor.signal_file = "/srv/up.json"\n')
        give_systemctl(home)
        words = ("watch", "--print", "--system", "--user", "daemon", "--config", str(config))
        usual = {"PATH": str(home / "bin"), "HOME": str(home)}

        printed = command(home, *words, environment=usual)

        assert "User=daemon\n" in printed.stdout
        (writable,) = re.findall(r"^ReadWritePaths=(.*)$", printed.stdout, re.M)
        own = f"{account.pw_dir}/.local/state/mydata-like"
        keys = f"{account.pw_dir}/.local/share/mydata-like/ssh"
        assert shlex.split(writable) == [f"-{own}", f"-{own}/log", f"-{keys}", "-/srv"]

    def test_a_missing_account_is_reported(self, home):
        refused = command(home, "watch", "--print", "--system", "--user", "no-such-account")

        assert refused.returncode == 2
        assert "no account named no-such-account" in refused.stderr

    def test_refused_system_commands_are_reported(self, home):
        give_systemctl(home, 'echo "no bus" >&2; exit 1')
        installed = command(home, "watch", "--install")

        assert installed.returncode == 1
        assert "no bus" in installed.stdout
        assert "systemctl --user enable --now mydata-like.service" in installed.stdout
        assert unit(home).exists()

    def test_a_service_of_another_owner_is_left_alone(self, home):
        unit(home).parent.mkdir(parents=True)
        unit(home).write_text("[Unit]\n")

        for words in ("--install", "--uninstall"):
            refused = command(home, "watch", words)
            assert refused.returncode == 2
            assert "was not created by this program" in refused.stderr
        assert unit(home).read_text() == "[Unit]\n"

    def test_printing_changes_nothing(self, home):
        printed = command(home, "watch", "--print", "--set", "schedule.kind=watch")

        assert printed.returncode == 0
        assert '"watch" "--set" "schedule.kind=watch"' in printed.stdout
        assert not unit(home).exists()

    def test_removing_something_missing_is_not_a_failure(self, home):
        removed = command(home, "watch", "--uninstall")

        assert removed.returncode == 0
        assert "There is no service" in removed.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG entry is Linux's")
def test_the_start_at_a_login_is_made_and_removed_with_its_setting(home):
    entry = home / ".config" / "autostart" / "mydata-like.desktop"

    made = command(home, "settings", "set", "window.start_at_login", "true")
    text = entry.read_text()
    removed = command(home, "settings", "unset", "window.start_at_login")

    assert str(entry) in made.stdout
    assert 'gui"' in text
    assert removed.returncode == 0, removed.stderr
    assert not entry.exists()


site = a_site(tiny_files=3, large=10_000)


def next_event(process, name):
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == name:
            return event
    raise AssertionError(f"no {name}: {process.stderr.read()}")


@needs_sshd
def test_a_watch_lives_until_it_is_stopped_and_a_second_one_says_so(site):
    watch = site.start("watch", "--events", settings=["schedule.kind=startup"])
    started = next_event(watch, "run_started")
    finished = next_event(watch, "run_finished")
    scheduled = next_event(watch, "run_scheduled")
    second = site.command("watch")
    beat = json.loads((site.state / "heartbeat.json").read_text())
    watch.terminate()
    _, complaints = watch.communicate(timeout=60)

    assert started["reason"] == "startup"
    assert finished["verified"] == finished["found"] > 0
    assert scheduled == {"event": "run_scheduled", "at": None, "kind": "startup"}
    assert second.code == 3
    assert "Another watch is already running" in second.complaints
    assert beat["state"] == "waiting"
    assert beat["pid"] == watch.pid
    assert beat["last"]["verified"] == finished["found"]
    assert (watch.returncode, complaints) == (0, "")
    assert json.loads((site.state / "heartbeat.json").read_text())["state"] == "stopped"
    assert "was stopped" in site.command("status").output


@needs_sshd
def test_a_good_run_signals_the_dead_mans_switch(site, tmp_path):
    signal = tmp_path / "signal.json"
    choices = ["schedule.kind=startup", f"monitor.signal_file={signal}"]
    watch = site.start("watch", "--events", settings=choices)
    next_event(watch, "run_scheduled")
    watch.terminate()
    watch.communicate(timeout=60)

    sums = json.loads(signal.read_text())
    assert sums["verified"] == sums["found"] > 0


@needs_sshd
def test_a_single_run_signals_the_dead_mans_switch_too(site, tmp_path):
    signal = tmp_path / "signal.json"
    ended = site.run(f"monitor.signal_file={signal}")

    assert json.loads(signal.read_text())["verified"] == ended.sums["verified"] > 0


@needs_sshd
def test_signs_come_from_the_folder_that_the_settings_name_now(site, tmp_path):
    other = tmp_path / "other"
    (other / "alice" / "New").mkdir(parents=True)
    watch = site.start("watch", "--events", settings=["schedule.kind=watch"])
    next_event(watch, "run_finished")
    text = site.config.read_text()
    site.config.write_text(text.replace(str(site.data), str(other)))
    next_event(watch, "run_finished")  # of the folder as it is
    (other / "alice" / "New" / "file").write_bytes(b"data")
    started, finished = next_event(watch, "run_started"), next_event(watch, "run_finished")
    watch.terminate()
    watch.communicate(timeout=60)

    assert started["reason"] == "settled"
    assert (finished["found"], finished["verified"]) == (1, 1)


@needs_sshd
def test_settings_that_are_changed_count_at_once_and_wrong_ones_are_reported(site):
    watch = site.start("watch", "--events", settings=["schedule.minutes=7"])
    assert next_event(watch, "run_scheduled")["kind"] == "manual"
    right = site.config.read_text()
    site.config.write_text(right + "\n[schedule]\nkind = 7\n")
    notice = next_event(watch, "notice")
    site.config.write_text(right + '\n[schedule]\nkind = "saved"\n')
    finished = next_event(watch, "run_finished")
    watch.terminate()
    watch.communicate(timeout=60)

    assert "The settings were changed and are now invalid" in notice["problem"]["message"]
    assert finished["verified"] == finished["found"] > 0


def tell(process, command):
    process.stdin.write(json.dumps({"command": command}) + "\n")
    process.stdin.flush()


def end(process):
    process.terminate()
    process.communicate(timeout=60)


@needs_sshd
def test_a_run_whose_server_is_away_is_stopped_and_the_watch_goes_on(site):
    site.server.stop()
    watch = site.start(
        "watch",
        *("--events", "--attended"),
        settings=["schedule.kind=startup"],
        stdin=subprocess.PIPE,
    )
    assert next_event(watch, "run_paused")["problem"]["code"] == "server.unreachable"
    tell(watch, "stop_run")
    answer = next_event(watch, "command_done")
    stopped = next_event(watch, "run_finished")
    assert next_event(watch, "run_scheduled")["at"] is None
    tell(watch, "start")
    again = next_event(watch, "run_paused")
    end(watch)

    assert answer["command"] == "stop_run"
    assert (stopped["run"], stopped["problem"]["code"]) == ("", "run.interrupted")
    assert again["problem"]["code"] == "server.unreachable"


@needs_sshd
def test_a_run_that_is_stopped_as_soon_as_it_was_started_sends_nothing(site):
    watch = site.start("watch", "--events", "--attended", stdin=subprocess.PIPE)
    next_event(watch, "run_scheduled")
    tell(watch, "start")
    tell(watch, "stop_run")
    stopped = next_event(watch, "run_finished")
    tell(watch, "start")
    finished = next_event(watch, "run_finished")
    end(watch)

    assert (stopped["sent"], stopped["problem"]["code"]) == (0, "run.interrupted")
    assert finished["verified"] == finished["found"] > 0


@needs_sshd
def test_a_run_of_its_own_that_is_stopped_before_it_begins_says_so_at_last(site):
    site.server.faults.add(Fault(action=Hang(), count=None))
    run = site.start("run", "--events", stdin=subprocess.PIPE)
    tell(run, "stop_run")
    ended = finish(run)

    assert (ended.code, ended.problem, ended.sums["run"]) == (130, "run.interrupted", "")
