"""`mydata-like register`: requests approval and trusts the key of the staging host."""

import sys
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from mydata_like.app import registration
from mydata_like.app.approval import renew_identity
from mydata_like.app.connection_test import run_connection_test
from mydata_like.app.registration import (
    load_trusting,
    trust_host_keys,
)
from mydata_like.app.run_request import RunRequest
from mydata_like.app.settings_service import load_settings
from mydata_like.app.transports.connection_steps import StepResult
from mydata_like.app.transports.folder_kind import NewFolder
from mydata_like.app.transports.ssh_kind import HostKey
from mydata_like.cli.options import AcceptOption, ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import PlainLines, Shape, print_json, print_lines
from mydata_like.cli.stdin_commands import observing
from mydata_like.cli.terminal import stdin_is_terminal
from mydata_like.core.errors import Cancelled
from mydata_like.settings.schema import Settings

_CONCLUSIONS = {
    StepResult.OK: "The connection works. The first run shows the rest.",
    StepResult.UNPROVEN: "Nothing failed, but not everything could be tested.",
    StepResult.FAILED: "A step failed.",
}


def register(
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the key is approved; Ctrl+C stops it.")
    ] = False,
    new_identity: Annotated[
        bool,
        typer.Option(
            "--new-identity", help="Create a new uuid and key first, for a copied installation."
        ),
    ] = False,
    keep_identity: Annotated[
        bool,
        typer.Option("--keep-identity", help="Confirm that this computer replaces another one."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Create a new identity without asking.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only test the connection to the server with one small file."),
    ] = False,
    accept_folder: Annotated[
        bool,
        typer.Option(
            "--accept-folder", help="Confirm that transfer.folder is that of the storage box."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Register this installation with the server and request approval of its key."""
    if new_identity + keep_identity + check > 1:
        raise typer.BadParameter("--new-identity, --keep-identity and --check exclude each other.")
    shape = Shape.JSON if as_json else Shape.TEXT
    fingerprints = tuple(accept or ())
    reload = partial(load_settings, config, assignments or ())
    if check:
        settings = load_trusting(config, assignments or (), fingerprints).settings
        raise typer.Exit(_check(settings, config, shape))
    settings = reload().settings
    if new_identity:
        _renew_identity(settings, config, shape, sure=yes)
        settings = reload().settings
    accepted = trust_host_keys(Settings(), fingerprints).transfer.host_keys
    patience = inf if wait else None
    request = RunRequest(settings=settings, config=config, patience=patience, reload=reload)
    told = PlainLines(sys.stderr.write if as_json else sys.stdout.write)
    with observing(settings, config, told.show) as observer:
        place = registration.register(request, observer, here=keep_identity, accepted=accepted)
    for key in place.unknown_host_keys:
        if key.fingerprint in accepted or (not accepted and _asks(key, shape)):
            key.trust()
        else:
            raise key.refusal
    if folder := place.new_folder:
        if not (accept_folder or _confirms(folder, shape)):
            raise folder.refusal
        folder.confirm()
    if as_json:
        print_json({"approved": True, "box": place.area.box, "hosts": list(place.hosts)})
        return
    through = ", ".join(place.hosts)
    print_lines([f"Approved: files go to the storage box {place.area.box} through {through}."])


def _confirms(folder: NewFolder, shape: Shape) -> bool:
    """Ask the user on the terminal; without a terminal the answer is no."""
    if shape is not Shape.TEXT or not stdin_is_terminal():
        return False
    print_lines([folder.question])
    return typer.confirm("Write to this folder?")


def _check(settings: Settings, config: Path | None, shape: Shape) -> int:
    """Print the result of each step; return the exit code of the first that failed."""
    request = RunRequest(settings=settings, config=config, dry_run=True)
    steps = []
    with observing(settings, config) as observer:
        for step in run_connection_test(request, observer):
            steps.append(step)
            if shape is Shape.TEXT:
                told = " ".join(filter(None, (step.message, step.hint)))
                print_lines([f"{step.result.value:9} {step.name}: {told}"])
    worst = max((step.result for step in steps), key=list(StepResult).index)
    if shape is Shape.JSON:
        print_json({"result": worst, "steps": [step.as_record() for step in steps]})
    else:
        print_lines([_CONCLUSIONS[worst]])
    return next((step.exit_code for step in steps if step.exit_code), 0)


def _renew_identity(settings: Settings, config: Path | None, shape: Shape, *, sure: bool) -> None:
    """Create a new identity if the user confirms it."""
    if not sure:
        if shape is not Shape.TEXT or not stdin_is_terminal():
            raise typer.BadParameter("--new-identity needs --yes without a terminal.")
        print_lines(
            [
                "This installation becomes a new uploader: it has to be approved again before",
                "files go over SSH. What is on the server stays there and is found again.",
            ]
        )
        if not typer.confirm("Create a new identity?"):
            raise Cancelled
    uuid = renew_identity(settings, config)
    if shape is Shape.TEXT:
        print_lines([f"The new identity is {uuid}."])


def _asks(key: HostKey, shape: Shape) -> bool:
    """Ask the user on the terminal; without a terminal the answer is no."""
    if shape is not Shape.TEXT or not stdin_is_terminal():
        return False
    lines = [
        f"This is the first contact with {key.host} port {key.port}.",
        f"Its key has the fingerprint {key.fingerprint}",
        "Compare it with what the facility's administrator tells you.",
    ]
    if key.known:
        known = "before"
        if key.endpoint.host_keys:
            by_server = key.endpoint.pinned_by_server
            known = "those that the server names" if by_server else "those in transfer.host_keys"
        lines = [
            f"{key.host} port {key.port} has another key than {known}.",
            "Either it was replaced, or another computer is impersonating the host.",
            f"Known: {' or '.join(key.known)}",
            f"Now:   {key.fingerprint}",
            "Compare it with what the facility's administrator tells you.",
        ]
    print_lines(lines)
    return typer.confirm("Trust the new key?" if key.known else "Trust this host?")
