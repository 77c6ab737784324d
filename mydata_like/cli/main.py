"""The commands of `mydata-like`."""

from typing import Annotated

import typer

from mydata_like import __version__
from mydata_like.cli import (
    archives,
    doctor,
    explaining,
    freeing,
    importing,
    registering,
    settings,
    sources,
    standing,
    support,
    uploading,
    watching,
    where,
    window,
)
from mydata_like.cli.options import JsonOption
from mydata_like.cli.report import print_json

app = uploading.app  # "run" and "scan"
app.command("doctor")(doctor.examine)
app.command("free")(freeing.free)
app.command("register")(registering.register)
app.command("sources")(sources.sources)
app.command("status")(standing.status)
app.command("watch")(watching.watch)
app.command("support-bundle")(support.support_bundle)
app.command("where")(where.where)
app.command("explain")(explaining.explain)
app.command("gui")(window.gui)
settings.app.command("import")(importing.import_settings)
app.add_typer(settings.app)
app.add_typer(archives.app)


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
def version(
    everything: Annotated[
        bool, typer.Option("--all", help="With all libraries on which security depends.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the version."""
    from mydata_like.system.versions import describe_versions, list_libraries

    if not as_json:
        text = describe_versions() if everything else f"mydata-like {__version__}\n"
        typer.echo(text, nl=False)
        return
    record: dict[str, object] = {"version": __version__}
    if everything:
        record["libraries"] = [one._asdict() for one in list_libraries()]
    print_json(record)
