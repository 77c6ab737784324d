"""The trial of `copy --shard` as an array job of a private Slurm on this computer.

`python -m tests.trials.slurm [--files 4000]`, as root: `make slurm-trial` installs Slurm and MUNGE.

Their daemons run in the foreground, listen on this computer only, and have all their files in a
temporary folder. Four tasks copy a tree to a host. One of them is requeued once it has sent some
files. At the end all files must be there with their bytes, each listed once.
"""

import argparse
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from socket import gethostname

from tests.copy_site import CopySite, find_differences, make_mix, open_copy_site, read_checksums
from tests.openssh import open_ssh

PATIENCE = 600.0  # seconds
TASKS = 4
REQUEUED = 3  # the task
CONFIGURATION = """\
ClusterName=trial
SlurmctldHost={name}(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
NodeName={name} NodeAddr=127.0.0.1 CPUs={tasks}
PartitionName=all Nodes={name} Default=YES
"""
JOB = """\
#!/bin/sh
echo "start ${{SLURM_RESTART_COUNT:-0}}"
{python} -m mydata_like copy --events --shard "$SLURM_ARRAY_TASK_ID/{tasks}" {source} {target}
echo "end $?"
"""


class Slurm:
    """A Slurm of one computer; its files are in `folder`."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder = folder
        self._environment = environment | {"SLURM_CONF": str(folder / "slurm.conf")}
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
        (folder / "munge.key").chmod(0o400)
        name = gethostname().partition(".")[0]
        text = CONFIGURATION.format(name=name, folder=folder, tasks=TASKS)
        (folder / "slurm.conf").write_text(text)

    @contextmanager
    def started(self) -> Iterator[None]:
        """Start the daemons, and stop them at the end."""
        munge = ("key-file", "socket", "pid-file", "log-file", "seed-file")
        paths = [f"--{it}={self._folder}/munge.{it.partition('-')[0]}" for it in munge]
        with ExitStack() as stack:
            self._start(stack, "munged", "--foreground", "--force", *paths)
            wait_until((self._folder / "munge.socket").exists, "munged starts")
            self._start(stack, "slurmctld", "-D")
            self._start(stack, "slurmd", "-D")
            wait_until(lambda: "idle" in self.ask("sinfo", "--noheader"), "the node is ready")
            yield

    def _start(self, stack: ExitStack, name: str, *words: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [name, *words], stdout=log, stderr=log, env=self._environment, cwd=self._folder
            )
        stack.callback(process.wait)
        stack.callback(process.terminate)

    def ask(self, *words: str) -> str:
        """Return what a command of Slurm prints; empty if it fails."""
        ended = subprocess.run(
            words,
            capture_output=True,
            text=True,
            env=self._environment,
            cwd=self._folder,
            timeout=PATIENCE,
            check=False,
        )
        return ended.stdout if ended.returncode == 0 else ""

    def run_array(self, site: CopySite, source: Path) -> list[str]:
        """Copy with an array job, and requeue one task in the middle; return what each printed."""
        job = self._folder / "job.sh"
        job.write_text(
            JOB.format(python=sys.executable, tasks=TASKS, source=source, target=site.target)
        )
        options = ("--parsable", "--requeue", f"--array=1-{TASKS}")
        printing = ("--open-mode=append", f"--output={self._folder}/task-%a")
        number = self.ask("sbatch", *options, *printing, str(job)).strip()
        task, printed = f"{number}_{REQUEUED}", self._folder / f"task-{REQUEUED}"

        def has_staged() -> bool:
            return printed.exists() and "file_staged" in printed.read_text()

        wait_until(has_staged, "a task has sent files")
        self.ask("scontrol", "requeue", task)
        # Slurm 22.05 waits for two minutes before it starts a requeued task.
        wait_until(lambda: "PENDING" in self.ask("scontrol", "show", "job", task), "requeue")
        self.ask("scontrol", "update", f"jobid={task}", "StartTime=now")
        wait_until(lambda: not self.ask("squeue", "--noheader"), "all tasks end")
        return [(self._folder / f"task-{it}").read_text() for it in range(1, TASKS + 1)]


def wait_until(happened: Callable[[], object], what: str) -> None:
    """Wait until something has happened; raises TimeoutError."""
    until = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > until:
            raise TimeoutError(f"waited in vain until {what}")
        time.sleep(0.1)


def find_wrongs(site: CopySite, source: Path, files: int, printed: Sequence[str]) -> list[str]:
    """Return what is wrong with a copy."""
    starts = [it.count("\nstart ") + it.startswith("start ") for it in printed]
    wrongs = find_differences(source, site.there, source.name.encode())
    if starts != [1 + (it == REQUEUED) for it in range(1, TASKS + 1)]:
        wrongs.append(f"the tasks were started {starts} times")
    if not all(it.endswith("end 0\n") for it in printed):
        wrongs.append(f"tasks have failed: {[it[-500:] for it in printed]}")
    if read_checksums(site.there).total() != files:
        wrongs.append(f"{read_checksums(site.there).total()} files are listed")
    if len({path.parent for path in site.segments}) != TASKS:
        wrongs.append(f"the segments are not those of {TASKS} tasks: {site.segments}")
    return wrongs


def main() -> int:
    """Run the trial; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description="Copy with an array job of Slurm.")
    parser.add_argument("--files", type=int, default=4000)
    files = parser.parse_args().files
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-trial-")))
        sshd = stack.enter_context(open_ssh(folder / "sshd"))
        site = stack.enter_context(open_copy_site(folder / "site", "host", sshd))
        source = make_mix(site.data / "src", files, Random(1))
        (folder / "slurm").mkdir()
        slurm = Slurm(folder / "slurm", site.environment | {"PYTHONPATH": str(Path.cwd())})
        with slurm.started():
            printed = slurm.run_array(site, source)
        wrongs = find_wrongs(site, source, files, printed)
    staged = printed[REQUEUED - 1].partition("\nstart 1")[0].count('"file_staged"')
    for line in wrongs:
        sys.stdout.write(f"{line[:2000]}\n")
    sys.stdout.write(
        f"{files} files in {TASKS} tasks, one requeued after {staged} of its files were sent: "
        f"{len(wrongs)} wrongs\n"
    )
    return bool(wrongs)


if __name__ == "__main__":
    sys.exit(main())
