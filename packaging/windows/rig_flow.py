"""The step `flow` of the rig: uploads under Windows to the SSH servers of Linux."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rig import Rig

ROOT: Final = Path(__file__).parents[2]
TIMEOUT: Final = 300  # seconds for one test, on a busy computer
REPLACED: Final = "tests/flow/test_run_replaced.py"  # its kills are those of the step `kill`
TESTS: Final = (
    "tests/faults",
    "tests/flow/test_marks.py",
    "tests/flow/test_run_swapped.py",
    "tests/flow/test_run_odd_names.py",
    "tests/flow/test_run_changed.py",
    f"{REPLACED}::test_changed_files_are_replaced_and_the_earlier_ones_kept",
    f"{REPLACED}::test_undoing_twice_ends_with_the_local_content_which_is_safe",
    f"{REPLACED}::test_kept_files_are_removed_when_their_time_has_passed",
    "tests/flow/test_run_held.py",
    "tests/flow/test_run_open_elsewhere.py",
    "tests/flow/test_run_ssh_choices.py",
    "tests/flow/test_run_cut_off.py",
    "tests/flow/test_contradicted.py",
    "tests/flow/test_freeing.py",
    "tests/flow/test_free_trials.py",
    "tests/contract/test_server_api.py",
    "tests/contract/test_ledger.py",
    "tests/contract/test_session.py",
    "tests/contract/test_shared_session.py",
    "tests/contract/test_jumps.py",
    "tests/contract/test_tars.py",
    "tests/contract/test_rungs.py",
    "tests/contract/test_sftp.py",
    "tests/contract/test_transport.py",
)


def upload(rig: Rig) -> None:
    """Run the tests of transfers and of whole runs with each kind of staging host."""
    # Folders on the drive of Linux, where the SSH servers see them.
    with TemporaryDirectory(prefix="mydata-like-flow-") as folder, openssh() as service:
        rig.test_each(
            TESTS,
            # Windows cannot delete all of the names that Linux gave to files in earlier folders.
            PYTEST_ADDOPTS=f"--timeout={TIMEOUT} -o tmp_path_retention_count=1000",
            TEST_OPENSSH=service,
            PYTEST_DEBUG_TEMPROOT="Z:" + folder.replace("/", "\\"),
        )


@contextmanager
def openssh() -> Iterator[str]:
    """Run the process that starts OpenSSH's servers for tests; yield how they reach it.

    It runs in the environment of `make setup`.
    """
    process = subprocess.Popen(
        [str(ROOT / ".venv" / "bin" / "python"), "-m", "tests.openssh"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()
