import json
import os

import pytest
from typer.testing import CliRunner

from mydata_like.cli.archives_command import app
from tests.archives import NAME, members_of, write

CONTENTS = {b"Set 1/a.txt": b"aaa", b"Set 1/raw/b.tif": b"bb", b"Set 1/raw/c.tif": b""}


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / os.fsdecode(NAME)
    path.write_bytes(write(members_of(tmp_path / "source", CONTENTS))[0])
    return path


def call(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def test_the_list_names_every_file_with_its_checksum(archive):
    lines = call("list", archive).output.splitlines()

    assert [line.split("  ")[-1] for line in lines] == [name.decode() for name in sorted(CONTENTS)]
    assert lines[0].startswith("47bce5c74f589f4867dbd57e9ca9f808  ")


def test_the_list_in_json_has_all_that_the_index_has(archive):
    (first, *_) = json.loads(call("list", archive, "--json").output)["members"]

    assert first == {
        "name": "Set 1/a.txt",
        "size": 3,
        "modified": "2020-09-13T12:26:40.123456+00:00",
        "md5": "47bce5c74f589f4867dbd57e9ca9f808",
        "offset": 512,
    }


def test_an_intact_archive_is_said_to_be_so(archive):
    result = call("verify", archive)

    assert (result.exit_code, result.output) == (0, "3 files intact.\n")


def test_a_damaged_archive_names_what_is_damaged(archive):
    content = bytearray(archive.read_bytes())
    content[512] ^= 1
    archive.write_bytes(content)

    result = call("verify", archive, "--json")

    assert result.exit_code == 1
    told = json.loads(result.output)
    assert told["intact"] == 2
    assert [(failed["name"], failed["problem"]["code"]) for failed in told["failed"]] == [
        ("Set 1/a.txt", "archive.damaged")
    ]


def test_files_are_extracted_to_where_they_are_wanted(archive, tmp_path):
    assert call("extract", archive, "Set 1/raw", "--to", tmp_path / "out").exit_code == 0

    assert [p.name for p in (tmp_path / "out/Set 1").iterdir()] == ["raw"]
    assert (tmp_path / "out/Set 1/raw/b.tif").read_bytes() == b"bb"


def test_a_second_extraction_overwrites_nothing_and_says_so(archive, tmp_path):
    call("extract", archive, "--to", tmp_path / "out")

    result = call("extract", archive, "--to", tmp_path / "out")

    assert result.exit_code == 1
    assert result.output.count("exists already") == 3
    assert result.output.endswith("0 files extracted, 3 failed.\n")


@pytest.mark.parametrize("words", [["list"], ["verify"], ["extract"]])
def test_an_invalid_archive_is_reported_in_one_sentence(tmp_path, words):
    path = tmp_path / "text.tar"
    path.write_text("hello")

    result = call(*words, path)

    assert result.exit_code == 1
    assert "not an archive of mydata-like" in result.output


def test_a_file_that_it_does_not_hold_is_reported(archive):
    result = call("extract", archive, "nothing")

    assert (result.exit_code, "does not contain this file" in result.output) == (1, True)
