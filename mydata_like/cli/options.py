"""Options that every command takes."""

from pathlib import Path
from typing import Annotated

import typer

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Use this settings file instead of the usual one."
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="Use this value for this time; may be given several times.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
EventsOption = Annotated[
    bool, typer.Option("--events", help="Print every event as one line of JSON.")
]
BriefOption = Annotated[
    bool,
    typer.Option(
        "--brief", help="With --events: leave out those about single files; the sums are told."
    ),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="PATH",
        help="Upload this folder or file from outside of the data directory, and nothing else; "
        "may be given several times.",
    ),
]
OnlyOption = Annotated[
    str,
    typer.Option(
        "--only",
        metavar="FOLDER",
        help="Look at this folder of the data directory, and at nothing else.",
    ),
]
ShardOption = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Look at one of N parts of the data directory, the first being 1/N: for N programs "
        "side by side that share the work.",
    ),
]
AsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--as",
        metavar="OWNER/EXPERIMENT/DATASET",
        help="What the source becomes (without OWNER: of the account); as many as sources, in "
        "their order, or none: then it is what it was, or is named after its folders.",
    ),
]
AcceptEmptyOption = Annotated[
    bool,
    typer.Option(
        "--accept-empty",
        help="Files of the data directory that are gone were deleted on purpose: its drive is "
        "not away.",
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
