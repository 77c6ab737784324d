"""Run a trial and record how it ended: `python -m tests.trials.record MODULE [OPTION...]`.

The newest result of a module with the same options is a file of `tests/trials/results`. Without
arguments, the page of all of them is printed: docs/trials.md.
"""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path(__file__).parent / "results"
HEAD: Final = """\
# Recorded trials

The newest recorded run of each trial ([what they do](trust.md#what-was-tried)), and the last line
that it printed. `python -m tests.trials.record MODULE [OPTION...]` records one, `make pages` writes
this page.

| day | command | min | result |
|---|---|---|---|
"""


def record(module: str, options: list[str]) -> int:
    """Run a module of the tests, show what it prints, keep its last line; return its exit code."""
    command = ["python", "-m", module, *options]
    began = monotonic()
    last = ""
    running = [sys.executable, *command[1:]]
    with subprocess.Popen(running, cwd=ROOT, stdout=subprocess.PIPE, text=True) as trial:
        assert trial.stdout
        for line in trial.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line.strip() or last
    result = {
        "at": datetime.now(UTC).date().isoformat(),
        "command": " ".join(command),
        "seconds": round(monotonic() - began),
        "code": trial.returncode,
        "last": last,
    }
    RESULTS.mkdir(exist_ok=True)
    names = [option.strip("-") for option in options if option.startswith("--")]
    file = RESULTS / f"{'-'.join([module.rpartition('.')[2], *names])}.json"
    file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return trial.returncode


def make_page() -> str:
    """Return the page of all recorded results."""
    rows = []
    for file in sorted(RESULTS.glob("*.json")):
        result = json.loads(file.read_text("utf-8"))
        ended = "" if result["code"] == 0 else f"**exit code {result['code']}**: "
        minutes = f"{result['seconds'] / 60:.1f}"
        told = ended + result["last"].replace("|", "\\|")
        cells = (result["at"], f"`{result['command']}`", minutes, told)
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit(record(sys.argv[1], sys.argv[2:]))
    sys.stdout.write(make_page())
