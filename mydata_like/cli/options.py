"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer
from typer import BadParameter

from mydata_like.core.data_directory import WHOLE, Shard

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Use this settings file instead of the default one."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Use this value for this command. Can be repeated.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
EventsOption = Annotated[
    bool, typer.Option("--events", help="Print every event as one line of JSON.")
]
BriefOption = Annotated[
    bool,
    typer.Option(
        "--brief", help="With --events: omit events about single files; totals are included."
    ),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="PATH",
        help="Upload only this folder or file from outside the data directory. Can be repeated.",
    ),
]
OnlyOption = Annotated[
    str,
    typer.Option(
        "--only",
        metavar="FOLDER",
        help="Upload only this folder of the data directory.",
    ),
]
ShardOption = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Upload part I of N of the data directory, for N programs that share the work.",
    ),
]
AsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="OWNER/EXPERIMENT/DATASET",
        help="The destination of a source. Give one for each source, in the same order, or none: "
        "then earlier destinations or the names of its folders are used. OWNER is optional.",
    ),
]
AcceptEmptyOption = Annotated[
    bool,
    typer.Option(
        "--accept-empty",
        help="Accept that missing files were deleted on purpose and that the drive is connected.",
    ),
]
AcceptMissingOption = Annotated[
    bool,
    typer.Option(
        "--accept-missing",
        help="Files were removed from a destination without a server on purpose: send them again.",
    ),
]
AcceptOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-host-key",
        metavar="SHA256:...",
        help="Trust a staging host whose key has this fingerprint.",
    ),
]
AcceptHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-host-key",
        metavar="SHA256:...",
        help="Trust a host whose key has this fingerprint.",
    ),
]
BandwidthOption = Annotated[
    float,
    typer.Option("--bandwidth", metavar="MB/S", min=0.0, help="Limit the speed; 0 is no limit."),
]
ChannelsOption = Annotated[
    int,
    typer.Option("--channels", metavar="N", min=0, max=32, help="Use N channels; 0 is automatic."),
]
IncludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="PATTERN",
        help="Only files that match, as in .gitignore. Can be repeated.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="PATTERN",
        help="Leave out files that match, as in .gitignore. Can be repeated.",
    ),
]


def read_shard(text: str) -> Shard:
    """Return the shard of the command line; the whole if it names none."""
    try:
        return Shard.parse(text) if text else WHOLE
    except ValueError:
        raise BadParameter("--shard takes I/N with I from 1 to N: 1/4 is the first of 4.") from None
