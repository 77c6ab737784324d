"""Rules of archives: easily written, and told at once what is wrong with them."""

import pytest

from mydata_like.settings.schema import check_values
from mydata_like.settings.transfer_sections import Scope, parse_archive_rule


@pytest.mark.parametrize(
    ("text", "below", "files", "scope"),
    [
        ("* below 100 kB", 100_000, 100, Scope.FOLDER),
        ("*.dcm below 1 MB from 500 files by dataset", 1_000_000, 500, Scope.DATASET),
        ("/alice/Scan 1/** below 1.5MB from 1 file", 1_500_000, 1, Scope.FOLDER),
        ("a below b below 512 bytes by folder", 512, 100, Scope.FOLDER),
        ("  *.tif   below  64 MB  ", 64_000_000, 100, Scope.FOLDER),
    ],
)
def test_a_rule_says_which_files_from_how_many_on_and_in_which_company(text, below, files, scope):
    rule = parse_archive_rule(text)

    assert (rule.below, rule.files, rule.scope) == (below, files, scope)


def test_a_pattern_is_one_of_a_gitignore_file():
    rule = parse_archive_rule("/alice/**/*.dcm below 1 MB")

    assert rule.pattern.match("alice/Scan 1/a.dcm")
    assert not rule.pattern.match("bob/Scan 1/a.dcm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be like"),
        ("*.dcm", "must be like"),
        ("below 1 MB", "must be like"),
        ("* below 1 GB", "must be like"),
        ("* below 1 MB from many files", "must be like"),
        ("* below 1 MB by experiment", "must be like"),
        ("* below 65 MB", "from 1 byte to 64 MB"),
        ("* below 0 kB", "from 1 byte to 64 MB"),
        ("* below 1 kB from 0 files", "at least 1 file"),
        ("# below 1 kB", "matches nothing"),
        ("!*.tif below 1 kB", "matches nothing"),
        ("[z-a] below 1 kB", "matches nothing"),
        (" " * 2_000 + "a" * 2_000 + " below 1 kB", "at most 1200 characters"),
        (f"{'a' * 1_100} below 1 kB", "matches nothing"),
    ],
)
def test_a_wrong_rule_is_reported_with_how_to_write_one(text, message):
    with pytest.raises(ValueError, match=message):
        parse_archive_rule(text)


def test_all_that_is_wrong_is_reported_at_once():
    rules = ["* below 1 MB", "nonsense", "!a below 1 kB"]

    rule, size = check_values({"archive.rules": rules, "archive.size_limit": 1})[1]

    assert size.key == "archive.size_limit"
    assert rule.message.startswith('(entry 2) must be like "* below 100 kB"')
    assert "; (entry 3) has a pattern that matches nothing" in rule.message


def test_there_are_no_archives_unless_they_are_chosen():
    assert check_values({})[0].archive.rules == ()
