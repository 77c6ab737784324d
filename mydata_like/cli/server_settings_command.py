"""`mydata-like settings fetch` and `forget-host`: what comes from the server and its hosts."""

from contextlib import suppress
from typing import Annotated

import typer

from mydata_like.app.registration import fetch_server_settings, forget_host
from mydata_like.app.run_request import RunRequest
from mydata_like.app.settings_service import load_settings
from mydata_like.cli.options import ConfigOption, SetOption
from mydata_like.cli.output import print_line
from mydata_like.cli.settings_command import print_warnings, source_text
from mydata_like.cli.stdin_commands import observing
from mydata_like.core.errors import SettingsError
from mydata_like.core.formatting import format_text
from mydata_like.settings.fields import format_value
from mydata_like.settings.layers import Layer
from mydata_like.settings.values import parse_host


def fetch(config: ConfigOption = None, assignments: SetOption = None) -> None:
    """Fetch and show the settings that the server defines for this uploader."""
    settings = load_settings(config, assignments or ()).settings
    with observing(settings, config) as observer:
        request = RunRequest(settings=settings, config=config, dry_run=True)
        changed = fetch_server_settings(request, observer)
    loaded = load_settings(config, assignments or ())
    print_line("The server's settings have changed." if changed else "Nothing has changed.")
    layer = loaded.sources.server
    for key in sorted(layer.values) if layer else ():
        entry = loaded.explain(key)
        theirs = next(given for given in entry.given if given.source is Layer.SERVER)
        counts = "" if entry.winner is theirs else f" (not used: {source_text(entry)})"
        print_line(f"{key} = {format_value(entry.setting, theirs.value)}{counts}")
    print_warnings(loaded)


def forget(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST[:PORT]", help="Its name or address; without a port, on all ports."
        ),
    ],
    config: ConfigOption = None,
) -> None:
    """Forget the keys of a staging host or a jump host; the next contact is like the first.

    A key that the known hosts file lists for several names is forgotten for all of them.
    """
    try:
        name, port = parse_host(host)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from None
    shown = format_text(name) + ("" if port is None else f" port {port}")
    if number := forget_host(config, name, port):
        keys = "1 key" if number == 1 else f"{number} keys"
        print_line(f"{keys} of {shown} forgotten.")
    else:
        print_line(f"No key of {shown} is known.", err=True)
    told = (
        "Keys that the server names (host_keys of the storage box) stay trusted: only its "
        "administrator can change them."
    )
    # Invalid settings do not prevent that keys are forgotten; other commands report them.
    with suppress(SettingsError):
        if load_settings(config).settings.transfer.host_keys:
            told = "The keys in transfer.host_keys stay trusted: remove old ones there."
    print_line(told, err=True)
    if not number:
        raise typer.Exit(SettingsError.exit_code)
