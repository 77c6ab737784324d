"""The examples for administrators ask for the shards that there are."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.privileges import needs_shell

pytestmark = [pytest.mark.process, needs_shell]

ADMIN = Path(__file__).parents[2] / "docs/admin"
STUB = '#!/bin/sh\nprintf "%s\\n" "$@"\n'


@pytest.fixture
def shell(tmp_path):
    """Return what runs a script with programs that only say what they were told."""
    for name in ("mydata-like", "install"):
        (tmp_path / name).write_text(STUB)
        (tmp_path / name).chmod(0o700)

    def run(script, **variables):
        path = f"{tmp_path}:{os.environ['PATH']}"
        ended = subprocess.run(
            ["sh", "-c", script],
            env={"PATH": path, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        words = ended.stdout.splitlines()
        return words[words.index("--shard") + 1]

    return run


@pytest.mark.parametrize("task", ["1", "8"])
def test_each_task_of_a_slurm_array_takes_its_shard(shell, task):
    script = (ADMIN / "slurm-array.sh").read_text()

    assert shell(script, SLURM_ARRAY_TASK_ID=task) == f"{task}/8"
    assert "--array=1-8" in script


@pytest.mark.parametrize(("index", "shard"), [("0", "1/8"), ("7", "8/8")])
def test_each_pod_of_a_kubernetes_job_takes_its_shard(shell, index, shard):
    text = (ADMIN / "kubernetes-job.yaml").read_text()
    (script,) = re.findall(r"- >-\n(.*?)\n +env:", text, re.S)
    assert "completions: 8" in text
    assert 'name: SHARDS, value: "8"' in text

    assert shell(" ".join(script.split()), JOB_COMPLETION_INDEX=index, SHARDS="8") == shard
