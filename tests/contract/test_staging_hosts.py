"""Uploads to hosts that break, refuse or lack what others have, over a real sshd."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

from mydata_like.app.transports.remembered_hosts import RememberedHosts
from mydata_like.core.errors import StagingError
from mydata_like.core.events import ChannelChanged, Notice
from mydata_like.core.model import Payload, StagingArea
from mydata_like.core.ports import SentFile
from tests.fakes.clock import FakeClock
from tests.fakes.place import checksum
from tests.openssh import on_host, python_on_host
from tests.sshd_fixture import STACKS, needs_sshd, script, with_programs
from tests.staging import Memory, Staging, single, wanted

pytestmark = needs_sshd

SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/sftp-server")
NO_TIMES = "internal-sftp -P setstat,fsetstat"
WRITE_ONLY = "internal-sftp -P remove,rename,posix-rename"
NO_RENAME = "internal-sftp -P rename,posix-rename"


def find_sftp_server():
    found = [path for path in SERVERS if on_host(Path(path)).exists()]
    return found[0] if found else pytest.skip("needs OpenSSH's sftp-server")


def sftp_or(directory, command):
    """Return options of a host that allows SFTP, and runs `command` for all other requests."""
    gate = script(
        directory / "gate",
        'case "$SSH_ORIGINAL_COMMAND" in\n'
        f"  internal-sftp) exec {find_sftp_server()} ;;\n"
        f"esac\n{command}\n",
    )
    return (f"ForceCommand exec {gate}",)  # so that no shell is left around it


def upload(staging, place, *, stack="libssh", memory=None, size=70_000):
    """Upload a large file alone and two small ones together; return the transport's events."""
    members = [place.write(f"a b/{name}", size) for name, size in (("x", size), ("y", 9), ("z", 0))]
    place.settle(*members)
    transport = staging.build(place.location, ssh=stack, stall_timeout=2, memory=memory)
    try:
        channel = transport.open_channel()
        assert channel.send(single(members[0]), ignore) == [SentFile(0, checksum(members[0]))]
        rest = Payload(2, tuple(map(wanted, members[1:])), batched=True)
        expected = [SentFile(at, checksum(member)) for at, member in enumerate(members[1:])]
        assert channel.send(rest, ignore) == expected
    finally:
        transport.close()
    assert all(map(place.arrived, members))
    left = {path.name for path in place.location.rglob(".mydata-*")}
    assert left <= {".mydata-probe", ".mydata-probe-scp"}
    return staging.events


def ignore(*_: int) -> None: ...


def opened(events):
    return next(it for it in events if isinstance(it, ChannelChanged) and it.state == "open")


def notices(events):
    return [it.problem.code for it in events if isinstance(it, Notice)]


