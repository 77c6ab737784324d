"""Letting other programs go first."""

import json
import os
import subprocess
import sys

import psutil
import pytest

from mydata_like.hostos.process import NICENESS

pytestmark = pytest.mark.process

# A process of its own, since no one can take a low priority back.
PROGRAM = """
import json, os, subprocess, sys, threading
import psutil
from mydata_like.hostos.process import lower_priority

def look(pid):
    process = psutil.Process(pid)
    return [int(process.nice()), *map(int, process.ionice() if os.name == "posix" else ())]

if hasattr(os, "nice"):
    os.nice(int(sys.argv[1]))
lower_priority()
lower_priority()
found = [look(os.getpid())]

def start_another():
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(command) as other:
        found.append(look(other.pid))
        other.kill()

thread = threading.Thread(target=start_another)
thread.start()
thread.join()
print(json.dumps(found))
"""
BEST_EFFORT = 2


@pytest.mark.skipif(sys.platform != "linux", reason="looks as Linux tells it")
@pytest.mark.parametrize(("before", "after"), [(0, NICENESS), (15, 15)])
def test_a_process_and_all_that_it_starts_later_go_second(before: int, after: int) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)

    assert run_program(before - own) == [[after, BEST_EFFORT, 7]] * 2


@pytest.mark.skipif(os.name != "nt", reason="other systems have no classes of priorities")
def test_on_windows_a_process_has_a_lower_class() -> None:
    (own,), _ = run_program(0)  # the other one inherits it on Windows, but not on Wine 8

    assert own == psutil.BELOW_NORMAL_PRIORITY_CLASS


def run_program(added: int) -> list[list[int]]:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(added)],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    found: list[list[int]] = json.loads(said.stdout)
    return found
