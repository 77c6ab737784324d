"""`mydata-like settings import`: imports the settings, keys and approval of MyData."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app.mydata_import import (
    ApiKeyFate,
    MyDataImport,
    carry_over,
    describe_takeover,
    plan_takeover,
)
from mydata_like.cli.options import ConfigOption, JsonOption
from mydata_like.cli.output import print_json, print_lines
from mydata_like.cli.settings_command import SettingsTarget

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[MyData.cfg]", help="MyData's file; by default the one that MyData uses."
    ),
]
KeyStoreOption = Annotated[
    SettingsTarget,
    typer.Option(
        "--key-store",
        help="Where to store the API key: the keyring, or a file (not encrypted) that only "
        "you can read.",
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace your own settings that differ.")
]
BlankOption = Annotated[
    bool,
    typer.Option(
        "--blank-old-key",
        help="Remove the API key from MyData's file afterwards; MyData then stops working.",
    ),
]
PreviewOption = Annotated[
    bool, typer.Option("--preview", help="Show what would be imported; change nothing.")
]


def import_settings(
    source: FileArgument = None,
    config: ConfigOption = None,
    store: KeyStoreOption = SettingsTarget.KEYRING,
    *,
    force: ForceOption = False,
    blank_old_key: BlankOption = False,
    preview: PreviewOption = False,
    as_json: JsonOption = False,
) -> None:
    """Import the settings, API key, SSH key and approval of MyData."""
    takeover = plan_takeover(source, config, force=force)
    fate: ApiKeyFate | None = None
    if not preview:
        fate = carry_over(takeover, config, store.value, force=force, blank=blank_old_key)
    blanked = blank_old_key and fate in ("stored", "known")
    if as_json:
        print_json(_as_record(takeover, fate) | {"old_key_blanked": blanked})
        return
    lines = [*_report(takeover), *_key_lines(takeover, fate, store)]
    if blanked:
        lines.append(f"It is no longer in {takeover.file.path}.")
    elif blank_old_key and fate is not None:
        lines.append(f"So it stays in {takeover.file.path}.")
    print_lines([*lines, "", *_next_steps(takeover, preview=preview)])


def _report(takeover: MyDataImport) -> Iterator[str]:
    yield f"From {takeover.file.path}, read as {takeover.file.encoding}:"
    for paragraph in describe_takeover(takeover):
        yield ""
        yield paragraph.heading
        yield from (f"  {line}" for line in paragraph.lines)


def _key_lines(
    takeover: MyDataImport, fate: ApiKeyFate | None, store: SettingsTarget
) -> Iterator[str]:
    yield ""
    key = takeover.ssh_key
    if key is None:
        yield "No SSH key of MyData was found, so that mydata-like's own key has to be approved."
    elif key.path != takeover.settings.transfer.key_file:
        yield f"MyData's SSH key {key.path} is not used: another one is set here."
    elif key.problem:
        yield f"Before MyData's SSH key can be used: {key.problem}"
    else:
        yield f"MyData's SSH key {key.path} ({key.fingerprint}) is used from there."
    place = "keyring" if store is SettingsTarget.KEYRING else "secrets file, which is not encrypted"
    match fate:
        case "stored" | "known":
            yield f"The API key is in the {place}."
        case "kept":
            yield "Another API key is stored here already and stays; --force replaces it."
        case None if takeover.secret is not None:
            yield f"The API key would be stored in the {place}."
        case _:
            yield takeover.secret_problem


def _next_steps(takeover: MyDataImport, *, preview: bool) -> Iterator[str]:
    for key in takeover.missing:
        yield f"{key} is still missing: mydata-like settings set {key} VALUE"
    if any(not kept.locked_by for kept in takeover.kept):
        yield "What is kept here is replaced by MyData's with --force."
    if preview:
        yield "This was a preview: nothing has been changed."
    else:
        yield "Do not start MyData on this computer any more: the server knows both as one."
        yield "What a run would send tells: mydata-like scan"


def _as_record(takeover: MyDataImport, fate: ApiKeyFate | None) -> dict[str, object]:
    key = takeover.ssh_key
    return {
        "file": str(takeover.file.path),
        "encoding": takeover.file.encoding,
        "repeated": list(takeover.file.repeated),
        "bad_lines": list(takeover.file.bad_lines),
        "keys": [
            {
                "key": old.name,
                "becoming": old.becoming.value,
                "setting": old.setting or None,
                "reason": old.reason,
            }
            for old in takeover.keys
        ],
        "changes": dict(takeover.changes),
        "kept": [
            {
                "setting": kept.key,
                "value": kept.value,
                "mydata": kept.offered,
                "locked_by": kept.locked_by or None,
            }
            for kept in takeover.kept
        ],
        "ssh_key": None
        if key is None
        else {"path": str(key.path), "fingerprint": key.fingerprint, "problem": key.problem},
        "api_key": fate or "preview",
        "missing": list(takeover.missing),
    }
