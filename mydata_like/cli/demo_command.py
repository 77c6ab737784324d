"""`mydata-like demo`: uploads sample data to an embedded server and compares the result."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from mydata_like.app.settings_service import HOME
from mydata_like.cli.output import Shape, print_lines
from mydata_like.cli.run_command import RunArguments, run_and_show
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.core.formatting import format_size
from mydata_like.demo.demo_site import DemoSite, open_demo
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.hostos.process import find_program
from mydata_like.settings.layers import PREFIX

_LOOK_AFTER = 0.2  # seconds between two checks whether the window was closed


def demonstrate(*, as_json: bool) -> int:
    """Upload the sample data; the exit code is 0 only if every byte arrived."""
    with open_demo() as place:
        # Keys, logs and state of a demonstration are removed with it, but not the user's.
        os.environ[HOME] = str(place.folder / "home")
        config = place.folder / "settings.toml"
        place.write_settings(config)
        # With --json standard output ends with the summary, so the rest goes to standard error.
        console = Console(stderr=as_json, markup=False, highlight=False)
        console.print(f"Embedded MyTardis server: {place.server.url}", soft_wrap=True)
        address = f"{place.sshd.username}@{place.sshd.host} port {place.sshd.port}"
        console.print(f"Staging host: {address}", soft_wrap=True)
        console.print(f"Sample data: {place.data}", soft_wrap=True)
        shape = Shape.JSON if as_json else Shape.TEXT
        # If host keys are pinned for this computer, the server alone cannot add one.
        code = run_and_show(RunArguments(config, (), shape, host_keys=(place.sshd.fingerprint,)))
        losses = place.find_losses()
        console.print(_build_table(place))
        for loss in losses:
            console.print(f"Wrong: {loss}", soft_wrap=True)
        if not losses:
            console.print("Every file on the server is equal to its local file, byte for byte.")
        return code or (1 if losses else 0)


def open_demonstration() -> int:
    """Open the window with the sample data; everything is removed when it is closed."""
    cancel = CancelFlag()
    with open_demo() as place, stopped_by_signals(cancel):
        config = place.folder / "settings.toml"
        place.write_settings(config)
        words = (*find_program(), "gui", "--demo", "--config", str(config))
        # Settings of the environment are meant for the user's own installation.
        kept = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
        home = {HOME: str(place.folder / "home")}
        window = subprocess.Popen(words, env=kept | home)  # noqa: S603 - our own program
        while window.poll() is None:
            if cancel.wait(_LOOK_AFTER):
                window.terminate()
                return window.wait()
        return window.returncode


def serve_forever(write_config: str) -> int:
    """Keep the embedded server running until a signal arrives."""
    cancel = CancelFlag()
    with open_demo() as place, stopped_by_signals(cancel):
        config = Path(write_config) if write_config else place.folder / "settings.toml"
        place.write_settings(config)
        print_lines(
            [
                f"Embedded MyTardis server: {place.server.url}",
                f"Sample data: {place.data}",
                f"Settings: {config}",
                f"Upload with: mydata-like run --config {config}",
                "Stop with Ctrl+C.",
            ]
        )
        sys.stdout.flush()
        # Python obeys a signal that another thread has received when this one wakes up.
        while not cancel.wait(1.0):
            pass
    return 0


def _build_table(place: DemoSite) -> Table:
    """Return the files of the server by dataset."""
    files, sizes, verified = Counter[str](), Counter[str](), Counter[str]()
    for datafile in place.server.datafiles():
        files[datafile.dataset_name] += 1
        sizes[datafile.dataset_name] += datafile.size
        verified[datafile.dataset_name] += datafile.verified
    table = Table("dataset", box=None, pad_edge=False)
    for column in ("files", "verified", "size"):
        table.add_column(column, justify="right")
    for name in sorted(files):
        numbers = (f"{files[name]:,}", f"{verified[name]:,}", format_size(sizes[name]))
        table.add_row(name, *numbers)
    return table
