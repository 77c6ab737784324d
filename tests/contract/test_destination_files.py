"""The files of a destination: on hosts with the programs of GNU, busybox and BSD, and mounted."""

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from mydata_like.catalogues.manifest.segments import MANIFEST, Manifest, parse_checksums
from mydata_like.core.checksums import Algorithm
from mydata_like.core.destination_files import (
    HOLE,
    Placement,
    ProvenFile,
    StoredFile,
    TreeFolder,
    TreeLink,
)
from mydata_like.core.errors import (
    Problem,
    ServerUnavailableError,
    StagingError,
    TransientError,
)
from mydata_like.engine.pipeline import map_concurrently
from mydata_like.ssh.capabilities import HostCapabilities, probe_commands
from mydata_like.ssh.connect import connect
from mydata_like.transfer.folder.mounted_files import LocalFiles
from mydata_like.transfer.ssh.host_files import HostFiles
from mydata_like.transfer.ssh.host_programs import PROBE, HostPrograms
from mydata_like.transfer.ssh.sftp_files import SftpFiles
from tests.mounts import may_mount_disks
from tests.privileges import IS_ROOT, needs_bytes
from tests.sshd_fixture import (
    NO_PYTHON,
    STACKS,
    endpoint_of,
    first_in_path,
    needs_sshd,
    noisy,
    script,
    sftp_only,
    sshd_with,
    with_path,
    with_programs,
)

pytestmark = [needs_bytes]

OWN = ".mydata-like"
INCOMING = f"{OWN}/incoming/1"
ODD = [
    *(b"a b", b"new\nline", b"\n", b"end\n", b"back\\slash", b"-rf", b"it's", b'say "x"', b"*"),
    *(b"\xff\xfe", "zwölf 日本".encode(), b"x" * 255, b"$(id)", b"`id`", b"tab\t", b"cr\r"),
    *(b" before", b"after ", b"%s%n", b"mydata:", b"mydata:2", b"!x", b"~", b".hidden", b"#", b"="),
    *(b"x\nd41d8cd98f00b204e9800998ecf8427e  y", b"...", b";", b"&", b"?", b"[a]", b"{a,b}"),
]
CHECKSUMS = {"bsd": b"md5 -q", "openssl": b"openssl md5 -r"}
SHA256 = {"bsd": b"sha256 -q", "openssl": b"openssl sha256 -r", "paramiko": b"shasum -a 256"}
STAT = """
[ "$1" = -f ] || exit 1
shift 2
exec /usr/bin/stat -c '%f %s %.9Y %.9Z %i' "$@"
"""
FIND = 'case "$*" in *-printf*) exit 1;; esac\nexec /usr/bin/find "$@"\n'
MD5 = 'shift\n[ $# -gt 0 ] || exec /usr/bin/md5sum\n/usr/bin/md5sum "$@" | cut -c1-32\n'
SHA = MD5.replace("md5sum", "sha256sum").replace("32", "64")
SHASUM = 'shift 2\nexec /usr/bin/sha256sum "$@"\n'  # of Perl, which a small system lacks
TOUCH = 'case "$*" in *-d*) exit 1;; esac\nexec /usr/bin/touch "$@"\n'
NO_LINKS = """
[ "$1" = -s ] && exec /usr/bin/ln "$@"
echo "ln: Operation not permitted" >&2
exit 1
"""
CHANGING = '/usr/bin/md5sum "$@"\nfor file do case $file in *grows) echo >> "$file";; esac; done\n'
CHANGING_PYTHON = """
program=$4
shift 4
exec /usr/bin/python3 -I -S -c "import os
plain_read = os.read
def change(descriptor, size):
    data = plain_read(descriptor, size)
    if b'grows' in data:
        with open('/proc/self/fd/%d' % descriptor, 'ab') as file:
            file.write(b'more')
    return data
os.read = change
$program" "$@"
"""
CUT_OFF_PYTHON = '/usr/bin/python3 "$@" | head -c 60\n'
OTHER_ACCOUNT = 'exec setpriv --reuid 65534 --clear-groups sh -c "$SSH_ORIGINAL_COMMAND"\n'


def only_busybox(folder):
    (folder / "bin").mkdir()
    subprocess.run(["busybox", "--install", "-s", folder / "bin"], check=True)
    return with_path(folder, folder / "bin")


BSD = {"stat": STAT, "find": FIND, "md5": MD5, "sha256": SHA, "touch": TOUCH}
if shutil.which("bsdtar"):
    BSD["tar"] = 'exec bsdtar "$@"\n'
PYTHON_WITHOUT_LINKS = """
program=$4
shift 4
exec /usr/bin/python3 -I -S -c "import errno, os
def link(*_, **__):
    raise OSError(errno.EPERM, 'no links')
os.link = link
$program" "$@"
"""
HOSTS = {
    "python": lambda folder: (),
    "python without links": lambda folder: first_in_path(
        folder, ln=NO_LINKS, python3=PYTHON_WITHOUT_LINKS
    ),
    "gnu": lambda folder: first_in_path(folder, **NO_PYTHON),
    "paramiko": lambda folder: first_in_path(folder, shasum=SHASUM, **NO_PYTHON),
    "openssl": lambda folder: first_in_path(folder, **NO_PYTHON),
    "busybox": only_busybox,
    "bsd": lambda folder: first_in_path(folder, **BSD, **NO_PYTHON),
    "no links": lambda folder: first_in_path(folder, ln=NO_LINKS, **NO_PYTHON),
}
SFTP = {f"SFTP with {stack}": stack for stack in STACKS}
NEEDED = {
    "busybox": "busybox",
    "openssl": "openssl",
    **dict.fromkeys(("python", "python without links"), "/usr/bin/python3"),
}
FOLDERS = {
    "folder": {},
    "folder without links": {"links": False},
    "folder by path": {"by_descriptor": False},
}
KINDS = [
    *FOLDERS,
    *(
        pytest.param(
            name,
            marks=[
                needs_sshd,
                pytest.mark.skipif(
                    not shutil.which(NEEDED.get(name, "sh")), reason=f"needs {NEEDED.get(name)}"
                ),
            ],
        )
        for name in [*HOSTS, *SFTP]
    ),
]


