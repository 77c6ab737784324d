"""`mydata-like settings`: shows, explains, checks and changes settings."""

import sys
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar

import typer
from rich.console import Console
from rich.table import Table

from mydata_like.app.service_setup import apply_autostart
from mydata_like.app.settings_service import (
    copy_api_key,
    load_settings,
    offer_former_key,
    offer_takeover,
    open_secrets,
    save_settings,
    store_api_key,
    store_s3_secret,
)
from mydata_like.cli.lazy_group import Command, LazyGroup
from mydata_like.cli.options import ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import Shape, describe_decision, print_line, print_lines
from mydata_like.core.errors import SettingsError, UploaderError
from mydata_like.core.formatting import format_json, format_text
from mydata_like.settings.fields import format_value, parse_value, plain_value
from mydata_like.settings.layers import Layer, Loaded, SettingSource, find_setting
from mydata_like.settings.schema import Settings, find_missing, iter_settings
from mydata_like.settings.values import complete_address


class SettingsCommand(Command):
    """A command that reports errors as text on standard error."""

    def report(self, error: UploaderError, shape: Shape) -> None:
        for line in filter(None, (error.message, error.hint)):
            print_line(line, err=True)


class SettingsCommands(LazyGroup):
    """The commands of settings; those that use a server or another program are imported late."""

    command_kind = SettingsCommand

    lazy_commands: ClassVar = {
        "fetch": ("server_settings_command", "fetch"),
        "forget-host": ("server_settings_command", "forget"),
        "import": ("import_command", "import_settings"),
    }


app = typer.Typer(
    name="settings",
    cls=SettingsCommands,
    help="Show, explain, check and change settings.",
    no_args_is_help=True,
)

AUTOSTART = "window.start_at_login"  # applied as soon as it is set

KeyArgument = Annotated[str, typer.Argument(metavar="SECTION.KEY")]


class SettingsTarget(StrEnum):
    """Where the API key can be stored."""

    KEYRING = "keyring"
    FILE = "file"


StoreOption = Annotated[
    SettingsTarget,
    typer.Option(help="The system's keyring, or a file (not encrypted) that only you can read."),
]
StdinOption = Annotated[bool, typer.Option("--stdin", help="Read the key from standard input.")]
S3Option = Annotated[
    bool, typer.Option("--s3", help="Store the secret of the access key for object storage.")
]

FormerOption = Annotated[
    str,
    typer.Option(
        "--from", help="Use the key that is stored for this other address of the same server."
    ),
]


