"""Names made to act upon a terminal: every command shows them, none passes them on."""

import json
import os
import subprocess
import sys
import unicodedata

import pytest

from tests.site import QUICK, make_data, open_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]

ACTS = (
    "\x1b[2J\x1b]0;title\x07",
    "\x9b31m\x9d52;c;aGk=\x9c",
    "\x08\x7f\x01",
    "\r\nforged: all is safe\n",
    "\u202egnp.exe\u202c\u2066\u2067\u2069",
    "\u200e\u200f\u061c",
    "\u2028\u2029\x85",
    "\udc9b\udcff",  # bytes that are no text
)
OLD = 1_600_000_000


def hidden(text):
    """Return the characters that must not leave, with what stands around them."""
    return [
        text[max(0, at - 20) : at + 20]
        for at, character in enumerate(text)
        if character != "\n" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    make_data(folder, tiny_files=3, large=20_000)
    data = folder / "data"
    for number, act in enumerate(ACTS):
        for path in (
            data / "alice" / "Plain" / f"{number}{act}.txt",
            data / "alice" / f"Scan{number}{act}" / f"in{act}" / "a.txt",
            data / f"owner{number}{act}" / "Scan" / f"b{act}.txt",
            data / "alice" / f"stray{number}{act}.txt",
            data / "alice" / "Plain" / ("long" + act + "x" * 180) / ("y" * 180 + act) / "c.txt",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text")
            os.utime(path, (OLD, OLD))
        (data / "alice" / "Plain" / f"link{number}{act}").symlink_to(f"nowhere{act}")
    for path in data.rglob("*"):
        os.utime(path, (OLD, OLD), follow_symlinks=False)
    with open_site(folder) as site:
        yield site


class Said:
    """What a command has said, without what a terminal would obey."""

    def __init__(self, site, words):
        choices = [word for value in QUICK for word in ("--set", value)]
        done = subprocess.run(
            [sys.executable, "-m", "mydata_like", *words, "--config", str(site.config), *choices],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=site.environment,
            check=False,
            timeout=120,
        )
        self.code = done.returncode
        # As bytes: reading text would make line breaks of carriage returns.
        self.output, self.complaints = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in self.complaints, self.complaints
        assert hidden(self.output) == []
        assert hidden(self.complaints) == []
        for line in (self.output + self.complaints).split("\n"):
            assert not line.startswith("forged"), line


def commands(site):
    """Return the words of every command that prints names."""
    folder, every = str(site.data / "alice"), "".join(ACTS)
    return [
        ("scan",),
        ("scan", "--json"),
        ("scan", "--events"),
        ("run",),
        ("run", "--events"),
        ("run", "--json"),
        ("status",),
        ("status", "--json"),
        ("where", f"{folder}/Plain/0{ACTS[0]}.txt"),
        ("where", f"nowhere{every}"),
        ("where", folder),
        ("where", folder, "--json"),
        ("run", "--source", f"/nowhere{every}", "--as", f"Title{every}/Set{every}"),
        ("run", "--only", f"nowhere{every}"),
        ("free", "--dry-run", folder),
        ("free", "--dry-run", "--json", folder),
        ("sources",),
        ("register", "--check"),
        ("settings", "show"),
        ("settings", "show", "--json"),
        ("settings", "fetch"),
        ("settings", "check"),
        ("settings", "explain", "filters.owner"),
        ("settings", "get", "filters.owner"),
    ]


def test_no_command_and_no_log_passes_a_control_character_on(site):
    first = Said(site, ("run",))
    assert "verified" in first.output
    texts = {f"key{act}": act for act in ACTS[:-1]}
    texts["filters.owner"] = "a\u202e\x9b\u2028"
    for words in commands(site):
        said = Said(site, words)
        if "--json" in words:
            json.loads(said.output)
        if "--events" in words:
            assert all(map(json.loads, said.output.split("\n")[:-1]))
        if words == ("status",):
            site.server.set_settings(site.uuid, texts)

    found = site.place.folder.rglob("mydata-like*.log*")
    logs = [file.read_bytes().decode() for file in found]
    assert any("forged" in log for log in logs)
    for log in logs:
        assert hidden(log) == []
