"""The command `get` from a MyTardis server, over sockets: what real runs have sent comes back.

No file gets its name with other bytes than those that the server has verified.
"""

import json
import os
import shutil
import subprocess
from contextlib import suppress
from random import Random

import pytest

from mydata_like.demo.middleware import HTML_PAGE, Fault, Reply, Reset, Truncate
from tests.copy_site import look
from tests.site import close_streams, finish, kill_group, make_data, open_site, yield_processor
from tests.sshd_fixture import needs_sshd

pytestmark = [
    pytest.mark.e2e,
    needs_sshd,
    pytest.mark.skipif(os.name == "nt", reason="names of POSIX"),
]

ODD = (
    *("new\nline", "tab\t", "back\\slash", "\\n", "-rf", "--help", " leading", "two  spaces"),
    *("trailing ", "quote'\"", "*", "?[a]", "$HOME;`id`", "#x#", "~", "%20", "a:b", "n" * 255),
    *("\u00e9", ".hidden", "...", "page.html", "sub/deep er/x", "empty"),
)
LARGE = 5_000_000  # bytes
SCAN = "alice/Scan 1"


class Getting:
    """A site whose data was sent, and what `get` brings to the folder `here`."""

    def __init__(self, site):
        self.site = site
        self.server = site.server
        self.scan = site.data / SCAN
        self.here = site.place.folder / "here"

    def start(self, *words):
        words = ["-m", "mydata_like", "get", *map(str, words), "--config", str(self.site.config)]
        return self.site._start(words, subprocess.DEVNULL)

    def get(self, *words):
        """Get something; return the exit code and the result."""
        ended = finish(self.start("--json", *words))
        return ended.code, json.loads(ended.output)

    def break_download(self, action, **more):
        self.server.faults.add(Fault(action=action, path="/download/", **more))

    def find(self, name):
        """Return the datafile with a name."""
        return next(it for it in self.server.datafiles() if it.filename == name)

    def change(self, name, **values):
        """Change columns of the records with a name."""
        for column, value in values.items():
            sql = f"UPDATE datafile SET {column} = ? WHERE filename = ?"
            self.server.site.store.change(sql, value, name)

    @property
    def downloads(self):
        return [it.status for it in self.server.requests if "/download/" in it.path]


@pytest.fixture
def open_getting(tmp_path):
    """Return what sends files, by their paths in one dataset, and opens the site."""
    sites = []

    def open_it(files, *settings):
        data = make_data(tmp_path / "site", tiny_files=3, large=1000)
        shutil.rmtree(data / "alice")
        for number, (name, content) in enumerate(files.items()):
            path = data / SCAN / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, ns=(0, 1_600_000_000_123_456_789 + number * 10**9))
        opened = open_site(tmp_path / "site")
        site = opened.__enter__()
        sites.append(opened)
        ended = site.run(*settings)
        assert ended.code == 0, ended.output + ended.complaints
        return Getting(site)

    yield open_it
    for opened in sites:
        opened.__exit__(None, None, None)


def seen(folder):
    """Return the files below a folder, without their modes."""
    return {path: it._replace(mode=0) for path, it in look(folder).items() if it.kind == "file"}


def has_part(folder):
    """Return whether a large file is here in part."""
    with suppress(FileNotFoundError):
        return any(it.stat().st_size > 2_000_000 for it in folder.rglob(".mydata-get-*"))
    return False


def codes(found):
    return {it["path"]: it["code"] for it in found["problems"]}


def test_what_is_missing_comes_back_to_its_place_and_is_not_sent_again(open_getting):
    files = {name: name.encode() * 10 for name in ODD if name != "empty"}
    getting = open_getting(files | {"empty": b"", "large": Random(1).randbytes(LARGE)})
    before = seen(getting.site.data)
    shutil.rmtree(getting.scan)

    code, found = getting.get("--missing", getting.site.data)
    again = getting.site.run()

    assert (code, found["fetched"], found["problems"]) == (0, len(ODD) + 1, [])
    assert found["here"] == found["found"] - found["fetched"] > 0
    assert seen(getting.site.data) == before
    assert (again.code, again.sums["sent"], again.sums["bytes"]) == (0, 0, 0)
    told = getting.site.command("where", "--json", str(getting.scan / "large"))
    assert json.loads(told.output)["files"][0]["restored"] is not None


def test_a_file_and_a_folder_come_to_a_target_or_back(open_getting):
    getting = open_getting({"a": b"aaa", "sub/b": b"b"})
    before = look(getting.scan)
    shutil.rmtree(getting.scan)

    to_target, _ = getting.get(getting.scan, getting.here)
    contents, _ = getting.get(f"{getting.scan}/", getting.here / "contents")
    one, found = getting.get("--missing", getting.scan / "a")
    chosen, of_patterns = getting.get("--missing", "--exclude", "/sub", getting.scan)

    assert [to_target, contents, one, chosen] == [0, 0, 0, 0]
    assert (found["found"], of_patterns["found"], of_patterns["here"]) == (1, 1, 1)
    assert seen(getting.here).keys() == {
        *(b"Scan 1/a", b"Scan 1/sub/b", b"contents/a", b"contents/sub/b"),
    }
    assert seen(getting.scan).keys() == {b"a"}
    assert seen(getting.scan)[b"a"].content == before[b"a"].content


