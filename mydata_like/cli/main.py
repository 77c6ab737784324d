"""The commands of `mydata-like`."""

from typing import Annotated

import typer

from mydata_like import __version__
from mydata_like.cli import (
    archives,
    freeing,
    importing,
    registering,
    settings,
    standing,
    support,
    watching,
    whereabouts,
    window,
)
from mydata_like.cli.options import (
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
from mydata_like.cli.running import Task, carry_out, choose_shape, read_shard

app = typer.Typer(
    help="Carry instrument data to a MyTardis server, and prove that every byte arrived.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("free")(freeing.free)
app.command("register")(registering.register)
app.command("status")(standing.status)
app.command("watch")(watching.watch)
app.command("support-bundle")(support.support_bundle)
app.command("where")(whereabouts.where)
app.command("gui")(window.gui)
settings.app.command("import")(importing.import_settings)
app.add_typer(settings.app)
app.add_typer(archives.app)


@app.command()
def run(  # noqa: PLR0913 - each is an option of its own
    *,
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    sources: SourceOption = None,
    becoming: AsOption = None,
    only: OnlyOption = "",
    shard: ShardOption = "",
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Scan the data directory and upload what the server lacks, until all is verified."""
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if sum(map(bool, (only, sources, shard))) > 1:
        raise typer.BadParameter("--only, --source and --shard exclude each other.")
    task = Task(
        config,
        tuple(assignments or ()),
        shape,
        tuple(accept or ()),
        only=only,
        shard=read_shard(shard),
    )
    raise typer.Exit(carry_out(task, sources or (), becoming or ()))


@app.command()
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
    task = Task(config, tuple(assignments or ()), shape, dry_run=True, shard=read_shard(shard))
    raise typer.Exit(carry_out(task, sources or (), becoming or ()))


@app.command()
def demo(
    serve: Annotated[
        bool, typer.Option("--serve", help="Leave the server running, and print its settings.")
    ] = False,
    write_config: Annotated[
        str, typer.Option(metavar="FILE", help="With --serve: write the settings to this file.")
    ] = "",
    window: Annotated[
        bool, typer.Option("--window/--no-window", help="Upload from the window.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Upload sample instrument data to an embedded server, and prove that it arrived."""
    # The embedded server is an extra, which an installation on an instrument's PC lacks.
    from mydata_like.cli.demonstration import demonstrate, open_demonstration, serve_forever

    if window:
        raise typer.Exit(open_demonstration())
    raise typer.Exit(serve_forever(write_config) if serve else demonstrate(as_json=as_json))


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"mydata-like {__version__}")
