"""The commands that carry data, and what they would carry: `mydata-like run` and `scan`."""

import typer

from mydata_like.cli.options import (
    AcceptEmptyOption,
    AcceptOption,
    AsOption,
    BriefOption,
    ConfigOption,
    EventsOption,
    JsonOption,
    OnlyOption,
    SetOption,
    ShardOption,
    SourceOption,
)
from mydata_like.cli.output import choose_shape
from mydata_like.cli.running import RunArguments, carry_out, read_shard


def run(  # noqa: PLR0913 - each is an option of its own
    *,
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    sources: SourceOption = None,
    becoming: AsOption = None,
    only: OnlyOption = "",
    shard: ShardOption = "",
    accept_empty: AcceptEmptyOption = False,
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Scan the data directory and upload what the server lacks, until all is verified."""
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if sum(map(bool, (only, sources, shard))) > 1:
        raise typer.BadParameter("--only, --source and --shard exclude each other.")
    arguments = RunArguments(
        config,
        tuple(assignments or ()),
        shape,
        tuple(accept or ()),
        only=only,
        shard=read_shard(shard),
        accept_empty=accept_empty,
    )
    raise typer.Exit(carry_out(arguments, sources or (), becoming or ()))


def scan(  # noqa: PLR0913 - each is an option of its own
    *,
    config: ConfigOption = None,
    assignments: SetOption = None,
    sources: SourceOption = None,
    becoming: AsOption = None,
    shard: ShardOption = "",
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Do a dry run: tell what would be uploaded; nothing is sent and nothing is made."""
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if sources and shard:
        raise typer.BadParameter("--source and --shard exclude each other.")
    arguments = RunArguments(
        config, tuple(assignments or ()), shape, dry_run=True, shard=read_shard(shard)
    )
    raise typer.Exit(carry_out(arguments, sources or (), becoming or ()))
