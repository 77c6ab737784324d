"""Run commands in forks of one process, which imports the program only once.

`python -m tests.forked_commands` reads a JSON list of command lines from its standard input, runs
one after another, and writes the list of their exit codes, outputs and errors. A fork takes a
tenth of a start.
"""

import json
import os
import sys
import tempfile

from mydata_like.__main__ import main
from mydata_like.cli import free_command, status_command, where_command

IMPORTED = free_command, status_command, where_command


def run(words: list[str]) -> tuple[int, str, str]:
    """Run a command as `mydata-like` does; return its exit code, output and errors."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = os.fork()
        if process == 0:
            os.dup2(output.fileno(), sys.stdout.fileno())
            os.dup2(errors.fileno(), sys.stderr.fileno())
            _run_here(words)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        for file in (output, errors):
            file.seek(0)
        return code, output.read().decode(), errors.read().decode()


def _run_here(words: list[str]) -> None:
    code: object = 1
    try:
        sys.argv = ["mydata-like", *words]
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    json.dump([run(words) for words in json.load(sys.stdin)], sys.stdout)
