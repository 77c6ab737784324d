"""The log never grows large and never holds a secret."""

import ctypes
import io
import logging
import os
import re
import subprocess
import sys
import threading
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from mydata_like.hostos import logs
from mydata_like.hostos.logs import LogStyle, Redaction, logging_to
from tests.umasks import has_mode, modes_below, posix_modes, umask

SECRET = "s3cr3t&key/with=signs"
PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\nbW9yZQ==\n-----END OPENSSH PRIVATE KEY-----"
LEAKS = [
    "Authorization: ApiKey alice:CANARY",
    "{'Authorization': 'ApiKey alice:CANARY', 'Accept': 'application/json'}",
    "headers authorization=Basic CANARY==",
    "ApiKey alice:CANARY",
    "GET /api/v1/dataset/?username=alice&api_key=CANARY&limit=20",
    'api_key = "CANARY"',
    "apikey: CANARY",
    "password=CANARY",
    "https://alice:CANARY@example.org/",
    "proxy http://alice:p%40CANARY@proxy:8080 failed",
    PEM.replace("c2VjcmV0", "CANARY"),
    PEM.replace("c2VjcmV0", "CANARY").partition("bW9y")[0],
]


@pytest.fixture
def redact() -> Redaction:
    redaction = Redaction()
    redaction.add(SECRET)
    return redaction