@contextmanager
def host_with(folder, *options, **changes):
    """Yield a function that returns the files of a location on a host with these options."""
    (folder / "keys").mkdir()
    with sshd_with(folder, *options) as sshd:
        stack = changes.pop("stack", "libssh")
        endpoint = endpoint_of(sshd, folder / "keys", stack=stack)
        capabilities = HostCapabilities("shell", checksum=b"md5sum", sha256=b"sha256sum")
        capabilities = capabilities._replace(**changes)

        def build(location, programs=None):
            place = os.fsencode(location)
            return HostFiles(lambda: (connect(endpoint), capabilities), place, programs)

        build.sshd, build.endpoint = sshd, endpoint
        yield build


@contextmanager
def sftp_with(folder, *options, stack="libssh"):
    """Yield a function that returns the files of a location on a host with only SFTP."""
    (folder / "keys").mkdir()
    with sshd_with(folder, *(options or sftp_only())) as sshd:
        endpoint = endpoint_of(sshd, folder / "keys", stack=stack)

        def build(location):
            return SftpFiles(lambda: connect(endpoint), os.fsencode(location))

        build.sshd = sshd
        yield build


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def build(kind, tmp_path_factory):
    """Return a function that returns the files of a location."""
    if kind in FOLDERS:
        yield lambda location: LocalFiles(os.fsencode(location), **FOLDERS[kind])
        return
    folder = tmp_path_factory.mktemp("host")
    if kind in SFTP:
        with sftp_with(folder, stack=SFTP[kind]) as build:
            yield build
        return
    stack = "paramiko" if kind == "paramiko" else "libssh"
    programs = {
        "checksum": CHECKSUMS.get(kind, b"md5sum"),
        "sha256": SHA256.get(kind, b"sha256sum"),
    }
    with host_with(folder, *HOSTS[kind](folder), stack=stack, **programs) as build:
        yield build


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Destination:
    """A location, its files as they are tested, and as the test sees them."""

    def __init__(self, root, files):
        self.root = root
        self.files = files

    def path(self, name):
        return Path(os.fsdecode(os.fsencode(self.root) + b"/" + os.fsencode(name)))

    def put(self, name, content=b"content"):
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return os.fsencode(name)

    def receive(self, *names, mode=0o640):
        """Put files that arrived under temporary names; return how they are to be placed."""
        placements = []
        for name in map(os.fsencode, names):
            base = name.rpartition(b"/")[2]
            temporary = self.put(os.fsencode(INCOMING) + b"/" + base, b"content of " + base)
            placements.append(Placement(temporary, name, mode))
        return placements

    def stored(self, name):
        """Return what the system says about a file, as far as the destination tells it."""
        seen = self.path(name).lstat()
        if not self.files.attributes_complete:
            seconds = int(seen.st_mtime // 1)
            return StoredFile(os.fsencode(name), seen.st_size, seconds * 10**9, 0, 0)
        times = seen.st_mtime_ns, seen.st_ctime_ns
        return StoredFile(os.fsencode(name), seen.st_size, *times, seen.st_ino)

    def target(self, name):
        """Return the bytes of a link."""
        return os.fsencode(os.readlink(self.path(name)))  # noqa: PTH115 - a Path may change them

    def left(self):
        incoming = self.path(INCOMING)
        return [os.fsencode(name) for name in names(incoming)] if incoming.exists() else []


@pytest.fixture
def there(build, tmp_path):
    """Return an open destination whose name needs quotes."""
    with closing(build(tmp_path / "it's a destination")) as files:
        files.open(create=True)
        yield Destination(tmp_path / "it's a destination", files)


def need_attributes(there):
    if not there.files.attributes_complete:
        pytest.skip("SFTP tells no ctime and no inode, and times in seconds since 1970")


def codes(results):
    return [result.code if isinstance(result, Problem) else "" for result in results]


def test_files_with_odd_names_are_proven_placed_and_listed(there):
    placements = there.receive(*(b"odd " + name[:200] + b"/" + name for name in ODD))

    proven = there.files.prove([placement.temporary for placement in placements])
    placed = there.files.place(placements)

    content = [b"content of " + name for name in ODD]
    assert [it and it.checksum for it in proven] == [hashlib.md5(it).hexdigest() for it in content]
    assert placed == [there.stored(placement.final) for placement in placements]
    assert [there.path(it.path).read_bytes() for it in placed] == content
    assert sorted(there.files.list_files(b"")) == sorted(placed)
    assert there.left() == []


def test_files_with_odd_names_are_withdrawn_from_the_manifest(there):
    names = sorted({b"odd/" + name[:200] for name in ODD})
    files = [ProvenFile(StoredFile(name, 1, 2, 3, 4), "0" * 32) for name in names]
    manifest = Manifest(there.files, "us", pytest.fail)
    manifest.add(files, 1)

    manifest.withdraw(names[::2])

    assert [it.path for it in manifest.read()] == names[1::2]
    lists = [it for it in there.files.list_own(MANIFEST[:-1]) if it.endswith(b".md5")]
    lines = b"".join(there.files.read(MANIFEST + it) or b"" for it in lists)
    assert sorted(path for path, _ in parse_checksums(lines)) == names[1::2]


def test_hundreds_of_files_get_their_modes_in_the_order_given(there):
    names = [f"data/{number % 7}/{number}.dat" for number in range(700)]
    placements = [
        it._replace(mode=(0o600, 0o644)[number % 2])
        for number, it in enumerate(there.receive(*names))
    ]

    placed = there.files.place(placements)

    assert placed == [there.stored(name) for name in names]
    assert {stat.S_IMODE(there.path(name).stat().st_mode) for name in names[::2]} == {0o600}
    assert {stat.S_IMODE(there.path(name).stat().st_mode) for name in names[1::2]} == {0o644}
    assert there.left() == []


def test_thousands_of_long_names_go_in_one_call(there):
    names = [f"data/{number}" + "n" * 200 for number in range(3000)]
    placements = there.receive(*names)

    proven = there.files.prove([placement.temporary for placement in placements])
    placed = there.files.place(placements)

    assert all(proven)
    assert [it.path for it in placed] == list(map(os.fsencode, names))
    assert there.files.look([it.path for it in placed]) == placed
    assert there.files.prove([it.path for it in placed])[-1].file == placed[-1]


def take_by_file(path):
    path.write_bytes(b"mine")


def take_by_folder(path):
    path.mkdir()


def take_by_link(path):
    other = path.with_name("other")
    other.write_bytes(b"mine")
    path.symlink_to(other)


def take_by_dangling_link(path):
    path.symlink_to("nowhere")


def show(path):
    if path.is_symlink():
        return path.readlink()
    return names(path) if path.is_dir() else path.read_bytes()


TAKEN = [take_by_file, take_by_folder, take_by_link, take_by_dangling_link]


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("renamed", [False, True], ids=["same name", "other name"])
def test_a_name_that_is_taken_is_not_touched(there, take, renamed):
    first, taken, last = there.receive("data/a", "data/b", "data/c")
    if renamed:
        taken = taken._replace(temporary=there.put(f"{INCOMING}/other name"))
    there.path("data").mkdir()
    take(there.path("data/b"))
    before = show(there.path("data/b"))

    results = there.files.place([first, taken, last])

    assert codes(results) == ["", "destination.occupied", ""]
    assert show(there.path("data/b")) == before
    assert there.path(taken.temporary).exists()


def as_sent(placement, **changes):
    """Return how a file of `receive` is to be placed if it has its bytes."""
    content = b"content of " + placement.temporary.rpartition(b"/")[2]
    sent = placement._replace(size=len(content), checksum=hashlib.md5(content).hexdigest())
    return sent._replace(**changes)


def test_only_files_with_the_right_bytes_get_their_names(there):
    names = [b"new/odd " + name[:200] + b"/" + name for name in ODD]
    right = [as_sent(it) for it in there.receive(*names)]
    (wrong,) = [as_sent(it, checksum="0" * 32) for it in there.receive("wrong")]
    (missing,) = [as_sent(it) for it in there.receive("missing")]
    there.path(missing.temporary).unlink()
    there.put("taken/file", b"of somebody else")
    (taken,) = [as_sent(it) for it in there.receive("taken/file")]
    there.path("link").symlink_to("taken")
    (linked,) = [as_sent(it) for it in there.receive("link/other")]
    named = Placement(there.put("named", b"x"), b"", 0, 1, hashlib.md5(b"x").hexdigest())
    unnamed = [wrong, missing, taken, linked]

    results = there.files.prove_and_place([*right, *unnamed, named])

    placed = [it.file for it in results[: len(right)]]
    assert placed == [there.stored(name) for name in names]
    assert [it.checksum for it in results[: len(right)]] == [it.checksum for it in right]
    assert [there.path(name).stat().st_mode & 0o777 for name in names] == [0o640] * len(names)
    *failed, last = results[len(right) :]
    assert failed[:2] == [None, None]
    assert codes(failed[2:]) == ["destination.occupied", "destination.link"]
    assert last == ProvenFile(there.stored("named"), named.checksum)
    assert there.path("taken/file").read_bytes() == b"of somebody else"
    assert [path.name for path in there.path("taken").iterdir()] == ["file"]
    assert there.left() == [b"file", b"other", b"wrong"]


def test_a_file_that_has_a_name_gets_another_one(there):
    moves = {
        "old/a": "new/deeper/a",  # in another folder
        "old/it's": "old/-x $(y)",  # in the same folder
        "top": "new/top",
        "other/wrong": "new/wrong",
        "other/taken": "new/taken",
    }
    content, theirs = b"content", b"of somebody else"
    checksum = hashlib.md5(content).hexdigest()
    for name in moves:
        there.put(name, content)
    there.put("other/wrong", b"CONTENT")
    there.put("new/taken", theirs)
    placements = [
        Placement(os.fsencode(name), os.fsencode(final), 0o640, len(content), checksum)
        for name, final in moves.items()
    ]

    *renamed, wrong, taken = there.files.prove_and_place(placements)

    assert renamed == [ProvenFile(there.stored(it.final), checksum) for it in placements[:3]]
    assert (wrong, codes([taken])) == (None, ["destination.occupied"])
    assert [there.path(name).exists() for name in moves] == [False] * 3 + [True] * 2
    assert there.path("other/taken").read_bytes() == content
    assert there.path("new/taken").read_bytes() == theirs
    assert not there.path("new/wrong").exists()


def test_of_two_files_for_one_name_only_one_is_placed(there):
    one, two = there.receive("data/a", "b")

    results = there.files.place([one, two._replace(final=b"data/a")])

    assert sorted(codes(results)) == ["", "destination.occupied"]
    assert len(there.left()) == 1


@pytest.mark.parametrize("what", ["missing", "a link", "a folder"])
def test_a_temporary_file_that_is_not_there_is_named(there, what):
    first, gone, last = there.receive("data/a", "data/b", "data/c")
    temporary = there.path(gone.temporary)
    temporary.unlink()
    if what == "a link":
        temporary.symlink_to(there.path(first.temporary).with_name("c"))
    elif what == "a folder":
        temporary.mkdir()

    results = there.files.place([first, gone, last])

    assert codes(results) == ["", "staging.missing", ""]
    assert not there.path("data/b").exists()


def test_a_folder_of_temporary_files_that_is_missing_is_named(there):
    results = there.files.place([Placement(b".mydata-like/none/a", b"data/a", 0o644)])

    assert codes(results) == ["staging.missing"]


def test_nothing_is_placed_over_a_link_in_place_of_a_folder(there):
    placements = there.receive("data/a", "data/new/b")
    elsewhere = there.root.with_name("elsewhere")
    elsewhere.mkdir()
    there.path("data").symlink_to(elsewhere)

    results = there.files.place(placements)

    assert codes(results) == ["destination.link", "destination.link"]
    assert names(elsewhere) == []
    assert there.left() == [b"a", b"b"]


def test_a_file_in_place_of_a_folder_is_named(there):
    placements = there.receive("data/a")
    there.put("data", b"mine")

    assert codes(there.files.place(placements)) == ["destination.occupied"]
    assert there.path("data").read_bytes() == b"mine"


def test_a_name_that_is_too_long_is_named(there):
    placement, other = there.receive("data/a", "data/b")

    results = there.files.place([placement._replace(final=b"data/" + b"x" * 256), other])

    assert codes(results) == ["destination.name", ""]


def test_a_file_that_was_placed_before_its_temporary_name_was_removed_is_placed(there):
    need_attributes(there)
    placements = there.receive("data/a", "data/b")
    there.path("data").mkdir()
    there.path("data/a").hardlink_to(there.path(placements[0].temporary))

    assert there.files.place(placements) == [there.stored("data/a"), there.stored("data/b")]
    assert there.left() == []


def test_only_regular_files_are_proven(there):
    there.put("a", b"")
    there.path("link").symlink_to(there.path("a"))
    there.put("folder/b", b"b")
    there.path("linked").symlink_to(there.path("folder"))
    os.mkfifo(there.path("fifo"))
    paths = [b"missing", b"a", b"link", b"folder", b"folder/b", b"linked/b", b"fifo", b"a", b"a/b"]

    proven = there.files.prove(paths)

    empty, other = (hashlib.md5(content).hexdigest() for content in (b"", b"b"))
    found = [it and it.checksum for it in proven]
    assert found == [None, empty, None, None, other, None, None, empty, None]
    assert [it and it.file for it in proven] == there.files.look(paths)


@pytest.mark.parametrize("algorithm", Algorithm)
def test_large_files_are_hashed_completely(there, algorithm):
    contents = [bytes([number]) * (3_000_000 + number) for number in range(11)]
    paths = [there.put(f"{number}", content) for number, content in enumerate(contents)]

    there.files.use(algorithm)
    proven = there.files.prove(paths)

    assert [it.checksum for it in proven] == [algorithm.hash(it).hexdigest() for it in contents]


def test_files_with_odd_names_have_sha256_checksums_where_these_are_used(there):
    paths = [there.put(b"odd/" + name, b"content of " + name) for name in ODD]

    there.files.use(Algorithm.SHA256)
    proven = there.files.prove([*paths, b"missing"])

    content = [hashlib.sha256(b"content of " + name).hexdigest() for name in ODD]
    assert [it and it.checksum for it in proven] == [*content, None]
    assert there.files.algorithm is Algorithm.SHA256


@pytest.mark.parametrize(
    "time", [1_700_000_000_123_456_789, 1_000_000_001, -1_250_000_000, 0, 1, 1_700_000_000 * 10**9]
)
def test_times_are_exact_whoever_tells_them(there, time):
    if time < 0 or time % 10**9:
        need_attributes(there)
    there.put("a")
    os.utime(there.path("a"), ns=(time, time))

    (listed,) = there.files.list_files(b"")

    assert listed.modified_ns == time
    assert [listed] == [there.stored("a")] == there.files.look([b"a"])
    assert there.files.prove([b"a"])[0].file == listed


def test_the_mark_of_a_file_that_was_rewritten_with_its_size_and_time_differs(there):
    need_attributes(there)
    there.put("a", b"one")
    before = there.files.look([b"a"])[0]
    while there.stored("a").ctime_ns == before.ctime_ns:  # until the system's clock has moved on
        there.put("a", b"two")
        os.utime(there.path("a"), ns=(before.modified_ns, before.modified_ns))

    after = there.files.look([b"a"])[0]

    assert after[:3] == before[:3]
    assert after.mark != before.mark


def test_a_listing_has_the_files_below_its_folder_but_not_ours(there):
    for name in ("a", "data/b", "data/.mydata-like/c", f"{OWN}/d", "data/deep/er/e", ".mydata-x/f"):
        there.put(name)
    there.path("linked").symlink_to(there.path("data"))
    there.path("data/link").symlink_to(there.path("a"))

    def listed(folder):
        return sorted(file.path for file in there.files.list_files(folder))

    below = [b"data/.mydata-like/c", b"data/b", b"data/deep/er/e"]
    assert listed(b"") == [b".mydata-x/f", b"a", *below]
    assert listed(b"data") == below
    assert listed(b"data/deep") == [b"data/deep/er/e"]
    assert [listed(b"missing"), listed(b"linked"), listed(b"a"), listed(b".mydata-like")] == [
        []
    ] * 4


def test_a_listing_may_be_left_before_its_end(there):
    for number in range(50):
        there.put(f"data/{number}")

    listing = there.files.list_files(b"")
    assert next(listing).size == 7
    assert there.files.look([b"data/0"]) == [there.stored("data/0")]
    listing.close()

    assert len(list(there.files.list_files(b""))) == 50


@pytest.mark.parametrize("content", [b"", b"\0\n\xff'", b"x" * 300_000], ids=["0", "odd", "large"])
def test_a_file_of_ours_is_written_once_unless_it_may_be_replaced(there, content):
    name = b".mydata-like/a b/c\n'd"

    assert there.files.write(name, content)
    assert not there.files.write(name, b"other")
    assert there.files.read(name) == content
    assert there.files.write(name, b"third", replace=True)
    assert there.files.read(name) == b"third"
    assert there.files.list_own(b".mydata-like/") == [b"a b/c\n'd"]


def test_several_files_of_ours_are_written_at_once_and_replace_those_of_their_names(there):
    wanted = [
        (b".mydata-like/m/one/a 'b", b"first\n\0"),
        (b".mydata-like/m/two/\nc", b""),
        (b".mydata-like/m/one/d", b"x" * 300_000),
    ]
    there.files.write(wanted[0][0], b"earlier")

    there.files.write_all([])
    there.files.write_all(wanted)

    assert [there.files.read(path) for path, _ in wanted] == [it for _, it in wanted]
    assert there.files.list_own(b".mydata-like/m") == [b"one/a 'b", b"one/d", b"two/\nc"]
    assert sorted(names(there.path(f"{OWN}/m/one"))) == ["a 'b", "d"]


def test_files_of_ours_follow_a_new_one_only_if_its_name_is_free(there):
    first, second, empty = (b".mydata-like/m/" + name for name in (b"a 'b", b"c\nd", b"e"))
    there.files.write(second, b"earlier")

    assert there.files.write_new(first, b"1", [(second, b"2"), (empty, b"")])
    assert not there.files.write_new(first, b"3", [(second, b"4")])

    assert [there.files.read(it) for it in (first, second, empty)] == [b"1", b"2", b""]
    assert sorted(names(there.path(f"{OWN}/m"))) == ["a 'b", "c\nd", "e"]


def test_of_several_files_one_that_cannot_be_written_is_named(there):
    there.put(f"{OWN}/m/b/c")

    with pytest.raises(StagingError) as raised:
        there.files.write_all([(b".mydata-like/m/a", b"1"), (b".mydata-like/m/b", b"2")])

    assert "m/b" in raised.value.message
    assert names(there.path(f"{OWN}/m")) == ["a", "b"]


def test_a_folder_is_never_replaced_by_a_file_of_ours(there):
    there.put(f"{OWN}/a/b")

    with pytest.raises(StagingError) as raised:
        there.files.write(b".mydata-like/a", b"new", replace=True)

    assert raised.value.problem_code == "destination.occupied"
    assert there.files.list_own(b".mydata-like/") == [b"a/b"]


def test_nothing_of_ours_is_read_or_written_over_a_link(there):
    there.put("elsewhere/a")
    there.path(OWN).symlink_to(there.path("elsewhere"))

    with pytest.raises(StagingError) as raised:
        there.files.write(b".mydata-like/b", b"new")

    assert raised.value.problem_code == "destination.link"
    assert there.files.read(b".mydata-like/a") is None
    assert there.files.list_own(b".mydata-like/") == []
    assert names(there.path("elsewhere")) == ["a"]


def test_files_of_ours_are_listed_from_their_folder(there):
    for name in ("m/b", "m/a", "m/c/d", "other"):
        there.put(f"{OWN}/{name}")

    assert there.files.list_own(b".mydata-like/m/") == [b"a", b"b", b"c/d"]
    assert there.files.list_own(b".mydata-like/none/") == []
    assert there.files.read(b".mydata-like/none") is None


def test_several_files_of_ours_are_read_at_once(there):
    contents = {b".mydata-like/m/%d 'it" % number: b"%d\0\n" % number for number in range(20)}
    contents |= {b".mydata-like/empty": b"", b".mydata-like/m/mydata:missing": b"mydata:missing\0"}
    for path, content in contents.items():
        there.files.write(path, content)
    paths = [b".mydata-like/none", *contents, b".mydata-like/m/none", b".mydata-like/x/none"]

    assert list(there.files.read_all(paths)) == [None, *contents.values(), None, None]
    assert list(there.files.read_all([])) == []


def test_only_files_of_ours_are_removed(there):
    names = [there.put(os.fsencode(INCOMING) + b"/" + name) for name in ODD]
    there.put("data/a")

    there.files.remove([*names, b".mydata-like/missing"])

    assert there.left() == []
    with pytest.raises(ValueError, match="not below"):
        there.files.remove([b"data/a"])
    with pytest.raises(ValueError, match="not a plain"):
        there.files.remove([b".mydata-like/../data/a"])
    assert there.path("data/a").exists()


def test_empty_folders_of_ours_are_removed(there):
    there.path(f"{OWN}/x/a/b").mkdir(parents=True)
    there.path(f"{OWN}/y/a\n'b").mkdir(parents=True)
    there.put(f"{OWN}/x/c/file")

    assert there.files.clear(b".mydata-like/x")
    there.files.clear(b".mydata-like/y")
    there.files.clear(b".mydata-like/missing")

    assert names(there.path(OWN)) == ["x"]
    assert names(there.path(f"{OWN}/x")) == ["c"]


TIME = 1_600_000_000_000_000_000


def test_a_tree_gets_its_modes_times_and_links(there):
    folders = [TreeFolder(b"a b", 0o550, TIME), TreeFolder(b"a b/\xff\n", 0o700, TIME + 10**9)]
    links = [TreeLink(b"a b/l", b"../x y\n"), TreeLink(b"-l", b"-n"), TreeLink(b"deep/l", b"*")]

    assert there.files.make_tree(folders, links) == []
    assert there.files.make_tree(folders, links) == []

    seen = [there.path(folder.path).stat() for folder in folders]
    assert [stat.S_IMODE(it.st_mode) for it in seen] == [0o550, 0o700]
    assert [it.st_mtime_ns for it in seen] == [TIME, TIME + 10**9]
    assert [there.target(link.path) for link in links] == [link.target for link in links]


def test_what_is_in_the_way_of_a_tree_stays(there):
    there.put("file", b"mine")
    there.put("folder/x")
    there.path("link").symlink_to("folder")
    folders = [TreeFolder(b"file", 0o755, TIME), TreeFolder(b"link/a", 0o755, TIME)]
    links = [TreeLink(name, b"new") for name in (b"file", b"folder", b"link", b"file/a", b"good")]

    problems = there.files.make_tree(folders, links)

    occupied = "destination.occupied"
    assert codes(problems) == [occupied, "destination.link", *[occupied] * 4]
    assert names(there.path("folder")) == ["x"]
    assert there.target("link") == b"folder"
    assert there.target("good") == b"new"


def test_a_folder_that_is_a_link_is_not_part_of_a_tree(there):
    there.put("folder/x")
    there.path("folder").chmod(0o711)
    there.path("link").symlink_to("folder")

    assert codes(there.files.make_tree([TreeFolder(b"link", 0o755, TIME)], [])) == [
        "destination.link"
    ]
    assert stat.S_IMODE(there.path("folder").stat().st_mode) == 0o711


def test_what_was_written_can_be_flushed(there):
    there.put("a")

    there.files.sync()

    assert there.files.prove([b"a"])[0].file == there.stored("a")


def test_a_destination_is_only_made_if_it_is_to_be(build, tmp_path):
    with closing(build(tmp_path / "a" / "b")) as files:
        with pytest.raises(StagingError) as raised:
            files.open(create=False)
        assert raised.value.problem_code == "destination.absent"
        files.open(create=True)
        files.open(create=False)

    assert names(tmp_path / "a" / "b") == []


@pytest.mark.parametrize("name", ["file", "file/below"])
@pytest.mark.parametrize("create", [False, True])
def test_a_destination_that_is_a_file_is_named(build, tmp_path, name, create):
    (tmp_path / "file").write_bytes(b"mine")
    with closing(build(tmp_path / name)) as files, pytest.raises(StagingError) as raised:
        files.open(create=create)

    assert raised.value.problem_code == "destination.no-folder"


@contextmanager
def small_file_system(folder, options):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


needs_disks = pytest.mark.skipif(not may_mount_disks(), reason="mounting is not permitted")


@needs_disks
def test_a_read_only_destination_is_named(build, tmp_path):
    with (
        small_file_system(tmp_path / "disk", "ro") as disk,
        closing(build(disk)) as files,
        pytest.raises(StagingError) as raised,
    ):
        files.open(create=True)
    assert raised.value.problem_code == "destination.read-only"


@needs_disks
def test_a_full_destination_is_named(build, tmp_path):
    with small_file_system(tmp_path / "disk", "size=8k") as disk:
        (disk / "large").write_bytes(b"x" * 8192)
        with closing(build(disk)) as files, pytest.raises(StagingError) as raised:
            files.open(create=True)
        assert names(disk) == ["large"]
    assert raised.value.problem_code == "staging.full"


def test_a_destination_that_is_gone_is_unavailable(there):
    there.root.rename(there.root.with_name("renamed"))

    with pytest.raises(ServerUnavailableError):
        there.files.look([b"a"])
    with pytest.raises(ServerUnavailableError):
        there.files.write(b".mydata-like/a", b"")


def test_another_folder_in_the_place_of_a_mounted_one_is_not_written_to(tmp_path):
    files = LocalFiles(os.fsencode(tmp_path / "a"))
    files.open(create=True)
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()

    with pytest.raises(ServerUnavailableError):
        files.write(b".mydata-like/a", b"")

    assert names(tmp_path / "a") == []


@needs_disks
def test_a_file_system_in_memory_proves_nothing_about_storage(tmp_path):
    with small_file_system(tmp_path / "disk", "size=1m") as disk:
        assert LocalFiles(os.fsencode(disk)).evidence == "read-back-cached"


def use(files, root):
    """Place a file, and return the names that are listed then."""
    there = Destination(root, files)
    files.open(create=True)
    placements = there.receive("data/a b")
    assert all(files.prove([placement.temporary for placement in placements]))
    assert files.place(placements) == [there.stored("data/a b")]
    assert files.write(b".mydata-like/m", b"m")
    assert files.read(b".mydata-like/m") == b"m"
    files.sync()
    names = [file.path for file in files.list_files(b"")]
    files.close()
    return names


@needs_sshd
def test_what_login_scripts_print_and_set_does_not_matter(tmp_path):
    with host_with(tmp_path, *noisy(tmp_path)) as build:
        assert use(build(tmp_path / "there"), tmp_path / "there") == [b"data/a b"]


@needs_sshd
def test_a_location_may_be_relative_to_the_home_of_the_account(tmp_path):
    with host_with(tmp_path) as build:
        relative = os.path.relpath(tmp_path / "there", pwd.getpwuid(os.getuid()).pw_dir)
        assert use(build(relative), tmp_path / "there") == [b"data/a b"]


@needs_sshd
def test_a_broken_connection_is_opened_again_by_the_next_call(tmp_path):
    with host_with(tmp_path) as build, closing(build(tmp_path / "there")) as files:
        files.open(create=True)
        build.sshd.kill_sessions()

        with pytest.raises(TransientError):
            files.look([b"a"])

        assert files.look([b"a"]) == [None]


OMITTING = '[ $# -lt 2 ] || shift\nexec /usr/bin/md5sum "$@"\n'
KILLING = "kill -9 $PPID\n"


@contextmanager
def hashing_with(folder, **programs):
    """Yield an open destination on a host with this md5sum."""
    with (
        host_with(folder, *first_in_path(folder, **programs)) as build,
        closing(build(folder / "there")) as files,
    ):
        files.open(create=True)
        yield Destination(folder / "there", files)


@needs_sshd
@pytest.mark.parametrize(
    "programs", [{"md5sum": CHANGING, **NO_PYTHON}, {"python3": CHANGING_PYTHON}], ids="/".join
)
def test_a_file_that_changes_while_it_is_hashed_is_not_proven(tmp_path, programs):
    with hashing_with(tmp_path, **programs) as there:
        paths = [there.put(name, name.encode()) for name in ("a", "grows", "z")]

        proven = there.files.prove(paths)

    assert [it is None for it in proven] == [False, True, False]


@needs_sshd
def test_what_python_did_before_its_answer_was_cut_off_is_found_by_other_programs(tmp_path):
    with hashing_with(tmp_path, python3=CUT_OFF_PYTHON) as there:
        placements = [as_sent(it) for it in there.receive("a", "b")]

        with pytest.raises(TransientError):
            there.files.prove_and_place(placements)

        assert there.files.prove_and_place(placements) == [None, None]
        found = there.files.prove([it.final for it in placements])
    assert [it.checksum for it in found] == [it.checksum for it in placements]


@needs_sshd
def test_the_checksum_program_is_found_where_the_others_are_known_before_the_login(tmp_path):
    with host_with(tmp_path) as build:
        with closing(connect(build.endpoint)) as session:
            programs = HostPrograms.parse(probe_commands(session, PROBE).output)
        with closing(build(tmp_path, programs)) as files:
            files.use(Algorithm.SHA256)
            assert files.algorithm is Algorithm.SHA256


@needs_sshd
@pytest.mark.parametrize("most", [1, 10])
def test_several_calls_at_once_take_what_the_host_allows(tmp_path, most):
    with (
        host_with(tmp_path, f"MaxSessions {most}") as build,
        closing(build(tmp_path / "there")) as files,
    ):
        files.open(create=True)
        there = Destination(tmp_path / "there", files)
        names = [there.put(f"{number}", b"%d" % number) for number in range(40)]
        calls = [[name] for name in names]

        found = map_concurrently(files.prove, calls, 4)

    contents = [b"%d" % number for number in range(40)]
    assert [it.checksum for (it,) in found] == [hashlib.md5(it).hexdigest() for it in contents]


@needs_sshd
def test_a_program_that_omits_files_is_asked_for_each(tmp_path):
    contents = [b"one", b"two", b"three"]
    with hashing_with(tmp_path, md5sum=OMITTING, **NO_PYTHON) as there:
        paths = [there.put(content, content) for content in contents]

        proven = there.files.prove(paths)

    assert [it.checksum for it in proven] == [hashlib.md5(it).hexdigest() for it in contents]


@needs_sshd
def test_an_answer_that_is_cut_off_is_not_believed(tmp_path):
    with hashing_with(tmp_path, md5sum=KILLING, **NO_PYTHON) as there:
        paths = [there.put("a"), there.put("b")]

        with pytest.raises(TransientError):
            there.files.prove(paths)


@pytest.fixture
def open_folder():
    """Return a folder that every account can enter."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


needs_accounts = pytest.mark.skipif(
    not IS_ROOT or not shutil.which("setpriv"), reason="only root can become another account"
)


@pytest.fixture
def other_account(tmp_path):
    """Return a function that returns files as another account sees them."""
    gate = script(tmp_path / "gate", OTHER_ACCOUNT)
    with host_with(tmp_path, f"ForceCommand {gate}") as build:
        yield build


@needs_sshd
@needs_accounts
def test_a_destination_without_permission_is_named(other_account, open_folder):
    for location in (open_folder, open_folder / "new"):
        with pytest.raises(StagingError) as raised:
            other_account(location).open(create=True)
        assert raised.value.problem_code == "destination.denied"
    assert names(open_folder) == []


@needs_sshd
@needs_accounts
def test_a_file_that_may_not_be_read_is_not_proven(other_account, open_folder):
    open_folder.chmod(0o777)
    there = Destination(open_folder, other_account(open_folder))
    paths = [there.put(name) for name in ("a", "b", "c", "secret/d")]
    there.path("b").chmod(0o600)
    there.path("secret").chmod(0o700)
    there.files.open(create=False)

    proven = there.files.prove(paths)
    listed = sorted(file.path for file in there.files.list_files(b""))

    assert [it is None for it in proven] == [False, True, False, True]
    assert listed == [b"a", b"b", b"c"]
    there.files.close()


@needs_sshd
@needs_accounts
def test_a_folder_without_permission_is_named(other_account, open_folder):
    open_folder.chmod(0o777)
    there = Destination(open_folder, other_account(open_folder))
    there.files.open(create=False)
    there.path("data").mkdir()
    there.files.write(b".mydata-like/incoming/a", b"")
    there.files.write(b".mydata-like/incoming/b", b"")
    placements = [
        Placement(b".mydata-like/incoming/a", b"data/a", 0o644),
        Placement(b".mydata-like/incoming/b", b"data/new/b", 0o644),
    ]

    results = there.files.place(placements)

    assert codes(results) == ["destination.denied"] * 2
    there.files.close()


@needs_sshd
def test_a_host_without_a_shell_is_named(tmp_path):
    with host_with(tmp_path, access="sftp") as build, pytest.raises(StagingError) as raised:
        build(tmp_path).open(create=True)
    assert raised.value.problem_code == "destination.no-shell"


@needs_sshd
def test_a_host_without_a_checksum_program_is_named(tmp_path):
    (tmp_path / "bin").mkdir()
    options = first_in_path(tmp_path / "bin", **NO_PYTHON)
    with (
        host_with(tmp_path, *options, checksum=b"") as build,
        closing(build(tmp_path / "there")) as files,
    ):
        files.open(create=True)
        with pytest.raises(StagingError) as raised:
            files.prove([b"a"])
    assert raised.value.problem_code == "destination.no-checksum"


@needs_sshd
@pytest.mark.parametrize("lacks", ["checksum", "sha256"])
def test_a_host_is_not_used_with_checksums_that_it_does_not_compute(tmp_path, lacks):
    algorithms = dict(zip(("checksum", "sha256"), Algorithm, strict=True))
    missing = algorithms.pop(lacks)
    (other,) = algorithms.values()
    with host_with(tmp_path, **{lacks: b""}) as build, closing(build(tmp_path / "there")) as files:
        files.open(create=True)
        files.use(other)
        with pytest.raises(StagingError, match=missing.label) as raised:
            files.use(missing)
    assert raised.value.problem_code == "destination.no-checksum"


@needs_sshd
def test_a_host_without_the_programs_that_are_needed_is_named(tmp_path):
    with (
        host_with(tmp_path, *with_programs(tmp_path)) as build,
        closing(build(tmp_path / "there")) as files,
        pytest.raises(StagingError) as raised,
    ):
        files.open(create=True)
    assert raised.value.problem_code == "destination.no-programs"


@needs_sshd
def test_over_sftp_a_location_may_be_relative_to_the_home_of_the_account(tmp_path):
    with sftp_with(tmp_path) as build:
        relative = os.path.relpath(tmp_path / "there", pwd.getpwuid(os.getuid()).pw_dir)
        assert use(build(relative), tmp_path / "there") == [b"data/a b"]


@needs_sshd
def test_an_sftp_session_that_is_lost_is_opened_again_by_the_next_call(tmp_path):
    with sftp_with(tmp_path) as build, closing(build(tmp_path / "there")) as files:
        files.open(create=True)
        for lose in (build.sshd.kill_sessions, build.sshd.kill_commands):
            lose()
            with pytest.raises(TransientError):
                files.look([b"a"])
            assert files.look([b"a"]) == [None]


@needs_sshd
def test_a_host_without_sftp_is_named(tmp_path):
    with (
        sftp_with(tmp_path, "Subsystem sftp /bin/false") as build,
        pytest.raises(StagingError) as raised,
    ):
        build(tmp_path).open(create=True)
    assert raised.value.problem_code == "destination.no-sftp"


SERVERS = [Path(f"/usr/lib/{name}/sftp-server") for name in ("openssh", "ssh")]
SERVER = next((str(path) for path in SERVERS if path.exists()), "")
needs_server = pytest.mark.skipif(not SERVER, reason="needs OpenSSH's sftp-server")


@needs_sshd
@needs_server
@pytest.mark.parametrize("denied", ["fsync", "limits", "posix-rename,fsync,limits,statvfs"])
def test_a_server_without_extensions_is_used_all_the_same(tmp_path, denied):
    with sftp_with(tmp_path, f"Subsystem sftp {SERVER} -P {denied}") as build:
        files = build(tmp_path / "there")
        assert use(files, tmp_path / "there") == [b"data/a b"]
        assert files.write(b".mydata-like/m", b"new", replace=True)
        assert files.read(b".mydata-like/m") == b"new"
        assert files.evidence == ("read-back-cached" if "fsync" in denied else "read-back")
        files.close()


@pytest.fixture
def other_sftp(tmp_path):
    """Return a function that returns files over SFTP as another account sees them."""
    gate = script(tmp_path / "gate", f"exec setpriv --reuid 65534 --clear-groups {SERVER}\n")
    with sftp_with(tmp_path, f"ForceCommand {gate}") as build:
        yield build


@needs_sshd
@needs_server
@needs_accounts
def test_over_sftp_what_is_denied_is_named_omitted_or_not_proven(other_sftp, open_folder):
    for location in (open_folder, open_folder / "new"):
        with pytest.raises(StagingError) as raised:
            other_sftp(location).open(create=True)
        assert raised.value.problem_code == "destination.denied"
    open_folder.chmod(0o777)
    with closing(other_sftp(open_folder)) as files:
        there = Destination(open_folder, files)
        paths = [there.put(name) for name in ("a", "b", "secret/d")]
        there.path("b").chmod(0o600)
        there.path("secret").chmod(0o700)
        files.open(create=False)
        files.write(b".mydata-like/incoming/a", b"")
        placements = [
            Placement(b".mydata-like/incoming/a", name, 0o644)
            for name in (b"secret/x", b"secret/y/z")
        ]

        assert [it is None for it in files.prove(paths)] == [False, True, True]
        assert sorted(it.path for it in files.list_files(b"")) == [b"a", b"b"]
        assert codes(files.place(placements)) == ["destination.denied"] * 2


def read_alone(files, path, offset=0):
    with files.open_content(os.fsencode(path), offset) as content:
        return content and b"".join(content.pieces)


def test_small_files_with_odd_names_are_read_together_or_alone(there):
    names = [there.put(b"odd/" + name, b"content of " + name * 40) for name in ODD]
    for name in names[::2]:
        there.path(name).chmod(0o640)
    for name in names[1::2]:
        there.path(name).chmod(0o444)

    together = {it.path: (b"".join(it.pieces), it.mode) for it in there.files.open_contents(names)}
    found = {}
    for name in names:
        with there.files.open_content(name) as content:
            found[name] = b"".join(content.pieces), content.mode

    assert found == {
        name: (there.path(name).read_bytes(), (0o640, 0o444)[number % 2])
        for number, name in enumerate(names)
    }
    assert together.items() <= found.items()


def test_a_host_with_tar_reads_small_files_together(there):
    names = [there.put(b"odd/" + name, b"content of " + name) for name in ODD]

    found = [(it.path, b"".join(it.pieces)) for it in there.files.open_contents(names)]

    local = isinstance(there.files, LocalFiles)
    expected = [] if local else [(name, there.path(name).read_bytes()) for name in names]
    assert sorted(found) == sorted(expected)


def test_a_file_is_read_from_an_offset_on(there):
    content = bytes(range(256)) * 12_000
    there.put("big", content)

    found = [read_alone(there.files, "big", at) for at in (0, 1, 65_536, len(content) - 1)]

    assert found == [content, content[1:], content[65_536:], content[-1:]]
    assert read_alone(there.files, "big", len(content)) == b""


def test_what_is_no_regular_file_is_not_read(there):
    there.put("data/file")
    there.path("data/link").symlink_to("file")
    there.path("linked").symlink_to("data")
    os.mkfifo(there.path("data/pipe"))
    names = [b"data", b"data/link", b"data/pipe", b"missing", b"data/missing", b"no/such"]

    alone = [read_alone(there.files, name) for name in [*names, b"linked/file"]]
    together = [it.path for it in there.files.open_contents(names)]

    assert alone == [None] * 7
    assert together == []


def test_reading_can_end_early_and_others_follow(there):
    there.put("big", bytes(20_000_000))
    there.put("small", b"small")

    with there.files.open_content(b"big") as content:
        assert next(content.pieces)

    assert read_alone(there.files, "small") == b"small"


def test_holes_are_noticed(there):
    there.put("whole", bytes(4_000_000))
    os.truncate(there.path("whole"), 8_000_000)

    with there.files.open_content(b"whole") as content:
        assert content.sparse == (not isinstance(there.files, SftpFiles))


def test_holes_are_read_as_zeros_and_not_sent_where_the_tar_is_gnu_s(there, kind):
    parts = [(b"begin", 3_000_000), (b"middle" * 1000, 9_000_000), (b"end", 0)]
    path = there.path(there.put("image"))
    with path.open("r+b") as file:
        for data, hole in parts:
            file.write(data)
            file.truncate(file.seek(hole, os.SEEK_CUR))

    with there.files.open_content(b"image") as content:
        pieces = list(content.pieces)

    assert b"".join(pieces) == path.read_bytes()
    gnu = kind in HOSTS and kind not in ("busybox", "bsd")
    assert any(it is HOLE for it in pieces) == gnu
    assert read_alone(there.files, "image", 3_000_000) == path.read_bytes()[3_000_000:]


def test_folders_and_links_are_listed_as_they_are(there):
    folders = {b"": None}
    for name in (b"top", *(b"top/" + name for name in ODD)):
        there.path(name).mkdir()
        there.path(name).chmod(0o750)
        os.utime(there.path(name), ns=(10**18, 10**18 + 5))
        folders[name] = 0o750
    links = {b"top/a b/" + name: name for name in ODD}
    for name, target in links.items():
        there.path(name).symlink_to(os.fsdecode(target))
    os.utime(there.path("top/a b"), ns=(10**18, 10**18))
    os.utime(there.path("top"), ns=(10**18, 10**18))
    there.put("top/file")
    there.put(f"{OWN}/manifest/1")
    os.utime(there.path("top"), ns=(10**18, 10**18))

    found = [*there.files.list_tree(b"")]
    below = [*there.files.list_tree(b"top/a b")]

    modes = {it.path: it.mode for it in found if isinstance(it, TreeFolder)}
    times = {it.modified_ns // 10**9 for it in found if isinstance(it, TreeFolder) and it.path}
    assert modes | {b"": None} == folders
    assert times == {10**9}
    assert {it.path: it.target for it in found if isinstance(it, TreeLink)} == links
    assert {it.path for it in below} == {b"top/a b", *links}
    assert [*there.files.list_tree(b"missing")] == []
