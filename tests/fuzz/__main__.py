"""Run the fuzz targets: `python -m tests.fuzz [--target NAME] [--seconds 300] [--seed 1]`.

Each target runs in a separate process, two at a time. It fails if its parser raises an undeclared
error, takes longer than ten seconds for one input, or needs more than 300 MB; that input is kept.
The exit code is 1 if any target has failed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.fuzz.runner import LIMIT_MB, run_target
from tests.fuzz.targets import TARGETS

GRACE = 60.0  # seconds for a child to start and end


def main() -> int:
    """Run the chosen targets, print a table, and return the exit code."""
    options = _parse()
    if options.child:
        result = run_target(TARGETS[options.target[0]], options.seconds, options.seed, options.keep)
        sys.stdout.write(json.dumps(result) + "\n")
        return 0
    keep = (
        Path(tempfile.mkdtemp(prefix="mydata-like-fuzz-")) if options.keep is None else options.keep
    )
    names = options.target or list(TARGETS)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda name: _run_child(name, options, keep), names))
    lines = [f"{'target':<22} {'inputs':>10} {'peak MB':>8}  result"]
    lines += [
        "{target:<22} {inputs:>10,} {peak:>8.0f}  {result}".format_map(result) for result in results
    ]
    lines.append(
        f"{sum(result['inputs'] for result in results):,} inputs, at most {LIMIT_MB} MB allowed"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(result["result"] != "ok" for result in results))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--target", action="append", choices=TARGETS, help="target to run; all by default"
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument("--keep", type=Path, help="folder for inputs that failed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_child(name: str, options: argparse.Namespace, keep: Path) -> Mapping[str, Any]:
    command = [sys.executable, "-m", "tests.fuzz", "--child", "--target", name, "--keep", str(keep)]
    command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=options.seconds + GRACE, check=False
        )
        return dict(json.loads(ended.stdout.splitlines()[-1]))
    except subprocess.TimeoutExpired:
        why = f"an input took too long: {keep / name}.input"
    except (ValueError, IndexError):
        why = f"the process died: {ended.stderr.strip()[-300:]}, at {keep / name}.input"
    return {"target": name, "inputs": 0, "peak": 0, "result": why}


if __name__ == "__main__":
    sys.exit(main())
