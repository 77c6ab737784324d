"""`mydata-like register`: ask for approval, and get to know the staging host."""

import sys
from contextlib import ExitStack

import typer

from mydata_like import bootstrap
from mydata_like.bootstrap import HostKey
from mydata_like.cli.options import AcceptOption, ConfigOption, JsonOption, SetOption
from mydata_like.cli.report import print_json, print_lines
from mydata_like.cli.running import Shape, stopped_by_signals, tell_failure
from mydata_like.core.errors import Cancelled, HostKeyError, UploaderError
from mydata_like.engine.run import INTERRUPTED_EXIT
from mydata_like.engine.workers import CancelFlag


def register(
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the server about this installation and ask for the approval of its key."""
    shape = Shape.JSON if as_json else Shape.TEXT
    try:
        _register(config, tuple(assignments or ()), tuple(accept or ()), shape)
    except UploaderError as error:
        tell_failure(error, shape)
        raise typer.Exit(error.exit_code) from None
    except Cancelled:
        raise typer.Exit(INTERRUPTED_EXIT) from None


def _register(
    config: ConfigOption, assignments: tuple[str, ...], accept: tuple[str, ...], shape: Shape
) -> None:
    settings = bootstrap.load_settings(config, assignments).settings
    cancel = CancelFlag()
    with ExitStack() as stack:
        redaction = stack.enter_context(bootstrap.open_log(settings, config))
        stack.enter_context(stopped_by_signals(cancel))
        place = bootstrap.register(settings, config, cancel, redaction.add)
    for key in place.unknown_host_keys:
        if key.fingerprint in accept or (not accept and _asks(key, shape)):
            bootstrap.trust_host(key)
        else:
            raise HostKeyError(
                f"The key of {key.host} port {key.port} is not trusted yet: {key.fingerprint}",
                hint="Compare it with what the facility's administrator tells you, then run "
                f"again with --accept-host-key {key.fingerprint}",
            )
    if shape is Shape.JSON:
        print_json({"approved": True, "box": place.area.box, "hosts": list(place.area.hosts)})
        return
    hosts = ", ".join(place.area.hosts)
    print_lines([f"Approved: files go to the storage box {place.area.box} by way of {hosts}."])


def _asks(key: HostKey, shape: Shape) -> bool:
    """Ask the person on the terminal; where there is none the answer is no."""
    if shape is not Shape.TEXT or not sys.stdin.isatty():
        return False
    print_lines(
        [
            f"This is the first contact with {key.host} port {key.port}.",
            f"Its key has the fingerprint {key.fingerprint}",
            "Compare it with what the facility's administrator tells you.",
        ]
    )
    return typer.confirm("Trust this host?")
