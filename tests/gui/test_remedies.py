"""Every problem has somebody who can mend it, and one button."""

import re
from pathlib import Path

from mydata_like.gui import remedies
from mydata_like.gui.remedies import FAMILIES, REMEDIES, Act, Mender, find_remedy
from mydata_like.settings.schema import settings_by_key

CODES = (Path(__file__).parents[2] / "docs/events.md").read_text().split("## Codes")[1]
KNOWN = set(re.findall(r"`([a-z-]+\.[a-z-]+)`", CODES)) - {"advanced.state"}


def test_every_code_of_the_docs_has_a_remedy():
    assert {code.partition(".")[0] for code in KNOWN} == set(FAMILIES)


def test_no_remedy_is_for_a_code_that_the_docs_do_not_know():
    assert set(REMEDIES) - KNOWN == set()


def test_no_code_stands_in_the_table_twice():
    tables = (remedies._FILES, remedies._SERVER, remedies._HERE)
    codes = [code for table in tables for texts in table.values() for code in texts.split()]

    assert len(codes) == len(set(codes))


def test_settings_are_opened_at_settings_that_there_are():
    keys = {remedy.key for remedy in REMEDIES.values() if remedy.key}

    assert keys - settings_by_key().keys() == set()


def test_what_nobody_knows_yet_can_be_tried_again():
    assert find_remedy("brand.new") == (Mender.YOU, Act.TRY_AGAIN, "")