HOSTS = {
    "sftp-server for every command": lambda here: (f"ForceCommand {find_sftp_server()}",),
    "silence for every command": lambda here: sftp_or(here, "exec sleep 1000"),
    "broken by every command": lambda here: sftp_or(here, "kill -9 $PPID"),
    "refused by every command": lambda here: sftp_or(here, "exit 1"),
    "a restricted shell": lambda here: sftp_or(here, 'exec rbash -c "$SSH_ORIGINAL_COMMAND"'),
    "a start file that reads": lambda here: sftp_or(
        here, 'read -r line; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    ),
    "a start file that reads all": lambda here: sftp_or(
        here, 'cat >/dev/null; exec sh -c "$SSH_ORIGINAL_COMMAND"'
    ),
}


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("host", HOSTS)
def test_sftp_is_used_where_commands_do_not_work(tmp_path, place, host, stack):
    with Staging(tmp_path / "server", options=HOSTS[host](tmp_path)) as staging:
        assert opened(upload(staging, place, stack=stack)).rung == "sftp"


def test_what_answered_is_remembered(tmp_path, place):
    memory, asked = Memory(), on_host(tmp_path / "asked")
    options = sftp_or(tmp_path, f"echo asked >> {asked}; exec sleep 1000")
    with Staging(tmp_path / "server", options=options) as staging:
        upload(staging, place, memory=memory)
        upload(staging, place, memory=memory)
    assert asked.read_text() == "asked\n"


FORCED_CHANGE = """
echo "WARNING: Your password has expired." >&2
echo "Password change required but no TTY available." >&2
exit 1
"""


@pytest.mark.parametrize("stack", STACKS)
def test_an_expired_password_is_named(tmp_path, place, stack):
    options = (f"ForceCommand {script(tmp_path / 'passwd', FORCED_CHANGE)}",)
    with Staging(tmp_path / "server", options=options) as staging:
        transport = staging.build(place.location, ssh=stack)
        with pytest.raises(StagingError) as raised:
            transport.open_channel()
        transport.close()
    assert raised.value.problem_code == "ssh.expired"
    assert "Your password has expired" in raised.value.message


def once(directory, command):
    """Return options of a host that allows SFTP, and a shell after it has run `command` once."""
    mark = on_host(directory / "answered")
    text = f'[ -e {mark} ] && exec sh -c "$SSH_ORIGINAL_COMMAND"; touch {mark}; {command}'
    return sftp_or(directory, text)


@pytest.mark.parametrize(
    ("answer", "rung"),
    [
        ("exec sleep 1000", "shell"),
        ("kill -9 $PPID", "shell"),
        ("kill -9 $$", "shell"),
        ("echo 'sh: 0: Cannot fork' >&2; exit 2", "shell"),
        ("echo 'This account is not available.'; exit 1", "sftp"),
    ],
    ids=["silence", "a break", "a killed shell", "no process", "a refusal"],
)
def test_only_an_answer_without_a_shell_is_remembered_for_long(tmp_path, place, answer, rung):
    clock, area = (
        FakeClock(),
        StagingArea(box="box", location="/s", username="me", hosts=("127.0.0.1",)),
    )
    memory = RememberedHosts(tmp_path / "hosts.json", area, clock)
    with Staging(tmp_path / "server", options=once(tmp_path, answer)) as staging:
        assert opened(upload(staging, place, memory=memory)).rung == "sftp"
        staging.events.clear()
        clock.move(timedelta(minutes=15).total_seconds())

        assert opened(upload(staging, place, memory=memory)).rung == rung


@pytest.mark.parametrize("stack", STACKS)
def test_times_that_are_refused_are_reported_once(tmp_path, place, stack):
    with Staging(tmp_path / "server", options=(f"ForceCommand {NO_TIMES}",)) as staging:
        events = upload(staging, place, stack=stack, size=20 << 20)
    assert notices(events) == ["staging.no-times"]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("server", [WRITE_ONLY, NO_RENAME], ids=["write only", "no rename"])
def test_files_go_straight_to_their_names_where_nothing_can_be_renamed(
    tmp_path, place, server, stack
):
    with Staging(tmp_path / "server", options=(f"ForceCommand {server}",)) as staging:
        events = upload(staging, place, stack=stack, size=20 << 20)
        upload(staging, place, stack=stack, size=20 << 20)
    assert notices(events) == ["staging.no-resume"] * 2  # one for each run


TOOLS = ("cat", "ls", "mv", "rm", "mkdir")


@pytest.mark.parametrize("missing", TOOLS)
def test_a_shell_without_a_tool_is_not_used(tmp_path, place, missing):
    gate = without(tmp_path, missing)
    with Staging(tmp_path / "server", options=gate) as staging:
        events = upload(staging, place)
    assert opened(events).rung == "sftp"
    assert f"no {missing}" in opened(events).detail
    assert notices(events) == ["staging.no-programs"]


def test_a_shell_without_chmod_is_used(tmp_path, place):
    with Staging(tmp_path / "server", options=without(tmp_path, "chmod")) as staging:
        assert opened(upload(staging, place)).rung == "shell"


def test_a_shell_without_touch_is_used_and_reported(tmp_path, place):
    with Staging(tmp_path / "server", options=without(tmp_path, "touch")) as staging:
        events = upload(staging, place)
    assert opened(events).rung == "shell"
    assert "staging.no-times" in notices(events)


# Like mod_sftp of ProFTPD 1.3.8, it drops what arrives together with a control line.
LINE_BY_LINE = """
import os, subprocess, sys
words = os.environ["SSH_ORIGINAL_COMMAND"].split()
if words[0] != "scp":
    sys.exit("only scp is allowed here")
scp = subprocess.Popen(words, stdin=subprocess.PIPE)
while received := os.read(0, 65536):
    line = received.partition(b"\\n")[0] + b"\\n"
    os.write(scp.stdin.fileno(), line)
    size = int(line.split()[1]) + 1 if line.startswith(b"C") else 0
    while size and (content := os.read(0, min(size, 65536))):
        size -= os.write(scp.stdin.fileno(), content)
scp.stdin.close()
sys.exit(scp.wait())
"""


@pytest.mark.parametrize("stack", STACKS)
def test_scp_sends_each_line_after_the_answer_to_the_one_before(tmp_path, place, stack):
    place.location = place.location.with_name("staging")  # its command knows no quotes
    program = on_host(tmp_path / "line_by_line.py")
    program.write_text(LINE_BY_LINE)
    options = (f"ForceCommand {python_on_host()} {program}",)
    with Staging(tmp_path / "server", options=options) as staging:
        events = upload(staging, place, stack=stack)
    assert opened(events).rung == "scp"


TALKING = """
echo "Welcome to our storage"
case "$SSH_ORIGINAL_COMMAND" in scp*) exec $SSH_ORIGINAL_COMMAND ;; esac
exit 1
"""


@pytest.mark.parametrize("stack", STACKS)
def test_a_start_file_that_prints_text_before_scp_is_named(tmp_path, place, stack):
    place.location = place.location.with_name("staging")
    options = (f"ForceCommand {script(tmp_path / 'bashrc', TALKING)}",)
    with Staging(tmp_path / "server", options=options) as staging:
        transport = staging.build(place.location, ssh=stack)
        with pytest.raises(StagingError) as raised:
            transport.open_channel()
        transport.close()
    assert raised.value.message.endswith(
        "scp was refused (text came before its answer: Welcome to our storage)."
    )
    assert "start file" in raised.value.hint


def test_that_nothing_resumes_over_scp_is_reported(tmp_path, place):
    place.location = place.location.with_name("staging")
    with Staging(tmp_path / "server", "scp") as staging:
        assert notices(upload(staging, place)) == ["staging.no-resume"]


def test_that_nothing_resumes_without_a_program_for_checksums_is_reported(tmp_path, place):
    with Staging(tmp_path / "server", options=with_programs(tmp_path, tar="/bin/tar")) as staging:
        events = upload(staging, place)
    assert opened(events).rung == "shell"
    assert notices(events) == ["staging.no-resume"]


def test_scp_makes_a_missing_location_a_directory(tmp_path, place):
    place.location = place.location.with_name("staging")
    with Staging(tmp_path / "server", "scp") as staging:
        upload(staging, place)
        upload(staging, place)
    assert (place.location / ".mydata-probe").is_file()


def test_a_sample_is_recent_so_that_no_cleanup_removes_it_while_it_is_used(tmp_path, place):
    with Staging(tmp_path / "server", options=(f"ForceCommand {WRITE_ONLY}",)) as staging:
        upload(staging, place)
    sample = place.location / ".mydata-probe"
    assert time.time() - sample.stat().st_mtime < 3600


def without(directory, program):
    """Return options of a host that allows SFTP, and a shell without one of the usual programs."""
    (few,) = with_programs(directory)
    on_host(directory / "bin" / program).unlink()
    return sftp_or(directory, f"exec {few.partition(' ')[2]}")
