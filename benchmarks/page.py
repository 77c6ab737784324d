"""The tables of recorded results, which docs/conf.py puts into docs/measurements.md.

A result is a file of `python -m benchmarks --json`, or one without single samples. The page has the
newest result of each case.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import number, table

RESULTS = Path(__file__).parent / "results"
HEAD = ("case", "ours", "peer", "ours", "peer", "unit", "ratio", "CPU of ours", "of the peer")
SENDING, SUMMARY = "sending alone", "its own summary"
PROVEN = "of both sides"  # ends the checks of a peer with the same proof as a whole run

Row = dict[str, Any]


def make_tables(results: Path = RESULTS) -> str:
    """Return a table for each day and processor with which the newest result was measured."""
    newest: dict[str, tuple[str, Row]] = {}
    for file in sorted(results.glob("*.json")):
        record = json.loads(file.read_text())
        processor = record["machine"]["processor"].partition(",")[0]
        for case in record["cases"]:
            day = case.get("at", record["at"])[:10]
            newest[case["case"]] = f"{day}, {processor}", case
    days = sorted({day for day, _ in newest.values()})
    return "\n".join(
        "\n".join([f"### {day}", "", *table(HEAD, list(_list_rows(cases, day))), ""])
        for day in days
        for cases in [newest.values()]
    )


def _list_rows(cases: Iterable[tuple[str, Row]], day: str) -> Iterator[Sequence[str]]:
    """Yield our fastest way of sending and our whole run, each against its fastest peer."""
    for case in sorted((it for at, it in cases if at == day), key=lambda it: _order(it["case"])):
        rows = [row for row in case["rows"] if "speed" in row]
        fast = {"reverse": case["unit"] != "s"}
        ours = [row for row in rows if row["name"].startswith("mydata-like")]
        peers = [row for row in rows if row not in ours]
        ours.sort(key=lambda row: row["speed"][0], **fast)
        peers.sort(key=lambda row: row["speed"][0], **fast)
        proven = [row for row in peers if row["checks"].endswith(PROVEN)]
        sending = [row for row in ours if SENDING in row["name"]]
        whole = [row for row in ours if row not in sending and SUMMARY not in row["name"]]
        for mine, rivals in ((sending, peers), (whole, proven or peers)):
            if mine and rivals:
                yield _compare(case, mine[0], rivals[0])


def _compare(case: Row, ours: Row, peer: Row) -> Sequence[str]:
    speeds = ours["speed"][0], peer["speed"][0]
    ratio = speeds[1] / speeds[0] if case["unit"] == "s" else speeds[0] / speeds[1]
    return [
        f"{case['case']}: {case['title']}",
        ours["name"].removeprefix("mydata-like").strip(" ,"),
        peer["name"],
        *map(number, speeds),
        case["unit"],
        f"{ratio:.2f}",
        *(number(row["client_cpu"] + row["server_cpu"]) for row in (ours, peer)),
    ]


def _order(case: str) -> tuple[int, str]:
    found = re.match(r"P(\d+)", case)
    return (int(found[1]) if found else 99, case)
