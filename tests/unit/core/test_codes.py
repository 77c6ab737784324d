"""Every code that the program can tell stands in the documentation."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FAMILIES = (
    "archive|channel|command|data|file|folder|free|host-key|http|item|key|ledger|limits|link|lock|register|run"
    "|server|shard|skipped|source|ssh|staging|support|transfer|uploader|verify|waiting"
)
CODE = re.compile(rf'(?:code = |code=|Problem\(\s*|"skipped\.)"?((?:{FAMILIES})\.[a-z-]+)"')


def test_every_code_is_documented():
    documented = set(re.findall(r"`([a-z-]+\.[a-z-]+)`", (ROOT / "docs/events.md").read_text()))
    used = {
        code
        for path in (ROOT / "mydata_like").rglob("*.py")
        for code in CODE.findall(path.read_text())
    }

    assert len(used) > 50
    assert used - documented == set()