def test_what_the_runs_of_shards_have_sent_comes_back(open_getting):
    layout = "data.layout=Username / Experiment / Dataset"
    getting = open_getting({"dataset/a": b"a"}, layout)
    data = getting.site.data
    for number in range(2, 10):
        shutil.copytree(getting.scan, data / "alice" / f"Scan {number}")
    shards = ("1/2", "2/2")
    ended = [
        getting.site.command("run", "--json", "--shard", it, settings=[layout]) for it in shards
    ]
    before = seen(data)
    shutil.rmtree(data / "alice")

    code, found = getting.get("--missing", data)

    assert all(it.sums["sent"] > 0 for it in ended)
    assert (code, found["fetched"]) == (0, 9)
    assert seen(data) == before


def test_other_bytes_get_no_name(open_getting):
    names = ("same", "changed", "shorter", "longer", "gone")
    getting = open_getting({name: name.encode() * 100 for name in names} | {"large": bytes(LARGE)})
    there = {name: getting.find(name).path for name in (*names, "large")}
    there["changed"].write_bytes(b"CHANGED" * 100)
    there["shorter"].write_bytes(b"shorter")
    there["longer"].write_bytes(b"longer" * 100 + b"x")
    there["large"].write_bytes(bytes(LARGE - 1) + b"x")
    getting.server.lose(getting.find("gone").id)

    code, found = getting.get(getting.scan, getting.here)

    wrong = dict.fromkeys(("changed", "shorter", "longer", "large"), "destination.differs")
    assert (code, codes(found)) == (1, wrong | {"gone": "server.lost"})
    assert [it.name for it in (getting.here / "Scan 1").iterdir()] == ["same"]


@pytest.mark.parametrize(
    "fault",
    [Reply(500), Reply(503), Truncate(3_000_000), Reset()],
    ids=["500", "503", "cut", "reset"],
)
def test_a_server_that_fails_for_a_moment_is_asked_again(open_getting, fault):
    content = Random(1).randbytes(LARGE)
    getting = open_getting({"a": b"a", "b": b"b", "large": content})
    getting.break_download(fault, count=2)

    code, found = getting.get(getting.scan, getting.here)

    assert (code, found["fetched"], found["failed"]) == (0, 3, 0)
    assert (getting.here / "Scan 1" / "large").read_bytes() == content


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Reply(302, b"", {"Location": "http://127.0.0.1:9/elsewhere"}), "server.refused"),
        (Reply(403), "server.forbidden"),
        (Reply(404), "server.lost"),
        (Reply(500), "server.error"),
        (HTML_PAGE, "destination.differs"),
        (Truncate(1), "server.connection-lost"),
    ],
    ids=["redirect", "403", "404", "500", "login page", "cut"],
)
def test_what_the_server_does_not_give_is_named_and_the_rest_comes(open_getting, fault, expected):
    getting = open_getting({"a": b"a" * 100, "b": b"b" * 100})
    victim = getting.find("a").id
    getting.server.faults.add(Fault(action=fault, path=f"/{victim}/download/", count=None))

    code, found = getting.get(getting.scan, getting.here)

    assert (code, codes(found)) == (1, {"a": expected})
    assert found["problem"] is None
    assert [it.name for it in (getting.here / "Scan 1").iterdir()] == ["b"]


def test_a_killed_get_continues_within_a_file(open_getting):
    content = Random(1).randbytes(LARGE)
    getting = open_getting({"large": content, "small": b"small"})
    asked = f"/{getting.find('large').id}/download/"

    process = getting.start("--bandwidth", "2", getting.scan, getting.here)
    while not has_part(getting.here):
        assert process.poll() is None, process.communicate()
        yield_processor()
    kill_group(process)
    close_streams(process)
    code, found = getting.get(getting.scan, getting.here)

    assert (code, found["failed"], found["here"] + found["fetched"]) == (0, 0, 2)
    assert (getting.here / "Scan 1" / "large").read_bytes() == content
    assert {it.name for it in (getting.here / "Scan 1").iterdir()} == {"large", "small"}
    assert len([it for it in getting.server.requests if asked in it.path]) == 2


def test_a_dataset_comes_by_its_records(open_getting):
    getting = open_getting({name: name.encode() * 10 for name in ODD})
    before = {path: it.content for path, it in seen(getting.scan).items()}
    dataset = getting.find("page.html").dataset
    getting.server.unverify(getting.find("x").id)

    tried, plan = getting.get("--dry-run", f"dataset:{dataset}", getting.here)
    nothing = not getting.here.exists()
    code, found = getting.get(f"dataset:{dataset}", getting.here)

    after = {path: it.content for path, it in seen(getting.here).items()}
    del before[b"sub/deep er/x"]
    assert (tried, nothing, plan["fetched"]) == (1, True, len(ODD) - 1)
    assert (code, codes(found)) == (1, {"sub/deep er/x": "verify.pending"})
    assert after == before


