"""The transport over real SSH servers: what they hold afterwards is what we have here."""

import hashlib
import os
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.core.events import ChannelChanged
from mydata_like.core.model import Datafile, DatafileId, FileRecord, Payload, Replacement, Replica
from mydata_like.core.ports import SentFile, UnsentFile
from mydata_like.core.staging_path import aside_path, kept_path
from mydata_like.ssh.capabilities import HostCapabilities
from tests.fakes.place import MODIFIED, checksum
from tests.faults.tcpproxy import TcpProxy
from tests.openssh import from_host, on_host, python_on_host, run_on_host, which
from tests.sshd_fixture import noisy, with_path, with_programs
from tests.staging import DATASET, Memory, Staging, single, wanted

KINDS = ["shell", "scp", "sftp", "folder"]
STACKS = ["libssh", "paramiko"]
MANY = 500 if os.name == "nt" else 2000  # Wine needs milliseconds for each
EARLIER = "e" * 32  # the checksum of replaced bytes


@pytest.fixture(scope="module", params=KINDS)
def staging(request, tmp_path_factory):
    """An SSH server that allows one rung only, or a folder; the one with a shell is noisy."""
    folder, kind = tmp_path_factory.mktemp(request.param), request.param
    with Staging(folder, kind, noisy(folder) if kind == "shell" else ()) as staging:
        yield staging


@pytest.fixture(params=STACKS)
def transport(request, staging, place):
    if (staging.kind, request.param) == ("folder", "paramiko"):
        pytest.skip("a folder needs no SSH")
    if staging.kind == "scp":  # it knows no quotes
        place.location = place.location.with_name("staging")
    place.location.mkdir()
    transport = staging.build(place.location, ssh=request.param)
    yield transport
    transport.close()


def ignore(*_: int) -> None: ...


def batch(members, number=1) -> Payload:
    return Payload(number, tuple(map(wanted, members)), batched=True)


def test_the_rung_the_stack_and_the_cipher_are_reported(place, staging, transport, request):
    staging.events.clear()
    transport.open_channel()
    (event,) = [event for event in staging.events if isinstance(event, ChannelChanged)]
    assert event.state == "open"
    assert event.rung == staging.kind
    if staging.kind == "folder":
        assert event.host == str(from_host(place.location))
        assert event.detail == "the folder takes files"
        return
    assert event.host == "127.0.0.1"
    assert event.detail.startswith(request.node.callspec.params["transport"])


def test_many_tiny_files_arrive_in_batches(place, staging, transport):
    count = MANY if staging.kind == "shell" else 200
    members = [place.write(f"set-1/{n % 7}/file {n}", n % 4000) for n in range(count)]
    place.settle(*members)
    channel = transport.open_channel()
    for start in range(0, count, 500):
        part = members[start : start + 500]
        expected = [SentFile(n, checksum(member)) for n, member in enumerate(part)]
        assert channel.send(batch(part, start), ignore) == expected
    assert all(map(place.arrived, members))


