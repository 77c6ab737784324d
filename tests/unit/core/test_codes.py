"""The codes that the program can tell are those of the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
USED = re.compile(r'(?:code = |code=|Problem\(\s*|"skipped\.)"?([a-z-]+\.[a-z-]+)"')
PAGE = (ROOT / "docs/events.md").read_text("utf-8").partition("## Codes")[2]
DOCUMENTED = set(re.findall(r"`([a-z-]+\.[a-z-]+)`", PAGE.partition("\n## ")[0]))
PROGRAM = "\n".join(path.read_text("utf-8") for path in (ROOT / "mydata_like").rglob("*.py"))


def test_every_code_that_can_be_told_is_documented():
    used = set(USED.findall(PROGRAM)) - {"locked.keys"}  # of the settings file

    assert len(used) > 50
    assert used - DOCUMENTED == set()


def test_every_code_that_is_documented_can_be_told():
    assert [code for code in sorted(DOCUMENTED) if f'"{code}"' not in PROGRAM] == []