def log_of(folder: Path) -> str:
    return (folder / "mydata-like.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("leak", LEAKS)
def test_what_looks_like_a_secret_is_hidden(redact: Redaction, leak: str) -> None:
    assert "CANARY" not in redact(leak)


@pytest.mark.parametrize(
    "text",
    ["https://example.org:8000/api/v1/", "Uploaded 3 files to alice@staging:/data", "key.pub"],
)
def test_harmless_text_stays_as_it_is(redact: Redaction, text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("secret", ["", "abc"])
def test_texts_too_short_to_be_secret_are_not_hidden(redact: Redaction, secret: str) -> None:
    redact.add(secret)

    assert redact("abcdef") == "abcdef"


@pytest.mark.parametrize("name", ["urllib3", "filelock", "keyring", "mydata_like.run"])
def test_known_secrets_reach_the_log_by_no_way(
    tmp_path: Path, redact: Redaction, name: str
) -> None:
    log = logging.getLogger(name)
    with logging_to(tmp_path, redact, LogStyle(level="DEBUG")):
        log.debug("plain %s", SECRET)
        log.info("repr %r, address ?k=s3cr3t%%26key%%2Fwith%%3Dsigns", {"k": SECRET})
        try:
            int(SECRET)
        except ValueError:
            log.exception("failed")

    text = log_of(tmp_path)
    assert "ValueError" in text
    assert "s3cr3t" not in text
    assert text.count("***") >= 3


def test_what_is_below_the_level_is_left_out(tmp_path: Path, redact: Redaction) -> None:
    with logging_to(tmp_path, redact, LogStyle(level="WARNING")):
        logging.getLogger("mydata_like.x").info("chatter")

    assert log_of(tmp_path) == ""


def test_names_that_are_no_text_can_be_logged(tmp_path: Path, redact: Redaction) -> None:
    # Given to our own handler alone: the test runner cannot carry such text to its parent.
    record = logging.makeLogRecord({"levelno": logging.INFO, "msg": "file a\udcff"})
    with logging_to(tmp_path, redact, LogStyle()):
        logging.getLogger().handlers[-1].handle(record)

    assert "a\\udcff" in log_of(tmp_path)


def test_the_log_is_cut_into_a_few_files(tmp_path: Path, redact: Redaction) -> None:
    line = "x" * 10_000
    with logging_to(tmp_path, redact, LogStyle(file_bytes=50_000)):
        for _ in range(33):
            logging.getLogger("mydata_like.x").info(line)

    files = list(tmp_path.glob("*.log*"))
    assert len(files) == logs.FILES
    assert all(file.stat().st_size <= 50_000 for file in files)


def is_wine() -> bool:
    return hasattr(ctypes.WinDLL("ntdll"), "wine_get_version")  # type: ignore[attr-defined,unused-ignore]


WRITER = """
import logging, sys
from pathlib import Path
from mydata_like.hostos.logs import LogStyle, Redaction, logging_to
with logging_to(Path(sys.argv[1]), Redaction(), LogStyle(file_bytes=30_000)):
    input()
    for number in range(400):
        logging.getLogger("x").info(f"{sys.argv[2]} {number}")
"""


@pytest.mark.process
def test_processes_that_share_a_log_lose_no_line_when_it_is_full(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    ]
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("\n")
        writer.stdin.flush()

    assert [writer.communicate()[1] for writer in writers] == ["", ""]
    texts = [file.read_text() for file in tmp_path.glob("*.log*")]
    found = re.findall(r"x: ([ab] \d+)", "".join(texts))
    lost = {f"{name} {number}" for name in "ab" for number in range(400)} - set(found)
    # Wine 8 looks up the end of a file and writes there in two steps, so lines overwrite others.
    assert len(lost) <= (40 if hasattr(ctypes, "WinDLL") and is_wine() else 0)
    assert len(found) == len(set(found))
    assert len(texts) > 1


def test_a_log_that_cannot_be_renamed_grows_and_loses_nothing(
    tmp_path: Path, redact: Redaction
) -> None:
    for number in range(1, logs.FILES):
        (tmp_path / f"mydata-like.log.{number}" / "inside").mkdir(parents=True)
    with logging_to(tmp_path, redact, LogStyle(file_bytes=2_000)):
        for number in range(100):
            logging.getLogger("test").info("line %d", number)

    assert log_of(tmp_path).count("line ") == 100


@posix_modes
def test_the_log_is_its_owners_alone(tmp_path: Path, redact: Redaction) -> None:
    with logging_to(tmp_path / "new", redact, LogStyle(name="gui")):
        pass

    assert has_mode((tmp_path / "new"), 0o700)
    assert has_mode((tmp_path / "new" / "gui.log"), 0o600)


@posix_modes
def test_a_log_that_follows_a_full_one_is_its_owners_alone(
    tmp_path: Path, redact: Redaction
) -> None:
    with umask(0o000), logging_to(tmp_path / "a" / "b", redact, LogStyle(file_bytes=50_000)):
        for _ in range(10):
            logging.getLogger("test").info("x" * 10_000)

    modes = modes_below(tmp_path)
    assert len(modes) > 3
    assert set(modes.values()) == {"drwx------", "-rw-------"}


def test_without_a_folder_the_log_goes_to_standard_error(tmp_path: Path, redact: Redaction) -> None:
    (tmp_path / "logs").write_bytes(b"")
    errors = io.StringIO()
    with redirect_stderr(errors), logging_to(tmp_path / "logs", redact, LogStyle()):
        logging.getLogger("mydata_like.x").info("hello %s", SECRET)

    assert "cannot be written" in errors.getvalue()
    assert "hello ***" in errors.getvalue()


def test_an_error_that_ends_a_thread_is_logged(tmp_path: Path, redact: Redaction) -> None:
    def fail() -> None:
        raise ValueError(SECRET)

    with logging_to(tmp_path, redact, LogStyle()):
        thread = threading.Thread(target=fail, name="doomed")
        thread.start()
        thread.join()
        leaver = threading.Thread(target=lambda: (_ for _ in ()).throw(SystemExit))
        leaver.start()
        leaver.join()

    assert "The thread doomed ended with an error" in log_of(tmp_path)
    assert log_of(tmp_path).count("CRITICAL") == 1


def test_afterwards_logging_is_as_before(tmp_path: Path, redact: Redaction) -> None:
    before = logging.getLogger().level, list(logging.getLogger().handlers), threading.excepthook

    with logging_to(tmp_path, redact, LogStyle(level="DEBUG")):
        pass

    root = logging.getLogger()
    assert (root.level, list(root.handlers), threading.excepthook) == before


def test_what_is_logged_cannot_act_upon_a_terminal_nor_pass_for_another_line(tmp_path):
    hostile = "a\x1b[2J\x7f\x9b\u202e\u2028\r\n2027-01-01 00:00:00,000 ERROR main x: forged"
    with logging_to(tmp_path, Redaction(), LogStyle()):
        error = ValueError(hostile)
        logging.getLogger("x").error("Failed: %s", hostile, exc_info=error)

    text = (tmp_path / "mydata-like.log").read_bytes().decode().replace(os.linesep, "\n")
    lines = text.split("\n")
    for act in "\x1b\x7f\x9b\u202e\u2028\r":
        assert act not in text
    assert "Failed: a" in lines[0]
    assert "forged" in lines[0]
    assert not any(line.startswith("2027") for line in lines)
