"""The commands of `mydata-like`."""

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from mydata_like import __version__
from mydata_like.cli.options import JsonOption
from mydata_like.cli.report import print_json

# Each command with the module that is imported for it, and the name of it there.
COMMANDS: Final = {
    "run": ("uploading", "run"),
    "scan": ("uploading", "scan"),
    "doctor": ("doctor", "examine"),
    "free": ("freeing", "free"),
    "register": ("registering", "register"),
    "sources": ("sources", "sources"),
    "status": ("standing", "status"),
    "watch": ("watching", "watch"),
    "support-bundle": ("support", "support_bundle"),
    "where": ("where", "where"),
    "explain": ("explaining", "explain"),
    "gui": ("window", "gui"),
    "demo": ("main", "demo"),
    "version": ("main", "version"),
    "settings": ("settings", "app"),
    "archive": ("archives", "app"),
}
SETTINGS_COMMANDS: Final = {
    "fetch": ("server_settings", "fetch"),
    "import": ("importing", "import_settings"),
}


def build_app(words: Sequence[str] = ()) -> typer.Typer:
    """Return the app with the command that the words name alone, or else with all commands.

    This is the one place where the modules of commands are imported: each imports at its head
    what it needs, and no command waits for what only others need.
    """
    app = typer.Typer(
        help="Carry instrument data to a MyTardis server, and prove that every byte arrived.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_ignore)  # an app of one command would have no name of a command
    wanted = words[0] if words else ""
    for name in [wanted] if wanted in COMMANDS else COMMANDS:
        found = _import(*COMMANDS[name])
        if isinstance(found, typer.Typer):
            app.add_typer(found)
        else:
            app.command(name)(found)
        if name == "settings":
            _complete_settings(found, words[1:])
    return app


def _complete_settings(app: typer.Typer, words: Sequence[str]) -> None:
    """Add the commands that go to a server or to another program, if one of them is wanted."""
    wanted = words[0] if words else "--help"
    if wanted in SETTINGS_COMMANDS:
        app.command(wanted)(_import(*SETTINGS_COMMANDS[wanted]))
    elif wanted.startswith("-"):
        for name, place in SETTINGS_COMMANDS.items():
            app.command(name)(_import(*place))


def _import(module: str, name: str) -> Any:
    return getattr(import_module(f"mydata_like.cli.{module}"), name)


def _ignore() -> None:
    """Do nothing before a command."""


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
