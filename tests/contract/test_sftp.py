"""SFTP over either stack, against OpenSSH's sftp-server."""

import os
import stat
from pathlib import Path

import pytest

from mydata_like.core.errors import RejectedError, TransientError
from mydata_like.ssh.session import SmallFile
from tests.faults.tcpproxy import TcpProxy
from tests.openssh import on_host
from tests.sshd_fixture import (
    STACKS,
    STALL,
    endpoint_of,
    needs_sshd,
    open_session,
    script,
    sshd_with,
)

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("server")) as sshd:
        yield sshd


@pytest.fixture(params=STACKS)
def stack(request):
    return request.param


@pytest.fixture
def sftp(sshd, stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with open_session(endpoint_of(sshd, tmp_path / "keys", stack=stack)) as session:
        yield session.open_sftp()


@pytest.fixture
def place(tmp_path):
    """A folder with a name that is hard on shells."""
    place = on_host(tmp_path) / "it's $(a)\n\udcff place"
    place.mkdir()
    return place


def write(sftp, path, content, **options):
    file = sftp.open_file(bytes(path), **options)
    file.write(content)
    file.close()


def write_much(file):
    for _ in range(200):
        file.write(bytes(100_000))


@pytest.mark.parametrize("size", [0, 1, 32_640, 32_641, 5_000_000])
def test_files_of_any_size_arrive_whole(sftp, place, size):
    content = os.urandom(size)
    write(sftp, place / "file", content)
    assert (place / "file").read_bytes() == content
    assert sftp.find_size(bytes(place / "file")) == size


def test_many_small_writes_make_one_file(sftp, place):
    file = sftp.open_file(bytes(place / "file"))
    for number in range(500):
        file.write(b"%04d" % number)
    file.close()
    assert (place / "file").read_bytes() == b"".join(b"%04d" % number for number in range(500))


def test_an_older_file_is_emptied_or_kept(sftp, place):
    write(sftp, place / "file", b"long before")
    write(sftp, place / "file", b"just now")
    write(sftp, place / "file", b"even", keep=True)
    assert (place / "file").read_bytes() == b"even now"


def test_a_file_is_written_at_any_place(sftp, place):
    file, other = (sftp.open_file(bytes(place / name)) for name in ("file", "other"))
    for start in (300_000, 0, 100_000, 200_000):
        file.move_to(start)
        file.write(bytes([start // 100_000]) * 100_000)
        other.write(b"%d " % start)
    file.close()
    other.close()
    content = (place / "file").read_bytes()
    assert content == b"".join(bytes([place]) * 100_000 for place in range(4))
    assert (place / "other").read_bytes() == b"300000 0 100000 200000 "


@pytest.mark.parametrize("size", [0, 1, 32_768, 100_000])
def test_what_was_written_is_read(sftp, place, size):
    content = os.urandom(size)
    (place / "file").write_bytes(content)
    assert sftp.read_file(bytes(place / "file")) == content


def test_without_a_file_nothing_is_read(sftp, place):
    assert sftp.read_file(bytes(place / "nothing")) == b""


def test_how_far_away_the_host_is_shows_in_its_answers(sshd, stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with TcpProxy(sshd.port) as proxy:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack, port=proxy.port)
        with open_session(endpoint) as session:
            sftp = session.open_sftp()
            first = sftp.round_trip
            sftp.find_size(b"/")
            assert 0 < sftp.round_trip <= first
            proxy.latency = 0.02
            assert session.open_sftp().round_trip > 0.03


def test_directories_are_made_as_deep_as_needed(sftp, place):
    sftp.make_directories(bytes(place / "a/b/c"), 0o2770)
    sftp.make_directories(bytes(place / "a/b/c"), 0o2770)
    for made in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((place / made).stat().st_mode) == 0o2770


def test_a_rename_replaces_what_was_there(sftp, place):
    write(sftp, place / "part", b"new")
    write(sftp, place / "file", b"old")
    sftp.replace(bytes(place / "part"), bytes(place / "file"))
    assert [entry.name for entry in place.iterdir()] == ["file"]
    assert (place / "file").read_bytes() == b"new"


def test_mode_and_time_are_kept(sftp, place):
    write(sftp, place / "file", b"")
    sftp.set_attributes(bytes(place / "file"), mode=0o640, modified=1_000_000_000.7)
    found = (place / "file").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_mtime) == (0o640, 1_000_000_000)


def test_what_is_missing_has_no_size_and_need_not_be_removed(sftp, place):
    assert sftp.find_size(bytes(place / "nothing")) is None
    sftp.remove(bytes(place / "nothing"))


def test_refusals_are_reported_in_the_servers_words(sftp, place):
    with pytest.raises(RejectedError, match="No such file"):
        sftp.open_file(bytes(place / "nowhere/file"))
    write(sftp, place / "file", b"x")
    with pytest.raises(RejectedError):
        sftp.make_directories(bytes(place / "file/below"), 0o2770)
    write(sftp, place / "other", b"still usable")


def test_a_full_disk_is_reported_at_the_latest_on_closing(sftp):
    file = sftp.open_file(b"/dev/full")
    with pytest.raises(RejectedError):
        write_much(file)
    with pytest.raises(RejectedError):
        file.close()


def test_a_stalled_link_is_noticed(sshd, stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with TcpProxy(sshd.port) as proxy:
        endpoint = endpoint_of(
            sshd, tmp_path / "keys", stack=stack, port=proxy.port, stall_timeout=STALL
        )
        with open_session(endpoint) as session:
            file = session.open_sftp().open_file(bytes(on_host(tmp_path / "file")))
            proxy.stall.set()
            with pytest.raises(TransientError) as raised:
                write_much(file)
            assert raised.value.problem_code == "link.stalled"


def test_a_host_without_sftp_says_so(stack, tmp_path):
    (tmp_path / "keys").mkdir()
    with sshd_with(tmp_path, "Subsystem other /bin/false") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with open_session(endpoint) as session:
            with pytest.raises(RejectedError) as raised:
                session.open_sftp()
            assert raised.value.problem_code == "ssh.sftp-refused"
            assert session.run(b"echo usable").output == b"usable\n"


@pytest.mark.parametrize(
    "use",
    [
        lambda sftp, place: sftp.find_size(bytes(place)),
        lambda sftp, place: write_much(sftp.open_file(bytes(place / "file"))),
        lambda sftp, place: list(sftp.put_all(puts(place, 50))),
    ],
    ids=["question", "large file", "small files"],
)
def test_an_sftp_server_that_dies_is_lost_and_refuses_nothing(sshd, stack, place, tmp_path, use):
    (tmp_path / "keys").mkdir()
    with open_session(endpoint_of(sshd, tmp_path / "keys", stack=stack)) as session:
        sftp = session.open_sftp()
        sshd.kill_commands()
        with pytest.raises(TransientError) as raised:
            use(sftp, place)
        assert raised.value.problem_code == "link.lost"
        use(session.open_sftp(), place)


@pytest.mark.parametrize("words", ["", "printf abc", "printf '\\0\\0\\0\\005\\002'"])
def test_a_server_that_ends_before_it_has_greeted_offers_no_sftp(stack, tmp_path, words):
    (tmp_path / "keys").mkdir()
    early = script(tmp_path / "early", f"{words}\n")
    with sshd_with(tmp_path, f"Subsystem sftp {early}") as sshd:
        endpoint = endpoint_of(sshd, tmp_path / "keys", stack=stack)
        with open_session(endpoint) as session, pytest.raises(RejectedError) as raised:
            session.open_sftp()
        assert raised.value.problem_code == "ssh.sftp-refused"


def puts(place, count):
    for number in range(count):
        target = bytes(place / f"{number} it's")
        content = os.urandom(number * 37 % 70_000)
        yield SmallFile(target + b".part", target, content, 0o640, 1_600_000_000 + number)


def there(path):
    return on_host(Path("/")) / path.decode("utf-8", "surrogateescape")


def test_many_small_files_arrive_under_way_at_once(sftp, place):
    wanted = list(puts(place, 500))
    assert sorted(sftp.put_all(wanted)) == [(number, None) for number in range(500)]
    for put in wanted:
        found = there(put.target)
        assert found.read_bytes() == put.content
        assert found.stat().st_mtime == put.modified
        assert stat.S_IMODE(found.stat().st_mode) == 0o640
    assert len(list(place.iterdir())) == 500


def test_small_files_that_are_refused_leave_nothing_and_the_others_arrive(sftp, place):
    wanted = list(puts(place, 50))
    there(wanted[7].target).mkdir()
    there(wanted[20].part).mkdir()
    fates = dict(sftp.put_all(wanted))
    assert {number for number, refusal in fates.items() if refusal} == {7, 20}
    assert not there(wanted[7].part).exists()
    for number in set(fates) - {7, 20}:
        assert there(wanted[number].target).read_bytes() == wanted[number].content


def test_a_session_goes_on_after_small_files(sftp, place):
    assert list(sftp.put_all(puts(place, 1))) == [(0, None)]
    assert sftp.find_size(bytes(place / "0 it's")) == 0