def test_times_and_modes_are_kept(place, staging, transport):
    member = place.write("set-1/deep/er/file", 10)
    place.settle(member)
    assert transport.open_channel().send(single(member), ignore) == [SentFile(0, checksum(member))]
    there = place.there(member)
    assert there.stat().st_mtime == MODIFIED
    if is_folder_of_windows(staging):
        return  # it has no modes
    assert stat.S_IMODE(there.stat().st_mode) == 0o660
    for directory in (there.parent, there.parent.parent, there.parent.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == (
            0o2770 if directory != place.location else stat.S_IMODE(directory.stat().st_mode)
        )


NAMES = [
    "plain",
    "it's",
    'a "quoted" one',
    "$(touch /tmp/never) `id` ; rm -rf *",
    "Ünï çödé 日本語",
    "-rf",
    "back\\slash",
    "tab\there",
    "trailing ",
    "*",
    "~root",
    "%20 !history",
]


REFUSED = set('*"<>|?\\\t\n')  # by folders of Windows, as are spaces at the end


def is_folder_of_windows(staging) -> bool:
    return staging.kind == "folder" and os.name == "nt"


@pytest.fixture
def names(staging):
    """Hostile names, as far as the place can have them; the last one with a line break."""
    hostile = [*NAMES, "new\nline"]
    if not is_folder_of_windows(staging):
        return hostile
    return [name for name in hostile if not REFUSED & set(name) and name == name.strip()]


def test_a_large_file_arrives(place, transport):
    member = place.write("a/large", 40 << 20)
    place.settle(member)
    told = []
    sent = transport.open_channel().send(single(member), lambda size, *_: told.append(size))
    assert sent == [SentFile(0, checksum(member))]
    assert place.arrived(member)
    assert [path.name for path in place.there(member).parent.iterdir()] == ["large"]
    assert told == sorted(told)


def measure_blocks(path):
    """Return how many bytes a file takes on the disk of the host."""
    count = "import os, sys; print(os.stat(sys.argv[1]).st_blocks * 512)"
    return int(run_on_host(python_on_host(), "-c", count, on_host(path)).stdout)


def test_a_file_with_holes_arrives(place, staging, transport):
    path = place.source / "holes"
    with path.open("wb") as file:
        file.seek(16 << 20)
        file.write(b"in the middle")
        file.truncate(32 << 20)
    os.utime(path, (MODIFIED, MODIFIED))
    member = place.member(path, "a/holes")
    place.settle(member)
    expected = hashlib.md5(path.read_bytes()).hexdigest()
    assert transport.open_channel().send(single(member), ignore) == [SentFile(0, expected)]
    assert place.arrived(member)
    # Python finds no holes of files on Windows, so they are sent as zeros.
    if staging.kind in ("shell", "folder") and hasattr(os, "SEEK_DATA"):
        assert measure_blocks(place.there(member)) < 1 << 20


@pytest.mark.parametrize("size", [24 << 20, 40 << 20])
def test_zeros_that_are_no_holes_arrive_as_holes(place, staging, size):
    if staging.kind == "scp":  # it knows no quotes
        place.location = place.location.with_name("staging")
    place.location.mkdir()
    content = bytearray(size)
    content[9 << 20 : 10 << 20] = os.urandom(1 << 20)
    member = place.write("a/zeros", 0, bytes(content))
    place.settle(member)
    transport = staging.build(place.location, find_zeros=True)
    sent = transport.open_channel().send(single(member), ignore)
    transport.close()
    assert sent == [SentFile(0, checksum(member))]
    assert place.arrived(member)
    assert place.there(member).stat().st_mtime == MODIFIED
    if staging.kind != "scp":  # its protocol knows no gaps
        assert measure_blocks(place.there(member)) < 3 << 20


def test_older_content_is_replaced(place, transport):
    member = place.write("a/file", 5000)
    place.settle(member)
    place.there(member).parent.mkdir(parents=True)
    place.there(member).write_bytes(b"older and longer" * 5000)
    assert transport.open_channel().send(single(member), ignore) == [SentFile(0, checksum(member))]
    assert place.arrived(member)


def replacing(member) -> tuple[Replacement, FileRecord]:
    """Return a file whose record has verified bytes, and how new ones take their place."""
    found = wanted(member)
    found = replace(found, file=found.file._replace(key=member.path))
    replica = Replica(found.remote, "box", verified=True, verified_at="then")
    record = Datafile(DatafileId(1), DATASET.id, "", "", 8, EARLIER, "", (replica,))
    changed = replace(found, earlier=record)
    staged = aside_path(found.remote, member.size, member.modified_ns, b"")
    replacement = Replacement(
        member.path,
        DATASET.id,
        record.id,
        found.remote,
        staged,
        member.size,
        checksum(member),
        0,
        member.modified_ns,
        kept_path(found.remote, EARLIER),
        len(b"verified"),
    )
    return replacement, changed


def kept_copies(place):
    """Return the contents of what is kept of earlier bytes, by the names of the files."""
    found = place.location.rglob(f".mydata-old-{EARLIER}-*")
    return {path.name.partition(f"{EARLIER}-")[2]: path.read_bytes() for path in found}


@pytest.fixture
def changed(place, staging, names):
    """Files with hostile names whose earlier bytes are verified."""
    folder = "set '1'" if is_folder_of_windows(staging) else "set '1'/*"
    members = [place.write(f"{folder} {name}/{name}", 70_000) for name in names]
    place.settle(*members)
    for member in members:
        place.there(member).parent.mkdir(parents=True)
        place.there(member).write_bytes(b"verified")
    return members


def lay_aside(channel, members, *, release=False):
    """Send what replaces verified bytes; return the replacements and the wanted files by key."""
    pairs = [replacing(member) for member in members]
    if release:  # nothing is kept then, as on hosts that cannot rename
        pairs = [(it._replace(kept=""), replace(found, release=True)) for it, found in pairs]
    for _, found in pairs:
        (fate,) = channel.send(Payload(1, (found,), batched=False), ignore)
        here = Path(os.fsdecode(found.file.path)).read_bytes()
        assert fate.checksum == hashlib.md5(here).hexdigest()
    return [pair[0] for pair in pairs], {pair[0].key: pair[1] for pair in pairs}


def test_vouched_bytes_stay_until_they_are_replaced(place, staging, transport, changed):
    if staging.kind == "scp":
        changed = changed[:-1]  # it knows no newlines
    channel = transport.open_channel()
    release = staging.kind == "scp"
    replacements, files = lay_aside(channel, changed, release=release)
    assert {place.there(member).read_bytes() for member in changed} == {b"verified"}

    fates = channel.replace(replacements, files)

    assert all(isinstance(fate, SentFile) for fate in fates)
    assert all(map(place.arrived, changed))
    assert not list(place.location.rglob(".mydata-*.new"))
    names = set() if release else {place.there(member).name for member in changed}
    assert kept_copies(place) == dict.fromkeys(names, b"verified")


def test_a_host_that_cannot_keep_earlier_bytes_replaces_none(place, staging, transport, changed):
    if staging.kind != "scp":
        pytest.skip("this one can rename")
    _, found = replacing(changed[0])

    (fate,) = transport.open_channel().send(Payload(1, (found,), batched=False), ignore)

    assert (fate.problem.code, fate.again) == ("waiting.changed", False)
    assert place.there(changed[0]).read_bytes() == b"verified"


@pytest.mark.parametrize("moved", [False, True])
def test_what_was_interrupted_after_any_step_is_continued(
    place, staging, transport, changed, moved
):
    if staging.kind == "scp":
        pytest.skip("nothing is renamed")
    channel = transport.open_channel()
    replacements, files = lay_aside(channel, changed)
    if moved:
        channel.replace(replacements, files)
    else:
        for it in replacements[:2]:
            (place.location / it.kept).write_bytes(b"verified")
        (place.location / replacements[1].remote).unlink()

    fates = channel.replace(replacements, files)

    assert all(isinstance(fate, SentFile) for fate in fates)
    assert all(map(place.arrived, changed))
    assert set(kept_copies(place).values()) == {b"verified"}
    assert len(kept_copies(place)) == len(changed)


def test_bytes_that_cannot_be_kept_are_not_replaced(place, staging, transport, changed):
    if staging.kind == "scp":
        pytest.skip("nothing is renamed")
    channel = transport.open_channel()
    replacements, files = lay_aside(channel, changed[:3])
    (place.location / replacements[1].kept).write_bytes(b"other")
    (place.location / replacements[2].kept).mkdir()

    fates = channel.replace(replacements, files)

    assert isinstance(fates[0], SentFile)
    assert [fate.problem.code for fate in fates[1:]] == ["waiting.changed"] * 2
    assert {place.there(member).read_bytes() for member in changed[1:3]} == {b"verified"}
    assert all((place.location / it.staged).exists() for it in replacements[1:])


def test_new_bytes_of_known_files_and_new_files_share_a_batch(place, staging, transport, changed):
    new = [place.write(f"set-1/new {number}", size) for number, size in enumerate((3, 90_000))]
    place.settle(*new)
    changed = changed[:-1]  # a newline keeps files apart from others
    pairs = [replacing(member) for member in changed]
    if staging.kind == "scp":
        pairs = [(it._replace(kept=""), replace(found, release=True)) for it, found in pairs]
    mixed = (wanted(new[0]), *(found for _, found in pairs), wanted(new[1]))
    channel = transport.open_channel()

    fates = channel.send(Payload(1, mixed, batched=True), ignore)

    assert [fate.checksum for fate in fates] == [
        checksum(member) for member in (new[0], *changed, new[1])
    ]
    assert all(map(place.arrived, new))
    assert {place.there(member).read_bytes() for member in changed} == {b"verified"}
    moved = channel.replace([it for it, _ in pairs], {it.key: found for it, found in pairs})
    assert all(isinstance(fate, SentFile) for fate in moved)
    assert all(map(place.arrived, changed))
    assert not list(place.location.rglob(".mydata-*.new"))


def test_what_is_not_there_is_missing_and_replaces_nothing(place, staging, transport, changed):
    channel = transport.open_channel()
    replacements, _ = lay_aside(channel, changed[:3], release=staging.kind == "scp")
    short, gone, _ = (place.location / one.staged for one in replacements)
    if staging.kind != "scp":
        short.write_bytes(b"torn")
        gone.unlink()

    fates = channel.replace(replacements, {})

    codes = [it.problem.code for it in fates if isinstance(it, UnsentFile)]
    assert codes == (["waiting.changed"] * 3 if staging.kind == "scp" else ["staging.missing"] * 2)
    assert {place.there(member).read_bytes() for member in changed[:2]} == {b"verified"}


def test_a_folder_in_the_place_of_a_file_is_reported(place, staging, transport, changed):
    channel = transport.open_channel()
    replacements, files = lay_aside(channel, changed[:2], release=staging.kind == "scp")
    place.there(changed[0]).unlink()
    place.there(changed[0]).mkdir()

    fates = channel.replace(replacements, files)

    assert [type(fate) for fate in fates] == [UnsentFile, SentFile]
    assert not list(place.there(changed[0]).iterdir())


def test_what_was_laid_aside_is_discarded(place, staging, transport, changed):
    channel = transport.open_channel()
    replacements, _ = lay_aside(channel, changed[:3], release=staging.kind == "scp")

    channel.discard([it.staged for it in replacements])

    assert not list(place.location.rglob(".mydata-*.new"))
    assert {place.there(member).read_bytes() for member in changed} == {b"verified"}


def only_busybox(folder):
    if not which("busybox"):
        pytest.skip("needs busybox")
    there = on_host(folder / "programs")
    run_on_host("sh", "-c", f"mkdir {there} && busybox --install -s {there}").check_returncode()
    return with_path(folder, there)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("options", [noisy, only_busybox], ids=["GNU", "busybox"])
def test_of_a_file_that_has_grown_only_the_rest_is_sent(tmp_path, place, stack, options):
    name, size = "set '1'/it's $(grown)", 33 << 20
    old = place.write(name, size)
    first = Path(os.fsdecode(old.path)).read_bytes()
    new = place.write(name, 0, first + b"x")
    place.settle(new)
    place.there(new).parent.mkdir(parents=True)
    place.there(new).write_bytes(first)
    replacement, found = replacing(new)
    earlier = found.earlier._replace(size=size)
    found = replace(found, earlier=earlier, appended=True)
    moved = []

    def count(sent, omitted):
        moved.append((sent, omitted))

    with (
        Staging(tmp_path / "host", "shell", options(tmp_path)) as staging,
        TcpProxy(staging.sshd.port) as proxy,
        closing(staging.build(place.location, port=proxy.port, ssh=stack)) as transport,
    ):
        channel = transport.open_channel()
        aside = channel.send(Payload(1, (found,), batched=False), count)
        assert place.there(new).read_bytes() == first
        placed = channel.replace([replacement._replace(kept="")], {})

    assert (aside, placed) == ([SentFile(0, checksum(new))], [SentFile(0, "")])
    assert place.arrived(new)
    assert [it.name for it in place.there(new).parent.iterdir()] == [place.there(new).name]
    assert moved[-1] == (size + 1, size)
    assert proxy.passed < 100_000


@pytest.mark.parametrize(
    "programs",
    [{}, {"perl": "/bin/false"}, {"ln": "/bin/ln"}],
    ids=["none", "broken", "links"],
)
def test_without_perl_the_shell_moves_each_file(tmp_path, place, changed, programs):
    place.location.mkdir(exist_ok=True)
    with Staging(tmp_path / "host", "shell", with_programs(tmp_path, **programs)) as staging:
        transport = staging.build(place.location)
        channel = transport.open_channel()
        replacements, _ = lay_aside(channel, changed)
        short, gone, *_, unwanted = (place.location / one.staged for one in replacements)
        short.write_bytes(b"torn")
        gone.unlink()
        place.there(changed[2]).unlink()
        place.there(changed[2]).mkdir()

        fates = channel.replace(replacements[:-1], {})
        channel.discard([replacements[-1].staged])
        transport.close()

    codes = [fate.problem.code for fate in fates if isinstance(fate, UnsentFile)]
    assert codes == ["staging.missing", "staging.missing", "staging.denied"]
    assert all(map(place.arrived, changed[3:-1]))
    assert len(kept_copies(place)) == len(changed[3:-1])
    assert set(kept_copies(place).values()) == {b"verified"}
    assert {place.there(it).read_bytes() for it in (*changed[:2], changed[-1])} == {b"verified"}
    assert not unwanted.exists()


def send_until_it_arrives(transport, payload, attempts=3):
    """Send a payload as the engine does: again if that may help."""
    for _ in range(attempts):
        try:
            results = transport.open_channel().send(payload, ignore)
        except TransientError:
            continue
        if not any(isinstance(result, UnsentFile) and result.again for result in results):
            return results
    return []


@pytest.mark.parametrize("remembered", KINDS)
def test_a_host_that_allows_something_else_than_it_did_is_probed_again(staging, place, remembered):
    if staging.kind == "scp":  # it knows no quotes
        place.location = place.location.with_name("staging")
    place.location.mkdir()
    members = [place.write(f"a/{number}", 1000) for number in range(3)]
    place.settle(*members)
    tools = {"tar": "busybox", "checksum": b"md5 -q"} if remembered == "shell" else {}
    memory = Memory(**{staging.sshd.host: HostCapabilities(remembered, **tools, zstd=True)})
    transport = staging.build(place.location, memory=memory)

    results = send_until_it_arrives(transport, batch(members))

    transport.close()
    assert results == [SentFile(at, checksum(member)) for at, member in enumerate(members)]
    assert all(map(place.arrived, members))
