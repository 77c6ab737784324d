"""The order of a copy: what is copied where, and how."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from mydata_like.app.host_login import parse_destination
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import CopySource, CopyTarget, plan_sources
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.destination_files import (
    OWN_FOLDER,
)
from mydata_like.core.errors import SettingsError
from mydata_like.core.formatting import format_path
from mydata_like.core.frozen import frozen

PATIENCE: Final = 600.0  # seconds that a copy waits for a full or silent destination

Links = Literal["keep", "follow", "skip"]


@frozen(kw_only=True)
class CopyOrder:
    """What is to be copied where, and how.

    `bandwidth` is in MB/s, 0 for no limit, and `channels` 0 for automatic. Symbolic `links` are
    kept as links, followed wherever they lead, or skipped.
    """

    sources: tuple[CopySource, ...]
    target: CopyTarget
    config: Path | None = None
    dry_run: bool = False
    bandwidth: float = 0.0
    channels: int = 0
    patience: float = PATIENCE
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    links: Links = "keep"
    accept_missing: bool = False
    replace_changed: bool = False  # also files that would be held
    evidence: str = ""  # the weakest kind of proof that is accepted; empty for any
    overwrite: bool = False  # also files that copies have not put there
    algorithm: Algorithm | None = None  # of the checksums of a new destination
    accepted_keys: tuple[str, ...] = ()
    shard: Shard = WHOLE


def plan_copy(arguments: Sequence[str]) -> tuple[tuple[CopySource, ...], CopyTarget]:
    """Return sources and destination of a command line; raises `UploaderError`."""
    if len(arguments) < 2:
        raise SettingsError(
            "A copy needs at least one source, and a destination.",
            hint="Write, for example: mydata-like copy FOLDER USER@HOST:PATH",
            code="copy.destination",
        )
    windows, target = os.name == "nt", parse_destination(arguments[-1])
    sources = plan_sources(
        [os.fsencode(it) for it in arguments[:-1]],
        os.path.isdir,
        cwd=os.fsencode(Path.cwd()),
        real_path=os.path.realpath,
        windows=windows,
    )
    for source in sources:
        _require_source(source)
        if source.place == OWN_FOLDER:
            raise SettingsError(
                f"{format_path(source.path)} cannot be copied under its own name: the destination "
                "has a folder of this name for its own list of what is there.",
                hint="Rename it, or copy the folder that it is in.",
                code="copy.source",
            )
    return tuple(sources), target


def _require_source(source: CopySource) -> None:
    """Raise an error for a source that is missing, or neither a folder nor a regular file."""
    try:
        mode = os.lstat(source.path).st_mode
    except OSError as error:
        raise SettingsError(
            f"{format_path(source.path)} cannot be copied: {error.strerror}.",
            hint="Check the path, and that its drive is connected.",
            code="copy.source",
        ) from error
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        raise SettingsError(
            f"{format_path(source.path)} is neither a folder nor a regular file.",
            hint="For a link to a folder, name the folder, or add a slash to the link.",
            code="copy.source",
        )
