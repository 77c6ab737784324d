"""`mydata-like copy`: copy folders and files elsewhere, and prove that they arrived."""

import logging
from contextlib import ExitStack
from typing import Annotated, cast, get_args

import typer

from mydata_like.app.copy_order import CopyOrder, Links, plan_copy
from mydata_like.app.host_login import find_host
from mydata_like.app.logging_setup import open_log
from mydata_like.cli.options import (
    AcceptHostOption,
    AcceptMissingOption,
    BandwidthOption,
    BriefOption,
    ChannelsOption,
    ConfigOption,
    EventsOption,
    ExcludeOption,
    IncludeOption,
    JsonOption,
    read_shard,
)
from mydata_like.cli.output import (
    Shape,
    choose_shape,
    name_destination,
    print_failure,
    print_json,
    unstarted_run,
)
from mydata_like.cli.prompts import find_prompts
from mydata_like.core.checksums import Algorithm
from mydata_like.core.copy_arguments import HostTarget
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.events import event_record
from mydata_like.hostos.process import import_ahead
from mydata_like.settings.schema import Settings

logger = logging.getLogger(__name__)


def copy(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE... DESTINATION",
            help="Folders or files, and where they go: [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]"
            "/PATH, a local folder or s3://BUCKET/PREFIX. FOLDER becomes DESTINATION/FOLDER; of "
            "FOLDER/, only the contents are copied.",
        ),
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent. Nothing is changed.")
    ] = False,
    bandwidth: BandwidthOption = 0.0,
    channels: ChannelsOption = 0,
    includes: IncludeOption = None,
    excludes: ExcludeOption = None,
    links: Annotated[
        str,
        typer.Option(
            "--links",
            metavar="keep|follow|skip",
            help="Copy symbolic links as links, copy what they point to, or skip them.",
        ),
    ] = "keep",
    accept: AcceptHostOption = None,
    accept_missing: AcceptMissingOption = False,
    replace_changed: Annotated[
        bool,
        typer.Option(
            "--replace-changed",
            help="Also replace the copies of files that shrank, or of many that changed.",
        ),
    ] = False,
    evidence: Annotated[
        str,
        typer.Option(
            "--evidence",
            metavar="host|read-back",
            help="Refuse a destination with a weaker proof than that the host computes checksums, "
            "or that files are read back from its disk.",
        ),
    ] = "",
    checksum: Annotated[
        Algorithm | None,
        typer.Option(
            "--checksum",
            help="The checksums of a new destination, which keeps them; without it, md5.",
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Also replace files that copies have not put there. They are kept for 30 days.",
        ),
    ] = False,
    shard: Annotated[
        str,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Copy part I of N of the files; N programs share the work.",
        ),
    ] = "",
    config: ConfigOption = None,
    events: EventsOption = False,
    brief: BriefOption = False,
    as_json: JsonOption = False,
) -> None:
    """Copy folders and files to a host, folder or bucket, and prove that every byte arrived.

    No server and no settings are needed. The same command continues after an interruption, and
    sends only what is missing or has changed. A file that this program has not put there is not
    replaced without --overwrite.
    """
    shape = choose_shape(events=events, brief=brief, as_json=as_json)
    if links not in get_args(Links):
        raise typer.BadParameter("--links takes keep, follow or skip.")
    if evidence not in ("", "host", "read-back"):
        raise typer.BadParameter("--evidence takes host or read-back.")
    settings = None
    try:
        sources, target = plan_copy(arguments)
        order = CopyOrder(
            sources=sources,
            target=target,
            config=config,
            dry_run=dry_run,
            bandwidth=bandwidth,
            channels=channels,
            includes=tuple(includes or ()),
            excludes=tuple(excludes or ()),
            links=cast(Links, links),
            accept_missing=accept_missing,
            replace_changed=replace_changed,
            evidence=evidence,
            overwrite=overwrite,
            algorithm=checksum,
            shard=read_shard(shard),
            accepted_keys=tuple(accept or ()),
        )
        settings = name_destination(target, arguments[-1])
        code = _copy(order, shape, settings)
    except UploaderError as error:
        print_failure(error, shape, settings)
        code = error.exit_code
    except (Cancelled, KeyboardInterrupt):
        # Only a user who interrupts a login needs it.
        from mydata_like.engine.run import INTERRUPTED

        if shape is not Shape.TEXT:
            print_json(event_record(unstarted_run(INTERRUPTED)))
        code = Cancelled.exit_code
    raise typer.Exit(code)


def _copy(order: CopyOrder, shape: Shape, settings: Settings) -> int:
    """Log in while the run is imported, which takes as long."""
    with ExitStack() as stack:
        redaction = stack.enter_context(open_log(Settings(), order.config))
        prompts, host = find_prompts(), None
        if isinstance(order.target, HostTarget):
            import_ahead("mydata_like.cli.copy_run")
            host = find_host(order.target, order.config, order.accepted_keys, prompts)
        # Imported by now, or while the host was asked.
        from mydata_like.cli.copy_run import run_order

        return run_order(order, host, shape, settings, redaction.add)
