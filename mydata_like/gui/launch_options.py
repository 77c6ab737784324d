"""The options that the window was started with."""

from pathlib import Path
from typing import NamedTuple


class LaunchOptions(NamedTuple):
    """The settings file, as given and as used, and the paths that the window offers for upload.

    `state` and `logs` are folders of the program. `demo` marks the window as a demonstration.
    """

    config: Path | None
    config_file: Path
    state: Path
    logs: Path
    paths: tuple[Path, ...] = ()
    hidden: bool = False
    demo: bool = False
