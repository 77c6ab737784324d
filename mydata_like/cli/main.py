"""The commands of `mydata-like`."""

from typing import Annotated, ClassVar

import typer

from mydata_like import __version__
from mydata_like.cli.lazy_group import LazyGroup
from mydata_like.cli.options import JsonOption
from mydata_like.cli.output import print_json


class Commands(LazyGroup):
    """All commands."""

    lazy_commands: ClassVar = {
        "copy": ("copy_command", "copy"),
        "get": ("get_command", "get"),
        "verify": ("verify_command", "verify"),
        "run": ("run_command", "run"),
        "scan": ("run_command", "scan"),
        "pause": ("control_command", "pause"),
        "resume": ("control_command", "resume"),
        "stop": ("control_command", "stop"),
        "doctor": ("doctor_command", "examine"),
        "free": ("free_command", "free"),
        "receipt": ("receipt_command", "receipt"),
        "register": ("register_command", "register"),
        "sources": ("sources_command", "sources"),
        "status": ("status_command", "status"),
        "watch": ("watch_command", "watch"),
        "support-bundle": ("support_command", "support_bundle"),
        "where": ("where_command", "where"),
        "explain": ("support_command", "explain"),
        "gui": ("window_command", "gui"),
        "demo": ("main", "demo"),
        "help": ("main", "open_documentation"),
        "version": ("main", "version"),
        "settings": ("settings_command", "app"),
        "archive": ("archives_command", "app"),
        "changed": ("changed_command", "app"),
    }


def build_app() -> typer.Typer:
    """Return the app with all commands; each is imported when it is used."""
    app = typer.Typer(
        cls=Commands,
        help="Carry instrument data to a host, folder, bucket or MyTardis server, and prove that "
        "every byte arrived.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_ignore)  # typer makes a group of an app with a callback
    return app


def _ignore() -> None:
    """Do nothing before a command."""


def demo(
    serve: Annotated[
        bool, typer.Option("--serve", help="Keep the server running and print its settings.")
    ] = False,
    write_config: Annotated[
        str, typer.Option(metavar="FILE", help="With --serve: write the settings to this file.")
    ] = "",
    window: Annotated[
        bool, typer.Option("--window/--no-window", help="Upload from the window.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Upload sample data to an embedded server and prove that it arrived."""
    # The embedded server is an extra that is not installed on an instrument's PC.
    from mydata_like.cli.demo_command import demonstrate, open_demonstration, serve_forever

    if window:
        raise typer.Exit(open_demonstration())
    raise typer.Exit(serve_forever(write_config) if serve else demonstrate(as_json=as_json))


def open_documentation() -> None:
    """Open the documentation in the browser, without network, and print where it is."""
    # Other commands of this module need none of these.
    import os
    import sys
    import webbrowser

    from mydata_like.core.resources import find_resources

    page = find_resources() / "site" / "index.html"
    if not page.is_file():
        typer.echo(
            "This installation has no documentation. In a clone, make docs builds it.", err=True
        )
        raise typer.Exit(1)
    typer.echo(page)
    # Without a desktop, a browser would take the terminal.
    desktop = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform in ("win32", "darwin") or any(map(os.environ.get, desktop)):
        webbrowser.open(page.as_uri())


def print_update(*, as_json: bool) -> None:
    """Print whether a newer version is available. Nothing is downloaded."""
    # Other commands of this module need no settings.
    from mydata_like.app.settings_service import load_settings
    from mydata_like.app.update_check import fetch_newer, is_allowed

    loaded = load_settings(must_exist=False)
    asked = is_allowed(loaded)
    newer = fetch_newer(loaded.settings.window.update_url) if asked else ""
    if as_json:
        print_json({"version": __version__, "asked": asked, "newer": newer})
    elif not asked:
        typer.echo("Not asked: window.update_url is empty, or a managed file rules this computer.")
    else:
        typer.echo(f"Version {newer} is available." if newer else "This is the newest version.")


def version(
    everything: Annotated[
        bool, typer.Option("--all", help="Include the libraries that security depends on.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Ask window.update_url for a newer version.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the version."""
    if check:
        print_update(as_json=as_json)
        return
    # At the top of the module it would delay every command by 17 ms.
    from mydata_like.hostos.dependencies import describe_versions, list_libraries

    if not as_json:
        text = describe_versions() if everything else f"mydata-like {__version__}\n"
        typer.echo(text, nl=False)
        return
    record: dict[str, object] = {"version": __version__}
    if everything:
        record["libraries"] = [one._asdict() for one in list_libraries()]
    print_json(record)