@app.command("show", cls=SettingsCommand)
def show(
    config: ConfigOption = None,
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show all settings and where each value comes from."""
    loaded = load_settings(config, assignments or ())
    explained = [loaded.explain(setting.key) for setting in iter_settings()]
    if as_json:
        rows = {entry.setting.key: _as_json(entry) for entry in explained}
        sys.stdout.write(format_json(rows, indent=2) + "\n")
        return
    print_warnings(loaded)
    for decision in loaded.find_server_decisions():
        print_line(describe_decision(decision), err=True)
    table = Table("setting", "value", "source", box=None, pad_edge=False)
    for entry in explained:
        table.add_row(
            entry.setting.key, *map(format_text, (_value_text(entry), source_text(entry)))
        )
    Console(markup=False, highlight=False, soft_wrap=not sys.stdout.isatty()).print(table)


@app.command("get", cls=SettingsCommand)
def print_value(
    key: KeyArgument, config: ConfigOption = None, assignments: SetOption = None
) -> None:
    """Print the value of one setting."""
    entry = load_settings(config, assignments or ()).explain(key)
    print_line(_value_text(entry))


@app.command("set", cls=SettingsCommand)
def change_value(
    key: KeyArgument,
    value: Annotated[str, typer.Argument(help="Separate the items of a list by commas.")],
    config: ConfigOption = None,
) -> None:
    """Change one setting in your settings file."""
    setting = find_setting(key)
    former = _find_settings(config) if key == "server.url" else None
    _save(config, key, parse_value(setting, value))
    now = _find_settings(config)
    if former and now and (offer := offer_former_key(now, former, open_secrets(config))):
        print_line(offer, err=True)


@app.command("unset", cls=SettingsCommand)
def remove_value(key: KeyArgument, config: ConfigOption = None) -> None:
    """Remove one setting from your settings file; its default applies again."""
    _save(config, key, None)


@app.command("check", cls=SettingsCommand)
def check(config: ConfigOption = None, assignments: SetOption = None) -> None:
    """Check all settings and report everything that is wrong or missing."""
    loaded = load_settings(config, assignments or ())
    print_warnings(loaded)
    missing = find_missing(loaded.settings)
    for setting in missing:
        print_line(f"{setting.key} is not set yet: {setting.about.help}", err=True)
    if offer := offer_takeover(loaded.settings, config):
        print_line(offer, err=True)
    if missing:
        raise typer.Exit(SettingsError.exit_code)
    print_line("All settings are valid.")


@app.command("explain", cls=SettingsCommand)
def explain(key: KeyArgument, config: ConfigOption = None, assignments: SetOption = None) -> None:
    """Explain one setting: its meaning, its limits and the value of each layer."""
    entry = load_settings(config, assignments or ()).explain(key)
    print_lines(_explanation_lines(entry))


@app.command("set-key", cls=SettingsCommand)
def store_key(
    config: ConfigOption = None,
    assignments: SetOption = None,
    store: StoreOption = SettingsTarget.KEYRING,
    stdin: StdinOption = False,
    s3: S3Option = False,
    former: FormerOption = "",
) -> None:
    """Prompt for the API key of the account and store it."""
    settings = load_settings(config, assignments or ()).settings
    secrets, name = open_secrets(config), "secret access key" if s3 else "API key"
    if former:
        owner, found = copy_api_key(settings, secrets, complete_address(former))
        print_line(f"The {name} of {owner.account} on {owner.origin} is in the {found} now.")
        return
    text = sys.stdin.readline() if stdin else typer.prompt(name, hide_input=True)
    keep = store_s3_secret if s3 else store_api_key
    owner = keep(settings, secrets, text, store.value)
    where = "keyring" if store is SettingsTarget.KEYRING else "secrets file, which is not encrypted"
    print_line(f"The {name} of {owner.account} on {owner.origin} is in the {where}.")


def _find_settings(config: ConfigOption) -> Settings | None:
    """Return the settings; None if some are invalid."""
    try:
        return load_settings(config).settings
    except SettingsError:
        return None


def _save(config: ConfigOption, key: str, value: object) -> None:
    left = save_settings(config, {key: value})
    print_line(f"{key} is {'removed' if value is None else 'saved'}.")
    if key == AUTOSTART:
        settings = load_settings(config).settings
        where = apply_autostart(settings)
        print_line(f"{'Made' if settings.window.start_at_login else 'Removed'}: {where}.")
    for problem in left:
        print_line(f"Still wrong: {problem}", err=True)


def print_warnings(loaded: Loaded) -> None:
    """Print the warnings of the settings files."""
    for warning in loaded.warnings:
        print_line(f"Warning: {warning}", err=True)


def _value_text(entry: SettingSource) -> str:
    return format_value(entry.setting, entry.value)


def source_text(entry: SettingSource) -> str:
    """Return the origin of a value."""
    locked = ", locked" if entry.locked_by else ""
    origin = f" ({entry.winner.origin})" if entry.winner.source is Layer.SERVER else ""
    return f"{entry.winner.source}{origin}{locked}"


def _as_json(entry: SettingSource) -> dict[str, object]:
    secret = entry.setting.about.secret
    return {
        "value": _value_text(entry) if secret else plain_value(entry.value),
        "source": entry.winner.source.value,
        "origin": entry.winner.origin,
        "line": entry.winner.line,
        "locked_by": entry.locked_by or None,
    }


def _explanation_lines(entry: SettingSource) -> Iterator[str]:
    setting = entry.setting
    yield f"{setting.key}: {setting.about.label}"
    yield f"  {setting.about.help}"
    yield from (f"  {fact}" for fact in setting.facts)
    yield "Values, the last one counts:"
    for given in entry.given:
        text = format_value(setting, given.value) or "(empty)"
        ignored = ", ignored because it is locked" if given.ignored else ""
        mark = "*" if given is entry.winner else " "
        place = f" ({given.place})" if given.place else ""
        yield f"{mark} {given.source}{place}: {text}{ignored}"
    if entry.locked_by:
        yield f"Locked by {entry.locked_by}."
