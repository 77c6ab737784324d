"""Every problem has somebody who can mend it, and one button."""

import re
from pathlib import Path

from mydata_like.gui import remedies
from mydata_like.gui.remedies import FAMILIES, REMEDIES, Act, Mender, find_remedy
from mydata_like.settings.schema import settings_by_key

CODES = (Path(__file__).parents[2] / "docs/events.md").read_text().split("## Codes")[1]
KNOWN = set(re.findall(r"`([a-z-]+\.[a-z-]+)`", CODES)) - {"advanced.state"}


def test_every_code_of_the_docs_has_a_remedy_and_no_other():
    single = {code for code in KNOWN if code.partition(".")[0] not in FAMILIES}

    assert set(REMEDIES) == single


def test_no_code_stands_in_the_table_twice():
    tables = (remedies._FILES, remedies._SERVER, remedies._HERE)
    codes = [code for table in tables for texts in table.values() for code in texts.split()]

    assert len(codes) == len(set(codes))


def test_settings_are_opened_at_settings_that_there_are():
    keys = {remedy.key for remedy in REMEDIES.values() if remedy.key}

    assert keys - settings_by_key().keys() == set()


def test_what_nobody_knows_yet_can_be_tried_again():
    assert find_remedy("brand.new") == (Mender.YOU, Act.TRY_AGAIN, "")
