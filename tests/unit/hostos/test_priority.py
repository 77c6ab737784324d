"""Letting other programs go first."""

import json
import os
import subprocess
import sys

import pytest

from mydata_like.hostos.process import NICENESS

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="looks as Linux tells it"),
]

# A process of its own, since no one can take a low priority back.
PROGRAM = """
import json, os, subprocess, sys, threading
import psutil
from mydata_like.hostos.process import lower_priority

def look(pid):
    process = psutil.Process(pid)
    return [process.nice(), *map(int, process.ionice())]

os.nice(int(sys.argv[1]))
lower_priority()
lower_priority()
found = [look(os.getpid())]

def start_another():
    with subprocess.Popen(["sleep", "60"]) as other:
        found.append(look(other.pid))
        other.kill()

thread = threading.Thread(target=start_another)
thread.start()
thread.join()
print(json.dumps(found))
"""
BEST_EFFORT = 2


@pytest.mark.parametrize(("before", "after"), [(0, NICENESS), (15, 15)])
def test_a_process_and_all_that_it_starts_later_go_second(before: int, after: int) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(before - own)],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    assert json.loads(said.stdout) == [[after, BEST_EFFORT, 7]] * 2