def test_an_experiment_comes_with_a_folder_for_each_dataset(open_getting):
    getting = open_getting({"a": b"a"})
    second = getting.site.data / "alice" / "Scan 2"
    shutil.copytree(getting.scan, second)
    assert getting.site.run().code == 0
    store = getting.server.site.store
    dataset = getting.find("a").dataset
    number = store.number("SELECT experiment FROM dataset_experiment WHERE dataset = ?", dataset)

    code, found = getting.get(f"experiment:{number}", getting.here)
    store.change("UPDATE dataset SET description = '../Scan 2' WHERE id = ?", dataset)
    again, _ = getting.get(f"experiment:{number}", getting.here / "again")

    assert (code, again, found["failed"]) == (0, 0, 0)
    assert seen(getting.here / "again").keys() == {
        b"Scan 2/a",
        f"..%2FScan%202-{dataset}/a".encode(),
    }
    assert {b"Scan 1/a", b"Scan 2/a"} <= seen(getting.here).keys()


HOSTILE = {
    "above": {"directory": "../.."},
    "absolute": {"directory": "/tmp"},
    "dots": {"directory": "a/../../b"},
    "empty part": {"directory": "a//b"},
    "own folder": {"directory": ".mydata-like"},
    "part": {"filename": ".mydata-get-0123456789abcdef"},
    "no name": {"filename": ".."},
}


def test_hostile_records_write_nothing_elsewhere(open_getting):
    getting = open_getting({name: name.encode() for name in (*HOSTILE, "good", "twice", "long")})
    dataset = getting.find("good").dataset
    getting.change("long", filename="n" * 300)
    getting.change("twice", version=2)
    getting.change("twice", filename="good")
    for name, values in HOSTILE.items():
        getting.change(name, **values)
    outside = seen(getting.site.place.folder)

    code, found = getting.get(f"dataset:{dataset}", getting.here)

    assert (code, found["fetched"], found["failed"]) == (1, 0, len(HOSTILE) + 2)
    assert sorted(codes(found).values()) == sorted(
        ["destination.manifest"] * len(HOSTILE) + ["server.strange-answer", "destination.name"]
    )
    assert seen(getting.here) == {}
    after = seen(getting.site.place.folder)
    changed = {path for path, it in after.items() if outside.get(path) != it}
    assert not [it for it in changed if it.startswith((b"data", b"here"))]


def test_what_does_not_exist_is_refused_with_a_sentence(open_getting):
    getting = open_getting({"a": b"a"})

    code, found = getting.get("dataset:999", getting.here)
    unknown, of_nothing = getting.get("--missing", getting.site.data / "nobody")
    getting.server.revoke_key()
    denied, of_stranger = getting.get("--missing", getting.site.data)

    assert (code, found["problem"]["message"]) == (2, "The server has no dataset 999.")
    assert (unknown, of_nothing["problem"]["code"]) == (2, "copy.source")
    assert (denied, of_stranger["problem"]["code"]) == (3, "server.denied")
    assert not getting.here.exists()


def test_files_of_an_archive_come_out_of_it(open_getting):
    chance = Random(1)
    tiny = {f"raw/{it:03}.dat": chance.randbytes(chance.randrange(3000)) for it in range(150)}
    tiny |= {"raw/raw/001.dat": b"another", "raw/large.dat": chance.randbytes(1_200_000)}
    rules = 'archive.rules=["*.dat below 2 MB from 50 files by dataset"]'
    getting = open_getting(tiny | {"alone.txt": b"alone"}, rules)
    before = seen(getting.scan)
    asked = len(getting.downloads)
    shutil.rmtree(getting.scan)

    code, found = getting.get("--missing", getting.scan)
    (getting.scan / "raw" / "raw" / "001.dat").unlink()
    one, _ = getting.get("--missing", getting.scan)

    assert (code, found["fetched"], found["problems"]) == (0, len(tiny) + 1, [])
    assert one == 0
    assert seen(getting.scan) == before
    archives = [it for it in getting.server.datafiles() if it.filename.endswith(".tar")]
    assert len(getting.downloads) - asked == len(archives) + 2


def test_a_damaged_archive_gives_only_what_is_right(open_getting):
    rules = 'archive.rules=["*.dat below 1 MB from 50 files"]'
    getting = open_getting({f"{it:03}.dat": b"%d" % it * 100 for it in range(60)}, rules)
    (archive,) = [it for it in getting.server.datafiles() if it.filename.endswith(".tar")]
    content = archive.path.read_bytes()
    archive.path.write_bytes(content[: len(content) // 2].replace(b"5" * 100, b"x" * 100))

    code, found = getting.get(getting.scan, getting.here)

    here = {path.decode()[-7:]: it for path, it in seen(getting.here).items()}
    assert (code, found["fetched"] + found["failed"]) == (1, 60)
    assert set(codes(found).values()) == {"server.lost"}
    assert {"000.dat", "010.dat"} <= here.keys()
    assert not {"005.dat", "059.dat"} & here.keys()
    assert len(getting.downloads) == 1
